// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/plan.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/nvptx/plan/order.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/shape.h"
#include "compiler/passes/cost.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

constexpr int64_t kSharedAlignment = 16;
// Statements from this price on rather use more threads than wider vectors.
constexpr int kSpreadCost = 16;
// Elements a thread holds of one tile in registers; a larger one is in its local memory.
constexpr int64_t kRegisterElements = 64;

bool IsGather(const Op& access) {
  return std::any_of(access.subscripts.begin(), access.subscripts.end(),
                     [](const ir::Subscript& s) { return s.kind == ir::Subscript::Kind::kGather; });
}

// Whether neighbours along the tile's last long side are neighbours in memory.
bool IsContiguous(const Op& access) {
  return !access.subscripts.empty() &&
         access.subscripts.back().kind == ir::Subscript::Kind::kSlice &&
         access.type.shape.back() > 1;
}

class Planner {
 public:
  explicit Planner(const ir::Function& function)
      : function_(function), definitions_(ir::DefinitionsOf(function)) {}

  Plan Make();

 private:
  using Visited = std::set<ValueId>;

  void CollectBlock(const ir::Block& block);
  void Collect(ValueId value, Statement* statement, Visited* visited) const;
  void CollectOperands(const Op& op, Statement* statement, Visited* visited) const;
  const ir::Type& TypeOf(const Statement& statement) const {
    return codegen::StoredType(function_, *statement.op);
  }
  void ChooseLayouts();
  void FindShared();
  bool IsShared(const Op& held) const;
  void ChooseUnroll(Statement* statement) const;
  std::vector<Touch> TouchesOf(const Op& op) const;
  void AddTensor(const Statement& statement, const Op& access, std::vector<Touch>* touches) const;
  void AddHeld(const Statement& statement, const Op& held, bool is_write,
               std::vector<Touch>* touches) const;

  const ir::Function& function_;
  const std::vector<const Op*> definitions_;
  std::map<int32_t, const Op*> declarations_;  // by VarId: the kDeclareVar
  std::set<const Op*> shared_;                 // kStages and kDeclareVars
  Plan plan_;
};

Plan Planner::Make() {
  CollectBlock(function_.body);
  ChooseLayouts();
  FindShared();
  plan_.shared = codegen::PlaceHeldTiles(function_, [this](const Op& op) -> int64_t {
    if (shared_.count(&op) == 0) return 0;
    const ir::Type& type = codegen::StoredType(function_, op);
    const int64_t bytes = type.elements() * ir::ByteSize(type.dtype);
    return (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  });
  Order order = OrderOf(function_, [this](const Op& op) { return TouchesOf(op); });
  plan_.waits = std::move(order.waits);
  for (auto& [op, statement] : plan_.statements) {
    statement.keeps_layout |= order.keeps_layout.count(op) > 0;
    ChooseUnroll(&statement);
  }
  return std::move(plan_);
}

void Planner::CollectBlock(const ir::Block& block) {
  for (const Op& op : block) {
    switch (op.opcode) {
      case Opcode::kStore:
      case Opcode::kStage:
      case Opcode::kDeclareVar:
      case Opcode::kWriteVar: {
        if (codegen::StoredType(function_, op).is_scalar()) break;
        if (op.opcode == Opcode::kDeclareVar) declarations_[op.index] = &op;
        Statement& statement = plan_.statements[&op];
        statement.op = &op;
        Visited visited;
        CollectOperands(op, &statement, &visited);
        break;
      }
      default:
        break;
    }
    for (const ir::Block& region : op.regions) CollectBlock(region);
  }
}

void Planner::CollectOperands(const Op& op, Statement* statement, Visited* visited) const {
  for (ValueId operand : op.operands) {
    if (operand != ir::kNoValue) Collect(operand, statement, visited);
  }
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      Collect(subscript.position, statement, visited);
    }
  }
}

void Planner::Collect(ValueId value, Statement* statement, Visited* visited) const {
  const Op& op = *definitions_[value];
  if (op.type.is_scalar() || !visited->insert(value).second) return;
  statement->cost += passes::Cost(op);
  if (op.opcode == Opcode::kLoad) statement->loads.push_back(&op);
  if (op.opcode == Opcode::kStage || op.opcode == Opcode::kReadVar) {
    statement->held.push_back(&op);
    return;
  }
  CollectOperands(op, statement, visited);
}

// Statements over tiles of the same long sides have the same layout, so that what one leaves with a
// thread the next one finds there.
void Planner::ChooseLayouts() {
  struct Needs {
    int64_t widest_bytes = 0;
    int cost = 0;
  };
  std::map<std::vector<int64_t>, Needs> needs;
  for (const auto& [op, statement] : plan_.statements) {
    Needs& need = needs[ir::LongSides(TypeOf(statement).shape)];
    need.cost = std::max(need.cost, statement.cost);
    auto widen = [&need](const Op& access) {
      if (!IsContiguous(access)) return;
      need.widest_bytes = std::max<int64_t>(need.widest_bytes, ir::ByteSize(access.type.dtype));
    };
    for (const Op* load : statement.loads) widen(*load);
    if (op->opcode == Opcode::kStore) widen(*op);
  }
  for (auto& [op, statement] : plan_.statements) {
    const std::vector<int64_t>& shape = TypeOf(statement).shape;
    const Needs& need = needs[ir::LongSides(shape)];
    const int64_t widest = need.widest_bytes > 0 ? need.widest_bytes : 16;  // 16: no vectors
    statement.layout = LayoutOf(shape, function_.threads, widest, need.cost >= kSpreadCost);
  }
}

// A held tile stays with its threads where each reader has one element for each of its elements.
void Planner::FindShared() {
  for (const auto& [op, statement] : plan_.statements) {
    for (const Op* held : statement.held) {
      if (held->type.elements() == TypeOf(statement).elements()) continue;
      shared_.insert(held->opcode == Opcode::kStage ? held : declarations_.at(held->index));
    }
  }
}

// `held`: a kStage, kReadVar, kDeclareVar or kWriteVar.
bool Planner::IsShared(const Op& held) const {
  return shared_.count(held.opcode == Opcode::kStage ? &held : declarations_.at(held.index)) > 0;
}

void Planner::ChooseUnroll(Statement* statement) const {
  const Layout& layout = statement->layout;
  const int64_t elements = statement->cost <= 8 ? 16 : 8;
  const int64_t most = statement->cost <= 16 ? 4 : statement->cost <= 32 ? 2 : 1;
  statement->batch = std::clamp<int64_t>(elements / layout.vector, 1, most);
  statement->unroll = std::min(statement->batch, layout.turns());
  bool is_with_threads = statement->op->opcode != Opcode::kStore && !IsShared(*statement->op);
  for (const Op* held : statement->held) is_with_threads |= !IsShared(*held);
  if (!is_with_threads) return;
  statement->keeps_layout = true;
  // A register has no index.
  if (layout.thread_elements() <= kRegisterElements) statement->unroll = layout.turns();
}

std::vector<Touch> Planner::TouchesOf(const Op& op) const {
  std::vector<Touch> touches;
  const auto found = plan_.statements.find(&op);
  if (found == plan_.statements.end()) {
    const bool is_scalar_store = op.opcode == Opcode::kStore;
    if (is_scalar_store || (op.opcode == Opcode::kLoad && op.type.is_scalar())) {
      touches.push_back({.is_write = is_scalar_store,
                         .by = is_scalar_store ? Touch::By::kFirst : Touch::By::kEvery,
                         .access = &op});
    }
    return touches;
  }
  const Statement& statement = found->second;
  for (const Op* load : statement.loads) AddTensor(statement, *load, &touches);
  for (const Op* held : statement.held) AddHeld(statement, *held, /*is_write=*/false, &touches);
  if (op.opcode == Opcode::kStore) {
    AddTensor(statement, op, &touches);
  } else {
    AddHeld(statement, op, /*is_write=*/true, &touches);
  }
  return touches;
}

void Planner::AddTensor(const Statement& statement, const Op& access,
                        std::vector<Touch>* touches) const {
  const ir::Param& param = function_.params[access.index];
  if (!param.is_written) return;
  const ir::Type& type = TypeOf(statement);
  const bool is_owned = !IsGather(access) && access.type.elements() == type.elements();
  touches->push_back({.is_write = access.opcode == Opcode::kStore,
                      .by = is_owned ? Touch::By::kOwner : Touch::By::kAny,
                      .sides = ir::LongSides(type.shape),
                      .access = &access});
}

void Planner::AddHeld(const Statement& statement, const Op& held, bool is_write,
                      std::vector<Touch>* touches) const {
  if (!IsShared(held)) return;
  const Op* place = held.opcode == Opcode::kStage ? &held : declarations_.at(held.index);
  const ir::Type& type = TypeOf(statement);
  const ir::Type& held_type = is_write ? type : held.type;
  const int64_t first = plan_.shared.offsets.at(place);
  touches->push_back(
      {.is_write = is_write,
       .by = held_type.elements() == type.elements() ? Touch::By::kOwner : Touch::By::kAny,
       .sides = ir::LongSides(type.shape),
       .first = first,
       .end = first + held_type.elements() * ir::ByteSize(held_type.dtype)});
}

}  // namespace

Plan PlanFor(const ir::Function& function) { return Planner(function).Make(); }

}  // namespace phobos::compiler::nvptx
