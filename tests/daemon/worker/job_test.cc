// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/device/fake/fake_device.h"
#include "tests/status_matchers.h"

namespace phobos::worker {
namespace {

using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kElements = 64;
constexpr int64_t kTensorBytes = kElements * 4;

// A job of out = x + y, or of x += y, on the scripted device.
class JobTest : public ::testing::Test {
 protected:
  void Begin(const std::string& script, bool in_place = false) {
    auto parsed = device::ParseFakeScript(script);
    ASSERT_OK(parsed);
    device_ = std::make_unique<device::FakeDevice>(*std::move(parsed));
    auto mark = LaunchMark::Create();
    ASSERT_OK(mark);
    preloaded_ = std::make_unique<Preloaded>(*device_);
    mark_ = std::make_unique<LaunchMark>(*std::move(mark));
    JobSetup setup = in_place ? InPlace() : OutOfPlace();
    setup.set_shadow_bytes(shadow_bytes_);
    ASSERT_OK_AND_ASSIGN(
        job_, Job::Begin(std::move(setup),
                         {absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes_.data()),
                                              bytes_.size() * 4)},
                         *device_, *mark_, *preloaded_));
  }

  void Load(const std::vector<int>& variants) {
    for (const int variant : variants) {
      VariantSetup setup;
      setup.set_variant(variant);
      setup.mutable_grid()->set_x(1);
      ASSERT_OK(job_->Load(setup));
    }
  }

  // Variant 0 with a race-recording form that has no shadows.
  static VariantSetup Recorded() {
    VariantSetup setup;
    setup.mutable_grid()->set_x(1);
    setup.mutable_grid()->set_y(1);
    setup.mutable_grid()->set_z(1);
    setup.mutable_recording()->set_first_slot(3);
    return setup;
  }

  CheckOutcome Check(int variant, uint64_t seed = 1) {
    auto outcome = job_->Check(variant, seed);
    EXPECT_OK(outcome);
    return outcome.ok() ? *outcome : CheckOutcome();
  }

  // Memory: x, y, out as the caller gave them, then the expected sum.
  JobSetup OutOfPlace() {
    bytes_.assign(4 * kElements, 0);
    for (int64_t i = 0; i < kElements; ++i) {
      const auto k = static_cast<size_t>(i);
      bytes_[k] = static_cast<float>(i);
      bytes_[k + kElements] = 2;
      bytes_[k + 2 * kElements] = -1;
      bytes_[k + 3 * kElements] = static_cast<float>(i) + 2;
    }
    JobSetup setup;
    AddTensor(setup, "x", 0);
    AddTensor(setup, "y", 1);
    TensorSetup& out = AddTensor(setup, "out", 2);
    out.set_is_written(true);
    out.set_expected_memory(0);
    out.set_expected_offset_bytes(3 * kTensorBytes);
    AddSlots(setup);
    return setup;
  }

  JobSetup InPlace() {
    JobSetup setup = OutOfPlace();
    setup.mutable_tensors()->RemoveLast();
    TensorSetup& x = *setup.mutable_tensors(0);
    x.set_is_written(true);
    x.set_is_restored(true);
    x.set_expected_memory(0);
    x.set_expected_offset_bytes(3 * kTensorBytes);
    setup.clear_slots();
    AddSlots(setup);
    return setup;
  }

  static TensorSetup& AddTensor(JobSetup& setup, const std::string& name, int64_t index) {
    TensorSetup& tensor = *setup.add_tensors();
    tensor.set_parameter(name);
    tensor.set_offset_bytes(index * kTensorBytes);
    tensor.set_bytes(kTensorBytes);
    tensor.set_address_mod_256(16);
    tensor.set_dtype(compiler::v1::DTYPE_F32);
    tensor.set_expected_memory(-1);
    tensor.add_shape(kElements);
    return tensor;
  }

  static void AddSlots(JobSetup& setup) {
    for (int i = 0; i < setup.tensors_size(); ++i) setup.add_slots()->set_tensor(i);
    SlotSetup& n = *setup.add_slots();
    n.set_tensor(-1);
    n.set_value(kElements);
    setup.set_flush(true);
    setup.set_seed(99);
  }

  int64_t shadow_bytes_ = 0;  // of what Begin makes
  std::vector<float> bytes_;
  std::unique_ptr<device::FakeDevice> device_;
  std::unique_ptr<Preloaded> preloaded_;
  std::unique_ptr<LaunchMark> mark_;
  std::unique_ptr<Job> job_;
};

TEST_F(JobTest, RightVariantPasses) {
  Begin("");
  Load({0});
  const CheckOutcome outcome = Check(0);
  EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_TIMED) << outcome.reason();
  EXPECT_EQ(outcome.launch_ns(), 100);
}

// A recording form is loaded by its own call, so that a death there is not the variant's.
TEST_F(JobTest, ARecordingFormIsLoadedWhenItIsLaunched) {
  Begin("");
  const VariantSetup setup = Recorded();
  device_->ClearCalls();
  ASSERT_OK(job_->Load(setup));
  EXPECT_THAT(device_->calls(), ElementsAre("load 0"));
  device_->ClearCalls();
  ASSERT_OK(job_->Record(0, 1));
  EXPECT_THAT(device_->calls(), Contains("load 0"));
}

// What is free is not all for shadows: others want memory too.
TEST_F(JobTest, ShadowsTakeNoMoreThanHalfOfWhatIsFree) {
  shadow_bytes_ = 1 << 20;
  for (const auto& [free, is_recorded] : {std::pair(3 << 20, true), std::pair(2 << 20, false)}) {
    Begin(absl::StrCat("memory_bytes ", free));
    ASSERT_OK(job_->Load(Recorded()));
    ASSERT_OK_AND_ASSIGN(const CheckOutcome outcome, job_->Record(0, 1));
    EXPECT_EQ(outcome.status() == tuner::v1::VARIANT_STATUS_TIMED, is_recorded) << free;
    EXPECT_THAT(outcome.reason(), HasSubstr(is_recorded ? "" : "bytes that the tensors leave"));
  }
}

TEST_F(JobTest, WrongResultNamesTheFirstBadIndex) {
  Begin("variant 0 op shorter");
  Load({0});
  const CheckOutcome outcome = Check(0);
  EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(outcome.reason(), HasSubstr("out[63] is -1, the reference says 65; 1 of 64"));
}

// The right answer that another variant left must not be found again.
TEST_F(JobTest, FreshCopiesUncoverAVariantThatDoesNothing) {
  Begin("variant 1 op nothing");
  Load({0, 1});
  EXPECT_EQ(Check(0).status(), tuner::v1::VARIANT_STATUS_TIMED);
  const CheckOutcome outcome = Check(1);
  EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(outcome.reason(), HasSubstr("out[0] is -1"));
}

struct Poke {
  int slot;
  int64_t offset;
  const char* text;
};

// One byte before, right behind and at the last canary of each tensor, inputs too.
TEST_F(JobTest, CanariesOnBothSidesOfEveryTensor) {
  const Poke pokes[] = {
      {2, -1, "outside out: the byte 1 before its first one"},
      {2, kTensorBytes, "outside out: the byte at +0 past its end (offset 256)"},
      {2, kTensorBytes + kCanaryBytes - 1, "outside out: the byte at +4095 past its end"},
      {2, -kCanaryBytes, "outside out: the byte 4096 before its first one"},
      {0, -1, "outside x: the byte 1 before"},
      {1, kTensorBytes, "outside y: the byte at +0"},
  };
  for (const Poke& poke : pokes) {
    Begin(absl::StrCat("variant 0 poke ", poke.slot, " ", poke.offset));
    Load({0, 1});
    const CheckOutcome outcome = Check(0);
    EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_OUT_OF_BOUNDS) << poke.text;
    EXPECT_THAT(outcome.reason(), HasSubstr(poke.text));
    // What it broke is whole again for the next.
    EXPECT_EQ(Check(1).status(), tuner::v1::VARIANT_STATUS_TIMED);
  }
}

TEST_F(JobTest, ChangedInputIsFoundAndMended) {
  Begin("variant 0 poke 1 9");
  Load({0, 1});
  const CheckOutcome outcome = Check(0);
  EXPECT_EQ(outcome.status(), tuner::v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(outcome.reason(), HasSubstr("changed its input y[2] (byte 9)"));
  EXPECT_EQ(Check(1).status(), tuner::v1::VARIANT_STATUS_TIMED);
}

// What one variant does to an input in a warm-up or in a round is not charged to the one that is
// checked next, but to itself when its turn comes.
TEST_F(JobTest, ScribbledInputOfATimedLaunchIsNotTheNextOnesFault) {
  Begin("variant 1 poke 1 9");
  Load({0, 1});
  EXPECT_EQ(Check(0).status(), tuner::v1::VARIANT_STATUS_TIMED);
  ASSERT_OK(job_->WarmUp({0, 1}, 1));
  const CheckOutcome warm = Check(0, 2);
  EXPECT_EQ(warm.status(), tuner::v1::VARIANT_STATUS_TIMED) << warm.reason();
  ASSERT_OK(job_->WarmUp({0}, 1));
  ASSERT_OK(job_->Round({0, 1}, /*flush=*/true));
  const CheckOutcome timed = Check(0, 3);
  EXPECT_EQ(timed.status(), tuner::v1::VARIANT_STATUS_TIMED) << timed.reason();
  const CheckOutcome guilty = Check(1, 4);
  EXPECT_EQ(guilty.status(), tuner::v1::VARIANT_STATUS_WRONG_RESULT);
  EXPECT_THAT(guilty.reason(), HasSubstr("changed its input y[2]"));
}

// Restore, flush, launch: in this order, for each, and nothing else up to the end of the round.
TEST_F(JobTest, RoundRestoresThenFlushesThenLaunches) {
  Begin("variant 0 op accumulate\nvariant 1 op accumulate", /*in_place=*/true);
  Load({0, 1});
  ASSERT_OK(job_->WarmUp({0, 1}, 1));
  device_->ClearCalls();
  ASSERT_OK_AND_ASSIGN(const RoundOutcome outcome, job_->Round({1, 0}, /*flush=*/true));
  EXPECT_THAT(outcome.samples_ns(), ElementsAre(100, 100));
  EXPECT_THAT(device_->calls(),
              ElementsAre("copy", "flush", "launch 1", "copy", "flush", "launch 0", "finish"));
}

TEST_F(JobTest, OutputsThatAreNotReadAreNotRestored) {
  Begin("");
  Load({0});
  ASSERT_OK(job_->WarmUp({0}, 1));
  device_->ClearCalls();
  ASSERT_OK(job_->Round({0}, /*flush=*/true));
  EXPECT_THAT(device_->calls(), ElementsAre("flush", "launch 0", "finish"));
}

TEST_F(JobTest, FlushMakesInputsComeFromMemory) {
  Begin("warm_ns 60");
  Load({0});
  ASSERT_OK(job_->WarmUp({0}, 1));
  ASSERT_OK_AND_ASSIGN(const RoundOutcome cold, job_->Round({0}, /*flush=*/true));
  ASSERT_OK_AND_ASSIGN(const RoundOutcome warm, job_->Round({0}, /*flush=*/false));
  EXPECT_THAT(cold.samples_ns(), ElementsAre(100));
  EXPECT_THAT(warm.samples_ns(), ElementsAre(40));
}

// x += y over many rounds: the values of the last launch are those of the first.
TEST_F(JobTest, InPlaceKernelDoesNotDrift) {
  Begin("variant 0 op accumulate", /*in_place=*/true);
  Load({0});
  EXPECT_EQ(Check(0).status(), tuner::v1::VARIANT_STATUS_TIMED);
  ASSERT_OK(job_->WarmUp({0}, 1'000'000));
  for (int i = 0; i < 5; ++i) ASSERT_OK(job_->Round({0}, true));
  device_->ClearCalls();
  EXPECT_EQ(Check(0, 2).status(), tuner::v1::VARIANT_STATUS_TIMED);
}

// From the start of the warm-up to the last sample nothing is reserved or loaded.
TEST_F(JobTest, NothingIsAllocatedWhileTiming) {
  Begin("");
  Load({0, 1});
  Check(0), Check(1);
  device_->ClearCalls();
  ASSERT_OK(job_->WarmUp({0, 1}, 1'000'000));
  for (int i = 0; i < 20; ++i) ASSERT_OK(job_->Round({0, 1}, true));
  EXPECT_THAT(device_->calls(), Not(Contains(AllOf(Not("copy"), Not("flush"), Not("launch 0"),
                                                   Not("launch 1"), Not("finish")))));
}

TEST_F(JobTest, WarmUpLaunchesInTurnUntilTimeIsUp) {
  Begin("");
  Load({0, 1, 2});
  device_->ClearCalls();
  ASSERT_OK_AND_ASSIGN(const int64_t launches, job_->WarmUp({0, 2}, 1'000'000));
  EXPECT_EQ(launches, 100);  // 1 ms, 10.1 us a launch, in pairs
  EXPECT_THAT(device_->calls(), Not(Contains("launch 1")));
  EXPECT_THAT(job_->WarmUp({}, 1), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(JobTest, CanariesAreLookedAtAfterEachRound) {
  Begin("variant 0 poke 2 256");
  Load({0, 1});
  ASSERT_OK(job_->WarmUp({1}, 1));
  ASSERT_OK_AND_ASSIGN(const RoundOutcome broken, job_->Round({1, 0}, true));
  EXPECT_THAT(broken.out_of_bounds(), HasSubstr("outside out"));
  ASSERT_OK_AND_ASSIGN(const RoundOutcome mended, job_->Round({1}, true));
  EXPECT_EQ(mended.out_of_bounds(), "");
}

TEST_F(JobTest, DisturbanceIsPassedOn) {
  Begin("disturbed 3 3\nresolution_ns 7");
  Load({0});
  ASSERT_OK(job_->WarmUp({0}, 1));
  ASSERT_OK_AND_ASSIGN(const RoundOutcome quiet, job_->Round({0}, true));
  EXPECT_FALSE(quiet.disturbed());
  EXPECT_EQ(quiet.timer_resolution_ns(), 7);
  ASSERT_OK_AND_ASSIGN(const RoundOutcome disturbed, job_->Round({0}, true));
  EXPECT_TRUE(disturbed.disturbed());
}

TEST_F(JobTest, AsksOnlyForWhatIsThere) {
  Begin("");
  EXPECT_THAT(job_->Check(5, 1), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(job_->Round({}, true), StatusIs(absl::StatusCode::kFailedPrecondition));
  JobSetup outside = OutOfPlace();
  outside.mutable_tensors(1)->set_offset_bytes(15 * 64);
  EXPECT_THAT(Job::Begin(outside, {absl::Span<const std::byte>()}, *device_, *mark_, *preloaded_),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("outside the memory")));
  JobSetup slot;
  slot.add_slots()->set_tensor(4);
  EXPECT_THAT(Job::Begin(slot, {}, *device_, *mark_, *preloaded_),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace phobos::worker
