// SPDX-License-Identifier: Apache-2.0
//
// Texts of values for people, and a look at texts from them. Pure, any thread.
#ifndef PHOBOS_CLIENT_CPP_TEXT_H_
#define PHOBOS_CLIENT_CPP_TEXT_H_

#include <string>
#include <string_view>
#include <vector>

#include "client/stub/wire/types.h"

namespace phobos {

// "BLOCK=1024, UNROLL=2"; "no constants" for none.
std::string SettingsText(const std::vector<Constant>& settings);

// The shortest decimal text that reads back as the same number; it has a point or an exponent, or
// is one of "nan", "inf", "-inf".
std::string FloatText(double value);

// Why variants are not among the timed ones: one line a reason, "left out BLOCK=256: race: ...".
std::vector<std::string> LeftOutLines(const Result& result);

bool IsUtf8(std::string_view text);

// The text with each byte that is no UTF-8 written as four characters, "\xff".
std::string Utf8Of(std::string_view text);

}  // namespace phobos

#endif  // PHOBOS_CLIENT_CPP_TEXT_H_
