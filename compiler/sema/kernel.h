// SPDX-License-Identifier: Apache-2.0
//
// A kernel as its decorators and signature declare it: parameters, extents, key, search space,
// promises, conditions; nothing of its body but which parameters it reads and writes. What
// --describe prints and what Lower (lower.h) starts from. Immutable once analyzed, any thread;
// points into the Module it came from, which must outlive it.
#ifndef PHOBOS_COMPILER_SEMA_KERNEL_H_
#define PHOBOS_COMPILER_SEMA_KERNEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/ir/ir.h"
#include "compiler/syntax/ast.h"
#include "compiler/syntax/source.h"

namespace phobos::compiler::sema {

// The value of a module constant or of an autotuned constant. Exact: ints are int64, floats double.
using ConstantValue = std::variant<int64_t, double, bool, std::string>;

// As it is written in a message or in canonical text: 256, 0.5, True, "tf32".
std::string ToString(const ConstantValue& value);

struct NamedConstant {
  std::string name;
  ConstantValue value;
  Span span;
};

// One autotuned constant with its choices in search order (a doubling range is expanded already).
struct TunedConstant {
  std::string name;
  std::vector<ConstantValue> choices;
  Span span;
};

// The choice of each autotuned constant, in declaration order.
using Settings = std::vector<std::pair<std::string, ConstantValue>>;

// @ph.launch and @ph.index_bits take a literal or the name of an autotuned constant.
using LiteralOrTuned = std::variant<int64_t, std::string>;

struct Condition {
  std::string text;  // canonical; the grid is grid_x, grid_y, grid_z in it
  std::shared_ptr<const ast::Expr> expr;
  int32_t line = 0;
  bool is_assumption = false;   // ph.assume; else @ph.constraint
  bool only_constants = false;  // decidable without extents
};

struct Kernel {
  const ast::Function* function = nullptr;
  std::string name;
  std::vector<ir::Param> params;         // is_read, is_written by a walk over the body
  std::vector<ir::Extent> extents;       // in order of first appearance, with promises
  std::vector<std::string> key;          // names of extents
  std::vector<NamedConstant> constants;  // module constants that the kernel or its functions use
  std::vector<TunedConstant> space;      // in declaration order
  int64_t variant_limit = 4096;
  LiteralOrTuned threads = int64_t{256};
  int64_t min_blocks = 0;
  LiteralOrTuned index_bits = int64_t{32};
  std::vector<Condition> conditions;
  bool fast_math = false;
  int32_t grid_dims_used = 1;  // bit 0 x, 1 y, 2 z
  std::string canonical_source;

  int64_t variant_count() const;
  // REQUIRES: 0 <= index < variant_count(). The last constant varies fastest.
  Settings VariantSettings(int64_t index) const;
};

// A kernel that cannot be used, also for what is wrong with a function that it calls; or a ph.fn
// that cannot.
struct WrongFunction {
  std::string name;  // empty: not even that could be read
  bool is_kernel = false;
  absl::Status error;  // Source::Error's
};

// Both in the order of the text. What is wrong with one is no fault of another; of two functions of
// one name the later one is wrong.
struct Analysis {
  std::vector<Kernel> kernels;
  std::vector<WrongFunction> wrong;
};

// The kernels of a file, with everything checked that does not depend on settings. Errors:
// Source::Error for a file without a kernel, which shows how one is written.
absl::StatusOr<Analysis> AnalyzeModule(const Source& source, const ast::Module& module);

// Why `settings` are left out of the space: a false constraint over constants, threads out of
// range. Empty: they are in.
std::string ExcludedReason(const Kernel& kernel, const Settings& settings);

int64_t ThreadsFor(const Kernel& kernel, const Settings& settings);
int64_t IndexBitsFor(const Kernel& kernel, const Settings& settings);

}  // namespace phobos::compiler::sema

#endif  // PHOBOS_COMPILER_SEMA_KERNEL_H_
