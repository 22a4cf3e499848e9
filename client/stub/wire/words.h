// SPDX-License-Identifier: Apache-2.0
//
// Enum values as the words that people read: the rest of the name in proto/, lower-case. A value
// that is not known here is its number. Pure, any thread.
#ifndef PHOBOS_CLIENT_STUB_WIRE_WORDS_H_
#define PHOBOS_CLIENT_STUB_WIRE_WORDS_H_

#include <string>

#include "client/stub/wire/types.h"
#include "client/stub/wire/verbs.h"

namespace phobos::stub {

std::string Word(DType value);          // "f32"
std::string Word(RaceVerdict value);    // "race_free"
std::string Word(TieBreak value);       // "first_within_noise"
std::string Word(VariantStatus value);  // "wrong_result"
std::string Word(ErrorReason value);    // "no_winner"
std::string Word(Phase value);          // "warm_up"

}  // namespace phobos::stub

#endif  // PHOBOS_CLIENT_STUB_WIRE_WORDS_H_
