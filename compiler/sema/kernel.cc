// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/kernel.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/concat.h"
#include "base/status_macros.h"
#include "compiler/sema/declaration/canonical.h"
#include "compiler/sema/declaration/condition.h"
#include "compiler/sema/declaration/constants.h"
#include "compiler/sema/declaration/decorators.h"
#include "compiler/sema/declaration/scope.h"
#include "compiler/sema/declaration/signature.h"
#include "compiler/sema/declaration/usage.h"
#include "compiler/sema/language.h"
#include "compiler/sema/nearest.h"

namespace phobos::compiler::sema {
namespace {

// What is wrong with functions of the file, by name: the first fault of each.
using Faults = std::map<std::string, absl::Status, std::less<>>;

// Python's functions that people reach for, and what the language has instead.
struct Instead {
  std::string_view name;
  std::string_view remedy;
};
constexpr Instead kInstead[] = {
    {"min", "write ph.minimum(a, b), or ph.min(t) to reduce a tile"},
    {"max", "write ph.maximum(a, b), or ph.max(t) to reduce a tile"},
    {"abs", "write ph.abs(x)"},
    {"round", "write ph.round(x)"},
    {"sum", "write ph.sum(t)"},
    {"pow", "write ph.pow(a, b), or a ** 2"},
    {"print", "write ph.print(...)"},
    {"len", "use the extent's name, or ph.extent(A, 0)"},
    {"int", "write ph.cast(x, ph.i32)"},
    {"float", "write ph.cast(x, ph.f32)"},
    {"bool", "write x != 0"},
    {"np", "the language has its own functions: ph.exp, ph.sqrt, ..."},
    {"math", "the language has its own functions: ph.exp, ph.sqrt, ..."},
    {"torch", "the language has its own functions: ph.exp, ph.sqrt, ..."},
};

std::vector<std::string_view> NamesInSight(const DeclarationScope& scope, const Kernel& kernel,
                                           const Usage& usage) {
  std::vector<std::string_view> names = scope.constants.Names();
  for (const TunedConstant& constant : kernel.space) names.push_back(constant.name);
  for (const ir::Extent& extent : kernel.extents) names.push_back(extent.name);
  for (const ir::Param& param : kernel.params) names.push_back(param.name);
  for (const ast::Function& function : scope.module.functions) {
    if (!function.is_kernel) names.push_back(function.name);
  }
  names.insert(names.end(), usage.bound_names.begin(), usage.bound_names.end());
  return names;
}

absl::Status UnknownName(const DeclarationScope& scope, const Kernel& kernel, const Usage& usage,
                         const std::string& name, Span span) {
  for (const Instead& instead : kInstead) {
    if (instead.name != name) continue;
    return scope.source.Error(span, Concat("'", name, "' is not part of the language"),
                              instead.remedy);
  }
  if (const std::string why = scope.constants.WhyNot(name); !why.empty()) {
    return scope.source.Error(span, Concat("'", name, "' has no value in a kernel: ", why),
                              "a kernel uses its parameters, the language, ph.fn functions, and "
                              "names bound once at module level to a literal");
  }
  const std::string what = Concat("'", name, "' is not defined");
  if (IsLanguageName(name)) {
    return scope.source.Error(span, what, Concat("write ", scope.alias(), ".", name));
  }
  const std::string otherwise =
      usage.called_names.count(name) > 0
          ? Concat(
                "a function that a kernel calls stands in the same file, of a notebook in the "
                "same cell, under @",
                scope.alias(), ".fn")
          : Concat("bind it before: ", name, ": ", scope.alias(), ".let = ...");
  return scope.source.Error(span, what,
                            DidYouMean(name, NamesInSight(scope, kernel, usage), otherwise));
}

// Every name that the body needs is the kernel's own, a function, or a constant of the module.
absl::Status CheckNames(const DeclarationScope& scope, const Faults& faults, const Usage& usage,
                        const Kernel& kernel) {
  std::set<std::string_view> functions;
  for (const ast::Function& function : scope.module.functions) functions.insert(function.name);
  // The first one in the text is the one to show.
  const std::pair<const std::string, Span>* unknown = nullptr;
  for (const auto& entry : usage.free_names) {
    const std::string& name = entry.first;
    const bool is_own = FindTuned(kernel, name) != nullptr || FindExtent(kernel, name) >= 0 ||
                        FindParam(kernel, name) >= 0;
    if (is_own || functions.count(name) > 0 || scope.constants.Has(name)) continue;
    if (const auto fault = faults.find(name); fault != faults.end()) return fault->second;
    if (unknown == nullptr || entry.second.begin < unknown->second.begin) unknown = &entry;
  }
  if (unknown == nullptr) return absl::OkStatus();
  const auto target = usage.free_targets.find(unknown->first);
  const bool is_target =
      target != usage.free_targets.end() && target->second.begin == unknown->second.begin;
  if (!is_target) return UnknownName(scope, kernel, usage, unknown->first, unknown->second);
  return scope.source.Error(
      target->second, Concat("'", unknown->first, "' is not declared"),
      DidYouMean(unknown->first, NamesInSight(scope, kernel, usage),
                 Concat("declare it first: ", unknown->first, ": ", scope.alias(), ".var = ...")));
}

// Names in the text of a condition.
void CollectNames(const ast::Expr& expr, std::set<std::string>* names) {
  const auto all = [&](const std::vector<ast::ExprPtr>& list) {
    for (const ast::ExprPtr& element : list) CollectNames(*element, names);
  };
  if (const auto* name = std::get_if<ast::Name>(&expr.node)) names->insert(name->id);
  if (const auto* unary = std::get_if<ast::Unary>(&expr.node)) CollectNames(*unary->operand, names);
  if (const auto* compare = std::get_if<ast::Compare>(&expr.node)) all(compare->operands);
  if (const auto* call = std::get_if<ast::Call>(&expr.node)) all(call->positional);
  if (const auto* binary = std::get_if<ast::Binary>(&expr.node)) {
    CollectNames(*binary->left, names);
    CollectNames(*binary->right, names);
  }
  if (const auto* choice = std::get_if<ast::Conditional>(&expr.node)) {
    CollectNames(*choice->condition, names);
    CollectNames(*choice->then, names);
    CollectNames(*choice->otherwise, names);
  }
}

// The module constants that the body, its functions and the conditions name, by name.
absl::Status ReadConstants(const DeclarationScope& scope, const Usage& usage, Kernel* kernel) {
  std::set<std::string> names;
  for (const auto& [name, span] : usage.free_names) names.insert(name);
  for (const Condition& condition : kernel->conditions) CollectNames(*condition.expr, &names);
  for (const std::string& name : names) {
    if (!scope.constants.Has(name)) continue;
    ASSIGN_OR_RETURN(ConstantValue value, scope.constants.Value(name));
    kernel->constants.push_back({name, std::move(value), scope.constants.Place(name)});
  }
  return absl::OkStatus();
}

void ReadUses(const Usage& usage, Kernel* kernel) {
  bool stores = false;
  bool has_atomics = false;
  for (size_t i = 0; i < kernel->params.size(); ++i) {
    ir::Param& param = kernel->params[i];
    if (!param.is_tensor) continue;
    param.is_read = usage.params[i].is_read;
    param.is_written = usage.params[i].is_stored || usage.params[i].is_atomic;
    stores |= usage.params[i].is_stored;
    has_atomics |= usage.params[i].is_atomic;
  }
  // Blocks that only add atomically do not disturb each other, however many there are.
  kernel->grid_dims_used = has_atomics && !stores ? 7 : usage.block_dims;
}

absl::Status RefuseLateAssumptions(const DeclarationScope& scope, const ast::Block& block,
                                   bool may_stand) {
  for (const ast::Stmt& statement : block) {
    if (IsAssumption(statement)) {
      if (may_stand) continue;
      return scope.source.Error(statement.span,
                                "an assumption stands at the top of a kernel's body",
                                "move it above the first other statement");
    }
    may_stand = false;
    const auto inside = [&](const ast::Block& body) {
      return RefuseLateAssumptions(scope, body, false);
    };
    if (const auto* loop = std::get_if<ast::For>(&statement.node))
      RETURN_IF_ERROR(inside(loop->body));
    if (const auto* loop = std::get_if<ast::While>(&statement.node))
      RETURN_IF_ERROR(inside(loop->body));
    if (const auto* branch = std::get_if<ast::If>(&statement.node)) {
      RETURN_IF_ERROR(inside(branch->then));
      RETURN_IF_ERROR(inside(branch->otherwise));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Kernel> AnalyzeKernel(const DeclarationScope& scope, const Faults& faults,
                                     const ast::Function& function) {
  Kernel kernel;
  kernel.function = &function;
  kernel.name = function.name;
  if (const ast::Decorator* autotune = FindDecorator(function, "autotune")) {
    RETURN_IF_ERROR(ReadSpace(scope, *autotune, &kernel));
  }
  RETURN_IF_ERROR(ReadSignature(scope, &kernel));
  RETURN_IF_ERROR(ReadDecorators(scope, &kernel));
  for (const ast::Decorator& decorator : function.decorators) {
    if (decorator.name == "constraint") RETURN_IF_ERROR(ReadConstraints(scope, decorator, &kernel));
  }
  RETURN_IF_ERROR(ReadAssumptions(scope, &kernel));
  RETURN_IF_ERROR(RefuseLateAssumptions(scope, function.body, true));
  ASSIGN_OR_RETURN(const Usage usage, UsageOf(scope.source, scope.module, function));
  RETURN_IF_ERROR(CheckNames(scope, faults, usage, kernel));
  for (const auto& [name, used] : usage.functions) {
    if (const auto fault = faults.find(name); fault != faults.end()) return fault->second;
    RETURN_IF_ERROR(RefuseLateAssumptions(scope, used->body, false));
  }
  RETURN_IF_ERROR(ReadConstants(scope, usage, &kernel));
  ReadUses(usage, &kernel);
  kernel.canonical_source = CanonicalSource(kernel, usage);
  return kernel;
}

// `first` is the first function of this name.
absl::Status CheckFunction(const DeclarationScope& scope, const ast::Function& function,
                           const ast::Function& first) {
  RETURN_IF_ERROR(CheckDecorators(scope, function));
  RETURN_IF_ERROR(scope.CheckNotReserved(function.name, function.name_span));
  if (&first == &function) return absl::OkStatus();
  return scope.source.Error(function.name_span,
                            Concat("'", function.name, "' is defined twice (line ",
                                   scope.source.Line(first.name_span.begin), ")"),
                            "give one of them another name");
}

absl::Status NoKernel(const Source& source, const ast::Module& module) {
  if (module.nested_kernel.begin != module.nested_kernel.end) {
    return source.Error(module.nested_kernel, "a kernel inside a block is not read",
                        "move it to the top level of the file");
  }
  if (module.aliases.empty() && module.bare_import.begin != module.bare_import.end) {
    return source.Error(module.bare_import, "this import gives the language no name of its own",
                        "write `import phobos.lang as ph`, and `ph.` before each of its names: "
                        "@ph.kernel, ph.f32");
  }
  const std::string_view problem = module.aliases.empty()
                                       ? "this file does not import the language under a name of "
                                         "its own (an import in another file does not count)"
                                       : "this file has no kernel";
  return source.Error({0, 0}, problem,
                      "a kernel is written like this:\n"
                      "    import phobos.lang as ph\n\n"
                      "    @ph.kernel(key=(\"N\",))\n"
                      "    @ph.autotune(BLOCK=[256, 4096])\n"
                      "    def double(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):\n"
                      "        base: ph.let = ph.ctx.block.x * BLOCK\n"
                      "        out[base:+BLOCK] = 2.0 * x[base:+BLOCK]");
}

// The value of a constant of a variant. REQUIRES: it is an int.
int64_t IntSetting(const LiteralOrTuned& value, const Settings& settings) {
  if (const auto* literal = std::get_if<int64_t>(&value)) return *literal;
  for (const auto& [name, setting] : settings) {
    if (name == std::get<std::string>(value)) return std::get<int64_t>(setting);
  }
  return 0;
}

std::string Show(const Settings& settings) {
  std::string out;
  for (const auto& [name, value] : settings)
    Append(&out, out.empty() ? "" : ", ", name, "=", ToString(value));
  return out;
}

// Why a condition over constants leaves `settings` out; empty when it holds.
std::string BrokenBy(const Kernel& kernel, const Condition& condition, const Settings& settings) {
  const auto lookup = [&](const std::string& name,
                          Span span) -> std::variant<ConstantValue, ConstantError> {
    for (const auto& [setting, value] : settings) {
      if (setting == name) return value;
    }
    for (const NamedConstant& constant : kernel.constants) {
      if (constant.name == name) return constant.value;
    }
    return ConstantError{span, Concat("'", name, "' has no value"), ""};
  };
  const std::variant<ConstantValue, ConstantError> value = Evaluate(*condition.expr, lookup);
  const std::string what = Concat(condition.is_assumption ? "ph.assume(" : "@ph.constraint(",
                                  condition.text, ") at line ", condition.line);
  if (const auto* error = std::get_if<ConstantError>(&value)) {
    return Concat(what, " cannot be computed for ", Show(settings), ": ", error->problem);
  }
  return IsTrue(std::get<ConstantValue>(value)) ? ""
                                                : Concat(what, " does not hold: ", Show(settings));
}

}  // namespace

int64_t Kernel::variant_count() const {
  int64_t count = 1;
  for (const TunedConstant& constant : space)
    count *= static_cast<int64_t>(constant.choices.size());
  return count;
}

Settings Kernel::VariantSettings(int64_t index) const {
  Settings settings;
  for (auto constant = space.rbegin(); constant != space.rend(); ++constant) {
    const int64_t choices = static_cast<int64_t>(constant->choices.size());
    settings.emplace_back(constant->name, constant->choices[index % choices]);
    index /= choices;
  }
  std::reverse(settings.begin(), settings.end());
  return settings;
}

absl::StatusOr<Analysis> AnalyzeModule(const Source& source, const ast::Module& module) {
  const auto is_kernel = [](const auto& function) { return function.is_kernel; };
  const bool has_kernel =
      std::any_of(module.functions.begin(), module.functions.end(), is_kernel) ||
      std::any_of(module.broken.begin(), module.broken.end(), is_kernel);
  if (module.functions.empty() && module.broken.empty()) return NoKernel(source, module);
  const ModuleConstants constants(source, module);
  const DeclarationScope scope{source, module, constants};
  Faults faults;
  for (const ast::BrokenFunction& broken : module.broken) faults.emplace(broken.name, broken.error);
  std::map<std::string_view, const ast::Function*> first;
  std::vector<absl::Status> checks;  // of module.functions
  for (const ast::Function& function : module.functions) {
    first.emplace(function.name, &function);
    checks.push_back(CheckFunction(scope, function, *first[function.name]));
    if (!checks.back().ok()) faults.emplace(function.name, checks.back());
  }
  if (!has_kernel && faults.empty()) return NoKernel(source, module);
  Analysis analysis;
  auto broken = module.broken.begin();
  const auto take_broken_before = [&](int32_t offset) {
    for (; broken != module.broken.end() && broken->begin < offset; ++broken) {
      analysis.wrong.push_back({broken->name, broken->is_kernel, broken->error});
    }
  };
  for (size_t i = 0; i < checks.size(); ++i) {
    const ast::Function& function = module.functions[i];
    take_broken_before(function.span.begin);
    absl::Status error = checks[i];
    if (error.ok() && function.is_kernel) {
      absl::StatusOr<Kernel> kernel = AnalyzeKernel(scope, faults, function);
      error = kernel.status();
      if (kernel.ok()) analysis.kernels.push_back(*std::move(kernel));
    }
    if (!error.ok()) analysis.wrong.push_back({function.name, function.is_kernel, error});
  }
  take_broken_before(std::numeric_limits<int32_t>::max());
  return analysis;
}

std::string ExcludedReason(const Kernel& kernel, const Settings& settings) {
  for (const Condition& condition : kernel.conditions) {
    if (!condition.only_constants) continue;
    const std::string reason = BrokenBy(kernel, condition, settings);
    if (!reason.empty()) return reason;
  }
  const int64_t threads = ThreadsFor(kernel, settings);
  if (threads < 32 || threads > 1024 || threads % 32 != 0) {
    return Concat(threads, " threads cannot be launched: a multiple of 32 from 32 to 1024 can");
  }
  const int64_t bits = IndexBitsFor(kernel, settings);
  if (bits != 32 && bits != 64)
    return Concat("an index of ", bits, " bits: 32 and 64 are possible");
  return "";
}

int64_t ThreadsFor(const Kernel& kernel, const Settings& settings) {
  return IntSetting(kernel.threads, settings);
}

int64_t IndexBitsFor(const Kernel& kernel, const Settings& settings) {
  return IntSetting(kernel.index_bits, settings);
}

}  // namespace phobos::compiler::sema
