"""Programs with run-time sizes: what they need of a call, the arena's layout, and the function that works it all out.

Imports ir.dims, loop, plan.program.

Sizes follow from a few symbols (sizes of arguments' axes, integers among the arguments). `i32 shapes(symbols, out)`
checks the guards and gives the bytes of the arena and the shapes of the results, before anything is allocated.

Buffers whose sizes are multiples of one expression lie in an arena of their own, laid out in units of it: what fits for
one value of the expression fits for all. The arenas lie one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from hilo.ir import dims
from hilo.ir.dims import Atom, Guard, Number, symbols
from hilo.ir.module import Function
from hilo.ir.types import TensorType
from hilo.loop import sizes
from hilo.loop.builder import I32, I64, PTR, Builder, Func
from hilo.plan.place import place
from hilo.plan.program import ALIGN, Buffer, Program, Room
from hilo.record import replace

REFUSED = 1  # code of the first guard
MOST = 2.0**60  # bytes; no number that a size is made of is larger


def add_sizes(program: Program, function: Function) -> Program:
    """Note the function's guards, and all symbols that the program needs. Changes the program."""
    guards: list[Guard] = [g for o in function.ops if o.kind.full_name == "hilo.guards" for g in o.attrs["guards"]]
    found: dict[Atom, None] = {}

    def note(n: Number) -> None:
        found.update(symbols(n))

    for g in guards:
        for n in (g.condition, *g.values):
            note(n)
    for b in (*program.arguments, *program.results, *program.buffers):
        note(b.nbytes)
        for d in b.type.shape if b.type is not None else ():
            note(d)
    for call in program.calls():
        for p in call.lowered.phases:
            note(p.units)
            found.update(dict.fromkeys(p.func.attrs.get("sizes", ())))
    program.symbols, program.guards = list(found), guards
    return program


def assign_sizes(buffers: Iterable[Buffer], rooms: Iterable[Room] = ()) -> Number:
    """Give each buffer its offset, an expression; gives the size of the whole arena. Results have room for buffers of
    their own class."""
    classes: dict[Number, list[Buffer]] = {}
    for b in buffers:
        classes.setdefault(_unit(b.nbytes)[1], []).append(b)
    free: dict[Number, list[Room]] = {}
    for r in rooms:
        count, unit = dims.content(r.size)
        if count % ALIGN == 0:
            free.setdefault(unit, []).append(replace(r, size=count))
    base: Number = 0
    for unit, members in classes.items():
        used = place(members, lambda b: _unit(b.nbytes)[0], free.get(unit, ()))
        for b in members:
            if b.shares is None and b.first >= 0:
                b.offset = b.offset * unit if b.inside is not None else base + b.offset * unit
        base = base + used * unit
    return base


@cache
def _unit(nbytes: Number) -> tuple[int, Number]:
    """(c, p): at most c * p >= nbytes bytes with c a multiple of the alignment."""
    c, p = dims.content(nbytes)
    if isinstance(nbytes, int):
        return max(ALIGN, -(-nbytes // ALIGN) * ALIGN), 1
    if c % ALIGN == 0:
        return c, p
    return ALIGN, dims.floordiv(nbytes + ALIGN - 1, ALIGN)


def emit_shapes(program: Program, name: str = "shapes") -> Func:
    """i32 shapes(const i64* symbols, i64* out): out = bytes of the arena, then the sizes of all results' axes."""
    assert program.symbols is not None
    func = Func(name, [("symbols", PTR), ("out", PTR)], I32)
    b = Builder(func)
    table, out = func.params
    known = {s: b.load(b.gep(table, 8 * i), I64) for i, s in enumerate(program.symbols)}
    b.sizes = known.__getitem__
    code = b.const(0, I32)
    for k, g in reversed(list(enumerate(program.guards))):
        code = b.select(b.cmp("ne", sizes.node(b, g.condition), 0), code, b.const(REFUSED + k, I32))
    numbers: list[Number] = [program.arena_size]
    for r in program.results:
        assert isinstance(r.type, TensorType)
        numbers.extend(r.type.shape)
    for n in dict.fromkeys([program.arena_size, *(x.nbytes for x in (*program.results, *program.buffers))]):
        if not isinstance(n, int):
            fits = b.cmp("olt", sizes.magnitude(b, n), MOST)
            code = b.select(fits, code, b.const(REFUSED + len(program.guards), I32))
    for i, n in enumerate(numbers):
        b.store(b.gep(out, 8 * i), sizes.node(b, n))
    b.ret(code)
    return func


def explainer(program: Program) -> Callable[[int, list[int]], str]:
    """The message for a code of `shapes`, given the symbols' values."""
    table = {s: i for i, s in enumerate(program.symbols or ())}
    guards = program.guards

    def explain(code: int, values: list[int]) -> str:
        if code == REFUSED + len(guards):
            return "the sizes of the arguments ask for more memory than there can be"
        g = guards[code - REFUSED]
        numbers = [dims.evaluate(n, lambda s: values[table[s]]) for n in g.values]
        text = g.message
        for i, n in enumerate(numbers):
            text = text.replace(f"{{{i}}}", str(n))
        return text

    return explain


def sources(program: Program) -> list[tuple[bool, int, int]]:
    """The symbols as the runtime wants them: (is an element's value, argument, axis or element)."""
    out = []
    for s in program.symbols or ():
        assert s.source is not None
        kind, argument, index = s.source
        out.append((kind == "value", argument, index))
    return out

