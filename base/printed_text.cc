// SPDX-License-Identifier: Apache-2.0
#include "base/printed_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

namespace phobos {
namespace {

constexpr int64_t kMostShownWhole = 1000;  // elements of an array
constexpr int64_t kEdge = 3;               // elements shown at each end of a longer one's side
constexpr size_t kLineWidth = 75;          // of an array's lines, about

double Read(const char* text, double) { return std::strtod(text, nullptr); }
float Read(const char* text, float) { return std::strtof(text, nullptr); }

// As Python writes a float, with the fewest digits that tell it from others of its type. By libc:
// the tables of std::to_chars would be a fifth of libphobos.so.
template <typename Float>
std::string FloatText(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  constexpr int kMostDigits = std::numeric_limits<Float>::max_digits10;
  char text[64];
  int digits = 0;
  do {
    std::snprintf(text, sizeof text, "%.*e", digits++, static_cast<double>(value));
  } while (digits < kMostDigits && Read(text, value) != value);
  const double size = std::fabs(static_cast<double>(value));
  if (size == 0 || (size >= 1e-4 && size < 1e16)) {
    const int exponent = std::atoi(std::strchr(text, 'e') + 1);
    std::snprintf(text, sizeof text, "%.*f", std::max(digits - 1 - exponent, 0),
                  static_cast<double>(value));
  }
  std::string result = text;
  std::replace(result.begin(), result.end(), ',', '.');  // of a locale
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

// The number that the bits of an f16 or bf16 mean.
double HalfValue(uint16_t bits, bool is_bf16) {
  const int fraction_bits = is_bf16 ? 7 : 10;
  const int bias = is_bf16 ? 127 : 15;
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  double size = 0;
  if (exponent == 2 * bias + 1) {
    size = fraction != 0 ? NAN : INFINITY;
  } else if (exponent == 0) {
    size = std::ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    size = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
  return (bits & 0x8000) != 0 ? -size : size;
}

// As few digits as are nearer to this number than to its neighbours.
std::string HalfText(uint16_t bits, bool is_bf16) {
  const double value = HalfValue(bits, is_bf16);
  if (!std::isfinite(value) || value == 0) return FloatText(value);
  const double below = HalfValue(static_cast<uint16_t>(bits - 1), is_bf16);
  double above = HalfValue(static_cast<uint16_t>(bits + 1), is_bf16);
  if (std::isinf(above)) above = value + (value - below);
  double read = value;
  for (int digits = 1; digits <= 6; ++digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    read = std::strtod(text, nullptr);
    const double error = std::fabs(read - value);
    if (error < std::fabs(read - below) && error < std::fabs(read - above)) break;
  }
  return FloatText(read);
}

template <typename Number>
Number At(const std::byte* bytes) {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

struct ElementType {
  std::string_view name;
  size_t bytes;
  std::string (*text)(const std::byte*);
};

template <typename Integer>
std::string IntegerText(const std::byte* bytes) {
  return std::to_string(At<Integer>(bytes));
}

constexpr ElementType kElementTypes[] = {
    {"f16", 2, [](const std::byte* p) { return HalfText(At<uint16_t>(p), false); }},
    {"bf16", 2, [](const std::byte* p) { return HalfText(At<uint16_t>(p), true); }},
    {"f32", 4, [](const std::byte* p) { return FloatText(At<float>(p)); }},
    {"f64", 8, [](const std::byte* p) { return FloatText(At<double>(p)); }},
    {"i8", 1, IntegerText<int8_t>},
    {"i16", 2, IntegerText<int16_t>},
    {"i32", 4, IntegerText<int32_t>},
    {"i64", 8, IntegerText<int64_t>},
    {"u8", 1, IntegerText<uint8_t>},
    {"u16", 2, IntegerText<uint16_t>},
    {"u32", 4, IntegerText<uint32_t>},
    {"u64", 8, IntegerText<uint64_t>},
    {"bool", 1,
     [](const std::byte* p) { return std::string(At<uint8_t>(p) != 0 ? "True" : "False"); }},
};

// One array, while it is written behind what `out` holds already.
class Array {
 public:
  Array(const ElementType& type, std::vector<int64_t> sides, const std::byte* elements)
      : type_(type), sides_(std::move(sides)), elements_(elements) {
    int64_t count = 1;
    for (int64_t side : sides_) count *= side;
    is_whole_ = count <= kMostShownWhole;
  }

  void AppendTo(std::string* out) {
    Measure(0, 0);
    const size_t line = out->rfind('\n');
    indent_ = line == std::string::npos ? out->size() : out->size() - line - 1;
    Write(0, 0, out);
  }

 private:
  // The places along a side that are shown; -1: "..." instead of some.
  std::vector<int64_t> Shown(int64_t length) const {
    const bool is_short = is_whole_ || length <= 2 * kEdge;
    std::vector<int64_t> shown;
    for (int64_t i = 0; i < length; ++i) {
      if (is_short || i < kEdge || i >= length - kEdge) {
        shown.push_back(i);
      } else {
        shown.push_back(-1);
        i = length - kEdge - 1;
      }
    }
    return shown;
  }

  std::string TextOf(int64_t element) const {
    return type_.text(elements_ + static_cast<size_t>(element) * type_.bytes);
  }

  // Finds the width of the widest element below `first`, which counts elements of `side`.
  void Measure(size_t side, int64_t first) {
    for (int64_t i : Shown(sides_[side])) {
      if (i < 0) continue;
      if (side + 1 < sides_.size()) {
        Measure(side + 1, (first + i) * sides_[side + 1]);
      } else {
        width_ = std::max(width_, TextOf(first + i).size());
      }
    }
  }

  void Write(size_t side, int64_t first, std::string* out) const {
    const size_t rank = sides_.size();
    const bool is_last = side + 1 == rank;
    *out += '[';
    size_t column = side + 1;
    bool is_first = true;
    for (int64_t i : Shown(sides_[side])) {
      std::string text = i < 0 ? "..." : is_last ? TextOf(first + i) : "";
      if (is_last && i >= 0) text.insert(0, width_ - text.size(), ' ');
      const bool is_full = column + 1 + text.size() > kLineWidth;
      if (!is_first && (!is_last || is_full)) {
        out->append(is_last ? 1 : rank - 1 - side, '\n').append(indent_ + side + 1, ' ');
        column = side + 1;
      } else if (!is_first) {
        *out += ' ';
        ++column;
      }
      *out += text;
      column += text.size();
      if (!is_last && i >= 0) Write(side + 1, (first + i) * sides_[side + 1], out);
      is_first = false;
    }
    *out += ']';
  }

  const ElementType& type_;
  const std::vector<int64_t> sides_;
  const std::byte* const elements_;
  bool is_whole_ = true;
  size_t width_ = 0;
  size_t indent_ = 0;
};

void AppendValue(std::string_view type, const void* value, std::string* out) {
  const std::string_view name = type.substr(0, type.find('['));
  const ElementType* element =
      std::find_if(std::begin(kElementTypes), std::end(kElementTypes),
                   [&](const ElementType& known) { return known.name == name; });
  std::vector<int64_t> sides;
  for (size_t at = name.size() + 1; at < type.size();) {
    int64_t side = 0;
    const char* end = std::from_chars(type.data() + at, type.data() + type.size(), side).ptr;
    sides.push_back(side);
    at = static_cast<size_t>(end - type.data()) + 2;  // ", " or "]"
  }
  const auto* elements = static_cast<const std::byte*>(value);
  if (sides.empty()) {
    *out += element->text(elements);
  } else {
    Array(*element, std::move(sides), elements).AppendTo(out);
  }
}

}  // namespace

std::string PrintedText(std::string_view format, const void* const* values) {
  std::string out;
  while (!format.empty()) {
    const size_t brace = std::min(format.find('{'), format.size());
    out += format.substr(0, brace);
    format.remove_prefix(brace);
    if (format.empty()) break;
    if (format.substr(0, 2) == "{{") {
      out += '{';
      format.remove_prefix(2);
      continue;
    }
    const size_t end = format.find('}');
    AppendValue(format.substr(1, end - 1), *values++, &out);
    format.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace phobos
