// SPDX-License-Identifier: Apache-2.0
//
// How a cubin, the card's own code that the driver made of PTX, is kept in a file: its bytes, then
// the 64 digits of their SHA-256. A file that was damaged is seen as such, and nobody runs it. Pure
// functions; any thread.
#ifndef PHOBOS_CLIENT_LAUNCH_CUDA_CUBIN_H_
#define PHOBOS_CLIENT_LAUNCH_CUDA_CUBIN_H_

#include <string>

#include "client/launch/cuda/card.h"

namespace phobos::launch::cuda {

// Where the cubin made from a PTX file is kept: beside it, one for each kind of card and version of
// the driver, because another one's cubin may not load. On disk: another way to write the file
// needs another ending (".cubin" was the bytes alone).
std::string CubinPath(const std::string& ptx_path, const Card& card, int driver_version);

// What the file has for that cubin.
std::string SealCubin(std::string cubin);

// The cubin that such a file's bytes have; empty: they are not what was written.
std::string UnsealCubin(std::string bytes);

}  // namespace phobos::launch::cuda

#endif  // PHOBOS_CLIENT_LAUNCH_CUDA_CUBIN_H_
