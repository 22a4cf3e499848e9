// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/plan/plan.h"

#include <algorithm>
#include <utility>

#include "compiler/codegen/nvptx/plan/order.h"
#include "compiler/codegen/nvptx/plan/powers.h"
#include "compiler/codegen/nvptx/plan/streams.h"
#include "compiler/ir/equality.h"
#include "compiler/ir/shape.h"
#include "compiler/passes/cost.h"
#include "compiler/passes/stage.h"

namespace phobos::compiler::nvptx {
namespace {

using ir::Op;
using ir::Opcode;
using ir::ValueId;

// Statements from this price on rather use more threads than wider vectors.
constexpr int kSpreadCost = 16;
// Elements of several results that a thread reduces at once.
constexpr int64_t kTogetherElements = 32;
// Statements exchange partials in turn in so many bytes of shared memory; one that needs more has
// more.
constexpr int64_t kExchangeBytes = 4 << 10;
// A partial of an argmax has its place beside it.
constexpr int64_t kPlaceBytes = 4;

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

bool IsScan(const Statement& statement) {
  return statement.whole != nullptr && statement.whole->opcode == Opcode::kCumulativeSum;
}

bool IsProduct(const Statement& statement) {
  return statement.whole != nullptr && statement.whole->opcode == Opcode::kDot;
}

// In place of a side of a tile.
constexpr int kNoSide = -1;

int FirstLongSide(const ir::Type& type) {
  const auto is_long = [](int64_t side) { return side > 1; };
  const auto found = std::find_if(type.shape.begin(), type.shape.end(), is_long);
  return found == type.shape.end() ? kNoSide : static_cast<int>(found - type.shape.begin());
}

bool HasOneLongSide(const ir::Type& type) { return ir::LongSides(type.shape).size() == 1; }

bool MeetsInside(const Statement& statement) {
  return IsScan(statement) || statement.exchange_bytes > 0;
}

class Planner {
 public:
  Planner(const ir::Function& function, int sm)
      : function_(function),
        sm_(sm),
        definitions_(ir::DefinitionsOf(function)),
        powers_(function) {}

  Plan Make();

 private:
  // What a statement's tile is computed from, and with which side along the first long one of it.
  using Visited = std::set<std::pair<ValueId, int>>;

  void CollectBlock(const ir::Block& block);
  void AddStatement(const Op& op);
  bool HasReducedRows(const ir::Type& type) const;
  void AddProduct(const Op& dot, Statement* statement, Visited* visited) const;
  void Collect(ValueId value, int row_side, Statement* statement, Visited* visited) const;
  void CollectOperands(const Op& op, int row_side, Statement* statement, Visited* visited) const;
  int RowSideOf(const Op& op, int row_side, const ir::Type& operand) const;
  bool Moves(const Op& op) const;
  void ChooseLayouts();
  std::optional<Layout> ProductLayout(const Statement& statement, int64_t widest) const;
  int64_t PromisedVector(const Op& access);
  void DealWholes();
  void FindProductsAhead();
  void FindShared();
  bool IsShared(const Op& held) const;
  bool IsOwned(const Statement& statement, const HeldRead& held) const;
  void PlaceShared();
  void WaitForCopies();
  void FindStraight();
  void ChooseUnroll(Statement* statement) const;
  Touches TouchesOf(const Op& op) const;
  void AddTensor(const Statement& statement, const Op& access, std::vector<Touch>* touches) const;
  void AddHeld(const Statement& statement, const Op& held, bool is_write, bool is_owned,
               std::vector<Touch>* touches) const;
  void AddExchange(const Statement& statement, bool is_write, std::vector<Touch>* touches) const;

  const ir::Function& function_;
  const int sm_;
  const std::vector<const Op*> definitions_;
  Powers powers_;
  std::map<int32_t, const Op*> declarations_;  // by VarId: the kDeclareVar
  std::vector<Statement*> statements_;         // in the order of the text
  std::set<const Op*> shared_;                 // kStages and kDeclareVars
  Plan plan_;
};

Plan Planner::Make() {
  plan_.streams = FindStreams(function_);
  plan_.copies = FindCopies(function_, sm_ >= kAmpere);
  plan_.has_packed_casts = sm_ >= kAmpere;
  CollectBlock(function_.body);
  ChooseLayouts();
  DealWholes();
  plan_.kept = FindKept(function_, plan_.copies, &plan_.statements);
  FindProductsAhead();
  FindShared();
  FindStraight();
  PlaceShared();
  Order order = OrderOf(function_, [this](const Op& op) { return TouchesOf(op); });
  plan_.waits = std::move(order.waits);
  WaitForCopies();
  plan_.threads_meet =
      !plan_.waits.empty() || !plan_.copies.pipelines.empty() || !plan_.kept.read_before.empty();
  for (const auto& [op, offset] : plan_.shared.offsets) {
    plan_.threads_meet |= ir::IsAtomic(op->opcode);
  }
  for (Statement* statement : statements_) {
    statement->is_relied_on = order.keeps_layout.count(statement->op) > 0;
    statement->keeps_layout |= statement->is_relied_on;
    ChooseUnroll(statement);
    plan_.threads_meet |= MeetsInside(*statement);
  }
  return std::move(plan_);
}

void Planner::CollectBlock(const ir::Block& block) {
  for (const Op& op : block) {
    if (passes::IsTileStatement(function_, op)) AddStatement(op);
    for (const ir::Block& region : op.regions) CollectBlock(region);
  }
}

void Planner::AddStatement(const Op& op) {
  if (op.opcode == Opcode::kDeclareVar) declarations_[op.index] = &op;
  Statement& statement = plan_.statements[&op];
  statements_.push_back(&statement);
  statement.op = &op;
  if (ir::IsReduction(op.opcode)) statement.whole = &op;
  const Op& operand = *definitions_[op.operands[0]];
  const bool is_product = op.opcode != Opcode::kStore && operand.opcode == Opcode::kDot;
  if (is_product || (op.opcode == Opcode::kStage && ir::IsWholeTile(operand.opcode))) {
    statement.whole = &operand;
  }
  statement.type = statement.whole != nullptr && !is_product
                       ? definitions_[statement.whole->operands[0]]->type
                       : codegen::StoredType(function_, op);
  Visited visited;
  if (is_product) return AddProduct(operand, &statement, &visited);
  CollectOperands(statement.whole != nullptr ? *statement.whole : op, FirstLongSide(statement.type),
                  &statement, &visited);
}

// Whether some tile with as many rows as `type` is reduced along them.
bool Planner::HasReducedRows(const ir::Type& type) const {
  const std::vector<int64_t> sides = ir::LongSides(type.shape);
  return std::any_of(definitions_.begin(), definitions_.end(), [&](const Op* op) {
    if (op == nullptr || !ir::IsReduction(op->opcode)) return false;
    const std::vector<int64_t>& shape = definitions_[op->operands[0]]->type.shape;
    const std::vector<int64_t> reduced = ir::LongSides(shape);
    return reduced.size() == 2 && sides.size() == 2 && reduced[0] == sides[0] &&
           op->axis + 1 == static_cast<int>(shape.size());
  });
}

// What is multiplied is read by any thread.
void Planner::AddProduct(const Op& dot, Statement* statement, Visited* visited) const {
  const ir::Type& a = definitions_[dot.operands[0]]->type;
  statement->held = {{definitions_[dot.operands[0]], true}, {definitions_[dot.operands[1]], true}};
  statement->fragments = DealFragments(dot, a, statement->type, function_.threads, sm_,
                                       HasReducedRows(statement->type));
  if (dot.operands[2] != ir::kNoValue) {
    Collect(dot.operands[2], FirstLongSide(statement->type), statement, visited);
  }
}

void Planner::CollectOperands(const Op& op, int row_side, Statement* statement,
                              Visited* visited) const {
  for (ValueId operand : op.operands) {
    if (operand == ir::kNoValue) continue;
    Collect(operand, RowSideOf(op, row_side, definitions_[operand]->type), statement, visited);
  }
  for (const ir::Subscript& subscript : op.subscripts) {
    if (subscript.kind == ir::Subscript::Kind::kGather) {
      Collect(subscript.position, kNoSide, statement, visited);
    }
  }
}

// The side of an operand that runs along side `row_side` of the op's tile.
int Planner::RowSideOf(const Op& op, int row_side, const ir::Type& operand) const {
  if (row_side == kNoSide || operand.is_scalar()) return kNoSide;
  if (op.opcode == Opcode::kJoin || op.opcode == Opcode::kInterleave) return kNoSide;
  if (op.opcode == Opcode::kReshape) {
    const std::vector<int> sides = ir::MapLongSides(operand.shape, op.type.shape);
    const auto found = std::find(sides.begin(), sides.end(), row_side);
    return found == sides.end() ? kNoSide : static_cast<int>(found - sides.begin());
  }
  // A statement that does an op over a whole tile goes by that tile's sides, not by its result's.
  const std::vector<int64_t>& shape =
      ir::IsWholeTile(op.opcode) ? operand.shape : codegen::StoredType(function_, op).shape;
  const int side =
      row_side - static_cast<int>(shape.size()) + static_cast<int>(operand.shape.size());
  return side < 0 || operand.shape[static_cast<size_t>(side)] == 1 ? kNoSide : side;
}

void Planner::Collect(ValueId value, int row_side, Statement* statement, Visited* visited) const {
  const Op& op = *definitions_[value];
  if (op.type.is_scalar() || visited->count({value, row_side}) > 0) return;
  const auto other = visited->lower_bound({value, kNoSide});
  const bool is_new = other == visited->end() || other->first != value;
  visited->insert({value, row_side});
  if (is_new) statement->cost += passes::Cost(op);
  if (is_new && op.opcode == Opcode::kLoad) statement->loads.push_back(&op);
  if (op.opcode == Opcode::kStage || op.opcode == Opcode::kReadVar) {
    statement->held.push_back({&op, false, row_side != kNoSide && HasOneLongSide(op.type)});
  } else if (Moves(op)) {
    if (is_new) statement->held.push_back({definitions_[op.operands[0]], true});
  } else {
    CollectOperands(op, row_side, statement, visited);
  }
}

bool Planner::Moves(const Op& op) const {
  return op.opcode == Opcode::kReshape &&
         ir::LongSides(definitions_[op.operands[0]]->type.shape) != ir::LongSides(op.type.shape);
}

// The layout of a product's sums, or of what else has its sides.
std::optional<Layout> Planner::ProductLayout(const Statement& statement, int64_t widest) const {
  if (!IsProduct(statement)) return std::nullopt;
  if (statement.fragments.has_value()) return FragmentLayout(*statement.fragments);
  const int64_t bytes = std::max<int64_t>(widest, ir::ByteSize(statement.type.dtype));
  return SumLayout(statement.type, function_.threads, 16 / bytes, HasReducedRows(statement.type));
}

// Statements over tiles of the same long sides have the same layout, so that what one leaves with a
// thread the next one finds there. Where one does, all are done by the layout, aligned or not: so
// vectors are no wider than what is promised about the distance of rows.
void Planner::ChooseLayouts() {
  struct Needs {
    int64_t widest_bytes = 0;
    int64_t vector = 16;
    int cost = 0;
    bool is_kept = false;
    std::optional<Layout> product;  // matrix instructions' goes before others
    bool has_fragments = false;
    bool is_column = false;  // a product's: lanes would run along a, of which it reads one row
  };
  std::map<std::vector<int64_t>, Needs> needs;
  for (const Statement* statement : statements_) {
    Needs& need = needs[ir::LongSides(statement->type.shape)];
    need.cost = std::max(need.cost, statement->cost);
    const Op* whole = statement->whole;
    need.is_column |= IsProduct(*statement) && statement->type.shape.back() == 1;
    need.is_kept |=
        whole != nullptr ? ir::IsReduction(whole->opcode) : statement->op->opcode == Opcode::kStage;
    auto widen = [&](const Op& access) {
      if (!IsContiguous(access)) return;
      need.widest_bytes = std::max<int64_t>(need.widest_bytes, ir::ByteSize(access.type.dtype));
      need.vector = std::min(need.vector, PromisedVector(access));
    };
    for (const Op* load : statement->loads) widen(*load);
    if (statement->op->opcode == Opcode::kStore) widen(*statement->op);
  }
  for (const Statement* statement : statements_) {
    Needs& need = needs[ir::LongSides(statement->type.shape)];
    if (!IsProduct(*statement) || need.has_fragments) continue;
    need.has_fragments = statement->fragments.has_value();
    need.product = ProductLayout(*statement, need.widest_bytes);
  }
  for (Statement* statement : statements_) {
    const Needs& need = needs[ir::LongSides(statement->type.shape)];
    if (need.product.has_value()) {
      statement->layout = *need.product;
      continue;
    }
    const bool has_vectors = need.widest_bytes > 0 && !need.is_column;
    const int64_t widest = has_vectors ? need.widest_bytes : 16;  // 16: no vectors
    statement->layout = LayoutOf(statement->type.shape, function_.threads, widest,
                                 need.cost >= kSpreadCost, need.is_kept ? need.vector : 16);
  }
}

// Elements that divide the place of each row's first one in its tensor, the tensor's address aside.
int64_t Planner::PromisedVector(const Op& access) {
  const ir::Param& param = function_.params[access.index];
  int power = 4;
  int stride = 0;
  for (size_t d = access.subscripts.size(); d-- > 0;) {
    const ir::Subscript& subscript = access.subscripts[d];
    const bool is_gather = subscript.kind == ir::Subscript::Kind::kGather;
    const bool is_last = d + 1 == access.subscripts.size();
    if (!is_last && (is_gather || subscript.length > 1)) power = std::min(power, stride);
    if (!is_gather) power = std::min(power, stride + powers_.In(subscript.position));
    stride += powers_.In(param.dims[d]);
  }
  return int64_t{1} << power;
}

void Planner::DealWholes() {
  for (Statement* statement : statements_) {
    if (statement->whole == nullptr) continue;
    const Op& whole = *statement->whole;
    const std::vector<int64_t>& shape = statement->type.shape;
    const int64_t bytes = ir::ByteSize(statement->type.dtype);
    if (whole.opcode == Opcode::kCumulativeSum) {
      statement->scan = DealScan(shape, whole.axis, function_.threads);
      if (statement->scan.pieces == 1) continue;
      statement->exchange_bytes =
          SharedAligned(statement->scan.pieces * statement->scan.sides.results() * bytes);
    } else if (ir::IsReduction(whole.opcode)) {
      const int64_t places = ir::GivesPlace(whole.opcode) ? kPlaceBytes : 0;
      statement->reduction = DealReduction(shape, whole.axis, statement->layout, bytes + places);
      const int64_t left = statement->reduction.left();
      if (left == 1) continue;
      const int64_t partials = left * statement->reduction.sides.results();
      statement->exchange_bytes =
          SharedAligned(partials * bytes) + SharedAligned(partials * places);
    }
  }
}

// With two buffers, the next turn's copies would be waited for in the turn that starts them.
void Planner::FindProductsAhead() {
  constexpr int64_t kLeastBuffers = 3;
  for (auto& [loop, pipeline] : plan_.copies.pipelines) {
    Statement* product = nullptr;
    bool fits = pipeline.stages.size() == 2 && pipeline.buffers >= kLeastBuffers;
    for (const Op& op : loop->regions[0]) {
      fits &= op.regions.empty();
      const auto found = plan_.statements.find(&op);
      if (found == plan_.statements.end() || plan_.copies.AheadOf(op) != nullptr) continue;
      fits &= product == nullptr && found->second.fragments.has_value();
      product = &found->second;
    }
    if (!fits || product == nullptr) continue;
    const Op& a = *definitions_[product->whole->operands[0]];
    const Op& b = *definitions_[product->whole->operands[1]];
    const auto is_ahead = [&, &pipeline = pipeline](const Op& op) {
      return &op == pipeline.stages[0] || &op == pipeline.stages[1];
    };
    if (&a == &b || !is_ahead(a) || !is_ahead(b)) continue;
    if (a.type.shape.back() * ir::ByteSize(a.type.dtype) < 2 * kStepBytes) continue;
    pipeline.product = product->op;
    product->ahead_in = loop;
  }
}

// Whether each thread finds what it reads of a held tile at the place where it made it.
bool Planner::IsOwned(const Statement& statement, const HeldRead& held) const {
  if (plan_.KeepsRows(*held.op) || plan_.kept.operands.count(held.op) > 0) return true;
  return !held.is_moved && !statement.reduction.is_apart &&
         held.op->type.elements() == statement.type.elements();
}

void Planner::FindShared() {
  for (const Statement* statement : statements_) {
    if (statement->whole != nullptr && !IsProduct(*statement) &&
        statement->op->opcode == Opcode::kStage && !plan_.KeepsRows(*statement->op)) {
      shared_.insert(statement->op);
    }
    for (const HeldRead& held : statement->held) {
      if (IsOwned(*statement, held)) continue;
      shared_.insert(held.op->opcode == Opcode::kStage ? held.op
                                                       : declarations_.at(held.op->index));
    }
  }
}

// `held`: a kStage, kReadVar, kDeclareVar or kWriteVar.
bool Planner::IsShared(const Op& held) const {
  return shared_.count(held.opcode == Opcode::kStage ? &held : declarations_.at(held.index)) > 0;
}

void Planner::PlaceShared() {
  plan_.shared = codegen::PlaceHeldTiles(function_, [this](const Op& op) -> int64_t {
    if (ir::IsAtomic(op.opcode)) return SharedAligned(ir::ByteSize(op.type.dtype));
    if (shared_.count(&op) == 0 || plan_.copies.AheadOf(op) != nullptr) return 0;
    const ir::Type& type = codegen::StoredType(function_, op);
    return SharedAligned(type.elements() * ir::ByteSize(type.dtype));
  });
  int64_t next = 0;
  int64_t most = 0;
  for (Statement* statement : statements_) {
    if (statement->exchange_bytes == 0) continue;
    if (next + statement->exchange_bytes > kExchangeBytes) next = 0;
    statement->exchange = plan_.shared.bytes + next;
    next += statement->exchange_bytes;
    most = std::max(most, next);
  }
  plan_.rings = SharedAligned(plan_.shared.bytes + most);
  plan_.shared_bytes = plan_.shared.bytes + most;
  if (plan_.copies.ring_bytes > 0) plan_.shared_bytes = plan_.rings + plan_.copies.ring_bytes;
}

// The b of products that each thread does for itself, a row of [K, N] at a time.
void Planner::FindStraight() {
  std::set<const Op*> moved;
  for (const Statement* statement : statements_) {
    if (!IsProduct(*statement)) continue;
    const Op& dot = *statement->whole;
    moved.insert(definitions_[dot.operands[0]]);
    const Op* b = definitions_[dot.operands[1]];
    (dot.axis == 0 && !statement->fragments.has_value() ? plan_.straight : moved).insert(b);
  }
  for (const Op* operand : moved) plan_.straight.erase(operand);
}

// Before a product, the threads wait for what was copied for it and meet.
void Planner::WaitForCopies() {
  for (const Statement* statement : statements_) {
    if (!IsProduct(*statement)) continue;
    for (const HeldRead& held : statement->held) {
      const auto copy = plan_.copies.copies.find(held.op);
      if (copy == plan_.copies.copies.end() || copy->second.loop != nullptr) continue;
      if (!copy->second.is_awaited) continue;
      plan_.waits.insert(statement->op);
      plan_.awaits_copies.insert(statement->op);
    }
  }
}

void Planner::ChooseUnroll(Statement* statement) const {
  const Layout& layout = statement->layout;
  const int64_t elements = statement->cost <= 8 ? 16 : 8;
  const int64_t most = statement->cost <= 16 ? 4 : statement->cost <= 32 ? 2 : 1;
  statement->batch = std::clamp<int64_t>(elements / layout.vector, 1, most);
  statement->unroll = std::min(statement->batch, layout.turns());
  if (layout.is_in_blocks()) statement->unroll = layout.turns();
  if (IsProduct(*statement)) statement->keeps_layout = true;
  const bool is_reduction =
      statement->whole != nullptr && ir::IsReduction(statement->whole->opcode);
  bool is_with_threads =
      !ir::WritesTensor(statement->op->opcode) && !is_reduction && !IsShared(*statement->op);
  for (const HeldRead& held : statement->held) is_with_threads |= !IsShared(*held.op);
  statement->keeps_layout |= is_reduction || is_with_threads;
  // A register has no index. Several results are worked on at once where their elements fit
  // registers.
  const int64_t most_elements = is_with_threads ? passes::kRegisterElements : kTogetherElements;
  const bool is_unrolled = is_with_threads || (is_reduction && statement->reduction.parts > 1);
  if (is_unrolled && layout.thread_elements() <= most_elements) statement->unroll = layout.turns();
}

Touches Planner::TouchesOf(const Op& op) const {
  Touches touches;
  const auto found = plan_.statements.find(&op);
  if (found == plan_.statements.end()) {
    if (!ir::IsAccess(op.opcode) || !op.type.is_scalar()) return touches;
    const bool is_write = ir::WritesTensor(op.opcode);
    if (ir::IsAtomic(op.opcode) && op.result != ir::kNoValue) {
      touches.meets = true;  // before it and behind it
    } else {
      touches.before.push_back({.is_write = is_write,
                                .by = is_write ? Touch::By::kFirst : Touch::By::kEvery,
                                .access = &op});
    }
    return touches;
  }
  const Statement& statement = found->second;
  if (const Copy* ahead = plan_.copies.AheadOf(op)) {
    const Pipeline& pipeline = plan_.copies.pipelines.at(ahead->loop);
    touches.meets = pipeline.product == nullptr && pipeline.stages.front() == &op;
    return touches;
  }
  for (const Op* load : statement.loads) AddTensor(statement, *load, &touches.before);
  for (const HeldRead& held : statement.held) {
    AddHeld(statement, *held.op, /*is_write=*/false, IsOwned(statement, held), &touches.before);
  }
  const Op& done = codegen::DoneBy(definitions_, op);
  if (ir::WritesTensor(done.opcode)) AddTensor(statement, done, &touches.before);
  if (ir::WritesTensor(op.opcode)) return touches;
  const bool is_scan = IsScan(statement);
  touches.meets = MeetsInside(statement) || statement.ahead_in != nullptr;
  AddExchange(statement, /*is_write=*/true, &touches.before);
  AddExchange(statement, /*is_write=*/false, &touches.behind);
  if (op.type.is_scalar() && statement.whole == &op) return touches;
  const bool is_owned = statement.whole == nullptr || IsProduct(statement);
  if (is_scan || !touches.meets) {
    AddHeld(statement, op, /*is_write=*/true, is_owned, &touches.before);
  }
  if (touches.meets) AddHeld(statement, op, /*is_write=*/true, is_owned, &touches.behind);
  return touches;
}

void Planner::AddTensor(const Statement& statement, const Op& access,
                        std::vector<Touch>* touches) const {
  const ir::Param& param = function_.params[access.index];
  if (!param.is_written) return;
  const bool is_owned = !IsGather(access) && !statement.reduction.is_apart &&
                        access.type.elements() == statement.type.elements();
  touches->push_back({.is_write = ir::WritesTensor(access.opcode),
                      .by = is_owned ? Touch::By::kOwner : Touch::By::kAny,
                      .sides = ir::LongSides(statement.type.shape),
                      .access = &access});
}

void Planner::AddHeld(const Statement& statement, const Op& held, bool is_write, bool is_owned,
                      std::vector<Touch>* touches) const {
  if (!IsShared(held) || plan_.copies.AheadOf(held) != nullptr) return;
  const Op* place = held.opcode == Opcode::kStage ? &held : declarations_.at(held.index);
  const ir::Type& type = is_write ? codegen::StoredType(function_, held) : held.type;
  const int64_t first = plan_.shared.offsets.at(place);
  touches->push_back({.is_write = is_write,
                      .by = is_owned ? Touch::By::kOwner : Touch::By::kAny,
                      .sides = ir::LongSides(statement.type.shape),
                      .first = first,
                      .end = first + type.elements() * ir::ByteSize(type.dtype)});
}

void Planner::AddExchange(const Statement& statement, bool is_write,
                          std::vector<Touch>* touches) const {
  if (statement.exchange_bytes == 0) return;
  touches->push_back({.is_write = is_write,
                      .by = Touch::By::kAny,
                      .first = statement.exchange,
                      .end = statement.exchange + statement.exchange_bytes});
}

void SetOrders(const std::map<const Op*, const Statement*>& by_whole, const ir::Block& planned,
               ir::Block* block) {
  for (size_t i = 0; i < planned.size(); ++i) {
    if (const auto found = by_whole.find(&planned[i]); found != by_whole.end()) {
      Op& op = (*block)[i];
      op.is_near = ir::IsReduction(op.opcode);
      if (op.is_near) op.index = static_cast<int32_t>(found->second->reduction.order);
      if (op.opcode == Opcode::kCumulativeSum) {
        op.index = static_cast<int32_t>(found->second->scan.order());
      }
    }
    for (size_t r = 0; r < planned[i].regions.size(); ++r) {
      SetOrders(by_whole, planned[i].regions[r], &(*block)[i].regions[r]);
    }
  }
}

}  // namespace

int64_t SharedAligned(int64_t bytes) {
  constexpr int64_t kAlignment = 16;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t Plan::HeldElements(const Statement& statement) const {
  if (!KeepsRows(*statement.op) || statement.whole == nullptr) {
    return statement.layout.thread_elements();
  }
  return statement.reduction.parts;
}

Plan PlanFor(const ir::Function& function, int sm) { return Planner(function, sm).Make(); }

ir::Function Ordered(const ir::Function& function, int sm) {
  const Plan plan = PlanFor(function, sm);
  std::map<const Op*, const Statement*> by_whole;
  for (const auto& [op, statement] : plan.statements) {
    if (statement.whole != nullptr) by_whole[statement.whole] = &statement;
  }
  ir::Function ordered = function;
  SetOrders(by_whole, function.body, &ordered.body);
  return ordered;
}

}  // namespace phobos::compiler::nvptx
