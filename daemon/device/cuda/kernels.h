// SPDX-License-Identifier: Apache-2.0
//
// The worker's own kernels, as PTX that every card takes that kernels are compiled for. A constant;
// any thread.
#ifndef PHOBOS_DAEMON_DEVICE_CUDA_KERNELS_H_
#define PHOBOS_DAEMON_DEVICE_CUDA_KERNELS_H_

namespace phobos::device {

// Block size that the entries take.
inline constexpr int kOwnThreads = 256;

// phobos_nothing: no parameter. What it takes is the floor of every sample.
inline constexpr char kNothing[] = "phobos_nothing";

// phobos_first_difference(a, b, count, first): compares two places of `count` times 16 bytes, both
// aligned to 16, and lowers the 8 bytes at `first` to the index of the first 16 bytes that differ.
// For any grid: a block takes every so-many-th of them.
inline constexpr char kFirstDifference[] = "phobos_first_difference";

extern const char kOwnPtx[];

}  // namespace phobos::device

#endif  // PHOBOS_DAEMON_DEVICE_CUDA_KERNELS_H_
