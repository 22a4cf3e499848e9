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
  // ConditionOp.Code in manifest.proto. On the wire: never renumbered.
  enum Code {
    kPushInt = 1,
    kPushFloat = 2,
    kPushName = 3,
    kAdd = 4,
    kSub = 5,
    kMul = 6,
    kDiv = 7,
    kFloorDiv = 8,
    kMod = 9,
    kNeg = 10,
    kEq = 11,
    kNe = 12,
    kLt = 13,
    kLe = 14,
    kGt = 15,
    kGe = 16,
    kAnd = 17,
    kOr = 18,
    kNot = 19,
    kMin = 20,
    kMax = 21,
    kCdiv = 22,
    kSelect = 23,
  };

  int code = 0;  // a Code, or a number that this version does not know
  Number number = int64_t{0};
  std::string name;
};

// Whether the condition holds. `lookup` gives a name's value, or fails. InvalidArgument: a
// malformed program or an unknown name or code.
StatusOr<bool> Holds(const std::vector<ConditionOp>& program,
                     const std::function<StatusOr<Number>(std::string_view name)>& lookup);

}  // namespace phobos::launch

#endif  // PHOBOS_CLIENT_LAUNCH_CONDITION_H_
