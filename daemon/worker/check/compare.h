// SPDX-License-Identifier: Apache-2.0
//
// Compares what a variant computed with what the reference says: integers and bools exactly; floats
// within |got - want| <= atol + rtol * max(|want|, rms(want)) in f64, a NaN matching a NaN, an
// infinity only itself. Equal bytes cost one pass at memory speed. Pure functions that use several
// threads on large tensors; any thread.
#ifndef PHOBOS_DAEMON_WORKER_CHECK_COMPARE_H_
#define PHOBOS_DAEMON_WORKER_CHECK_COMPARE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/types/span.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"

namespace phobos::worker {

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// What the rounding of a float type allows; zeros for the others.
Tolerance DefaultTolerance(compiler::v1::DType dtype);

// Root mean square of the finite elements; 0 when there are none, and for types other than floats.
double RootMeanSquare(compiler::v1::DType dtype, absl::Span<const std::byte> values);

// How two tensors differ.
struct Mismatch {
  int64_t first = 0;  // index of the first bad element, row-major
  double got = 0;
  double want = 0;
  std::string got_text;  // exact for integers, shortest that reads back for floats
  std::string want_text;
  double largest_error = 0;  // over all bad elements; infinity where one side alone is not finite
  int64_t differing = 0;
  int64_t elements = 0;
};

// nullopt when they match. `rms` is RootMeanSquare(dtype, want). REQUIRES: got.size() ==
// want.size(), a multiple of ElementBytes(dtype), which is not 0.
std::optional<Mismatch> Compare(compiler::v1::DType dtype, absl::Span<const std::byte> got,
                                absl::Span<const std::byte> want, Tolerance tolerance, double rms);

// For a tensor that is compared in pieces, in order: adds what Compare said of the piece whose
// first element is the tensor's `begin`-th. `elements` of the whole is the caller's to set.
void Append(std::optional<Mismatch>& all, int64_t begin, std::optional<Mismatch> piece);

// "out[3, 17] is 1.5, the reference says 2.5; ..." for a tensor of this shape.
std::string Describe(const Mismatch& mismatch, const std::string& tensor,
                     absl::Span<const int64_t> shape, compiler::v1::DType dtype,
                     Tolerance tolerance);

// "[3, 17]": a row-major index in a shape; "[i]" where the shape does not fit it.
std::string IndexText(int64_t index, absl::Span<const int64_t> shape);

// Index of the first byte that differs, found at memory speed. REQUIRES: equal sizes.
std::optional<int64_t> FirstDifference(absl::Span<const std::byte> a,
                                       absl::Span<const std::byte> b);

}  // namespace phobos::worker

#endif  // PHOBOS_DAEMON_WORKER_CHECK_COMPARE_H_
