"""The passes of Fourier transforms: butterflies of one radix each, over vectors in memory. Imports loop, kernels.

Passes are written out where they stand, or are functions, one for each radix, which are told by how many bytes elements
are apart: the quicker to compile, the larger the transform, the less the calls matter. The innermost loops are made for
LLVM's quick ways, which keep no value in a register from one block of code to the next: addresses are computed next to
where they are used (`near`), and roots of unity are loaded there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hilo.kernels.fft_numbers import Apart, Interleaved, Numbers
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.butterfly import NUMBERS, PLACES, ROOT, Butterflies, Butterfly, Complex
from hilo.loop.nodes import Deferred
from hilo.record import record


def near(b: Builder, at: Node) -> Node:
    """An address once more: what is added to it is then added here, as part of an instruction, not outside loops."""
    return b.effect("gep", (at, b.i64(0)), PTR)


@record(frozen=True)
class Form:
    """What the functions of passes depend on: `lanes` complex numbers with parts of type `scalar` are a vector."""

    scalar: VType
    lanes: int
    inverse: bool
    fused: bool
    has_vectors: bool

    @property
    def step(self) -> int:
        """Bytes of a vector."""
        return 2 * self.lanes * self.scalar.size

    def arithmetic(self, b: Builder) -> Numbers:
        if not self.has_vectors:
            return Apart(b, self.scalar, self.fused)
        return Interleaved(b, self.scalar.with_lanes(2 * self.lanes), self.fused)

    def butterflies(self, p: Pass) -> Butterflies:
        """A pass, as a backend may know it."""
        scalar = self.scalar.scalar
        return Butterflies(p.radix, scalar, self.lanes, p.turned, p.streams, self.inverse, self.fused)

    def butterfly(self, a: Numbers) -> Butterfly:
        return Butterfly(a, 1 if self.inverse else -1)


@record(frozen=True)
class Pass:
    """`turns` times `inner` bytes of vectors side by side, a butterfly of `radix` elements each. Those of a turn share
    their roots of unity, if there are any (`turned`). Of what is read and of what is written: how many bytes the turns,
    and the elements of a butterfly, are apart. `streams`: what is written goes past the caches."""

    radix: int
    turned: bool
    streams: bool
    turns: Node | int
    inner: Node | int
    read_turn: Node | int
    read: Node | int
    write_turn: Node | int
    write: Node | int

    def numbers(self) -> tuple[Node | int, ...]:
        return self.turns, self.inner, self.read_turn, self.read, self.write_turn, self.write


class Passes:
    """Transforms in the function of a kernel. `width` vectors side by side are transformed together; `shared`: the
    radices that have functions, which multiply by roots, or None where all is written out."""

    def __init__(self, b: Builder, form: Form, width: int, shared: frozenset[int] | None) -> None:
        self.b, self.form, self.shared = b, form, shared
        self.arithmetic = form.arithmetic(b)
        self.block = width * form.step
        self._spaces: list[Node] = []

    def reserve(self, elements: int) -> None:
        """Have two buffers of so many blocks."""
        self._spaces = [self.b.alloca(elements * self.block) for _ in range(2)]

    def short(self, source: Node, n: int, element: int) -> list[Complex]:
        """The transform of n vectors, `element` bytes apart, in registers."""
        b, a = self.b, self.arithmetic
        at = near(b, source)
        xs = [a.load(b.gep(at, k * element), self.form.scalar.size) for k in range(n)]
        return self.form.butterfly(a).transform(xs)

    def transform(self, radices: Sequence[int], table: Node, source: tuple[Node, int],
                  result: tuple[Node, int] | None = None, streams: bool = False) -> Node:  # fmt: skip
        """A transform from `source` to `result`, or to one of the buffers: gives where. `source` and `result` say where
        elements are, and how many bytes apart; those of `result` lie at multiples of their size if that `streams`.

        A pass does `count` times `stride` butterflies; those of one `count` share their roots."""
        b, n, stride, block = self.b, prod(radices), 1, self.block
        here, element = source
        for number, r in enumerate(radices):
            count, last, to = n // r, number == len(radices) - 1, self._spaces[number % 2]
            turned = not last or (self.shared is not None and r in self.shared)
            reads, writes = (stride * element, stride * count * element), (stride * r * block, stride * block)
            p = Pass(r, turned, False, count, stride * block, *reads, *writes)
            if last and result is not None:
                to, far = result
                turned = turned and not streams and stride == 1
                p = Pass(r, turned, streams, stride, block, element, stride * element, far, stride * far)
            self._pass(p, table, here, to)
            table = b.gep(table, count * (r - 1) * ROOT * self.form.scalar.size)
            n, stride, here, element = count, stride * r, to, block
        return here

    def _pass(self, p: Pass, *places: Node) -> None:
        """One pass; `places`: its roots of unity, what is read, and what is written."""
        b, form = self.b, self.form
        if self.shared is None:
            _butterflies(self.arithmetic, form, p, places)
            return
        assert b.func.helpers is not None
        func = function(form, p)
        func = b.func.helpers.setdefault(func.name, func)
        b.call(func.name, (*places, *(x if isinstance(x, Node) else b.i64(x) for x in p.numbers())))


def function(form: Form, p: Pass) -> Func:
    """The function of passes like `p`, whatever its numbers."""

    def write(func: Func) -> None:
        b, told = Builder(func), Pass(p.radix, p.turned, p.streams, *func.params[len(PLACES) :])
        _butterflies(form.arithmetic(b), form, told, func.params[: len(PLACES)])
        b.ret()

    kind = ("" if p.turned else "_last") + ("_streamed" if p.streams else "") + ("_inverse" if form.inverse else "")
    name = f"fft_pass_{form.scalar!r}x{2 * form.lanes}_{p.radix}{kind}"
    params = [*((x, PTR) for x in PLACES), *((x, I64) for x in NUMBERS)]
    return Deferred(name, params, write, inline="never", outer=True, product=form.butterflies(p))


def _butterflies(a: Numbers, form: Form, p: Pass, places: Sequence[Node]) -> None:
    """The loops of a pass."""
    b, size, (table, source, to) = a.b, form.scalar.size, places
    butterfly = form.butterfly(a)
    align = form.step if p.streams else size

    def turn(i: Node) -> None:
        reads, writes = b.gep(source, b.mul(i, p.read_turn)), b.gep(to, b.mul(i, p.write_turn))
        shared = b.gep(table, b.mul(i, (p.radix - 1) * ROOT * size))

        def one(at: Node) -> None:
            here, there = near(b, b.gep(reads, at)), near(b, b.gep(writes, at))
            roots = near(b, shared) if p.turned else shared
            xs = [a.load(x, size) for x in _row(b, here, p.read, p.radix)]
            ys = zip(butterfly.transform(xs), _row(b, there, p.write, p.radix), strict=True)
            for k, (y, place) in enumerate(ys):
                if p.turned and k:
                    y = a.multiply(y, a.root(b.gep(roots, (k - 1) * ROOT * size)))
                a.store(place, y, align, p.streams)

        b.for_(0, p.inner, form.step, one)

    b.for_(0, p.turns, 1, turn)


def _row(b: Builder, at: Node, step: Node | int, count: int) -> list[Node]:
    """`count` addresses, `step` bytes apart."""
    if isinstance(step, int):
        return [b.gep(at, k * step) for k in range(count)]
    found = [at]
    for _ in range(1, count):
        found.append(b.gep(found[-1], step))
    return found
