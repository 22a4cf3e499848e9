// SPDX-License-Identifier: Apache-2.0
#include "tests/cache/store_rows.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/concat.h"
#include "base/digest.h"

namespace phobos::cache {

KeyColumns AddKey(int64_t n) {
  KeyColumns key = {.text = Concat("kernel=add\nN=", n, "\n"),
                    .kernel = "add",
                    .source_digest = Sha256Hex("add"),
                    .chip = "x86-64-v3",
                    .card_name = "Test CPU, 2 threads",
                    .values = {{"N", n}}};
  key.digest = Sha256Hex(key.text);
  return key;
}

Generation GenerationAt(int64_t finished_unix_ms, size_t result_bytes) {
  Generation generation = {.result = Concat("result of ", finished_unix_ms),
                           .winner = "BLOCK=1024",
                           .best_ns = 4711,
                           .options = "flush_l2=1",
                           .compiler_fingerprint = "phobos-compile 1",
                           .driver = "6.1.0",
                           .card_uuid = "host",
                           .extents = "N=16",
                           .finished_unix_ms = finished_unix_ms,
                           .asked_by = "uid 1000 pid 4711",
                           .variants = {{.index = 0,
                                         .settings = "BLOCK=1024",
                                         .status = "timed",
                                         .best_ns = 4711,
                                         .median_ns = 5000,
                                         .artifact_digest = Sha256Hex("artifact"),
                                         .samples_ns = {5000, 4711}}}};
  while (generation.result.size() < result_bytes) generation.result += generation.result;
  return generation;
}

std::string TestFolder() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder =
      Concat(::testing::TempDir(), "/", test->test_suite_name(), ".", test->name());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace phobos::cache
