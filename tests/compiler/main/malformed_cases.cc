// SPDX-License-Identifier: Apache-2.0
#include "tests/compiler/main/malformed_cases.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace phobos::compiler {
namespace {

// "<<00 ff>>" as the bytes.
std::string Unescape(const std::string& text) {
  std::string out;
  size_t at = 0;
  while (at < text.size()) {
    const size_t open = text.find("<<", at);
    const size_t close = open == std::string::npos ? open : text.find(">>", open);
    const bool is_bytes = close != std::string::npos &&
                          text.find_first_not_of("0123456789abcdef ", open + 2) == close &&
                          close > open + 3;
    if (!is_bytes) {
      const size_t end = open == std::string::npos ? text.size() : open + 2;
      out += text.substr(at, end - at);
      at = end;
      continue;
    }
    out += text.substr(at, open - at);
    out += absl::HexStringToBytes(
        absl::StrReplaceAll(text.substr(open + 2, close - open - 2), {{" ", ""}}));
    at = close + 2;
  }
  return out;
}

std::string Join(const std::vector<std::string>& lines, const std::string& indent) {
  std::string out;
  for (size_t i = 0; i < lines.size(); ++i) out += (i == 0 ? "" : "\n" + indent) + lines[i];
  return out;
}

// The frame's text with the case's lines in place of '$'.
std::string InFrame(const std::vector<std::string>& frame, const std::vector<std::string>& lines) {
  if (frame.empty()) return Join(lines, "");
  std::vector<std::string> out;
  for (const std::string& line : frame) {
    const size_t place = line.find('$');
    if (place == std::string::npos) {
      out.push_back(line);
    } else {
      const std::string indent = line.find_first_not_of(' ') == place ? line.substr(0, place) : "";
      out.push_back(line.substr(0, place) + Join(lines, indent) + line.substr(place + 1));
    }
  }
  return Join(out, "");
}

void ReadFile(const std::filesystem::path& path, std::vector<MalformedCase>* cases) {
  std::ifstream file(path);
  std::vector<std::string> frame;
  std::vector<std::string> lines;
  bool in_frame = false;
  bool in_case = false;
  const auto finish = [&] {
    if (in_case) cases->back().source = Unescape(InFrame(frame, lines));
    in_case = false;
    lines.clear();
  };
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, "--- frame")) {
      finish();
      frame.clear();
      in_frame = true;
    } else if (absl::StartsWith(line, "=== ")) {
      finish();
      in_frame = false;
      in_case = true;
      cases->push_back({path.stem().string(), line.substr(4), "", {}, ""});
    } else if (in_case && lines.empty() && absl::StartsWith(line, ">>> ")) {
      const size_t blank = line.find(' ', 4);
      cases->back().place = line.substr(4, blank - 4);
      cases->back().expected = absl::StrSplit(line.substr(blank + 1), " | ");
    } else {
      (in_frame ? frame : lines).push_back(line);
    }
  }
  finish();
}

}  // namespace

std::vector<MalformedCase> ReadMalformedCases(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<MalformedCase> cases;
  for (const std::filesystem::path& path : paths) ReadFile(path, &cases);
  return cases;
}

}  // namespace phobos::compiler
