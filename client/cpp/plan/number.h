// SPDX-License-Identifier: Apache-2.0
//
// Elements of the language's types as numbers, for what the client itself must look at: scalars in
// conditions, and answers that a kernel's output already holds. Pure, any thread.
#ifndef PHOBOS_CLIENT_CPP_PLAN_NUMBER_H_
#define PHOBOS_CLIENT_CPP_PLAN_NUMBER_H_

#include <cstdint>

#include "client/launch/condition.h"
#include "client/stub/wire/types.h"

namespace phobos {

// IEEE half and bfloat16, exactly.
double HalfToDouble(uint16_t bits);
double BFloatToDouble(uint16_t bits);

// A scalar argument as a number of a condition: ints and bools as int64, floats as double. `bits`
// are the value's, in the low bytes.
launch::Number ScalarNumber(DType dtype, uint64_t bits);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_PLAN_NUMBER_H_
