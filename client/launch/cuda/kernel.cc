// SPDX-License-Identifier: Apache-2.0
#include "client/launch/cuda/kernel.h"

#include <string.h>

#include <limits>
#include <utility>
#include <vector>

namespace phobos::launch::cuda {
namespace {

constexpr size_t kLogBytes = 8192;

std::string Text(int64_t number) { return std::to_string(number); }

}  // namespace

CudaKernel::CudaKernel(std::shared_ptr<const CudaDriver> driver, Module module)
    : driver_(std::move(driver)), module_(module), launch_((*driver_)->launch) {}

CudaKernel::~CudaKernel() { (*driver_)->unload_module(module_); }

StatusOr<std::unique_ptr<CudaKernel>> CudaKernel::Load(std::shared_ptr<const CudaDriver> driver,
                                                       std::string_view image,
                                                       const KernelShape& shape) {
  // PTX must end with a zero byte; a cubin knows its own size.
  const std::string bytes(image);
  std::vector<char> log(kLogBytes, '\0');
  JitOption options[] = {kJitErrorLogBuffer, kJitErrorLogBufferBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  Module module = nullptr;
  const Result loaded = (*driver)->load_module(&module, bytes.c_str(), 2, options, values);
  if (loaded != kSuccess) return driver->Error("cuModuleLoadDataEx", loaded, log.data());
  std::unique_ptr<CudaKernel> kernel(new CudaKernel(std::move(driver), module));
  if (Status status = kernel->Find(shape); !status.ok()) return status;
  return kernel;
}

Status CudaKernel::Find(const KernelShape& shape) {
  const Functions& call = *driver_->operator->();
  Result result = call.module_function(&function_, module_, shape.entry.c_str());
  if (result == launch::cuda::kNotFound) {
    return Status(Code::kNotFound, "the image has no kernel " + shape.entry);
  }
  if (result != kSuccess) return driver_->Error("cuModuleGetFunction", result);
  int most_threads = 0, shared = 0, local = 0;
  const std::pair<FunctionAttribute, int*> wanted[] = {{kFunctionMaxThreads, &most_threads},
                                                       {kFunctionSharedBytes, &shared},
                                                       {kFunctionLocalBytes, &local},
                                                       {kFunctionRegisters, &registers_}};
  for (const auto& [attribute, value] : wanted) {
    result = call.function_attribute(value, attribute, function_);
    if (result != kSuccess) return driver_->Error("cuFuncGetAttribute", result);
  }
  local_bytes_ = local;
  static_shared_bytes_ = shared;
  // The driver's limit counts the registers that the threads of a block take together.
  if (shape.threads < 1 || shape.threads > most_threads) {
    return Status(Code::kFailedPrecondition,
                  "a block of " + Text(shape.threads) + " threads with " + Text(registers_) +
                      " registers each cannot run on this card, which takes " + Text(most_threads) +
                      " such threads; fewer threads by @ph.launch");
  }
  // The number comes from a file; the driver's own is an int.
  if (shape.dynamic_shared_bytes < 0) {
    return Status(
        Code::kInvalidArgument,
        "a block cannot have " + Text(shape.dynamic_shared_bytes) + " bytes of shared memory");
  }
  const auto too_much = [&] {
    return Status(Code::kFailedPrecondition, "a block needs " + Text(shape.dynamic_shared_bytes) +
                                                 " bytes of shared memory on top of " +
                                                 Text(shared) +
                                                 ", more than this card has; smaller tiles");
  };
  if (shape.dynamic_shared_bytes > std::numeric_limits<int>::max()) return too_much();
  threads_ = static_cast<unsigned>(shape.threads);
  shared_bytes_ = static_cast<unsigned>(shape.dynamic_shared_bytes);
  if (shape.dynamic_shared_bytes == 0) return Status();
  // More than 48 KiB must be asked for.
  result = call.set_function_attribute(function_, kFunctionMaxDynamicSharedBytes,
                                       static_cast<int>(shape.dynamic_shared_bytes));
  if (result == kInvalidValue) return too_much();
  return driver_->Error("cuFuncSetAttribute", result);
}

}  // namespace phobos::launch::cuda
