// SPDX-License-Identifier: Apache-2.0
#include "client/cpp/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "base/version.h"
#include "client/launch/cuda/capture.h"

namespace phobos {
namespace {

ClientOptions WithDefaults(ClientOptions options) {
  if (options.client_name.empty()) options.client_name = std::string("c++ ") + kVersion;
  if (!options.warn) {
    options.warn = [](const std::string& text) {
      // One call, so that lines of several threads do not mix.
      fprintf(stderr, "phobos: %s\n", text.c_str());
    };
  }
  return options;
}

// The value of PHOBOS_THREADS; null: it is not set.
Status CheckThreads(const char* wish) {
  if (wish == nullptr || *wish == '\0') return Status();
  const bool is_whole = wish[strspn(wish, "0123456789")] == '\0';
  if (is_whole && strtol(wish, nullptr, 10) >= 1) return Status();
  return Status(Code::kInvalidArgument, "'" + std::string(wish) +
                                            "' is no number of threads (PHOBOS_THREADS); write a "
                                            "whole number of at least 1");
}

}  // namespace

std::shared_ptr<Client> Client::Open(ClientOptions options) {
  return std::shared_ptr<Client>(new Client(WithDefaults(std::move(options))));
}

Client::Client(ClientOptions options)
    : options_(std::move(options)), state_([] { return std::make_unique<State>(); }) {
  stub::Daemon::Options daemon;
  daemon.places = stub::Places::FromEnvironment(options_.socket, options_.daemon);
  if (!options_.autostart && daemon.places.why_none_starts.empty()) {
    daemon.places.why_none_starts = "this program's options keep it from starting one";
  }
  if (options_.threads == 0 && daemon.places.environment.ok()) {
    daemon.places.environment = CheckThreads(getenv("PHOBOS_THREADS"));
  }
  daemon.client_name = options_.client_name;
  daemon.warn = [this](const std::string& text) { Warn(text); };
  daemon_ = std::make_unique<stub::Daemon>(std::move(daemon));
}

Client::~Client() = default;

StatusOr<std::shared_ptr<const stub::Link>> Client::Hello() {
  StatusOr<std::shared_ptr<stub::Link>> link = daemon_->Connect(patience());
  if (!link.ok()) return link.status();
  return std::shared_ptr<const stub::Link>(*std::move(link));
}

void Client::Warn(const std::string& text) {
  State& state = state_.Get();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (!state.warned.insert(text).second) return;
  }
  options_.warn(text);
}

StatusOr<std::shared_ptr<launch::HostPool>> Client::Pool(const std::string& device_uuid) {
  State& state = state_.Get();
  {
    const std::lock_guard<std::mutex> lock(state.mutex);
    if (state.pool != nullptr) return state.pool;
  }
  const StatusOr<int> threads = Threads(device_uuid);
  if (!threads.ok()) return threads.status();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.pool == nullptr) state.pool = std::make_shared<launch::HostPool>(*threads);
  return state.pool;
}

StatusOr<std::shared_ptr<Gpus>> Client::Cards() {
  State& state = state_.Get();
  const std::lock_guard<std::mutex> lock(state.mutex);
  if (state.cards == nullptr) {
    StatusOr<std::shared_ptr<Gpus>> cards = Gpus::Open();
    if (!cards.ok()) {
      auto detail = std::make_shared<ErrorDetail>();
      detail->reason = ErrorReason::kNoDevice;
      return Status(cards.status().code(), cards.status().message(), std::move(detail));
    }
    state.cards = *std::move(cards);
  }
  return state.cards;
}

StatusOr<std::shared_ptr<Gpu>> Client::Card(const std::string& device_uuid) {
  if (!IsGpu(device_uuid)) return std::shared_ptr<Gpu>();
  const StatusOr<std::shared_ptr<Gpus>> cards = Cards();
  if (!cards.ok()) return cards.status();
  return (*cards)->Find(device_uuid);
}

StatusOr<bool> Client::IsCaptured(const std::string& device_uuid, void* stream) {
  const StatusOr<std::shared_ptr<Gpu>> gpu = Card(device_uuid);
  if (!gpu.ok()) return gpu.status();
  if (*gpu == nullptr) return false;
  const GpuContext current(**gpu);
  if (!current.status().ok()) return current.status();
  return launch::cuda::IsCaptured((*gpu)->driver(), static_cast<cuda::Stream>(stream));
}

StatusOr<int> Client::Threads(const std::string& device_uuid) {
  if (options_.threads > 0) return std::min(options_.threads, launch::kMostThreads);
  const char* wish = getenv("PHOBOS_THREADS");
  if (wish != nullptr && *wish != '\0') return launch::DefaultThreads();
  const StatusOr<std::shared_ptr<const stub::Link>> link = Hello();
  if (!link.ok()) return link.status();
  for (const Device& device : (*link)->hello.devices) {
    if (device.uuid == device_uuid && device.threads > 0) return device.threads;
  }
  return launch::DefaultThreads();
}

}  // namespace phobos
