"""What a program's memory goes to. Imports plan.program."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hilo.ir.dims import typical
from hilo.plan.place import least_size
from hilo.plan.program import Buffer, Program


@dataclass(frozen=True)
class MemoryReport:
    """Bytes of one call (of typical size, where sizes are known only at run time). `temporaries` is the arena, `least`
    what the order of the steps needs of it at the least, `peak` all that is live at the worst moment (arguments and
    results included), `largest` the biggest temporaries as (bytes, type, op, source location)."""

    arguments: int
    results: int
    constants: int
    temporaries: int
    least: int
    peak: int
    largest: tuple[tuple[int, str, str, str], ...]

    def __str__(self) -> str:
        lines = [
            f"{name:12} {getattr(self, name):>14,} bytes"
            for name in ("arguments", "results", "constants", "temporaries", "least", "peak")
        ]
        for nbytes, t, op, loc in self.largest:
            lines.append(f"  {nbytes:>14,} {t:20} {op} {loc}".rstrip())
        return "\n".join(lines)


def memory_report(program: Program, count: int = 10) -> MemoryReport:
    """The memory of `program`, whose buffers are assigned."""

    def total(buffers: list[Buffer]) -> int:
        return sum(typical(b.nbytes) for b in buffers)

    arguments, results = total(program.arguments), total(program.results)
    roots = [b for b in program.buffers if b.shares is None and b.first >= 0]
    big = sorted(roots, key=lambda b: -typical(b.nbytes))[:count]
    largest = tuple(
        (typical(b.nbytes), repr(b.type) if b.type else "scratch", b.source.name if b.source else "", _where(b))
        for b in big
    )
    constants = sum(c.nbytes for c in program.constants)
    arena = typical(program.arena_size)
    least = least_size(roots, lambda b: typical(b.nbytes), [replace(r, size=typical(r.size)) for r in program.rooms])
    peak = arguments + results + constants + arena
    return MemoryReport(arguments, results, constants, arena, least, peak, largest)


def _where(b: Buffer) -> str:
    return str(b.source.loc) if b.source is not None and b.source.loc is not None else ""
