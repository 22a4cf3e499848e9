// SPDX-License-Identifier: Apache-2.0
//
// Tunes kernel KERNEL of FILE on a card through the daemon, from arrays in the host's memory, and
// prints what came of it:
//
//     tune_on_card FILE KERNEL N CARD [force]
//
// x, y and out are f32 of N elements; the reference is out = x + y, or x += y for `accumulate`.
// Lines: "error TEXT"; "winner SETTINGS"; "result", "state" and "split" with NAME=VALUE ...; one
// "variant SETTINGS STATUS BEST_NS REGISTERS REASON" a variant.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "client/cpp/kernel.h"
#include "client/stub/wire/words.h"

namespace {

std::string Text(const std::vector<phobos::Constant>& settings) {
  std::string text;
  for (const phobos::Constant& setting : settings) {
    const int64_t* value = std::get_if<int64_t>(&setting.value);
    text += (text.empty() ? "" : ",") + setting.name + "=" +
            std::to_string(value == nullptr ? 0 : *value);
  }
  return text.empty() ? "-" : text;
}

void Show(const std::vector<phobos::VariantResult>& variants) {
  for (const phobos::VariantResult& variant : variants) {
    std::string reason = variant.reason;
    for (char& c : reason) c = c == '\n' ? ' ' : c;
    std::printf("variant %s %s %lld %d %s\n", Text(variant.settings).c_str(),
                phobos::stub::Word(variant.status).c_str(), static_cast<long long>(variant.best_ns),
                variant.registers, reason.c_str());
  }
}

phobos::Status Sum(phobos::ReferenceArguments& arguments, const char* out) {
  const auto x = arguments.Tensor<float>("x"), y = arguments.Tensor<float>("y");
  std::vector<float> sum(x.size());
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = x[i] + y[i];
  return arguments.Set<float>(out, sum);
}

int Run(char** argv, bool force) {
  std::ifstream file(argv[1]);
  phobos::KernelOptions options;
  options.source.assign(std::istreambuf_iterator<char>(file), {});
  options.file_name = argv[1];
  options.name = argv[2];
  options.device_uuid = argv[4];
  const bool in_place = options.name == "accumulate";
  options.reference = [in_place](phobos::ReferenceArguments& arguments) {
    return Sum(arguments, in_place ? "x" : "out");
  };
  const int64_t n = std::atoll(argv[3]);
  const auto kernel = phobos::Kernel::Open(phobos::Client::Open(), std::move(options));
  if (!kernel.ok()) return std::printf("error %s\n", kernel.status().message().c_str()), 1;

  std::vector<float> x(static_cast<size_t>(n)), y(x.size()), out(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 1000), y[i] = 0.5f;
  std::vector<phobos::Argument> arguments = {phobos::Argument::Tensor(x.data(), {n}),
                                             phobos::Argument::Tensor(y.data(), {n})};
  if (!in_place) arguments.push_back(phobos::Argument::Tensor(out.data(), {n}));
  const phobos::GridFunction blocks = [](const phobos::Meta& meta) {
    return phobos::Grid{(meta["N"] + meta["BLOCK"] - 1) / meta["BLOCK"], 1, 1};
  };
  phobos::TuneCall call;
  call.force = force;
  const auto tuned = (*kernel)->Tune(arguments, blocks, call);
  if (!tuned.ok()) {
    std::printf("error %s\n", tuned.status().message().c_str());
    if (tuned.status().detail() != nullptr) Show(tuned.status().detail()->variants);
  }
  // What is stored, whether or not this process can load it.
  const auto result = (*kernel)->plans().CurrentResult({n});
  if (!result.ok() || !result->has_value()) return 1;
  const phobos::Result& stored = **result;
  std::printf("winner %s\n", Text(stored.winner_settings).c_str());
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  std::printf("result rounds=%d repeated=%d warm_up_launches=%d contended=%d generation=%lld\n",
              stored.rounds, stored.repeated_rounds, stored.warm_up_launches,
              stored.contended ? 1 : 0, number(stored.generation));
  std::printf("state clock=%d/%d temperature=%d/%d power=%d/%d floor=%lld resolution=%lld\n",
              stored.state_before.sm_clock_mhz, stored.state_after.sm_clock_mhz,
              stored.state_before.temperature_c, stored.state_after.temperature_c,
              stored.state_before.power_mw, stored.state_after.power_mw,
              number(stored.timer_floor_ns), number(stored.timer_resolution_ns));
  std::printf("split check=%lld warm_up=%lld timing=%lld compile=%lld total=%lld us\n",
              number(stored.split.check_ns / 1000), number(stored.split.warm_up_ns / 1000),
              number(stored.split.timing_ns / 1000), number(stored.split.compile_ns / 1000),
              number(stored.split.total_ns / 1000));
  Show(stored.variants);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return std::fprintf(stderr, "tune_on_card FILE KERNEL N CARD [force]\n"), 2;
  return Run(argv, argc > 5 && std::strcmp(argv[5], "force") == 0);
}
