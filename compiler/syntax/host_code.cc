// SPDX-License-Identifier: Apache-2.0
#include "compiler/syntax/host_code.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/concat.h"
#include "compiler/syntax/expression_parser.h"

namespace phobos::compiler {
namespace {

constexpr char kLanguageModule[] = "phobos.lang";

// Whether an expression may be a constant: literals, names and operations on them.
bool MayBeConstant(const ast::Expr& expr) {
  const auto all = [](const std::vector<ast::ExprPtr>& list) {
    return std::all_of(list.begin(), list.end(),
                       [](const ast::ExprPtr& e) { return MayBeConstant(*e); });
  };
  if (const auto* unary = std::get_if<ast::Unary>(&expr.node))
    return MayBeConstant(*unary->operand);
  if (const auto* binary = std::get_if<ast::Binary>(&expr.node)) {
    return MayBeConstant(*binary->left) && MayBeConstant(*binary->right);
  }
  if (const auto* compare = std::get_if<ast::Compare>(&expr.node)) return all(compare->operands);
  if (const auto* choice = std::get_if<ast::Conditional>(&expr.node)) {
    return MayBeConstant(*choice->condition) && MayBeConstant(*choice->then) &&
           MayBeConstant(*choice->otherwise);
  }
  return std::holds_alternative<ast::IntLiteral>(expr.node) ||
         std::holds_alternative<ast::FloatLiteral>(expr.node) ||
         std::holds_alternative<ast::BoolLiteral>(expr.node) ||
         std::holds_alternative<ast::StringLiteral>(expr.node) ||
         std::holds_alternative<ast::Name>(expr.node);
}

bool IsAssignment(const TokenStream& tokens) {
  if (tokens.kind() != TokenKind::kOperator) return false;
  const std::string_view text = tokens.Text();
  return text.back() == '=' && text != "==" && text != "!=" && text != "<=" && text != ">=";
}

int BracketStep(const TokenStream& tokens) {
  if (tokens.kind() != TokenKind::kOperator || tokens.Text().size() != 1) return 0;
  const char c = tokens.Text()[0];
  return c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
}

}  // namespace

void HostCode::SkipLine() {
  while (!tokens_.AtLineEnd()) tokens_.Take();
  tokens_.Take();
}

void HostCode::SkipStatement() {
  const bool is_scope = tokens_.IsWord("def") || tokens_.IsWord("class") ||
                        (tokens_.IsWord("async") && tokens_.IsWord("def", 1));
  if (tokens_.Is("@")) LookForNestedKernel();
  if (is_scope) {
    const size_t name = tokens_.position() + (tokens_.IsWord("async") ? 2 : 1);
    NoteName(name, "it is a function or a class of the host program");
    SkipLine();
    SkipBlock();
    return;
  }
  if (tokens_.kind() == TokenKind::kIndent || tokens_.kind() == TokenKind::kDedent) {
    tokens_.Take();
    return;
  }
  while (TakeConstant()) {
    if (!tokens_.TakeIf(";") || tokens_.AtLineEnd()) {
      tokens_.Take();
      return;
    }
  }
  ReadImportsOfLine();
  NoteBindingsOfLine();
  SkipLine();
  if (tokens_.kind() != TokenKind::kIndent) return;
  // The block of an if, for, try, with: its statements run at module level as well.
  tokens_.Take();
  int depth = 1;
  while (depth > 0 && tokens_.kind() != TokenKind::kEnd) {
    if (tokens_.kind() == TokenKind::kIndent) {
      ++depth;
      tokens_.Take();
    } else if (tokens_.kind() == TokenKind::kDedent) {
      --depth;
      tokens_.Take();
    } else if (tokens_.Is("@")) {
      LookForNestedKernel();
      SkipLine();
    } else if (tokens_.IsWord("def") || tokens_.IsWord("class")) {
      NoteName(tokens_.position() + 1, "it is a function or a class of the host program");
      SkipLine();
      SkipBlock();
    } else {
      ReadImportsOfLine();
      NoteBindingsOfLine();
      SkipLine();
    }
  }
}

void HostCode::FindImports() {
  const size_t begin = tokens_.position();
  int depth = 0;
  int body_depth = -1;  // that of the function or class around, which has imports of its own
  while (tokens_.kind() != TokenKind::kEnd) {
    if (tokens_.kind() == TokenKind::kIndent || tokens_.kind() == TokenKind::kDedent) {
      depth += tokens_.kind() == TokenKind::kIndent ? 1 : -1;
      if (depth <= body_depth) body_depth = -1;
      tokens_.Take();
      continue;
    }
    const bool is_scope =
        tokens_.IsWord("def") || tokens_.IsWord("class") || tokens_.IsWord("async");
    if (body_depth < 0) ReadImportsOfLine();
    SkipLine();
    if (body_depth < 0 && is_scope && tokens_.kind() == TokenKind::kIndent) body_depth = depth;
  }
  tokens_.set_position(begin);
}

// The body of a function or class, if one follows: names in it are its own, but for those it
// declares global.
void HostCode::SkipBlock() {
  if (tokens_.kind() != TokenKind::kIndent) return;
  int depth = 0;
  do {
    if (tokens_.kind() == TokenKind::kIndent) ++depth;
    if (tokens_.kind() == TokenKind::kDedent) --depth;
    if (tokens_.Is("@")) LookForNestedKernel();
    if (tokens_.IsWord("global")) {
      NoteGlobals();
    } else {
      tokens_.Take();
    }
  } while (depth > 0 && tokens_.kind() != TokenKind::kEnd);
}

void HostCode::NoteGlobals() {
  while (!tokens_.AtStatementEnd()) {
    tokens_.Take();
    if (tokens_.kind() == TokenKind::kName) {
      NoteName(tokens_.position(), "a function of the host program declares it global");
    }
  }
}

void HostCode::LookForNestedKernel() {
  const size_t begin = tokens_.position();
  const int32_t offset = tokens_.Take().span.begin;
  for (size_t count = tokens_.LanguageTokens(); count > 0; --count) tokens_.Take();
  const bool is_kernel =
      tokens_.position() > begin + 1 && tokens_.Is(".") && tokens_.IsWord("kernel", 1);
  if (is_kernel && nested_kernel_.begin == nested_kernel_.end) {
    nested_kernel_ = {offset, tokens_.Peek(1).span.end};
  }
  tokens_.set_position(begin);
}

// NAME = expression, NAME: annotation = expression. Leaves the cursor where it was unless a
// candidate stands there.
bool HostCode::TakeConstant() {
  const bool is_annotated = tokens_.Is(":", 1);
  if (tokens_.kind() != TokenKind::kName || IsKeyword(tokens_.Text()) ||
      !(is_annotated || tokens_.Is("=", 1))) {
    return false;
  }
  const size_t begin = tokens_.position();
  Binding binding;
  binding.name = tokens_.Text();
  binding.span = tokens_.Take().span;
  tokens_.Take();
  ExpressionParser expressions(tokens_);
  if (is_annotated && (!expressions.Expression().ok() || !tokens_.TakeIf("="))) {
    tokens_.set_position(begin);
    return false;
  }
  absl::StatusOr<ast::ExprPtr> value = expressions.Expression();
  if (!value.ok() || !tokens_.AtStatementEnd() || !MayBeConstant(**value)) {
    tokens_.set_position(begin);
    return false;
  }
  binding.value = *std::move(value);
  bindings_.push_back(std::move(binding));
  return true;
}

std::string HostCode::TakeDottedName() {
  std::string name;
  while (tokens_.kind() == TokenKind::kName || tokens_.Is(".")) {
    Append(&name, tokens_.Text());
    tokens_.Take();
    if (tokens_.IsWord("as") || tokens_.IsWord("import")) break;
  }
  return name;
}

void HostCode::AddAlias(std::string alias) {
  if (std::find(aliases_.begin(), aliases_.end(), alias) == aliases_.end())
    aliases_.push_back(std::move(alias));
}

// Those of every statement of the line, which ';' may separate.
void HostCode::ReadImportsOfLine() {
  const size_t begin = tokens_.position();
  do {
    if (tokens_.IsWord("import")) ReadImport();
    if (tokens_.IsWord("from")) ReadFromImport();
    while (!tokens_.AtStatementEnd()) tokens_.Take();
  } while (tokens_.TakeIf(";"));
  tokens_.set_position(begin);
}

// import phobos.lang as ph, import phobos.lang, import phobos as p; several with commas.
void HostCode::ReadImport() {
  do {
    tokens_.Take();
    const std::string module = TakeDottedName();
    std::string alias;
    if (tokens_.IsWord("as")) {
      tokens_.Take();
      alias = tokens_.Text();
    }
    if (module == kLanguageModule) {
      AddAlias(alias.empty() ? module : alias);
    } else if (module == "phobos") {
      AddAlias(Concat(alias.empty() ? "phobos" : alias, ".lang"));
    }
    if (!alias.empty()) tokens_.Take();
  } while (tokens_.Is(","));
}

// from phobos import lang, from phobos import lang as ph; several with commas, in parentheses or
// not.
void HostCode::ReadFromImport() {
  const int32_t begin = tokens_.Take().span.begin;
  const std::string module = TakeDottedName();
  if (module == kLanguageModule && bare_import_.begin == bare_import_.end) {
    bare_import_ = {begin, tokens_.Peek().span.end};
    for (; !tokens_.AtStatementEnd(); tokens_.Take()) bare_import_.end = tokens_.Peek().span.end;
  }
  if (module != "phobos" || !tokens_.IsWord("import")) return;
  for (; !tokens_.AtStatementEnd(); tokens_.Take()) {
    if (!tokens_.IsWord("lang") || tokens_.IsWord("as", static_cast<size_t>(-1))) continue;
    AddAlias(std::string(tokens_.IsWord("as", 1) ? tokens_.Text(2) : "lang"));
    if (tokens_.IsWord("as", 1)) {
      tokens_.Take();
      tokens_.Take();
    }
  }
}

void HostCode::NoteName(size_t position, std::string_view reason) {
  const size_t begin = tokens_.position();
  tokens_.set_position(position);
  if (tokens_.kind() == TokenKind::kName && !IsKeyword(tokens_.Text())) {
    bindings_.push_back(
        {std::string(tokens_.Text()), tokens_.Peek().span, std::string(reason), nullptr});
  }
  tokens_.set_position(begin);
}

// The names on the left of the '=' at `equals`, up to the statement's begin. A name before '.', '('
// or '[' is read there, and one after '.' is a member.
void HostCode::NoteTargetsBefore(size_t equals, size_t line_begin) {
  const size_t begin = tokens_.position();
  for (size_t i = equals; i > line_begin; --i) {
    tokens_.set_position(i - 1);
    if (tokens_.Is(";") || tokens_.Is("=")) break;
    if (tokens_.kind() != TokenKind::kName) continue;
    const bool is_read = tokens_.Is(".", 1) || tokens_.Is("(", 1) || tokens_.Is("[", 1);
    if (is_read) continue;
    if (i - 1 > line_begin) {
      tokens_.set_position(i - 2);
      const bool is_member = tokens_.Is(".");
      tokens_.set_position(i - 1);
      if (is_member) continue;
    }
    NoteName(i - 1, "its value is no literal, or it is bound in a block");
  }
  tokens_.set_position(begin);
}

void HostCode::NoteBindingsOfLine() {
  const size_t begin = tokens_.position();
  const bool is_import = tokens_.IsWord("import") || tokens_.IsWord("from");
  const bool is_deletion = tokens_.IsWord("del");
  bool in_loop_targets =
      tokens_.IsWord("for") || (tokens_.IsWord("async") && tokens_.IsWord("for", 1));
  bool after_import = tokens_.IsWord("import");
  int brackets = 0;
  for (; !tokens_.AtLineEnd(); tokens_.Take()) {
    brackets += BracketStep(tokens_);
    const size_t here = tokens_.position();
    if (is_import) {
      const bool names_follow =
          after_import && tokens_.kind() == TokenKind::kName && !tokens_.IsWord("as");
      if (names_follow) NoteName(here, "it is imported");
      after_import |= tokens_.IsWord("import");
      continue;
    }
    if (tokens_.IsWord("as")) NoteName(here + 1, "'as' binds it");
    if (tokens_.IsWord("in")) in_loop_targets = false;
    if (tokens_.Is(":=", 1)) NoteName(here, "':=' binds it");
    if (in_loop_targets) NoteName(here, "a loop binds it");
    if (is_deletion) NoteName(here, "'del' removes it");
    if (brackets == 0 && IsAssignment(tokens_) && !tokens_.Is(":=")) NoteTargetsBefore(here, begin);
  }
  tokens_.set_position(begin);
}

void HostCode::NoteFunction(std::string_view name, Span span) {
  bindings_.push_back({std::string(name), span, "it is a kernel or a ph.fn", nullptr});
}

void HostCode::Finish(ast::Module* module) {
  absl::flat_hash_map<std::string_view, int> counts;
  for (const Binding& binding : bindings_) ++counts[binding.name];
  for (Binding& binding : bindings_) {
    int& count = counts[binding.name];
    if (count == 1 && binding.value != nullptr) {
      module->constants.push_back({binding.name, binding.span, std::move(binding.value)});
    } else if (count >= 1) {
      if (count > 1) binding.reason = "it is bound more than once";
      module->host_names.push_back({binding.name, binding.span, std::move(binding.reason)});
      count = 0;
    }
  }
  module->nested_kernel = nested_kernel_;
  module->bare_import = bare_import_;
}

}  // namespace phobos::compiler
