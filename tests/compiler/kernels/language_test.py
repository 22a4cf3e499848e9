# SPDX-License-Identifier: Apache-2.0
"""The language's rules at their edges and in odd combinations, a section each, against NumPy and Python."""

import sys
import unittest

import numpy as np

import compiled

COMPILER = sys.argv.pop(1)
INTS = np.array([7, -7, 7, -7, 0, 2**31 - 1, -2**31, 5], np.int32)
DIVISORS = np.array([2, 2, -2, -2, 5, -1, -1, 0], np.int32)
XY = "x: ph.tensor[ph.T][N], y: ph.tensor[ph.T][N], out: ph.tensor[ph.T][N]"


def wrapped(values):
    """Python's ints as i32."""
    return np.array([(int(value) + 2**31) % 2**32 - 2**31 for value in values], np.int32)


class Rules(unittest.TestCase):

    def check(self, body, parameters, want, grid=(1,), before="", **arguments):
        """Runs a kernel of that body; `want` has what its arrays then hold, by name."""
        lines = "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
        text = f"{before}\n@ph.kernel\ndef k({parameters}):\n{lines}"
        for variant in compiled.variants(COMPILER, text, checks_races=False):
            got = variant.run(grid, **arguments)
            for name, wanted in want.items():
                np.testing.assert_array_equal(got[name], np.asarray(wanted, got[name].dtype), f"{name} of\n{body}")

    def ints(self, expression, want, x=INTS, y=DIVISORS):
        parameters = XY.replace("ph.T", "ph.i32")
        self.check(f"out[0:+8] = {expression}", parameters, {"out": want}, x=x, y=y, out=np.zeros(8, np.int32))
        scalars = expression.replace("x[0:+8]", "x[i]").replace("y[0:+8]", "y[i]")
        self.check(f"for i in ph.range(8):\n    out[i] = {scalars}", parameters, {"out": want}, x=x, y=y,
                   out=np.zeros(8, np.int32))

    def test_division_of_ints(self):
        floors = [0 if q == 0 else int(p) // int(q) for p, q in zip(INTS, DIVISORS)]
        rests = [0 if q == 0 else int(p) % int(q) for p, q in zip(INTS, DIVISORS)]
        self.ints("x[0:+8] // y[0:+8]", wrapped(floors))
        self.ints("x[0:+8] % y[0:+8]", wrapped(rests))
        self.ints("x[0:+8] // 0 + x[0:+8] % 0", np.zeros(8))
        self.ints("x[0:+8] ** 3 + 2 ** 5 + x[0:+8] ** 0", wrapped([int(x)**3 + 33 for x in INTS]))

    def test_division_of_floats(self):
        x = np.array([7.5, -7.5, 7.5, -7.5, 1, 0, 3, -0.0])
        y = np.array([2, 2, -2, -2, 0, 0, np.inf, 3])
        pairs = list(zip(x.tolist(), y.tolist()))
        for dtype, of in (("f32", np.float32), ("f64", np.float64)):
            arguments = {"x": x.astype(of), "y": y.astype(of), "out": np.zeros(8, of)}
            for sign, want in (("%", [p % q if q else 0.0 for p, q in pairs]), ("//", [p // q if q else 0.0 for p, q in pairs])):
                self.check(f"out[0:+8] = x[0:+8] {sign} y[0:+8]", XY.replace("ph.T", "ph." + dtype), {"out": want},
                           **arguments)

    def test_shifts_by_any_number(self):
        x = np.array([1, -1, -5, -5, 7, 9, -1, -2**31], np.int32)
        by = np.array([0, 1, 31, 32, 33, -1, 64, 5], np.int32)
        left = [int(p) << int(q) if 0 <= q < 32 else 0 for p, q in zip(x, by)]
        right = [int(p) >> int(q) if 0 <= q < 32 else -int(p < 0) for p, q in zip(x, by)]
        self.ints("x[0:+8] << y[0:+8]", wrapped(left), x, by)
        self.ints("x[0:+8] >> y[0:+8]", wrapped(right), x, by)
        self.ints("(x[0:+8] << 40) + (x[0:+8] >> 40)", [-int(p < 0) for p in x], x, by)

    def test_types_that_meet(self):
        u = np.array([1, 2**32 - 1, 5, 2**31], np.uint32)
        i = np.array([-1, 1, -2**31, 2**31 - 1], np.int32)
        l = np.array([-1, 2**40, 3, -2**63], np.int64)
        h = np.array([1.5, 2048, 0.1, -2], np.float16)
        b = compiled.bf16(np.array([2, 1e30, 0.1, -3], np.float32))
        parameters = ("u: ph.tensor[ph.u32][4], i: ph.tensor[ph.i32][4], l: ph.tensor[ph.i64][4], h: ph.tensor[ph.f16][4], "
                      "b: ph.tensor[ph.bf16][4], ints: ph.tensor[ph.i64][4, 4], floats: ph.tensor[ph.f32][3, 4]")
        body = """
ints[0, :] = u[:] + i[:]
ints[1, :] = u[:] + l[:]
ints[2, :] = (i[:] > 0) + i[:]
ints[3, :] = ph.where(u[:] > i[:], 1, 0)
floats[0, :] = h[:] + b[:]
floats[1, :] = (i[:] > 0) * h[:]
floats[2, :] = i[:] * 0.5
"""
        signed = u.astype(np.int32)
        ints = [(signed + i).astype(np.int64), u + l, i + (i > 0), signed > i]
        floats = [h.astype(np.float32) + compiled.from_bf16(b), (i > 0) * h, i * np.float32(0.5)]
        self.check(body, parameters, {"ints": ints, "floats": floats}, u=u, i=i, l=l, h=h, b=b,
                   ints=np.zeros((4, 4), np.int64), floats=np.zeros((3, 4), np.float32))

    def test_stores_saturate_and_wrap(self):
        x = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 127.9, -128.9, -0.5], np.float32)
        names = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16,
                 "u32": np.uint32, "u64": np.uint64, "bool": np.bool_}
        outs = {"o" + name: np.zeros(8, of) for name, of in names.items()}
        want = {}
        for name, of in names.items():
            if name == "bool":
                want["obool"] = x != 0
                continue
            low, high = np.iinfo(of).min, np.iinfo(of).max
            cut = [0 if np.isnan(v) else low if v <= low else high if v >= high else int(v) for v in x.astype(np.float64)]
            want["o" + name] = np.array(cut, of)
        parameters = "x: ph.tensor[ph.f32][8], " + ", ".join(f"o{name}: ph.tensor[ph.{name}][8]" for name in names)
        self.check("\n".join(f"o{name}[:] = x[:]" for name in names), parameters, want, x=x, **outs)
        self.check("for i in ph.range(8):\n" + "\n".join(f"    o{name}[i] = ph.cast(x[i], ph.{name})" for name in names),
                   parameters, want, x=x, **outs)
        wide = np.array([300, -300, 2**40 + 7, -1, 0, 65536, 2**62, -2**63], np.int64)
        self.check("\n".join(f"o{name}[:] = x[:]" for name in names), parameters.replace("f32", "i64", 1),
                   {"o" + name: wide != 0 if name == "bool" else wide.astype(of) for name, of in names.items()}, x=wide, **outs)

    def test_conversions_round_once(self):
        x = np.array([1 + 2**-11 + 2**-40, 65519.999, 2**-25, 2**-25 * (1 + 2**-30), 1e-300, -0.0])
        self.check("out[:] = x[:]", "x: ph.tensor[ph.f64][6], out: ph.tensor[ph.f16][6]", {"out": x.astype(np.float16)},
                   x=x, out=np.zeros(6, np.float16))
        x = np.array([2**24 + 1, 2**53 + 1, -2**62 - 1, 2**63 - 1, 33554433, 5], np.int64)
        self.check("out[:] = x[:]", "x: ph.tensor[ph.i64][6], out: ph.tensor[ph.f32][6]", {"out": x.astype(np.float32)},
                   x=x, out=np.zeros(6, np.float32))

    def test_control_flow(self):
        x = np.array([3, 8, 1, 0, 5, 2, 9, 4], np.int32)
        body = """
i: ph.let = ph.ctx.block.x
n: ph.var = x[i]
s: ph.var = 0
while True:
    n -= 1
    if n < 0:
        break
    if n % 2 == 0:
        continue
    for j in ph.range(n):
        if j == 3:
            break
        if j == 1:
            continue
        s += j * n
        if s > 20:
            out[i] = -s
            return
    s += 100 if n == 1 else 0
out[i] = s
"""

        def python(n):
            s = 0
            while True:
                n -= 1
                if n < 0:
                    return s
                if n % 2 == 0:
                    continue
                for j in range(n):
                    if j == 3:
                        break
                    if j == 1:
                        continue
                    s += j * n
                    if s > 20:
                        return -s
                s += 100 if n == 1 else 0

        self.check(body, "x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]", {"out": [python(int(n)) for n in x]},
                   grid=(8,), x=x, out=np.zeros(8, np.int32))

    def test_what_is_not_wanted_is_not_evaluated(self):
        body = """
if N < 0 and ph.atomic_add(out[0], 1) == 0:
    pass
if N > 0 or ph.atomic_add(out[0], 1) == 0:
    out[1] = 7
z: ph.let = 5 if N > 0 else ph.atomic_add(out[0], 1)
out[2] = z
out[3] = 1 if -1 < ph.atomic_add(out[4], 1) < 5 else 0
out[ph.atomic_add(out[5], 1)] += 2
"""
        self.check(body, "out: ph.tensor[ph.i32][N]", {"out": [2, 7, 5, 1, 1, 1]}, out=np.zeros(6, np.int32))

    def test_positions_far_outside(self):
        body = """
p: ph.var = 9223372036854775806
q: ph.var = -9223372036854775807
q -= 1
out[0:+4] = x[p:+4] + x[q:+4] + x[(ph.ctx.block.x + 1) * 4294967296 + 1:+4] + 1.0
out[p:+4] = 7.0
out[q:+4] = 8.0
out[q] = 8.0
out[p + ph.iota(4)] = 7.0
out[4294967296 + ph.iota(4)] = 7.0
"""
        one = np.ones(4, np.float32)
        self.check(body, "x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]", {"out": one}, x=one, out=0 * one)

    def test_subscripts_of_every_kind(self):
        x = compiled.floats(3, 4, 5, 6)
        i, j = np.array([2, 0, -1, 3], np.int32), np.array([1, 4, 7], np.uint8)
        parameters = ("x: ph.tensor[ph.f32][A, B, C, D], i: ph.tensor[ph.i32][4], j: ph.tensor[ph.u8][3], "
                      "out: ph.tensor[ph.f32][4, 3, 6], two: ph.tensor[ph.f32][2, 4, 3], rows: ph.tensor[ph.f32][3, 2, 6]")
        body = """
a: ph.let = i[:]
b: ph.let = j[:]
out[:, :, :] = x[a[:, None], 1, b[None, :], 0:+6]
two[:, :, :] = x[1:+2, a[:, None], b, 5]
rows[:, :, :] = x[ph.iota(3), 1:+2, b, 0:+6]
"""

        def at(*index):
            inside = all(0 <= k < side for k, side in zip(index, x.shape))
            return x[index] if inside else 0

        want = {"out": [[[at(int(p), 1, int(q), r) for r in range(6)] for q in j] for p in i],
                "two": [[[at(1 + r, int(p), int(q), 5) for q in j] for p in i] for r in range(2)],
                "rows": [[[at(p, 1 + q, int(j[p]), r) for r in range(6)] for q in range(2)] for p in range(3)]}
        self.check(body, parameters, want, x=x, i=i, j=j, out=np.ones((4, 3, 6), np.float32),
                   two=np.ones((2, 4, 3), np.float32), rows=np.ones((3, 2, 6), np.float32))

    def test_four_sides(self):
        x = compiled.floats(3, 4, 5, 6)
        parameters = "x: ph.tensor[ph.f32][3, 4, 5, 6], out: ph.tensor[ph.f32][A, B, C, D]"
        whole = "out[0:+A0, 0:+B0, 0:+C0, 0:+D0] = "
        for value, want in (("ph.transpose(x[:, :, :, :], (1, 3, 0, 2))", x.transpose(1, 3, 0, 2)),
                            ("x[ph.ctx.block.x - 1:+3, :, 1:+5, :]",
                             np.pad(x, ((1, 0), (0, 0), (0, 1), (0, 0)))[:3, :, 1:]),
                            ("ph.max(x[:, :, :, :], axis=(1, 3), keepdims=True)", x.max((1, 3), keepdims=True))):
            target = whole
            for name, side in zip("ABCD", want.shape):
                target = target.replace(name + "0", str(side))
            self.check(target + value, parameters, {"out": want}, x=x, out=np.zeros(want.shape, np.float32))

    def test_masks_and_fills_of_other_shapes(self):
        x, out = compiled.floats(5, 7), compiled.floats(5, 7, seed=2)
        r, c = np.array([1, 0, 1, 1, 0], np.bool_), np.array([0, 1, 1, 0, 1, 0, 1], np.bool_)
        parameters = ("x: ph.tensor[ph.f32][M, N], r: ph.tensor[ph.bool][M], c: ph.tensor[ph.bool][N], "
                      "out: ph.tensor[ph.f32][M, N]")
        arguments = {"x": x, "r": r, "c": c, "out": out}
        masked = np.where(c, x, np.nan)
        self.check("ph.store(out[0:+8, 0:+8], ph.load(x[0:+8, 0:+8], fill=ph.nan, mask=c[0:+8]), mask=r[0:+8][:, None])",
                   parameters, {"out": np.where(r[:, None], masked, out)}, **arguments)
        self.check("ph.store(out[0:+8, 0:+8], ph.load(x[0:+8, 0:+8], fill=-ph.inf, mask=ph.ctx.block.x > 0), mask=True)",
                   parameters, {"out": np.full((5, 7), -np.inf)}, **arguments)
        self.check("out[0:+8, 0:+8] = ph.load(x[1:+8, 0:+8], fill=ph.cast(ph.iota(8), ph.f32))", parameters,
                   {"out": np.vstack([x[1:], np.arange(7)])}, **arguments)

    def test_tiles_of_bools(self):
        a, b = np.random.default_rng(4).random((2, 10)) > 0.5
        parameters = ("a: ph.tensor[ph.bool][N], b: ph.tensor[ph.bool][N], out: ph.tensor[ph.bool][3, N], "
                      "n: ph.tensor[ph.i32][4]")
        body = """
p: ph.var = a[0:+16]
q: ph.let = b[0:+16]
out[0, 0:+16] = (p & ~q) | (p ^ q)
out[1, 0:+16] = ph.where(p == q, ph.maximum(p, q), p < q)
out[2, 0:+8] = ph.reshape(ph.transpose(ph.reshape(a[0:+8], 2, 4)), 8)
n[0] = ph.sum(p)
n[1] = ph.any(p & q)
n[2] = ph.argmax(q)
n[3] = ph.max(ph.cumsum(p))
"""
        turned = np.append(a[:8].reshape(2, 4).T.reshape(-1), [False, False])
        want = {"out": [(a & ~b) | (a ^ b), np.where(a == b, a | b, ~a & b), turned],
                "n": [a.sum(), (a & b).any(), b.argmax(), a.sum()]}
        self.check(body, parameters, want, a=a, b=b, out=np.zeros((3, 10), np.bool_), n=np.zeros(4, np.int32))

    def test_empty_tensors(self):
        parameters = "x: ph.tensor[ph.f32][M, N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][4]"
        body = """
out[0:+3] = ph.sum(x[0:+3, 0:+8], axis=1) + 1.0
out[3] = ph.max(ph.load(x[0, 0:+8], fill=-ph.inf)) + y[0]
y[N - 1] = 3.0
y[ph.iota(4)] = 3.0
ph.atomic_add(y[0:+4], 1.0)
"""
        for shape in ((0, 0), (3, 0), (0, 5)):
            y = np.zeros(shape[1], np.float32)
            self.check(body, parameters, {"out": [1, 1, 1, -np.inf]}, x=np.zeros(shape, np.float32), y=y,
                       out=np.zeros(4, np.float32))

    def test_functions(self):
        before = """
@ph.fn
def two(a, b: ph.f32):
    return a + b, a - b

@ph.fn
def swap(A, i, j):
    t: ph.let = A[i]
    A[i] = A[j]
    A[j] = t
    return t

@ph.fn
def count(A, most):
    n: ph.var = 0
    for i in ph.range(ph.extent(A, 0)):
        if A[i] > most:
            n += 1
    return n

@ph.fn
def converted(v, T):
    return ph.cast(v, T)
"""
        body = """
a, b = two(b=2, a=x[0:+2])
out[0:+2] = a
out[2:+2] = b
out[4] = swap(x, 0, 7)
out[5] = count(x, 4)
out[6] = converted(3.7, ph.i32)
a, b = two(out[6], 1)
out[7] = a * b
"""
        x = np.arange(1, 9, dtype=np.float32)
        want = {"out": [3, 4, -1, 0, 1, 4, 3, 8], "x": [8, *x[1:7], 1]}
        self.check(body.replace("a, b = two(out[6], 1)", "c, d = two(out[6], 1)").replace("a * b", "c * d"),
                   "x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]", want, before=before, x=x,
                   out=np.zeros(8, np.float32))

    def test_constants(self):
        body = """
out[0] = ph.cast(3.9, ph.i32)
out[1] = ph.cast(-1, ph.u8)
out[2] = ph.cast(1e30, ph.i32)
out[3] = ph.cast(ph.nan, ph.i32)
out[4] = ph.cast(300, ph.i8)
out[5] = 7.9
out[6] = ph.bitcast(1.5, ph.i32)
out[7] = ph.bitcast(ph.cast(-1, ph.i16), ph.u16)
big: ph.let = 2147483648
out[8] = 1 if big == 1 << 31 else 0
out[9] = ph.cdiv(-N, 3) + ph.extent(out, -1) * 100 + -N // 3
out[10] = ph.clip(5, 0, 1) + ph.minimum(3, 4) + ph.abs(-2) + ph.cdiv(7, 2) + (7 // -2) + 7 % -2
out[11] = 0x_fF + 0o17 + 0b1_01 + 1_000
"""
        want = [3, 255, 2**31 - 1, 0, 44, 7, 0x3fc00000, 65535, 1, -4 + 1200 - 4, 1 + 3 + 2 + 4 - 4 - 1, 255 + 15 + 5 + 1000]
        self.check(body, "out: ph.tensor[ph.i32][N]", {"out": want}, out=np.zeros(12, np.int32))

    def test_atomics_on_clashing_and_absent_elements(self):
        x = np.array([0, 1, 1, 9, 3, 1, 0, 3], np.uint8)
        counts = [int(2 * (x == place).sum()) for place in range(4)]
        parameters = "x: ph.tensor[ph.u8][N], c: ph.tensor[ph.i32][4], total: ph.tensor[ph.i32][2], e: ph.tensor[ph.i32][2]"
        body = """
total[0] = ph.sum(ph.atomic_add(c[x[0:+8]], 2))
e[0] = ph.atomic_add(c[7], 2) + 5
e[1] = ph.atomic_max(e[1], 3)
ph.atomic_min(total[1:+8], -1)
"""
        old = sum(n * (n // 2 - 1) // 2 for n in counts)  # 0 + 2 + 4 + ... at each place
        self.check(body, parameters, {"c": counts, "total": [old, -1], "e": [5, 1]}, x=x, c=np.zeros(4, np.int32),
                   total=np.zeros(2, np.int32), e=np.array([0, 1], np.int32))


if __name__ == "__main__":
    unittest.main()
