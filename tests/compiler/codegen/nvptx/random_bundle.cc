// SPDX-License-Identifier: Apache-2.0
//
// Writes random kernels for a machine with a GPU, tests/gpu/ptx/run_random.py reads them:
//
//   random_bundle FILE FIRST_SEED COUNT
//
// COUNT kernels, of as many seeds as it takes: those that need more shared memory than a block has,
// or an operation that NVIDIA chips do not have yet, are left out. A launch is one block, for the
// blocks of these kernels have one result only if they run one after the other. Each is a line of
// JSON, then its PTX, then each tensor before and after its launch as the interpreter does it.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "compiler/codegen/nvptx/nvptx.h"
#include "compiler/codegen/nvptx/plan/plan.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/passes/pipeline.h"
#include "tests/compiler/codegen/random/random_kernel.h"

namespace phobos::compiler::testing {
namespace {

constexpr std::array<int32_t, 4> kThreads = {32, 96, 128, 256};

std::string BytesOf(ir::DType dtype, const interpreter::Argument& argument) {
  const auto bytes = static_cast<size_t>(ir::ByteSize(dtype));
  std::string text(argument.elements.size() * bytes, '\0');
  for (size_t i = 0; i < argument.elements.size(); ++i) {
    std::memcpy(text.data() + i * bytes, &argument.elements[i], bytes);
  }
  return text;
}

std::string ParameterText(const RandomKernel& kernel, size_t p) {
  const ir::Param& param = kernel.function.params[p];
  const interpreter::Argument& argument = kernel.launch.arguments[p];
  std::string text = absl::StrCat("{\"name\":\"", param.name, "\",\"dtype\":\"",
                                  absl::AsciiStrToUpper(std::string(ir::Name(param.dtype))), "\"");
  if (param.is_tensor) {
    absl::StrAppend(&text, ",\"elements\":", argument.elements.size(),
                    ",\"aligned_bytes\":", param.aligned_bytes,
                    ",\"ulps\":", p < kernel.ulps.size() ? kernel.ulps[p] : 0);
  } else {
    uint64_t bits = 0;
    std::memcpy(&bits, &argument.elements[0], static_cast<size_t>(ir::ByteSize(param.dtype)));
    absl::StrAppend(&text, ",\"bits\":", bits);
  }
  return text + "}";
}

// Unimplemented and ResourceExhausted as nvptx::Compile.
absl::StatusOr<std::string> RecordOf(uint64_t seed, const nvptx::Chip& chip) {
  RandomKernel kernel = MakeRandomKernel(seed);
  ir::Function& function = kernel.function;
  function.threads = kThreads[seed % kThreads.size()];
  kernel.launch.grid = {1, 1, 1};
  ASSIGN_OR_RETURN(const nvptx::Artifact artifact, nvptx::Compile(function, chip));
  ASSIGN_OR_RETURN(const ir::Function staged, passes::Run(function, passes::PassesForThreads()));
  ASSIGN_OR_RETURN(const std::vector<interpreter::Argument> after,
                   interpreter::Interpret(nvptx::Ordered(staged, chip.number), kernel.launch));
  ASSIGN_OR_RETURN(const std::vector<int64_t> extents,
                   interpreter::ExtentsOf(function, kernel.launch));
  std::vector<std::string> parameters;
  std::string tensors;
  for (size_t p = 0; p < function.params.size(); ++p) {
    parameters.push_back(ParameterText(kernel, p));
    if (!function.params[p].is_tensor) continue;
    const ir::DType dtype = function.params[p].dtype;
    absl::StrAppend(&tensors, BytesOf(dtype, kernel.launch.arguments[p]), BytesOf(dtype, after[p]));
  }
  return absl::StrCat(
      "{\"seed\":", seed, ",\"entry\":\"", artifact.entry, "\",\"threads\":", artifact.threads,
      ",\"dynamic_shared_memory_bytes\":", artifact.dynamic_shared_memory_bytes, ",\"grid\":[",
      absl::StrJoin(kernel.launch.grid, ","), "],\"extents\":[", absl::StrJoin(extents, ","),
      "],\"ptx_bytes\":", artifact.ptx.size(), ",\"parameters\":[", absl::StrJoin(parameters, ","),
      "]}\n", artifact.ptx, tensors);
}

absl::Status Write(const char* path, uint64_t seed, int64_t count) {
  ASSIGN_OR_RETURN(const nvptx::Chip chip, nvptx::ResolveChip("sm_90"));
  std::ofstream file(path, std::ios::binary);
  for (int64_t left = count; left > 0; ++seed) {
    const absl::StatusOr<std::string> record = RecordOf(seed, chip);
    if (record.ok()) {
      file << *record;
      --left;
    } else if (!absl::IsUnimplemented(record.status()) &&
               !absl::IsResourceExhausted(record.status())) {
      return absl::Status(record.status().code(),
                          absl::StrCat("seed ", seed, ": ", record.status().ToString()));
    }
  }
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path));
  std::cout << count << " kernels of the seeds before " << seed << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace phobos::compiler::testing

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "random_bundle FILE FIRST_SEED COUNT\n";
    return 2;
  }
  const absl::Status status = phobos::compiler::testing::Write(
      argv[1], std::strtoull(argv[2], nullptr, 10), std::atoll(argv[3]));
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
