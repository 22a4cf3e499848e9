// SPDX-License-Identifier: Apache-2.0
//
// CardLooks: whether anything else has a card now, as child processes of the daemon see it
// (worker/supervisor.h, LookMain). One looks at a card at a time, and what it saw holds for a
// while, so that many who ask at once cost one look. Any thread.
#ifndef PHOBOS_DAEMON_MAIN_CARD_LOOKS_H_
#define PHOBOS_DAEMON_MAIN_CARD_LOOKS_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "daemon/compile/command.h"

namespace phobos {

class CardLooks {
 public:
  // `program`: phobosd's path. `limit`: of a look; past it the child is killed. `holds`: how long
  // what was seen is taken to hold.
  explicit CardLooks(std::string program, absl::Duration limit = absl::Seconds(5),
                     absl::Duration holds = absl::Seconds(1))
      : program_(std::move(program)), limit_(limit), holds_(holds) {}

  // Whether nothing has that physical card; nullopt: it cannot be told. False, too, while a child
  // that was killed has not ended: it hangs in the driver, and so would the next. Blocks while
  // somebody looks, for the limit and a second at most.
  std::optional<bool> IsQuiet(const std::string& card_uuid);

 private:
  using Clock = std::chrono::steady_clock;
  struct Card {
    absl::Mutex mutex;  // held for the length of a look
    compile::CommandRunner runner{absl::Seconds(1)};
    std::optional<bool> is_quiet ABSL_GUARDED_BY(mutex);
    std::optional<Clock::time_point> looked ABSL_GUARDED_BY(mutex);
  };

  Card& Find(const std::string& card_uuid);
  std::optional<bool> Look(const std::string& card_uuid, Card& card);

  const std::string program_;
  const absl::Duration limit_;
  const absl::Duration holds_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, std::unique_ptr<Card>> cards_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace phobos

#endif  // PHOBOS_DAEMON_MAIN_CARD_LOOKS_H_
