// SPDX-License-Identifier: Apache-2.0
//
// Where the threads of a block have to wait for each other. The language's statements take effect
// in order; threads run on their own. Where a statement may touch what another thread touched since
// they last met, and one of the two writes, they meet before it. Pure, any thread.
#ifndef PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_ORDER_H_
#define PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_ORDER_H_

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::nvptx {

// One place that a statement touches.
struct Touch {
  enum class By {
    kOwner,  // element i by the thread that has element i of tiles of `sides`
    kAny,    // any element by any thread
    kEvery,  // one element, by every thread
    kFirst,  // one element, by thread 0
  };
  bool is_write = false;
  By by = By::kAny;
  std::vector<int64_t> sides;  // kOwner: ir::LongSides of the tile
  // A tensor's elements: the access. Null: bytes [first, end) of shared memory.
  const ir::Op* access = nullptr;
  int64_t first = 0;
  int64_t end = 0;
};

// What a statement touches, in its order.
struct Touches {
  std::vector<Touch> before;  // until the threads meet inside it, if they do
  bool meets = false;
  std::vector<Touch> behind;  // from there on
};

struct Order {
  std::set<const ir::Op*> waits;  // the threads meet before these
  // Statements that another one relies on: whichever way they are done, element i is touched by the
  // thread that the layout says.
  std::set<const ir::Op*> keeps_layout;
};

// `touches` gives what a statement (a kStore, atomic, kStage, kDeclareVar, kWriteVar, scalar kLoad
// or scalar reduction) touches.
Order OrderOf(const ir::Function& function, const std::function<Touches(const ir::Op&)>& touches);

}  // namespace phobos::compiler::nvptx

#endif  // PHOBOS_COMPILER_CODEGEN_NVPTX_PLAN_ORDER_H_
