// SPDX-License-Identifier: Apache-2.0
#include "client/cli/table.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace phobos::cli {
namespace {

// Characters, not bytes: a card's name may have a trademark sign.
size_t Width(const std::string& text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

}  // namespace

std::string Table::Text() const {
  std::vector<size_t> widths;
  for (const Column& column : columns_) widths.push_back(Width(column.title));
  for (const std::vector<std::string>& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  const auto write = [&](const auto& cell_of) {
    std::string line;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string cell = cell_of(i);
      const std::string padding(widths[i] - Width(cell), ' ');
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kRight ? padding + cell : cell + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  };
  write([&](size_t i) { return columns_[i].title; });
  for (const std::vector<std::string>& row : rows_) {
    write([&](size_t i) { return row[i]; });
  }
  return text;
}

std::string DurationText(int64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns < 1000) return absl::StrFormat("%d ns", ns);
  if (ns < 1000000) return absl::StrFormat("%.3g us", value / 1e3);
  if (ns < 1000000000) return absl::StrFormat("%.3g ms", value / 1e6);
  return absl::StrFormat("%.2f s", value / 1e9);
}

std::string AgeText(int64_t ms) {
  const int64_t seconds = ms / 1000;
  if (seconds < 120) return absl::StrFormat("%d s", seconds);
  if (seconds < 120 * 60) return absl::StrFormat("%d min", seconds / 60);
  if (seconds < 48 * 3600) return absl::StrFormat("%d h", seconds / 3600);
  return absl::StrFormat("%d d", seconds / 86400);
}

std::string BytesText(int64_t bytes) {
  if (bytes < 1024) return absl::StrFormat("%d B", bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, units[unit]);
}

std::string TimeText(int64_t unix_ms) {
  if (unix_ms == 0) return "-";
  return absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixMillis(unix_ms), absl::LocalTimeZone());
}

std::string PercentText(double fraction) { return absl::StrFormat("%.1f %%", fraction * 100); }

}  // namespace phobos::cli
