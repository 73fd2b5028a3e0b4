"""What a target is told of one call of it. Imports ir, and decode of this room."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hilo.custom_calls.decode import decode
from hilo.errors import Error
from hilo.ir.interpret import callee, run
from hilo.ir.module import Module
from hilo.ir.op import Attrs, Op
from hilo.ir.types import TensorType, TupleType, Type, result_types

IN_MEMORY: Final = "hilo.in_memory"  # attribute: the call's operands and results are in the order of its layouts
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
    more              all other attributes (`mhlo.topk` ...), decoded
    """

    target: str
    results: tuple[TensorType, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    backend_config: str = ""
    api_version: int = 1
    has_side_effect: bool = False
    computations: tuple[Callable[..., list[Any]], ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


_STANDARD: Final = frozenset(
    ("call_target_name", "has_side_effect", "backend_config", "api_version", "called_computations",
     "output_operand_aliases", "operand_layouts", "result_layouts", "type")
)  # fmt: skip


def call_site(target: str, result: Type, attrs: Mapping[str, Any], module: Module | None = None) -> CallSite:
    """The site of a custom call with these attributes (an op's, those with a dot included). `module` has the functions
    that it names; None: the module that is running."""
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
        int(attrs.get("api_version", 1)),
        bool(attrs.get("has_side_effect")),
        tuple(_computation(n, module) for n in attrs.get("called_computations") or ()),
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


def leaf_types(op: Op) -> tuple[list[TensorType | None], list[TensorType | None]]:
    """The types of all tensors (None: tokens) among the operands, and the results, of a custom call, out of tuples, as
    its target sees them: logical, also where the values themselves stand in the order of memory (`IN_MEMORY`)."""
    operands = [t for o in op.operands for t in _leaves(o.type)]
    results = [t for r in result_types(op.type) for t in _leaves(r)]
    if not op.attrs.get(IN_MEMORY):
        return operands, results
    a, b = op.attrs["operand_layouts"], op.attrs["result_layouts"]
    return (
        [t and logical(t, order) for t, order in zip(operands, a, strict=True)],
        [t and logical(t, order) for t, order in zip(results, b, strict=True)],
    )


def logical(t: TensorType, layout: tuple[int, ...]) -> TensorType:
    """The type of a tensor that lies in memory as `t` says; `layout` lists its dims from minor to major."""
    shape: list[Any] = [0] * t.rank
    for position, dim in enumerate(reversed(layout)):
        shape[dim] = t.shape[position]
    return t.with_shape(tuple(shape))


def _leaves(t: Type) -> list[TensorType | None]:
    if isinstance(t, TupleType):
        return [x for part in t.types for x in _leaves(part)]
    return [t if isinstance(t, TensorType) else None]


def aliases(op: Op) -> list[tuple[int, int]]:
    """(result, operand) pairs that are at one place, by their numbers among the tensors, out of tuples."""
    operands, results = [o.type for o in op.operands], list(result_types(op.type))
    pairs = []
    for a in op.attrs.get("output_operand_aliases") or ():
        path = tuple(a["output_tuple_indices"])
        whole = len(results) == 1 and not (path and not isinstance(results[0], TupleType))
        r = _number(results, (0, *path) if whole else path)
        o = _number(operands, (a["operand_index"], *a["operand_tuple_indices"]))
        if r is not None and o is not None:
            pairs.append((r, o))
    return pairs


def _number(types: Sequence[Type], path: Sequence[int]) -> int | None:
    """The number, among the tensors of `types`, of the one at `path`; None if there is a token or a tuple."""
    before = sum(len(tensors(t)) for t in types[: path[0]])
    t = types[path[0]]
    for i in path[1:]:
        assert isinstance(t, TupleType)
        before += sum(len(tensors(x)) for x in t.types[:i])
        t = t.types[i]
    return before if isinstance(t, TensorType) else None

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


