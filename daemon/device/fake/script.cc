// SPDX-License-Identifier: Apache-2.0
#include "daemon/device/fake/script.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"

namespace phobos::device {
namespace {

using Words = absl::Span<const absl::string_view>;

bool Numbers(Words words, std::vector<int64_t>& numbers) {
  numbers.clear();
  for (const absl::string_view word : words) {
    if (!absl::SimpleAtoi(word, &numbers.emplace_back())) return false;
  }
  return !numbers.empty();
}

bool ParseOperation(absl::string_view word, FakeOperation& operation) {
  static const std::map<absl::string_view, FakeOperation> kOperations = {
      {"add", FakeOperation::kAdd},
      {"accumulate", FakeOperation::kAccumulate},
      {"nothing", FakeOperation::kNothing},
      {"shorter", FakeOperation::kShorter},
  };
  const auto found = kOperations.find(word);
  if (found == kOperations.end()) return false;
  operation = found->second;
  return true;
}

bool ParseEvent(Words words, FakeEvent& event) {
  if (words.size() == 3 && words[1] == "once") {
    event.once_file = std::string(words[2]);
  } else if (words.size() != 1) {
    return false;
  }
  return absl::SimpleAtoi(words[0], &event.launch);
}

bool ParseVariantLine(Words words, FakeVariant& variant) {
  const absl::string_view verb = words[0];
  const Words rest = words.subspan(1);
  std::vector<int64_t> numbers;
  if (verb == "no_memory") return variant.no_memory = rest.empty();
  if (verb == "op") return rest.size() == 1 && ParseOperation(rest[0], variant.operation);
  if (verb == "times") return Numbers(rest, variant.times_ns);
  if (verb == "crash") return ParseEvent(rest, variant.crash);
  if (verb == "hang") return ParseEvent(rest, variant.hang);
  if (!Numbers(rest, numbers) || numbers.size() != 2) return false;
  if (verb == "poke") {
    variant.pokes.push_back({static_cast<int>(numbers[0]), numbers[1]});
    return true;
  }
  if (verb == "slow") {
    variant.slow_launch = numbers[0];
    variant.slow_ms = numbers[1];
    return true;
  }
  return false;
}

bool ParseLine(Words words, FakeScript& script) {
  const Words rest = words.subspan(1);
  if (words[0] == "variant") {
    int index = 0;
    return rest.size() >= 2 && absl::SimpleAtoi(rest[0], &index) &&
           ParseVariantLine(rest.subspan(1), script.variants[index]);
  }
  if (words[0] == "memory_bytes" && rest.size() == 3 && rest[1] == "once") {
    script.memory_once_file = std::string(rest[2]);
    return absl::SimpleAtoi(rest[0], &script.memory_bytes);
  }
  std::vector<int64_t> numbers;
  if (!Numbers(rest, numbers)) return false;
  if (words[0] == "disturbed") {
    if (numbers.size() != 2) return false;
    script.disturbed_from = numbers[0];
    script.disturbed_to = numbers[1];
    return true;
  }
  const std::map<absl::string_view, int64_t*> fields = {
      {"resolution_ns", &script.resolution_ns},
      {"memory_bytes", &script.memory_bytes},
      {"warm_ns", &script.warm_ns},
      {"ramp_ms", &script.ramp_ms},
  };
  const auto field = fields.find(words[0]);
  if (field == fields.end() || numbers.size() != 1) return false;
  *field->second = numbers[0];
  return true;
}

}  // namespace

absl::StatusOr<FakeScript> ParseFakeScript(absl::string_view text) {
  FakeScript script;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view code = line.substr(0, line.find('#'));
    const std::vector<absl::string_view> words =
        absl::StrSplit(code, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    if (!ParseLine(words, script)) {
      return absl::InvalidArgumentError(
          absl::StrCat("script of the fake device: cannot read the line \"", line, "\""));
    }
  }
  return script;
}

}  // namespace phobos::device
