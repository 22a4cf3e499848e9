// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/lexer/utf8.h"

#include <algorithm>
#include <iterator>

namespace phobos::compiler {
namespace {

struct Range {
  int32_t first;
  int32_t last;
};

// Blocks without letters, and single signs among letters, above U+007F; sorted.
constexpr Range kNotInNames[] = {
    {0x80, 0xA9},     {0xAB, 0xB4},       {0xB6, 0xB6},       {0xB8, 0xB9},        {0xBB, 0xBF},
    {0xD7, 0xD7},     {0xF7, 0xF7},       {0x2C2, 0x2C5},     {0x2D2, 0x2DF},      {0x37E, 0x37E},
    {0x1680, 0x1680}, {0x180E, 0x180E},   {0x2000, 0x203E},   {0x2041, 0x2053},    {0x2055, 0x2070},
    {0x2072, 0x207E}, {0x2080, 0x208F},   {0x20A0, 0x20CF},   {0x2190, 0x2BFF},    {0x2E00, 0x2FFF},
    {0x3000, 0x3004}, {0x3008, 0x3020},   {0x3030, 0x3030},   {0x303D, 0x3040},    {0xD800, 0xF8FF},
    {0xFE10, 0xFE1F}, {0xFE30, 0xFE32},   {0xFE35, 0xFE4C},   {0xFE50, 0xFE6F},    {0xFEFF, 0xFEFF},
    {0xFF01, 0xFF0F}, {0xFF1A, 0xFF20},   {0xFF3B, 0xFF3E},   {0xFF40, 0xFF40},    {0xFF5B, 0xFF65},
    {0xFFE0, 0xFFFF}, {0x1F000, 0x1FAFF}, {0xE0000, 0xE00FF}, {0xF0000, 0x10FFFF},
};

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

int LengthByLead(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

}  // namespace

int32_t Utf8CodePoint(std::string_view text, size_t offset) {
  const unsigned char lead = text[offset];
  const int length = LengthByLead(lead);
  if (length == 0 || offset + length > text.size()) return -1;
  if (length == 1) return lead;
  int32_t code_point = lead & (0xFF >> (length + 1));
  for (int i = 1; i < length; ++i) {
    if (!IsContinuation(text[offset + i])) return -1;
    code_point = (code_point << 6) | (text[offset + i] & 0x3F);
  }
  constexpr int32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < kSmallest[length] || code_point > 0x10FFFF || is_surrogate) return -1;
  return code_point;
}

int Utf8Length(std::string_view text, size_t offset) {
  return Utf8CodePoint(text, offset) < 0 ? 1
                                         : LengthByLead(static_cast<unsigned char>(text[offset]));
}

size_t FirstInvalidUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    if (Utf8CodePoint(text, i) < 0) return i;
    i += Utf8Length(text, i);
  }
  return std::string_view::npos;
}

void AppendUtf8(int32_t code_point, std::string* out) {
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
    return;
  }
  const int length = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
  constexpr int kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};
  out->push_back(static_cast<char>(kLead[length] | (code_point >> (6 * (length - 1)))));
  for (int i = length - 2; i >= 0; --i) {
    out->push_back(static_cast<char>(0x80 | ((code_point >> (6 * i)) & 0x3F)));
  }
}

bool IsNameCodePoint(int32_t code_point) {
  const auto range =
      std::upper_bound(std::begin(kNotInNames), std::end(kNotInNames), code_point,
                       [](int32_t value, const Range& r) { return value < r.first; });
  return range == std::begin(kNotInNames) || code_point > std::prev(range)->last;
}

}  // namespace phobos::compiler
