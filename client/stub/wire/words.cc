// SPDX-License-Identifier: Apache-2.0
#include "client/stub/wire/words.h"

#include <cstddef>
#include <iterator>

namespace phobos::stub {
namespace {

// Each list is in order of the numbers; 0 is _UNSPECIFIED.
constexpr const char* kDTypes[] = {"unspecified", "f16", "bf16", "f32", "f64", "i8",  "i16",
                                   "i32",         "i64", "u8",   "u16", "u32", "u64", "bool"};
constexpr const char* kRaceVerdicts[] = {"unspecified", "race_free", "race", "unproven"};
constexpr const char* kTieBreaks[] = {"unspecified", "fastest", "first_within_noise"};
constexpr const char* kVariantStatuses[] = {
    "unspecified",       "timed",       "excluded",       "compile_error", "race",
    "race_check_failed", "unsupported", "index_overflow", "grid_error",    "out_of_bounds",
    "wrong_result",      "crashed",     "timed_out",      "out_of_memory"};
constexpr const char* kErrorReasons[] = {
    "unspecified",   "bad_source", "unknown_kernel",   "bad_argument", "no_winner",     "no_device",
    "out_of_memory", "timeout",    "reference_failed", "cancelled",    "not_permitted", "draining",
    "limit",         "race",       "machine"};
constexpr const char* kPhases[] = {"unspecified", "queued",  "compile", "upload", "reference",
                                   "check",       "warm_up", "timing",  "store"};

template <size_t size, typename Enum>
std::string Find(const char* const (&words)[size], Enum value) {
  const auto number = static_cast<int32_t>(value);
  return number >= 0 && static_cast<size_t>(number) < size ? words[number] : std::to_string(number);
}

}  // namespace

std::string Word(DType value) { return Find(kDTypes, value); }
std::string Word(RaceVerdict value) { return Find(kRaceVerdicts, value); }
std::string Word(TieBreak value) { return Find(kTieBreaks, value); }
std::string Word(VariantStatus value) { return Find(kVariantStatuses, value); }
std::string Word(ErrorReason value) { return Find(kErrorReasons, value); }
std::string Word(Phase value) { return Find(kPhases, value); }

}  // namespace phobos::stub
