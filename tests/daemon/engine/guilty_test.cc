// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/join/guilty.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "cache/memory_store.h"
#include "tests/status_matchers.h"

namespace phobos::engine {
namespace {

using ::testing::HasSubstr;

tuner::v1::VariantResult Variant(int index, tuner::v1::VariantStatus status) {
  tuner::v1::VariantResult variant;
  variant.set_index(index);
  variant.set_status(status);
  variant.set_reason("signal 11");
  return variant;
}

TEST(Guilty, CrashesAndHangsAreRememberedAndAddUp) {
  const std::unique_ptr<cache::ResultStore> store = cache::MakeMemoryStore();
  EXPECT_TRUE(RecallGuilty(*store, "add").empty());
  ASSERT_OK(RememberGuilty(
      *store, "add", {},
      {Variant(0, tuner::v1::VARIANT_STATUS_TIMED), Variant(1, tuner::v1::VARIANT_STATUS_CRASHED),
       Variant(2, tuner::v1::VARIANT_STATUS_WRONG_RESULT)}));
  const auto first = RecallGuilty(*store, "add");
  ASSERT_EQ(first.size(), 1);
  EXPECT_EQ(first[0].index(), 1);
  EXPECT_EQ(first[0].status(), tuner::v1::VARIANT_STATUS_CRASHED);
  EXPECT_THAT(first[0].reason(), HasSubstr("signal 11 (in an earlier tune"));

  ASSERT_OK(RememberGuilty(*store, "add", first,
                           {first[0], Variant(4, tuner::v1::VARIANT_STATUS_TIMED_OUT)}));
  const auto both = RecallGuilty(*store, "add");
  ASSERT_EQ(both.size(), 2);
  EXPECT_EQ(both[0].reason(), first[0].reason());
  EXPECT_EQ(both[1].index(), 4);
}

TEST(Guilty, CrashesOfAllMayBeTheDevicesFault) {
  const std::unique_ptr<cache::ResultStore> store = cache::MakeMemoryStore();
  ASSERT_OK(RememberGuilty(*store, "add", {},
                           {Variant(0, tuner::v1::VARIANT_STATUS_CRASHED),
                            Variant(1, tuner::v1::VARIANT_STATUS_TIMED_OUT),
                            Variant(2, tuner::v1::VARIANT_STATUS_COMPILE_ERROR)}));
  const auto known = RecallGuilty(*store, "add");
  ASSERT_EQ(known.size(), 1);
  EXPECT_EQ(known[0].index(), 1) << "a hang is too dear to be looked for again";
}

TEST(Guilty, WhoIsTriedAgainAndComesThroughIsForgotten) {
  const std::unique_ptr<cache::ResultStore> store = cache::MakeMemoryStore();
  const auto timed = Variant(0, tuner::v1::VARIANT_STATUS_TIMED);
  ASSERT_OK(
      RememberGuilty(*store, "add", {}, {timed, Variant(1, tuner::v1::VARIANT_STATUS_CRASHED)}));
  ASSERT_OK(RememberGuilty(*store, "add", {}, {}));
  EXPECT_EQ(RecallGuilty(*store, "add").size(), 1) << "a tune that was stopped learnt nothing";
  ASSERT_OK(
      RememberGuilty(*store, "add", {}, {timed, Variant(1, tuner::v1::VARIANT_STATUS_TIMED)}));
  EXPECT_TRUE(RecallGuilty(*store, "add").empty());
}

TEST(Guilty, RecordingsThatDiedAreRememberedAtTheirExtents) {
  const std::unique_ptr<cache::ResultStore> store = cache::MakeMemoryStore();
  google::protobuf::RepeatedPtrField<tuner::v1::Extent> extents;
  extents.Add()->set_name("N");
  extents[0].set_value(1 << 20);
  const std::string large = RecordingsName("add", extents);
  extents[0].set_value(16);
  const std::string small = RecordingsName("add", extents);
  auto died = Variant(1, tuner::v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  // One that had no memory may have it the next time.
  const auto no_memory = Variant(2, tuner::v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  died.set_recording_died(true);
  ASSERT_OK(RememberRecordings(*store, large, {}, {died, no_memory}));
  const auto known = RecallGuilty(*store, large);
  ASSERT_EQ(known.size(), 1);
  EXPECT_EQ(known[0].index(), 1);
  EXPECT_EQ(known[0].status(), tuner::v1::VARIANT_STATUS_RACE_CHECK_FAILED);
  EXPECT_THAT(known[0].reason(), HasSubstr("not tried again"));
  EXPECT_TRUE(RecallGuilty(*store, small).empty());
  EXPECT_TRUE(RecallGuilty(*store, "add").empty()) << "the variant itself did nothing wrong";
}

TEST(Guilty, EachFieldOfTheNameCounts) {
  tuner::v1::Device device;
  device.set_driver("1");
  device.set_card_name("card");
  const std::string name = GuiltyName("source", "compiler", device);
  EXPECT_NE(name, GuiltyName("other", "compiler", device));
  EXPECT_NE(name, GuiltyName("source", "other", device));
  tuner::v1::Device other = device;
  other.set_driver("2");
  EXPECT_NE(name, GuiltyName("source", "compiler", other));
  other = device;
  other.set_card_name("another");
  EXPECT_NE(name, GuiltyName("source", "compiler", other));
}

}  // namespace
}  // namespace phobos::engine
