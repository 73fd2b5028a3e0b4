"""What a kernel strategy hands back: loop-IR functions over parallel units. Imports only loop.nodes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hilo.loop.nodes import Func


@dataclass
class Phase:
    """One parallel step: `func` is `void f(ptr bufs, i64 begin, i64 end)` and does the units begin..end of `units`.

    `unit_cost` is the estimated time of one unit in nanoseconds. `helpers` are further functions that `func` calls;
    equal ones (by name) are shared between kernels.
    """

    func: Func
    units: int
    unit_cost: float
    helpers: list[Func] = field(default_factory=list)


@dataclass
class Lowered:
    """A kernel: phases that run one after the other, and the bytes of scratch (64-byte aligned) that the call needs.

    `bufs` is an array of pointers: operands in order, results, scratch. `in_place` holds pairs (operand, result) that
    may have the same address.
    """

    phases: list[Phase]
    scratch: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
