"""Random bits from counter-based generators: Threefry-2x32 (20 rounds) and Philox-4x32 (10 rounds).

The algorithms: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. How counters follow
from the state, and where each number goes in the result, is what XLA does, so that JAX programs give the same bits.
Imports ir.
"""

from __future__ import annotations

from math import prod
from typing import Final

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import DType, f16, f32, i32, u8, u16, u32, u64
from hilo.ir.registry import op
from hilo.ir.types import Dim, Results, TensorType, Type, compatible
from hilo.ops.checks import tensor
from hilo.ops.sharding import unsharded

U32 = np.uint32
U64 = np.uint64
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = U32(0x1BD11BDA)
_PHILOX_KEYS: Final = (U32(0x9E3779B9), U32(0xBB67AE85))
_PHILOX_FACTORS: Final = (U64(0xD2511F53), U64(0xCD9E8D57))


@op("rng_bit_generator", typed=True)
class rng_bit_generator:
    """Uniformly random bits: (new state, bits), a pure function of the state.

    Operand: the state, u64[2] (key, counter), for PHILOX also u64[3] (key, counter low, counter high). `rng_algorithm`:
    THREE_FRY, PHILOX, or DEFAULT, which is PHILOX. `type`: (state type, type of the bits: any integer or float type).
    Bits and state equal XLA's. Spec: rng_bit_generator.
    """

    @staticmethod
    def infer(state: Type, *, rng_algorithm: str, type: Type) -> Type:  # noqa: A002
        s = tensor(state)
        require(s.dtype is u64 and s.rank == 1, "I2", "the state must be u64 of rank 1, not {s}", s=s)
        require(rng_algorithm in ("DEFAULT", "THREE_FRY", "PHILOX"), "I1", "unknown rng_algorithm {a}", a=rng_algorithm)
        ok = isinstance(type, Results) and len(type) == 2 and compatible(type[0], state)
        require(ok, "C1", "the result must be (state, bits) with the state's type {s}, not {t}", s=s, t=type)
        assert isinstance(type, Results)
        sizes = (2,) if rng_algorithm == "THREE_FRY" else (2, 3)
        require(
            isinstance(s.shape[0], Dim) or s.shape[0] in sizes,
            "C2",
            "the state of {a} must have {n} elements, not {m}",
            a=rng_algorithm,
            n=" or ".join(map(str, sizes)),
            m=s.shape[0],
        )
        out = tensor(type[1])
        require(out.dtype.kind in "iuf", "O2", "random bits must be of an integer or float type, not {t}", t=out)
        return type

    @staticmethod
    def evaluate(state: np.ndarray, *, rng_algorithm: str, type: Results) -> tuple[np.ndarray, np.ndarray]:  # noqa: A002
        out = tensor(type[1])  # an artifact may hold an op with another state: it cannot run
        require(state.dtype == u64.np and state.ndim == 1, "I2", "the state must be u64 of rank 1, not {t} of rank {n}",
                t=state.dtype, n=state.ndim)  # fmt: skip
        with np.errstate(over="ignore"):
            new, bits = (threefry if rng_algorithm == "THREE_FRY" else philox)(state, out.shape, out.dtype.bits)
        return new, bits_as(bits, out.dtype)

    sharding = unsharded
    examples = lambda: [
        (
            (TensorType(u64, (2,)),),
            {"rng_algorithm": algorithm, "type": Results([TensorType(u64, (2,)), TensorType(t, shape)])},
        )
        for algorithm in ("THREE_FRY", "PHILOX", "DEFAULT")
        for t, shape in (
            (u32, (3, 5)),
            (u64, (3,)),
            (u8, (2, 4)),
            (u16, ()),
            (i32, (1, 0, 2)),
            (f32, (4,)),
            (f16, (3,)),
        )
    ] + [
        (
            (TensorType(u64, (3,)),),
            {"rng_algorithm": "PHILOX", "type": Results([TensorType(u64, (3,)), TensorType(u32, (6,))])},
        )
    ]


def bits_as(bits: np.ndarray, dtype: DType) -> np.ndarray:
    """Unsigned 32- or 64-bit numbers as `dtype`: the low bits, reinterpreted."""
    if dtype.bits < 8:
        low = np.asarray(bits & U32((1 << dtype.bits) - 1)).astype(np.uint8)
        return low.view(dtype.np) if dtype.is_float else low.astype(dtype.np)
    narrow = np.ascontiguousarray(bits.astype(f"u{dtype.itemsize}"))
    return narrow.view(dtype.np).reshape(bits.shape)


def threefry(state: np.ndarray, shape: tuple[int, ...], width: int) -> tuple[np.ndarray, np.ndarray]:
    """(new state, numbers): of 64 bits if `width` is 64, else of 32 bits."""
    key, counter = state
    if width == 64:
        counters = counter + np.arange(prod(shape), dtype=U64).reshape(shape)
        new = np.array([key, counter + U64(prod(shape))], U64)
        low, high = threefry2x32(key, counters)
        return new, low.astype(U64) | high.astype(U64) << U64(32)
    # Numbers come in pairs; the pair's halves are neighbours along one axis: the first of even size, else the largest.
    full = shape or (1,)
    axis = next((d for d, n in enumerate(full) if n % 2 == 0), max(range(len(full)), key=lambda d: full[d]))
    half = [-(-n // 2) if d == axis else n for d, n in enumerate(full)]
    counters = counter + np.arange(prod(half), dtype=U64).reshape(half)
    pair = np.stack(threefry2x32(key, counters), axis=axis + 1)
    pair = pair.reshape([2 * n if d == axis else n for d, n in enumerate(half)])
    bits = np.take(pair, np.arange(full[axis]), axis=axis)
    return np.array([key, counter + U64(prod(half))], U64), bits.reshape(shape)


def threefry2x32(key: np.uint64, counters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two 32-bit numbers for each 64-bit counter; low halves of key and counter come first."""
    k0, k1 = U32(int(key) & 0xFFFFFFFF), U32(int(key) >> 32)
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x = (counters & U64(0xFFFFFFFF)).astype(U32) + keys[0]
    y = (counters >> U64(32)).astype(U32) + keys[1]
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x = x + y
            y = (y << U32(r) | y >> U32(32 - r)) ^ x
        x = x + keys[(group + 1) % 3]
        y = y + keys[(group + 2) % 3] + U32(group + 1)
    return x, y


def philox(state: np.ndarray, shape: tuple[int, ...], width: int) -> tuple[np.ndarray, np.ndarray]:
    """(new state, numbers): of 64 bits if `width` is 64, else of 32 bits."""
    key = state[0]
    low, high = (
        (state[1], state[2]) if len(state) == 3 else (state[1], key)
    )  # two words: the key is the counter's high part
    size = prod(shape)
    blocks = -(-size * (2 if width == 64 else 1) // 4)
    lows = low + np.arange(blocks, dtype=U64)
    highs = np.where(lows < low, high + U64(1), high)
    words = np.stack(philox4x32(key, lows, highs), axis=-1)
    if width == 64:
        words = words[..., 0::2].astype(U64) | words[..., 1::2].astype(U64) << U64(32)
    end = low + U64(blocks)
    new = [key, end, high + U64(end < low)]
    return np.array(new[: len(state)], U64), words.reshape(-1)[:size].reshape(shape)


def philox4x32(key: np.uint64, lows: np.ndarray, highs: np.ndarray) -> list[np.ndarray]:
    """Four 32-bit numbers for each 128-bit counter."""
    k0, k1 = U32(int(key) & 0xFFFFFFFF), U32(int(key) >> 32)
    mask, half = U64(0xFFFFFFFF), U64(32)
    x = [(v >> s & mask).astype(U32) for v in (lows, highs) for s in (U64(0), half)]
    for _ in range(10):
        p, q = x[0].astype(U64) * _PHILOX_FACTORS[0], x[2].astype(U64) * _PHILOX_FACTORS[1]
        x = [
            (q >> half).astype(U32) ^ x[1] ^ k0,
            (q & mask).astype(U32),
            (p >> half).astype(U32) ^ x[3] ^ k1,
            (p & mask).astype(U32),
        ]
        k0, k1 = k0 + _PHILOX_KEYS[0], k1 + _PHILOX_KEYS[1]
    return x
