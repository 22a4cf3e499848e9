// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/table.h"
#include "proto/phobos/compiler/v1/manifest.pb.h"
#include "proto/phobos/tuner/v1/tuner.pb.h"

namespace phobos::cli {
namespace {

namespace proto = tuner::v1;
using Align = Table::Align;

constexpr size_t kShownDigits = 12;  // of a digest; enough to name it
constexpr size_t kLongestReason = 100;
constexpr size_t kShownValues = 8;  // of those that a filter could have had

std::string Plural(int64_t count, absl::string_view thing) {
  return absl::StrCat(count, " ", thing, count == 1 ? "" : "s");
}

// An enum value as a word: the rest of its name.
std::string Word(absl::string_view name, absl::string_view prefix, int number) {
  if (name.empty()) return absl::StrCat(number);
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

std::string StatusWord(proto::VariantStatus status) {
  return Word(proto::VariantStatus_Name(status), "VARIANT_STATUS_", status);
}

std::string PhaseWord(proto::Phase phase) {
  return Word(proto::Phase_Name(phase), "PHASE_", phase);
}

std::string ValueText(const compiler::v1::Constant& constant) {
  switch (constant.value_case()) {
    case compiler::v1::Constant::kIntValue:
      return absl::StrCat(constant.int_value());
    case compiler::v1::Constant::kFloatValue:
      return absl::StrCat(constant.float_value());
    case compiler::v1::Constant::kBoolValue:
      return constant.bool_value() ? "True" : "False";
    case compiler::v1::Constant::kStringValue:
      return absl::StrCat("\"", constant.string_value(), "\"");
    case compiler::v1::Constant::VALUE_NOT_SET:
      break;
  }
  return "?";
}

template <typename Settings>
std::string SettingsText(const Settings& settings) {
  return absl::StrJoin(settings, " ", [](std::string* out, const compiler::v1::Constant& c) {
    absl::StrAppend(out, c.name(), "=", ValueText(c));
  });
}

template <typename Extents>
std::string ExtentsText(const Extents& extents) {
  return absl::StrJoin(extents, " ", [](std::string* out, const proto::Extent& e) {
    absl::StrAppend(out, e.name(), "=", e.value());
  });
}

// The first line of a reason, cut where it would break the table.
std::string ShortReason(const std::string& reason) {
  std::string line = reason.substr(0, reason.find('\n'));
  if (line.size() > kLongestReason) line = line.substr(0, kLongestReason - 3) + "...";
  return line;
}

void AppendWorkers(const proto::GetStatusResponse& status, std::string& text) {
  Table table({{"DEVICE"},
               {"CHIP"},
               {"CARD"},
               {"WORKER"},
               {"PID", Align::kRight},
               {"DEATHS", Align::kRight}});
  for (const proto::WorkerStatus& worker : status.workers()) {
    table.Add({worker.device().uuid(), worker.device().chip(), worker.device().card_name(),
               worker.state(), worker.pid() == 0 ? "-" : absl::StrCat(worker.pid()),
               absl::StrCat(worker.deaths())});
  }
  if (!table.empty()) absl::StrAppend(&text, "\n", table.Text());
}

void AppendJobs(const proto::GetStatusResponse& status, std::string& text) {
  Table table({{"JOB"},
               {"KERNEL"},
               {"KEY"},
               {"DEVICE"},
               {"PHASE"},
               {"DONE", Align::kRight},
               {"BEST", Align::kRight},
               {"LEFT", Align::kRight},
               {"WAITERS", Align::kRight},
               {"AGE", Align::kRight}});
  std::string notes;
  for (const proto::JobStatus& job : status.jobs()) {
    const proto::Progress& progress = job.progress();
    if (!progress.note().empty()) {
      absl::StrAppend(&notes, job.job_id(), ": ", progress.note(), "\n");
    }
    const std::string phase = progress.queue_position() > 0
                                  ? absl::StrCat("queued, number ", progress.queue_position())
                                  : PhaseWord(progress.phase());
    table.Add({job.job_id(), job.kernel(), job.key(), job.device_uuid(), phase,
               progress.total() > 0 ? absl::StrCat(progress.done(), "/", progress.total()) : "-",
               progress.best_ns() > 0 ? DurationText(progress.best_ns()) : "-",
               progress.estimate_ms() > 0 ? AgeText(progress.estimate_ms()) : "-",
               absl::StrCat(job.waiters()), AgeText(job.age_ms())});
  }
  absl::StrAppend(&text, "\n", table.empty() ? "No tune is running or waiting.\n" : table.Text(),
                  notes);
}

void AppendCaches(const proto::GetStatusResponse& status, std::string& text) {
  Table table({{"CACHE"},
               {"RESULTS", Align::kRight},
               {"ARTIFACTS", Align::kRight},
               {"SIZE", Align::kRight},
               {"DATABASE", Align::kRight},
               {"REMEMBERS"}});
  for (const proto::CacheStatus& cache : status.caches()) {
    table.Add({cache.chip(), absl::StrCat(cache.results()), absl::StrCat(cache.artifacts()),
               BytesText(cache.artifact_bytes()), BytesText(cache.database_bytes()),
               cache.is_remembering() ? "yes" : "NO"});
  }
  if (!table.empty()) absl::StrAppend(&text, "\n", table.Text());
}

std::string Flags(const proto::ResultSummary& result) {
  std::vector<std::string> flags;
  if (result.pinned()) flags.push_back("pinned");
  if (result.contended()) flags.push_back("contended");
  if (result.stale()) flags.push_back("stale");
  if (result.race_recorded()) flags.push_back("race_recorded");
  return absl::StrJoin(flags, " ");
}

// The parts of a tune's time that are not zero.
std::string SplitText(const proto::TimeSplit& split) {
  const std::pair<const char*, int64_t> parts[] = {
      {"queue", split.queue_ns()},     {"upload", split.upload_ns()},
      {"compile", split.compile_ns()}, {"reference", split.reference_ns()},
      {"check", split.check_ns()},     {"warm-up", split.warm_up_ns()},
      {"timing", split.timing_ns()},
  };
  std::string text = DurationText(split.total_ns());
  std::string inside;
  for (const auto& [name, ns] : parts) {
    if (ns > 0) absl::StrAppend(&inside, inside.empty() ? "" : ", ", name, " ", DurationText(ns));
  }
  return inside.empty() ? text : absl::StrCat(text, " (", inside, ")");
}

// How it is known that the variant's blocks do not race.
const char* RaceFreeWord(const proto::VariantResult& variant) {
  if (variant.status() != proto::VARIANT_STATUS_TIMED) return "-";
  return variant.race_recorded() ? "recorded" : "proved";
}

// What to know of a Result before it is relied on; a line each.
std::string Remarks(const proto::Result& result) {
  std::string text;
  if (result.stale()) {
    absl::StrAppend(&text, "stale       timed by another compiler than the present one, which ",
                    "compiles the winner anew; tune with force to time again\n");
  }
  for (const proto::VariantResult& variant : result.variants()) {
    if (variant.index() != result.winner() || !variant.race_recorded()) continue;
    absl::StrAppend(&text, "races       not proved: a recording of the tune's launch saw none (",
                    variant.race_detail().substr(0, variant.race_detail().find('\n')), ")\n");
  }
  return text;
}

Table VariantTable(const proto::Result& result) {
  std::vector<const proto::VariantResult*> order;
  for (const proto::VariantResult& variant : result.variants()) order.push_back(&variant);
  // The fastest first; those that were not timed as they stand in the space.
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    const bool a_timed = a->status() == proto::VARIANT_STATUS_TIMED;
    const bool b_timed = b->status() == proto::VARIANT_STATUS_TIMED;
    if (a_timed != b_timed) return a_timed;
    return a_timed && a->best_ns() < b->best_ns();
  });
  Table table({{""},
               {"VARIANT", Align::kRight},
               {"SETTINGS"},
               {"STATUS"},
               {"BEST", Align::kRight},
               {"MEDIAN", Align::kRight},
               {"SPREAD", Align::kRight},
               {"RACE_FREE"},
               {"REASON"}});
  for (const proto::VariantResult* variant : order) {
    const bool is_timed = variant->status() == proto::VARIANT_STATUS_TIMED;
    const bool is_tie =
        std::count(result.ties().begin(), result.ties().end(), variant->index()) > 0;
    const char* mark = variant->index() == result.winner() ? "*" : is_tie ? "=" : "";
    table.Add({mark, absl::StrCat(variant->index()), SettingsText(variant->settings()),
               StatusWord(variant->status()), is_timed ? DurationText(variant->best_ns()) : "-",
               is_timed ? DurationText(variant->median_ns()) : "-",
               is_timed ? PercentText(variant->spread()) : "-", RaceFreeWord(*variant),
               ShortReason(variant->reason())});
  }
  return table;
}

// "1980 MHz, 41 C, 120 W".
std::string StateText(const proto::CardState& state) {
  std::string text = absl::StrFormat("%d MHz, %d C, %d W", state.sm_clock_mhz(),
                                     state.temperature_c(), state.power_mw() / 1000);
  if (!state.throttling().empty()) absl::StrAppend(&text, ", held down by ", state.throttling());
  return text;
}

}  // namespace

std::string StatusText(const proto::GetStatusResponse& status, int64_t now_unix_ms) {
  std::string text = absl::StrFormat("phobosd %s, pid %d, up %s%s\n", status.daemon_version(),
                                     status.pid(), AgeText(now_unix_ms - status.started_unix_ms()),
                                     status.is_private() ? ", private to its user" : "");
  for (const std::string& reason : status.unavailable()) {
    absl::StrAppend(&text, "not used  ", reason, "\n");
  }
  for (const std::string& problem : status.problems()) {
    absl::StrAppend(&text, "PROBLEM   ", problem, "\n");
  }
  absl::StrAppend(&text, "socket    ", status.socket(), "\n", "cache     ", status.cache_dir(),
                  "\n", "compiler  ", status.compiler_fingerprint(), "\n", "memory    ",
                  BytesText(status.resident_bytes()), ", ", BytesText(status.segment_bytes()),
                  " lent to clients, ", Plural(status.connections(), "connection"), "\n",
                  "served    ", Plural(status.lookups(), "lookup"), ", ", status.hits(), " hit, ",
                  Plural(status.tunes(), "tune"), "\n");
  AppendWorkers(status, text);
  AppendJobs(status, text);
  AppendCaches(status, text);
  return text;
}

std::string ResultsText(const std::vector<proto::ResultSummary>& results) {
  Table table({{"KEY_DIGEST"},
               {"KERNEL"},
               {"KEY"},
               {"WINNER"},
               {"TIME", Align::kRight},
               {"TIMED", Align::kRight},
               {"GEN", Align::kRight},
               {"WHEN"},
               {"CHIP"},
               {"CARD"},
               {"FLAGS"}});
  for (const proto::ResultSummary& result : results) {
    table.Add({result.key_digest().substr(0, kShownDigits), result.kernel(), result.key(),
               result.winner(), DurationText(result.best_ns()),
               absl::StrCat(result.variants_timed(), "/", result.variants_total()),
               absl::StrCat(result.generation()), TimeText(result.finished_unix_ms()),
               result.chip(), result.card_name(), Flags(result)});
  }
  return table.Text();
}

std::string NoneFitsText(const proto::ResultFilter& filter,
                         const std::vector<proto::ResultSummary>& all) {
  if (all.empty()) return "No Result is stored.\n";
  std::string text = "No Result is stored that fits.\n";
  const auto explain = [&](absl::string_view flag, const std::string& wanted,
                           const auto& values_of) {
    std::vector<std::string> there;  // newest first
    for (const proto::ResultSummary& result : all) {
      for (const std::string& value : values_of(result)) {
        if (value == wanted) return;
        if (!absl::c_linear_search(there, value)) there.push_back(value);
      }
    }
    const bool is_cut = there.size() > kShownValues;
    if (is_cut) there.resize(kShownValues);
    absl::StrAppend(&text, "--", flag, "=", wanted, " fits none; there ",
                    there.size() == 1 ? "is " : "are ", absl::StrJoin(there, ", "),
                    is_cut ? " and others" : "", "\n");
  };
  using Values = std::vector<std::string>;
  const auto explain_one = [&](absl::string_view flag, const std::string& wanted,
                               const std::string& (proto::ResultSummary::*value)() const) {
    if (wanted.empty()) return;
    explain(flag, wanted, [&](const auto& result) { return Values{(result.*value)()}; });
  };
  explain_one("kernel", filter.kernel(), &proto::ResultSummary::kernel);
  explain_one("chip", filter.chip(), &proto::ResultSummary::chip);
  explain_one("card", filter.card_name(), &proto::ResultSummary::card_name);
  for (const proto::Extent& extent : filter.key()) {
    explain("key", absl::StrCat(extent.name(), "=", extent.value()), [](const auto& result) {
      return Values(absl::StrSplit(result.key(), absl::ByAnyChar(", "), absl::SkipEmpty()));
    });
  }
  return text;
}

std::string ResultText(const proto::Result& result) {
  std::string text = absl::StrCat(
      result.kernel(), "  ", ExtentsText(result.key()), "\n", "winner      ",
      SettingsText(result.winner_settings()), ", ", DurationText(result.best_ns()),
      result.pinned() ? ", pinned" : "", result.contended() ? ", contended" : "", "\n",
      "extents     ", ExtentsText(result.extents()), "\n", "device      ",
      result.device().card_name(), " (", result.device().uuid(), ", ", result.device().chip(), ", ",
      result.device().driver(), ")\n", "compiler    ", result.compiler_fingerprint(), "\n",
      "tuned       ", TimeText(result.finished_unix_ms()), " by ", result.asked_by(),
      ", generation ", result.generation(), "\n", "took        ", SplitText(result.split()), "\n",
      "rounds      ", result.rounds());
  if (result.repeated_rounds() > 0) {
    absl::StrAppend(&text, " (and ", result.repeated_rounds(), " taken again)");
  }
  absl::StrAppend(&text, "; lock ", result.lock(), "\n");
  if (result.state_before().sm_clock_mhz() > 0) {
    absl::StrAppend(&text, "card        ", StateText(result.state_before()), "; after timing ",
                    StateText(result.state_after()), "\n");
  }
  absl::StrAppend(&text, Remarks(result), "key_digest  ", result.key_digest(), "\n\n",
                  VariantTable(result).Text(),
                  "\n* the winner, = as fast within noise; RACE_FREE: proved by the compiler, or ",
                  "recorded: seen on the tune's arguments\n");
  return text;
}

}  // namespace phobos::cli
