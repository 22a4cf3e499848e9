// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "daemon/device/open.h"
#include "daemon/worker/job.h"
#include "daemon/worker/link/channel.h"
#include "daemon/worker/link/launch_mark.h"
#include "daemon/worker/link/mapping.h"
#include "daemon/worker/preloaded.h"
#include "daemon/worker/supervisor.h"

namespace phobos::worker {
namespace {

// Answers one request after the other. The job dies before the mappings and the device that it
// uses.
class Server {
 public:
  explicit Server(std::string device_name) : device_name_(std::move(device_name)) {}

  Reply Answer(const Request& request, std::vector<Fd> descriptors) {
    Reply reply;
    const absl::Status status = Dispatch(request, std::move(descriptors), reply);
    reply.set_is_lost(absl::IsAborted(status));
    reply.set_code(static_cast<int>(status.code()));
    reply.set_message(std::string(status.message()));
    return reply;
  }

 private:
  absl::Status Dispatch(const Request& request, std::vector<Fd> descriptors, Reply& reply) {
    switch (request.call_case()) {
      case Request::kDescribe:
        return Describe(std::move(descriptors), reply);
      case Request::kBegin:
        return Begin(request.begin(), descriptors);
      case Request::kExpect:
        return Expect(request.expect());
      case Request::kEnd:
        job_.reset();
        return absl::OkStatus();
      case Request::kPreload:
        return Preload(request.preload(), descriptors);
      case Request::kFetch:
        return Fetch(request.fetch(), descriptors);
      case Request::CALL_NOT_SET:
        return absl::UnimplementedError("an unknown call to the worker");
      default:
        break;
    }
    if (job_ == nullptr) return absl::FailedPreconditionError("the worker has no job");
    switch (request.call_case()) {
      case Request::kLoad: {
        ASSIGN_OR_RETURN(*reply.mutable_load(), job_->Load(request.load()));
        return absl::OkStatus();
      }
      case Request::kCheck: {
        ASSIGN_OR_RETURN(*reply.mutable_check(),
                         job_->Check(request.check().variant(), request.check().seed()));
        return absl::OkStatus();
      }
      case Request::kRecord: {
        ASSIGN_OR_RETURN(*reply.mutable_check(),
                         job_->Record(request.record().variant(), request.record().seed()));
        return absl::OkStatus();
      }
      case Request::kWarmUp: {
        const auto& variants = request.warm_up().variants();
        ASSIGN_OR_RETURN(const int64_t launches,
                         job_->WarmUp(std::vector<int>(variants.begin(), variants.end()),
                                      request.warm_up().at_least_ns()));
        reply.set_launches(launches);
        return absl::OkStatus();
      }
      default: {
        const auto& order = request.round().order();
        ASSIGN_OR_RETURN(
            *reply.mutable_round(),
            job_->Round(std::vector<int>(order.begin(), order.end()), request.round().flush()));
        return absl::OkStatus();
      }
    }
  }

  absl::Status Describe(std::vector<Fd> descriptors, Reply& reply) {
    if (descriptors.size() == 1) {
      ASSIGN_OR_RETURN(LaunchMark mark, LaunchMark::Attach(descriptors[0].Release()));
      mark_.emplace(std::move(mark));
    }
    if (device_ == nullptr) {
      ASSIGN_OR_RETURN(device_, device::Open(device_name_));
      preloaded_.emplace(*device_);
    }
    *reply.mutable_device() = device_->description().device;
    return absl::OkStatus();
  }

  absl::Status Expect(const ExpectCall& call) {
    if (device_ == nullptr) return NotDescribed();
    std::vector<device::KernelFile> files;
    for (const VariantSetup& variant : call.variants()) {
      files.push_back(FileOf(variant));
      if (variant.has_recording()) files.push_back(RecordingFileOf(variant));
    }
    device_->Expect(files);
    return absl::OkStatus();
  }

  static absl::Status NotDescribed() {
    return absl::FailedPreconditionError("the worker was not asked for its device first");
  }

  absl::Status Begin(const JobSetup& setup, const std::vector<Fd>& descriptors) {
    job_.reset();
    if (device_ == nullptr || !mark_.has_value()) return NotDescribed();
    ASSIGN_OR_RETURN(const auto memory, mappings_.Map(descriptors));
    preloaded_->KeepOnly(setup.arguments_token());
    ASSIGN_OR_RETURN(job_, Job::Begin(setup, memory, *device_, *mark_, *preloaded_));
    return absl::OkStatus();
  }

  absl::Status Preload(const PreloadCall& call, const std::vector<Fd>& descriptors) {
    if (device_ == nullptr || descriptors.size() != 1) {
      return absl::FailedPreconditionError("a preload needs a device and one piece of memory");
    }
    job_.reset();  // its memory would go
    ASSIGN_OR_RETURN(const auto memory, mappings_.Map(descriptors));
    return preloaded_->Copy(call, memory[0]);
  }

  absl::Status Fetch(const FetchCall& call, const std::vector<Fd>& descriptors) {
    if (device_ == nullptr || descriptors.size() != 1) {
      return absl::FailedPreconditionError("a fetch needs a device and one piece of memory");
    }
    ASSIGN_OR_RETURN(const WritableMapping to, WritableMapping::Map(descriptors[0].get()));
    const auto size = static_cast<int64_t>(to.bytes().size());
    job_.reset();  // its memory would go
    // Where there is no room, the job says so or copies what it needs itself.
    preloaded_->Reserve(call.preload(), size).IgnoreError();
    const uint64_t token = call.preload().token();
    std::vector<device::ForeignBytes> pieces;
    for (const ForeignTensor& tensor : call.tensors()) {
      if (tensor.bytes() < 0 || tensor.to_offset_bytes() < 0 || tensor.to_offset_bytes() > size ||
          tensor.bytes() > size - tensor.to_offset_bytes()) {
        return absl::InvalidArgumentError(
            absl::StrCat("the place of ", tensor.parameter(), " lies outside its memory"));
      }
      pieces.push_back({tensor.parameter(), tensor.cuda_ipc_handle(), tensor.offset_bytes(),
                        tensor.bytes(), to.bytes().data() + tensor.to_offset_bytes(),
                        preloaded_->PlaceFor(token, tensor.to_offset_bytes(), tensor.bytes())});
    }
    RETURN_IF_ERROR(device_->Fetch(pieces));
    for (const device::ForeignBytes& piece : pieces) {
      if (piece.kept != nullptr) preloaded_->Add(piece.to - to.bytes().data());
    }
    return absl::OkStatus();
  }

  const std::string device_name_;
  std::optional<LaunchMark> mark_;
  std::unique_ptr<device::Device> device_;
  std::optional<Preloaded> preloaded_;  // with device_
  MappingPool mappings_;
  std::unique_ptr<Job> job_;
};

// When memory runs out the system should take this process, not the daemon or a client.
void PreferToDie() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!write(fd, "1000", 4);
  close(fd);
}

}  // namespace

int CardsMain() {
  const device::Inventory inventory = device::ListGpus();
  Cards cards;
  for (const tuner::v1::Device& device : inventory.devices) *cards.add_devices() = device;
  for (const std::string& reason : inventory.unavailable) cards.add_unavailable(reason);
  return cards.SerializeToFileDescriptor(STDOUT_FILENO) ? 0 : 1;
}

int LookMain(const std::string& card_uuid) {
  const absl::StatusOr<std::string> found = device::LookAtGpu(card_uuid);
  if (!found.ok()) return 1;
  return found->empty() ? 0 : kCardIsBusy;
}

int WorkerMain(int socket, const std::string& device) {
  PreferToDie();
  Server server(device);
  while (true) {
    Request request;
    absl::StatusOr<std::vector<Fd>> descriptors = Receive(socket, request);
    if (absl::IsUnavailable(descriptors.status())) return 0;  // the daemon closed its end
    if (!descriptors.ok()) return 1;
    const Reply reply = server.Answer(request, *std::move(descriptors));
    if (!Send(socket, reply).ok() || reply.is_lost()) return 1;
  }
}

}  // namespace phobos::worker
