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

#include "base/digest.h"

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

// Whether the file at `path` has the artifact's bytes. One that cannot be read has not.
bool HoldsArtifact(const std::string& path, const Artifact& artifact) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat there = {};
  if (!file.ok() || fstat(file.get(), &there) != 0 || !S_ISREG(there.st_mode)) return false;
  if (artifact.size_bytes > 0 && there.st_size != artifact.size_bytes) return false;
  std::string bytes(static_cast<size_t>(there.st_size), '\0');
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<size_t>(count);
  }
  return Sha256Hex(bytes) == artifact.digest;
}

StatusOr<Fd> Fetch(stub::Daemon& daemon, const LaunchPlan& plan, const stub::Patience& patience) {
  stub::GetArtifactRequest request;
  request.chip = plan.chip;
  request.digest = plan.artifact.digest;
  request.file = plan.artifact.file;
  const StatusOr<std::string> bytes = daemon.GetArtifact(request, patience);
  if (!bytes.ok()) return bytes.status();
  if (Sha256Hex(*bytes) != plan.artifact.digest) {
    return Status(Code::kDataLoss,
                  (plan.artifact_path.empty() ? "kernels/" + plan.artifact.digest + ".* of chip " +
                                                    plan.chip + " in the daemon's cache"
                                              : plan.artifact_path) +
                      " does not hold the bytes that its name stands for; delete the file, and it "
                      "is compiled again");
  }
  return InMemory(*bytes);
}

}  // namespace

StatusOr<std::shared_ptr<const LoadedVariant>> Load(stub::Daemon& daemon, const LaunchPlan& plan,
                                                    const stub::Patience& patience) {
  auto loaded = std::make_shared<LoadedVariant>();
  loaded->plan = plan;
  std::string path = plan.artifact_path;
  if (path.empty() || !HoldsArtifact(path, plan.artifact)) {
    StatusOr<Fd> memory = Fetch(daemon, plan, patience);
    if (!memory.ok()) return memory.status();
    loaded->memory = *std::move(memory);
    path = "/proc/self/fd/" + std::to_string(loaded->memory.get());
  }
  StatusOr<std::unique_ptr<launch::HostKernel>> kernel = launch::HostKernel::Load(
      path, plan.artifact.entry, plan.artifact.scratch_bytes, plan.artifact.cpu_features);
  if (!kernel.ok()) return kernel.status();
  loaded->kernel = *std::move(kernel);
  return std::shared_ptr<const LoadedVariant>(std::move(loaded));
}

}  // namespace phobos
