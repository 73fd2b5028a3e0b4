"""What a target is told of one call of it. Imports ir, and decode of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hilo.custom_calls.decode import decode
from hilo.ir.interpret import callee, run
from hilo.ir.op import Attrs
from hilo.ir.types import TensorType, TupleType, Type, result_types

FOREIGN: Final = ("mhlo.backend_config", "mhlo.attributes")  # where exporters that lack a typed form put dictionaries


@dataclass(frozen=True, slots=True)
class CallSite:
    """One custom call, as its target sees it.

    target            its name
    results           the types of its tensor results, in order; parts of tuples count one by one, tokens do not count
    attributes        the typed dictionary of `backend_config` (or of `mhlo.backend_config`): numbers are numpy scalars
                      of the types that the program says, arrays numpy arrays, strings str, dictionaries dict
    backend_config    the text of `backend_config`, if it is a text
    api_version       1 original, 2 with a status, 3 with a status and one list of buffers, 4 typed FFI
    has_side_effect   as the program says
    computations      functions of the module that the call names: called with arrays, they give lists of arrays
    more              all attributes with a dot in their names, decoded
    """

    target: str
    results: tuple[TensorType, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    backend_config: str = ""
    api_version: int = 1
    has_side_effect: bool = False
    computations: tuple[Callable[..., list[Any]], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


def call_site(target: str, result: Type, attrs: Mapping[str, Any]) -> CallSite:
    """The site of a custom call with these attributes (an op's, those with a dot included)."""
    config = attrs.get("backend_config") or ""
    more = {k: decode(v) for k, v in attrs.items() if "." in k}
    attributes = decode(config) if isinstance(config, Attrs) else {}
    for name in FOREIGN:
        if not attributes and isinstance(more.get(name), dict):
            attributes = more[name]
    return CallSite(
        target,
        tuple(tensors(result)),
        attributes,
        "" if isinstance(config, Attrs) else str(config),
        int(attrs.get("api_version", 1)),
        bool(attrs.get("has_side_effect")),
        tuple(_computation(n) for n in attrs.get("called_computations") or ()),
        more,
    )


def tensors(t: Type) -> list[TensorType]:
    """The tensor types in `t`, in order, out of results and tuples."""
    out: list[TensorType] = []
    for x in result_types(t):
        if isinstance(x, TensorType):
            out.append(x)
        elif isinstance(x, TupleType):
            for part in x.types:
                out += tensors(part)
    return out


def flat(values: Sequence[Any]) -> list[Any]:
    """The arrays among values of the interpreter: tuples opened, tokens (`None`) left out."""
    out: list[Any] = []
    for v in values:
        if isinstance(v, tuple):
            out += flat(v)
        elif v is not None:
            out.append(v)
    return out


def nested(t: Type, arrays: list[Any]) -> Any:
    """`arrays` (used up from the front) as a value of type `t`: what `flat` undoes."""
    if isinstance(t, TensorType):
        return arrays.pop(0)
    if isinstance(t, TupleType):
        return tuple(nested(x, arrays) for x in t.types)
    return None


def _computation(name: Any) -> Callable[..., list[Any]]:
    text = str(name).removeprefix("@")

    def call(*arrays: Any) -> list[Any]:
        return run(callee(text), arrays)

    call.__name__ = text
    return call


