// SPDX-License-Identifier: Apache-2.0
//
// What a GPU's device takes from another process by CUDA IPC, and what it refuses, on the stand-in
// driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "client/launch/cuda/driver.h"
#include "daemon/device/open.h"
#include "tests/gpu/fake_driver/in_process.h"
#include "tests/status_matchers.h"

namespace phobos::device {
namespace {

namespace cuda = launch::cuda;
using ::phobos::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kBytes = 1000;

// Another process: fills an allocation of kBytes with 0, 1, 2 ..., tells its handle, and stays.
void Own(int to) {
  const auto driver = *cuda::CudaDriver::Load();
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::DevicePointer pointer = 0;
  std::vector<uint8_t> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<uint8_t>(i);
  cuda::IpcHandle handle = {};
  const bool is_ready =
      (*driver)->retain_context(&context, 0) == 0 && (*driver)->push_context(context) == 0 &&
      (*driver)->create_stream(&stream, 0) == 0 && (*driver)->allocate(&pointer, kBytes) == 0 &&
      (*driver)->copy(pointer, reinterpret_cast<cuda::DevicePointer>(bytes.data()), kBytes,
                      stream) == 0 &&
      (*driver)->synchronize_stream(stream) == 0 && (*driver)->ipc_handle(&handle, pointer) == 0;
  if (!is_ready || write(to, &handle, sizeof(handle)) != sizeof(handle)) _exit(1);
  pause();
}

// Runs `body` with the handle of another process's allocation; gives the driver's calls.
std::vector<std::string> WithForeign(const std::string& script,
                                     const std::function<void(const std::string&)>& body) {
  return fake::InProcess(script, [&] {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t owner = fork();
    if (owner == 0) Own(ends[1]);
    char handle[64];
    ASSERT_EQ(read(ends[0], handle, sizeof(handle)), ssize_t{sizeof(handle)});
    body(std::string(handle, sizeof(handle)));
    kill(owner, SIGKILL);
    waitpid(owner, nullptr, 0);
  });
}

int64_t Count(const std::vector<std::string>& calls, const std::string& name) {
  return std::count_if(calls.begin(), calls.end(),
                       [&](const std::string& call) { return call.rfind(name, 0) == 0; });
}

TEST(FetchTest, AnAllocationIsOpenedOnceAndClosed) {
  const auto calls = WithForeign("", [](const std::string& handle) {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    std::vector<std::byte> first(10), last(1);
    EXPECT_OK(device->Fetch(std::vector<ForeignBytes>{{"x", handle, 5, 10, first.data()},
                                                      {"y", handle, kBytes - 1, 1, last.data()}}));
    for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i], std::byte(i + 5));
    EXPECT_EQ(last[0], std::byte((kBytes - 1) % 256));
  });
  EXPECT_EQ(Count(calls, "cuIpcOpenMemHandle"), 1);
  EXPECT_EQ(Count(calls, "cuIpcCloseMemHandle"), 1);
}

TEST(FetchTest, ACopyStaysOnTheDevice) {
  WithForeign("", [](const std::string& handle) {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    ASSERT_OK_AND_ASSIGN(std::byte* const kept, device->ReservePreloaded(300));
    std::vector<std::byte> here(10);
    ASSERT_OK(
        device->Fetch(std::vector<ForeignBytes>{{"x", handle, 5, 10, here.data(), kept + 64}}));
    ASSERT_OK_AND_ASSIGN(const std::byte* const read, device->Read(kept + 64, 10));
    for (size_t i = 0; i < here.size(); ++i) {
      EXPECT_EQ(here[i], std::byte(i + 5));
      EXPECT_EQ(read[i], std::byte(i + 5));
    }
  });
}

TEST(FetchTest, ARangeOutsideItsAllocationIsRefused) {
  const auto calls = WithForeign("", [](const std::string& handle) {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    std::byte byte{77};
    const int64_t far = int64_t{1} << 62;
    for (const auto& [offset, bytes] : std::vector<std::pair<int64_t, int64_t>>{
             {kBytes, 1}, {1, kBytes}, {-1, 1}, {0, -1}, {far, far}, {1, far}}) {
      EXPECT_THAT(device->Fetch(std::vector<ForeignBytes>{{"x", handle, offset, bytes, &byte}}),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           AllOf(HasSubstr("x has"), HasSubstr("which has 1000"))));
    }
    EXPECT_EQ(byte, std::byte{77});
  });
  EXPECT_EQ(Count(calls, "cuIpcOpenMemHandle"), 6);
  EXPECT_EQ(Count(calls, "cuIpcCloseMemHandle"), 6);
}

TEST(FetchTest, WhatCannotBeOpenedIsNamedWithoutItsHandle) {
  WithForeign("fail cuIpcOpenMemHandle_v2 0 201", [](const std::string& handle) {
    ASSERT_OK_AND_ASSIGN(const auto device, Open("cuda:0"));
    std::byte byte;
    const absl::Status refused =
        device->Fetch(std::vector<ForeignBytes>{{"x", handle, 0, 1, &byte}});
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kFailedPrecondition,
                                  HasSubstr("the allocation of x cannot be opened")));
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr(handle.substr(0, 8))));
    EXPECT_THAT(device->Fetch(std::vector<ForeignBytes>{{"x", "short", 0, 1, &byte}}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not the size")));
  });
}

}  // namespace
}  // namespace phobos::device
