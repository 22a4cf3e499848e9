// SPDX-License-Identifier: Apache-2.0
//
// What the wire's fuzzer and its replay do with an input. Any thread.
#ifndef PHOBOS_TESTS_FUZZ_WIRE_INPUT_H_
#define PHOBOS_TESTS_FUZZ_WIRE_INPUT_H_

#include <string_view>

namespace phobos::testing {

// The first byte chooses who reads the rest: a message's decoder, the reader of a call's body, of
// its status, or the whole connection. Aborts where a promise does not hold: no crash, no hang, and
// what was decoded can be encoded and decoded again to the same bytes.
void TakeWireInput(std::string_view input);

}  // namespace phobos::testing

#endif  // PHOBOS_TESTS_FUZZ_WIRE_INPUT_H_
