// SPDX-License-Identifier: Apache-2.0
//
// Interprets a kernel's tile IR on arguments from a file: interpret IR ARGUMENTS RESULTS X Y Z.
// Both files hold, a parameter after the other, 64-bit words: the number of sides, the sides, and
// the elements as the interpreter has them. What the kernel prints goes to standard output. For
// compiled.py.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "compiler/interpreter/interpreter.h"
#include "compiler/ir/text/parser.h"

namespace phobos::compiler {
namespace {

using interpreter::Argument;

absl::StatusOr<std::vector<Argument>> ReadArguments(const char* path, size_t count) {
  std::ifstream file(path, std::ios::binary);
  const auto word = [&file] {
    int64_t value = 0;
    file.read(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  };
  std::vector<Argument> arguments(count);
  for (Argument& argument : arguments) {
    int64_t elements = 1;
    for (int64_t sides = word(); sides > 0; --sides) {
      argument.sides.push_back(word());
      elements *= argument.sides.back();
    }
    while (file.good() && static_cast<int64_t>(argument.elements.size()) < elements) {
      argument.elements.push_back(word());
    }
  }
  if (!file.good()) return absl::InvalidArgumentError("the arguments end too early");
  if (file.peek() != std::ifstream::traits_type::eof()) {
    return absl::InvalidArgumentError("there is more behind the last argument");
  }
  return arguments;
}

void WriteArguments(const char* path, const std::vector<Argument>& arguments) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&file](int64_t value) {
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const Argument& argument : arguments) {
    put(static_cast<int64_t>(argument.sides.size()));
    for (int64_t side : argument.sides) put(side);
    for (int64_t element : argument.elements) put(element);
  }
}

absl::Status Run(char** paths) {
  std::stringstream text;
  text << std::ifstream(paths[1]).rdbuf();
  ASSIGN_OR_RETURN(const ir::Function function, ir::Parse(text.str()));
  interpreter::Launch launch;
  ASSIGN_OR_RETURN(launch.arguments, ReadArguments(paths[2], function.params.size()));
  for (int axis = 0; axis < 3; ++axis) launch.grid[axis] = std::atoll(paths[4 + axis]);
  std::string printed;
  ASSIGN_OR_RETURN(const std::vector<Argument> results,
                   interpreter::Interpret(function, std::move(launch), {}, &printed));
  std::cout << printed;
  WriteArguments(paths[3], results);
  return absl::OkStatus();
}

}  // namespace
}  // namespace phobos::compiler

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const absl::Status status = phobos::compiler::Run(argv);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
