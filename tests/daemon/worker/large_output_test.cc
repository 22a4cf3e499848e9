// SPDX-License-Identifier: Apache-2.0
//
// An output that is larger than what is compared at once, on a device with memory of its own; and
// where it lies there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "daemon/device/device.h"
#include "daemon/worker/check/compare.h"
#include "daemon/worker/job.h"
#include "tests/status_matchers.h"

namespace phobos::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMebibyte = int64_t{1} << 20;
constexpr int64_t kElements = 17 * kMebibyte + 3;  // of f32: 68 MiB and a bit
constexpr int64_t kBytes = kElements * 4;

// Memory beside the host's; its kernels do nothing.
class Card : public device::Device {
 public:
  Card() : Device(Describe()) {}
  absl::StatusOr<std::byte*> Reserve(int64_t bytes, bool) override {
    memory_.resize(static_cast<size_t>(bytes));
    return memory_.data();
  }
  absl::StatusOr<int64_t> FreeBytes() override { return int64_t{1} << 40; }
  absl::StatusOr<std::unique_ptr<device::Kernel>> Load(const device::KernelFile&) override {
    return std::make_unique<device::Kernel>();
  }
  absl::Status Copy(std::byte* to, const std::byte* from, int64_t bytes) override {
    memcpy(to, from, static_cast<size_t>(bytes));
    return absl::OkStatus();
  }
  absl::Status Flush() override { return absl::OkStatus(); }
  absl::Status Launch(const device::Kernel&, absl::Span<const uint64_t> slots,
                      const tuner::v1::Grid&) override {
    last_offset = static_cast<int64_t>(slots[0] - reinterpret_cast<uint64_t>(memory_.data()));
    return absl::OkStatus();
  }
  absl::StatusOr<device::Outcome> Finish(absl::FunctionRef<void(size_t)>) override {
    return device::Outcome();
  }
  absl::StatusOr<const std::byte*> Read(const std::byte* from, int64_t bytes) override {
    most_read = std::max(most_read, bytes);
    return from;
  }
  absl::StatusOr<std::optional<int64_t>> FirstDifference(const std::byte* a, const std::byte* b,
                                                         int64_t bytes) override {
    const auto size = static_cast<size_t>(bytes);
    return worker::FirstDifference(absl::MakeSpan(a, size), absl::MakeSpan(b, size));
  }

  int64_t most_read = 0;
  int64_t last_offset = 0;  // in the memory: of the first tensor of the last launch

 private:
  static device::Description Describe() {
    device::Description description;
    description.has_host_memory = false;
    return description;
  }
  std::vector<std::byte> memory_;
};

// Checks a variant that leaves ones in out, where `expected` is expected.
absl::StatusOr<CheckOutcome> CheckOnes(const std::vector<float>& expected, Card& card) {
  std::vector<float> memory(kElements, 1.0f);
  memory.insert(memory.end(), expected.begin(), expected.end());
  JobSetup setup;
  TensorSetup& out = *setup.add_tensors();
  out.set_parameter("out");
  out.set_bytes(kBytes);
  out.set_address_mod_256(16);
  out.set_dtype(compiler::v1::DTYPE_F32);
  out.set_is_written(true);
  out.set_expected_memory(0);
  out.set_expected_offset_bytes(kBytes);
  out.add_shape(kElements);
  setup.add_slots()->set_tensor(0);
  ASSIGN_OR_RETURN(LaunchMark mark, LaunchMark::Create());
  const Preloaded preloaded(card);
  ASSIGN_OR_RETURN(
      const auto job,
      Job::Begin(setup,
                 {absl::MakeSpan(reinterpret_cast<const std::byte*>(memory.data()), 2 * kBytes)},
                 card, mark, preloaded));
  RETURN_IF_ERROR(job->Load(VariantSetup()).status());
  return job->Check(0, 1);
}

TEST(LargeOutputTest, ARightOneIsReadInPieces) {
  Card card;
  std::vector<float> expected(kElements, 1.0000001f);  // no bit pattern is the same
  ASSERT_OK_AND_ASSIGN(const CheckOutcome outcome, CheckOnes(expected, card));
  EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_TIMED) << outcome.reason();
  EXPECT_GT(card.most_read, 0);
  EXPECT_LE(card.most_read, 32 * kMebibyte);
}

// As an allocator would have placed it, but for the caller's own address modulo 256.
TEST(LargeOutputTest, OnACardItBeginsAtAMultipleOf64Kibibytes) {
  Card card;
  ASSERT_OK(CheckOnes(std::vector<float>(kElements, 1.0f), card).status());
  EXPECT_GT(card.last_offset, 0);
  EXPECT_EQ(card.last_offset % (64 << 10), 16);
}

// In the second piece, at its end and in the last: one report.
TEST(LargeOutputTest, AWrongOnesReportIsOfTheWhole) {
  Card card;
  std::vector<float> expected(kElements, 1.0f);
  expected[9 * kMebibyte] = 3;
  expected[16 * kMebibyte - 1] = 2;
  expected[kElements - 1] = 11;
  ASSERT_OK_AND_ASSIGN(const CheckOutcome outcome, CheckOnes(expected, card));
  EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(outcome.reason(), AllOf(HasSubstr("out[9437184] is 1, the reference says 3"),
                                      HasSubstr("3 of 17825795"), HasSubstr("10")));
}

}  // namespace
}  // namespace phobos::worker
