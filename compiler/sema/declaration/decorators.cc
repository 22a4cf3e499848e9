// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/declaration/decorators.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/nearest.h"

namespace phobos::compiler::sema {
namespace {

// constraint and aligned may stand more than once.
constexpr std::string_view kNames[] = {"kernel",  "autotune",   "launch",    "index_bits",
                                       "aligned", "constraint", "fast_math", "fn"};

constexpr int64_t kLargestPromise = int64_t{1} << 30;

absl::Status ReadKey(const DeclarationScope& scope, const ast::Expr& expr, Kernel* kernel) {
  const std::string usage = Concat("write key=(\"N\",): the names of extents, in a tuple");
  std::vector<const ast::Expr*> elements;
  if (std::holds_alternative<ast::StringLiteral>(expr.node)) {
    elements.push_back(&expr);  // ("N") is no tuple in Python, and means one here
  } else if (const auto* tuple = std::get_if<ast::Tuple>(&expr.node)) {
    for (const ast::ExprPtr& element : tuple->elements) elements.push_back(element.get());
  } else if (const auto* list = std::get_if<ast::List>(&expr.node)) {
    for (const ast::ExprPtr& element : list->elements) elements.push_back(element.get());
  } else {
    return scope.source.Error(expr.span, "the key is no tuple of names", usage);
  }
  for (const ast::Expr* element : elements) {
    const auto* name = std::get_if<ast::StringLiteral>(&element->node);
    if (name == nullptr)
      return scope.source.Error(element->span, "a name in the key is written in quotes", usage);
    if (std::find(kernel->key.begin(), kernel->key.end(), name->value) != kernel->key.end()) {
      return scope.source.Error(element->span, Concat("'", name->value, "' is in the key twice"),
                                "write it once");
    }
    if (FindExtent(*kernel, name->value) < 0) {
      std::string_view what = "no extent of this kernel";
      if (FindParam(*kernel, name->value) >= 0) what = "a parameter, and a key is made of extents";
      if (FindTuned(*kernel, name->value) != nullptr)
        what = "an autotuned constant, and a key is made of extents";
      if (scope.constants.Has(name->value))
        what = "a constant of the module here, and a key is made of extents";
      std::vector<std::string_view> extents;
      for (const ir::Extent& extent : kernel->extents) extents.push_back(extent.name);
      std::string all;
      for (const std::string_view extent : extents) Append(&all, all.empty() ? "" : ", ", extent);
      return scope.source.Error(
          element->span, Concat("'", name->value, "' is ", what),
          DidYouMean(name->value, extents,
                     all.empty() ? "name extents in the annotations: x: ph.tensor[ph.f32][N]"
                                 : Concat("the extents are ", all)));
    }
    kernel->key.push_back(name->value);
  }
  return absl::OkStatus();
}

absl::Status ReadKernel(const DeclarationScope& scope, const ast::Decorator& decorator,
                        Kernel* kernel) {
  static constexpr std::string_view kUsage = "kernel(key=(\"N\",), reference=f)";
  RETURN_IF_ERROR(
      scope.CheckArguments(decorator, 0, {"key", "reference", "rtol", "atol", "flush_l2"}, kUsage));
  for (const ast::KeywordArgument& argument : decorator.keyword) {
    if (argument.name == "key") RETURN_IF_ERROR(ReadKey(scope, *argument.value, kernel));
  }
  return absl::OkStatus();
}

// An int, or the name in quotes of an autotuned constant of ints; the name of a module constant
// stands for its value.
absl::StatusOr<LiteralOrTuned> IntOrName(const DeclarationScope& scope, const ast::Expr& expr,
                                         std::string_view what, const Kernel& kernel) {
  const auto* name = std::get_if<ast::StringLiteral>(&expr.node);
  if (name == nullptr) {
    if (const auto* bare = std::get_if<ast::Name>(&expr.node);
        bare != nullptr && FindTuned(kernel, bare->id) != nullptr) {
      return scope.source.Error(
          expr.span, Concat("'", bare->id, "' stands for a value only in the kernel's body"),
          Concat("write its name in quotes: \"", bare->id, "\""));
    }
    ASSIGN_OR_RETURN(const int64_t value, scope.IntArgument(expr, what));
    return value;
  }
  if (const TunedConstant* tuned = FindTuned(kernel, name->value)) {
    if (std::holds_alternative<int64_t>(tuned->choices[0])) return LiteralOrTuned(name->value);
    return scope.source.Error(
        expr.span,
        Concat(what, " is an int, and '", name->value, "' is ", KindOf(tuned->choices[0])),
        "search ints there");
  }
  if (scope.constants.Has(name->value)) {
    ASSIGN_OR_RETURN(const ConstantValue value, scope.constants.Value(name->value));
    if (const auto* number = std::get_if<int64_t>(&value)) return *number;
    return scope.source.Error(
        expr.span, Concat(what, " is an int, and '", name->value, "' is ", KindOf(value)),
        "write an int");
  }
  std::vector<std::string_view> names;
  for (const TunedConstant& constant : kernel.space) names.push_back(constant.name);
  return scope.source.Error(
      expr.span, Concat("'", name->value, "' is no autotuned constant"),
      DidYouMean(name->value, names, "write an int, or declare it in autotune"));
}

absl::Status ReadLaunch(const DeclarationScope& scope, const ast::Decorator& decorator,
                        Kernel* kernel) {
  RETURN_IF_ERROR(
      scope.CheckArguments(decorator, 1, {"min_blocks"}, "launch(256) or launch(\"THREADS\")"));
  const ast::Expr& expr = *decorator.positional[0];
  ASSIGN_OR_RETURN(kernel->threads, IntOrName(scope, expr, "the number of threads", *kernel));
  const auto* threads = std::get_if<int64_t>(&kernel->threads);
  if (threads != nullptr && (*threads < 32 || *threads > 1024 || *threads % 32 != 0)) {
    return scope.source.Error(expr.span, Concat(*threads, " threads cannot be launched"),
                              "write a multiple of 32 from 32 to 1024");
  }
  for (const ast::KeywordArgument& argument : decorator.keyword) {
    ASSIGN_OR_RETURN(kernel->min_blocks, scope.IntArgument(*argument.value, "min_blocks"));
    if (kernel->min_blocks >= 1 && kernel->min_blocks <= 32) continue;
    return scope.source.Error(argument.value->span,
                              Concat("min_blocks=", kernel->min_blocks, " is out of range"),
                              "write a number from 1 to 32");
  }
  return absl::OkStatus();
}

absl::Status ReadIndexBits(const DeclarationScope& scope, const ast::Decorator& decorator,
                           Kernel* kernel) {
  RETURN_IF_ERROR(scope.CheckArguments(decorator, 1, {},
                                       "index_bits(32), index_bits(64) or index_bits(\"BITS\")"));
  const ast::Expr& expr = *decorator.positional[0];
  ASSIGN_OR_RETURN(kernel->index_bits, IntOrName(scope, expr, "the width of an index", *kernel));
  const auto* bits = std::get_if<int64_t>(&kernel->index_bits);
  if (bits == nullptr || *bits == 32 || *bits == 64) return absl::OkStatus();
  return scope.source.Error(expr.span, Concat("an index has 32 or 64 bits, not ", *bits),
                            "write 32 or 64");
}

absl::Status ReadOnePromise(const DeclarationScope& scope, const ast::KeywordArgument& argument,
                            Kernel* kernel) {
  ASSIGN_OR_RETURN(const int64_t multiple, scope.IntArgument(*argument.value, "a promise"));
  if (multiple < 1 || multiple > kLargestPromise) {
    return scope.source.Error(argument.value->span,
                              Concat("nothing is a multiple of ", multiple, " here"),
                              "write a positive int");
  }
  if (const int extent = FindExtent(*kernel, argument.name); extent >= 0) {
    kernel->extents[extent].multiple = multiple;
    return absl::OkStatus();
  }
  const int param = FindParam(*kernel, argument.name);
  if (param < 0) {
    std::vector<std::string_view> names;
    for (const ir::Param& p : kernel->params) names.push_back(p.name);
    for (const ir::Extent& extent : kernel->extents) names.push_back(extent.name);
    return scope.source.Error(
        argument.name_span, Concat("'", argument.name, "' is neither a parameter nor an extent"),
        DidYouMean(argument.name, names, "promise something of a tensor or an extent"));
  }
  if (!kernel->params[param].is_tensor) {
    return scope.source.Error(argument.name_span,
                              Concat("'", argument.name, "' is a scalar, and has no alignment"),
                              "promise what a scalar is with ph.assume at the top of the body");
  }
  if ((multiple & (multiple - 1)) != 0) {
    return scope.source.Error(argument.value->span,
                              Concat("an address is aligned to a power of two, not to ", multiple),
                              "write 4, 8, 16 ...");
  }
  kernel->params[param].aligned_bytes = multiple;
  return absl::OkStatus();
}

absl::Status ReadAligned(const DeclarationScope& scope, const ast::Decorator& decorator,
                         std::vector<std::string_view>* promised, Kernel* kernel) {
  if (!decorator.positional.empty() || decorator.keyword.empty()) {
    const Span span = decorator.positional.empty() ? decorator.span : decorator.positional[0]->span;
    return scope.source.Error(span, "a promise names what it is about",
                              Concat("write @", scope.alias(), ".aligned(x=16, N=4)"));
  }
  for (const ast::KeywordArgument& argument : decorator.keyword) {
    if (std::find(promised->begin(), promised->end(), argument.name) != promised->end()) {
      return scope.source.Error(argument.name_span,
                                Concat("'", argument.name, "' is promised twice"),
                                "keep one of them");
    }
    promised->push_back(argument.name);
    RETURN_IF_ERROR(ReadOnePromise(scope, argument, kernel));
  }
  return absl::OkStatus();
}

}  // namespace

const ast::Decorator* FindDecorator(const ast::Function& function, std::string_view name) {
  for (const ast::Decorator& decorator : function.decorators) {
    if (decorator.name == name) return &decorator;
  }
  return nullptr;
}

absl::Status CheckDecorators(const DeclarationScope& scope, const ast::Function& function) {
  const std::vector<std::string_view> names(std::begin(kNames), std::end(kNames));
  const std::string at = Concat("@", scope.alias(), ".");
  for (const ast::Decorator& decorator : function.decorators) {
    if (std::find(names.begin(), names.end(), decorator.name) == names.end()) {
      return scope.source.Error(
          decorator.span, Concat("the language has no decorator '", decorator.name, "'"),
          DidYouMean(decorator.name, names,
                     Concat("the decorators of a kernel are kernel, autotune, launch, index_bits, "
                            "aligned, constraint and fast_math")));
    }
    const bool is_first = &decorator == FindDecorator(function, decorator.name);
    if (!is_first && decorator.name != "constraint" && decorator.name != "aligned") {
      return scope.source.Error(decorator.span, Concat(at, decorator.name, " stands here twice"),
                                "keep one of them");
    }
  }
  if (!function.is_kernel) {
    const ast::Decorator* fn = FindDecorator(function, "fn");
    const ast::Decorator& first = function.decorators[0];
    if (fn == nullptr) {
      return scope.source.Error(
          first.span, Concat("'", function.name, "' has decorators of a kernel, but is none"),
          Concat("write ", at, "kernel above them"));
    }
    if (function.decorators.size() == 1 && !fn->is_call) return absl::OkStatus();
    const ast::Decorator& other =
        &first == fn && function.decorators.size() > 1 ? function.decorators[1] : first;
    return scope.source.Error(other.span,
                              Concat("a function has ", at, "fn alone, without arguments"),
                              "remove the rest; a kernel carries the search space");
  }
  if (const ast::Decorator* fn = FindDecorator(function, "fn")) {
    return scope.source.Error(fn->span, "a function cannot be a kernel and a ph.fn",
                              "keep one of the two decorators");
  }
  if (function.decorators[0].name == "kernel") return absl::OkStatus();
  return scope.source.Error(FindDecorator(function, "kernel")->span,
                            Concat(at, "kernel stands below another decorator"),
                            "move it to the top: it is the outermost");
}

absl::Status ReadDecorators(const DeclarationScope& scope, Kernel* kernel) {
  std::vector<std::string_view> promised;
  for (const ast::Decorator& decorator : kernel->function->decorators) {
    if (decorator.name == "kernel") {
      RETURN_IF_ERROR(ReadKernel(scope, decorator, kernel));
    } else if (decorator.name == "launch") {
      RETURN_IF_ERROR(ReadLaunch(scope, decorator, kernel));
    } else if (decorator.name == "index_bits") {
      RETURN_IF_ERROR(ReadIndexBits(scope, decorator, kernel));
    } else if (decorator.name == "aligned") {
      RETURN_IF_ERROR(ReadAligned(scope, decorator, &promised, kernel));
    } else if (decorator.name == "fast_math") {
      RETURN_IF_ERROR(scope.CheckArguments(decorator, 0, {}, "fast_math"));
      kernel->fast_math = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace phobos::compiler::sema
