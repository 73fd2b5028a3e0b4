"""The optimized program as clients see it (`compiled.as_text()` in JAX): HLO, whose fusions are hilo's kernels.

XLA's messages are what clients read: they parse one a hundred times as quickly as MLIR, and do so several times per
compilation. Imports formats, ir, trace, and this room's boundary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hilo.formats.hlo_text.model import Computation, HloModule, Instruction, Layout, Shape, tuple_of
from hilo.ir.dtypes import u8
from hilo.ir.module import Function, Module
from hilo.ir.types import TOKEN, TensorType
from hilo.pjrt.element_types import TOKEN_CODE

if TYPE_CHECKING:
    from hilo.pjrt.boundary import Boundary, Place

FORMAT: Final = "hlo_with_config"  # an HloModuleProtoWithConfig


def optimized_program(name: str, f: Function, b: Boundary) -> tuple[str, bytes]:
    """The format and the bytes of the scheduled function `f`; its signature alone, if HLO has no form for something."""
    from hilo.formats.hlo_text import emit
    from hilo.formats.hlo_text.proto import module_with_config

    try:
        made = emit(Module({f.name: f}, name=name))
        _with_layouts(made, b)
        return FORMAT, module_with_config(made)
    except Exception:  # HLO has no form of it; and what is only looked at never makes a compilation fail
        return FORMAT, module_with_config(_signature(name, f, b))


def _shapes(types: Sequence[TensorType], places: Sequence[Place]) -> list[Shape]:
    """The shapes that clients see: dims in the program's order, and how they lie in memory."""
    found = []
    for t, (element, dims, order) in zip(types, places, strict=True):
        if element == TOKEN_CODE:
            found.append(Shape(TOKEN))
            continue
        layout = Layout(order)
        found.append(Shape(t.with_shape(dims), None if layout.is_default else layout))
    return found


def _with_layouts(m: HloModule, b: Boundary) -> None:
    """Give the entry the client's shapes: values in another order of memory are bitcasts of what the program has."""
    entry = m.entry
    assert entry is not None
    assert entry.root is not None
    shapes, result = m.attrs["entry_computation_layout"]
    parts = list(result.parts) if result.is_tuple else [result]
    arguments = _shapes([s.type for s in shapes], b.arguments)
    results = _shapes([p.type for p in parts], b.results)
    m.attrs["entry_computation_layout"] = (tuple(arguments), tuple_of(results) if result.is_tuple else results[0])
    if arguments == list(shapes) and results == parts:
        return
    seen: dict[Instruction, Instruction] = {}
    made: list[Instruction] = []
    for i in entry.instructions:
        if i.opcode == "parameter" and (wanted := arguments[i.attrs["number"]]) != i.shape:
            seen[i] = Instruction(f"bitcast.{i.name}", "bitcast", i.shape, [i])
            i.shape = wanted
        else:
            i.operands = [seen.get(o, o) for o in i.operands]
        made += [i, seen[i]] if i in seen else [i]
    whole = result.is_tuple and entry.root.opcode == "tuple"
    roots = entry.root.operands if whole else [seen.get(entry.root, entry.root)]
    out = []
    for k, (r, wanted) in enumerate(zip(roots, results, strict=False)):
        if wanted.type is TOKEN:
            made.append(Instruction(f"after-all.result.{k}", "after-all", wanted, []))
            r = made[-1]
        elif wanted != r.shape:
            made.append(Instruction(f"bitcast.result.{k}", "bitcast", wanted, [r]))
            r = made[-1]
        out.append(r)
    if whole:
        made.remove(entry.root)
        made.append(Instruction("tuple.results", "tuple", tuple_of(results), out))
        entry.root = made[-1]
    else:
        entry.root = out[0]
    entry.instructions = made


def _signature(name: str, f: Function, b: Boundary) -> HloModule:
    """A program with the edges of `f` that calls what cannot be shown."""
    from hilo.formats.hlo_text.emit import identifier
    from hilo.formats.hlo_text.proto import TYPES

    def known(t: TensorType) -> TensorType:
        """Types that XLA's messages lack are shown as the bytes that they are."""
        d = getattr(t.dtype, "storage", t.dtype)
        return t.with_dtype(d if d.name in TYPES else u8)

    arguments = _shapes([known(p.tensor) for p in f.params], b.arguments)
    results = _shapes([known(r.tensor) for r in f.results], b.results)
    result = results[0] if len(results) == 1 else tuple_of(results)
    params = [Instruction(f"parameter.{k}", "parameter", s, [], {"number": k}) for k, s in enumerate(arguments)]
    call = Instruction("custom-call.1", "custom-call", result, params, {"custom_call_target": "hilo.program"})
    entry = Computation("main", [*params, call], call)
    attrs = {"entry_computation_layout": (tuple(arguments), result)}
    return HloModule(identifier(name), {"main": entry}, entry, attrs)
