// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/piece_mutator.h"

#include <cctype>
#include <cstddef>
#include <iterator>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace phobos::compiler {
namespace {

constexpr const char* kNumbers[] = {"0",
                                    "1",
                                    "2",
                                    "3",
                                    "7",
                                    "16",
                                    "17",
                                    "32",
                                    "33",
                                    "64",
                                    "100",
                                    "128",
                                    "1000",
                                    "1024",
                                    "4096",
                                    "65536",
                                    "1048576",
                                    "2147483647",
                                    "2147483648",
                                    "0.5",
                                    "1e30",
                                    "-1",
                                    "9223372036854775807"};

constexpr const char* kWords[] = {"ph.f16",         "ph.bf16",       "ph.f32",
                                  "ph.f64",         "ph.i8",         "ph.i16",
                                  "ph.i32",         "ph.i64",        "ph.u8",
                                  "ph.u16",         "ph.u32",        "ph.u64",
                                  "ph.bool",        "ph.exp",        "ph.exp2",
                                  "ph.expm1",       "ph.log",        "ph.log2",
                                  "ph.log1p",       "ph.pow",        "ph.sqrt",
                                  "ph.rsqrt",       "ph.sin",        "ph.cos",
                                  "ph.tanh",        "ph.erf",        "ph.sigmoid",
                                  "ph.abs",         "ph.floor",      "ph.ceil",
                                  "ph.round",       "ph.minimum",    "ph.maximum",
                                  "ph.clip",        "ph.fma",        "ph.where",
                                  "ph.isnan",       "ph.isinf",      "ph.mulhi",
                                  "ph.iota",        "ph.zeros",      "ph.full",
                                  "ph.reshape",     "ph.transpose",  "ph.join",
                                  "ph.interleave",  "ph.sum",        "ph.max",
                                  "ph.min",         "ph.prod",       "ph.mean",
                                  "ph.argmax",      "ph.argmin",     "ph.any",
                                  "ph.all",         "ph.rowsum",     "ph.rowmax",
                                  "ph.cumsum",      "ph.dot",        "ph.dot_t",
                                  "ph.cast",        "ph.bitcast",    "ph.load",
                                  "ph.store",       "ph.atomic_add", "ph.atomic_max",
                                  "ph.atomic_min",  "ph.atomic_and", "ph.atomic_or",
                                  "ph.atomic_xor",  "ph.atomic_cas", "ph.print",
                                  "ph.assume",      "ph.assert_",    "ph.finfo",
                                  "ph.iinfo",       "ph.extent",     "ph.cdiv",
                                  "ph.random_u32",  "ph.range",      "ph.inf",
                                  "ph.nan",         "ph.let",        "ph.var",
                                  "axis",           "keepdims",      "mask",
                                  "fill",           "None",          "True",
                                  "ph.ctx.block.y", "ph.ctx.grid.x", "N"};

bool IsOfWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
}

enum class Kind { kWord, kNumber, kSign };

Kind KindOf(const std::string& piece) {
  if (!IsOfWord(piece[0])) return Kind::kSign;
  return std::isdigit(static_cast<unsigned char>(piece[0])) ? Kind::kNumber : Kind::kWord;
}

std::vector<std::string> PiecesOf(const std::string& text) {
  std::vector<std::string> pieces;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool goes_on = i > 0 && IsOfWord(text[i]) && IsOfWord(text[i - 1]);
    if (!goes_on) pieces.emplace_back();
    pieces.back() += text[i];
  }
  return pieces;
}

size_t Below(size_t count, std::minstd_rand& random) { return random() % count; }

// One piece becomes another one of its kind, from the text or from the lists above.
std::string ChangePiece(const std::string& text, std::minstd_rand& random) {
  std::vector<std::string> pieces = PiecesOf(text);
  std::string& piece = pieces[Below(pieces.size(), random)];
  const Kind kind = KindOf(piece);
  if (kind == Kind::kNumber && random() % 2 == 0) {
    piece = kNumbers[Below(std::size(kNumbers), random)];
  } else if (kind == Kind::kWord && random() % 2 == 0) {
    piece = kWords[Below(std::size(kWords), random)];
  } else {
    std::vector<std::string> others;
    for (const std::string& other : pieces) {
      if (KindOf(other) == kind) others.push_back(other);
    }
    piece = others[Below(others.size(), random)];
  }
  return absl::StrJoin(pieces, "");
}

// A line goes, comes twice or changes places.
std::string ChangeLine(const std::string& text, std::minstd_rand& random) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  const size_t line = Below(lines.size(), random);
  const size_t other = Below(lines.size(), random);
  switch (random() % 3) {
    case 0:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(line));
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(other), std::string(lines[line]));
      break;
    default:
      std::swap(lines[line], lines[other]);
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace

std::string MutatePieces(const std::string& text, unsigned seed) {
  if (text.empty()) return text;
  std::minstd_rand random(seed);
  random.discard(4);  // near seeds begin with near numbers
  return random() % 4 == 0 ? ChangeLine(text, random) : ChangePiece(text, random);
}

}  // namespace phobos::compiler
