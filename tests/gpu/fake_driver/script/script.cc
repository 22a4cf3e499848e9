// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/fake_driver/script/script.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>

namespace phobos::fake {
namespace {

bool ReadOccasion(std::istream& words, bool has_result, Occasion& occasion) {
  std::string word;
  if (!(words >> occasion.number)) return false;
  if (has_result && !(words >> occasion.result)) return false;
  if (!(words >> word)) return true;
  return word == "once" && words >> occasion.once_file;
}

bool ReadKernel(std::istream& words, KernelRule& rule) {
  std::string verb;
  if (!(words >> rule.text >> verb)) return false;
  if (verb == "times") {
    for (int64_t time = 0; words >> time;) rule.times_ns.push_back(time);
    return !rule.times_ns.empty();
  }
  if (verb == "poke") {
    auto& [slot, offset] = rule.pokes.emplace_back();
    return static_cast<bool>(words >> slot >> offset);
  }
  if (verb == "lost") return ReadOccasion(words, true, rule.lost);
  if (verb == "lives") return static_cast<bool>(words >> rule.lives_calls);
  if (verb == "refuse") return ReadOccasion(words, true, rule.refuse);
  if (verb == "hang") return ReadOccasion(words, false, rule.hang);
  if (verb == "slow") return static_cast<bool>(words >> rule.slow_launch >> rule.slow_ms);
  if (verb == "link") return static_cast<bool>(words >> rule.link_result);
  if (verb == "local") return static_cast<bool>(words >> rule.local_bytes);
  if (verb == "max_threads") return static_cast<bool>(words >> rule.max_threads);
  return false;
}

bool ReadLine(std::istream& words, const std::string& verb, Script& script) {
  if (verb == "no_ipc") return script.no_ipc = true;
  if (verb == "mig") return script.mig = true;
  if (verb == "name") return static_cast<bool>(std::getline(words >> std::ws, script.name));
  if (verb == "version") return static_cast<bool>(words >> script.version);
  if (verb == "cards") return static_cast<bool>(words >> script.cards);
  if (verb == "capability") return static_cast<bool>(words >> script.major >> script.minor);
  if (verb == "fail") {
    Failure& failure = script.failures.emplace_back();
    return words >> failure.function && ReadOccasion(words, true, failure.when);
  }
  if (verb == "stall") {
    Failure& stall = script.stalls.emplace_back();
    return words >> stall.function && ReadOccasion(words, false, stall.when);
  }
  if (verb == "kernel") return ReadKernel(words, script.kernels.emplace_back());
  if (verb == "throttled" || verb == "foreign") {
    Span& span = verb == "foreign" ? script.foreign : script.throttled;
    return static_cast<bool>(words >> span.from >> span.to >> span.value);
  }
  const std::map<std::string, int64_t*> numbers = {
      {"memory_bytes", &script.memory_bytes}, {"l2_bytes", &script.l2_bytes},
      {"warm_ns", &script.warm_ns},           {"ramp_ms", &script.ramp_ms},
      {"link_ms", &script.link_ms},           {"temperature", &script.temperature},
      {"no_uses", &script.no_uses},
  };
  const auto found = numbers.find(verb);
  return found != numbers.end() && words >> *found->second;
}

}  // namespace

bool Occasion::IsDue(int64_t count) const {
  if (number < 0 || (number > 0 && number != count)) return false;
  if (once_file.empty()) return true;
  const int fd = open(once_file.c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  close(fd);
  return true;
}

KernelRule Script::RuleOf(const std::string& image) const {
  KernelRule all;
  for (const KernelRule& rule : kernels) {
    if (image.find(rule.text) == std::string::npos) continue;
    if (!rule.times_ns.empty()) all.times_ns = rule.times_ns;
    all.pokes.insert(all.pokes.end(), rule.pokes.begin(), rule.pokes.end());
    if (rule.lost.number >= 0) all.lost = rule.lost;
    if (rule.lives_calls >= 0) all.lives_calls = rule.lives_calls;
    if (rule.refuse.number >= 0) all.refuse = rule.refuse;
    if (rule.hang.number >= 0) all.hang = rule.hang;
    if (rule.slow_launch >= 0) {
      all.slow_launch = rule.slow_launch;
      all.slow_ms = rule.slow_ms;
    }
    if (rule.link_result != 0) all.link_result = rule.link_result;
    if (rule.local_bytes != 0) all.local_bytes = rule.local_bytes;
    if (rule.max_threads != 0) all.max_threads = rule.max_threads;
  }
  return all;
}

Script ReadScript() {
  Script script;
  const char* path = getenv("PHOBOS_FAKE_CUDA_SCRIPT");
  if (path == nullptr) return script;
  std::ifstream file(path);
  if (!file) {
    fprintf(stderr, "fake driver: cannot read %s\n", path);
    abort();
  }
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string verb;
    if (!(words >> verb)) continue;
    if (ReadLine(words, verb, script)) continue;
    fprintf(stderr, "fake driver: %s: cannot read \"%s\"\n", path, line.c_str());
    abort();
  }
  return script;
}

}  // namespace phobos::fake
