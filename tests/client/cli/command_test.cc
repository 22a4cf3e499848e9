// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace phobos::cli {
namespace {

absl::StatusOr<Command> ParseWords(std::initializer_list<const char*> words) {
  std::vector<const char*> argv = {"phobosctl"};
  argv.insert(argv.end(), words.begin(), words.end());
  return Parse(static_cast<int>(argv.size()), argv.data());
}

void ExpectError(std::initializer_list<const char*> words, const std::string& part) {
  const auto command = ParseWords(words);
  ASSERT_FALSE(command.ok());
  EXPECT_NE(command.status().message().find(part), std::string::npos) << command.status();
}

TEST(Parse, Verbs) {
  EXPECT_EQ(ParseWords({})->verb, Verb::kHelp);
  EXPECT_EQ(ParseWords({"--help"})->verb, Verb::kHelp);
  EXPECT_EQ(ParseWords({"results", "list", "--help"})->verb, Verb::kHelp);
  ExpectError({"--socket", "status"}, "no command");
  EXPECT_EQ(ParseWords({"--version"})->verb, Verb::kVersion);
  EXPECT_EQ(ParseWords({"status"})->verb, Verb::kStatus);
  EXPECT_EQ(ParseWords({"results", "list"})->verb, Verb::kResultsList);
  const auto show = ParseWords({"results", "show", "3f9a", "--generation=2"});
  EXPECT_EQ(show->verb, Verb::kResultsShow);
  EXPECT_EQ(show->key_digest, "3f9a");
  EXPECT_EQ(show->generation, 2);
}

TEST(Parse, FlagsBeforeAndAfterTheCommand) {
  const auto command = ParseWords({"--format", "json", "results", "list", "--kernel=add", "--key",
                                   "N=1024", "--key=M=-3", "--chip=x86-64-v4", "--card=A B",
                                   "--source=abcd", "--stale", "--limit=5", "--socket=/s"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->format, Format::kJson);
  EXPECT_EQ(command->socket, "/s");
  EXPECT_EQ(command->limit, 5);
  EXPECT_EQ(command->filter.kernel(), "add");
  EXPECT_EQ(command->filter.chip(), "x86-64-v4");
  EXPECT_EQ(command->filter.card_name(), "A B");
  EXPECT_EQ(command->filter.source_digest(), "abcd");
  EXPECT_TRUE(command->filter.stale());
  ASSERT_EQ(command->filter.key_size(), 2);
  EXPECT_EQ(command->filter.key(0).name(), "N");
  EXPECT_EQ(command->filter.key(1).value(), -3);
}

TEST(Parse, ErrorsSayWhatToWrite) {
  ExpectError({"stat"}, "there are: status, results list, results show");
  ExpectError({"status", "now"}, "'status now' is no command");
  ExpectError({"results"}, "no command");
  ExpectError({"results", "drop"}, "no command");
  ExpectError({"results", "show"}, "takes one key digest");
  ExpectError({"results", "show", "a", "b"}, "takes one key digest");
  ExpectError({"status", "--format=xml"}, "--format: 'xml' is no format; write text or json");
  ExpectError({"status", "--form"}, "value is missing after --form");
  ExpectError({"status", "--colour"}, "unknown flag --colour");
  ExpectError({"results", "list", "--key=N"}, "write for example N=1024");
  ExpectError({"results", "list", "--key==3"}, "write for example N=1024");
  ExpectError({"results", "list", "--limit=0"}, "at least 1");
  ExpectError({"results", "list", "--limit=99999999999999999999"}, "at least 1");
  ExpectError({"results", "list", "--key=N=1", "--key=N=2"}, "--key: N is given twice");
  ExpectError({"results", "list", "--stale=1"}, "--stale takes no value, not --stale=1");
  ExpectError({"results", "show", "abcd", "--generation=0"}, "--generation: '0' is not");
}

TEST(Parse, DigestsAreHexadecimal) {
  for (const char* wrong : {"zz", "abc", "12zz", "", "3f9a ", "0x3f9a"}) {
    ExpectError({"results", "show", wrong}, "is no digest; write its first 4 hexadecimal digits");
  }
  ExpectError({"results", "show", std::string(65, 'a').c_str()}, "is no digest");
  ExpectError({"results", "list", "--source=zz"}, "--source: 'zz' is no digest");
  EXPECT_EQ(ParseWords({"results", "show", "3F9A"})->key_digest, "3f9a");
  EXPECT_EQ(ParseWords({"results", "list", "--source=ABCD"})->filter.source_digest(), "abcd");
}

TEST(Parse, AnEmptyValueIsRefusedForEveryFlagThatTakesOne) {
  for (const char* flag :
       {"format", "socket", "kernel", "key", "chip", "card", "source", "limit", "generation"}) {
    const std::string word = std::string("--") + flag + "=";
    ExpectError({"results", "list", word.c_str()},
                "--" + std::string(flag) + ": the value is empty");
  }
}

TEST(Parse, WhatIsNoUtf8IsRefused) {
  for (const char* flag : {"--kernel", "--chip", "--card", "--key", "--source"}) {
    ExpectError({"results", "list", flag, "\xff\xfe"},
                std::string(flag) + ": '\\xff\\xfe' is not UTF-8 text");
  }
  const char* path[] = {"phobosctl", "status", "--socket=/\xff"};  // which need be none
  EXPECT_TRUE(Parse(3, path).ok());
}

TEST(Parse, AFlagOfAnotherCommandIsRefused) {
  for (const char* flag : {"--kernel=add", "--key=N=1", "--chip=c", "--card=c", "--source=abcd",
                           "--stale", "--limit=1"}) {
    ExpectError({"status", flag}, "is a flag of phobosctl results list alone");
    ExpectError({"results", "show", "abcd", flag}, "is a flag of phobosctl results list alone");
  }
  ExpectError({"results", "list", "--generation=1"}, "is a flag of phobosctl results show alone");
  ExpectError({"status", "--generation=1"}, "is a flag of phobosctl results show alone");
}

TEST(Help, NamesEveryCommandAndFlag) {
  const std::string help = Help();
  for (const char* word :
       {"status", "results list", "results show KEY_DIGEST", "--format=text|json", "--socket=PATH",
        "Examples:", "Exit status", "\n  phobosctl status\n",
        "\n  phobosctl results list --kernel=add", "\n  phobosctl results show 3f9a\n"}) {
    EXPECT_NE(help.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace phobos::cli
