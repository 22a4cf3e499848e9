// SPDX-License-Identifier: Apache-2.0
//
// Arguments that are on the device before their job begins.
#include "daemon/worker/preloaded.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <memory>
#include <utility>
#include <vector>

#include "daemon/worker/job.h"
#include "daemon/worker/link/launch_mark.h"
#include "tests/status_matchers.h"

namespace phobos::worker {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kBytes = 512;
constexpr uint64_t kToken = 5;

device::Description WithOwnMemory() {
  device::Description description;
  description.has_host_memory = false;
  return description;
}

// Memory and copies, no kernels.
class Card : public device::Device {
 public:
  Card() : Device(WithOwnMemory()) {}
  absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool) override {
    arena_.resize(static_cast<size_t>(bytes) + 256);
    return Aligned(arena_);
  }
  absl::StatusOr<std::byte*> ReservePreloaded(int64_t bytes) override {
    reserved.push_back(bytes);
    preloaded_.resize(static_cast<size_t>(bytes) + 256);
    return Aligned(preloaded_);
  }
  absl::StatusOr<int64_t> FreeBytes() override { return int64_t{1} << 40; }
  absl::StatusOr<std::unique_ptr<device::Kernel>> Load(const device::KernelFile&) override {
    return absl::UnimplementedError("");
  }
  absl::Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    copied.push_back(from);
    memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Launch(const device::Kernel&, absl::Span<const uint64_t>,
                      const tuner::v1::Grid&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<device::Outcome> Finish(absl::FunctionRef<void(size_t)>) override {
    return device::Outcome();
  }
  absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t) override { return from; }

  std::vector<int64_t> reserved;
  std::vector<const std::byte*> copied;

 private:
  static std::byte* Aligned(std::vector<std::byte>& memory) {
    const auto address = reinterpret_cast<uintptr_t>(memory.data());
    return memory.data() + (256 - address % 256) % 256;
  }
  std::vector<std::byte> arena_, preloaded_;
};

// x and y of kBytes each; y's address is 64 modulo 256.
class PreloadedTest : public ::testing::Test {
 protected:
  PreloadCall Call() const {
    PreloadCall call;
    call.set_token(kToken);
    for (int i = 0; i < 2; ++i) {
      PreloadedTensor& tensor = *call.add_tensors();
      tensor.set_offset_bytes(i * kBytes);
      tensor.set_bytes(kBytes);
      tensor.set_address_mod_256(i * 64);
    }
    return call;
  }
  // What is copied when a job with that token begins.
  std::vector<const std::byte*> CopiedBy(uint64_t token) {
    JobSetup setup;
    setup.set_arguments_token(token);
    for (int i = 0; i < 2; ++i) {
      TensorSetup& tensor = *setup.add_tensors();
      tensor.set_parameter(i == 0 ? "x" : "y");
      tensor.set_offset_bytes(i * kBytes);
      tensor.set_bytes(kBytes);
      tensor.set_address_mod_256(i * 64);
      tensor.set_dtype(compiler::v1::DTYPE_F32);
      tensor.set_expected_memory(-1);
      tensor.add_shape(kBytes / 4);
    }
    auto mark = LaunchMark::Create();
    EXPECT_OK(mark);
    card_.copied.clear();
    EXPECT_OK(Job::Begin(setup, {bytes_}, card_, *mark, preloaded_));
    return card_.copied;
  }

  Card card_;
  Preloaded preloaded_{card_};
  std::vector<std::byte> bytes_ = std::vector<std::byte>(2 * kBytes, std::byte{3});
};

TEST_F(PreloadedTest, AJobCopiesOnlyWhatIsNotThere) {
  EXPECT_THAT(CopiedBy(kToken), ElementsAre(bytes_.data(), bytes_.data() + kBytes));
  ASSERT_OK(preloaded_.Copy(Call(), bytes_));
  EXPECT_THAT(CopiedBy(kToken), IsEmpty());
  EXPECT_THAT(CopiedBy(kToken + 1), ElementsAre(bytes_.data(), bytes_.data() + kBytes));
}

TEST_F(PreloadedTest, WhatWasFetchedIsNotCopiedAgain) {
  ASSERT_OK(preloaded_.Reserve(Call(), 2 * kBytes));
  EXPECT_EQ(preloaded_.PlaceFor(kToken + 1, kBytes, kBytes), nullptr);
  EXPECT_EQ(preloaded_.PlaceFor(kToken, kBytes, kBytes - 1), nullptr);
  EXPECT_EQ(preloaded_.PlaceFor(kToken, 1, kBytes), nullptr);
  std::byte* const place = preloaded_.PlaceFor(kToken, kBytes, kBytes);
  ASSERT_NE(place, nullptr);
  EXPECT_EQ(preloaded_.Find(kToken, kBytes), nullptr);  // nobody filled it yet
  memset(place, 3, kBytes);
  preloaded_.Add(kBytes);
  EXPECT_EQ(preloaded_.Find(kToken, kBytes), place);
  ASSERT_OK(preloaded_.Copy(Call(), bytes_));
  EXPECT_THAT(card_.copied, ElementsAre(bytes_.data()));
  EXPECT_THAT(CopiedBy(kToken), IsEmpty());
}

TEST_F(PreloadedTest, LiesAsTheCallersArraysDo) {
  ASSERT_OK(preloaded_.Copy(Call(), bytes_));
  for (int i = 0; i < 2; ++i) {
    const std::byte* copy = preloaded_.Find(kToken, i * kBytes);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copy) % 256, static_cast<uintptr_t>(i * 64));
    EXPECT_EQ(memcmp(copy, bytes_.data(), kBytes), 0);
  }
  EXPECT_EQ(preloaded_.Find(kToken, 1), nullptr);
}

TEST_F(PreloadedTest, GivesTheMemoryBackToAnothersJob) {
  ASSERT_OK(preloaded_.Copy(Call(), bytes_));
  preloaded_.KeepOnly(kToken);
  EXPECT_NE(preloaded_.Find(kToken, 0), nullptr);
  preloaded_.KeepOnly(kToken + 1);
  EXPECT_EQ(preloaded_.Find(kToken, 0), nullptr);
  EXPECT_THAT(card_.reserved, ElementsAre(kBytes + 64 + kBytes + 192, 0));
}

TEST_F(PreloadedTest, RefusesWhatLiesOutside) {
  PreloadCall call = Call();
  call.mutable_tensors(1)->set_bytes(kBytes + 1);
  EXPECT_THAT(preloaded_.Copy(call, bytes_), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(card_.copied, IsEmpty());
}

}  // namespace
}  // namespace phobos::worker
