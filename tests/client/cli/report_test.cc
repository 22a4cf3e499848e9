// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "client/cli/table.h"

namespace phobos::cli {
namespace {

template <typename Message>
Message Of(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

TEST(Table, ColumnsLineUp) {
  Table table({{"NAME"}, {"TIME", Table::Align::kRight}, {"LAST"}});
  table.Add({"a", "1 ms", "x"});
  table.Add({"longer", "100 ms", ""});
  table.Add({"\xc2\xb5", "2 s", "y"});  // one character of two bytes
  EXPECT_EQ(table.Text(),
            "NAME      TIME  LAST\n"
            "a         1 ms  x\n"
            "longer  100 ms\n"
            "\xc2\xb5          2 s  y\n");
}

TEST(Texts, OfValues) {
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(12345), "12.3 us");
  EXPECT_EQ(DurationText(1250000), "1.25 ms");
  EXPECT_EQ(DurationText(3000000000), "3.00 s");
  EXPECT_EQ(AgeText(119000), "119 s");
  EXPECT_EQ(AgeText(3600000), "60 min");
  EXPECT_EQ(AgeText(int64_t{5} * 3600000), "5 h");
  EXPECT_EQ(AgeText(int64_t{72} * 3600000), "3 d");
  EXPECT_EQ(BytesText(512), "512 B");
  EXPECT_EQ(BytesText(1536), "1.5 KiB");
  EXPECT_EQ(BytesText(int64_t{16} << 20), "16.0 MiB");
  EXPECT_EQ(PercentText(0.042), "4.2 %");
  EXPECT_EQ(TimeText(0), "-");
}

TEST(StatusText, OfABusyDaemon) {
  const auto status = Of<tuner::v1::GetStatusResponse>(R"pb(
    daemon_version: "0.1.0"
    compiler_fingerprint: "phobos-compile 0.1.0"
    pid: 42
    started_unix_ms: 1000
    socket: "/s"
    cache_dir: "/c"
    is_private: true
    resident_bytes: 12582912
    segment_bytes: 0
    connections: 1
    lookups: 3
    hits: 2
    tunes: 1
    problems: "the cache is read-only: tuning without remembering"
    workers {
      device { uuid: "host" card_name: "Some CPU (2 threads)" chip: "x86-64-v4" }
      pid: 43
      state: "timing"
      deaths: 1
    }
    jobs {
      job_id: "j1"
      kernel: "add"
      key: "N=1024"
      device_uuid: "host"
      waiters: 2
      age_ms: 5000
      progress { phase: PHASE_WARM_UP done: 100 total: 300 best_ns: 1500 estimate_ms: 4000 }
    }
    jobs {
      job_id: "j2"
      kernel: "mul"
      key: "N=7"
      device_uuid: "host"
      waiters: 1
      age_ms: 10
      progress { phase: PHASE_QUEUED queue_position: 1 note: "waiting for another process" }
    }
    caches {
      chip: "x86-64-v4"
      results: 5
      artifacts: 20
      artifact_bytes: 2048
      database_bytes: 4096
      is_remembering: false
    })pb");
  EXPECT_EQ(StatusText(status, 61000),
            "phobosd 0.1.0, pid 42, up 60 s, private to its user\n"
            "PROBLEM   the cache is read-only: tuning without remembering\n"
            "socket    /s\n"
            "cache     /c\n"
            "compiler  phobos-compile 0.1.0\n"
            "memory    12.0 MiB, 0 B lent to clients, 1 connection\n"
            "served    3 lookups, 2 hit, 1 tune\n"
            "\n"
            "DEVICE  CHIP       CARD                  WORKER  PID  DEATHS\n"
            "host    x86-64-v4  Some CPU (2 threads)  timing   43       1\n"
            "\n"
            "JOB  KERNEL  KEY     DEVICE  PHASE                DONE    BEST  LEFT  WAITERS  AGE\n"
            "j1   add     N=1024  host    warm_up           100/300  1.5 us   4 s        2  5 s\n"
            "j2   mul     N=7     host    queued, number 1        -       -     -        1  0 s\n"
            "j2: waiting for another process\n"
            "\n"
            "CACHE      RESULTS  ARTIFACTS     SIZE  DATABASE  REMEMBERS\n"
            "x86-64-v4        5         20  2.0 KiB   4.0 KiB  NO\n");
}

TEST(StatusText, OfAnIdleDaemon) {
  const std::string text = StatusText({}, 0);
  EXPECT_NE(text.find("No tune is running or waiting.\n"), std::string::npos);
  EXPECT_EQ(text.find("PROBLEM"), std::string::npos);
}

TEST(NoneFitsText, TellsWhatThereIsOfEachValueThatNoneHas) {
  std::vector<tuner::v1::ResultSummary> all(10);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].set_kernel("add");
    all[i].set_chip(i == 0 ? "sm_90" : "x86-64-v4");
    all[i].set_card_name("A card");
    all[i].set_key("M=1, N=" + std::to_string(i));
  }
  EXPECT_EQ(NoneFitsText(Of<tuner::v1::ResultFilter>(R"pb(
                           kernel: "add"
                           chip: "foo"
                           key { name: "N" value: 3 })pb"),
                         all),
            "No Result is stored that fits.\n--chip=foo fits none; there are sm_90, x86-64-v4\n");
  EXPECT_EQ(NoneFitsText(Of<tuner::v1::ResultFilter>(R"pb(
                           kernel: "ad"
                           card_name: "B"
                           key { name: "N" value: 33 })pb"),
                         all),
            "No Result is stored that fits.\n--kernel=ad fits none; there is add\n"
            "--card=B fits none; there is A card\n"
            "--key=N=33 fits none; there are M=1, N=0, N=1, N=2, N=3, N=4, N=5, N=6 and others\n");
  EXPECT_EQ(NoneFitsText(Of<tuner::v1::ResultFilter>("stale: true"), all),
            "No Result is stored that fits.\n");
}

TEST(ResultsText, ListsOrSaysThatThereIsNone) {
  EXPECT_EQ(NoneFitsText({}, {}), "No Result is stored.\n");
  setenv("TZ", "UTC", 1);
  const auto summary = Of<tuner::v1::ResultSummary>(R"pb(
    key_digest: "0123456789abcdef0123"
    kernel: "add"
    key: "N=1024"
    winner: "BLOCK=512"
    best_ns: 1500
    generation: 3
    finished_unix_ms: 0
    chip: "x86-64-v4"
    card_name: "CPU"
    contended: true
    pinned: true
    stale: true
    race_recorded: true
    variants_timed: 4
    variants_total: 5)pb");
  EXPECT_EQ(ResultsText({summary}),
            "KEY_DIGEST    KERNEL  KEY     WINNER       TIME  TIMED  GEN  WHEN  CHIP       CARD  "
            "FLAGS\n"
            "0123456789ab  add     N=1024  BLOCK=512  1.5 us    4/5    3  -     x86-64-v4  CPU   "
            "pinned contended stale race_recorded\n");
}

TEST(ResultText, ShowsEveryVariant) {
  const auto result = Of<tuner::v1::Result>(R"pb(
    kernel: "add"
    key { name: "N" value: 1024 }
    extents { name: "N" value: 1024 }
    device { uuid: "host" card_name: "CPU" chip: "x86-64-v4" driver: "6.1" }
    winner: 1
    winner_settings { name: "BLOCK" int_value: 512 }
    best_ns: 1500
    ties: 1
    ties: 2
    variants {
      index: 0
      settings { name: "BLOCK" int_value: 256 }
      status: VARIANT_STATUS_WRONG_RESULT
      reason: "out[3]: got 1, want 2\nand more"
    }
    variants {
      index: 1
      settings { name: "BLOCK" int_value: 512 }
      status: VARIANT_STATUS_TIMED
      best_ns: 1500
      median_ns: 1600
      spread: 0.1
      race_recorded: true
      race_detail: "line 7: its index is data\nand more"
    }
    variants {
      index: 2
      settings { name: "BLOCK" int_value: 1024 }
      status: VARIANT_STATUS_TIMED
      best_ns: 1490
      median_ns: 1700
      spread: 0.25
    }
    compiler_fingerprint: "c 1"
    stale: true
    split { total_ns: 900000000 compile_ns: 50000000 }
    lock: "flock"
    rounds: 20
    repeated_rounds: 2
    generation: 4
    asked_by: "uid 0 pid 7"
    key_digest: "abcd")pb");
  EXPECT_EQ(
      ResultText(result),
      "add  N=1024\n"
      "winner      BLOCK=512, 1.5 us\n"
      "extents     N=1024\n"
      "device      CPU (host, x86-64-v4, 6.1)\n"
      "compiler    c 1\n"
      "tuned       - by uid 0 pid 7, generation 4\n"
      "took        900 ms (compile 50 ms)\n"
      "rounds      20 (and 2 taken again); lock flock\n"
      "stale       timed by another compiler than the present one, which compiles the winner "
      "anew; tune with force to time again\n"
      "races       not proved: a recording of the tune's launch saw none (line 7: its index "
      "is data)\n"
      "key_digest  abcd\n"
      "\n"
      "   VARIANT  SETTINGS    STATUS           BEST  MEDIAN  SPREAD  RACE_FREE  REASON\n"
      "=        2  BLOCK=1024  timed         1.49 us  1.7 us  25.0 %  proved\n"
      "*        1  BLOCK=512   timed          1.5 us  1.6 us  10.0 %  recorded\n"
      "         0  BLOCK=256   wrong_result        -       -       -  -          out[3]: got 1, "
      "want 2\n"
      "\n"
      "* the winner, = as fast within noise; RACE_FREE: proved by the compiler, or recorded: "
      "seen on the tune's arguments\n");
}

}  // namespace
}  // namespace phobos::cli
