// SPDX-License-Identifier: Apache-2.0
//
// What this compiler is called where artifacts are shared: any change of its code changes it. Pure,
// any thread.
#ifndef PHOBOS_COMPILER_MAIN_FINGERPRINT_H_
#define PHOBOS_COMPILER_MAIN_FINGERPRINT_H_

#include <string>

namespace phobos::compiler {

// "phobos-compile 0.1.0 (llvm 19.1.7, host code 1, build 0123456789abcdef)". The build is the
// executable's ELF build id, which the linker computes from all that it linked; "build unknown"
// when it was linked without one.
std::string CompilerFingerprint();

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_MAIN_FINGERPRINT_H_
