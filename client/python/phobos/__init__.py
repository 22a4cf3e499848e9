# SPDX-License-Identifier: Apache-2.0
"""phobos: kernels whose search space is tuned on the machine that runs them. See phobos.lang."""
