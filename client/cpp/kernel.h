// SPDX-License-Identifier: Apache-2.0
//
// Kernel: what a C++ program launches and tunes: one kernel of a source text, with its reference
// and the options of its tunes. The first launch at a new key tunes where there is a reference
// (plan_source.h has the rules of PHOBOS_TUNE); later ones cost well under a microsecond more than
// the kernel. Any thread; a forked child may go on using it.
#ifndef PHOBOS_CLIENT_CPP_KERNEL_H_
#define PHOBOS_CLIENT_CPP_KERNEL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/cpp/argument.h"
#include "client/cpp/client.h"
#include "client/cpp/plan/plan.h"
#include "client/cpp/plan_source.h"
#include "client/cpp/tune/tune.h"
#include "client/launch/status.h"
#include "client/stub/wire/types.h"

namespace phobos {

// What a grid function reads: the values of a variant's constants and of the extents.
class Meta {
 public:
  Meta(const std::vector<Constant>& settings, const std::vector<std::string>& extent_names,
       const std::vector<int64_t>& extents)
      : settings_(settings), extent_names_(extent_names), extents_(extents) {}

  // An integer (a bool is 0 or 1). A name that is none gives 0 and fails the launch.
  int64_t operator[](std::string_view name) const;
  const std::vector<Constant>& settings() const { return settings_; }
  // The first name asked for that is none; empty: all were.
  const std::string& unknown() const { return unknown_; }

 private:
  const std::vector<Constant>& settings_;
  const std::vector<std::string>& extent_names_;
  const std::vector<int64_t>& extents_;
  mutable std::string unknown_;
};

// How many blocks a variant needs. Called at every launch.
using GridFunction = std::function<Grid(const Meta& meta)>;

// What a reference reads and answers; see ReferenceCall. T must be the parameter's type.
class ReferenceArguments {
 public:
  explicit ReferenceArguments(ReferenceCall& call) : call_(call) {}

  // A copy of a tensor that the reference may change; empty: no such tensor of this type.
  template <typename T>
  std::span<T> Tensor(std::string_view name) const {
    const Found found = Find(name, DTypeOf<T>(), /*is_tensor=*/true);
    return {static_cast<T*>(found.address), found.count};
  }
  // A scalar; 0: no such scalar of this type.
  template <typename T>
  T Scalar(std::string_view name) const {
    const Found found = Find(name, DTypeOf<T>(), /*is_tensor=*/false);
    return found.address == nullptr ? T() : *static_cast<const T*>(found.address);
  }
  // An extent's value; 0: no such extent.
  int64_t Extent(std::string_view name) const;

  // The answer for one tensor that the kernel writes; all of them must be given.
  template <typename T>
  Status Set(std::string_view name, std::span<const T> values) {
    return call_.Set(name, values.data(), values.size_bytes());
  }

 private:
  struct Found {
    void* address = nullptr;
    size_t count = 0;  // elements
  };
  Found Find(std::string_view name, DType dtype, bool is_tensor) const;

  ReferenceCall& call_;
};

using Reference = std::function<Status(ReferenceArguments& arguments)>;

struct KernelOptions {
  std::string source;       // the whole file's text
  std::string file_name;    // for messages
  std::string name;         // of the kernel in it
  std::string device_uuid;  // "GPU-...", as nvidia-smi shows it; empty: the host chip
  Reference reference;      // empty: launches take first choices until Tune ran
  std::optional<double> rtol;
  std::optional<double> atol;
  bool flush_l2 = true;
  std::string policy;  // "auto", "frozen", "off"; empty: $PHOBOS_TUNE, else auto
};

// What a call of Tune may change.
struct TuneCall {
  Reference reference;  // empty: the kernel's
  std::optional<double> rtol;
  std::optional<double> atol;
  std::optional<bool> flush_l2;
  TieBreak tie_break = TieBreak::kUnspecified;
  bool force = false;
  TuneTimeouts timeouts;
  void* stream = nullptr;  // of a GPU: the CUstream on which the arguments were written
  std::function<bool(const TuneProgress& progress)> progress;  // true: cancel
};

class Kernel {
 public:
  // Asks nobody: an error in the text shows at the first call below. InvalidArgument: not UTF-8,
  // too long.
  static StatusOr<std::unique_ptr<Kernel>> Open(std::shared_ptr<Client> client,
                                                KernelOptions options);

  // Runs the kernel: on the host chip it is done on return; on a GPU it is queued on `stream` (a
  // CUstream; null: the default one) in the thread's current context, or the card's primary one
  // where none of this card is current. InvalidArgument: arguments that are not the kernel's, are
  // elsewhere than on the card, or break a promise; else why no variant could be had (Prepare in
  // plan_source.h) or launched (Plan::Launch).
  Status Launch(std::span<const Argument> arguments, const GridFunction& grid,
                void* stream = nullptr);
  Status Launch(std::initializer_list<Argument> arguments, const GridFunction& grid,
                void* stream = nullptr) {
    return Launch(std::span<const Argument>(arguments.begin(), arguments.size()), grid, stream);
  }

  // Tunes at these arguments, as PlanSource::Tune. The arguments are only read.
  StatusOr<Result> Tune(std::span<const Argument> arguments, const GridFunction& grid,
                        const TuneCall& call = {});
  StatusOr<Result> Tune(std::initializer_list<Argument> arguments, const GridFunction& grid,
                        const TuneCall& call = {}) {
    return Tune(std::span<const Argument>(arguments.begin(), arguments.size()), grid, call);
  }

  // What plans are made from, for all that is not here.
  PlanSource& plans() {
    last_.store(nullptr);  // it may get another winner there
    return *plans_;
  }

 private:
  Kernel(std::shared_ptr<PlanSource> plans, KernelOptions options)
      : plans_(std::move(plans)), options_(std::move(options)) {}

  // Arguments as the kernel sees them.
  struct Bound {
    std::vector<int64_t> extents;
    std::vector<uint64_t> values;
  };
  // What the last launch took: the next one with arguments of the same types and shapes asks for
  // nothing.
  struct Last {
    Description description;
    std::vector<int64_t> extents;
    std::vector<Argument> arguments;  // their addresses and values are not looked at
    std::shared_ptr<const Plan> plan;

    bool Fits(std::span<const Argument> others) const;
  };
  Status LaunchAnew(std::span<const Argument> arguments, const GridFunction& grid, void* stream);
  static StatusOr<Plan::Outcome> LaunchPlan(const Plan& plan, const Description& description,
                                            const std::vector<int64_t>& extents,
                                            const uint64_t* values, const GridFunction& grid,
                                            void* stream);
  static StatusOr<Bound> Bind(const KernelDescription& description,
                              std::span<const Argument> arguments);
  StatusOr<TuneRequest> RequestFor(const Description& description, const Bound& bound,
                                   const GridFunction& grid, const Reference& reference,
                                   void* stream) const;
  static StatusOr<Grid> GridOf(const GridFunction& grid, const Meta& meta);

  const std::shared_ptr<PlanSource> plans_;
  const KernelOptions options_;
  std::atomic<std::shared_ptr<const Last>> last_;
};

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_KERNEL_H_
