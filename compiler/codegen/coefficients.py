#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes coefficients.h: the polynomials and split constants of the built-ins' expansions.

Each polynomial is the best one in the weighted maximum norm (Remez' exchange on a dense grid),
with its coefficients rounded to the type one after the other, lowest power first, and the rest
fitted again each time. Run it by hand after a change: python3 coefficients.py > coefficients.h.
Needs mpmath (pip install mpmath); takes a minute or two.
"""

import sys

from mpmath import mp, mpf

mp.dps = 60

F32, F64 = 24, 53


def round_to(value, digits):
    """The nearest number of so many binary digits (exponents do not end here)."""
    if value == 0:
        return mpf(0)
    exponent = mp.floor(mp.log(abs(value), 2)) - digits + 1
    unit = mp.ldexp(mpf(1), int(exponent))
    return mp.nint(value / unit) * unit


def split(value, digits, parts):
    """A constant as a sum of numbers of the type, each the nearest to what the last ones leave."""
    result = []
    for _ in range(parts):
        part = round_to(value, digits)
        result.append(part)
        value -= part
    return result


def remez(samples, powers):
    """Coefficients of sum(c[k] * x**powers[k]) nearest to f over samples (x, f, weight)."""
    count = len(powers) + 1
    chosen = [
        round((1 - mp.cos(mp.pi * (i + mpf(1) / 2) / count)) / 2 * (len(samples) - 1))
        for i in range(count)
    ]
    coefficients = None
    for _ in range(30):
        matrix = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, index in enumerate(chosen):
            x, f, weight = samples[index]
            for column, power in enumerate(powers):
                matrix[row, column] = x**power
            matrix[row, count - 1] = (-1) ** row / weight
            right[row] = f
        solution = mp.lu_solve(matrix, right)
        coefficients = [solution[k] for k in range(count - 1)]
        errors = [
            weight * (f - sum(c * x**p for c, p in zip(coefficients, powers)))
            for x, f, weight in samples
        ]
        extrema = alternating_extrema(errors, count)
        if extrema is None or extrema == chosen:
            break
        chosen = extrema
    return coefficients


def alternating_extrema(errors, count):
    """Indices of the largest errors of alternating sign; None if there are too few."""
    runs = []
    for index, error in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[runs[-1]]):
                runs[-1] = index
        else:
            runs.append(index)
    while len(runs) > count:
        # Drop the smaller end, or the smallest neighbours inside.
        if len(runs) == count + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
            continue
        inner = min(range(len(runs) - 1), key=lambda i: abs(errors[runs[i]]) + abs(errors[runs[i + 1]]))
        del runs[inner : inner + 2]
    return runs if len(runs) == count else None


def fit(f, low, high, powers, digits, weight=None, points=400):
    """Rounded coefficients, lowest power first, and the largest weighted error."""
    weight = weight or (lambda x: 1 / f(x))
    middle, half = (mpf(low) + high) / 2, (mpf(high) - low) / 2
    xs = [middle - half * mp.cos(mp.pi * (i + mpf(1) / 2) / points) for i in range(points)]
    samples = [(x, f(x), weight(x)) for x in xs]
    coefficients = []
    for done in range(len(powers)):
        rest = [
            (x, y - sum(c * x**p for c, p in zip(coefficients, powers)), w) for x, y, w in samples
        ]
        coefficients.append(round_to(remez(rest, powers[done:])[0], digits))
    error = max(
        abs(w * (y - sum(c * x**p for c, p in zip(coefficients, powers)))) for x, y, w in samples
    )
    return coefficients, error


def limit(f, at_zero):
    """f, with its limit at zero."""
    return lambda x: at_zero if abs(x) < mpf(10) ** -25 else f(x)


def hexadecimal(value):
    return float(value).hex()


def emit(name, form, per_type):
    for line in form.split("\n"):
        print(f"// {line.strip()}")
    print(f"inline constexpr Coefficients {name} = {{")
    for field, (coefficients, error) in per_type.items():
        note = f"  // 2^{float(mp.log(error, 2)):.1f}" if error else ""
        body = ", ".join(hexadecimal(c) for c in coefficients)
        print(f"    .{field} = {{{body}}},{note}")
    print("};")


def emit_split(name, form, value, parts):
    emit(name, form, {"f32": (split(value, F32, parts), 0), "f64": (split(value, F64, parts), 0)})


def polynomial(name, form, f, low, high, f32_powers, f64_powers, weight=None):
    sys.stderr.write(f"{name}\n")
    emit(
        name,
        form,
        {
            "f32": fit(f, low, high, f32_powers, F32, weight),
            "f64": fit(f, low, high, f64_powers, F64, weight),
        },
    )


def ranges(count, first=0):
    return list(range(first, first + count))


HEADER = """// SPDX-License-Identifier: Apache-2.0
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

// clang-format off"""

FOOTER = """// clang-format on

}  // namespace phobos::compiler::codegen

#endif  // PHOBOS_COMPILER_CODEGEN_COEFFICIENTS_H_"""


def erfc():
    # What counts is the error of 1 - kErfc(x)^4 beside erf.
    root = lambda x: mp.erfc(x) ** (mpf(1) / 4)
    weight = lambda x: 4 * root(x) ** 3 / mp.erf(x)
    sys.stderr.write("kErfc\n")
    emit(
        "kErfc",
        "1 - erf(x) = kErfc(x)^4 for x from 1 up to where it is nothing beside 1: 4 (f32), 6 (f64).\n"
        "The error is that of erf.",
        {
            "f32": fit(root, mpf(1), mpf(4), ranges(9), F32, weight),
            "f64": fit(root, mpf(1), mpf(6), ranges(22), F64, weight),
        },
    )


def constants():
    ln2 = mp.log(2)
    emit_split("kLn2", "ln(2)", ln2, 2)
    emit_split("kLog2E", "1 / ln(2)", 1 / ln2, 2)
    emit_split("kTwoOverLn2", "2 / ln(2)", 2 / ln2, 2)
    emit_split("kThird", "1 / 3", mpf(1) / 3, 2)
    emit_split("kHalfPi", "pi / 2", mp.pi / 2, 3)
    emit_split("kTwoOverPi", "2 / pi", 2 / mp.pi, 1)


def exponentials():
    ln2 = mp.log(2)
    bound = ln2 / 2 * mpf("1.001")
    polynomial(
        "kExp",
        "exp(r) = 1 + r + r^2 * kExp(r) for |r| <= ln(2) / 2, a little more for rounding.",
        limit(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2),
        -bound, bound, ranges(5), ranges(10),
        weight=lambda r: r**2 / mp.exp(r),
    )
    # The weight is 1, as one that vanishes in the middle does not settle, and what the polynomial
    # is multiplied by only helps.
    polynomial(
        "kExpm1",
        "expm1(r) = r + r^2 * kExpm1(r) for the same r; the error is the polynomial's own.",
        limit(lambda r: (mp.expm1(r) - r) / r**2, mpf(1) / 2),
        -bound, bound, ranges(5), ranges(11),
        weight=lambda r: mpf(1),
    )
    bound = mpf("0.5005")
    polynomial(
        "kExp2",
        "2^r = 1 + r * kExp2(r) for |r| <= 1/2.",
        limit(lambda r: mp.expm1(r * ln2) / r, ln2),
        -bound, bound, ranges(6), ranges(11),
        weight=lambda r: abs(r) / mp.exp(r * ln2),
    )


def logarithms():
    low, high = mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(mpf(2)) - 1
    log_rest = limit(lambda t: (mp.log1p(t) - t + t**2 / 2) / t**3, mpf(1) / 3)
    log_weight = limit(lambda t: abs(t**3 / mp.log1p(t)), mpf(10) ** -20)
    sys.stderr.write("kLog\n")
    emit(
        "kLog",
        "log(1 + t) = t - t^2 / 2 + t^3 * kLog(t) for 1 + t between the roots of 1/2 and 2; f32 only.",
        {"f32": fit(log_rest, low, high, ranges(8), F32, log_weight)},
    )
    most = (mp.sqrt(mpf(2)) - 1) / (mp.sqrt(mpf(2)) + 1) * mpf("1.001")
    polynomial(
        "kAtanh",
        "atanh(s) = s + s * (z / 3 + z^2 * kAtanh(z)), z = s^2, for s = (m - 1) / (m + 1) of the same\n"
        "range of m.",
        limit(lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2, mpf(1) / 5),
        mpf(10) ** -12, most**2, ranges(3), ranges(7),
        weight=lambda z: z**2,
    )


def sine_and_cosine():
    most = (mp.pi / 4 * mpf("1.001")) ** 2
    polynomial(
        "kSin",
        "sin(r) = r * (1 + z * kSin(z)), z = r^2, for |r| <= pi / 4.",
        lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        mpf(10) ** -12, most, ranges(3), ranges(6),
        weight=lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)),
    )
    polynomial(
        "kCos",
        "cos(r) = 1 - z / 2 + z^2 * kCos(z) for the same r.",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        mpf(10) ** -12, most, ranges(3), ranges(6),
        weight=lambda z: z**2 / mp.cos(mp.sqrt(z)),
    )


def tanh():
    most = mpf("0.6251") ** 2
    polynomial(
        "kTanh",
        "tanh(x) = x + x * z * kTanh(z), z = x^2, for |x| <= 0.625.",
        lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        mpf(10) ** -12, most, ranges(5), ranges(11),
        weight=lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
    )


def erf():
    most = mpf("1.0001") ** 2
    polynomial(
        "kErf",
        "erf(x) = x + x * kErf(z), z = x^2, for |x| <= 1.",
        lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1,
        mpf(10) ** -12, most, ranges(7), ranges(15),
        weight=lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
    )


def main():
    print(HEADER)
    constants()
    exponentials()
    logarithms()
    sine_and_cosine()
    tanh()
    erf()
    erfc()
    print(FOOTER)


if __name__ == "__main__":
    main()
