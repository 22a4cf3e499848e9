// SPDX-License-Identifier: Apache-2.0
#include "client/c/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace phobos::json {
namespace {

TEST(Json, Settings) {
  EXPECT_EQ(Settings({}), "{}");
  EXPECT_EQ(Settings({{"BLOCK", int64_t{256}},
                      {"F", 1.0},
                      {"B", false},
                      {"S", std::string("a\"b\\c\n\x01")},
                      {"I", std::numeric_limits<double>::infinity()},
                      {"N", std::monostate()}}),
            R"({"BLOCK":256,"F":1.0,"B":false,"S":"a\"b\\c\n\u0001","I":"inf","N":null})");
}

TEST(Json, Description) {
  KernelDescription description;
  description.kernel = "add";
  Parameter x;
  x.name = "x";
  x.dtype = DType::kBF16;
  x.is_tensor = true;
  x.dims = {{"N", 0}, {"", 4}};
  description.parameters = {x};
  description.extents = {"N"};
  description.variants = {{0, {{"BLOCK", int64_t{8}}}, "", 256, 32}};
  EXPECT_EQ(Description(description),
            R"({"kernel":"add","parameters":[{"name":"x","dtype":"bf16","is_tensor":true,)"
            R"("dims":[{"extent":"N","literal":0},{"literal":4}],"is_read":false,)"
            R"("is_written":false,"aligned_bytes":0}],"extents":["N"],)"
            R"("variants":[{"index":0,"settings":{"BLOCK":8},"threads":256,"index_bits":32}],)"
            R"("grid_dims_used":0,"line":0})");
}

TEST(Json, ResultAndItsOptionalParts) {
  Result result;
  result.kernel = "add";
  result.key = {{"N", 8}};
  result.options.rtol = 0.5;
  VariantResult variant;
  variant.status = static_cast<VariantStatus>(99);
  variant.samples_ns = {1, 2};
  variant.grid = Grid{1, 2, 3};
  result.variants = {variant};
  const std::string text = ResultText(result, true);
  EXPECT_NE(text.find(R"("key":{"N":8})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("options":{"rtol":0.5,"tie_break":"unspecified"})"), std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("status":"99","samples_ns":[1,2])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("grid":{"x":1,"y":2,"z":3})"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(R"("cached":true})")) << text;
}

}  // namespace
}  // namespace phobos::json
