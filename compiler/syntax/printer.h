// SPDX-License-Identifier: Apache-2.0
//
// A syntax tree as text in one normal form: the same text for any two spellings of one tree
// (blanks, line joining, quotes, redundant parentheses, the language's alias), another one for any
// two trees that differ. It is what keys are made from, so a change here makes stored results
// unreachable. Pure, any thread.
#ifndef PHOBOS_COMPILER_SYNTAX_PRINTER_H_
#define PHOBOS_COMPILER_SYNTAX_PRINTER_H_

#include <string>
#include <string_view>

#include "compiler/syntax/ast.h"

namespace phobos::compiler::ast {

// One line without a line end, each operation in parentheses. The language is spelled "ph".
std::string Print(const Expr& expr);

// The same for people: with the parentheses that it needs.
std::string PrintShort(const Expr& expr);

// Lines, each with its line end, indented by two blanks for each of `depth` levels.
std::string Print(const Block& block, int depth);

// A string literal in double quotes, in ASCII but for UTF-8 text, escapes where they must be.
std::string Quote(std::string_view value);

// A double as the shortest text that reads back as it: 0.5, 1.0, 1e+30, inf, nan.
std::string PrintFloat(double value);

}  // namespace phobos::compiler::ast

#endif  // PHOBOS_COMPILER_SYNTAX_PRINTER_H_
