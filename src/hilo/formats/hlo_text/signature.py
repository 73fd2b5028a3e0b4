"""What stands around computations: the module's header, and what parameters and results carry, as attributes.

The entry's parameters and results are flat in the IR. Where they are not in HLO, or have layouts of their own, the
module keeps the signature's text (`hlo.entry_computation_layout`). Imports its siblings and ir.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hilo.errors import Error
from hilo.formats.hlo_text.annotations import FRONTEND, SHARDING, string
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction, Shape, tuple_of
from hilo.formats.hlo_text.shapes import leaf_count, print_shape
from hilo.formats.mlir_text.attr_printer import by_type
from hilo.ir.module import Function
from hilo.ir.op import Attrs, Opaque
from hilo.ir.types import compatible

SIGNATURE: Final = "hlo.entry_computation_layout"
ALIAS: Final = "tf.aliasing_output"  # what JAX calls it
MUST_ALIAS: Final = "hlo.must_alias"
DONOR: Final = "jax.buffer_donor"
#: Attributes of the header that are integers of the module.
COUNTS: Final = {"replica_count": "mhlo.num_replicas", "num_partitions": "mhlo.num_partitions"}
#: Attributes of the header that are kept as they are.
KEPT: Final = {
    name: f"hlo.{name}"
    for name in ("allow_spmd_sharding_propagation_to_parameters", "allow_spmd_sharding_propagation_to_output")
}


def module_attrs(m: HloModule) -> Attrs:
    """The attributes of the module."""
    attrs: dict[str, Any] = {}
    for name, key in COUNTS.items():
        if name in m.attrs:
            attrs[key] = Opaque(f"{m.attrs[name]} : i32")
    for name, key in KEPT.items():
        if name in m.attrs:
            attrs[key] = string(m.attrs[name])
    if frontend := m.attrs.get("frontend_attributes"):
        attrs[FRONTEND] = Opaque(by_type(frontend))
    if (text := _unusual_signature(m)) is not None:
        attrs[SIGNATURE] = string(text)
    return Attrs(attrs)


def function(c: Computation, f: Function, name: str) -> Function:
    """A computation's function as one of the module."""
    params = [a for i in parameters(c) for a in _shardings(i.get("sharding"), leaf_count(i.declared.type))]
    result_attrs: Sequence[Attrs] = ()
    if c.root is not None and c.root.opcode == "tuple":
        result_attrs = _shardings(c.root.get("sharding"), len(f.results))
    return Function(name, f.params, f.ops, f.results, arg_attrs=params, result_attrs=result_attrs or _none(f.results),
                    visibility="private", loc=f.loc)  # fmt: skip


def entry_function(m: HloModule, f: Function, name: str) -> Function:
    """The entry's function: aliases of results and donated buffers are attributes of its parameters."""
    assert m.entry is not None
    made = function(m.entry, f, name)
    attrs: list[dict[str, Any]] = [dict(a) for a in made.arg_attrs]
    shapes, result = _signature(m)
    for output, number, where, kind in m.attrs.get("input_output_alias", ()):
        k = _flat(m, tuple_of(shapes), (number, *where))
        attrs[k][ALIAS] = Opaque(f"{_flat(m, result, output)} : i32")
        if kind == "must-alias":
            attrs[k][MUST_ALIAS] = Opaque("true")
    for number, where in m.attrs.get("buffer_donor", ()):
        attrs[_flat(m, tuple_of(shapes), (number, *where))][DONOR] = Opaque("true")
    return Function(name, f.params, f.ops, f.results, arg_attrs=map(Attrs, attrs), result_attrs=made.result_attrs,
                    visibility="public", loc=f.loc)  # fmt: skip


def parameters(c: Computation) -> list[Instruction]:
    """The parameters in order."""
    return sorted((i for i in c.instructions if i.opcode == "parameter"), key=lambda i: i["number"])


def _none(results: Sequence[Any]) -> list[Attrs]:
    return [Attrs() for _ in results]


def _shardings(text: str | None, count: int) -> list[Attrs]:
    """The sharding of each of `count` arrays of one value: `{{..},{..}}`, or one for all."""
    if not text:
        return [Attrs() for _ in range(count)]
    parts = split_sharding(text)
    if len(parts) != count:
        parts = [text] * count
    return [Attrs({SHARDING: string(t)}) for t in parts]


def split_sharding(text: str) -> list[str]:
    """The parts of the sharding of a tuple; a list of the one otherwise."""
    if not text.startswith("{{"):
        return [text]
    parts, depth, start = [], 0, 1
    for at, ch in enumerate(text):
        depth += (ch == "{") - (ch == "}")
        if depth == 1 and ch in "},":
            if ch == "}":
                parts.append(text[start : at + 1].strip(" ,"))
            start = at + 1
    return parts


def _signature(m: HloModule) -> tuple[tuple[Shape, ...], Shape]:
    """Shapes of the entry's parameters and of its result."""
    assert m.entry is not None
    assert m.entry.root is not None
    own = tuple(i.declared for i in parameters(m.entry))
    declared = m.attrs.get("entry_computation_layout")
    if declared is None:
        return own, m.entry.root.declared
    shapes, result = declared
    root = m.entry.root.shape
    if not _fits([s.type for s in shapes], [s.type for s in own]) or (root and not _fits([result.type], [root.type])):
        raise Error("entry_computation_layout does not have the types of the entry's parameters and root", loc=m.loc)
    return shapes, result


def _fits(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(map(compatible, a, b))


def _unusual_signature(m: HloModule) -> str | None:
    """The signature's text, unless it follows from the function's types."""
    shapes, result = _signature(m)
    leaves = list(result.leaves())
    usual = leaves[0] if len(leaves) == 1 else tuple_of(leaves)
    if result == usual and not any(s.is_tuple or s.layout for s in [*shapes, *leaves]):
        return None
    return f"{{({', '.join(map(print_shape, shapes))})->{print_shape(result)}}}"


def _flat(m: HloModule, shape: Shape, path: Sequence[int]) -> int:
    """The number of the array at `path` in a tuple; an array has the empty path."""
    number = 0
    for k in path:
        if not shape.is_tuple or not 0 <= k < len(shape.parts):
            raise Error(f"an alias or donor names part {list(path)}, which does not exist", loc=m.loc)
        number += sum(leaf_count(p.type) for p in shape.parts[:k])
        shape = shape.parts[k]
    if leaf_count(shape.type) != 1:
        raise Error(f"an alias or donor names part {list(path)}, which is not one array", loc=m.loc)
    return number
