// SPDX-License-Identifier: Apache-2.0
//
// Engine is the daemon without its wire and its process: it finds Results, joins and queues tunes,
// and stores what they decide. Values and callbacks in, values out; it knows no gRPC. Any thread.
#ifndef PHOBOS_DAEMON_ENGINE_ENGINE_H_
#define PHOBOS_DAEMON_ENGINE_ENGINE_H_

#include <string>
#include <utility>
#include <vector>

#include "proto/phobos/tuner/v1/admin.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::engine {

class Engine {
 public:
  explicit Engine(std::vector<tuner::v1::Device> devices) : devices_(std::move(devices)) {}

  // The devices it tunes on, the host chip last. Constant.
  const std::vector<tuner::v1::Device>& devices() const { return devices_; }
  // Why a kind of device is not used, a sentence each. Constant.
  const std::vector<std::string>& unavailable() const { return unavailable_; }
  // Of the compiler in use. Constant.
  const std::string& compiler_fingerprint() const { return compiler_fingerprint_; }

  // Fills what the engine knows: workers, jobs, caches, counters, problems.
  void FillStatus(tuner::v1::GetStatusResponse& status) const {
    status.set_compiler_fingerprint(compiler_fingerprint_);
  }

 private:
  const std::vector<tuner::v1::Device> devices_;
  const std::vector<std::string> unavailable_;
  const std::string compiler_fingerprint_;
};

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_ENGINE_H_
