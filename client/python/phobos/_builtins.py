# SPDX-License-Identifier: Apache-2.0
"""The names that mean something only inside a kernel. Python can name them; calling them is an
error that says so.
"""

from ._errors import NotInKernelError


class Builtin:
    """A function of the kernel language."""

    def __init__(self, name, doc):
        self.__name__ = name
        self.__doc__ = doc

    def __call__(self, *args, **kwargs):
        raise NotInKernelError(
            f"ph.{self.__name__} was called by Python. It is part of the kernel language and means"
            " something only in the body of a function under @ph.kernel or @ph.fn",
            reason="not_in_kernel",
            remedy="Outside a kernel use NumPy or the math module.",
        )

    def __repr__(self):
        return f"<ph.{self.__name__}: a built-in of the kernel language>"


class KernelFunction:
    """A function under @ph.fn. `__wrapped__` is the function as written."""

    def __init__(self, function):
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function

    def __call__(self, *args, **kwargs):
        raise NotInKernelError(
            f"{self.__name__} was called by Python. Under @ph.fn it is part of the kernels of its"
            " file and is inlined there",
            kernel=self.__name__,
            reason="not_in_kernel",
        )

    def __repr__(self):
        return f"<ph.fn {self.__name__}>"


class Context:
    """`ph.ctx`: the block and the grid of the running kernel."""

    __slots__ = ()

    @property
    def block(self):
        """This block's position: .x, .y, .z."""
        raise _outside("ph.ctx.block")

    @property
    def grid(self):
        """The number of blocks: .x, .y, .z."""
        raise _outside("ph.ctx.grid")

    def __repr__(self):
        return "<ph.ctx: exists only inside a kernel>"


def _outside(name):
    return NotInKernelError(
        f"{name} was read by Python; it exists only inside a kernel", reason="not_in_kernel"
    )


# name: what it gives. `range`, `print` and the like are the kernel language's, not Python's.
BUILTINS = {
    "exp": "exp(x): e to the power x, each element.",
    "exp2": "exp2(x): 2 to the power x.",
    "expm1": "expm1(x): exp(x) - 1, accurate near 0.",
    "log": "log(x): the natural logarithm.",
    "log2": "log2(x): the logarithm to base 2.",
    "log1p": "log1p(x): log(1 + x), accurate near 0.",
    "pow": "pow(x, y): x to the power y.",
    "sqrt": "sqrt(x): correctly rounded on f32 and f64.",
    "rsqrt": "rsqrt(x): 1 / sqrt(x).",
    "sin": "sin(x), for |x| <= 1e5.",
    "cos": "cos(x), for |x| <= 1e5.",
    "tanh": "tanh(x).",
    "erf": "erf(x): the error function.",
    "sigmoid": "sigmoid(x): 1 / (1 + exp(-x)).",
    "abs": "abs(x).",
    "floor": "floor(x).",
    "ceil": "ceil(x).",
    "round": "round(x): half to even.",
    "minimum": "minimum(a, b), each element; NaN propagates.",
    "maximum": "maximum(a, b), each element; NaN propagates.",
    "clip": "clip(x, low, high).",
    "fma": "fma(a, b, c): a * b + c rounded once.",
    "where": "where(condition, a, b), each element.",
    "isnan": "isnan(x).",
    "isinf": "isinf(x).",
    "mulhi": "mulhi(a, b): the upper half of the product of two ints.",
    "cast": "cast(v, T): converts as a store does.",
    "bitcast": "bitcast(v, T): keeps the bits.",
    "finfo": "finfo(T).max, .min, .eps of a float type.",
    "iinfo": "iinfo(T).max, .min of an int type.",
    "iota": "iota(L): 0, 1, ... L - 1.",
    "zeros": "zeros(T, ...): a tile of zeros.",
    "full": "full(T, value, ...): a tile of one value.",
    "reshape": "reshape(t, ...).",
    "transpose": "transpose(t[, perm]).",
    "join": "join(a, b): one after the other on the last axis.",
    "interleave": "interleave(a, b): element by element on the last axis.",
    "sum": "sum(t, axis=k, keepdims=False).",
    "max": "max(t, axis=k, keepdims=False); NaN propagates.",
    "min": "min(t, axis=k, keepdims=False); NaN propagates.",
    "prod": "prod(t, axis=k, keepdims=False).",
    "mean": "mean(t, axis=k, keepdims=False).",
    "argmax": "argmax(t, axis=k, keepdims=False): the first one, i32.",
    "argmin": "argmin(t, axis=k, keepdims=False): the first one, i32.",
    "any": "any(t, axis=k, keepdims=False).",
    "all": "all(t, axis=k, keepdims=False).",
    "rowsum": "rowsum(t): sum over axis 1, kept.",
    "rowmax": "rowmax(t): max over axis 1, kept.",
    "cumsum": "cumsum(t, axis=k).",
    "dot": "dot(a, b): [M, K] x [K, N].",
    "dot_t": "dot_t(a, b): [M, K] x [N, K].",
    "load": "load(A[...], fill=v, mask=m): elements outside, or where m is false, read as v.",
    "store": "store(A[...], v, mask=m): elements outside, or where m is false, are not written.",
    "atomic_add": "atomic_add(A[...], v): gives the old value.",
    "atomic_max": "atomic_max(A[...], v): gives the old value.",
    "atomic_min": "atomic_min(A[...], v): gives the old value.",
    "atomic_and": "atomic_and(A[...], v): gives the old value.",
    "atomic_or": "atomic_or(A[...], v): gives the old value.",
    "atomic_xor": "atomic_xor(A[...], v): gives the old value.",
    "atomic_cas": "atomic_cas(A[...], expected, new): gives the old value.",
    "range": "range([low,] high[, step], unroll=U, stages=S): the loop of a kernel.",
    "assume": "assume(condition): a promise, verified at every launch.",
    "assert_": 'assert_(condition, "text"): over constants, at compile time.',
    "print": "print(...): a line on standard error, on the host chip.",
    "extent": "extent(A, d): the size of dimension d.",
    "cdiv": "cdiv(a, b): a / b rounded up.",
    "random_u32": "random_u32(seed, index): Philox 4x32-10.",
}
