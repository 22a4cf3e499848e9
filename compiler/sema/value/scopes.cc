// SPDX-License-Identifier: Apache-2.0
#include "compiler/sema/value/scopes.h"

namespace phobos::compiler::sema {

void Scopes::LeaveBlock() {
  bindings_.resize(blocks_.back());
  blocks_.pop_back();
}

void Scopes::EnterFunction() {
  functions_.push_back(bindings_.size());
  EnterBlock();
}

void Scopes::LeaveFunction() {
  LeaveBlock();
  functions_.pop_back();
}

const Binding* Scopes::Find(std::string_view name) const {
  const size_t begin = functions_.empty() ? 0 : functions_.back();
  for (size_t i = bindings_.size(); i > begin; --i) {
    if (bindings_[i - 1].name == name) return &bindings_[i - 1];
  }
  return nullptr;
}

void Scopes::AppendNames(std::vector<std::string_view>* names) const {
  const size_t begin = functions_.empty() ? 0 : functions_.back();
  for (size_t i = bindings_.size(); i > begin; --i) names->push_back(bindings_[i - 1].name);
}

}  // namespace phobos::compiler::sema
