// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/usage.h"

#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/language.h"

namespace phobos::compiler::sema {
namespace {

constexpr int kMaxCallDepth = 50;

// How an access touches a tensor.
enum class Access { kRead, kStore, kAtomic };

void Merge(const ParamUse& from, ParamUse* to) {
  to->is_read |= from.is_read;
  to->is_stored |= from.is_stored;
  to->is_atomic |= from.is_atomic;
}

// Walks all functions from one on; each is walked once.
class Walker {
 public:
  Walker(const Source& source, const ast::Module& module) : source_(source), module_(module) {}

  absl::StatusOr<const Usage*> Walk(const ast::Function& function, Span call, int depth);

 private:
  // One function under way.
  struct Frame {
    const ast::Function& function;
    Usage usage;
    std::set<std::string_view> bound;          // parameters, and names that statements bind
    std::map<std::string_view, Span> used;     // all names used, first place
    std::map<std::string_view, Span> targets;  // those assigned to
    int depth;
  };

  absl::Status Visit(const ast::Block& block, Frame* frame);
  absl::Status Visit(const ast::Stmt& statement, Frame* frame);
  absl::Status VisitTarget(const ast::Expr& target, bool is_augmented, Frame* frame);
  absl::Status Visit(const ast::Expr& expr, Frame* frame);
  absl::Status Visit(const std::vector<ast::ExprPtr>& list, Frame* frame);
  absl::Status VisitAccess(const ast::Expr& expr, Access access, Frame* frame);
  absl::Status VisitSubscripts(const ast::Index& index, Frame* frame);
  absl::Status VisitCall(const ast::Call& call, Span span, Frame* frame);
  absl::Status VisitBuiltin(const std::string& name, const ast::Call& call, Frame* frame);
  absl::Status VisitFunctionCall(const ast::Function& callee, const ast::Call& call, Span span,
                                 Frame* frame);
  void Touch(std::string_view name, const ParamUse& use, Frame* frame);

  const Source& source_;
  const ast::Module& module_;
  std::map<const ast::Function*, Usage> done_;
  std::set<const ast::Function*> under_way_;
};

absl::StatusOr<const Usage*> Walker::Walk(const ast::Function& function, Span call, int depth) {
  if (const auto known = done_.find(&function); known != done_.end()) return &known->second;
  if (under_way_.count(&function) > 0) {
    return source_.Error(call, Concat("'", function.name, "' calls itself"),
                         "functions are inlined at every call; write a loop");
  }
  if (depth > kMaxCallDepth) {
    return source_.Error(call, "functions call functions too deeply here", "merge some of them");
  }
  under_way_.insert(&function);
  Frame frame{function, {}, {}, {}, {}, depth};
  frame.usage.params.resize(function.parameters.size());
  for (const ast::Parameter& parameter : function.parameters) frame.bound.insert(parameter.name);
  RETURN_IF_ERROR(Visit(function.body, &frame));
  for (const auto& [name, span] : frame.used) {
    if (frame.bound.count(name) == 0) frame.usage.free_names.emplace(name, span);
  }
  frame.usage.bound_names.insert(frame.bound.begin(), frame.bound.end());
  for (const auto& [name, span] : frame.targets) {
    if (frame.bound.count(name) == 0) frame.usage.free_targets.emplace(name, span);
  }
  under_way_.erase(&function);
  return &done_.emplace(&function, std::move(frame.usage)).first->second;
}

void Walker::Touch(std::string_view name, const ParamUse& use, Frame* frame) {
  for (size_t i = 0; i < frame->function.parameters.size(); ++i) {
    if (frame->function.parameters[i].name == name) Merge(use, &frame->usage.params[i]);
  }
}

absl::Status Walker::Visit(const ast::Block& block, Frame* frame) {
  for (const ast::Stmt& statement : block) RETURN_IF_ERROR(Visit(statement, frame));
  return absl::OkStatus();
}

absl::Status Walker::Visit(const ast::Stmt& statement, Frame* frame) {
  if (const auto* declare = std::get_if<ast::Declare>(&statement.node)) {
    frame->bound.insert(declare->name);
    // A bare name is no type of the language; what it is instead is told where types are checked.
    if (!std::holds_alternative<ast::Name>(declare->annotation->node)) {
      RETURN_IF_ERROR(Visit(*declare->annotation, frame));
    }
    return declare->value == nullptr ? absl::OkStatus() : Visit(*declare->value, frame);
  }
  if (const auto* assign = std::get_if<ast::Assign>(&statement.node)) {
    RETURN_IF_ERROR(Visit(*assign->value, frame));
    return VisitTarget(*assign->target, assign->is_augmented, frame);
  }
  if (const auto* loop = std::get_if<ast::For>(&statement.node)) {
    frame->bound.insert(loop->name);
    RETURN_IF_ERROR(Visit(*loop->iterable, frame));
    return Visit(loop->body, frame);
  }
  if (const auto* loop = std::get_if<ast::While>(&statement.node)) {
    RETURN_IF_ERROR(Visit(*loop->condition, frame));
    return Visit(loop->body, frame);
  }
  if (const auto* branch = std::get_if<ast::If>(&statement.node)) {
    RETURN_IF_ERROR(Visit(*branch->condition, frame));
    RETURN_IF_ERROR(Visit(branch->then, frame));
    return Visit(branch->otherwise, frame);
  }
  if (const auto* result = std::get_if<ast::Return>(&statement.node)) {
    return result->value == nullptr ? absl::OkStatus() : Visit(*result->value, frame);
  }
  const auto* expression = std::get_if<ast::ExprStmt>(&statement.node);
  return expression == nullptr ? absl::OkStatus() : Visit(*expression->value, frame);
}

absl::Status Walker::VisitTarget(const ast::Expr& target, bool is_augmented, Frame* frame) {
  if (const auto* tuple = std::get_if<ast::Tuple>(&target.node)) {
    for (const ast::ExprPtr& element : tuple->elements) {
      if (const auto* name = std::get_if<ast::Name>(&element->node)) frame->bound.insert(name->id);
    }
    return absl::OkStatus();
  }
  if (std::holds_alternative<ast::Index>(target.node)) {
    if (is_augmented) RETURN_IF_ERROR(VisitAccess(target, Access::kRead, frame));
    return VisitAccess(target, Access::kStore, frame);
  }
  if (const auto* name = std::get_if<ast::Name>(&target.node)) {
    frame->targets.emplace(name->id, target.span);
  }
  return Visit(target, frame);
}

absl::Status Walker::Visit(const std::vector<ast::ExprPtr>& list, Frame* frame) {
  for (const ast::ExprPtr& expr : list) RETURN_IF_ERROR(Visit(*expr, frame));
  return absl::OkStatus();
}

absl::Status Walker::Visit(const ast::Expr& expr, Frame* frame) {
  if (const auto* name = std::get_if<ast::Name>(&expr.node)) {
    const auto [first, is_new] = frame->used.emplace(name->id, expr.span);
    if (!is_new && expr.span.begin < first->second.begin) first->second = expr.span;
    return absl::OkStatus();
  }
  if (const auto* name = std::get_if<ast::LanguageName>(&expr.node)) {
    const bool is_block =
        name->path.size() == 3 && name->path[0] == "ctx" && name->path[1] == "block";
    const size_t axis =
        is_block ? std::string_view("xyz").find(name->path[2]) : std::string_view::npos;
    if (axis < 3) frame->usage.block_dims |= 1 << axis;
    return absl::OkStatus();
  }
  if (std::holds_alternative<ast::Index>(expr.node)) return VisitAccess(expr, Access::kRead, frame);
  if (const auto* call = std::get_if<ast::Call>(&expr.node))
    return VisitCall(*call, expr.span, frame);
  if (const auto* member = std::get_if<ast::Attribute>(&expr.node))
    return Visit(*member->base, frame);
  if (const auto* unary = std::get_if<ast::Unary>(&expr.node)) return Visit(*unary->operand, frame);
  if (const auto* binary = std::get_if<ast::Binary>(&expr.node)) {
    RETURN_IF_ERROR(Visit(*binary->left, frame));
    return Visit(*binary->right, frame);
  }
  if (const auto* choice = std::get_if<ast::Conditional>(&expr.node)) {
    RETURN_IF_ERROR(Visit(*choice->condition, frame));
    RETURN_IF_ERROR(Visit(*choice->then, frame));
    return Visit(*choice->otherwise, frame);
  }
  if (const auto* compare = std::get_if<ast::Compare>(&expr.node))
    return Visit(compare->operands, frame);
  if (const auto* tuple = std::get_if<ast::Tuple>(&expr.node)) return Visit(tuple->elements, frame);
  if (const auto* list = std::get_if<ast::List>(&expr.node)) return Visit(list->elements, frame);
  return absl::OkStatus();
}

absl::Status Walker::VisitSubscripts(const ast::Index& index, Frame* frame) {
  for (const ast::Subscript& subscript : index.subscripts) {
    if (subscript.first != nullptr) RETURN_IF_ERROR(Visit(*subscript.first, frame));
    if (subscript.second != nullptr) RETURN_IF_ERROR(Visit(*subscript.second, frame));
  }
  return absl::OkStatus();
}

// A[...] or, as an argument that should be one, anything else.
absl::Status Walker::VisitAccess(const ast::Expr& expr, Access access, Frame* frame) {
  const auto* index = std::get_if<ast::Index>(&expr.node);
  if (index == nullptr) return Visit(expr, frame);
  RETURN_IF_ERROR(VisitSubscripts(*index, frame));
  if (const auto* tensor = std::get_if<ast::Name>(&index->base->node)) {
    Touch(tensor->id,
          {access != Access::kStore, access == Access::kStore, access == Access::kAtomic}, frame);
  }
  return Visit(*index->base, frame);
}

absl::Status Walker::VisitCall(const ast::Call& call, Span span, Frame* frame) {
  if (const auto* builtin = std::get_if<ast::LanguageName>(&call.callee->node)) {
    RETURN_IF_ERROR(Visit(*call.callee, frame));
    return VisitBuiltin(builtin->path[0], call, frame);
  }
  const auto* name = std::get_if<ast::Name>(&call.callee->node);
  if (name != nullptr && frame->bound.count(name->id) == 0) {
    for (const ast::Function& callee : module_.functions) {
      if (callee.name == name->id) return VisitFunctionCall(callee, call, span, frame);
    }
  }
  if (name != nullptr) frame->usage.called_names.insert(name->id);
  const bool is_range = name != nullptr && name->id == "range";
  if (!is_range) RETURN_IF_ERROR(Visit(*call.callee, frame));
  RETURN_IF_ERROR(Visit(call.positional, frame));
  for (const ast::KeywordArgument& argument : call.keyword)
    RETURN_IF_ERROR(Visit(*argument.value, frame));
  return absl::OkStatus();
}

absl::Status Walker::VisitBuiltin(const std::string& name, const ast::Call& call, Frame* frame) {
  const Builtin* builtin = FindBuiltin(name);
  const bool is_atomic = builtin != nullptr && builtin->kind == Builtin::Kind::kAtomic;
  const bool is_store = builtin != nullptr && builtin->kind == Builtin::Kind::kStore;
  const bool is_access = is_atomic || is_store;
  const Access written = is_atomic ? Access::kAtomic : Access::kStore;
  for (size_t i = 0; i < call.positional.size(); ++i) {
    if (i == 0 && is_access) {
      RETURN_IF_ERROR(VisitAccess(*call.positional[0], written, frame));
    } else {
      RETURN_IF_ERROR(Visit(*call.positional[i], frame));
    }
  }
  for (const ast::KeywordArgument& argument : call.keyword) {
    if (is_access && argument.name == "A") {
      RETURN_IF_ERROR(VisitAccess(*argument.value, written, frame));
    } else {
      RETURN_IF_ERROR(Visit(*argument.value, frame));
    }
  }
  return absl::OkStatus();
}

// A tensor that is passed on counts by what the function does with it.
absl::Status Walker::VisitFunctionCall(const ast::Function& callee, const ast::Call& call,
                                       Span span, Frame* frame) {
  if (callee.is_kernel) {
    return source_.Error(
        span, Concat("'", callee.name, "' is a kernel, and a kernel is launched, not called"),
        "move what both need to a ph.fn");
  }
  ASSIGN_OR_RETURN(const Usage* usage, Walk(callee, span, frame->depth + 1));
  frame->usage.functions.emplace(callee.name, &callee);
  frame->usage.functions.insert(usage->functions.begin(), usage->functions.end());
  frame->usage.block_dims |= usage->block_dims;
  frame->usage.free_names.insert(usage->free_names.begin(), usage->free_names.end());
  frame->usage.free_targets.insert(usage->free_targets.begin(), usage->free_targets.end());
  frame->usage.called_names.insert(usage->called_names.begin(), usage->called_names.end());
  const auto pass = [&](const ast::Expr& argument, size_t parameter) {
    const auto* name = std::get_if<ast::Name>(&argument.node);
    if (name != nullptr && parameter < usage->params.size())
      Touch(name->id, usage->params[parameter], frame);
    return Visit(argument, frame);
  };
  for (size_t i = 0; i < call.positional.size(); ++i) RETURN_IF_ERROR(pass(*call.positional[i], i));
  for (const ast::KeywordArgument& argument : call.keyword) {
    size_t parameter = 0;
    while (parameter < callee.parameters.size() &&
           callee.parameters[parameter].name != argument.name)
      ++parameter;
    RETURN_IF_ERROR(pass(*argument.value, parameter));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Usage> UsageOf(const Source& source, const ast::Module& module,
                              const ast::Function& function) {
  Walker walker(source, module);
  ASSIGN_OR_RETURN(const Usage* usage, walker.Walk(function, function.name_span, 0));
  return *usage;
}

}  // namespace phobos::compiler::sema
