// SPDX-License-Identifier: Apache-2.0
#include "base/digest.h"

#include <gtest/gtest.h>

#include <string>

namespace phobos {
namespace {

// FIPS 180-4 examples and the lengths around the padding's edges (values from sha256sum).
TEST(Digest, KnownAnswers) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex(std::string(55, 'a')),
            "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(Sha256Hex(std::string(56, 'a')),
            "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, ItsFormIsKnown) {
  const std::string digest = Sha256Hex("abc");
  EXPECT_TRUE(IsSha256Hex(digest));
  EXPECT_FALSE(IsSha256Hex(digest + "0"));
  EXPECT_FALSE(IsSha256Hex(digest.substr(1)));
  EXPECT_FALSE(IsSha256Hex("g" + digest.substr(1)));
  EXPECT_FALSE(IsSha256Hex("A" + digest.substr(1)));
  EXPECT_FALSE(IsSha256Hex(std::string(64, '\0')));
  EXPECT_FALSE(IsSha256Hex(""));
}

}  // namespace
}  // namespace phobos
