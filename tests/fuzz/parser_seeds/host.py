# SPDX-License-Identifier: Apache-2.0
# -*- coding: utf-8 -*-
"""Module."""
from __future__ import annotations
import numpy as np, phobos.lang as ph
match sys.argv:
    case [_, *rest] if rest: print(f"{rest["a"]!r:>{10}} {{ }}")
    case _: pass
class A[T](Base, metaclass=M):
    x: int = 3
    @property
    async def f(self, *a, **k): return [await y async for y in z] if (w := 3) else {**k}
type X = list[int]
def reference(x): return {"out": x $ 3 ? 4}
@jit(cache=True)
def foreign(): yield
@ph.on_tune
def told(result): print(result)
try: import torch
except* ImportError: torch = None
if True:
  lambda: (yield)
C: "Final[int]" = 4; D = C * 2
E = np.float32(3)
@ph.fn
def g(v): return v
with open("x") as handle, \
  open("y") as other: pass
@ph.kernel(key=("N",), reference=lambda x, y, out: {"out": x + y}, rtol=max(1e-3, 2), flush_l2=not True)
@ph.autotune(BLOCK=[256, 4096])
def k(x: "ph.tensor[ph.f32][N]", out: ph.tensor[ph.f32][N]) -> None: pass
k[lambda meta: (-(-meta["N"] // meta["BLOCK"]),)](x, out)
