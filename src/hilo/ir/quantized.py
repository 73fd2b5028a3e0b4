"""Quantized element types, `!quant.uniform<i8:f32, 0.1:-30>`, and the table of ops that take them. Imports ir.types.

A quantized type is a `DType` of kind "q": integers of a storage type, in memory and in numpy too, that stand for
numbers of an expressed float type, `(i - zero_point) * scale`. There is one scale and zero point for the whole tensor,
one for each index along an axis, or one for each block (sub-channel). What ops mean on such tensors is in
ops/quantized_rules.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite, prod
from typing import Any, Final, Protocol, cast

import numpy as np

from hilo.errors import Error, Unsupported, require
from hilo.ir.dtypes import DType, from_mlir
from hilo.ir.types import QUANTIZED, Results, TensorType, Type
from hilo.ir.types import any_quantized as any_quantized


class QuantizedType(DType):
    """A quantized element type; equal ones are one object. Made by `quantized` and `parse`.

    `scales` and `zero_points` are flat, in the row-major order of `shape`: () for a whole tensor, (n,) along the axis
    `axes[0]`, or (sub-channel) one number for each axis of the tensor, of which `axes` are cut into `blocks`.
    """

    __slots__ = ("axes", "blocks", "expressed", "high", "low", "scales", "shape", "storage", "zero_points")
    storage: DType
    expressed: DType
    low: int
    high: int
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axes: tuple[int, ...]
    blocks: tuple[int, ...]
    shape: tuple[int, ...]

    def __reduce__(self) -> Any:
        return quantized, _key(self)

    @property
    def is_per_tensor(self) -> bool:
        return not self.axes

    @property
    def is_per_axis(self) -> bool:
        return bool(self.axes) and not self.blocks

    @property
    def axis(self) -> int | None:
        """The axis along which scales differ, if there is just one of them and no blocks."""
        return self.axes[0] if self.is_per_axis else None

    def baseline(self) -> tuple[object, ...]:
        """All but scales and zero points: what the specification calls the baseline type."""
        return self.storage, self.low, self.high, self.expressed, self.axes, self.blocks

    def moved(self, axis: int) -> QuantizedType:
        """The same numbers along another axis."""
        return quantized(self.storage, self.expressed, self.scales, self.zero_points, self.low, self.high, (axis,))


def _key(t: QuantizedType) -> tuple[Any, ...]:
    return t.storage, t.expressed, t.scales, t.zero_points, t.low, t.high, t.axes, t.blocks, t.shape


POOL: Final[dict[tuple[Any, ...], QuantizedType]] = cast("Any", QUANTIZED)


def quantized(storage: DType, expressed: DType, scales: Iterable[float], zero_points: Iterable[int] = (),
              low: int | None = None, high: int | None = None, axes: Iterable[int] = (), blocks: Iterable[int] = (),
              shape: Iterable[int] | None = None) -> QuantizedType:  # fmt: skip
    """The type with these parts. `zero_points`: empty for zeros; `low`, `high`: the storage type's ends if not given.

    Raises `VerifyError` for what breaks the specification's constraints on quantized element types.
    """
    scales, axes, blocks = tuple(map(float, scales)), tuple(axes), tuple(blocks)
    zero_points = tuple(zero_points) or (0,) * len(scales)
    shape = tuple(shape) if shape is not None else (len(scales),) if axes else ()
    require(storage.is_int, "", "the storage type of a quantized type must be an integer type, not {t}", t=storage)
    require(expressed.is_float, "C4", "the expressed type of a quantized type must be a float, not {t}", t=expressed)
    least, most = storage_range(storage)
    low, high = least if low is None else low, most if high is None else high
    key = (storage, expressed, scales, zero_points, low, high, axes, blocks, shape)
    found = POOL.get(key)
    if found is not None:
        return found
    require(least <= low < high <= most, "C3", "storage bounds {a}:{b} do not fit {t}", a=low, b=high, t=storage)
    require(all(s > 0 for s in scales), "C5", "scales must be positive, not {s}", s=min(scales, default=0))
    require(all(map(isfinite, scales)), "C6", "scales must be finite")
    with np.errstate(all="ignore"):
        held = np.array(scales).astype(expressed.np).astype(np.float64)
    import ml_dtypes

    smallest = ml_dtypes.finfo(expressed.np).smallest_subnormal
    ok = bool((np.isfinite(held) & (held > 0)).all()) and min(scales, default=1) >= float(smallest)
    require(ok, "C6", "scale out of the range of {t}", t=expressed)
    require(all(least <= z <= most for z in zero_points), "C8", "zero points must be numbers of {t}", t=storage)
    require(all(low <= z <= high for z in zero_points), "C7", "zero points must lie in {a}..{b}", a=low, b=high)
    require(len(scales) == len(zero_points), "C9", "{m} scales, but {n} zero points",
            m=len(scales), n=len(zero_points))  # fmt: skip
    require(bool(axes) or len(scales) == 1, "C10", "{n} scales without a quantization dimension", n=len(scales))
    require(all(a >= 0 for a in axes), "C11", "illegal quantization dimension {a}", a=min(axes, default=0))
    require(prod(shape) == len(scales) > 0 and all(n > 0 for n in blocks), "", "scales and blocks do not fit")
    t = object.__new__(QuantizedType)
    text = _print(storage, expressed, scales, zero_points, (low, high) if (low, high) != (least, most) else None,
                  axes, blocks, shape)  # fmt: skip
    DType.__init__(t, text, text, "q", storage.bits, storage.np)
    t.storage, t.expressed, t.low, t.high = storage, expressed, low, high
    t.scales, t.zero_points, t.axes, t.blocks, t.shape = scales, zero_points, axes, blocks, shape
    return POOL.setdefault(key, t)


def storage_range(t: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)


# ---- text
_HEAD: Final = r"!quant\.uniform<\s*(ui?|i)(\d+)\s*(?:<\s*(-?\d+)\s*:\s*(-?\d+)\s*>)?\s*:\s*(\w+)\s*"
_AXIS: Final = r":\s*(-?\d+)\s*"
_BLOCKS: Final = r":\s*\{([^{}]*)\}\s*"
_NUMBER: Final = r"\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)\s*(?::\s*(-?\d+))?\s*"


def parse(text: str) -> QuantizedType:
    """The type spelled `text` in MLIR. Raises `Error` if it is not spelled well, or breaks a constraint."""
    m = re.compile(_HEAD).match(text)
    if m is None or not text.rstrip().endswith(">"):
        if text.startswith("!quant.uniform"):
            raise Error(f"{text[:80]} is no quantized type, which begins like !quant.uniform<i8:f32 or <u8<0:9>:f32")
        raise Unsupported(f"the quantized element type {text[:80]} is not supported")
    storage = from_mlir(("ui" if m[1][0] == "u" else "i") + m[2])
    expressed = from_mlir(m[5])
    if storage is None or expressed is None:
        raise Unsupported(f"the quantized element type {text[:80]} has no storage or expressed type known here")
    rest = text[m.end() : text.rstrip().rindex(">")]
    axes: list[int] = []
    blocks: list[int] = []
    if a := re.compile(_AXIS).match(rest):
        axes, rest = [int(a[1])], rest[a.end() :]
    elif a := re.compile(_BLOCKS).match(rest):
        pairs = [p.split(":") for p in a[1].split(",") if p.strip()]
        if not pairs or any(len(p) != 2 or not all(x.strip().isdigit() for x in p) for p in pairs):
            raise Error(f"{a[1]!r} are no dimensions and block sizes")
        axes, blocks = [int(p[0]) for p in pairs], [int(p[1]) for p in pairs]
        rest = rest[a.end() :]
    if rest[:1] != ",":
        raise Error(f"a quantized type has its scales after a comma: {text[:80]}")
    numbers: list[tuple[float, int]] = []
    shape, end = _numbers(rest[1:], numbers, 0)
    if rest[1:][end:].strip() or (len(shape) > 0) != bool(axes) or (not blocks and len(shape) > 1):
        raise Error(f"the scales of a quantized type are one number, or a list with a dimension: {text[:80]}")
    span = (int(m[3]), int(m[4])) if m[3] else (None, None)
    return quantized(storage, expressed, [n for n, _ in numbers], [z for _, z in numbers], *span, axes, blocks, shape)


def _numbers(text: str, out: list[tuple[float, int]], at: int) -> tuple[tuple[int, ...], int]:
    """Read `scale:zero_point`, or a list of such in braces, at a place; gives the list's shape and the next place."""
    depth, shapes, counts = 0, [], [0]
    while True:  # nesting without recursion: braces are levels, counts[depth] what was seen on each
        while at < len(text) and text[at].isspace():
            at += 1
        if text[at : at + 1] == "{":
            depth, at = depth + 1, at + 1
            counts.append(0)
            if depth > 64:
                raise Error("scales nest too deeply")
            continue
        m = re.compile(_NUMBER).match(text, at)
        if m is None:
            raise Error("a scale is expected in a quantized type")
        try:
            out.append((float(m[1]), int(m[2] or 0)))
        except ValueError:
            raise Error(f"{m[1]!r} is no scale") from None
        at = m.end()
        counts[depth] += 1
        while depth and text[at : at + 1] == "}":
            at += 1
            while at < len(text) and text[at].isspace():
                at += 1
            shapes.append((depth, counts.pop()))
            depth -= 1
            counts[depth] += 1
        if not depth:
            break
        if text[at : at + 1] != ",":
            raise Error("a comma or a brace is expected in a quantized type")
        at += 1
    sizes: dict[int, int] = {}
    for level, n in shapes:
        if sizes.setdefault(level, n) != n:
            raise Error("the scales of a quantized type are no rectangular array")
    return tuple(sizes[d] for d in sorted(sizes)), at


def _print(storage: DType, expressed: DType, scales: tuple[float, ...], zeros: tuple[int, ...],
           span: tuple[int, int] | None, axes: tuple[int, ...], blocks: tuple[int, ...],
           shape: tuple[int, ...]) -> str:  # fmt: skip
    items = [_scale(s) + (f":{z}" if z else "") for s, z in zip(scales, zeros, strict=True)]
    for n in reversed(shape):
        items = [f"{{{', '.join(items[i : i + n])}}}" for i in range(0, len(items), n)]
    where = f":{{{', '.join(f'{a}:{n}' for a, n in zip(axes, blocks, strict=True))}}}" if blocks else \
        "".join(f":{a}" for a in axes)  # fmt: skip
    ends = f"<{span[0]}:{span[1]}>" if span else ""
    return f"!quant.uniform<{storage.name}{ends}:{expressed.name}{where}, {items[0]}>"


def _scale(value: float) -> str:
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


# ---- types of values
def quantization(t: Type) -> QuantizedType | None:
    """The quantized element type of a tensor type, or None."""
    return t.dtype if isinstance(t, TensorType) and isinstance(t.dtype, QuantizedType) else None


def check_fits(t: TensorType) -> None:
    """Require that the scales of a quantized tensor type fit its shape."""
    q = quantization(t)
    if q is None or q.is_per_tensor:
        return
    require(all(a < t.rank for a in q.axes), "C12", "quantization dimension {a} is not an axis of a tensor of rank {n}",
            a=max(q.axes), n=t.rank)  # fmt: skip
    if q.is_per_axis:
        size = t.shape[q.axes[0]]
        require(not isinstance(size, int) or size == q.shape[0], "C13", "{n} scales along an axis of size {m}",
                n=q.shape[0], m=size)  # fmt: skip
        return
    blocks = dict(zip(q.axes, q.blocks, strict=True))
    fits = len(q.shape) == t.rank and all(
        not isinstance(size, int) or n * blocks.get(d, size if n == 1 else 0) == size
        for d, (n, size) in enumerate(zip(q.shape, t.shape))
    )
    require(fits, "C13", "scales of shape {s} with blocks {b} do not fit {t}", s=q.shape, b=q.blocks, t=t)


def _mapped(t: Type, f: Any) -> Any:
    if isinstance(t, Results):
        return Results([_mapped(x, f) for x in t.types])
    q = quantization(t)
    return t if q is None else TensorType(f(q), t.shape)  # type: ignore[attr-defined]


def expressed(t: Type) -> Any:
    """The type with floats in the place of quantized numbers."""
    return _mapped(t, lambda q: q.expressed)


def stored(t: Type) -> Any:
    """The type of what lies in memory: the storage type's integers."""
    return _mapped(t, lambda q: q.storage)


# ---- ops
class Rule(Protocol):
    """What an op means on quantized tensors (ops/quantized_rules.py).

    `by_storage`: it moves stored integers (or runs regions on them); else it works on the floats they stand for.
    """

    by_storage: bool

    def infer(self, kind: Any, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        """The result type, verified. `attrs` has the declared type as `type`, if there is one."""
        ...

    def evaluate(self, o: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        """The value of the op on arrays of stored integers."""
        ...


RULES: Final[dict[str, Rule]] = {}  # by full name of the op; ops/quantized_rules.py fills it


def rule_for(kind: Any) -> Rule:
    """Raises `VerifyError` for an op that takes no quantized tensors."""
    from hilo.ir.registry import load_quantized_rules

    load_quantized_rules()
    rule = RULES.get(kind.full_name)
    require(rule is not None, "I1", "takes no quantized tensors")
    assert rule is not None
    return rule
