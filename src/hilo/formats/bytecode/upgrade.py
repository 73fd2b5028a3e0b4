"""Ops of VHLO, of any version, as StableHLO's: names and attributes. Imports its siblings, mlir_text and ir.

What a later version added is absent in older files, and then has its default; what one dropped has no meaning any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hilo.errors import Error
from hilo.formats.bytecode.attributes import inherent
from hilo.formats.bytecode.opset import ALGORITHM, BY_NAME, DEFAULTS, SPLATS, Operation
from hilo.formats.bytecode.types import spelled
from hilo.formats.bytecode.values import Value
from hilo.ir.dtypes import DType
from hilo.ir.types import Type

_CHANNEL = ("channel_id", "channel_type")


def operation(name: str) -> Operation:
    """The definition of `vhlo.add_v1` ..."""
    found = BY_NAME.get(name)
    if found is None:
        raise Error(f"{name} is no operation that is known here; the file may need a newer version")
    return found


def upgrade(op: Operation, attrs: Mapping[str, Value]) -> dict[str, Any]:
    """The attributes of the StableHLO op, without those that have the value they have when left out."""
    new: dict[str, Any] = {}
    defaults = DEFAULTS.get(op.name, {})
    splats = SPLATS.get(op.name, {})
    for name in op.attrs:
        if name not in attrs:
            raise Error(f"attribute '{name}' is missing")
        if name in ALGORITHM or name in _CHANNEL or (op.full_name == "dynamic_conv_v1" and name == "padding"):
            continue
        value = inherent(name, attrs[name])
        if (name in defaults and _is_default(value, defaults[name])) or (
            name in splats and all(v == splats[name] for v in _flat(value))
        ):
            continue
        new[name] = value
    if "channel_id" in op.attrs and (handle := _channel(op, attrs)) is not None:
        new["channel_handle"] = handle
    if ALGORITHM[0] in op.attrs and (algorithm := _algorithm(attrs)) is not None:
        new["algorithm"] = algorithm
    if op.name == "custom_call":
        _layouts(new, attrs)
    return new


def _is_default(value: Any, default: object) -> bool:
    """Whether they are equal; empty dictionaries, lists and texts are all the same."""
    return (not value and not isinstance(value, bool | int)) if default in ("", (), {}) else value == default


def _flat(value: Any) -> list[Any]:
    return [x for v in value for x in _flat(v)] if isinstance(value, tuple) else [value]


def _layouts(new: dict[str, Any], attrs: Mapping[str, Value]) -> None:
    """The two lists of layouts are left out together or not at all."""
    names = ("operand_layouts", "result_layouts")
    if any(name in new for name in names):
        new.update((name, inherent(name, attrs[name])) for name in names)


def _channel(op: Operation, attrs: Mapping[str, Value]) -> tuple[int, int] | None:
    handle = [inherent("dimension", attrs[name]) if name in op.attrs else 0 for name in _CHANNEL]
    return (handle[0], handle[1]) if handle[0] or op.name in ("send", "recv") else None


def _algorithm(attrs: Mapping[str, Value]) -> tuple[Any, ...] | None:
    """The seven attributes as one, unless they are all the type `none`."""
    values = [attrs[name] for name in ALGORITHM]
    texts = [spelled(v) if isinstance(v, DType | Type) else "" for v in values]
    if all(t == "none" for t in texts):
        return None
    if not all(texts[:3]) or any(t == "none" for t in texts):
        raise Error("attributes of an algorithm that fit no algorithm")
    return (*texts[:3], *(inherent("dimension", v) for v in values[3:6]), inherent("is_stable", values[6]))

