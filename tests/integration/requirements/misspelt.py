# SPDX-License-Identifier: Apache-2.0
"""A kernel that does not compile."""

from __future__ import annotations

import phobos.lang as ph


@ph.kernel(key=("N",))
@ph.autotune(BLOCK=[256, 512])
def misspelt(x: ph.tensor[ph.f32][N], out: ph.tensor[ph.f32][N]):
    out[0:+BLOCK] = x[0:+BLOCKS]
