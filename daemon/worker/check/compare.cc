// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/compare.h"

#include <string.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/parallel.h"
#include "base/root_mean_square.h"

namespace phobos::worker {
namespace {

using compiler::v1::DType;

// Elements compared byte by byte before any is decoded: large enough for memcmp, small enough for
// the first-level cache.
constexpr int64_t kBlock = 2048;
// What one thread takes at least.
constexpr int64_t kGrainBytes = int64_t{4} << 20;

// The element types. Stored is what lies in memory; Value what is compared and printed.
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  static Value Decode(Stored stored) { return stored; }
};

struct Bfloat16 {
  using Stored = uint16_t;
  using Value = float;
  static Value Decode(Stored stored) { return std::bit_cast<float>(uint32_t{stored} << 16); }
};

struct Float16 {
  using Stored = uint16_t;
  using Value = float;
  // Without branches, so that loops over it become vector code.
  static Value Decode(Stored stored) {
    const uint32_t sign = uint32_t{stored} >> 15 << 31;
    const uint32_t exponent = (uint32_t{stored} >> 10) & 31;
    const uint32_t fraction = uint32_t{stored} & 1023;
    const float subnormal = static_cast<float>(static_cast<int32_t>(fraction)) * 0x1p-24f;
    const uint32_t normal = (exponent + 112) << 23 | fraction << 13;
    const uint32_t special = 0x7f800000 | fraction << 13;
    const uint32_t magnitude = exponent == 0    ? std::bit_cast<uint32_t>(subnormal)
                               : exponent == 31 ? special
                                                : normal;
    return std::bit_cast<float>(sign | magnitude);
  }
};

// Calls use(Element()) for the type; gives `otherwise` for an unknown one.
template <typename Result, typename Use>
Result WithElement(DType dtype, Result otherwise, Use use) {
  switch (dtype) {
    case DType::DTYPE_F16:
      return use(Float16());
    case DType::DTYPE_BF16:
      return use(Bfloat16());
    case DType::DTYPE_F32:
      return use(Plain<float>());
    case DType::DTYPE_F64:
      return use(Plain<double>());
    case DType::DTYPE_I8:
      return use(Plain<int8_t>());
    case DType::DTYPE_I16:
      return use(Plain<int16_t>());
    case DType::DTYPE_I32:
      return use(Plain<int32_t>());
    case DType::DTYPE_I64:
      return use(Plain<int64_t>());
    case DType::DTYPE_U8:
    case DType::DTYPE_BOOL:
      return use(Plain<uint8_t>());
    case DType::DTYPE_U16:
      return use(Plain<uint16_t>());
    case DType::DTYPE_U32:
      return use(Plain<uint32_t>());
    case DType::DTYPE_U64:
      return use(Plain<uint64_t>());
    default:
      return otherwise;
  }
}

template <typename Element>
constexpr bool IsFloat() {
  return std::is_floating_point_v<typename Element::Value>;
}

// One element; memory need not be aligned to its type.
template <typename Element>
typename Element::Value At(const std::byte* values, int64_t index) {
  typename Element::Stored stored;
  memcpy(&stored, values + index * int64_t{sizeof(stored)}, sizeof(stored));
  return Element::Decode(stored);
}

struct Limit {
  Tolerance tolerance;
  double rms = 0;
};

// 1 when they match, else 0.
template <typename Element>
int Matches(typename Element::Value got, typename Element::Value want, const Limit& limit) {
  if constexpr (IsFloat<Element>()) {
    const double g = got, w = want;
    const double size = std::abs(w);
    const double allowed = limit.tolerance.atol + limit.tolerance.rtol * std::max(size, limit.rms);
    // Ints joined by bits instead of bools joined by branches: the loop over this becomes vector
    // code.
    const int close =
        int{size <= std::numeric_limits<double>::max()} & int{std::abs(g - w) <= allowed};
    return int{g == w} | close | (int{g != g} & int{w != w});
  } else {
    return got == want ? 1 : 0;
  }
}

template <typename Element>
int64_t CountBad(const std::byte* got, const std::byte* want, int64_t count, const Limit& limit) {
  int64_t bad = 0;
  for (int64_t i = 0; i < count; ++i) {
    bad += 1 - Matches<Element>(At<Element>(got, i), At<Element>(want, i), limit);
  }
  return bad;
}

double ErrorOf(double got, double want) {
  const double error = std::abs(got - want);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// What one thread found in its range.
struct Found {
  int64_t first = -1;
  int64_t differing = 0;
  double largest_error = 0;
};

template <typename Element>
void Inspect(const std::byte* got, const std::byte* want, int64_t begin, int64_t end,
             const Limit& limit, Found& found) {
  for (int64_t i = begin; i < end; ++i) {
    const auto g = At<Element>(got, i), w = At<Element>(want, i);
    if (Matches<Element>(g, w, limit) == 1) continue;
    if (found.first < 0) found.first = i;
    ++found.differing;
    found.largest_error =
        std::max(found.largest_error, ErrorOf(static_cast<double>(g), static_cast<double>(w)));
  }
}

template <typename Element>
Found CompareRange(const std::byte* got, const std::byte* want, int64_t begin, int64_t end,
                   const Limit& limit) {
  constexpr int64_t kBytes = sizeof(typename Element::Stored);
  Found found;
  for (int64_t block = begin; block < end; block += kBlock) {
    const int64_t count = std::min(kBlock, end - block);
    const std::byte* g = got + block * kBytes;
    const std::byte* w = want + block * kBytes;
    if (memcmp(g, w, static_cast<size_t>(count * kBytes)) == 0) continue;
    if (CountBad<Element>(g, w, count, limit) == 0) continue;
    Inspect<Element>(got, want, block, block + count, limit, found);
  }
  return found;
}

template <typename Value>
std::string Text(Value value) {
  char text[64];
  if constexpr (std::is_floating_point_v<Value>) {
    return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
  } else {
    return absl::StrCat(value);
  }
}

template <typename Element>
std::optional<Mismatch> CompareAs(absl::Span<const std::byte> got, absl::Span<const std::byte> want,
                                  const Limit& limit) {
  constexpr int64_t kBytes = sizeof(typename Element::Stored);
  const int64_t elements = static_cast<int64_t>(got.size()) / kBytes;
  std::mutex mutex;
  Found all;
  ForRanges(elements, kGrainBytes / kBytes, [&](int64_t begin, int64_t end) {
    const Found part = CompareRange<Element>(got.data(), want.data(), begin, end, limit);
    if (part.differing == 0) return;
    const std::lock_guard<std::mutex> lock(mutex);
    if (all.first < 0 || part.first < all.first) all.first = part.first;
    all.differing += part.differing;
    all.largest_error = std::max(all.largest_error, part.largest_error);
  });
  if (all.differing == 0) return std::nullopt;
  const auto g = At<Element>(got.data(), all.first), w = At<Element>(want.data(), all.first);
  return Mismatch{.first = all.first,
                  .got = static_cast<double>(g),
                  .want = static_cast<double>(w),
                  .got_text = Text(g),
                  .want_text = Text(w),
                  .largest_error = all.largest_error,
                  .differing = all.differing,
                  .elements = elements};
}

}  // namespace

Tolerance DefaultTolerance(DType dtype) {
  switch (dtype) {
    case DType::DTYPE_F64:
      return {1e-7, 1e-7};
    case DType::DTYPE_F32:
      return {1.3e-6, 1e-5};
    case DType::DTYPE_F16:
      return {4e-3, 1e-5};
    case DType::DTYPE_BF16:
      return {1.6e-2, 1e-5};
    default:
      return {0, 0};
  }
}

double RootMeanSquare(DType dtype, absl::Span<const std::byte> values) {
  return WithElement(dtype, 0.0, [&](auto element) {
    using Element = decltype(element);
    if constexpr (!IsFloat<Element>()) {
      return 0.0;
    } else {
      const auto count = static_cast<int64_t>(values.size() / sizeof(typename Element::Stored));
      return phobos::RootMeanSquare(
          count, [&](int64_t at) { return static_cast<double>(At<Element>(values.data(), at)); });
    }
  });
}

std::optional<Mismatch> Compare(DType dtype, absl::Span<const std::byte> got,
                                absl::Span<const std::byte> want, Tolerance tolerance, double rms) {
  return WithElement(dtype, std::optional<Mismatch>(), [&](auto element) {
    return CompareAs<decltype(element)>(got, want, Limit{tolerance, rms});
  });
}

std::string IndexText(int64_t index, absl::Span<const int64_t> shape) {
  std::vector<int64_t> indices(shape.size());
  int64_t rest = index;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] <= 0) return absl::StrCat("[", index, "]");
    indices[i] = rest % shape[i];
    rest /= shape[i];
  }
  if (rest != 0 || shape.empty()) return absl::StrCat("[", index, "]");
  return absl::StrCat("[", absl::StrJoin(indices, ", "), "]");
}

void Append(std::optional<Mismatch>& all, int64_t begin, std::optional<Mismatch> piece) {
  if (!piece.has_value()) return;
  if (!all.has_value()) {
    all = std::move(piece);
    all->first += begin;
    return;
  }
  all->differing += piece->differing;
  all->largest_error = std::max(all->largest_error, piece->largest_error);
}

std::string Describe(const Mismatch& mismatch, const std::string& tensor,
                     absl::Span<const int64_t> shape, DType dtype, Tolerance tolerance) {
  std::string text = absl::StrCat(
      tensor, IndexText(mismatch.first, shape), " is ", mismatch.got_text, ", the reference says ",
      mismatch.want_text, "; ", mismatch.differing, " of ", mismatch.elements,
      " elements differ, the largest error is ", mismatch.largest_error);
  const bool is_float =
      WithElement(dtype, false, [](auto element) { return IsFloat<decltype(element)>(); });
  if (is_float) {
    absl::StrAppend(&text, " (allowed: rtol ", tolerance.rtol, ", atol ", tolerance.atol, ")");
  }
  return text;
}

std::optional<int64_t> FirstDifference(absl::Span<const std::byte> a,
                                       absl::Span<const std::byte> b) {
  const auto found = CompareAs<Plain<uint8_t>>(a, b, Limit());
  if (!found.has_value()) return std::nullopt;
  return found->first;
}

}  // namespace phobos::worker
