// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/text.h"

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>

#include "client/stub/wire/words.h"

namespace phobos {
namespace {

// Variants of one reason that a line names.
constexpr int kShownVariants = 3;

std::string ValueText(const Constant& constant) {
  if (const int64_t* whole = std::get_if<int64_t>(&constant.value)) return std::to_string(*whole);
  if (const double* real = std::get_if<double>(&constant.value)) return FloatText(*real);
  if (const bool* truth = std::get_if<bool>(&constant.value)) return *truth ? "True" : "False";
  if (const std::string* text = std::get_if<std::string>(&constant.value)) {
    return "\"" + *text + "\"";
  }
  return "?";
}

// Bytes that follow the first one of a UTF-8 character, and the least code point that needs them;
// -1 for a byte that begins none.
int Following(uint8_t first, uint32_t& bits, uint32_t& least) {
  if (first < 0x80) {
    bits = first, least = 0;
    return 0;
  }
  if (first >> 5 == 0x6) {
    bits = first & 0x1f, least = 0x80;
    return 1;
  }
  if (first >> 4 == 0xe) {
    bits = first & 0x0f, least = 0x800;
    return 2;
  }
  if (first >> 3 == 0x1e) {
    bits = first & 0x07, least = 0x10000;
    return 3;
  }
  return -1;
}

// Bytes of the character that a text begins with; 0: it begins with none.
size_t FirstCharacter(std::string_view text) {
  uint32_t bits = 0, least = 0;
  const int following = Following(static_cast<uint8_t>(text[0]), bits, least);
  if (following < 0 || text.size() <= static_cast<size_t>(following)) return 0;
  const auto end = static_cast<size_t>(following) + 1;
  for (size_t i = 1; i < end; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte >> 6 != 2) return 0;
    bits = bits << 6 | (byte & 0x3f);
  }
  const bool is_surrogate = bits >= 0xd800 && bits <= 0xdfff;
  return bits < least || bits > 0x10ffff || is_surrogate ? 0 : end;
}

}  // namespace

std::string SettingsText(const std::vector<Constant>& settings) {
  if (settings.empty()) return "no constants";
  std::string text;
  for (const Constant& constant : settings) {
    text += (text.empty() ? "" : ", ") + constant.name + "=" + ValueText(constant);
  }
  return text;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Not std::to_chars: its tables are a tenth of libphobos.so.
  char digits[64];
  for (int precision = 15; precision <= 17; ++precision) {
    snprintf(digits, sizeof(digits), "%.*g", precision, value);
    if (strtod(digits, nullptr) == value) break;
  }
  std::string text = digits;
  // The host program's locale may write a comma.
  const size_t point = text.find_first_not_of("0123456789e+-");
  if (point != std::string::npos)
    text.replace(point, text.find_first_of("0123456789", point) - point, ".");
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::vector<std::string> LeftOutLines(const Result& result) {
  struct LeftOut {
    int count = 0;
    std::string settings;  // of the first few
  };
  std::map<std::string, LeftOut> by_reason;
  for (const VariantResult& variant : result.variants) {
    if (variant.status == VariantStatus::kTimed || variant.status == VariantStatus::kExcluded) {
      continue;
    }
    LeftOut& left_out = by_reason[stub::Word(variant.status) + ": " +
                                  variant.reason.substr(0, variant.reason.find('\n'))];
    if (++left_out.count <= kShownVariants) {
      left_out.settings += (left_out.settings.empty() ? "" : "; ") + SettingsText(variant.settings);
    }
  }
  std::vector<std::string> lines;
  for (const auto& [reason, left_out] : by_reason) {
    std::string settings = left_out.settings;
    if (left_out.count > kShownVariants) {
      settings += " and " + std::to_string(left_out.count - kShownVariants) + " more";
    }
    lines.push_back("left out " + settings + ": " + reason);
  }
  return lines;
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = FirstCharacter(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string Utf8Of(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string whole;
  while (!text.empty()) {
    const size_t bytes = FirstCharacter(text);
    if (bytes == 0) {
      const auto byte = static_cast<uint8_t>(text[0]);
      whole += "\\x";
      whole += kHex[byte >> 4];
      whole += kHex[byte & 15];
    } else {
      whole += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<size_t>(bytes, 1));
  }
  return whole;
}

}  // namespace phobos
