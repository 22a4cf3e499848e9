// SPDX-License-Identifier: Apache-2.0
//
// Changes a kernel's text piece by piece (words, numbers, signs, lines), so that much of what comes
// out is still a kernel: bytes changed at random seldom get past the parser. Pure, any thread.
#ifndef PHOBOS_TESTS_FUZZ_PIECE_MUTATOR_H_
#define PHOBOS_TESTS_FUZZ_PIECE_MUTATOR_H_

#include <string>

namespace phobos::compiler {

// `text` with one change, which `seed` chooses.
std::string MutatePieces(const std::string& text, unsigned seed);

}  // namespace phobos::compiler

#endif  // PHOBOS_TESTS_FUZZ_PIECE_MUTATOR_H_
