// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/order.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/ir/equality.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

// A touch since the threads last met. A stale one was made in another turn of some loop, where its
// positions may have been others.
struct Pending {
  const Op* statement = nullptr;
  const Touch* touch = nullptr;
  bool is_stale = false;

  friend bool operator==(const Pending&, const Pending&) = default;
  friend bool operator<(const Pending& a, const Pending& b) {
    return std::tie(a.statement, a.touch, a.is_stale) < std::tie(b.statement, b.touch, b.is_stale);
  }
};

// What is pending at a place, along every way there.
struct State {
  bool is_reachable = false;
  std::set<Pending> pending;

  void Join(const State& other) {
    is_reachable |= other.is_reachable;
    pending.insert(other.pending.begin(), other.pending.end());
  }
  friend bool operator==(const State&, const State&) = default;
};

struct Loop {
  const Op* op = nullptr;
  std::set<ValueId> values;  // made inside
  std::set<int32_t> loops;   // loop ids, its own and those inside
  State breaks;
  State continues;
};

void CollectInside(const Op& op, Loop* loop) {
  if (op.opcode == Opcode::kFor) loop->loops.insert(op.index);
  if (op.result != ir::kNoValue) loop->values.insert(op.result);
  for (const ir::Block& region : op.regions) {
    for (const Op& inner : region) CollectInside(inner, loop);
  }
}

class Flow {
 public:
  Flow(const ir::Function& function, const std::function<Touches(const Op&)>& touches)
      : function_(function), touches_of_(touches), definitions_(ir::DefinitionsOf(function)) {}

  Order Run() {
    State start;
    start.is_reachable = true;
    RunBlock(function_.body, start);
    return std::move(order_);
  }

 private:
  State RunBlock(const ir::Block& block, State state);
  State RunFor(const Op& op, const State& before);
  State RunWhile(const Op& op, const State& before);
  void RunStatement(const Op& op, State* state);
  const Touches& TouchesOf(const Op& op);
  static bool Commute(const Touch& a, const Touch& b);
  static bool Meet(const Touch& earlier, const Touch& touch);
  bool AreOneThreads(const Pending& before, const Touch& touch) const;
  State Aged(const State& state, const Loop& loop) const;
  bool Varies(ValueId value, const Loop& loop) const;

  const ir::Function& function_;
  const std::function<Touches(const Op&)>& touches_of_;
  const std::vector<const Op*> definitions_;
  std::map<const Op*, Touches> touches_;
  std::vector<Loop*> loops_;  // innermost last
  Order order_;
};

const Touches& Flow::TouchesOf(const Op& op) {
  const auto [found, is_new] = touches_.try_emplace(&op);
  if (is_new) found->second = touches_of_(op);
  return found->second;
}

State Flow::RunBlock(const ir::Block& block, State state) {
  for (const Op& op : block) {
    if (!state.is_reachable) break;
    switch (op.opcode) {
      case Opcode::kFor:
        state = RunFor(op, state);
        break;
      case Opcode::kWhile:
        state = RunWhile(op, state);
        break;
      case Opcode::kIf: {
        State then = RunBlock(op.regions[0], state);
        then.Join(RunBlock(op.regions[1], state));
        state = std::move(then);
        break;
      }
      case Opcode::kBreak:
        loops_.back()->breaks.Join(state);
        return State();
      case Opcode::kContinue:
        loops_.back()->continues.Join(state);
        return State();
      case Opcode::kReturn:
        return State();
      default:
        RunStatement(op, &state);
    }
  }
  return state;
}

State Flow::RunFor(const Op& op, const State& before) {
  Loop loop{.op = &op};
  CollectInside(op, &loop);
  loops_.push_back(&loop);
  State head = before;
  for (State last; !(last == head);) {
    last = head;
    State turn = RunBlock(op.regions[0], head);
    turn.Join(loop.continues);
    head.Join(Aged(turn, loop));
  }
  loops_.pop_back();
  head.Join(Aged(loop.breaks, loop));
  return head;
}

State Flow::RunWhile(const Op& op, const State& before) {
  Loop loop{.op = &op};
  CollectInside(op, &loop);
  loops_.push_back(&loop);
  State head = before;
  State tested;
  for (State last; !(last == head);) {
    last = head;
    tested = RunBlock(op.regions[0], head);
    State turn = RunBlock(op.regions[1], tested);
    turn.Join(loop.continues);
    head.Join(Aged(turn, loop));
  }
  loops_.pop_back();
  tested.Join(loop.breaks);
  return Aged(tested, loop);
}

void Flow::RunStatement(const Op& op, State* state) {
  const Touches& touches = TouchesOf(op);
  if (touches.before.empty() && touches.behind.empty() && !touches.meets) return;
  bool waits = order_.waits.count(&op) > 0;
  std::set<const Op*> relied_on;
  for (const Pending& pending : state->pending) {
    for (const Touch& touch : touches.before) {
      if (!Meet(*pending.touch, touch)) continue;
      if (AreOneThreads(pending, touch)) {
        relied_on.insert(pending.statement);
      } else {
        waits = true;
      }
    }
  }
  if (waits) {
    order_.waits.insert(&op);
    state->pending.clear();
  } else if (!relied_on.empty()) {
    order_.keeps_layout.merge(relied_on);
    order_.keeps_layout.insert(&op);
  }
  for (const Touch& touch : touches.before) state->pending.insert({&op, &touch, false});
  if (touches.meets) state->pending.clear();
  for (const Touch& touch : touches.behind) state->pending.insert({&op, &touch, false});
}

// Whether both are atomics of one kind of which nobody asks the old values: the order of their
// steps does not show (for sums of floats it is not fixed anyway).
bool Flow::Commute(const Touch& a, const Touch& b) {
  return a.access != nullptr && b.access != nullptr && a.access->opcode == b.access->opcode &&
         ir::IsAtomic(a.access->opcode) && a.access->opcode != Opcode::kAtomicCompareSwap &&
         a.access->result == ir::kNoValue && b.access->result == ir::kNoValue;
}

// Whether one place may be touched by both, and written by one.
bool Flow::Meet(const Touch& earlier, const Touch& touch) {
  if (!earlier.is_write && !touch.is_write) return false;
  if (Commute(earlier, touch)) return false;
  if ((earlier.access == nullptr) != (touch.access == nullptr)) return false;
  return touch.access != nullptr ? earlier.access->index == touch.access->index
                                 : earlier.first < touch.end && touch.first < earlier.end;
}

// Whether each element that both touch is touched by one and the same thread.
bool Flow::AreOneThreads(const Pending& before, const Touch& touch) const {
  const Touch& earlier = *before.touch;
  if (earlier.by == Touch::By::kFirst && touch.by == Touch::By::kFirst) return true;
  if (earlier.by != Touch::By::kOwner || touch.by != Touch::By::kOwner ||
      earlier.sides != touch.sides) {
    return false;
  }
  return touch.access != nullptr
             ? !before.is_stale && ir::AreSameElements(definitions_, *earlier.access, *touch.access)
             : earlier.first == touch.first && earlier.end == touch.end;
}

// The state once a turn of the loop is over.
State Flow::Aged(const State& state, const Loop& loop) const {
  State aged;
  aged.is_reachable = state.is_reachable;
  for (Pending pending : state.pending) {
    if (pending.touch->access != nullptr) {
      for (const ir::Subscript& subscript : pending.touch->access->subscripts) {
        pending.is_stale |= Varies(subscript.position, loop);
      }
    }
    aged.pending.insert(pending);
  }
  return aged;
}

// Whether a value may be another one in another turn of the loop.
bool Flow::Varies(ValueId value, const Loop& loop) const {
  const Op& op = *definitions_[value];
  if (op.opcode == Opcode::kLoopIndex) return loop.loops.count(op.index) > 0;
  if (loop.values.count(value) == 0) return false;
  if (op.opcode == Opcode::kReadVar || ir::IsAccess(op.opcode)) return true;
  return std::any_of(op.operands.begin(), op.operands.end(), [&](ValueId operand) {
    return operand != ir::kNoValue && Varies(operand, loop);
  });
}

}  // namespace

Order OrderOf(const ir::Function& function, const std::function<Touches(const Op&)>& touches) {
  return Flow(function, touches).Run();
}

}  // namespace phobos::compiler::nvptx
