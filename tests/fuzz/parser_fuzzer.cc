// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a kernel's file: the front end ends, without a crash, and each error has its form.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/status/status.h"
#include "tests/compiler/main/front_end.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::Status status = phobos::compiler::RunFrontEnd(text);
  if (status.ok()) return 0;
  const std::string flaw = phobos::compiler::FlawOf(status, text);
  if (flaw.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", flaw.c_str(), std::string(status.message()).c_str());
  std::abort();
}
