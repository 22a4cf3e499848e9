// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/nvptx/contraction/fragments.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "compiler/codegen/conversion.h"
#include "compiler/codegen/nvptx/plan/dealing.h"
#include "compiler/codegen/nvptx/tile/held.h"
#include "compiler/codegen/nvptx/tile/words.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/DerivedTypes.h"
#include "llvm/IR/IntrinsicsNVPTX.h"

namespace phobos::compiler::nvptx {
namespace {

// Matrices of 8 rows of one granule each: lane l has word l % 4 of row l / 4.
constexpr int64_t kMatrixRows = 8;
constexpr int64_t kFragmentSums = 4;
constexpr int64_t kFragmentWords = 4;  // of the left operand
// Two matrices along k are a step.
constexpr int64_t kStepGranules = kStepBytes / Swizzle::kGranuleBytes;

using Words = llvm::SmallVector<llvm::Value*, 4>;  // i32

class FragmentEmitter {
 public:
  FragmentEmitter(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing)
      : env_(environment),
        b_(environment.builder),
        dot_(dot),
        dealing_(dealing),
        a_(*environment.definitions[dot.operands[0]]),
        b_tile_(*environment.definitions[dot.operands[1]]),
        dtype_(a_.type.dtype),
        lane_(b_.CreateURem(environment.thread, environment.Int32(kWarp))) {
    llvm::Value* warp = b_.CreateUDiv(environment.thread, environment.Int32(kWarp));
    llvm::Value* columns = environment.Int32(dealing.warp_columns);
    first_row_ = b_.CreateNUWMul(b_.CreateUDiv(warp, columns),
                                 environment.Int32(dealing.rows * kFragmentRows));
    first_column_ = b_.CreateNUWMul(b_.CreateURem(warp, columns),
                                    environment.Int32(dealing.columns * kFragmentColumns));
  }

  void Add(std::vector<llvm::Value*>* sums);
  void AddAhead(const ir::Op& loop, CopyEmitter& emitter, std::vector<llvm::Value*>* sums);
  void ReadFirstStep(const ir::Op& loop, CopyEmitter& copies);
  void ReadRowsBefore();

 private:
  // What one step multiplies: of the rows and of the columns.
  struct Step {
    std::vector<Words> rows, columns;
  };

  int64_t steps() const { return a_.type.shape.back() * ir::ByteSize(dtype_) / kStepBytes; }
  llvm::Value* Plus(llvm::Value* a, llvm::Value* b) const {
    return b_.CreateAdd(a, b, "", true, true);
  }
  // The granule of an operand at a row and a number of granules into it, and the one `below` rows
  // further, a multiple of what the swizzle repeats after.
  llvm::Value* GranuleAt(const ir::Op& operand, llvm::Value* row, llvm::Value* granule) const;
  llvm::Value* Below(const ir::Op& operand, llvm::Value* granule, int64_t below) const;
  Words LoadMatrices(llvm::Value* address, int count, bool is_transposed) const;
  Step Read(int64_t step) const { return {FragmentsOfA(step), FragmentsOfB(step)}; }
  // `between`: after each row of fragments.
  void MultiplyAll(
      const Step& step, std::vector<llvm::Value*>* sums,
      llvm::function_ref<void()> between = [] {}) const;
  void Keep(const Step& step) const;
  Step Kept() const;
  std::vector<Words> FragmentsOfA(int64_t step) const;
  std::vector<Words> LoadRows(int64_t step) const;
  std::vector<Words> KeptRows(int64_t step) const;
  std::vector<Words> FragmentsOfB(int64_t step) const;
  void LoadTwoOfB(int64_t step, int64_t column, int count, std::vector<Words>* fragments) const;
  Words GatherB(int64_t step, int64_t column) const;
  void Round(Words* words) const;
  void Multiply(const Words& a, const Words& b, llvm::Value** sums) const;
  llvm::Value* Operand(llvm::Value* word) const;

  Environment& env_;
  llvm::IRBuilder<>& b_;
  const ir::Op& dot_;
  const FragmentDealing& dealing_;
  const ir::Op& a_;
  const ir::Op& b_tile_;
  const ir::DType dtype_;
  llvm::Value* const lane_;
  llvm::Value* first_row_ = nullptr;
  llvm::Value* first_column_ = nullptr;
};

void FragmentEmitter::Add(std::vector<llvm::Value*>* sums) {
  for (int64_t step = 0; step < steps(); ++step) MultiplyAll(Read(step), sums);
}

void FragmentEmitter::MultiplyAll(const Step& step, std::vector<llvm::Value*>* sums,
                                  llvm::function_ref<void()> between) const {
  const size_t columns = step.columns.size();
  for (size_t i = 0; i < step.rows.size(); ++i) {
    for (size_t k = 0; k < columns; ++k) {
      // Back and forth, so that two products next to each other have an operand in common.
      const size_t j = i % 2 == 0 ? k : columns - 1 - k;
      Multiply(step.rows[i], step.columns[j], &(*sums)[(i * columns + j) * kFragmentSums]);
    }
    between();
  }
}

// A step's words are read while the step before is multiplied, across the turns of the loop too.
// The copies' tests stand with the first step's products, and the copies one by one between those
// of the others but the last, so that the chip has products to do beside them. Where there are only
// two steps, all copies stand before the barrier.
void FragmentEmitter::AddAhead(const ir::Op& loop, CopyEmitter& emitter,
                               std::vector<llvm::Value*>* sums) {
  emitter.BeginTurn(loop);
  std::vector<TileCopy> copies;
  size_t copy = 0;
  int64_t left = 0;
  int64_t places = (steps() - 2) * dealing_.rows;
  const auto start_some = [&] {
    const int64_t count = places > 0 ? (left + places - 1) / places : left;
    for (int64_t i = 0; i < count; ++i, --left) {
      while (copies[copy].left() == 0) ++copy;
      copies[copy].StartNext();
    }
    --places;
  };
  Step next = Kept();
  for (int64_t step = 0; step < steps(); ++step) {
    const Step now = std::move(next);
    const bool is_last = step + 1 == steps();
    if (is_last) {
      start_some();
      emitter.EndAhead(loop);
      emitter.AwaitTurn(loop);
      emitter.ShowNext(loop);
    }
    next = Read(is_last ? 0 : step + 1);
    if (step > 0 && !is_last) {
      MultiplyAll(now, sums, start_some);
    } else {
      MultiplyAll(now, sums);
    }
    if (step == 0) {
      copies = emitter.BeginAhead(loop);
      for (const TileCopy& each : copies) left += each.left();
    }
  }
  Keep(next);
}

void FragmentEmitter::ReadFirstStep(const ir::Op& loop, CopyEmitter& emitter) {
  emitter.AwaitTurn(loop);
  emitter.ShowNext(loop);
  std::vector<llvm::AllocaInst*>& slots = env_.first_steps[&dot_];
  const Step step = Read(0);
  if (slots.empty()) {
    slots.resize(step.rows.size() * step.rows[0].size() +
                 step.columns.size() * step.columns[0].size());
    for (llvm::AllocaInst*& slot : slots) slot = env_.Slot(b_.getInt32Ty());
  }
  Keep(step);
}

void FragmentEmitter::Keep(const Step& step) const {
  auto slot = env_.first_steps.at(&dot_).begin();
  for (const auto* fragments : {&step.rows, &step.columns}) {
    for (const Words& words : *fragments) {
      for (llvm::Value* word : words) b_.CreateStore(word, *slot++);
    }
  }
}

FragmentEmitter::Step FragmentEmitter::Kept() const {
  auto slot = env_.first_steps.at(&dot_).begin();
  Step step;
  step.rows.resize(static_cast<size_t>(dealing_.rows));
  step.columns.resize(static_cast<size_t>(dealing_.columns));
  for (auto [fragments, count] :
       {std::pair(&step.rows, kFragmentWords), std::pair(&step.columns, kFragmentWords / 2)}) {
    for (Words& words : *fragments) {
      for (int64_t i = 0; i < count; ++i) {
        words.push_back(b_.CreateLoad(b_.getInt32Ty(), *slot++));
      }
    }
  }
  return step;
}

llvm::Value* FragmentEmitter::GranuleAt(const ir::Op& operand, llvm::Value* row,
                                        llvm::Value* granule) const {
  const Swizzle swizzle = *SwizzleOf(operand.type);
  if (swizzle.width > 1) {
    llvm::Value* turned =
        b_.CreateAnd(b_.CreateUDiv(row, env_.Int32(swizzle.rows)), env_.Int32(swizzle.width - 1));
    granule = b_.CreateXor(granule, turned);
  }
  llvm::Value* number =
      Plus(b_.CreateMul(row, env_.Int32(swizzle.granules), "", true, true), granule);
  llvm::Value* bytes = b_.CreateMul(number, env_.Int32(Swizzle::kGranuleBytes), "", true, true);
  return b_.CreateGEP(b_.getInt8Ty(), env_.held_tiles[operand.result],
                      b_.CreateZExt(bytes, b_.getInt64Ty()));
}

// A distance that the instruction adds itself.
llvm::Value* FragmentEmitter::Below(const ir::Op& operand, llvm::Value* granule,
                                    int64_t below) const {
  const int64_t row_bytes = operand.type.shape.back() * ir::ByteSize(operand.type.dtype);
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), granule, static_cast<uint64_t>(below * row_bytes));
}

Words FragmentEmitter::LoadMatrices(llvm::Value* address, int count, bool is_transposed) const {
  using llvm::Intrinsic::ID;
  namespace intrinsic = llvm::Intrinsic;
  constexpr ID kLoads[2][2] = {{intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_b16,
                                intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x2_trans_b16},
                               {intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_b16,
                                intrinsic::nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16}};
  llvm::Value* loaded =
      b_.CreateIntrinsic(kLoads[count == 4][is_transposed], {address->getType()}, {address});
  Words words;
  for (int i = 0; i < count; ++i) {
    words.push_back(b_.CreateExtractValue(loaded, static_cast<unsigned>(i)));
  }
  return words;
}

void FragmentEmitter::ReadRowsBefore() {
  std::vector<llvm::Value*>& words = env_.rows_before[&dot_];
  for (int64_t step = 0; step < steps(); ++step) {
    for (const Words& fragment : LoadRows(step)) {
      words.insert(words.end(), fragment.begin(), fragment.end());
    }
  }
}

// Of each fragment: rows 0-7 and 8-15 of the step's first granule, then of its second one.
std::vector<Words> FragmentEmitter::FragmentsOfA(int64_t step) const {
  if (env_.plan.kept.operands.count(&a_) > 0) return KeptRows(step);
  const auto before = env_.rows_before.find(&dot_);
  if (before == env_.rows_before.end()) return LoadRows(step);
  std::vector<Words> fragments;
  for (int64_t i = 0; i < dealing_.rows; ++i) {
    const auto first = before->second.begin() + (step * dealing_.rows + i) * kFragmentWords;
    fragments.emplace_back(first, first + kFragmentWords);
  }
  return fragments;
}

// From what the thread made: two columns of sums are a granule, a turn a row of it.
std::vector<Words> FragmentEmitter::KeptRows(int64_t step) const {
  const HeldTile held(env_, a_);
  llvm::Type* const element = b_.getInt16Ty();
  const int64_t columns = a_.type.shape.back() / kFragmentColumns;
  std::vector<Words> fragments(static_cast<size_t>(dealing_.rows));
  for (int64_t i = 0; i < dealing_.rows; ++i) {
    for (int64_t word = 0; word < kFragmentWords; ++word) {
      const int64_t column = step * kStepGranules + word / 2;
      Place place;
      place.lanes = 2;
      place.held = env_.Int32(2 * ((i * columns + column) * 2 + word % 2));
      fragments[static_cast<size_t>(i)].push_back(
          PackWords(b_, held.Load(place), element, place.lanes));
    }
  }
  return fragments;
}

std::vector<Words> FragmentEmitter::LoadRows(int64_t step) const {
  llvm::Value* row = Plus(first_row_, b_.CreateURem(lane_, env_.Int32(2 * kMatrixRows)));
  llvm::Value* granule = b_.CreateOr(env_.Int32(step * kStepGranules),
                                     b_.CreateUDiv(lane_, env_.Int32(2 * kMatrixRows)));
  llvm::Value* first = GranuleAt(a_, row, granule);
  std::vector<Words> fragments;
  for (int64_t i = 0; i < dealing_.rows; ++i) {
    fragments.push_back(
        LoadMatrices(Below(a_, first, i * kFragmentRows), 4, /*is_transposed=*/false));
    Round(&fragments.back());
  }
  return fragments;
}

std::vector<Words> FragmentEmitter::FragmentsOfB(int64_t step) const {
  const bool is_loadable = dot_.axis == 1 || ir::ByteSize(dtype_) == 2;
  std::vector<Words> fragments;
  for (int64_t j = 0; j < dealing_.columns; j += is_loadable ? 2 : 1) {
    if (is_loadable) {
      LoadTwoOfB(step, j, static_cast<int>(std::min<int64_t>(2, dealing_.columns - j)), &fragments);
    } else {
      fragments.push_back(GatherB(step, j));
    }
  }
  for (Words& words : fragments) Round(&words);
  return fragments;
}

// Of each fragment: its columns in the step's first half, then in its second.
void FragmentEmitter::LoadTwoOfB(int64_t step, int64_t column, int count,
                                 std::vector<Words>* fragments) const {
  // Of two matrices, the addresses of the first lanes count; the others' should be in the tile too.
  llvm::Value* second =
      count == 1 ? env_.Int32(0) : b_.CreateUDiv(lane_, env_.Int32(2 * kMatrixRows));
  llvm::Value* address = nullptr;
  if (dot_.axis == 1) {
    llvm::Value* row = Plus(first_column_, b_.CreateURem(lane_, env_.Int32(kMatrixRows)));
    row = Plus(row, b_.CreateNUWMul(second, env_.Int32(kFragmentColumns)));
    llvm::Value* half = b_.CreateAnd(b_.CreateUDiv(lane_, env_.Int32(kMatrixRows)), env_.Int32(1));
    address = GranuleAt(b_tile_, row, b_.CreateOr(env_.Int32(step * kStepGranules), half));
    address = Below(b_tile_, address, column * kFragmentColumns);
  } else {
    llvm::Value* first = Plus(first_column_, env_.Int32(column * kFragmentColumns));
    llvm::Value* granule = Plus(b_.CreateUDiv(first, env_.Int32(kFragmentColumns)), second);
    address = GranuleAt(b_tile_, b_.CreateURem(lane_, env_.Int32(2 * kMatrixRows)), granule);
    address = Below(b_tile_, address, step * 2 * kMatrixRows);
  }
  const Words words = LoadMatrices(address, 2 * count, /*is_transposed=*/dot_.axis == 0);
  for (size_t i = 0; i + 1 < words.size(); i += 2) fragments->push_back({words[i], words[i + 1]});
}

// Of [K, N], whose elements are no halves of a word: one after the other.
Words FragmentEmitter::GatherB(int64_t step, int64_t column) const {
  const HeldTile held(env_, b_tile_);
  const int64_t in_word = 4 / ir::ByteSize(dtype_);
  const int64_t depth = kStepBytes / ir::ByteSize(dtype_);
  Place place;
  place.indices.assign(b_tile_.type.shape.size(), env_.Int32(0));
  llvm::Value* n = Plus(first_column_, env_.Int32(column * kFragmentColumns));
  place.indices.back() = Plus(n, b_.CreateUDiv(lane_, env_.Int32(4)));
  llvm::Value* k = b_.CreateNUWMul(b_.CreateURem(lane_, env_.Int32(4)), env_.Int32(in_word));
  Words words;
  for (int64_t half = 0; half < 2; ++half) {
    llvm::Value* word = nullptr;
    for (int64_t i = 0; i < in_word; ++i) {
      place.indices[place.indices.size() - 2] =
          Plus(k, env_.Int32(step * depth + half * depth / 2 + i));
      llvm::Value* element = held.Load(place)[0];
      if (in_word == 1) {
        word = b_.CreateBitCast(element, b_.getInt32Ty());
        continue;
      }
      llvm::Value* bits = b_.CreateZExt(element, b_.getInt32Ty());
      bits = b_.CreateShl(bits, static_cast<uint64_t>(i * 8 * ir::ByteSize(dtype_)));
      word = word == nullptr ? bits : b_.CreateOr(word, bits);
    }
    words.push_back(word);
  }
  return words;
}

void FragmentEmitter::Round(Words* words) const {
  if (dtype_ != ir::DType::kF32) return;
  for (llvm::Value*& word : *words) {
    llvm::Value* number = b_.CreateBitCast(word, b_.getFloatTy());
    number = codegen::RoundTo(b_, number, static_cast<ir::Precision>(dot_.index));
    word = b_.CreateBitCast(number, b_.getInt32Ty());
  }
}

llvm::Value* FragmentEmitter::Operand(llvm::Value* word) const {
  if (dtype_ != ir::DType::kF16) return word;
  return b_.CreateBitCast(word, llvm::FixedVectorType::get(b_.getHalfTy(), 2));
}

void FragmentEmitter::Multiply(const Words& a, const Words& b, llvm::Value** sums) const {
  llvm::Intrinsic::ID instruction = llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_f32_f32;
  if (dtype_ == ir::DType::kBF16) instruction = llvm::Intrinsic::nvvm_mma_m16n8k16_row_col_bf16;
  if (dtype_ == ir::DType::kF32) instruction = llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_tf32;
  if (dtype_ == ir::DType::kI8) instruction = llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_s8;
  if (dtype_ == ir::DType::kU8) instruction = llvm::Intrinsic::nvvm_mma_m16n8k32_row_col_u8;
  if (dealing_.is_shallow) instruction = llvm::Intrinsic::nvvm_mma_m16n8k8_row_col_f32_f32;
  const size_t parts = dealing_.is_shallow ? 2 : 1;
  for (size_t part = 0; part < parts; ++part) {
    llvm::SmallVector<llvm::Value*, 10> operands;
    for (size_t i = 0; i < a.size() / parts; ++i) {
      operands.push_back(Operand(a[part * a.size() / parts + i]));
    }
    for (size_t i = 0; i < b.size() / parts; ++i) {
      operands.push_back(Operand(b[part * b.size() / parts + i]));
    }
    for (int64_t i = 0; i < kFragmentSums; ++i) operands.push_back(sums[i]);
    llvm::Value* product = b_.CreateIntrinsic(instruction, {}, operands);
    for (int64_t i = 0; i < kFragmentSums; ++i) {
      sums[i] = b_.CreateExtractValue(product, static_cast<unsigned>(i));
    }
  }
}

}  // namespace

void AddFragmentsAhead(Environment& environment, const Statement& statement, CopyEmitter& copies,
                       std::vector<llvm::Value*>* sums) {
  FragmentEmitter(environment, *statement.whole, *statement.fragments)
      .AddAhead(*statement.ahead_in, copies, sums);
}

void ReadFirstStep(Environment& environment, const Statement& statement, CopyEmitter& copies) {
  FragmentEmitter(environment, *statement.whole, *statement.fragments)
      .ReadFirstStep(*statement.ahead_in, copies);
}

void ReadRowsBefore(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing) {
  FragmentEmitter(environment, dot, dealing).ReadRowsBefore();
}

void AddFragments(Environment& environment, const ir::Op& dot, const FragmentDealing& dealing,
                  std::vector<llvm::Value*>* sums) {
  FragmentEmitter(environment, dot, dealing).Add(sums);
}

}  // namespace phobos::compiler::nvptx
