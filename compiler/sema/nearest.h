// SPDX-License-Identifier: Apache-2.0
//
// The name that was probably meant. Pure, any thread.
#ifndef PHOBOS_COMPILER_SEMA_NEAREST_H_
#define PHOBOS_COMPILER_SEMA_NEAREST_H_

#include <string>
#include <string_view>
#include <vector>

namespace phobos::compiler::sema {

// The candidate that is closest to `name` by single-letter edits (a swap of neighbours is one), the
// first among equals; empty when none is close enough to be meant. Case counts as half an edit.
std::string_view Nearest(std::string_view name, const std::vector<std::string_view>& candidates);

// "did you mean 'exp'?" or, when nothing is near, `otherwise`.
std::string DidYouMean(std::string_view name, const std::vector<std::string_view>& candidates,
                       std::string_view otherwise);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_NEAREST_H_
