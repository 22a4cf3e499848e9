// SPDX-License-Identifier: Apache-2.0
//
// Coefficients of the built-ins' polynomials, lowest power first, and constants split into sums of
// numbers of the type, largest first. Made by coefficients.py; the comment at a row is the largest
// error of the fit, relative to the function.
#ifndef PHOBOS_COMPILER_CODEGEN_COEFFICIENTS_H_
#define PHOBOS_COMPILER_CODEGEN_COEFFICIENTS_H_

#include <initializer_list>

namespace phobos::compiler::codegen {

struct Coefficients {
  std::initializer_list<double> f32;
  std::initializer_list<double> f64;
};

// clang-format off
// ln(2)
inline constexpr Coefficients kLn2 = {
    .f32 = {0x1.62e4300000000p-1, -0x1.05c6100000000p-29},
    .f64 = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56},
};
// 1 / ln(2)
inline constexpr Coefficients kLog2E = {
    .f32 = {0x1.7154760000000p+0, 0x1.4ae0c00000000p-26},
    .f64 = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56},
};
// 2 / ln(2)
inline constexpr Coefficients kTwoOverLn2 = {
    .f32 = {0x1.7154760000000p+1, 0x1.4ae0c00000000p-25},
    .f64 = {0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55},
};
// 1 / 3
inline constexpr Coefficients kThird = {
    .f32 = {0x1.5555560000000p-2, -0x1.5555560000000p-27},
    .f64 = {0x1.5555555555555p-2, 0x1.5555555555555p-56},
};
// pi / 2
inline constexpr Coefficients kHalfPi = {
    .f32 = {0x1.921fb60000000p+0, -0x1.777a5c0000000p-25, -0x1.ee59da0000000p-50},
    .f64 = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110},
};
// 2 / pi
inline constexpr Coefficients kTwoOverPi = {
    .f32 = {0x1.45f3060000000p-1},
    .f64 = {0x1.45f306dc9c883p-1},
};
// exp(r) = 1 + r + r^2 * kExp(r) for |r| <= ln(2) / 2, a little more for rounding.
inline constexpr Coefficients kExp = {
    .f32 = {0x1.fffffc0000000p-2, 0x1.55548c0000000p-3, 0x1.55585a0000000p-5, 0x1.123d720000000p-7, 0x1.6ab8d20000000p-10},  // 2^-28.2
    .f64 = {0x1.000000000000ap-1, 0x1.5555555555500p-3, 0x1.55555555505ecp-5, 0x1.1111111125a47p-7, 0x1.6c16c184c00bdp-10, 0x1.a01a0138bea2cp-13, 0x1.a0199861a6f22p-16, 0x1.71defbbf75c92p-19, 0x1.28af126ccb742p-22, 0x1.add38fd972e6cp-26},  // 2^-57.6
};
// expm1(r) = r + r^2 * kExpm1(r) for the same r; the error is the polynomial's own.
inline constexpr Coefficients kExpm1 = {
    .f32 = {0x1.0000000000000p-1, 0x1.5554d80000000p-3, 0x1.55554a0000000p-5, 0x1.1210e20000000p-7, 0x1.6ca2b20000000p-10},  // 2^-23.8
    .f64 = {0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555555p-5, 0x1.1111111110027p-7, 0x1.6c16c16c179bap-10, 0x1.a01a01acaf16ap-13, 0x1.a01a019a28488p-16, 0x1.71ddfeb618bd9p-19, 0x1.27e50134dcc00p-22, 0x1.af56a216be7e9p-26, 0x1.1f2a815333643p-29},  // 2^-58.4
};
// 2^r = 1 + r * kExp2(r) for |r| <= 1/2.
inline constexpr Coefficients kExp2 = {
    .f32 = {0x1.62e4300000000p-1, 0x1.ebfb940000000p-3, 0x1.c6af9e0000000p-5, 0x1.3b68080000000p-7, 0x1.5ef49a0000000p-10, 0x1.17b3880000000p-13},  // 2^-26.2
    .f64 = {0x1.62e42fefa39efp-1, 0x1.ebfbdff82c5b3p-3, 0x1.c6b08d704a26ep-5, 0x1.3b2ab6fb9dae5p-7, 0x1.5d87fe7845ef6p-10, 0x1.43091316771ccp-13, 0x1.ffcbfe66ee38dp-17, 0x1.62bfb3e9d6c5dp-20, 0x1.b5207261b6af2p-24, 0x1.e63ec26f4882ep-28, 0x1.f11e70fdb3e40p-32},  // 2^-55.9
};
// log(1 + t) = t - t^2 / 2 + t^3 * kLog(t) for 1 + t between the roots of 1/2 and 2; f32 only.
inline constexpr Coefficients kLog = {
    .f32 = {0x1.5555540000000p-2, -0x1.0002280000000p-2, 0x1.99a0340000000p-3, -0x1.5472300000000p-3, 0x1.22d66e0000000p-3, -0x1.0d81fe0000000p-3, 0x1.0572040000000p-3, -0x1.38fd8e0000000p-4},  // 2^-27.3
};
// atanh(s) = s + s * (z / 3 + z^2 * kAtanh(z)), z = s^2, for s = (m - 1) / (m + 1) of the same
// range of m.
inline constexpr Coefficients kAtanh = {
    .f32 = {0x1.999a000000000p-3, 0x1.2452740000000p-3, 0x1.dfa4fc0000000p-4},  // 2^-36.8
    .f64 = {0x1.9999999999b36p-3, 0x1.2492492457197p-3, 0x1.c71c722e79389p-4, 0x1.745ce9818952ep-4, 0x1.3b1efe4b33339p-4, 0x1.0f7e328f4a03ep-4, 0x1.0e5310f816ac6p-4},  // 2^-66.3
};
// sin(r) = r * (1 + z * kSin(z)), z = r^2, for |r| <= pi / 4.
inline constexpr Coefficients kSin = {
    .f32 = {-0x1.5555460000000p-3, 0x1.1107740000000p-7, -0x1.9951fc0000000p-13},  // 2^-27.9
    .f64 = {-0x1.5555555555548p-3, 0x1.111111110f730p-7, -0x1.a01a019be915cp-13, 0x1.71de35550f38cp-19, -0x1.ae5e4b5a1f4aep-26, 0x1.5d8b4211aa2d7p-33},  // 2^-57.8
};
// cos(r) = 1 - z / 2 + z^2 * kCos(z) for the same r.
inline constexpr Coefficients kCos = {
    .f32 = {0x1.55554a0000000p-5, -0x1.6c0c280000000p-10, 0x1.99e7e00000000p-16},  // 2^-32.9
    .f64 = {0x1.555555555554bp-5, -0x1.6c16c16c15005p-10, 0x1.a01a019c8c7d5p-16, -0x1.27e4f7ef0d4efp-22, 0x1.1ee9d9c6857dcp-29, -0x1.8fa5538aa9fbdp-37},  // 2^-63.9
};
// tanh(x) = x + x * z * kTanh(z), z = x^2, for |x| <= 0.625.
inline constexpr Coefficients kTanh = {
    .f32 = {-0x1.5555320000000p-2, 0x1.1106f60000000p-3, -0x1.b8359e0000000p-5, 0x1.51f8540000000p-6, -0x1.7508460000000p-8},  // 2^-27.6
    .f64 = {-0x1.55555555554ffp-2, 0x1.111111110ac90p-3, -0x1.ba1ba1b5033bfp-5, 0x1.664f477a3fa08p-6, -0x1.226e161a8971dp-7, 0x1.d6cf25ace1bb3p-9, -0x1.7d6888ef653e1p-10, 0x1.33655be002810p-11, -0x1.df4f5bb8fc0c6p-13, 0x1.43827a370c925p-14, -0x1.0d8910207c31bp-16},  // 2^-56.0
};
// erf(x) = x + x * kErf(z), z = x^2, for |x| <= 1.
inline constexpr Coefficients kErf = {
    .f32 = {0x1.06eba80000000p-3, -0x1.81273e0000000p-2, 0x1.ce2ce60000000p-4, -0x1.b7f71a0000000p-6, 0x1.53f2240000000p-8, -0x1.a3515e0000000p-11, 0x1.4771fe0000000p-14},  // 2^-29.4
    .f64 = {0x1.06eba8214db69p-3, -0x1.812746b037a3dp-2, 0x1.ce2f21a0481eep-4, -0x1.b82ce3149f91ap-6, 0x1.565bcd7a52160p-8, -0x1.c02dce06e3b6fp-11, 0x1.f9a737147c824p-14, -0x1.f54086af186f1p-17, 0x1.c20819abdeb35p-20, -0x1.cba6199a7e0e5p-23, 0x1.3c2eff27c1845p-24, -0x1.9f87c45802a83p-25, 0x1.aa42b777f7736p-26, -0x1.0672fe790de7dp-27, 0x1.214c0dde7d7e3p-30},  // 2^-56.1
};
// 1 - erf(x) = kErfc(x)^4 for x from 1 up to where it is nothing beside 1: 4 (f32), 6 (f64).
// The error is that of erf.
inline constexpr Coefficients kErfc = {
    .f32 = {0x1.008b8e0000000p+0, -0x1.2c65b40000000p-2, -0x1.801e2e0000000p-4, -0x1.1680d60000000p-6, 0x1.643c640000000p-5, -0x1.9d4cb40000000p-7, 0x1.845fca0000000p-11, 0x1.7fb0680000000p-13, -0x1.7ab25a0000000p-16},  // 2^-26.8
    .f64 = {0x1.fffffdfdc75c9p-1, -0x1.20dd4a4c44ee9p-2, -0x1.e8efdba07426dp-4, 0x1.fafc773372fe3p-7, 0x1.30d54c0b6ef87p-6, -0x1.37b44fe7a8fa9p-10, -0x1.044604e83130cp-9, 0x1.09a40f3177d95p-12, 0x1.900225df9b315p-14, -0x1.f183ac4a1897cp-17, -0x1.77d75c6ca3f75p-18, 0x1.9139d9690b350p-19, -0x1.5f00c339a1db1p-20, 0x1.126c8e6b7a5c3p-21, -0x1.20d7c93d93de7p-23, 0x1.75c625efe6ddbp-26, -0x1.febcd133ef164p-30, -0x1.188f11487b43cp-40, 0x1.57e424aea31d6p-36, -0x1.3c20fdb50defap-39, 0x1.090514e2367ffp-43, -0x1.6bfb8a4412dcap-49},  // 2^-58.7
};
// clang-format on

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_COEFFICIENTS_H_
