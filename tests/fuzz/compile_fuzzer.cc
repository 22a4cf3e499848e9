// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a kernel's file, the whole way: what the front end takes is checked for races and
// compiled for a chip of either kind, the first variant of each kernel. Everything ends, without a
// crash, and no error is the compiler's own fault.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/main/backend.h"
#include "compiler/race/race.h"
#include "compiler/sema/kernel.h"
#include "compiler/sema/lower.h"
#include "compiler/syntax/parser.h"
#include "compiler/syntax/source.h"
#include "tests/fuzz/piece_mutator.h"

namespace phobos::compiler {
namespace {

constexpr const char* kChips[] = {"x86-64-v3", "sm_90"};

void Expect(const absl::Status& status) {
  if (status.code() != absl::StatusCode::kInternal) return;
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  std::abort();
}

void CompileFor(const std::string& chip_name, const ir::Function& function) {
  const absl::StatusOr<Chip> chip = ResolveChip(chip_name);
  Expect(chip.status());
  Expect(GenerateCode(function, *chip).status());
}

void CompileAll(const std::string& text) {
  const Source source("k.py", text);
  const absl::StatusOr<ast::Module> module = Parse(source);
  if (!module.ok()) return;
  const absl::StatusOr<sema::Analysis> analysis = sema::AnalyzeModule(source, *module);
  if (!analysis.ok()) return;
  for (const sema::Kernel& kernel : analysis->kernels) {
    const absl::StatusOr<ir::Function> function =
        sema::Lower(source, *module, kernel, kernel.VariantSettings(0));
    Expect(function.status());
    if (!function.ok()) continue;
    (void)race::Check(*function);
    for (const char* chip : kChips) CompileFor(chip, *function);
  }
}

}  // namespace
}  // namespace phobos::compiler

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  phobos::compiler::CompileAll(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text = phobos::compiler::MutatePieces(
      std::string(reinterpret_cast<const char*>(data), size), seed / 8);
  if (text.size() > max_size) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
