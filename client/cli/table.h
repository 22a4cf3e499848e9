// SPDX-License-Identifier: Apache-2.0
//
// Table writes rows of cells so that the columns line up, and the functions beside it write the
// values of cells. Pure, any thread.
#ifndef PHOBOS_CLIENT_CLI_TABLE_H_
#define PHOBOS_CLIENT_CLI_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace phobos::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };

  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns.
  void Add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  // The title line and the rows, each with a newline, none with blanks at its end.
  std::string Text() const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

std::string DurationText(int64_t ns);      // "980 ns", "12.3 us", "1.25 ms", "3.00 s"
std::string AgeText(int64_t ms);           // "12 s", "3 min", "5 h", "2 d"
std::string BytesText(int64_t bytes);      // "512 B", "1.5 KiB", "16.0 MiB"
std::string TimeText(int64_t unix_ms);     // "2025-06-01 12:30", in the local time zone
std::string PercentText(double fraction);  // "4.2 %"

}  // namespace phobos::cli

#endif  // PHOBOS_CLIENT_CLI_TABLE_H_
