// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker/check/layout.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/status_matchers.h"

namespace phobos::worker {
namespace {

using ::phobos::testing::StatusIs;

TensorSetup Tensor(int64_t bytes, int modulo) {
  TensorSetup tensor;
  tensor.set_bytes(bytes);
  tensor.set_address_mod_256(modulo);
  return tensor;
}

absl::StatusOr<Layout> LayOutAll(const std::vector<TensorSetup>& tensors,
                                 int64_t most_alignment = 256) {
  std::vector<const TensorSetup*> pointers;
  for (const TensorSetup& tensor : tensors) pointers.push_back(&tensor);
  return LayOut(pointers, most_alignment);
}

TEST(Layout, KeepsAddressesAndGuardsBothSides) {
  const std::vector<TensorSetup> tensors = {Tensor(0, 0), Tensor(1, 255), Tensor(4096, 16),
                                            Tensor(1000, 64)};
  ASSERT_OK_AND_ASSIGN(const Layout layout, LayOutAll(tensors));
  ASSERT_EQ(layout.places.size(), tensors.size());
  int64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Place& place = layout.places[i];
    EXPECT_EQ(place.tensor % 256, tensors[i].address_mod_256());
    EXPECT_EQ(place.begin, end);
    EXPECT_GE(place.tensor - place.begin, kCanaryBytes);
    EXPECT_GE(place.end - place.tensor - place.bytes, kCanaryBytes);
    end = place.end;
  }
  EXPECT_EQ(layout.total_bytes, end);
}

// As an allocator's own blocks would, and nothing between two tensors is without a canary.
TEST(Layout, LargeTensorsBeginAtMultiplesOfLargePowersOfTwo) {
  const std::vector<TensorSetup> tensors = {Tensor(100, 0),
                                            Tensor(65535, 16),
                                            Tensor(65536, 0),
                                            Tensor((64 << 20) + 4, 32),
                                            Tensor(int64_t{1} << 33, 0),
                                            Tensor(511, 0),
                                            Tensor(512, 0)};
  const int64_t alignments[] = {256, 32768, 65536, 65536, 65536, 256, 512};
  ASSERT_OK_AND_ASSIGN(const Layout layout, LayOutAll(tensors, 65536));
  int64_t end = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Place& place = layout.places[i];
    EXPECT_EQ(place.tensor % alignments[i], tensors[i].address_mod_256()) << i;
    EXPECT_EQ(place.begin, end);
    EXPECT_GE(place.tensor - place.begin, kCanaryBytes);
    EXPECT_LT(place.tensor - place.begin, kCanaryBytes + alignments[i] + 256);
    EXPECT_LT(place.end - place.tensor - place.bytes, kCanaryBytes + 256);
    end = place.end;
  }
  EXPECT_EQ(layout.total_bytes, end);
}

TEST(Layout, RefusesNonsense) {
  EXPECT_THAT(LayOutAll({Tensor(-1, 0)}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(LayOutAll({Tensor(1, 256)}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(LayOutAll({Tensor(std::numeric_limits<int64_t>::max() / 2, 0), Tensor(8, 0),
                         Tensor(std::numeric_limits<int64_t>::max() / 2, 0)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace phobos::worker
