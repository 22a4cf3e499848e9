# SPDX-License-Identifier: Apache-2.0
"""A kernel that adds, over the stand-in library, and what its tests begin with."""

from __future__ import annotations

import contextlib
import io
import unittest

import numpy as np

import fake
import phobos.lang as ph


def blocks(meta):
    return (-(-meta["N"] // meta["BLOCK"]),)


def make(reference=None, **options):
    @ph.kernel(key=("N",), reference=reference, **options)
    @ph.autotune(BLOCK=[256, 512])
    def add(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N], alpha: ph.f32):
        out[ph.ctx.block.x * BLOCK : +BLOCK] = alpha * x[ph.ctx.block.x * BLOCK : +BLOCK]

    return add


at_module_level = make()
at_module_level.__qualname__ = "at_module_level"


def scaled(x, out, alpha):
    return {"out": alpha * x}


class Case(unittest.TestCase):
    def setUp(self):
        fake.describe(
            "add", [fake.tensor("x"), fake.tensor("out", is_written=True), fake.scalar("alpha")]
        )
        self.x, self.out = np.arange(1024, dtype=np.float32), np.zeros(1024, np.float32)

    def quiet(self):
        return contextlib.redirect_stderr(io.StringIO())
