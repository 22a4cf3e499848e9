// SPDX-License-Identifier: Apache-2.0
//
// Steps over the host program's part of a file, which it need not understand, and keeps what the
// kernels' part must know of it: where the language is imported, which names module level binds and
// how often, the candidates for constants. Private to syntax/. One thread.
#ifndef PHOBOS_COMPILER_SYNTAX_HOST_CODE_H_
#define PHOBOS_COMPILER_SYNTAX_HOST_CODE_H_

#include <string>
#include <string_view>
#include <vector>

#include "compiler/syntax/ast.h"
#include "compiler/syntax/token_stream.h"

namespace phobos::compiler {

class HostCode {
 public:
  // `tokens` reads its aliases from `aliases`, to which imports of the language are added. Both
  // must outlive this.
  HostCode(TokenStream& tokens, std::vector<std::string>& aliases)
      : tokens_(tokens), aliases_(aliases) {}

  // Reads the imports of the language that stand anywhere at module level, also behind their use: a
  // notebook's client adds those of earlier cells at the end. Goes back to where it was.
  void FindImports();

  // Steps over one statement with its block.
  void SkipStatement();

  // Notes that a kernel or ph.fn of this name stands at module level.
  void NoteFunction(std::string_view name, Span span);

  // Moves what was found to `module`: constants, host names, places of what is not read.
  void Finish(ast::Module* module);

 private:
  // One binding of a name at module level.
  struct Binding {
    std::string name;
    Span span;
    std::string reason;  // why it makes no constant, when it does not
    ast::ExprPtr value;  // a candidate's
  };

  void SkipLine();
  void SkipBlock();
  bool TakeConstant();
  void ReadImportsOfLine();
  void ReadImport();
  void ReadFromImport();
  void NoteBindingsOfLine();
  void NoteTargetsBefore(size_t equals, size_t line_begin);
  void NoteName(size_t position, std::string_view reason);
  void LookForNestedKernel();
  void NoteGlobals();
  void AddAlias(std::string alias);
  std::string TakeDottedName();

  TokenStream& tokens_;
  std::vector<std::string>& aliases_;
  std::vector<Binding> bindings_;
  Span nested_kernel_;
  Span bare_import_;
};

}  // namespace phobos::compiler

#endif  // PHOBOS_COMPILER_SYNTAX_HOST_CODE_H_
