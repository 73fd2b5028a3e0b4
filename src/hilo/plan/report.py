"""What a program's memory goes to: how much, who keeps the worst moment alive, what shares. Imports plan.program and
its neighbours."""

from __future__ import annotations

from hilo.ir.dims import typical
from hilo.plan.place import least_size
from hilo.plan.program import Buffer, Call, Copy, HostCall, Program, Step, While
from hilo.record import field, record, replace

TOTALS = ("arguments", "results", "constants", "temporaries", "least", "peak")


@record(frozen=True)
class MemoryReport:
    """Bytes of one call (of typical size, where sizes are known only at run time). `temporaries` is the arena, `least`
    what the order of the steps needs of it at the least, `peak` all that is live at the worst moment (arguments and
    results included), `largest` the biggest temporaries as (bytes, type, op, source location), `in_results` the bytes
    of temporaries that lie in results not yet written, `aliases` the (result, argument) pairs that may be one place,
    `code` the bytes of machine code."""

    arguments: int
    results: int
    constants: int
    temporaries: int
    least: int
    peak: int
    largest: tuple[tuple[int, str, str, str], ...]
    in_results: int = 0
    aliases: tuple[tuple[int, int], ...] = ()
    code: int = 0
    program: Program | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        lines = [f"{name:12} {getattr(self, name):>14,} bytes" for name in TOTALS]
        for nbytes, t, op, loc in self.largest:
            lines.append(f"  {nbytes:>14,} {t:20} {op} {loc}".rstrip())
        return "\n".join(lines)

    def details(self) -> str:
        """All there is to say: totals, what shares memory, the arena as a picture of letters, the worst moment."""
        from hilo.plan.picture import text

        lines = [f"{name:12} {getattr(self, name):>14,} bytes" for name in TOTALS]
        if self.in_results:
            lines.append(f"{'in results':12} {self.in_results:>14,} bytes of temporaries, until those are written")
        lines += [f"result {r} is written over argument {a}, where that is given up" for r, a in self.aliases]
        if self.program is not None:
            lines += text(self.program)
        return "\n".join(lines)

    def svg(self, *, assigned: bool = True) -> str:
        """The arena and the results as a picture: steps from left to right, bytes from bottom to top; or, not
        `assigned`, what the temporaries would take without sharing memory."""
        from hilo.plan.picture import svg

        return svg(self.program, assigned=assigned) if self.program is not None else ""


def memory_report(program: Program, count: int = 10, code: int = 0) -> MemoryReport:
    """The memory of `program`, whose buffers are assigned, and which became `code` bytes of machine code."""

    def total(buffers: list[Buffer]) -> int:
        return sum(typical(b.nbytes) for b in buffers)

    arguments, results = total(program.arguments), total(program.results)
    own = [b for b in program.buffers if b.shares is None and b.first >= 0]
    big = sorted(own, key=lambda b: -typical(b.nbytes))[:count]
    largest = tuple((typical(b.nbytes), repr(b.type) if b.type else "scratch", *origin(b)) for b in big)
    constants = sum(c.nbytes for c in program.constants)
    arena = typical(program.arena_size)
    return MemoryReport(
        arguments,
        results,
        constants,
        arena,
        least_size(own, lambda b: typical(b.nbytes), [replace(r, size=typical(r.size)) for r in program.rooms]),
        arguments + results + constants + arena,
        largest,
        total([b for b in program.buffers if b.root().kind == "result" or b.root().inside is not None]),
        tuple(program.aliases),
        code,
        program,
    )


def origin(b: Buffer) -> tuple[str, str]:
    """The op that a buffer was made for, and where that comes from."""
    if b.source is None:
        return "", ""
    return b.source.name, str(b.source.loc) if b.source.loc is not None else ""


def step_name(s: Step | None) -> str:
    """What a step does, in a word or two."""
    match s:
        case None:
            return "end of a loop"
        case Call():
            return s.op.name
        case HostCall():
            return f"call {s.target.name}"
        case Copy():
            return "copy"
        case While():
            return "while"
    return "switch"
