// SPDX-License-Identifier: Apache-2.0
//
// In-memory stand-ins for what the engine stands on: a compiler that "compiles" any text, and a
// worker that is never asked for anything. For tests only.
#ifndef PHOBOS_TESTS_DAEMON_ENGINE_FAKES_H_
#define PHOBOS_TESTS_DAEMON_ENGINE_FAKES_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/compile/runner.h"
#include "daemon/engine/join/job.h"
#include "daemon/worker/supervisor.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"
#include "tests/daemon/engine/messages.h"

namespace phobos::engine {

// A folder that goes with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = ::testing::TempDir() + "/engine-XXXXXX";
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// "Compiles" at once; counts what it was asked.
class FakeRunner : public compile::Runner {
 public:
  explicit FakeRunner(std::string artifact_folder) : folder_(std::move(artifact_folder)) {}

  const std::string& fingerprint() const override { return fingerprint_; }

  absl::StatusOr<compiler::v1::KernelDescription> Describe(const compile::Source& source,
                                                           cache::ResultStore&) override {
    ++describes;
    if (source.kernel != "add") {
      return absl::NotFoundError("the file has no kernel '" + source.kernel + "'; it has add");
    }
    if (source.text == "no compiler") {
      return absl::FailedPreconditionError("the compiler cannot be run");
    }
    if (source.text.find("syntax error") != std::string::npos) {
      return absl::InvalidArgumentError("file.py:1:1: syntax error");
    }
    compiler::v1::KernelDescription description = AddDescription(source.text);
    if (source.text == "no key") {
      description.clear_key();
      description.mutable_variants(0)->set_index_bits(64);
    }
    if (source.text == "assume alpha") {  // alpha == 0
      compiler::v1::Condition& condition = *description.add_conditions();
      condition.set_is_assumption(true);
      compiler::v1::ConditionOp& name = *condition.add_program();
      name.set_code(compiler::v1::ConditionOp::PUSH_NAME);
      name.set_name("alpha");
      condition.add_program()->set_code(compiler::v1::ConditionOp::PUSH_INT);
      condition.add_program()->set_code(compiler::v1::ConditionOp::EQ);
    }
    return description;
  }

  absl::StatusOr<compile::CompiledSpace> CompileAll(
      const compile::Source& source, const compiler::v1::KernelDescription& description,
      const std::string&, cache::ResultStore&, cache::ArtifactStore&) override {
    ++compiles;
    if (before_compile) before_compile();
    if (source.text.find("compiler breaks") != std::string::npos) {
      return absl::InternalError("the compiler broke");
    }
    compile::CompiledSpace space;
    space.compiler_fingerprint = compiled_by;
    for (int i = 0; i < description.variants_size(); ++i) space.variants.push_back(Variant(i));
    return space;
  }

  absl::StatusOr<compile::CompiledVariant> CompileOne(const compile::Source&,
                                                      const compiler::v1::KernelDescription&,
                                                      int variant, const std::string&,
                                                      cache::ResultStore&,
                                                      cache::ArtifactStore&) override {
    ++single_compiles;
    if (before_single_compile) before_single_compile(variant);
    return Variant(variant);
  }

  void Pause() override { ++paused; }
  void Resume() override { --paused; }
  void Stop() override { is_stopped = true; }

  compile::CompiledVariant Variant(int index) const {
    compile::CompiledVariant compiled;
    compiled.variant.set_index(index);
    if (index == racy_variant) {
      compiled.variant.set_status(compiler::v1::VARIANT_STATUS_RACE);
      compiled.variant.set_race_detail("blocks 0 and 1 write out[0]");
      return compiled;
    }
    compiled.variant.set_status(compiler::v1::VARIANT_STATUS_COMPILED);
    compiled.variant.set_race_verdict(compiler::v1::RACE_VERDICT_RACE_FREE);
    if (index == unproven_variant) {
      compiled.variant.set_race_verdict(compiler::v1::RACE_VERDICT_UNPROVEN);
      compiled.variant.mutable_recording()->mutable_artifact()->set_entry("add");
    }
    compiled.artifact_path = folder_ + "/" + std::to_string(index) + ".so";
    std::ofstream(compiled.artifact_path) << "artifact";
    return compiled;
  }

  std::atomic<int> describes{0};
  std::atomic<int> compiles{0};
  std::atomic<int> single_compiles{0};
  std::atomic<int> paused{0};
  std::atomic<bool> is_stopped{false};
  std::atomic<int> racy_variant{-1};
  std::atomic<int> unproven_variant{-1};        // compiles, but is not proved free of races
  std::string compiled_by = "fake compiler 1";  // spaces
  std::function<void()> before_compile;         // set before the engine starts
  std::function<void(int variant)> before_single_compile;

 private:
  const std::string folder_;
  const std::string fingerprint_ = "fake compiler 1";
};

// A device that is there and does nothing; tunes in these tests do not ask it.
class FakeSupervisor : public worker::Supervisor {
 public:
  explicit FakeSupervisor(tuner::v1::Device device) : device_(std::move(device)) {}

  absl::StatusOr<tuner::v1::Device> Describe() override { return device_; }
  absl::Status Begin(const worker::JobSetup&, const std::vector<worker::SharedMemory>&) override {
    return absl::OkStatus();
  }
  absl::Status Expect(const std::vector<worker::VariantSetup>&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<worker::LoadOutcome> Load(const worker::VariantSetup&) override {
    return worker::LoadOutcome();
  }
  absl::StatusOr<worker::CheckOutcome> Check(int, uint64_t) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<int64_t> WarmUp(const std::vector<int>&, absl::Duration) override { return 0; }
  absl::StatusOr<worker::RoundOutcome> Round(const std::vector<int>&, bool) override {
    return absl::UnimplementedError("");
  }
  absl::Status Fetch(const worker::FetchCall& call, const worker::SharedMemory& to) override {
    ++fetches;
    if (!fetched.ok()) return fetched;
    for (const worker::ForeignTensor& tensor : call.tensors()) {
      const std::string bytes(static_cast<size_t>(tensor.bytes()), 'f');
      const ssize_t written = pwrite(to.fd, bytes.data(), bytes.size(), tensor.to_offset_bytes());
      if (written != tensor.bytes()) return absl::InternalError("cannot write");
    }
    return absl::OkStatus();
  }
  absl::Status End() override { return absl::OkStatus(); }
  void EndIfIdle() override {}
  void Kill() override { ++kills; }
  void Stop() override { ++stops; }
  pid_t pid() const override { return 0; }
  std::string state() const override { return "off"; }
  int64_t deaths() const override { return 0; }

  std::atomic<int> fetches{0};
  absl::Status fetched;  // what Fetch gives; OK: it fills the tensors with 'f'
  std::atomic<int> kills{0}, stops{0};

 private:
  const tuner::v1::Device device_;
};

}  // namespace phobos::engine

#endif  // PHOBOS_TESTS_DAEMON_ENGINE_FAKES_H_
