// SPDX-License-Identifier: Apache-2.0
#include "client/launch/cuda/cubin.h"

#include <string_view>
#include <utility>

#include "base/digest.h"

namespace phobos::launch::cuda {

std::string CubinPath(const std::string& ptx_path, const Card& card, int driver_version) {
  constexpr std::string_view kExtension = ".ptx";
  std::string stem = ptx_path;
  if (stem.ends_with(kExtension)) stem.resize(stem.size() - kExtension.size());
  // ".cubin" alone is a file without the digest, of older clients: neither takes the other's.
  return stem + ".cc" + std::to_string(card.major * 10 + card.minor) + "." +
         std::to_string(driver_version) + ".sealed.cubin";
}

std::string SealCubin(std::string cubin) {
  const std::string digest = Sha256Hex(cubin);
  return std::move(cubin) + digest;
}

std::string UnsealCubin(std::string bytes) {
  if (bytes.size() <= kSha256Digits) return "";
  const std::string digest = bytes.substr(bytes.size() - kSha256Digits);
  bytes.resize(bytes.size() - kSha256Digits);
  return Sha256Hex(bytes) == digest ? bytes : "";
}

}  // namespace phobos::launch::cuda
