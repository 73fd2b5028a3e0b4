"""What a target is told of one call of it. Imports ir, and decode of this room."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from hilo.custom_calls.decode import decode
from hilo.custom_calls.signature import Signature, signature
from hilo.errors import Error
from hilo.ir.interpret import callee, run
from hilo.ir.module import Module
from hilo.ir.op import Attrs
from hilo.ir.types import TensorType, TupleType, Type, result_types
from hilo.record import field, record

TYPED_FFI: Final = 4  # api_version of calls with a dictionary; JAX leaves it out beside `mhlo.backend_config`
FOREIGN: Final = ("mhlo.backend_config", "mhlo.attributes")  # where exporters that lack a typed form put dictionaries


@record(frozen=True)
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
    more              all other attributes (`mhlo.topk` ...), decoded
    signature         operands and results with their layouts, as native code sees them
    """

    target: str
    results: tuple[TensorType, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    backend_config: str = ""
    api_version: int = 1
    has_side_effect: bool = False
    computations: tuple[Callable[..., list[Any]], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    signature: Signature = field(default_factory=Signature)

    def config_text(self) -> bytes:
        """The configuration for native code: the text as it is, or the dictionary as JSON."""
        if self.backend_config or not self.attributes:
            return self.backend_config.encode(errors="surrogateescape")
        return json.dumps(self.attributes, default=_plain).encode()


_STANDARD: Final = frozenset(
    ("call_target_name", "has_side_effect", "backend_config", "api_version", "called_computations",
     "output_operand_aliases", "operand_layouts", "result_layouts", "type")
)  # fmt: skip


def _plain(value: Any) -> Any:
    """A value of an attribute for JSON."""
    if isinstance(value, np.ndarray | np.generic):
        v = value.tolist()
        return v if isinstance(v, list | str | int | float) else str(v)
    return str(value)


def call_site(
    target: str, attrs: Mapping[str, Any], operands: Sequence[Type], result: Type, module: Module | None = None
) -> CallSite:
    """The site of a custom call with these attributes (an op's, those with a dot included) and types. `module` has the
    functions that it names; None: the module that is running."""
    config = attrs.get("backend_config") or ""
    more = {k: decode(v) for k, v in attrs.items() if k not in _STANDARD}
    attributes = decode(config) if isinstance(config, Attrs) else {}
    for name in FOREIGN:
        if not attributes and isinstance(more.get(name), dict):
            attributes = more[name]
    return CallSite(
        target,
        tuple(tensors(result)),
        attributes,
        "" if isinstance(config, Attrs) else str(config),
        TYPED_FFI if isinstance(more.get(FOREIGN[0]), dict) else int(attrs.get("api_version", 1)),
        bool(attrs.get("has_side_effect")),
        tuple(_computation(n, module) for n in attrs.get("called_computations") or ()),
        more,
        signature(attrs, operands, result),
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


def _computation(name: Any, module: Module | None) -> Callable[..., list[Any]]:
    text = str(name).removeprefix("@")

    def call(*arrays: Any) -> list[Any]:
        if module is None:
            return run(callee(text), arrays)
        if text not in module.functions:
            raise Error(f"there is no function @{text} to call")
        return run(module[text], arrays, module)

    call.__name__ = text
    return call


