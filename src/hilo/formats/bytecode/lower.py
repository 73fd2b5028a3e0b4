"""Ops of the IR as VHLO's, in the version that a target has: names and attributes. Imports its siblings, mlir_text, ir.

`Tables.require` learns what the op needs: an attribute that the target's version of the op does not have must have its
default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode.emit import Tables
from hilo.formats.bytecode.from_text import dense, integers, number_bits, value_of
from hilo.formats.bytecode.opset import ALGORITHM, DEFAULTS, OPERATIONS, SPLATS, Operation, Version
from hilo.formats.bytecode.tables import API_VERSIONS
from hilo.formats.bytecode.values import Enum, Float, Integer, Struct, Text, Value
from hilo.formats.mlir_text import schema
from hilo.ir.dtypes import f32, f64, i1, i32, i64
from hilo.ir.op import Array, Attrs, Op, Opaque
from hilo.ir.types import FutureType, OpaqueType, TensorType, result_types

_NO_TYPE: Final = OpaqueType("none")
_WINDOW_RANK: Final = ("input_spatial_dimensions", "window_dimensions")


def operation_for(op: Op, target: Version, t: Tables) -> Operation:
    """The version of the op that `target` has; the first one, and a need, where it has none."""
    name = op.name if op.kind.dialect in ("stablehlo", "mhlo", "func") else ""
    versions = OPERATIONS.get(name)
    if versions is None:
        raise Unsupported("this op is not part of StableHLO, so that a portable artifact cannot hold it",
                          loc=op.loc, op=op.kind.full_name)  # fmt: skip
    if versions[0].since > target:
        t.require(versions[0].since, "the op")
        return versions[0]
    chosen = next(v for v in reversed(versions) if v.since <= target)
    for later in versions[versions.index(chosen) + 1 :]:
        for attr in later.attrs:
            if attr not in chosen.attrs and not _is_left_out(op, attr):
                t.require(later.since, f"the attribute '{'algorithm' if attr in ALGORITHM else attr}'")
    return chosen


def _is_left_out(op: Op, name: str) -> bool:
    """Whether an attribute that came with a later version says nothing."""
    value = op.attrs.get("algorithm" if name in ALGORITHM else name)
    return not value or value == "DEFAULT"


def constraints(op: Op, operands: int, t: Tables) -> None:
    """What versions changed about ops without changing their attributes."""
    name, attrs = op.name, op.attrs
    if operands != 1 and name in ("all_gather", "all_reduce", "all_to_all"):
        t.require((1, 5, 0), "the form with several operands")
    if operands != 1 and name == "collective_broadcast":
        t.require((1, 20, 0), "the form with several operands")
    if name in _MAY_CHANGE_ELEMENTS and not _keeps_elements(op):
        t.require((0, 17, 0), "a result of another element type than the operand's")
    if name == "composite" and attrs.get("composite_regions"):
        t.require((1, 14, 0), "the form with regions")
    if name == "custom_call":
        if isinstance(attrs.get("backend_config"), Attrs) or attrs.get("api_version") == 4:
            t.require((1, 3, 0), "the typed FFI (a dictionary as backend_config)")
        if any(isinstance(t, FutureType) for t in (*(o.type for o in op.operands), *result_types(op.type))):
            t.require((1, 17, 0), "a future")


_MAY_CHANGE_ELEMENTS: Final = (
    "all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "select_and_scatter",
)  # fmt: skip


def _keeps_elements(op: Op) -> bool:
    results = result_types(op.type)
    pairs = zip(op.operands, results, strict=False)
    return all(
        o.type.dtype is r.dtype for o, r in pairs if isinstance(o.type, TensorType) and isinstance(r, TensorType)
    )


# -- attributes ---------------------------------------------------------------------------------


def attributes(op: Op, operation: Operation) -> list[Value]:
    """The attributes of `operation`, in its order."""
    return [_attribute(op, name) for name in operation.attrs]


def _attribute(op: Op, name: str) -> Value:
    special = _SPECIAL.get(name)
    if special is not None:
        return special(op)
    value = op.attrs.get(name)
    if value is None:
        value = _default(op, name)
    try:
        return _KINDS[schema.HOW.get(name) or ("i64s" if isinstance(value, tuple) else "i64")](value)
    except (KeyError, TypeError, ValueError, AttributeError) as e:
        raise Error(f"attribute '{name}' has no portable encoding", loc=op.loc, op=op.kind.full_name) from e


def _default(op: Op, name: str) -> Any:
    """The value of an attribute that is left out."""
    if name in SPLATS.get(op.name, {}):
        item = SPLATS[op.name][name]
        if name == "precision_config":
            return (item,) * 2
        rank = next((len(op.attrs[k]) for k in _WINDOW_RANK if op.attrs.get(k) is not None), op.operands[0].tensor.rank)
        return ((item,) * 2,) * rank if name == "padding" else (item,) * rank
    if name == "window_dimensions":
        return (1,) * op.operands[0].tensor.rank
    if name in DEFAULTS.get(op.name, {}):
        value = DEFAULTS[op.name][name]
        return Attrs() if value == {} else value
    if name == "padding":  # of dynamic_conv, in its first version
        return ((0, 0),) * len(op.attrs["input_spatial_dimensions"])
    if name == "result_accuracy":
        return "DEFAULT"
    if name in op.kind.attrs or name.endswith(("_dims", "_dimensions")):
        return op.kind.attrs.get(name) or ()
    raise Error(f"attribute '{name}' is missing", loc=op.loc, op=op.kind.full_name)


def _int(v: int, t: Any = i64) -> Integer:
    return Integer(int(v), t)


def _ints(v: tuple[int, ...]) -> Value:
    return integers(v, (len(v),))


def _bools(v: tuple[bool, ...]) -> Value:
    return dense(Array(np.array(v, bool)), TensorType(i1, (len(v),)))


def _table(v: Any) -> Value:
    """Rows of integers; none are one dimension of size zero, as a list that is left out is written."""
    if isinstance(v, Opaque):
        return _mesh_axes(v)
    rows = np.array(v, np.int64)
    return integers(v, rows.shape)


def _mesh_axes(text: str) -> Value:
    """`#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [...]>`"""
    from hilo.formats.bytecode.mesh_axes import parse_mesh_axes

    return parse_mesh_axes(text)


def _layout(v: tuple[int, ...]) -> Value:
    return integers(v, (len(v),), TensorType(i64, (len(v),), "index"))


def _nested(v: Any) -> Value:
    """Lists of numbers, dictionaries of anything, aliases."""
    if isinstance(v, tuple):
        return tuple([_nested(x) for x in v])
    if isinstance(v, Opaque):
        return value_of(v)
    if isinstance(v, Attrs):
        if "operand_tuple_indices" in v:
            return Struct("output_operand_alias", v)
        return Attrs({k: _nested(x) for k, x in v.items()})
    if isinstance(v, float):
        return Float(number_bits(v, f64), f64)
    return v if isinstance(v, bool | str) else Integer(v, i64)


def _accuracy(v: str) -> Value:
    mode, *numbers = v.split(" ")
    found = dict(item.split("=") for item in numbers)
    fields = Attrs(
        atol=float(found.get("atol", 0)), rtol=float(found.get("rtol", 0)), ulps=int(found.get("ulps", 0)),
        mode=Enum("result_accuracy_mode", mode),
    )  # fmt: skip
    return Struct("result_accuracy", fields)


_KINDS: Final[dict[str, Callable[[Any], Value]]] = {
    "i32": lambda v: _int(v, i32),
    "i64": _int,
    "f32": lambda v: Float(number_bits(v, f32), f32),
    "bool": bool,
    "unit": bool,
    "string": lambda v: _nested(v) if isinstance(v, Attrs) else str(v),
    "symbol": str,
    "symbols": tuple,
    "i64s": _ints,
    "bools": _bools,
    "dense": _table,
    "layouts": lambda v: tuple([_layout(x) for x in v]),
    "tilings": lambda v: tuple([tuple([_layout(x) for x in row]) for row in v]),
    "list": _nested,
    "result_accuracy": _accuracy,
    **{f"enum {kind}": lambda v, kind=kind: Enum(kind, v) for kind in schema.ENUMS},
    **{f"enums {kind}": lambda v, kind=kind: tuple([Enum(kind, x) for x in v]) for kind in schema.ENUMS},
}


def _channel(part: int) -> Callable[[Op], Value]:
    return lambda op: _int((op.attrs.get("channel_handle") or (0, 0))[part])


def _algorithm(i: int) -> Callable[[Op], Value]:
    def get(op: Op) -> Value:
        algorithm = op.attrs.get("algorithm")
        if algorithm is None:
            return _NO_TYPE
        value = algorithm[i]
        if i < 3:
            return value_of(value) if not isinstance(value_of(value), Text) else OpaqueType(value)
        return bool(value) if i == 6 else _int(value)

    return get


def _constant(op: Op) -> Value:
    value = op.attrs["value"]
    t = op.type
    is_index = isinstance(t, TensorType) and t.encoding == "index"
    return dense(value, t if is_index else None)


def _version(op: Op) -> Value:
    """An i32, but i64 where it is left out."""
    v = op.attrs.get("version") or 0
    return _int(v, i32 if v else i64)


_SPECIAL: Final[dict[str, Callable[[Op], Value]]] = {
    "channel_id": _channel(0),
    "channel_type": _channel(1),
    "api_version": lambda op: Enum("api_version", API_VERSIONS[op.attrs.get("api_version", 1)]),
    "value": _constant,
    "version": _version,
    **{name: _algorithm(i) for i, name in enumerate(ALGORITHM)},
}
