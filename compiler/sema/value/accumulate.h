// SPDX-License-Identifier: Apache-2.0
//
// Lets a product of tiles start from what it is added to, so that `acc += ph.dot(a, b)` keeps its
// sums where they are. Part of what the language says a sum with ph.dot means. Pure, any thread.
#ifndef PHOBOS_COMPILER_SEMA_VALUE_ACCUMULATE_H_
#define PHOBOS_COMPILER_SEMA_VALUE_ACCUMULATE_H_

#include "compiler/ir/ir.h"

namespace phobos::compiler::sema {

// Turns each kAdd of x and a kDot of the same Block that starts from 0, and that nothing else
// uses, into that kDot starting from x. Of two such products the one made first is x.
void AccumulateDots(ir::Function* function);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_VALUE_ACCUMULATE_H_
