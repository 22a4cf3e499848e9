# SPDX-License-Identifier: Apache-2.0
"""phobos: kernels whose search space is tuned on the machine that runs them. See phobos.lang."""

import sys

if sys.version_info < (3, 9):
    raise ImportError("phobos needs Python 3.9 or newer, and this is %d.%d" % sys.version_info[:2])
del sys


def __getattr__(name):
    raise AttributeError(
        f"the package phobos has no {name!r}; the kernel language is its module: write"
        " `import phobos.lang as ph`"
    )
