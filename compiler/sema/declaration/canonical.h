// SPDX-License-Identifier: Apache-2.0
//
// The text that a kernel is known by: what its meaning depends on, nothing else. Private to sema/.
// Pure.
#ifndef PHOBOS_COMPILER_SEMA_DECLARATION_CANONICAL_H_
#define PHOBOS_COMPILER_SEMA_DECLARATION_CANONICAL_H_

#include <string>

#include "compiler/sema/declaration/usage.h"
#include "compiler/sema/kernel.h"

namespace phobos::compiler::sema {

// Name, parameters, key, space, launch shape, promises, conditions, the values of the module
// constants that are used, the body, and the functions that are called. Not: formatting, comments,
// docstrings, how the file spells the language or a literal, what Python alone evaluates
// (reference, tolerances), the rest of the file. Equal texts mean equal kernels.
std::string CanonicalSource(const Kernel& kernel, const Usage& usage);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_DECLARATION_CANONICAL_H_
