// SPDX-License-Identifier: Apache-2.0
//
// An image as the stand-in driver sees it: PTX, or what it itself linked from that, and the host
// twins that compiler.py wrote at its end, one a line:
//
//     // host-twin: /abs/path.so ENTRY SCRATCH_BYTES THREADS
//
// A twin has the host ABI (Artifact in proto/phobos/compiler/v1/manifest.proto) and computes on the
// CPU what the entry of that name would on the card. An entry without one does nothing. Immutable
// but for the count of launches, which the stream's thread alone touches.
#ifndef PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_IMAGE_H_
#define PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "client/launch/cuda/declarations.h"
#include "tests/gpu/fake_driver/script/script.h"

namespace phobos::fake {

namespace cuda = launch::cuda;

class Image {
 public:
  using Twin = void (*)(const uint64_t* slots, const int64_t* grid, int64_t first, int64_t end,
                        void* scratch);

  struct Entry {
    Twin twin = nullptr;
    size_t scratch_bytes = 0;
    size_t parameters = 0;  // as the PTX declares them
    int most_threads = 1024;
  };

  // What PTX becomes by linking.
  static std::string Cubin(const std::string& ptx, const Script& script);
  // The result that the driver would give for such an image; kSuccess: Make takes it.
  static cuda::Result Judge(const std::string& bytes, const Script& script, std::string* log);
  static std::shared_ptr<Image> Make(const std::string& bytes, const Script& script);

  const Entry* Find(const std::string& name) const;
  const KernelRule& rule() const { return rule_; }
  int64_t NextLaunch() { return ++launches_; }

 private:
  Entry Read(const std::string& text, size_t entry_at) const;
  void AddTwins(const std::string& text);

  std::map<std::string, Entry> entries_;
  KernelRule rule_;
  int64_t launches_ = 0;
};

// Runs a twin over a grid. False: it touched memory that is not there, as an illegal address on a
// card.
bool RunTwin(const Image::Entry& entry, const uint64_t* slots, const int64_t* grid);

}  // namespace phobos::fake

#endif  // PHOBOS_TESTS_GPU_FAKE_DRIVER_CARD_IMAGE_H_
