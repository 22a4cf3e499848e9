// SPDX-License-Identifier: Apache-2.0
//
// absl::StrCat and absl::StrAppend that also take std::string_view: Debian's Abseil has a
// string_view of its own, and converts none of ours. Pure functions, any thread.
#ifndef PHOBOS_BASE_CONCAT_H_
#define PHOBOS_BASE_CONCAT_H_

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace phobos {

// A std::string_view as Abseil's; anything else as it is.
inline absl::string_view ForAbseil(std::string_view text) { return {text.data(), text.size()}; }
template <typename T>
const T& ForAbseil(const T& value) {
  return value;
}
inline const char* ForAbseil(const char* text) { return text; }

// All values one after the other, numbers in decimal: what absl::StrCat makes of them.
template <typename... T>
std::string Concat(const T&... values) {
  return absl::StrCat(ForAbseil(values)...);
}

// Adds them at the end of `out`, which must not be one of them.
template <typename... T>
void Append(std::string* out, const T&... values) {
  absl::StrAppend(out, ForAbseil(values)...);
}

}  // namespace phobos

#endif  // PHOBOS_BASE_CONCAT_H_
