"""What a kernel strategy hands back: loop-IR functions over parallel units. Imports only loop.nodes and
ir.op (and numpy)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.ir.op import Op
from hilo.loop.nodes import Func
from hilo.record import field, record

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # a class of methods alone, which is made ten times as fast

_STEADY: ContextVar[frozenset[Op]] = ContextVar("arguments that calls may bring in other layouts", default=frozenset())


@record
class Phase:
    """One parallel step: `func` is `void f(ptr bufs, i64 begin, i64 end)` and does the units begin..end of `units`.

    `unit_cost` is the estimated time of one unit in nanoseconds. `helpers` are further functions that `func` calls;
    equal ones (by name) are shared between kernels.
    """

    func: Func
    units: Any  # int, or a run-time size; `func.attrs["sizes"]` lists the symbols that the function reads
    unit_cost: float
    helpers: list[Func] = field(default_factory=list)


class Layout(Protocol):
    """A way to lay out an operand: hashable, so that equal ones are made once. `nbytes` of it, and the layout in
    `numbers` as the runtime knows it."""

    def arrange(self, operand: np.ndarray) -> np.ndarray: ...

    @property
    def nbytes(self) -> int: ...

    def numbers(self) -> tuple[int, ...]: ...

    def __hash__(self) -> int: ...


@record
class Lowered:
    """A kernel: phases that run one after the other, and the bytes of scratch (64-byte aligned) that the call needs.

    `bufs` is an array of pointers: operands in order, tables, results, scratch. `tables`: constants of the kernel's own
    (64-byte aligned). `in_place` holds pairs (operand, result) that may have the same address. `arranged`: constant
    operands that the kernel reads in a layout of its own, made by `arrange` once when the program is planned. `kept`:
    an operand (at most one) that is an argument, and the layout in which the kernel reads it instead if a call brings
    it: then the pointer behind the scratch's is not NULL.
    """

    phases: list[Phase]
    scratch: Any = 0  # int, or a run-time size
    in_place: tuple[tuple[int, int], ...] = ()
    arranged: dict[int, Layout] = field(default_factory=dict)
    kept: dict[int, Layout] = field(default_factory=dict)
    tables: tuple[np.ndarray, ...] = ()
    strategy: str = ""  # what the kernel does, in a few words, and why: for people (`hilo bench --explain`)
    reason: str = ""
    choices: tuple[Any, ...] = ()  # of pins.Choice: knobs that it consulted, and their values (kernels/pins.py)


def constant_of(o: Op) -> Op | None:
    """The constant that `o` is, perhaps by another shape; None if it is none, or the same value everywhere."""
    while o.kind.full_name == "stablehlo.reshape":
        o = o.operands[0]
    is_constant = o.kind.full_name == "stablehlo.constant" and not o.attrs["value"].is_splat
    return o if is_constant else None


def is_steady(o: Op) -> bool:
    """Whether `o` is an argument, perhaps by another shape, that a call may bring in another layout."""
    while o.kind.full_name == "stablehlo.reshape":
        o = o.operands[0]
    return o in _STEADY.get()


@contextmanager
def steady(arguments: Iterable[Op]) -> Iterator[None]:
    """Kernels made in the block take these arguments in layouts of their own, too, when a call brings them."""
    token = _STEADY.set(frozenset(arguments))
    try:
        yield
    finally:
        _STEADY.reset(token)


def arranges(op: Op) -> bool:
    """Whether the kernel of `op` may ask for constants in a layout of its own."""
    fused = op.kind.full_name == "hilo.fusion" and op.attrs["kind"] == "contraction"
    return fused or op.kind.full_name in ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution")
