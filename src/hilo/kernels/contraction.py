"""Contractions (dot_general, dot): sums of products over contracted dims, by micro-kernels. Imports ir, loop, kernels.

Operands stay where they are if a micro-kernel can walk them; what needs another type or order is packed first, into
scratch. A unit of the main phase computes a block of C, tile by tile; units depend on shapes only. What follows the sum
(rounding to the result's type, an epilogue) is done on the tile while it is in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.ir.op import Op
from hilo.kernels import contraction_pack as pack
from hilo.kernels.contraction_algebra import Contraction, classify, one_stride
from hilo.kernels.contraction_bound import FEWEST, Panels
from hilo.kernels.contraction_nest import Nest, Place
from hilo.kernels.contraction_plan import SHORT_K, Plan, Recipe, crowds, few_rows, paired, plan, recipe, tiles_for
from hilo.kernels.contraction_product import lower_product, step_of_k
from hilo.kernels.contraction_sizes import MANY, Expected, by_rows, is_static, planned_for, with_sizes
from hilo.kernels.epilogue import Epilogue
from hilo.kernels.lowered import Layout, Lowered, Phase, constant_of, is_steady
from hilo.kernels.memory import pointer
from hilo.loop.arith import reduce_precision
from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Index
from hilo.record import replace

if TYPE_CHECKING:
    from hilo.backend.target import Target

_ROUNDED: Final = {"bf16": (8, 7), "f16": (5, 10), "tf32": (8, 10)}  # exponent and mantissa bits
_SKEW: Final = 16  # elements between packed rows, lest all rows fall into one set of the cache


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `dot_general` or `dot`."""
    return lower_contraction(op, target)


def lower_contraction(op: Op, target: Target, epilogue: Epilogue | None = None) -> Lowered:
    """The kernel of a contraction, with what follows it. `bufs`: lhs, rhs, the epilogue's operands, result, scratch.

    An operand of `op` that is a constant may be read in a layout of its own (`Lowered.arranged`), as may one that is an
    argument (`Lowered.kept`). Raises `Unsupported` for an op that is not a contraction.
    """
    c = classify(op)
    if c.out.size == 0:
        return Lowered([])
    constant = tuple(constant_of(o) is not None for o in op.operands)
    if op.attrs.get("algorithm") is None:
        found = lower_product(c, target, epilogue, constant[1], is_steady(op.operands[1]))
        if found is not None:
            return found

    def one(c: Contraction, rows: Expected) -> Lowered:
        made = _Lowering(c, target, epilogue, op.attrs.get("algorithm"), constant, rows)
        made.steady_b = is_static(c.sizes) and is_steady(op.operands[not made.swapped])
        return made.run()

    return one(c, MANY) if is_static(c.sizes) else by_rows(c, one)


def lower_block(op: Op, block: Contraction, target: Target) -> Lowered | None:
    """The kernel of a part of contraction `op` (`Contraction.block`), which sums up in the order of the whole; None
    where that order is not known. One unit of its main phase does it all.

    `bufs`: where the part begins in lhs and rhs, the dense result of the part, scratch.
    """
    c, algorithm = classify(op), op.attrs.get("algorithm")
    whole = _Lowering(c, target, None, algorithm, (False, False))
    part = _Lowering(block, target, None, algorithm, (False, False), like=whole.r)
    if whole.swapped != part.swapped:
        return None
    p = whole.choose()[2]
    step = step_of_k(c, target) if algorithm is None else None
    return part.run_like(p if step is None else replace(p, block_k=step))


def lower_sums(c: Contraction, target: Target) -> Lowered:
    """The kernel of a contraction that is no op's: `bufs` are where A, B and the dense result begin, and scratch."""
    return _Lowering(c, target, None, None, (False, False)).run()


class _Lowering:
    """Collects the phases of one contraction."""

    def __init__(self, c: Contraction, target: Target, epilogue: Epilogue | None, algorithm: tuple | None,
                 constant: Sequence[bool], rows: Expected = MANY, like: Recipe | None = None) -> None:  # fmt: skip
        self.target = target
        self.expected_rows = rows  # of M, if that is known only at run time
        self.epilogue = epilogue
        self.r = recipe(c.lhs.dtype, c.rhs.dtype, c.out.dtype, target)
        if algorithm is not None and c.out.dtype.is_float and algorithm[2] == "f64":
            self.r = replace(self.r, scalar="f64", acc=dtypes.f64)
        self.rounding: list[tuple[int, int] | None] = [None, None]
        if algorithm is not None and algorithm[5] == 1 and c.out.dtype.is_float:
            # several products come to about f32's precision: keep it
            self.rounding = [_ROUNDED.get(a) for a in algorithm[:2]]
        if is_static(c.sizes) and self.rounding == [None, None]:
            self.r = like or paired(self.r, c.lhs.dtype, c.rhs.dtype, c.sizes, target)
        self.numbers = (epilogue and epilogue.numbers) or (0, 1)
        self.swapped = self.should_swap(c)
        if self.swapped:
            c = c.swapped()
            self.numbers = self.numbers[::-1]
            self.rounding.reverse()
        self.c = c
        self.constant_b = constant[not self.swapped]
        self.steady_b = False  # B is an argument that a call may bring in panels
        self.arranged: dict[int, Panels] = {}
        self.scratch_number = (epilogue.first + len(epilogue.operands) if epilogue else 2) + 1
        self.scratch = 0
        self.phases: list[Phase] = []

    def should_swap(self, c: Contraction) -> bool:
        """Whether to compute the transposed product: where N is too small for vectors, and M is not."""
        _, m, n, k = c.sizes
        if self.r.acc.is_complex or not is_static(c.sizes) or m <= n:
            return False
        if n == 1:
            return True
        lanes = self.target.lanes(self.r.scalar)
        wasteful = n <= lanes // 2 or (n < 2 * lanes and n % lanes and k >= 64)  # transposed stores cost something, too
        saves = 4 * n * -(-m // lanes) <= 3 * m * -(-n // lanes)  # of vectors
        return bool(wasteful) and saves and one_stride(c.m, "a") == 1 and self.is_ready(c.lhs.dtype, 0)

    def is_ready(self, dtype: DType, operand: int) -> bool:
        """Whether elements of this type can be added up as they lie in memory."""
        r = self.r
        if r.parts > 1 or r.combine == "or" or self.rounding[operand] is not None:
            return False
        return dtype is r.acc or (dtype.is_int and r.combine == "mul" and held_type(dtype).scalar == r.scalar)

    def allocate(self, size: int) -> int:
        """Room in the scratch buffer; gives its offset."""
        at = self.scratch
        self.scratch += -(-size // 64) * 64
        return at

    # ---- the operands
    def position(self, operand: str) -> Callable[[Index, Index, Index], Index]:
        """Where A has (batch, m, k), B has (batch, k, n), in elements."""
        c = self.c
        first, second = (c.m, c.k) if operand == "a" else (c.k, c.n)

        def at(bt: Index, i: Index, j: Index) -> Index:
            return pack.offset(bt, c.batch, operand) + pack.offset(i, first, operand) + pack.offset(j, second, operand)

        return at

    def in_place(self, operand: str) -> Place | None:
        """The operand where it lies, if a micro-kernel can walk it there."""
        c, r = self.c, self.r
        number = 0 if operand == "a" else 1
        if r.pairs:
            return self.pairs_in_place(operand)
        dtype = (c.lhs, c.rhs)[number].dtype
        row, column = (one_stride(d, operand) for d in ((c.m, c.k) if operand == "a" else (c.k, c.n)))
        narrow = dtype.name if operand == "b" and self.widens(dtype) else ""
        if row is None or column is None or not (narrow or self.is_ready(dtype, number)):
            return None
        batch = tuple((d.size, getattr(d, operand)) for d in c.batch)
        if r.acc.is_complex:
            if operand == "b" or column != 1:
                return None
            return Place(self.numbers[number], 0, tuple((n, 2 * s) for n, s in batch), 2 * row, 1)
        return Place(self.numbers[number], 0, batch, row, column, narrow)

    def pairs_in_place(self, operand: str) -> Place | None:
        """An operand of bf16 as pairs, if it has k contiguous and begins each row with a whole pair."""
        c = self.c
        across = one_stride(c.m if operand == "a" else c.n, operand)
        batch = [(d.size, getattr(d, operand)) for d in c.batch]
        if across is None or one_stride(c.k, operand) != 1:
            return None
        if any(n % 2 for n in (c.sizes[3], across, *(stride for _, stride in batch))):
            return None
        strides = (across // 2, 1) if operand == "a" else (1, across // 2)
        return Place(self.numbers[operand == "b"], 0, tuple((n, s // 2) for n, s in batch), *strides)

    def widens(self, dtype: DType) -> bool:
        """Whether micro-kernels widen elements of B of this type as they read them."""
        whole = self.target.has_masks or self.c.sizes[2] % self.target.lanes(dtype) == 0
        return dtype is dtypes.bf16 and self.r.acc is dtypes.f32 and self.rounding[1] is None and whole

    def pointers(self, number: int, at: int) -> Callable[[Builder, Node], tuple[Node, Node]]:
        """From an operand to a place in scratch."""
        return lambda b, bufs: (
            pointer(b, bufs, self.numbers[number]),
            b.gep(pointer(b, bufs, self.scratch_number), at),
        )

    def change(self, number: int) -> Callable[[Builder, Elem], Elem] | None:
        """What is done with an operand's elements on the way: rounding that the algorithm asks for, u8 from i8."""
        bits = self.rounding[number]
        if bits is not None:
            return lambda b, x: reduce_precision(b, x, *bits)
        if self.r.combine == "dot4":
            return pack.flipped
        return None

    def packed_a(self) -> Place:
        c, r = self.c, self.r
        bt, m, _, k = c.sizes
        to = r.acc if r.parts == 1 else dtypes.i8 if r.parts == 4 else dtypes.i16
        pad = -k % r.parts
        ld = k + pad
        most = max(rows for rows, _ in tiles_for(self.target))
        if (r.parts == 1 or r.pairs) and isinstance(ld, int) and crowds(most, ld * to.itemsize):
            ld += _SKEW
        at = self.allocate(bt * m * ld * to.itemsize)
        dtype = dtypes.i16 if r.pairs else c.lhs.dtype
        unit = pack.rows_unit(
            self.position("a"), (bt, m, k), ld, dtype, to, self.pointers(0, at), self.change(0), pad, self.target
        )
        self.add_phase("pack_a", unit, bt * m, k * 0.3)
        scale = ld * to.itemsize // r.size
        return Place(self.scratch_number, at, ((bt, m * scale),), scale, 1)

    def packed_b(self) -> Place:
        c, r = self.c, self.r
        bt, _, n, k = c.sizes
        source, dtype = self.position("b"), dtypes.i16 if r.pairs else c.rhs.dtype
        if r.parts > 1:
            groups = -(-k // r.parts)
            at = self.allocate(bt * groups * n * 4)
            unit = pack.groups_unit(source, (bt, k, n), dtype, r.parts, self.pointers(1, at), self.target)
            self.add_phase("pack_b", unit, bt * groups, n * 0.5)
            return Place(self.scratch_number, at, ((bt, groups * n),), n, 1)
        if r.acc.is_complex:
            at = self.allocate(bt * k * n * 4 * r.size)
            unit = pack.complex_unit(source, (bt, k, n), dtype, r.acc, self.pointers(1, at), self.target)
            self.add_phase("pack_b", unit, bt * k, n * 0.6)
            return Place(self.scratch_number, at, ((bt, 4 * k * n),), 2 * n, 1)
        at = self.allocate(bt * k * n * r.size)
        unit = pack.rows_unit(source, (bt, k, n), n, dtype, r.acc, self.pointers(1, at), self.change(1), 0, self.target)
        self.add_phase("pack_b", unit, bt * k, n * 0.3)
        return Place(self.scratch_number, at, ((bt, k * n),), n, 1)

    def compensation(self, b_place: Place, sizes: tuple[int, int, int, int]) -> int:
        """Offset in scratch of what the unsigned bytes of A add to each column."""
        bt, _, n, groups = sizes
        at, block = self.allocate(bt * n * 4), 1024

        def pointers(b: Builder, bufs: Node) -> tuple[Node, Node]:
            scratch = pointer(b, bufs, self.scratch_number)
            return b.gep(scratch, b_place.offset), b.gep(scratch, at)

        unit = pack.compensation_unit(bt, groups, n, pointers, block, self.target)
        self.add_phase("columns", unit, bt * -(-n // block), groups * min(n, block) * 0.05)
        return at

    def add_phase(self, name: str, unit: pack.Unit, units: int, cost: float) -> None:
        if units != 0:
            func = pack.phase_func(f"contraction_{name}", unit)
            self.phases.append(Phase(func, units, cost, list((func.helpers or {}).values())))

    # ---- constants
    def kept(self) -> DType | None:
        """The type of B's elements in panels made when the program is planned; None if there can be none."""
        r, dtype = self.r, self.c.rhs.dtype
        if self.constant_b and r.pairs:
            return r.acc
        if not self.constant_b or r.parts > 1 or r.acc.is_complex or self.rounding[1] is not None:
            return None
        if self.widens(dtype) or self.is_ready(dtype, 1):
            return dtype
        exact = dtype.is_float and r.acc.is_float
        return r.acc if exact else None

    def bound_b(self, p: Plan, dtype: DType) -> Place:
        """B in panels."""
        c = self.c
        bt, _, n, k = p.sizes
        edges = [v * lanes for _, v, lanes, _ in p.edges(n % p.width, self.target)]
        panels = Panels(c.batch, c.k, c.n, p.block_k, (*[p.width] * (n // p.width), *edges), dtype, self.r.parts)
        self.arranged[self.numbers[1]] = panels
        narrow = "" if self.is_ready(dtype, 1) or dtype is self.r.acc else dtype.name
        return Place(self.numbers[1], 0, ((bt, k * panels.columns),), panels.columns, 1, narrow, panels=True)

    def kept_b(self, b: Place, p: Plan) -> Panels | None:
        """The panels that a call may bring of an argument B, which lies as the program has it otherwise."""
        c, r = self.c, self.r
        as_it_lies = b.buffer == self.numbers[1] and not b.panels and not b.narrow and c.rhs.dtype.itemsize == r.size
        tiles = p.kind == "tile" and not p.skinny and p.blocks[0] == 1
        _, _, n, k = p.sizes
        if not (self.steady_b and as_it_lies and tiles) or n * k * r.size < FEWEST:
            return None
        edges = [v * lanes for _, v, lanes, _ in p.edges(n % p.width, self.target)]
        panels = Panels(c.batch, c.k, c.n, p.block_k, (*[p.width] * (n // p.width), *edges), c.rhs.dtype)
        return panels if panels.is_tight else None

    # ---- the whole
    def choose(self) -> tuple[Place, Place, Plan]:
        """Where micro-kernels find A and B, and the plan."""
        c, r = self.c, self.r
        bt, m, n, k = c.sizes
        few = planned_for(c.sizes, self.expected_rows)[1]
        complex_ = r.acc.is_complex
        sizes = (bt, m, 2 * n if complex_ else n, 2 * k if complex_ else -(-k // r.parts))
        a = self.in_place("a")
        if a is not None and a.row * r.size % 4096 == 0 and a.column == 1 and few >= 64 and n >= 256:
            a = None
        a = a or self.packed_a()
        b = self.in_place("b")
        if b is not None and n > 1 and b.column != 1 and b.row != 1:
            b = None
        dtype = self.kept()
        if b is None and dtype is None:
            b = self.packed_b()
        row, column = (n, 1) if b is None else (b.row, b.column if n > 1 else 1)
        inner = a.column == 1 and row == 1 and not complex_ and r.combine != "dot4"
        stream = m == 1 and column == 1 and k > 1

        def planned(bound: bool) -> Plan:
            options = {"b_row": row, "b_column": column, "inner": inner and isinstance(m, int), "stream": stream,
                       "a_turned": a.row == 1 and a.column != 1 and is_static(sizes),
                       "a_row": a.row if a.column == 1 and isinstance(a.row, int) else 0}  # fmt: skip
            if is_static(sizes):
                return plan(sizes, r, self.target, **options, bound=bound)
            small = planned_for(sizes, self.expected_rows)
            return with_sizes(plan(small, r, self.target, **options, bound=bound), sizes, self.expected_rows)

        p = planned(dtype is not None)
        if dtype is not None and p.kind == "tile" and p.blocks[0] == 1 and k:
            b = self.bound_b(p, dtype)
        elif dtype is not None:
            b = b or self.packed_b()
            row, column = b.row, b.column if n > 1 else 1
            p = planned(False)
        assert b is not None
        if n == 1 and not b.panels:
            b = replace(b, column=1)
        return a, b, p

    def run(self) -> Lowered:
        """The kernel."""
        return self.nested(*self.choose())

    def run_like(self, whole: Plan) -> Lowered | None:
        """The kernel in one unit that sums up in the order of another plan, if that is possible."""
        a, b, p = self.choose()
        if p.kind != whole.kind:
            return None
        _, m, n, _ = p.sizes
        one = {"block_m": max(m, 1), "block_n": max(n, 1), "turned_a": False}
        p = replace(p, block_k=whole.block_k, split_k=whole.split_k, **one)
        if p.kind == "tile" and p.sizes[3] <= SHORT_K:
            p = few_rows(p, n * self.r.size, self.target)
        return self.nested(a, b, p)

    def nested(self, a: Place, b: Place, p: Plan) -> Lowered:
        r, c = self.r, self.c
        start = self.compensation(b, p.sizes) if r.combine == "dot4" else None
        kept = self.kept_b(b, p)
        nest = Nest(p, r, a, b, start, c.out, self.swapped, self.epilogue, self.scratch_number, self.target, kept)
        nest.partial = self.allocate(nest.scratch)
        self.phases += nest.phases()
        strategy, reason = p.words(b.panels)
        if self.swapped:
            reason = f"computed transposed, as there are too few columns for vectors; {reason}"
        forms: dict[int, Layout] = {} if kept is None else {self.numbers[1]: kept}
        return Lowered(self.phases, self.scratch, arranged=dict(self.arranged), kept=forms, strategy=strategy,
                       reason=reason)  # fmt: skip
