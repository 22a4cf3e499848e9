# SPDX-License-Identifier: Apache-2.0
"""Softmax, layernorm, rmsnorm, transpose and row sums as a Triton user writes them, tuned by Triton's own tuner.

A row is one power of two of columns and one program, as in Triton's tutorials; softmax's programs walk over rows, as there.
"""

import torch
import triton
import triton.language as tl

_ROWS = [triton.Config({}, num_warps=warps) for warps in (4, 8, 16)]
_WALKS = [triton.Config({"STAGES": stages}, num_warps=8, num_stages=stages) for stages in (2, 4)]
_TILES = [triton.Config({"SIDE": side}, num_warps=warps) for side in (32, 64, 128) for warps in (4, 8)]


@triton.autotune(configs=_WALKS, key=["columns"])
@triton.jit
def softmax_kernel(x, out, rows, columns, COLUMNS: tl.constexpr, STAGES: tl.constexpr):
    at = tl.arange(0, COLUMNS)
    inside = at < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        v = tl.load(x + row * columns + at, mask=inside, other=-float("inf")).to(tl.float32)
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * columns + at, e / tl.sum(e, axis=0), mask=inside)


@triton.autotune(configs=_ROWS, key=["columns"])
@triton.jit
def softmax_of_a_row_kernel(x, out, columns, COLUMNS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * columns + at, e / tl.sum(e, axis=0), mask=inside)


@triton.autotune(configs=_ROWS, key=["columns"])
@triton.jit
def layernorm_kernel(x, weight, bias, out, columns, eps, COLUMNS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    moved = tl.where(inside, v - tl.sum(v, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(moved * moved, axis=0) / columns + eps)
    w, b = tl.load(weight + at, mask=inside), tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, moved * scale * w + b, mask=inside)


@triton.autotune(configs=_ROWS, key=["columns"])
@triton.jit
def rmsnorm_kernel(x, weight, out, columns, eps, COLUMNS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=0) / columns + eps)
    tl.store(out + row * columns + at, v * scale * tl.load(weight + at, mask=inside), mask=inside)


@triton.autotune(configs=_ROWS, key=["columns"])
@triton.jit
def rowsum_kernel(x, out, columns, COLUMNS: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, COLUMNS)
    v = tl.load(x + row * columns + at, mask=at < columns, other=0.0).to(tl.float32)
    tl.store(out + row, tl.sum(v, axis=0))


@triton.autotune(configs=_TILES, key=["rows", "columns"])
@triton.jit
def transpose_kernel(x, out, rows, columns, SIDE: tl.constexpr):
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=(i[:, None] < rows) & (j[None, :] < columns))
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=(j[:, None] < columns) & (i[None, :] < rows))


def softmax(x, out):
    rows, columns = x.shape
    programs = 4 * torch.cuda.get_device_properties(0).multi_processor_count
    softmax_kernel[(min(programs, rows),)](x, out, rows, columns, COLUMNS=triton.next_power_of_2(columns))


def softmax_of_a_row(x, out):
    rows, columns = x.shape
    softmax_of_a_row_kernel[(rows,)](x, out, columns, COLUMNS=triton.next_power_of_2(columns))


def layernorm(x, weight, bias, out, eps):
    rows, columns = x.shape
    layernorm_kernel[(rows,)](x, weight, bias, out, columns, eps, COLUMNS=triton.next_power_of_2(columns))


def rmsnorm(x, weight, out, eps):
    rows, columns = x.shape
    rmsnorm_kernel[(rows,)](x, weight, out, columns, eps, COLUMNS=triton.next_power_of_2(columns))


def rowsum(x, out):
    rows, columns = x.shape
    rowsum_kernel[(rows,)](x, out, columns, COLUMNS=triton.next_power_of_2(columns))


def transpose(x, out):
    rows, columns = x.shape
    transpose_kernel[lambda meta: (triton.cdiv(rows, meta["SIDE"]), triton.cdiv(columns, meta["SIDE"]))](x, out, rows, columns)
