"""Random ops of kinds that need operands of their own: calls, bits, tuples, quantized numbers, algorithms. Imports ir,
ops.

Algorithms of many roundings get operands on which every step is exact (powers of two, unit matrices), so that their
results are known to the bit although no bound for others is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from hilo.ir import dtypes, quantized
from hilo.ir.dtypes import DType, c64, c128, f32, f64
from hilo.ir.module import region
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import Results, TensorType
from hilo.testing.draw import COMMON, constant, stablehlo

if TYPE_CHECKING:
    from hilo.testing.generate import Scope


def call(scope: Scope) -> Op | None:
    """A call of a new function, or a composite that it decomposes."""
    if scope.depth > 2:
        return None
    r = scope.r
    operands = [scope.pick() for _ in range(r.randint(1, 3))]
    types = [o.tensor for o in operands]
    results = [r.choice(types) for _ in range(r.randint(1, 2))]
    return scope.function(scope.body(types, results, exact=True))(*operands)


def asynchronous(scope: Scope) -> Op:
    """A slice that is started, and waited for."""
    x = scope.pick()
    low = tuple(scope.r.randint(0, n) for n in x.shape)
    ones = (1,) * len(low)
    body = region([x.tensor], lambda v: stablehlo("slice", v, start_indices=low, limit_indices=x.shape, strides=ones))
    return stablehlo("async_done", stablehlo("async_start", x, body=body))


def bits(scope: Scope) -> Op:
    """Integers as other integers or floats of their bits, perhaps more or fewer of them."""
    x = scope.pick(kinds="iu", where=lambda v: v.dtype.bits >= 8)
    fitting = [d for d in dtypes.ALL if d.kind in "iuf" and d.bits >= 8]
    d = scope.r.choice(fitting)
    shape = list(x.shape)
    if d.bits < x.dtype.bits:
        shape.append(x.dtype.bits // d.bits)
    elif d.bits > x.dtype.bits and shape.pop() != d.bits // x.dtype.bits:
        raise ValueError("the last axis does not fit")
    return stablehlo("bitcast_convert", x, type=TensorType(d, shape))


def from_tuple(scope: Scope) -> Op:
    """A value that was in a tuple, perhaps one in another."""
    values = [scope.pick() for _ in range(scope.r.randint(1, 3))]
    k = scope.r.randrange(len(values))
    whole = stablehlo("tuple", *values)
    if scope.r.random() < 0.3:
        whole = stablehlo("get_tuple_element", stablehlo("tuple", whole, values[0]), index=0)
    return stablehlo("get_tuple_element", whole, index=k)


def after(scope: Scope) -> Op:
    """A value that waits for a token."""
    return lookup("mhlo.add_dependency")(scope.pick(), stablehlo("after_all", stablehlo("create_token")))


def _quantized_type(scope: Scope, shape: tuple[int, ...]) -> DType:
    """Scales are powers of two, so that quantized numbers of few bits are exact."""
    r = scope.r
    storage = r.choice((dtypes.i8, dtypes.u8, dtypes.i4, dtypes.i16))
    low, high = quantized.storage_range(storage)
    along = [d for d, n in enumerate(shape) if n > 0]
    axis = r.choice(along) if along and r.random() < 0.4 else None
    count = 1 if axis is None else shape[axis]
    scales = [2.0 ** r.randint(-5, 3) for _ in range(count)]
    points = [r.randint(max(low, -8), min(high, 7)) for _ in range(count)]
    return quantized.quantized(storage, f32, scales, points, axes=() if axis is None else (axis,))


def quantization(scope: Scope) -> Op:
    """Floats quantized, and made floats again, with an op on quantized numbers in between."""
    r = scope.r
    x = scope.pick(where=lambda v: v.dtype is f32)
    t = x.tensor.with_dtype(_quantized_type(scope, x.shape))
    q = stablehlo("uniform_quantize", x, type=t)
    way = r.randrange(5)
    if way == 1 and t.dtype.is_per_tensor:  # type: ignore[attr-defined]
        other = stablehlo("uniform_quantize", scope.value(x.tensor), type=t)
        q = stablehlo(r.choice(("add", "subtract", "maximum", "minimum", "multiply")), q, other, type=t)
    elif way == 2:
        q = stablehlo("reverse", q, dimensions=tuple(range(x.tensor.rank)), type=t)
    elif way == 3:
        t = x.tensor.with_dtype(_quantized_type(scope, x.shape))
        q = stablehlo("uniform_quantize", q, type=t)
    elif way == 4 and t.dtype.is_per_tensor:  # type: ignore[attr-defined]
        q = stablehlo("transpose", q, permutation=tuple(reversed(range(x.tensor.rank))),
                      type=t.with_shape(x.shape[::-1]))  # fmt: skip
    return stablehlo("uniform_dequantize", q, type=TensorType(f32, q.shape))


def random_bits(scope: Scope) -> Op:
    """The generators that the specification fixes to the bit."""
    r = scope.r
    name, words = r.choice((("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3)))
    state = TensorType(dtypes.u64, (words,))
    shape = r.choice([(), (1,), (3,), (7,), (0,), (2, 3), (5, 17)])
    out = TensorType(r.choice([d for d in COMMON if d.is_int]), shape)
    return stablehlo("rng_bit_generator", scope.value(state), rng_algorithm=name, type=Results([state, out]))


def einsum(scope: Scope) -> Op:
    """Sums of integers."""
    x = scope.pick(kinds="iu", where=lambda v: v.tensor.rank == 2)
    if scope.r.random() < 0.5:
        config = scope.r.choice(("ab->ba", "ab->a", "ab->", "ab->b"))
        return stablehlo("unary_einsum", x, einsum_config=config)
    y = scope.value(TensorType(x.dtype, (x.shape[1], scope.r.randint(0, 4))))
    return stablehlo("einsum", x, y, einsum_config="ab,bc->ca")


def top_k(scope: Scope) -> Op:
    x = scope.pick(kinds="iub", where=lambda v: v.tensor.rank > 0)
    return lookup("chlo.top_k")(x, k=scope.r.randint(0, x.shape[-1]))


# ---- algorithms, on operands that make every step exact
def _wholes(scope: Scope, t: TensorType) -> Op:
    """Small whole numbers."""
    numbers = np.array([scope.r.randint(-4, 4) for _ in range(t.size)], np.float64).reshape(t.shape)
    return constant(numbers, t)


def _triangle(scope: Scope, d: DType, n: int, lower: bool) -> np.ndarray:
    """Powers of two on the diagonal, whole numbers on one side of it."""
    r = scope.r
    a = np.diag([2.0 ** r.randint(0, 2) for _ in range(n)])
    for i in range(n):
        for j in range(i):
            a[(i, j) if lower else (j, i)] = a[i, i] * r.randint(-2, 2) if lower else a[j, j] * r.randint(-2, 2)
    return a


def linear_algebra(scope: Scope) -> Op:
    """Cholesky factors and triangular solves in whole numbers."""
    r = scope.r
    d, n, lower = r.choice((f32, f64, c64, c128)), r.randint(0, 5), r.random() < 0.5
    a = _triangle(scope, d, n, lower)
    if r.random() < 0.5:
        product = a @ a.T if lower else a.T @ a
        return stablehlo("cholesky", constant(product, TensorType(d, (n, n))), lower=lower)
    left = r.random() < 0.5
    shape = (n, r.randint(0, 4)) if left else (r.randint(0, 4), n)
    how = r.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    return stablehlo("triangular_solve", constant(a, TensorType(d, (n, n))), _wholes(scope, TensorType(d, shape)),
                     left_side=left, lower=lower, unit_diagonal=r.random() < 0.3, transpose_a=how)  # fmt: skip


def transform(scope: Scope) -> Op:
    """Fourier transforms of up to four whole numbers: the factors are 1 and i."""
    r = scope.r
    n, batch = r.choice((1, 2, 4)), r.choice(((), (2,), (0,), (3, 1)))
    kind = r.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    d, length = (f32 if kind == "RFFT" else c64), (n // 2 + 1 if kind == "IRFFT" else n)
    return stablehlo("fft", _wholes(scope, TensorType(d, (*batch, length))), fft_type=kind, fft_length=(n,))


def batch_norm(scope: Scope) -> Op:
    """Inference by powers of two."""
    t, each = TensorType(f32, (2, 3, 2)), TensorType(f32, (3,))
    scale, offset, mean = (_wholes(scope, each) for _ in range(3))
    variance = constant(np.array([4.0 ** scope.r.randint(-1, 2) for _ in range(3)]), each)
    return stablehlo("batch_norm_inference", _wholes(scope, t), scale, offset, mean, variance, epsilon=0.0,
                     feature_index=1)  # fmt: skip


WAYS: Final[tuple[Callable[[Scope], Op | None], ...]] = (
    call, asynchronous, bits, from_tuple, after, quantization, random_bits, einsum, top_k, linear_algebra,
    transform, batch_norm,
)  # fmt: skip
