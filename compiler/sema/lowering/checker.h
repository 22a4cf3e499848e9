// SPDX-License-Identifier: Apache-2.0
//
// The class behind Lower (lower.h), private to sema: one walk over a kernel's body
// that checks each statement and expression and emits it. Its methods are in the file that the
// comment over them names. Used once, by one thread.
#ifndef PHOBOS_COMPILER_SEMA_LOWERING_CHECKER_H_
#define PHOBOS_COMPILER_SEMA_LOWERING_CHECKER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/shape.h"
#include "compiler/sema/kernel.h"
#include "compiler/sema/lowering/operand.h"
#include "compiler/sema/value/emitter.h"
#include "compiler/sema/value/scopes.h"
#include "compiler/sema/value/value.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

struct Builtin;  // language.h

class Checker {
 public:
  // All must outlive the checker.
  Checker(const Source& source, const ast::Module& module, const Kernel& kernel,
          const Settings& settings);

  absl::StatusOr<ir::Function> Run();

 private:
  using Arguments = std::vector<const ast::Expr*>;  // of a call

  // ---- checker.cc
  absl::Status Error(Span span, std::string what, std::string remedy) const;
  absl::Status Error(Span span, const Problem& problem) const;
  void EmitConstraints();
  void SetPlace(Span span);
  // Counts a step and a level of nesting; an error past either limit. Leave undoes the level.
  absl::Status Enter(Span span);
  void Leave() { --depth_; }
  bool in_function() const { return !calls_.empty(); }

  // ---- names.cc
  Value LoopIndex(const Binding& binding);
  absl::StatusOr<Value> EvalName(const ast::Name& name, Span span);
  absl::StatusOr<Value> EvalLanguageName(const ast::LanguageName& name, Span span);
  absl::StatusOr<Value> EvalAttribute(const ast::Attribute& attribute, Span span);
  absl::StatusOr<Value> EvalLimit(const std::string& of, const Operand& type,
                                  const std::string& name, Span span);
  // What a parameter, extent or autotuned constant stands for. False: the name is none of these.
  bool FindInKernel(std::string_view name, Value* value);
  bool FindModuleConstant(std::string_view name, Value* value) const;
  const ast::Function* FindFunction(std::string_view name) const;
  absl::Status UnknownName(const std::string& name, Span span) const;
  absl::Status UnknownLanguageName(const ast::LanguageName& name, Span span) const;
  // An error when a new name is reserved or hides one in sight.
  absl::Status CheckNewName(const std::string& name, Span span) const;
  std::vector<std::string_view> NamesInSight() const;

  // ---- expr.cc
  absl::StatusOr<Value> Eval(const ast::Expr& expr);
  absl::StatusOr<Operand> EvalOperand(const ast::Expr& expr);
  absl::StatusOr<Operand> EvalNumber(const ast::Expr& expr);
  absl::StatusOr<Value> EvalNode(const ast::Expr& expr);
  absl::StatusOr<Value> EvalUnary(const ast::Unary& unary, Span span);
  absl::StatusOr<Value> EvalCompare(const ast::Compare& compare, Span span);
  absl::StatusOr<Value> EvalLogic(const ast::Binary& binary);
  absl::StatusOr<Value> EvalConditional(const ast::Conditional& conditional, Span span);
  absl::StatusOr<Value> EvalConstantConditional(const ast::Conditional& conditional, bool taken);
  absl::StatusOr<Value> ChooseByBranch(const Value& condition, const Value& a, ir::Block block_a,
                                       const Value& b, ir::Block block_b);
  absl::StatusOr<Operand> EvalApart(const ast::Expr& expr, ir::Block* block);
  // A scalar as a condition: a literal, or a computed bool.
  absl::StatusOr<Value> Truth(const Operand& operand) const;
  absl::StatusOr<Value> EmitTruth(const Operand& operand);
  absl::StatusOr<Value> LogicSide(const Operand& operand, std::string_view word) const;

  // ---- operator.cc
  absl::Status CheckNumber(const Operand& operand) const;
  absl::StatusOr<Value> Binary(ast::BinaryOp op, const Operand& a, const Operand& b, Span span);
  absl::StatusOr<Value> BinaryPower(const Operand& base, const Operand& exponent, Span span);
  absl::StatusOr<Value> Compare(ast::CompareOp op, const Operand& a, const Operand& b, Span span);
  // The type that operands meet in; literals are weak.
  absl::StatusOr<ir::DType> CommonType(const std::vector<Operand>& operands) const;
  // Converts operands to one type and shape.
  absl::StatusOr<std::vector<Value>> Unify(const std::vector<Operand>& operands, ir::DType dtype,
                                           Span span);
  absl::StatusOr<std::vector<Value>> BroadcastTogether(std::vector<Value> values, Span span);
  // To one type: a literal must fit it, a computed value is cast.
  absl::StatusOr<Value> ToType(const Operand& operand, ir::DType dtype);
  // As a store converts: to the type and exactly this shape. `target` names it in the error.
  absl::StatusOr<Value> ToTarget(const Operand& operand, const ir::Type& type,
                                 const std::string& target);
  absl::StatusOr<Value> Settle(const Operand& operand);
  // An integer: as i64, or known here. `what` names it in the error.
  absl::StatusOr<Value> ToIndex(const Operand& operand, const std::string& what);
  absl::StatusOr<int64_t> ConstantInt(const Operand& operand, int64_t lowest, int64_t highest,
                                      const std::string& what) const;

  // ---- tensor.cc
  absl::StatusOr<Value> EvalIndex(const ast::Index& index, Span span);
  absl::StatusOr<Access> CheckAccess(const ast::Index& index, const Operand& tensor, Span span);
  absl::StatusOr<Access> CheckAccessExpr(const ast::Expr& expr, const std::string& builtin);
  absl::Status CheckSubscript(const ast::Subscript& subscript, const ir::Dim& dim,
                              const std::string& tensor, Access* access);
  absl::Status CheckElement(const ast::Subscript& subscript, Access* access);
  absl::Status CheckLengthSlice(const ast::Subscript& subscript, Access* access);
  absl::Status CheckBoundSlice(const ast::Subscript& subscript, const ir::Dim& dim,
                               const std::string& tensor, Access* access);
  absl::Status FindShape(Access* access);
  absl::StatusOr<Value> Position(const Operand& operand);
  Value EmitLoad(const Access& access, const Value* fill, const Value* mask);
  absl::StatusOr<Value> EvalLoad(const Arguments& arguments);
  absl::StatusOr<Value> EvalStore(const Arguments& arguments, Span span);
  // `has_result`: as an expression, which has the elements' old values.
  absl::StatusOr<Value> EvalAtomic(const Builtin& builtin, const Arguments& arguments, Span span,
                                   bool has_result);
  absl::StatusOr<Value> Mask(const ast::Expr& expr, const std::vector<int64_t>& shape);
  std::string TargetText(const Access& access) const;

  // ---- shape.cc
  // An error when no tile may have this shape.
  absl::Status CheckShape(const ir::Shape& shape, Span span) const;
  absl::Status TooLarge(int64_t elements, Span span) const;
  // Sides as numbers. `infer_from`: the elements there are, where one side may be -1; 0: none may.
  absl::StatusOr<ir::Shape> Sides(const std::vector<Operand>& sides, Span span,
                                  int64_t infer_from = 0) const;
  // Arguments from `first` on, or the elements of the one tuple there.
  absl::StatusOr<std::vector<Operand>> SideOperands(const Arguments& arguments, size_t first);
  // `what` names who asks for the tile in the error.
  absl::StatusOr<Operand> EvalTile(const ast::Expr& expr, const std::string& what);
  // t[:, None]: the only subscripts that a tile takes.
  absl::StatusOr<Value> AddAxes(const ast::Index& index, const Operand& tile, Span span);
  absl::StatusOr<Value> EvalReshape(const Arguments& arguments, Span span);
  absl::StatusOr<Value> EvalPair(const Builtin& builtin, const Arguments& arguments, Span span);
  absl::StatusOr<Value> EvalTranspose(const Arguments& arguments, Span span);

  // ---- reduction.cc
  absl::StatusOr<Value> EvalReduction(const Builtin& builtin, const Arguments& arguments,
                                      Span span);
  absl::StatusOr<Value> EvalScan(const Builtin& builtin, const Arguments& arguments, Span span);
  // The axes that are written, from 0, in order; all of them where none is.
  absl::StatusOr<std::vector<int32_t>> Axes(const ast::Expr* expr, const Operand& tile,
                                            const Builtin& builtin);
  absl::Status CheckOneAxis(const std::vector<int32_t>& axes, const ast::Expr* expr,
                            const Operand& tile, const Builtin& builtin) const;
  absl::StatusOr<bool> KeepsSides(const ast::Expr* expr);
  Value ReduceSides(ir::Opcode opcode, Value tile, std::vector<int32_t> axes);

  // ---- contraction.cc
  absl::StatusOr<Value> EvalDot(const Builtin& builtin, const Arguments& arguments, Span span);
  absl::StatusOr<Operand> EvalMatrix(const ast::Expr& expr, const std::string& name);
  absl::StatusOr<ir::Precision> EvalPrecision(const ast::Expr* expr, ir::DType dtype);

  // ---- builtin.cc
  absl::StatusOr<Value> CallBuiltin(const ast::LanguageName& name, const ast::Call& call,
                                    Span span);
  absl::StatusOr<Arguments> BindArguments(const Builtin& builtin, const ast::Call& call, Span span);
  absl::StatusOr<Value> CallOnNumbers(const Builtin& builtin, const Arguments& arguments,
                                      Span span);
  absl::StatusOr<Value> EvalElementwise(const Builtin& builtin, std::vector<Operand> operands,
                                        Span span);
  absl::StatusOr<ir::DType> ElementwiseType(const Builtin& builtin,
                                            const std::vector<Operand>& operands, Span span) const;
  absl::StatusOr<Value> EvalWhere(const Arguments& arguments, Span span);
  absl::StatusOr<Value> EvalClip(std::vector<Operand> operands, Span span);
  absl::StatusOr<Value> EvalCeilDivide(const Operand& a, const Operand& b, Span span);
  absl::StatusOr<Value> EvalCast(const Arguments& arguments, bool keep_bits, Span span);
  absl::StatusOr<Value> EvalFill(const Arguments& arguments, bool has_value, Span span);
  absl::StatusOr<Value> EvalRandom(const std::vector<Operand>& operands, Span span);
  absl::StatusOr<Value> EvalIota(const ast::Expr& length);
  absl::StatusOr<Value> EvalExtent(const Arguments& arguments);
  absl::StatusOr<Value> EvalAssert(const Arguments& arguments, Span span);
  absl::StatusOr<Value> EvalAssume(const ast::Expr& condition);
  absl::StatusOr<Value> EvalPrint(const Arguments& arguments, Span span);
  absl::StatusOr<ir::DType> EvalDType(const ast::Expr& expr);

  // ---- call.cc
  absl::StatusOr<Value> EvalCall(const ast::Call& call, Span span);
  absl::StatusOr<Value> CallFunction(const ast::Function& function, const ast::Call& call,
                                     Span span);
  absl::StatusOr<std::vector<Operand>> FunctionArguments(const ast::Function& function,
                                                         const ast::Call& call, Span span);
  absl::Status BindArgument(const ast::Parameter& parameter, const Operand& argument);
  absl::StatusOr<Value> ConvertArgument(const ast::Parameter& parameter, const Operand& argument);
  absl::StatusOr<Value> InlineBody(const ast::Function& function);

  // ---- statement.cc
  absl::Status CheckBlock(const ast::Block& block);  // in a scope of its own
  absl::Status CheckStatements(const ast::Stmt* begin, const ast::Stmt* end);
  absl::Status CheckStatement(const ast::Stmt& stmt);
  absl::Status CheckStatementNode(const ast::Stmt& stmt);
  absl::Status CheckDeclare(const ast::Declare& declare);
  absl::Status DeclareTyped(const ast::Declare& declare, const ir::Type& type);
  // The type that an annotation such as ph.f32 or ph.tile[ph.f32][N] names.
  absl::StatusOr<ir::Type> AnnotatedType(const ast::Expr& annotation);
  absl::StatusOr<ir::Type> TileType(const ast::Index& shape, Span span);
  absl::Status CheckAssign(const ast::Assign& assign);
  absl::Status AssignName(const ast::Name& name, const ast::Assign& assign, Span span);
  absl::Status AssignToBinding(const std::string& name, const Operand& value, Span span);
  absl::Status AssignTuple(const ast::Tuple& target, const Operand& value);
  absl::Status AssignElement(const ast::Index& index, const ast::Assign& assign, Span span);
  absl::Status NotAssignable(const std::string& name, Span span) const;
  absl::Status CheckExprStmt(const ast::ExprStmt& stmt, Span span);
  absl::Status CheckFor(const ast::For& loop);
  absl::Status CheckWhile(const ast::While& loop);
  absl::Status CheckIf(const ast::If& branch);
  absl::Status CheckConstantIf(const ast::If& branch, bool taken);
  // Checks a block into a region; *terminated: whether it ends in break, continue, return.
  absl::StatusOr<ir::Block> CheckRegion(const ast::Block& block, bool* terminated);
  absl::Status CheckReturn(const ast::Return& stmt, Span span);
  absl::Status CheckLoopExit(ir::Opcode opcode, const std::string& word, Span span);

  // ---- range.cc
  absl::Status CheckRange(const ast::Call& call, Span span, Range* range);

  struct CallSite {
    const ast::Function* function;
    Span span;
    int loop_depth;  // of the caller
  };

  const Source& source_;
  const ast::Module& module_;
  const Kernel& kernel_;
  const Settings& settings_;
  Emitter emitter_;
  Scopes scopes_;
  std::vector<CallSite> calls_;  // ph.fn being inlined, the innermost last
  int64_t steps_ = 0;
  int depth_ = 0;
  int block_depth_ = 0;      // 1: the kernel's own statements
  int loop_depth_ = 0;       // loops of the present function
  bool terminated_ = false;  // after break, continue, return: what follows is checked, not kept
  bool quiet_ = false;       // a constraint: its places are not of source_
};

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_LOWERING_CHECKER_H_
