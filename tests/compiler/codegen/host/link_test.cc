// SPDX-License-Identifier: Apache-2.0
//
// What a link that fails says, and what the next one is worth. Each case runs in a process of its
// own: lld keeps what it broke.
#include "compiler/codegen/host/object/link.h"

#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "compiler/codegen/host/object/machine.h"
#include "compiler/codegen/kernel/machine_code.h"
#include "llvm/IR/IRBuilder.h"

namespace phobos::compiler::host {
namespace {

// An object with a function `name`, which calls `callee` unless that is empty.
std::string ObjectOf(const std::string& name, const std::string& callee = "") {
  llvm::LLVMContext context;
  llvm::Module module("kernel", context);
  const auto machine = MakeMachine("x86-64-v3");
  if (!machine.ok()) return "";
  module.setDataLayout((*machine)->createDataLayout());
  module.setTargetTriple((*machine)->getTargetTriple().str());
  auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(context, "", function));
  if (!callee.empty()) builder.CreateCall(module.getOrInsertFunction(callee, type));
  builder.CreateRetVoid();
  const auto object = MakeObject(module, **machine);
  return object.ok() ? *object : "";
}

// The head of an object and nothing else, at which lld breaks off.
std::string Torn() { return ObjectOf("torn").substr(0, 20); }

// Links as the compiler does, where a crash of lld is caught.
absl::StatusOr<std::string> Link(const std::string& object) {
  absl::StatusOr<std::string> linked = absl::UnknownError("crashed outside lld");
  const absl::Status guarded =
      codegen::RunGuarded("a test", [&] { linked = LinkSharedObject(object); });
  if (!guarded.ok()) return guarded;
  return linked;
}

// Ends the process by 0 and says how the last link of `objects` ended.
[[noreturn]] void LinkAllAndTell(const std::vector<std::string>& objects, rlim_t most_files = 0) {
  absl::Status status;
  if (most_files != 0) {
    const rlimit files = {most_files, most_files};
    setrlimit(RLIMIT_NOFILE, &files);
  }
  for (const std::string& object : objects) status = Link(object).status();
  fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(0);
}

constexpr auto kEnded = [](int status) { return testing::ExitedWithCode(0)(status); };

TEST(LinkTest, AFaultOfTheObjectIsToldAndTheNextLinkIsGood) {
  const std::string wrong = ObjectOf("wrong", "nowhere");
  EXPECT_EXIT(LinkAllAndTell({wrong}), kEnded, "INTERNAL: .*undefined symbol: nowhere");
  EXPECT_EXIT(LinkAllAndTell({wrong, ObjectOf("right")}), kEnded, "^OK");
}

TEST(LinkTest, NothingIsBelievedAfterALinkThatWasBrokenOff) {
  EXPECT_EXIT(LinkAllAndTell({Torn()}), kEnded, "ABORTED: lld could not link");
  EXPECT_EXIT(LinkAllAndTell({Torn(), ObjectOf("right")}), kEnded, "ABORTED: lld broke off");
}

TEST(LinkTest, AMachineWithoutDescriptorsIsNoFaultOfTheObject) {
  const std::string right = ObjectOf("right");
  const int lowest_free = dup(0);
  close(lowest_free);
  for (const int spare : {0, 1, 2, 3}) {
    EXPECT_EXIT(LinkAllAndTell({right}, static_cast<rlim_t>(lowest_free + spare)), kEnded,
                "UNAVAILABLE: .*: Too many open files")
        << spare;
  }
  EXPECT_EXIT(LinkAllAndTell({right}, static_cast<rlim_t>(lowest_free + 16)), kEnded, "^OK");
}

TEST(LinkTest, AnOutputOfMoreThanAPipeHoldsIsWhole) {
  const auto small = LinkSharedObject(ObjectOf("f"));
  ASSERT_TRUE(small.ok()) << small.status();
  const auto large = LinkSharedObject(ObjectOf(std::string(300'000, 'f')));
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_GT(large->size(), small->size() + 290'000);
  EXPECT_EQ(large->substr(0, 4), small->substr(0, 4));
}

}  // namespace
}  // namespace phobos::compiler::host
