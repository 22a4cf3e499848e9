# SPDX-License-Identifier: Apache-2.0
"""The kernels that a GPU runs against the host's code of the same kernels: text and how each is launched.

Every element type, built-in, conversion and kind of statement that the language has for tiles of one dimension.
"""

HEADER = """from __future__ import annotations
import phobos.lang as ph
"""

FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
TYPES = FLOATS + INTEGERS + ("bool",)

UNARY = ("exp", "exp2", "expm1", "log", "log2", "log1p", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "sigmoid", "abs",
         "floor", "ceil", "round")
BINARY = {
    "pow": "ph.pow(a, b)",
    "minimum": "ph.minimum(a, b)",
    "maximum": "ph.maximum(a, b)",
    "arithmetic": "(a + b) * a - b",
    "division": "a / b",
    "remainder": "a % b",
    "fma": "ph.fma(a, b, a)",
    "where": "ph.where(a < b, a, -b)",
    "clip": "ph.clip(a, -1.0, b)",
}
INTEGER = ("a + b", "a - b", "a * b", "a // b", "a % b", "a ** 3", "a & b", "a | b", "a ^ b", "a << (b & 7)",
           "a >> (b & 7)", "ph.mulhi(a, b)", "ph.minimum(a, b)", "ph.maximum(a, b)", "ph.abs(a)", "~a")

# Name -> (elements a block, decorators and definition). The kernel is called k.
STATEMENTS = {
    "add": ("BLOCK", """
@ph.autotune(BLOCK=[256, 4096])
def k(x: ph.tensor[ph.f32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] = x[base:+BLOCK] + y[base:+BLOCK]
"""),
    "saxpy": ("BLOCK", """
@ph.autotune(BLOCK=[1000, 96, 2048], THREADS=[64, 1024])
@ph.launch("THREADS")
def k(a: ph.f32, x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    out[base:+BLOCK] += a * x[base:+BLOCK]
"""),
    "gelu": ("BLOCK", """
@ph.autotune(BLOCK=[256, 4096])
@ph.launch(128, min_blocks=4)
def k(x: ph.tensor[ph.f16][N], out: ph.tensor[ph.f16][N]):
    base: ph.let = ph.ctx.block.x * BLOCK
    v: ph.let = ph.cast(x[base:+BLOCK], ph.f32)
    out[base:+BLOCK] = 0.5 * v * (1.0 + ph.erf(v * 0.70710678))
"""),
    "stencil": (100, """
def k(x: ph.tensor[ph.f64][N], out: ph.tensor[ph.f64][N]):
    i: ph.let = ph.ctx.block.x * 100
    out[i:+100] = 0.25 * x[i - 1:+100] + 0.5 * x[i:+100] + 0.25 * x[i + 1:+100]
"""),
    "masks_and_fills": (33, """
def k(x: ph.tensor[ph.f32][N], m: ph.tensor[ph.bool][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * 33
    v: ph.let = ph.load(x[i - 5:+33], fill=-1.0, mask=m[i:+33])
    ph.store(out[i:+33], v + 1.0, mask=~m[i + 2:+33])
"""),
    "three_types": (512, """
def k(x: ph.tensor[ph.f16][N], y: ph.tensor[ph.bf16][N], out: ph.tensor[ph.f32][N], slope: ph.f32):
    at: ph.let = ph.ctx.block.x * 512
    h: ph.let = x[at:+512]
    b: ph.let = y[at:+512]
    out[at:+512] = ph.where(h > 0, h, slope * h) + ph.maximum(b, 0) * h
    x[at:+512] = h * h + b
    y[at:+512] = ph.minimum(b, 0.5) - h
"""),
    "shift_in_place": (4096, """
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    if ph.ctx.block.x == 0:
        x[1:+2000] = x[0:+2000]
        out[0:+2000] = x[0:+2000]
        out[3:+2000] -= x[5:+2000]
"""),
    "running_total": (2048, """
def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], n: ph.i32):
    i: ph.let = ph.ctx.block.x * 2048
    total: ph.var = x[i:+2048] * 0.5
    for j in ph.range(n):
        if j == 3:
            continue
        total = total + x[i + j:+2048]
        if j > 5:
            break
        out[i:+2048] = total
    out[i:+2048] += total
"""),
    "neighbours": (1024, """
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x * 1024
    out[i:+1024] = x[i:+1024]
    for step in ph.range(8):
        out[i:+512] = out[i + 512:+512] + step
        out[i + 512:+512] = out[i + 256:+512] * 3
"""),
    "elements": (1, """
def k(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x
    sum: ph.var = 0.0
    for j in ph.range(i, i - 20, -1):
        sum += x[j]
    out[i] = sum
    out[i] = out[i] * 2.0 + out[i - 100000]
"""),
    "while_and_return": (16, """
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N], n: ph.i32):
    i: ph.let = ph.ctx.block.x * 16
    if i >= ph.extent(x, 0) or n < 0:
        return
    steps: ph.var = 0
    left: ph.var = n
    while left > 1:
        left = left // 2 if left % 2 == 0 else left * 3 + 1
        steps += 1
    out[i:+16] = x[i:+16] * steps + ph.cast(ph.iota(16), ph.i32) ** 3
"""),
    "rearranged": (1024, """
@ph.autotune(THREADS=[32, 96, 256])
@ph.launch("THREADS")
def k(x: ph.tensor[ph.i32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.i32][N], turned: ph.tensor[ph.f32][N]):
    i: ph.let = ph.ctx.block.x * 1024
    t: ph.let = ph.reshape(x[i:+1024], 16, 64)
    rows: ph.let = ph.sum(t, axis=1, keepdims=True)
    columns: ph.let = ph.max(t, axis=0) - ph.argmin(t, axis=0)
    out[i:+1024] = ph.reshape(t * rows + columns, 1024) + ph.sum(t) + ph.cumsum(x[i:+1024])
    turned[i:+1024] = ph.reshape(ph.transpose(ph.reshape(y[i:+1024], 32, 32)), 1024) - ph.max(y[i:+1024])
"""),
    "atomics": (256, """
def k(x: ph.tensor[ph.i32][N], y: ph.tensor[ph.f32][N], out: ph.tensor[ph.i32][N], wide: ph.tensor[ph.i64][N],
      small: ph.tensor[ph.u8][N], least: ph.tensor[ph.f32][N], most: ph.tensor[ph.bf16][N]):
    i: ph.let = ph.ctx.block.x * 256
    v: ph.let = x[i:+256]
    ph.atomic_add(out[v & 1023], v)
    ph.atomic_max(wide[v % 511], v)
    ph.atomic_xor(small[v & 255], v ^ 7)
    ph.atomic_min(least[v & 127], y[i:+256])
    ph.atomic_max(most[v & 63], y[i:+256])
"""),
    "old_values": (256, """
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N], q: ph.tensor[ph.i64][N], drawn: ph.tensor[ph.i64][N]):
    i: ph.let = ph.ctx.block.x * 256
    out[i:+256] = ph.atomic_add(x[i:+256], 5) * 3
    ticket: ph.let = ph.atomic_add(q[0], 1)
    ph.atomic_add(drawn[0], ticket - ph.ctx.block.x)
    x[i:+256] += ph.atomic_cas(out[i:+256], 3, 4)
"""),
    "random_and_pairs": (512, """
def k(x: ph.tensor[ph.i32][N], bits: ph.tensor[ph.u32][N], out: ph.tensor[ph.i32][N]):
    i: ph.let = ph.ctx.block.x * 512
    bits[i:+512] = ph.random_u32(x[0], i + ph.iota(512))
    out[i:+512] = ph.interleave(x[i:+256], ph.join(x[i + 256:+100], x[i:+156]))
"""),
    "strides_of_the_grid": (256, """
def k(x: ph.tensor[ph.i32][N], out: ph.tensor[ph.i32][N]):
    for tile in ph.range(ph.ctx.block.x, ph.cdiv(N, 64), ph.ctx.grid.x):
        out[tile * 64:+64] = x[tile * 64:+64] + ph.cast(tile, ph.i32)
"""),
    "promised": (1024, """
@ph.aligned(x=16, out=16)
@ph.index_bits(64)
def k(x: ph.tensor[ph.u8][N], out: ph.tensor[ph.u8][N]):
    i: ph.let = ph.ctx.block.x * 1024
    out[i:+1024] = x[i:+1024] ^ 255
"""),
}


def _elementwise(inputs, outputs, decorators="", tile=1024):
    """A kernel of one statement an output; `inputs` and `outputs`: name -> type, `outputs`' values: (type, expression)."""
    parameters = [f"{name}: ph.tensor[ph.{dtype}][N]" for name, dtype in inputs.items()]
    parameters += [f"{name}: ph.tensor[ph.{dtype}][N]" for name, (dtype, _) in outputs.items()]
    lines = [decorators.strip()] if decorators else []
    lines += [f"def k({', '.join(parameters)}):", f"    i: ph.let = ph.ctx.block.x * {tile}"]
    lines += [f"    {name[-1]}: ph.let = {name}[i:+{tile}]" for name in inputs]
    lines += [f"    {name}[i:+{tile}] = {text}" for name, (_, text) in outputs.items()]
    return tile, "\n" + "\n".join(lines) + "\n"


def kernels():
    """Name -> (elements a block: a number or an autotuned constant's name, text of a file with the kernel k)."""
    found = dict(STATEMENTS)
    for dtype in FLOATS:
        for name in UNARY:
            found[f"{name}_{dtype}"] = _elementwise({"in_a": dtype}, {"out": (dtype, f"ph.{name}(a)")})
        for name, text in BINARY.items():
            found[f"{name}_{dtype}"] = _elementwise({"in_a": dtype, "in_b": dtype}, {"out": (dtype, text)})
        tests = {"is_nan": ("bool", "ph.isnan(a)"), "is_inf": ("bool", "ph.isinf(a)"), "less": ("bool", "a <= b")}
        found[f"tests_{dtype}"] = _elementwise({"in_a": dtype, "in_b": dtype}, tests)
    for dtype in INTEGERS:
        outputs = {f"out{i}": (dtype, text) for i, text in enumerate(INTEGER)}
        found[f"integer_{dtype}"] = _elementwise({"in_a": dtype, "in_b": dtype}, outputs)
    for dtype in TYPES:
        outputs = {f"to_{to}": (to, f"ph.cast(a, ph.{to})") for to in TYPES}
        found[f"cast_{dtype}"] = _elementwise({"in_a": dtype}, outputs)
    return {name: (tile, f"{HEADER}\n@ph.kernel{text}") for name, (tile, text) in found.items()}
