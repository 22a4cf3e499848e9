// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/open.h"

#include <cstdint>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "daemon/device/cpu/cpu_device.h"
#include "daemon/device/cuda/card_watch.h"
#include "daemon/device/cuda/cuda_device.h"
#include "daemon/device/cuda/nvml.h"
#include "daemon/device/fake/fake_device.h"
#include "daemon/device/fake/script.h"

namespace phobos::device {
namespace {

absl::StatusOr<std::unique_ptr<Device>> OpenFake(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::UnavailableError(absl::StrCat("cannot read the fake's script ", path));
  std::ostringstream text;
  text << file.rdbuf();
  ASSIGN_OR_RETURN(FakeScript script, ParseFakeScript(text.str()));
  return std::make_unique<FakeDevice>(std::move(script));
}

}  // namespace

Inventory ListGpus() {
  Inventory inventory;
  absl::StatusOr<std::vector<absl::StatusOr<tuner::v1::Device>>> cards = DescribeCards();
  if (!cards.ok()) {
    inventory.unavailable.push_back(absl::StrCat("CUDA: ", cards.status().message()));
    return inventory;
  }
  for (absl::StatusOr<tuner::v1::Device>& card : *cards) {
    if (card.ok()) {
      inventory.devices.push_back(*std::move(card));
    } else {
      inventory.unavailable.push_back(absl::StrCat("CUDA: ", card.status().message()));
    }
  }
  return inventory;
}

absl::StatusOr<std::string> LookAtGpu(const std::string& card_uuid) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Nvml> nvml, Nvml::Open(card_uuid));
  return LookAtCard(*nvml);
}

absl::StatusOr<std::unique_ptr<Device>> Open(const std::string& name) {
  absl::string_view rest = name;
  if (rest == "cpu") return OpenCpu(0);
  if (absl::ConsumePrefix(&rest, "cuda:")) return OpenCuda(std::string(rest));
  if (absl::ConsumePrefix(&rest, "fake:")) return OpenFake(std::string(rest));
  int64_t llc_bytes = 0;
  if (absl::ConsumePrefix(&rest, "cpu:") && absl::SimpleAtoi(rest, &llc_bytes) && llc_bytes > 0) {
    return OpenCpu(llc_bytes);
  }
  return absl::InvalidArgumentError(absl::StrCat("no device is called \"", name,
                                                 "\": cpu, cpu:LLC_BYTES, cuda:CARD or fake:FILE"));
}

}  // namespace phobos::device
