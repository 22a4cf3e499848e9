// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/plan/load.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "client/launch/cuda/cubin.h"

namespace phobos {
namespace {

// Puts `bytes` into a file that only this process has.
StatusOr<Fd> InMemory(const std::string& bytes) {
  Fd fd(memfd_create("phobos-kernel", MFD_CLOEXEC));
  if (!fd.ok()) return Status(Code::kInternal, std::string("memfd_create: ") + strerror(errno));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = write(fd.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Status(Code::kResourceExhausted,
                    std::string("write to memory for a kernel: ") + strerror(errno));
    }
    done += static_cast<size_t>(count);
  }
  return fd;
}

// The file's bytes; empty: it cannot be read, is no file, or has another size than the one given.
std::string FileBytes(const std::string& path, int64_t size = 0) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat there = {};
  if (!file.ok() || fstat(file.get(), &there) != 0 || !S_ISREG(there.st_mode)) return "";
  if (size > 0 && there.st_size != size) return "";
  std::string bytes(static_cast<size_t>(there.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return "";
    done += static_cast<size_t>(count);
  }
  return bytes;
}

// The artifact's bytes by the file at `path`; empty: it cannot be read or holds others.
std::string StoredBytes(const std::string& path, const Artifact& artifact) {
  std::string bytes = FileBytes(path, artifact.size_bytes);
  return Sha256Hex(bytes) == artifact.digest ? bytes : "";
}

StatusOr<std::string> Fetch(stub::Daemon& daemon, const LaunchPlan& plan,
                            const stub::Patience& patience) {
  stub::GetArtifactRequest request;
  request.chip = plan.chip;
  request.digest = plan.artifact.digest;
  request.file = plan.artifact.file;
  StatusOr<std::string> bytes = daemon.GetArtifact(request, patience);
  if (!bytes.ok()) return bytes.status();
  if (Sha256Hex(*bytes) != plan.artifact.digest) {
    return Status(Code::kDataLoss,
                  (plan.artifact_path.empty() ? "kernels/" + plan.artifact.digest + ".* of chip " +
                                                    plan.chip + " in the daemon's cache"
                                              : plan.artifact_path) +
                      " does not hold the bytes that its name stands for; delete the file, and it "
                      "is compiled again");
  }
  return bytes;
}

Status LoadOnGpu(stub::Daemon& daemon, std::shared_ptr<Gpu> gpu, const stub::Patience& patience,
                 LoadedVariant& loaded) {
  const LaunchPlan& plan = loaded.plan;
  std::string image = StoredBytes(plan.artifact_path, plan.artifact);
  if (image.empty()) {
    StatusOr<std::string> bytes = Fetch(daemon, plan, patience);
    if (!bytes.ok()) return bytes.status();
    image = *std::move(bytes);
  }
  // What the daemon's worker keeps of the driver's work loads a hundred times faster than PTX.
  std::string cubin = cuda::UnsealCubin(
      FileBytes(cuda::CubinPath(plan.artifact_path, gpu->card(), gpu->driver().version())));
  std::vector<std::string> images;
  if (!cubin.empty()) images.push_back(std::move(cubin));
  images.push_back(std::move(image));
  loaded.gpu =
      std::make_unique<GpuVariant>(std::move(gpu), plan.artifact.digest, std::move(images),
                                   cuda::KernelShape{plan.artifact.entry, plan.artifact.threads,
                                                     plan.artifact.dynamic_shared_memory_bytes});
  return Status();
}

}  // namespace

StatusOr<std::shared_ptr<const LoadedVariant>> Load(stub::Daemon& daemon, const LaunchPlan& plan,
                                                    std::shared_ptr<Gpu> gpu,
                                                    const stub::Patience& patience) {
  auto loaded = std::make_shared<LoadedVariant>();
  loaded->plan = plan;
  if (gpu != nullptr) {
    if (Status status = LoadOnGpu(daemon, std::move(gpu), patience, *loaded); !status.ok()) {
      return status;
    }
    return std::shared_ptr<const LoadedVariant>(std::move(loaded));
  }
  std::string path = plan.artifact_path;
  if (StoredBytes(path, plan.artifact).empty()) {
    const StatusOr<std::string> bytes = Fetch(daemon, plan, patience);
    if (!bytes.ok()) return bytes.status();
    StatusOr<Fd> memory = InMemory(*bytes);
    if (!memory.ok()) return memory.status();
    loaded->memory = *std::move(memory);
    path = "/proc/self/fd/" + std::to_string(loaded->memory.get());
  }
  StatusOr<std::unique_ptr<launch::HostKernel>> kernel = launch::HostKernel::Load(
      path, plan.artifact.entry, plan.artifact.scratch_bytes, plan.artifact.cpu_features);
  if (!kernel.ok()) return kernel.status();
  loaded->kernel = *std::move(kernel);
  loaded->kernel->PrintToStandardError();
  return std::shared_ptr<const LoadedVariant>(std::move(loaded));
}

}  // namespace phobos
