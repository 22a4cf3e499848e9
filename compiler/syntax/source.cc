// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/source.h"

#include <algorithm>
#include <utility>

#include "base/concat.h"
#include "compiler/syntax/lexer/utf8.h"

namespace phobos::compiler {
namespace {

// A line longer than this is shown as a window around the place.
constexpr int kShownColumns = 160;
constexpr int kColumnsBefore = 60;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\f'; }

// One character of a shown line: what could move the cursor or is no text becomes '?'.
void AppendShown(std::string_view character, std::string* out) {
  const unsigned char first = character[0];
  const bool is_control = character.size() == 1 && (first < 0x20 || first >= 0x7F);
  const int32_t code_point = character.size() > 1 ? Utf8CodePoint(character, 0) : 0;
  // These control terminals, or hide or turn the text around them.
  const bool is_invisible = (code_point >= 0x80 && code_point < 0xA0) ||
                            (code_point >= 0x200B && code_point <= 0x200F) ||
                            (code_point >= 0x2028 && code_point <= 0x202E) ||
                            (code_point >= 0x2060 && code_point <= 0x206F);
  if (is_control && character != "\t") {
    out->push_back(character == "\f" ? ' ' : '?');
  } else if (is_invisible) {
    out->push_back('?');
  } else {
    out->append(character);
  }
}

// Text from elsewhere, of which names and strings of the source are part.
std::string Shown(std::string_view text, bool may_have_lines) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const int length = Utf8Length(text, i);
    if (text[i] == '\n' && may_have_lines) {
      out.push_back('\n');
    } else {
      AppendShown(text.substr(i, length), &out);
    }
    i += length;
  }
  return out;
}

// A line of the source and the marks under it.
struct Excerpt {
  std::string line;
  std::string marks;
};

// Shows `line` with marks under the bytes [begin, end) of it.
Excerpt Show(std::string_view line, int begin, int end) {
  Excerpt excerpt;
  int column = 0;
  int first_shown = 0;
  for (int i = 0; i < begin; i += Utf8Length(line, i)) ++column;
  if (column > kShownColumns - kColumnsBefore) first_shown = column - kColumnsBefore;
  column = 0;
  if (first_shown > 0) {
    excerpt.line = "... ";
    excerpt.marks = "    ";
  }
  int i = 0;
  for (int length = 0; i < static_cast<int>(line.size()); i += length, ++column) {
    length = Utf8Length(line, i);
    if (column < first_shown) continue;
    if (column >= first_shown + kShownColumns) {
      excerpt.line += " ...";
      break;
    }
    AppendShown(line.substr(i, length), &excerpt.line);
    if (i < begin) {
      excerpt.marks.push_back(line[i] == '\t' ? '\t' : ' ');
    } else if (i < end) {
      excerpt.marks.push_back(i == begin ? '^' : '~');
    }
  }
  if (begin >= i) excerpt.marks.push_back('^');  // at the end of the line
  return excerpt;
}

}  // namespace

Source::Source(std::string file_name, std::string text)
    : file_name_(std::move(file_name)), text_(std::move(text)) {
  if (text_.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) {
    text_.erase(0, kByteOrderMark.size());
  }
  line_starts_.push_back(0);
  const size_t size = std::min(text_.size(), kMaxSourceBytes + 1);
  for (size_t i = 0; i < size; ++i) {
    const bool is_old_mac_end = text_[i] == '\r' && (i + 1 == size || text_[i + 1] != '\n');
    if (text_[i] == '\n' || is_old_mac_end) line_starts_.push_back(static_cast<int32_t>(i + 1));
  }
}

std::string_view Source::text(Span span) const {
  const int32_t size = static_cast<int32_t>(text_.size());
  const int32_t begin = std::clamp(span.begin, 0, size);
  return std::string_view(text_).substr(begin, std::clamp(span.end, begin, size) - begin);
}

int Source::Line(int32_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return std::max(1, static_cast<int>(after - line_starts_.begin()));
}

int Source::Column(int32_t offset) const {
  const int32_t start = line_starts_[Line(offset) - 1];
  int column = 1;
  for (int32_t i = start; i < std::min<int32_t>(offset, text_.size()); i += Utf8Length(text_, i)) {
    ++column;
  }
  return column;
}

std::string Source::Render(Span span, std::string_view problem, std::string_view remedy) const {
  const int line_number = Line(span.begin);
  const int32_t start = line_starts_[line_number - 1];
  int32_t end = line_number < static_cast<int>(line_starts_.size())
                    ? line_starts_[line_number]
                    : static_cast<int32_t>(text_.size());
  while (end > start && (text_[end - 1] == '\n' || text_[end - 1] == '\r')) --end;
  int32_t first = start;
  while (first < std::min(end, span.begin) && IsBlank(text_[first])) ++first;
  const std::string_view line = std::string_view(text_).substr(first, end - first);
  const Excerpt excerpt = Show(line, std::min(span.begin, end) - first,
                               std::min(std::max(span.end, span.begin + 1), end) - first);
  std::string message =
      Concat(Shown(file_name_, false), ":", line_number, ":", Column(span.begin),
             ": error: ", Shown(problem, false), "\n    ", excerpt.line, "\n    ", excerpt.marks);
  if (!remedy.empty()) Append(&message, "\nhelp: ", Shown(remedy, true));
  return message;
}

absl::Status Source::Error(Span span, std::string_view problem, std::string_view remedy) const {
  return absl::InvalidArgumentError(Render(span, problem, remedy));
}

Span Source::At(int line, int column) const {
  const int32_t size = static_cast<int32_t>(text_.size());
  int32_t begin = line_starts_[line - 1];
  for (int i = 1; i < column && begin < size; ++i) begin += Utf8Length(text_, begin);
  return {begin, std::min(begin + 1, size)};
}

}  // namespace phobos::compiler
