// SPDX-License-Identifier: Apache-2.0
#include "daemon/engine/key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>

#include "base/digest.h"

namespace phobos::engine {
namespace {

struct Given {
  compiler::v1::KernelDescription description;
  tuner::v1::Device device;
  std::vector<tuner::v1::Extent> extents;
};

tuner::v1::Extent MakeExtent(const std::string& name, int64_t value) {
  tuner::v1::Extent extent;
  extent.set_name(name);
  extent.set_value(value);
  return extent;
}

Given Base() {
  Given given;
  given.description.set_kernel("add");
  given.description.set_canonical_source("source");
  given.description.set_source_digest(Sha256Hex("source"));
  for (const char* name : {"N", "M", "K"}) given.description.add_extents(name);
  given.description.add_key("N");
  given.description.add_key("M");
  given.device.set_uuid("GPU-1");
  given.device.set_chip("sm_90");
  given.device.set_card_name("NVIDIA H200");
  given.device.set_driver("580.1");
  given.extents = {MakeExtent("N", 16), MakeExtent("M", 3), MakeExtent("K", 5)};
  return given;
}

cache::KeyColumns KeyOf(const Given& given) {
  return MakeKey(given.description, given.device, given.extents);
}

TEST(Key, TextIsCanonical) {
  const cache::KeyColumns key = KeyOf(Base());
  EXPECT_EQ(key.text, "format=1\nkernel=add\nsource=" + Sha256Hex("source") +
                          "\nchip=sm_90\ncard=NVIDIA H200\nextent N=16\nextent M=3\n");
  EXPECT_EQ(key.digest, Sha256Hex(key.text));
  EXPECT_EQ(key.kernel, "add");
  EXPECT_EQ(key.chip, "sm_90");
  EXPECT_EQ(key.card_name, "NVIDIA H200");
  EXPECT_EQ(ValuesText(key.values), "N=16 M=3");
}

// Each field of the key alone makes another key; a field that is not part of it makes the same one.
TEST(Key, PerturbingAFieldMakesAnotherKey) {
  const std::function<void(Given&)> perturbations[] = {
      [](Given& g) { g.description.set_kernel("sub"); },
      [](Given& g) { g.description.set_source_digest(Sha256Hex("other")); },
      [](Given& g) { g.device.set_chip("sm_80"); },
      [](Given& g) { g.device.set_card_name("NVIDIA A100"); },
      [](Given& g) { g.extents[0].set_value(17); },
      [](Given& g) { g.extents[1].set_value(4); },
      [](Given& g) { g.description.add_key("K"); },
      [](Given& g) { g.description.mutable_key()->RemoveLast(); },
      [](Given& g) { g.device.set_card_name("NVIDIA H200\nextent N=16"); },
  };
  std::set<std::string> digests = {KeyOf(Base()).digest};
  for (const auto& perturb : perturbations) {
    Given given = Base();
    perturb(given);
    EXPECT_TRUE(digests.insert(KeyOf(given).digest).second) << KeyOf(given).text;
  }
}

TEST(Key, OtherFieldsKeepTheKey) {
  const std::function<void(Given&)> perturbations[] = {
      [](Given& g) { g.extents[2].set_value(6); },  // K is no key extent
      [](Given& g) { std::swap(g.extents[0], g.extents[2]); },
      [](Given& g) { g.device.set_uuid("GPU-2"); },
      [](Given& g) { g.device.set_driver("999"); },
      [](Given& g) { g.description.set_line(77); },
  };
  for (const auto& perturb : perturbations) {
    Given given = Base();
    perturb(given);
    EXPECT_EQ(KeyOf(given).text, KeyOf(Base()).text);
  }
}

TEST(Options, ResolvedFillsWhatIsOpen) {
  tuner::v1::TuneOptions options;
  tuner::v1::TuneOptions resolved = Resolved(options, tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE);
  EXPECT_TRUE(resolved.flush_l2());
  EXPECT_EQ(resolved.tie_break(), tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE);
  options.set_flush_l2(false);
  options.set_tie_break(tuner::v1::TIE_BREAK_FASTEST);
  resolved = Resolved(options, tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE);
  EXPECT_FALSE(resolved.flush_l2());
  EXPECT_EQ(resolved.tie_break(), tuner::v1::TIE_BREAK_FASTEST);
  options.set_tie_break(static_cast<tuner::v1::TieBreak>(99));
  EXPECT_EQ(Resolved(options, tuner::v1::TIE_BREAK_FASTEST).tie_break(),
            tuner::v1::TIE_BREAK_FASTEST);
}

TEST(Options, TextTellsThemApart) {
  std::set<std::string> texts;
  tuner::v1::TuneOptions options = Resolved({}, tuner::v1::TIE_BREAK_FASTEST);
  EXPECT_TRUE(texts.insert(OptionsText(options)).second);
  options.set_rtol(1e-3);
  EXPECT_TRUE(texts.insert(OptionsText(options)).second);
  options.set_rtol(1e-3 + std::numeric_limits<double>::epsilon());
  EXPECT_TRUE(texts.insert(OptionsText(options)).second);
  options.set_atol(0);
  EXPECT_TRUE(texts.insert(OptionsText(options)).second);
  options.set_flush_l2(false);
  EXPECT_TRUE(texts.insert(OptionsText(options)).second);
  options.set_tie_break(tuner::v1::TIE_BREAK_FIRST_WITHIN_NOISE);
  EXPECT_TRUE(texts.insert(OptionsText(options)).second);
}

TEST(Settings, AreReadable) {
  compiler::v1::VariantSettings variant;
  compiler::v1::Constant& block = *variant.add_settings();
  block.set_name("BLOCK");
  block.set_int_value(1024);
  compiler::v1::Constant& fast = *variant.add_settings();
  fast.set_name("FAST");
  fast.set_bool_value(true);
  compiler::v1::Constant& precision = *variant.add_settings();
  precision.set_name("P");
  precision.set_string_value("tf32");
  EXPECT_EQ(SettingsText(variant.settings()), "BLOCK=1024 FAST=True P=tf32");
}

}  // namespace
}  // namespace phobos::engine
