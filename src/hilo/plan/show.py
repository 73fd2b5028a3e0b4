"""A program as text, for people. Imports plan.program."""

from __future__ import annotations

from hilo.ir.dims import Number
from hilo.plan.program import Buffer, Call, Copy, HostCall, Program, Step, While


def show(program: Program) -> str:
    """Steps in order, indented by loops and branches; each buffer as kind and place."""
    arena = _number(program.arena_size)
    lines = [f"program {program.name}: arena of {arena} bytes, {len(program.constants)} constants"]
    stack: list[tuple[int, str | Step]] = [(1, s) for s in reversed(program.steps)]
    while stack:
        depth, s = stack.pop()
        if isinstance(s, str):
            text = s
        elif isinstance(s, Call):
            text = f"{s.op.name} {_buffers(s.operands)} -> {_buffers(s.results)}"
            if s.scratch is not None:
                text += f" using {place(s.scratch)}"
        elif isinstance(s, HostCall):
            text = f"call {s.target.name} ({s.target.convention}) {_buffers(s.operands)} -> {_buffers(s.results)}"
        elif isinstance(s, Copy):
            text = f"copy {place(s.source)} -> {place(s.target)}"
        elif isinstance(s, While):
            text = f"while, carrying {_buffers(s.storage)}"
            parts = [
                (depth + 1, "condition:"),
                *((depth + 2, x) for x in s.cond),
                (depth + 1, "body:"),
                *((depth + 2, x) for x in s.body),
            ]
            stack.extend(reversed(parts))
        else:
            text = f"switch on {place(s.index)}"
            for k, branch in reversed(list(enumerate(s.branches))):
                stack.extend(reversed([(depth + 1, f"branch {k}:"), *((depth + 2, x) for x in branch)]))
        lines.append("  " * depth + text)
    return "\n".join(lines)


def place(b: Buffer) -> str:
    """Where a buffer is, with its type."""
    root = b.root()
    base = "arena" if root.inside is None else f"result {root.inside.index}"
    where = {"temp": f"{base}+{root.offset}", "pointer": "carried"}.get(root.kind, f"{root.kind} {root.index}")
    return f"{b.type!r} at {where}" if b.type is not None else f"{b.nbytes} bytes at {where}"


def _buffers(buffers: tuple[Buffer, ...]) -> str:
    return "(" + ", ".join(map(place, buffers)) + ")"


def _number(n: Number) -> str:
    return f"{n:,}" if isinstance(n, int) else repr(n)
