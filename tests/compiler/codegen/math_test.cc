// SPDX-License-Identifier: Apache-2.0
//
// The accuracy of the built-ins, in units in the last place against a wider type of the C library:
// f32 against double, f64 against long double. A pass over evenly spaced bit patterns of the whole
// type, dense passes where functions change, and the edges. With $PHOBOS_TEST_EVERY_VALUE, each of
// those with one operand sees each of the 2^32 f32.
#include <stdlib.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "compiler/ir/builder.h"
#include "compiler/ir/printer.h"
#include "gtest/gtest.h"
#include "tests/compiler/codegen/compiled/compiled.h"
#include "tests/compiler/codegen/compiled/ulp.h"

namespace phobos::compiler::testing {
namespace {

using ir::DType;
using ir::Opcode;
using ir::SliceAt;
using ir::ValueId;

struct BuiltIn {
  Opcode opcode;
  double ulps;
  double (*narrow)(double);                               // the truth for f32
  long double (*wide)(long double);                       // the truth for f64
  double most = std::numeric_limits<double>::infinity();  // |x| up to which it is promised
};

long double Sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }
double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
long double Rsqrt(long double x) { return 1 / std::sqrt(x); }
double Rsqrt(double x) { return 1 / std::sqrt(x); }

const BuiltIn kBuiltIns[] = {
    {Opcode::kExp, 2, std::exp, std::exp},       {Opcode::kExp2, 2, std::exp2, std::exp2},
    {Opcode::kExpm1, 4, std::expm1, std::expm1}, {Opcode::kLog, 2, std::log, std::log},
    {Opcode::kLog2, 2, std::log2, std::log2},    {Opcode::kLog1p, 4, std::log1p, std::log1p},
    {Opcode::kSqrt, 0.5, std::sqrt, std::sqrt},  {Opcode::kRsqrt, 2, Rsqrt, Rsqrt},
    {Opcode::kSin, 4, std::sin, std::sin, 1e5},  {Opcode::kCos, 4, std::cos, std::cos, 1e5},
    {Opcode::kTanh, 2, std::tanh, std::tanh},    {Opcode::kErf, 2, std::erf, std::erf},
    {Opcode::kSigmoid, 4, Sigmoid, Sigmoid},
};

// The long tier looks five times as closely.
size_t Samples(size_t count) {
  return getenv("PHOBOS_TEST_EVERY_VALUE") != nullptr ? count : count / 5;
}

// The rounding of the truth itself is no error of ours.
constexpr double kSlack = 0.01;

// out[i] = op(x[i]) or op(x[i], y[i]), by tiles.
ir::Function KernelOf(Opcode opcode, DType dtype, int arity) {
  ir::Builder b(ir::Function{.name = "math"});
  const ir::Dim n{.extent = b.AddExtent("N")};
  constexpr int64_t kBlock = 1024;
  const ir::Subscript place =
      SliceAt(b.Elementwise(Opcode::kMul, {b.BlockId(0), b.Int(kBlock)}), kBlock);
  std::vector<ValueId> operands;
  for (int i = 0; i < arity; ++i) {
    operands.push_back(b.Load(b.AddTensor("x" + std::to_string(i), dtype, {n}), {place}));
  }
  b.Store(b.AddTensor("out", dtype, {n}), {place}, b.Elementwise(opcode, operands));
  return b.Finish();
}

// Runs a kernel of KernelOf on plain arrays.
template <typename T>
void RunOn(const Compiled& kernel, const std::vector<std::vector<T>>& inputs, std::vector<T>* out) {
  std::vector<uint64_t> slots;
  for (const std::vector<T>& input : inputs) {
    slots.push_back(reinterpret_cast<uint64_t>(input.data()));
  }
  slots.push_back(reinterpret_cast<uint64_t>(out->data()));
  slots.push_back(out->size());
  kernel.RunRaw(slots.data(), (static_cast<int64_t>(out->size()) + 1023) / 1024);
}

template <typename T>
T FromPattern(uint64_t bits) {
  T value;
  if constexpr (sizeof(T) == 4) {
    const auto narrow = static_cast<uint32_t>(bits);
    std::memcpy(&value, &narrow, 4);
  } else {
    std::memcpy(&value, &bits, 8);
  }
  return value;
}

// Error of `got` in ulps of the exact `want`; the quick way where both are ordinary numbers.
template <typename T, typename Wide>
double Error(T got, Wide want) {
  constexpr DType kType = sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  const Wide size = std::fabs(want);
  if (size > std::numeric_limits<T>::min() && size < std::numeric_limits<T>::max() / 2 &&
      std::isfinite(got)) {
    const T toward = std::fabs(static_cast<T>(want));
    T below = toward > size ? std::nextafter(toward, T{0}) : toward;
    return static_cast<double>(std::fabs(static_cast<Wide>(got) - want) /
                               (static_cast<Wide>(std::nextafter(below, INFINITY)) - below));
  }
  Bits bits = 0;
  std::memcpy(&bits, &got, sizeof got);
  return UlpError(kType, bits, want);
}

struct Worst {
  double error = -1;
  double x = 0;
  double y = 0;
};

template <typename T, typename Truth>
Worst Measure(const Compiled& kernel, const std::vector<std::vector<T>>& inputs, Truth truth) {
  std::vector<T> out(inputs[0].size());
  RunOn(kernel, inputs, &out);
  Worst worst;
  for (size_t i = 0; i < out.size(); ++i) {
    const double error = truth(i, out[i]);
    if (!(error <= worst.error)) {
      worst = {error, static_cast<double>(inputs[0][i]),
               inputs.size() > 1 ? static_cast<double>(inputs[1][i]) : 0};
    }
  }
  return worst;
}

std::unique_ptr<Compiled> Compile(Opcode opcode, DType dtype, int arity, const host::Chip& chip) {
  auto kernel = Compiled::Make(KernelOf(opcode, dtype, arity), chip);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return *std::move(kernel);
}

// Patterns over the whole type, and values where functions bend or end.
template <typename T>
std::vector<T> Arguments(double most, size_t count) {
  std::vector<T> xs;
  std::mt19937_64 random(7);
  const uint64_t stride = (sizeof(T) == 4 ? uint64_t{1} << 32 : ~uint64_t{0}) / count | 1;
  for (size_t i = 0; i < count; ++i) xs.push_back(FromPattern<T>(i * stride + random() % stride));
  std::uniform_real_distribution<double> unit(-1, 1);
  for (double scale : {1e-3, 0.5, 1.0, 2.0, 6.0, 30.0, 110.0, 800.0, 1e5}) {
    for (size_t i = 0; i < count / 8; ++i) xs.push_back(static_cast<T>(unit(random) * scale));
  }
  for (size_t i = 0; i < count / 8; ++i) xs.push_back(static_cast<T>(1 + unit(random) * 1e-4));
  // Near the zeros of sine and cosine.
  for (int i = 0; i < 60000; ++i) {
    const T zero = static_cast<T>(i * 1.5707963267948966192L);
    for (T x : {zero, std::nextafter(zero, T{0}), std::nextafter(zero, T{1e9})}) xs.push_back(x);
  }
  using Limits = std::numeric_limits<T>;
  for (T edge : {T{0}, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(),
                 Limits::quiet_NaN(), T{1}, std::nextafter(T{1}, T{0}), T{0.625}, T{0.5}}) {
    xs.push_back(edge);
    xs.push_back(-edge);
  }
  std::erase_if(xs, [most](T x) { return std::fabs(x) > most; });
  return xs;
}

class MathTest : public ::testing::TestWithParam<BuiltIn> {};

TEST_P(MathTest, F32IsAccurate) {
  const BuiltIn& f = GetParam();
  for (const host::Chip& chip : ChipsUnderTest()) {
    const auto kernel = Compile(f.opcode, DType::kF32, 1, chip);
    const std::vector<std::vector<float>> xs = {Arguments<float>(f.most, Samples(2000000))};
    const Worst worst = Measure(*kernel, xs, [&](size_t i, float got) {
      return Error<float, double>(got, f.narrow(xs[0][i]));
    });
    EXPECT_LE(worst.error, f.ulps + kSlack) << chip.name << ", at " << worst.x;
    printf("%s f32: %.3f ulps at %a\n", std::string(ir::Name(f.opcode)).c_str(), worst.error,
           worst.x);
  }
}

TEST_P(MathTest, F64IsAccurate) {
  const BuiltIn& f = GetParam();
  for (const host::Chip& chip : ChipsUnderTest()) {
    const auto kernel = Compile(f.opcode, DType::kF64, 1, chip);
    const std::vector<std::vector<double>> xs = {Arguments<double>(f.most, Samples(1000000))};
    const Worst worst = Measure(*kernel, xs, [&](size_t i, double got) {
      return Error<double, long double>(got, f.wide(xs[0][i]));
    });
    EXPECT_LE(worst.error, f.ulps + kSlack) << chip.name << ", at " << worst.x;
    printf("%s f64: %.3f ulps at %a\n", std::string(ir::Name(f.opcode)).c_str(), worst.error,
           worst.x);
  }
}

// Signed zeros keep their sign where the function is odd.
TEST_P(MathTest, KeepsTheSignOfZero) {
  const BuiltIn& f = GetParam();
  for (DType dtype : {DType::kF32, DType::kF64}) {
    const auto kernel = Compile(f.opcode, dtype, 1, ChipsUnderTest()[0]);
    auto check = [&](auto zero) {
      using T = decltype(zero);
      const std::vector<std::vector<T>> xs = {{T{0}, -T{0}}};
      std::vector<T> out(2);
      RunOn(*kernel, xs, &out);
      for (int i = 0; i < 2; ++i) {
        const double want = f.narrow(xs[0][i]);
        EXPECT_EQ(std::signbit(out[i]), std::signbit(want)) << out[i] << " for " << xs[0][i];
      }
    };
    dtype == DType::kF32 ? check(0.0f) : check(0.0);
  }
}

// f16 and bf16 go through f32 and are rounded once: every value of the type.
TEST_P(MathTest, NarrowTypesAreRoundedOnce) {
  const BuiltIn& f = GetParam();
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    const auto kernel = Compile(f.opcode, dtype, 1, ChipsUnderTest()[0]);
    Launch launch;
    launch.arguments = {{{65536}, {}}, {{65536}, std::vector<Bits>(65536)}};
    for (Bits bits = 0; bits < 65536; ++bits) launch.arguments[0].elements.push_back(bits);
    launch.grid[0] = 64;
    const auto got = kernel->Run(launch, Against::kPageAfter);
    ASSERT_TRUE(got.ok()) << got.status();
    double worst = 0;
    for (Bits bits = 0; bits < 65536; ++bits) {
      const auto x = static_cast<double>(ToReal(dtype, bits));
      if (std::fabs(x) > f.most) continue;
      worst = std::max(worst, UlpError(dtype, (*got)[1].elements[bits], f.narrow(x)));
    }
    EXPECT_LE(worst, 0.502) << ir::Name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(BuiltIns, MathTest, ::testing::ValuesIn(kBuiltIns),
                         [](const auto& info) { return std::string(ir::Name(info.param.opcode)); });

template <typename T, typename Wide>
Worst MeasurePow(const host::Chip& chip, size_t count) {
  constexpr DType kType = sizeof(T) == 4 ? DType::kF32 : DType::kF64;
  const auto kernel = Compile(Opcode::kPow, kType, 2, chip);
  std::vector<std::vector<T>> in(2);
  auto add = [&](T x, T y) {
    in[0].push_back(x);
    in[1].push_back(y);
  };
  using Limits = std::numeric_limits<T>;
  std::vector<T> edges;
  for (T edge : {T{0}, Limits::denorm_min(), Limits::min(), Limits::max(), Limits::infinity(),
                 Limits::quiet_NaN(), T{1}, T{0.5}, T{2}, T{3}, T{1e9}, static_cast<T>(16777217),
                 T{0.1}, std::nextafter(T{1}, T{0}), std::nextafter(T{1}, T{2})}) {
    edges.push_back(edge);
    edges.push_back(-edge);
  }
  for (T x : edges) {
    for (T y : edges) add(x, y);
  }
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> unit(-1, 1);
  const double bits = kType == DType::kF32 ? 150 : 1075;
  for (size_t i = 0; i < count; ++i) {
    add(FromPattern<T>(random()), FromPattern<T>(random()));
    // Results over the whole range of the type, from bases all over it and near 1.
    const T base = std::fabs(FromPattern<T>(random()));
    add(base, static_cast<T>(unit(random) * bits / std::log2(base)));
    const T near = static_cast<T>(1 + unit(random) * 0.3);
    add(near, static_cast<T>(unit(random) * bits / std::log2(near)));
    add(static_cast<T>(unit(random) * 20), static_cast<T>(static_cast<int>(random() % 41) - 20));
  }
  return Measure(*kernel, in, [&](size_t i, T got) {
    return Error<T, Wide>(got, std::pow(static_cast<Wide>(in[0][i]), static_cast<Wide>(in[1][i])));
  });
}

TEST(PowTest, IsAccurate) {
  for (const host::Chip& chip : ChipsUnderTest()) {
    const Worst narrow = MeasurePow<float, double>(chip, Samples(300000));
    EXPECT_LE(narrow.error, 4 + kSlack) << chip.name << ", " << narrow.x << " to " << narrow.y;
    const Worst wide = MeasurePow<double, long double>(chip, Samples(150000));
    EXPECT_LE(wide.error, 4 + kSlack) << chip.name << ", " << wide.x << " to " << wide.y;
    printf("pow f32: %.3f ulps, f64: %.3f ulps\n", narrow.error, wide.error);
  }
}

TEST(SinCosTest, StayWithinOneFarOut) {
  for (Opcode opcode : {Opcode::kSin, Opcode::kCos}) {
    const auto kernel = Compile(opcode, DType::kF32, 1, ChipsUnderTest()[0]);
    const std::vector<std::vector<float>> xs = {Arguments<float>(INFINITY, 100000)};
    std::vector<float> out(xs[0].size());
    RunOn(*kernel, xs, &out);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_TRUE(std::isfinite(xs[0][i]) ? std::fabs(out[i]) <= 1 : std::isnan(out[i]))
          << out[i] << " for " << xs[0][i];
    }
  }
}

// Two operations become one only where the kernel says so; built-ins never change.
TEST(FastMathTest, ContractsProductsAndSumsOnly) {
  const float a = 1 + 0x1p-12f, c = -1 - 0x1p-11f;
  for (bool fast : {false, true}) {
    ir::Function header{.name = "fast"};
    header.fast_math = fast;
    ir::Builder b(header);
    const ir::Dim n{.extent = b.AddExtent("N")};
    const ir::Subscript place = SliceAt(b.Int(0), 32);
    const ValueId x = b.Load(b.AddTensor("x", DType::kF32, {n}), {place});
    const ValueId y = b.Load(b.AddTensor("y", DType::kF32, {n}), {place});
    const ValueId product = b.Elementwise(Opcode::kMul, {x, x});
    b.Store(b.AddTensor("out", DType::kF32, {n}), {place},
            b.Elementwise(Opcode::kAdd, {product, y}));
    b.Store(b.AddTensor("log", DType::kF32, {n}), {place}, b.Elementwise(Opcode::kLog2, {x}));
    auto kernel = Compiled::Make(b.Finish(), ChipsUnderTest()[0]);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    Launch launch;
    launch.arguments = {{{1}, {FromReal(DType::kF32, a)}},
                        {{1}, {FromReal(DType::kF32, c)}},
                        {{1}, {0}},
                        {{1}, {0}}};
    const auto got = (*kernel)->Run(launch, Against::kPageAfter);
    ASSERT_TRUE(got.ok()) << got.status();
    volatile float rounded = a * a;
    const float want = fast ? std::fma(a, a, c) : rounded + c;
    EXPECT_EQ(ToReal(DType::kF32, (*got)[2].elements[0]), want) << fast;
    EXPECT_LE(UlpError(DType::kF32, (*got)[3].elements[0], std::log2(static_cast<long double>(a))),
              2)
        << fast;
  }
}

// All 2^32, in parts that the threads take in turn.
TEST_P(MathTest, EveryF32) {
  if (getenv("PHOBOS_TEST_EVERY_VALUE") == nullptr) GTEST_SKIP() << "left to the long tier";
  const BuiltIn& f = GetParam();
  const auto kernel = Compile(f.opcode, DType::kF32, 1, ChipsUnderTest()[0]);
  constexpr uint64_t kPart = uint64_t{1} << 20;
  std::atomic<uint64_t> next{0};
  std::vector<Worst> worst(std::thread::hardware_concurrency());
  auto work = [&](Worst* mine) {
    std::vector<std::vector<float>> xs(1, std::vector<float>(kPart));
    for (uint64_t part = next++; part < (uint64_t{1} << 32) / kPart; part = next++) {
      for (uint64_t i = 0; i < kPart; ++i) xs[0][i] = FromPattern<float>(part * kPart + i);
      const Worst found = Measure(*kernel, xs, [&](size_t i, float got) {
        const float x = xs[0][i];
        return std::fabs(x) > f.most ? 0.0 : Error<float, double>(got, f.narrow(x));
      });
      if (!(found.error <= mine->error)) *mine = found;
    }
  };
  std::vector<std::thread> threads;
  for (Worst& mine : worst) threads.emplace_back(work, &mine);
  for (std::thread& thread : threads) thread.join();
  for (const Worst& mine : worst) {
    EXPECT_LE(mine.error, f.ulps + kSlack) << "at " << mine.x;
    printf("%s, every f32: %.3f ulps at %a\n", std::string(ir::Name(f.opcode)).c_str(), mine.error,
           mine.x);
  }
}

}  // namespace
}  // namespace phobos::compiler::testing
