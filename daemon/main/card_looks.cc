// SPDX-License-Identifier: Apache-2.0
#include "daemon/main/card_looks.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "daemon/worker/supervisor.h"

namespace phobos {

std::optional<bool> CardLooks::IsQuiet(const std::string& card_uuid) {
  Card& card = Find(card_uuid);
  const absl::MutexLock lock(&card.mutex);
  if (card.runner.HasUnended()) return false;
  const bool is_known =
      card.looked.has_value() && absl::FromChrono(Clock::now() - *card.looked) < holds_;
  if (!is_known) {
    card.is_quiet = Look(card_uuid, card);
    card.looked = Clock::now();
  }
  return card.is_quiet;
}

CardLooks::Card& CardLooks::Find(const std::string& card_uuid) {
  const absl::MutexLock lock(&mutex_);
  std::unique_ptr<Card>& card = cards_[card_uuid];
  if (card == nullptr) card = std::make_unique<Card>();
  return *card;
}

std::optional<bool> CardLooks::Look(const std::string& card_uuid, Card& card) {
  const absl::StatusOr<compile::Ended> ended =
      card.runner.Run({.argv = {program_, absl::StrCat("--look-at-card=", card_uuid)},
                       .limit = limit_,
                       .runs_in_pauses = true});
  if (card.runner.HasUnended()) return false;
  if (ended.ok() && ended->exit_status == 0) return true;
  if (ended.ok() && ended->exit_status == worker::kCardIsBusy) return false;
  return std::nullopt;
}

}  // namespace phobos
