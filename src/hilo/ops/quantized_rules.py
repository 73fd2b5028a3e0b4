"""What ops mean on quantized tensors, and the specification's constraints on their types. Imports ir, ops.quantized.

Most ops dequantize their operands, compute in floats, and quantize the result (`FloatRule`); ops that only move
elements, or run regions on them, work on the stored integers (`StorageRule`). Both are the reference;
passes/quantized.py makes plain ops of them for native code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.errors import require
from hilo.ir.quantized import RULES, QuantizedType, check_fits, expressed, quantization, stored
from hilo.ir.types import Results, TensorType, Type, compatible, result_types
from hilo.ops.checks import tensor
from hilo.ops.numeric import wrap_int
from hilo.ops.quantized import dequantize, parameters, quantize

Check = Callable[[tuple[Type, ...], Type, dict[str, Any]], None]  # (operand types, result type, attributes)


# ---- constraints
def per_tensor(types: tuple[Type, ...], label: str = "I") -> None:
    """Require one scale for each whole tensor."""
    for i, t in enumerate(types):
        q = quantization(t)
        require(q is None or q.is_per_tensor, f"{label}{i + 1}" if label == "I" else label,
                "operand {i}, {t}, must be quantized per tensor", i=i, t=t)  # fmt: skip


def _quantized(*types: Type, rule: str) -> list[QuantizedType]:
    """Require that all of these are quantized."""
    found = [quantization(t) for t in types]
    require(None not in found, rule, "either all of {types} are quantized, or none", types=types)
    return [q for q in found if q is not None]


def _same_baseline(*types: Type, rule: str) -> None:
    """Require quantized types that differ in nothing but scales and zero points."""
    qs = _quantized(*types, rule=rule)
    require(all(q.baseline() == qs[0].baseline() for q in qs), rule,
            "{types} must have one storage type with one range, and one expressed type", types=types)  # fmt: skip


def _elementwise(rule: str = "C1", first: int = 0) -> Check:
    def check(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
        per_tensor((*types, out))
        _same_baseline(*types[first:], out, rule=rule)

    return check


def _add_types(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    if len(types) != 2:
        return  # infer says so
    qs = _quantized(*types, out, rule="C2")
    require(len({q.storage for q in qs}) == 1, "C3", "{t} and {o} have several storage types", t=types, o=out)
    require(len({q.expressed for q in qs}) == 1, "C4", "{t} and {o} have several expressed types", t=types, o=out)
    x, y, r = qs
    require((not x.is_per_tensor or not y.is_per_tensor) == (not r.is_per_tensor), "C5",
            "the result {o} must be quantized per axis if one of {t} is", t=types, o=out)  # fmt: skip
    for q, rule in ((x, "C6"), (y, "C7")):
        require(q.is_per_tensor or q.axes == r.axes, rule, "{q} and the result {o} are quantized along other axes",
                q=q, o=out)  # fmt: skip


def _compare(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    per_tensor(types)
    _same_baseline(*types, rule="C1")
    kind = attrs.get("compare_type", "NOTYPE")
    ok = kind in ("NOTYPE", "FLOAT", "TOTALORDER")
    require(ok, "C3", "quantized numbers are compared as FLOAT or TOTALORDER, not {k}", k=kind)


def _floats(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    """Ops with several results or operands of other kinds: per tensor, all floats quantized or none."""
    per_tensor(types)
    per_tensor(result_types(out), "C1")


def _contraction(label: dict[str, str], axes: Callable[..., None]) -> Check:
    """dot_general and convolution, whose constraints have other numbers."""

    def check(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
        if len(types) != 2:
            return  # infer says so
        lhs, rhs = types
        x, y, r = map(quantization, (lhs, rhs, out))
        require(x is None or x.is_per_tensor, "I1", "lhs {t} must be quantized per tensor", t=lhs)
        require((x is None) == (r is None) and y is not None, label["all"],
                "rhs must be quantized, and lhs and result both or neither, not {l}, {r} -> {o}",
                l=lhs, r=rhs, o=out)  # fmt: skip
        assert y is not None
        axes(lhs, rhs, out, attrs)
        if x is not None and r is not None:
            require(x.storage is y.storage, label["storage"], "{l} and {r} have several storage types", l=lhs, r=rhs)
            require(x.expressed is y.expressed is r.expressed, label["expressed"],
                    "{l}, {r} and {o} have several expressed types", l=lhs, r=rhs, o=out)  # fmt: skip
            require(not y.is_per_tensor or r.is_per_tensor, label["tensor"],
                    "the result {o} must be quantized per tensor, as rhs {r} is", r=rhs, o=out)  # fmt: skip
        else:
            ok = tensor(lhs).dtype is y.expressed is tensor(out).dtype
            require(ok, label["hybrid"], "{l} and {o} must have the expressed type of {r}", l=lhs, o=out, r=rhs)

    return check


def _dot_axes(lhs: Type, rhs: Type, out: Type, attrs: dict[str, Any]) -> None:
    y = quantization(rhs)
    assert y is not None
    require(not any(y.zero_points), "C15", "zero points of rhs must be 0, not those of {y}", y=y)
    bad = y.axis is not None and y.axis in attrs["rhs_contracting_dimensions"]
    require(not bad, "C16", "the quantization dimension {a} of rhs must not be contracted", a=y.axis)


def _convolution_axes(lhs: Type, rhs: Type, out: Type, attrs: dict[str, Any]) -> None:
    for t, rule, name in ((rhs, "C29", "kernel_output_feature_dimension"), (out, "C30", "output_feature_dimension")):
        q = quantization(t)
        require(q is None or q.axis is None or q.axis == attrs.get(name, q.axis), rule,
                "the quantization dimension of {t} must be {n} {d}", t=t, n=name, d=attrs.get(name))  # fmt: skip


def _uniform_shape(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    """reshape and its kin: what lies before and behind the axis, and its size, stay."""
    x, o = tensor(types[0]), tensor(out)
    q, r = quantization(x), quantization(o)
    if q is None or r is None or q.is_per_tensor or r.is_per_tensor:
        require(q is r, "C1", "{x} and {o} must have one element type", x=x, o=o)
        return
    if x.is_static and o.is_static and q.is_per_axis and r.is_per_axis:
        a, b = q.axes[0], r.axes[0]
        before = [int(np.prod(t.shape[:d])) for t, d in ((x, a), (o, b))]
        require(x.shape[a] == o.shape[b], "C3", "the quantization dimension has another size in {x} than in {o}",
                x=x, o=o)  # fmt: skip
        require(before[0] == before[1], "C3", "what precedes the quantization dimension differs: {x} and {o}",
                x=x, o=o)  # fmt: skip
    ok = q.is_per_axis and r.is_per_axis and q.moved(r.axes[0]) is r
    require(ok, "C1", "{x} and {o} may differ in the quantization dimension only", x=x, o=o)


def _transposed(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    q, r = quantization(types[0]), quantization(out)
    if q is None or r is None or q.is_per_tensor or r.is_per_tensor:
        require(q is r, "C1", "{x} and {o} must have one element type", x=types[0], o=out)
        return
    require(q.is_per_axis == r.is_per_axis, "C1", "{x} and {o} are quantized in different ways", x=types[0], o=out)
    require(attrs["permutation"][r.axes[0]] == q.axes[0], "C4",
            "the quantization dimension {a} becomes {b}, which does not follow the permutation {p}",
            a=q.axes[0], b=r.axes[0], p=attrs["permutation"])  # fmt: skip
    ok = q.is_per_axis and q.moved(r.axes[0]) is r
    require(ok, "C1", "{x} and {o} may differ in the quantization dimension only", x=types[0], o=out)


def _broadcast(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    x, o = tensor(types[0]), tensor(out)
    q, r = quantization(x), quantization(o)
    if q is None or r is None or q.is_per_tensor or r.is_per_tensor:
        require(q is r, "C1", "{x} and {o} must have one element type", x=x, o=o)
        return
    ok = q.is_per_axis and r.is_per_axis and q.baseline()[:4] == r.baseline()[:4]
    require(ok, "C1", "{x} and {o} differ in more than scales and their dimension", x=x, o=o)
    d = attrs["broadcast_dimensions"][q.axes[0]]
    require(r.axes[0] == d, "C6", "the quantization dimension {b} of the result is not broadcast_dimensions[{a}] = {d}",
            b=r.axes[0], a=q.axes[0], d=d)  # fmt: skip
    n = len(r.scales) if x.shape[q.axes[0]] == 1 else 1
    same = q.scales * n == r.scales and q.zero_points * n == r.zero_points
    require(same, "C6", "scales and zero points of {o} are not those of {x}", x=x, o=o)


def _nothing(types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
    """Control flow and the like: any quantized type; their own rules compare types."""


# ---- rules
def _default(result: Type, types: tuple[Type, ...]) -> Type:
    """The result type where none is declared: quantized like the first operand that is, if floats come out."""
    q = next(q for q in map(quantization, types) if q is not None)
    if isinstance(result, TensorType) and result.dtype is q.expressed:
        return TensorType(q, result.shape)
    return result


class FloatRule:
    """Dequantize, compute in floats, quantize."""

    by_storage = False

    def __init__(self, check: Check) -> None:
        self.check = check

    def infer(self, kind: Any, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        declared = attrs.get("type")
        plain = {k: v for k, v in attrs.items() if k != "type"}
        if kind.typed:
            plain["type"] = expressed(attrs["type"])
        if declared is not None:
            self._check(types, declared, attrs)
        result = kind.infer(*map(expressed, types), **plain)
        out = _default(result, types) if declared is None else declared
        if declared is None:
            self._check(types, out, attrs)
        got, want = result_types(result), result_types(out)
        ok = len(got) == len(want) and all(compatible(a, expressed(b)) for a, b in zip(got, want, strict=True))
        require(ok, "C1", "the result is {a} in floats, which {b} does not stand for", a=result, b=out)
        return out

    def _check(self, types: tuple[Type, ...], out: Type, attrs: dict[str, Any]) -> None:
        for t in (*types, *result_types(out)):
            if isinstance(t, TensorType):
                check_fits(t)
        self.check(types, out, attrs)

    def evaluate(self, o: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        floats = [dequantize(a, x.type) if quantization(x.type) else a for a, x in zip(arrays, o.operands, strict=True)]
        plain = {k: v for k, v in attrs.items() if k != "type"}
        if o.kind.typed:
            plain["type"] = expressed(o.type)
        value = o.kind.evaluate(*floats, **plain)
        results = result_types(o.type)
        values = list(value) if isinstance(o.type, Results) else [np.asarray(value)]
        done = [quantize(v, tensor(t)) if quantization(t) else v for v, t in zip(values, results, strict=True)]
        return tuple(done) if isinstance(o.type, Results) else done[0]


class StorageRule:
    """Work on the stored integers: nothing but places changes, or what regions do to elements.

    `axes` checks types quantized along an axis, where an op takes them.
    """

    by_storage = True

    def __init__(self, axes: Check | None = None) -> None:
        self.axes = axes

    def infer(self, kind: Any, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        declared = attrs.get("type")
        plain = {k: v for k, v in attrs.items() if k != "type" or kind.typed}
        if self.axes is None:
            per_tensor(types)
        if self.axes is None or self.axes is _nothing:
            return kind.infer(*types, **plain)
        if kind.typed:
            plain["type"] = expressed(attrs["type"])
        result = tensor(kind.infer(*map(expressed, types), **plain))
        if declared is None:  # a transposition
            q = quantization(types[0])
            assert q is not None
            q = q if q.axis is None else q.moved(plain["permutation"].index(q.axis))
            declared = TensorType(q, result.shape)
        require(compatible(result, expressed(declared)), "C3", "the result is of shape {a}, not {b}",
                a=result.shape, b=declared)  # fmt: skip
        check_fits(tensor(declared))
        self.axes(types, declared, plain)
        return declared

    def evaluate(self, o: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        plain = attrs if o.kind.typed else {k: v for k, v in attrs.items() if k != "type"}
        return o.kind.evaluate(*arrays, **plain)


class _Zeros(StorageRule):
    """Ops that give zeros beside what they move: stored integers are moved as distances from the zero point."""

    def evaluate(self, o: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        moved = [_shifted(a, x.type, -1) for a, x in zip(arrays, o.operands, strict=True)]
        value = super().evaluate(o, moved, attrs)
        if not isinstance(o.type, Results):
            return _shifted(value, o.type, 1)
        return tuple(_shifted(v, t, 1) for v, t in zip(value, o.type.types, strict=True))


def _shifted(a: np.ndarray, t: Type, sign: int) -> np.ndarray:
    """Stored integers plus or minus the zero points of their type, which wrap around."""
    q = quantization(t)
    if q is None:
        return a
    return wrap_int(a.astype(np.int64) + sign * parameters(tensor(t))[1].astype(np.int64), q.storage)


class _Bits(StorageRule):
    """bitcast_convert: the storage types' bits."""

    def infer(self, kind: Any, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        kind.infer(*map(stored, types), type=stored(attrs["type"]))
        check_fits(tensor(attrs["type"]))
        return attrs["type"]


_UNARY = ("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor", "log", "log_plus_one",
          "logistic", "negate", "reduce_precision", "round_nearest_afz", "round_nearest_even", "rsqrt", "sign", "sine",
          "sqrt", "tan", "tanh", "cholesky")  # fmt: skip
_BINARY = ("atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract", "triangular_solve")
_MOVING = ("all_gather", "all_reduce", "all_to_all", "async_start", "collective_broadcast", "collective_permute",
           "collective_reduce", "concatenate", "dynamic_gather", "dynamic_pad", "dynamic_slice", "dynamic_update_slice",
           "gather", "map", "optimization_barrier", "pad", "real_dynamic_slice", "reduce", "reduce_scatter",
           "reduce_window", "reverse", "scatter", "select_and_scatter", "slice", "sort",
           "torch_index_select")  # fmt: skip
_ANY = ("stablehlo.async_done", "stablehlo.case", "stablehlo.composite", "stablehlo.custom_call",
        "stablehlo.get_dimension_size", "stablehlo.get_tuple_element", "stablehlo.if", "stablehlo.infeed",
        "stablehlo.outfeed", "stablehlo.recv", "stablehlo.send", "stablehlo.tuple", "stablehlo.while", "func.call",
        "hilo.get", "hilo.parameter")  # fmt: skip
GIVE_ZEROS: Final = ("stablehlo.collective_broadcast", "stablehlo.collective_permute")
_DOT: Final = {"all": "C14", "storage": "C17", "expressed": "C18", "tensor": "C19", "hybrid": "C20"}
_CONVOLUTION: Final = {"all": "C28", "storage": "C31", "expressed": "C32", "tensor": "C33", "hybrid": "C34"}
_DYNAMIC_CONV: Final = {"all": "C27", "storage": "C30", "expressed": "C31", "tensor": "C32", "hybrid": "C33"}


def _fill() -> None:
    floats: dict[str, Check] = {
        **dict.fromkeys(_UNARY, _elementwise()),
        **dict.fromkeys(_BINARY, _elementwise()),
        **dict.fromkeys(("batch_norm_grad", "batch_norm_inference", "batch_norm_training", "is_finite"), _floats),
        "add": _add_types,
        "clamp": _elementwise("C3"),
        "compare": _compare,
        "convolution": _contraction(_CONVOLUTION, _convolution_axes),
        "dot": _contraction(_DOT, lambda *_: None),
        "dot_general": _contraction(_DOT, _dot_axes),
        "dynamic_conv": _contraction(_DYNAMIC_CONV, _convolution_axes),
        "dynamic_iota": _floats,
        "iota": _floats,
        "select": _elementwise("C2", 1),
    }
    RULES.update({f"stablehlo.{name}": FloatRule(check) for name, check in floats.items()})
    RULES.update({f"chlo.broadcast_{name}": FloatRule(_elementwise()) for name in ("add", *_BINARY[:-1])})
    RULES.update({f"stablehlo.{name}": StorageRule() for name in _MOVING})
    RULES.update({name: StorageRule(_nothing) for name in _ANY})
    for name in ("reshape", "dynamic_reshape"):
        RULES[f"stablehlo.{name}"] = StorageRule(_uniform_shape)
    for name in ("broadcast_in_dim", "dynamic_broadcast_in_dim"):
        RULES[f"stablehlo.{name}"] = StorageRule(_broadcast)
    RULES.update(dict.fromkeys(GIVE_ZEROS, _Zeros()))
    RULES["stablehlo.transpose"] = StorageRule(_transposed)
    RULES["stablehlo.bitcast_convert"] = _Bits(_nothing)


_fill()
