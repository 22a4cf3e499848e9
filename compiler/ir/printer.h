// SPDX-License-Identifier: Apache-2.0
//
// The text form of the tile IR, one op a line, for people and golden tests. Pure, any thread.
#ifndef PHOBOS_COMPILER_IR_PRINTER_H_
#define PHOBOS_COMPILER_IR_PRINTER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/ir.h"

namespace phobos::compiler::ir {

// A line for the signature, then a line an op, such as "%7: f32[256] = add %5, %6". It says all of
// the function but its file_name and the places of its ops; text/parser.h reads it back.
std::string Print(const Function& function);

// One op as a line of Print, without its regions.
std::string Print(const Function& function, const Op& op);

// What a kPrint says, as base/printed_text.h takes it: the kernel's name, this block's ids on its
// first PrintedAxes axes, each {i64}, then texts and operands in turns, and an end of line.
// `definitions`: DefinitionsOf the function.
std::string PrintFormat(const Function& function, const std::vector<const Op*>& definitions,
                        const Op& print);
// Up to the last axis that the kernel uses, and x.
int PrintedAxes(const Function& function);

// "add" for kAdd.
std::string_view Name(Opcode opcode);
std::optional<Opcode> OpcodeNamed(std::string_view name);

}  // namespace phobos::compiler::ir

#endif  // PHOBOS_COMPILER_IR_PRINTER_H_
