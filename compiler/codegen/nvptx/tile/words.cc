// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/tile/words.h"

#include <algorithm>
#include <cstdint>

#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/PatternMatch.h"

namespace phobos::compiler::nvptx {
namespace {

constexpr unsigned kWordBytes = 4;

unsigned BytesOf(llvm::Type* element) { return element->getScalarSizeInBits() / 8; }

// The word whose elements these are, in their order; null: they are not known to be of one.
llvm::Value* WordOf(const Fragment& elements, unsigned first, unsigned count, unsigned bits) {
  using llvm::PatternMatch::m_LShr;
  using llvm::PatternMatch::m_SpecificInt;
  using llvm::PatternMatch::m_Trunc;
  using llvm::PatternMatch::m_Value;
  llvm::Value* word = nullptr;
  if (elements.size() < first + count || !match(elements[first], m_Trunc(m_Value(word)))) {
    return nullptr;
  }
  if (word->getType()->getScalarSizeInBits() != count * bits) return nullptr;
  for (unsigned i = 1; i < count; ++i) {
    llvm::Value* other = nullptr;
    const auto part = m_Trunc(m_LShr(m_Value(other), m_SpecificInt(uint64_t{i} * bits)));
    if (!match(elements[first + i], part) || other != word) return nullptr;
  }
  return word;
}

}  // namespace

llvm::Type* WordsType(llvm::Type* element, unsigned lanes) {
  const unsigned bytes = BytesOf(element);
  if (bytes >= kWordBytes) return llvm::FixedVectorType::get(element, lanes);
  const unsigned word_bytes = std::min(bytes * lanes, kWordBytes);
  llvm::Type* word = llvm::IntegerType::get(element->getContext(), 8 * word_bytes);
  return bytes * lanes == word_bytes ? word
                                     : llvm::FixedVectorType::get(word, bytes * lanes / word_bytes);
}

Fragment UnpackWords(llvm::IRBuilder<>& b, llvm::Value* words, llvm::Type* element,
                     unsigned lanes) {
  const unsigned bytes = BytesOf(element);
  Fragment elements;
  for (unsigned i = 0; i < lanes; ++i) {
    if (bytes >= kWordBytes) {
      elements.push_back(b.CreateExtractElement(words, i));
      continue;
    }
    llvm::Value* bits = words;
    if (words->getType()->isVectorTy())
      bits = b.CreateExtractElement(words, i * bytes / kWordBytes);
    const unsigned shift = 8 * (i * bytes % kWordBytes);
    if (shift > 0) bits = b.CreateLShr(bits, shift);
    elements.push_back(b.CreateTrunc(bits, element));
  }
  return elements;
}

llvm::Value* PackWords(llvm::IRBuilder<>& b, const Fragment& elements, llvm::Type* element,
                       unsigned lanes) {
  const unsigned bytes = BytesOf(element);
  llvm::Type* type = WordsType(element, lanes);
  llvm::Type* word = type->getScalarType();
  const unsigned in_word = std::max(1u, word->getScalarSizeInBits() / 8 / bytes);
  llvm::Value* words = llvm::PoisonValue::get(type);
  for (unsigned first = 0; first < lanes; first += in_word) {
    llvm::Value* bits = in_word > 1 ? WordOf(elements, first, in_word, 8 * bytes) : nullptr;
    if (bits == nullptr) {
      bits = LaneOf(elements, first);
      if (in_word > 1) bits = b.CreateZExt(bits, word);
      for (unsigned i = 1; i < in_word; ++i) {
        llvm::Value* part = b.CreateZExt(LaneOf(elements, first + i), word);
        bits = b.CreateOr(bits, b.CreateShl(part, uint64_t{8} * i * bytes));
      }
    }
    words = type == word ? bits : b.CreateInsertElement(words, bits, first / in_word);
  }
  return words;
}

void TransposeWords(llvm::IRBuilder<>& b, llvm::Value* thread, std::vector<Fragment>* words) {
  constexpr uint32_t kAllThreads = 0xffffffff;
  constexpr uint32_t kWholeWarp = 31;
  for (size_t distance = 1; distance < words->size(); distance *= 2) {
    const auto bit = static_cast<uint32_t>(distance);
    llvm::Value* is_upper = b.CreateIsNotNull(b.CreateAnd(thread, b.getInt32(bit)));
    for (size_t i = 0; i < words->size(); ++i) {
      if ((i & distance) != 0) continue;
      for (size_t part = 0; part < (*words)[i].size(); ++part) {
        llvm::Value*& low = (*words)[i][part];
        llvm::Value*& high = (*words)[i | distance][part];
        llvm::Value* given = b.CreateSelect(is_upper, low, high);
        llvm::Value* taken = b.CreateIntrinsic(
            llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, {},
            {b.getInt32(kAllThreads), given, b.getInt32(bit), b.getInt32(kWholeWarp)});
        low = b.CreateSelect(is_upper, taken, low);
        high = b.CreateSelect(is_upper, high, taken);
      }
    }
  }
}

}  // namespace phobos::compiler::nvptx
