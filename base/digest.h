// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4), the one digest of the project: of source texts, keys and artifacts. A
// digest names content; it is no signature and keeps no secret. Written here, on nothing but the
// standard library, because libphobos.so needs it and Debian's archives are not position
// independent. Pure functions, any thread.
#ifndef PHOBOS_BASE_DIGEST_H_
#define PHOBOS_BASE_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace phobos {

// The 32 bytes of SHA-256 over `bytes`.
std::array<uint8_t, 32> Sha256(std::string_view bytes);

// The same as 64 lower-case hexadecimal digits, the form in which digests are stored, sent and
// shown.
std::string Sha256Hex(std::string_view bytes);
inline constexpr size_t kSha256Digits = 64;

// Whether the text has that form.
bool IsSha256Hex(std::string_view text);

}  // namespace phobos

#endif  // PHOBOS_BASE_DIGEST_H_
