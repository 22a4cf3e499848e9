// SPDX-License-Identifier: Apache-2.0
//
// The key of a Result, and the only place where its text is made: kernel source, chip, card and the
// values of the kernel's key extents, one field a line, with the version of the form. What else a
// Result depends on (options, compiler, driver, other extents) is a column of a generation, not
// part of the key. Pure functions, any thread.
#ifndef PHOBOS_DAEMON_ENGINE_KEY_H_
#define PHOBOS_DAEMON_ENGINE_KEY_H_

#include <string>

#include "absl/types/span.h"
#include "cache/result_store.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/types.pb.h"

namespace phobos::engine {

// Version of the key's text. It is on every user's disk: a change of form or of the way of
// measuring takes a new number and makes every stored Result a miss. Used: 1.
inline constexpr int kKeyFormat = 1;

// REQUIRES: `extents` has every name of description.key (CheckExtents).
cache::KeyColumns MakeKey(const compiler::v1::KernelDescription& description,
                          const tuner::v1::Device& device,
                          absl::Span<const tuner::v1::Extent> extents);

// "N=1024 M=3": the key's values, or all extents, for people and for columns.
std::string ValuesText(absl::Span<const cache::KeyValue> values);
std::string ExtentsText(const google::protobuf::RepeatedPtrField<tuner::v1::Extent>& extents);

// "BLOCK=1024 UNROLL=2".
std::string SettingsText(
    const google::protobuf::RepeatedPtrField<compiler::v1::Constant>& settings);

// The options as text: two tunes with the same text were made the same way.
std::string OptionsText(const tuner::v1::TuneOptions& options);

// Every field set: flush_l2 true and the tie policy `tie_break` where the request leaves them open.
tuner::v1::TuneOptions Resolved(const tuner::v1::TuneOptions& options,
                                tuner::v1::TieBreak tie_break);

}  // namespace phobos::engine

#endif  // PHOBOS_DAEMON_ENGINE_KEY_H_
