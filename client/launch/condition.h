// SPDX-License-Identifier: Apache-2.0
//
// Evaluates the conditions of a kernel (@ph.constraint, ph.assume) for one launch: the stack
// programs of ConditionOp in proto/phobos/compiler/v1/manifest.proto. Pure, any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_CONDITION_H_
#define PHOBOS_CLIENT_LAUNCH_CONDITION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/launch/status.h"

namespace phobos::launch {

using Number = std::variant<int64_t, double>;

struct ConditionOp {
  int code = 0;  // ConditionOp.Code
  Number number = int64_t{0};
  std::string name;
};

// Whether the condition holds. `lookup` gives a name's value, or fails. InvalidArgument: a
// malformed program or an unknown name or code.
StatusOr<bool> Holds(const std::vector<ConditionOp>& program,
                     const std::function<StatusOr<Number>(std::string_view name)>& lookup);

}  // namespace phobos::launch

#endif  // PHOBOS_CLIENT_LAUNCH_CONDITION_H_
