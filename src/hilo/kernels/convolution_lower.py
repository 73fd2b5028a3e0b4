"""Writing a planned convolution, or product of matrices, as loop IR. Imports loop, kernels."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dtypes import DType
from hilo.ir.types import TensorType
from hilo.kernels import contraction_pack
from hilo.kernels import convolution_tile as tile
from hilo.kernels import convolution_walk as walk
from hilo.kernels.contraction_algebra import Dim
from hilo.kernels.contraction_bound import FEWEST, Panels
from hilo.kernels.contraction_finish import store
from hilo.kernels.contraction_plan import OUTER_PRODUCTS
from hilo.kernels.convolution_plan import SKEW, Plan, crowded, plan
from hilo.kernels.convolution_regions import Problem
from hilo.kernels.elementwise import new_func
from hilo.kernels.epilogue import Epilogue
from hilo.kernels.items import digest
from hilo.kernels.loops import Vector
from hilo.kernels.lowered import Layout, Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.builder import I64, Builder, Func, Node
from hilo.loop.index import Index
from hilo.ops.window_axes import Axis
from hilo.record import record

if TYPE_CHECKING:
    from hilo.backend.target import Target

FINISHED: Final = 8  # times as long as its surroundings matter a tile must take for copying its sums not to matter
MOST_SUMS: Final = 1 << 19  # bytes of sums on the stack


@record(frozen=True)
class Operands:
    """What is multiplied: types of A (rows dense, in the order of the problem), of B, of the result before its epilogue
    and of what is stored; the type that sums are held in; how B lies in its operand; whether it is a constant."""

    a: TensorType
    b: TensorType
    out: TensorType
    stored: DType
    held: DType
    b_depth: tuple[Dim, ...]
    b_columns: tuple[Dim, ...]
    bound: bool

    @property
    def direct(self) -> bool:
        """Whether sums have the type of what is stored: they are added up in its place."""
        return self.out.dtype is self.held and self.stored is self.held

    def plan(self, p: Problem, target: Target) -> Plan | None:
        """How `p` is computed, if it is to be."""
        lanes = target.lanes(self.held)
        found = plan(p, self.held.itemsize, lanes, target, self.bound, self.b.dtype is self.held)
        if found is None or (found.blocks > 1 and sums_bytes(found, self.held.itemsize) > MOST_SUMS):
            return None
        return found


def sums_bytes(p: Plan, size: int) -> int:
    """Of a unit's sums between blocks of k."""
    return p.slots * p.together * p.width * size


def residual(epilogue: Epilogue | None) -> int | None:
    """The operand of which each element is read only for the one at its place, of the same type as the result."""
    if epilogue is None:
        return None
    same = (i for i in epilogue.own if epilogue.operands[i].dtype is epilogue.out.dtype)
    return next(same, None)


class Implicit:
    """Writes the phases of one convolution or product."""

    def __init__(self, x: Operands, p: Plan, target: Target, epilogue: Epilogue | None,
                 numbers: tuple[int, int], steady: bool = False) -> None:  # fmt: skip
        """`steady`: B is an argument that a call may bring in panels."""
        self.x, self.p, self.target, self.epilogue = x, p, target, epilogue
        self.held = x.held
        self.size = self.held.itemsize
        self.combine = "fma" if target.has_fma else "fmuladd"
        self.numbers = numbers
        self.keeps = steady and not p.bound and x.b.dtype is x.held
        self.result = epilogue.first + len(epilogue.operands) if epilogue else 2
        self.phases: list[Phase] = []
        self.scratch = 0
        self.copied = False
        self.first = epilogue.first if epilogue else 2
        self.residual = residual(epilogue)
        self.helpers: list[Func] = []

    def helper(self, func: Func) -> str:
        self.helpers.append(func)
        return func.name

    def run(self) -> Lowered:
        p, x = self.p, self.x
        if crowded(p, self.size):
            p = self.copied_rows()
        elif x.a.dtype is not self.held:
            self.widened()
        panels = Panels((), x.b_depth, x.b_columns, p.problem.depth, (p.width,) * p.panels, self.held)
        self.keeps = self.keeps and panels.is_tight and panels.nbytes >= FEWEST
        func = new_func("contraction")
        b = Builder(func)
        bufs, begin, end = func.params
        places, table = self.table(b, bufs)
        func.attrs["outer"] = p.products >= OUTER_PRODUCTS
        b.call(self.helper(walk.walk()), (bufs, places, table, begin, end))
        b.ret()
        units = p.units_m * p.units_n
        self.phases.append(Phase(func, units, p.cost / units, self.helpers))
        strategy, reason = p.words()
        if len(self.phases) > 1:
            reason += "; its operand is copied first, to lie better or in another type"
        arranged: dict[int, Layout] = {self.numbers[1]: panels}
        return Lowered(self.phases, self.scratch, self.in_place(), arranged if p.bound else {},
                       arranged if self.keeps else {}, strategy=strategy, reason=reason)  # fmt: skip

    def in_place(self) -> tuple[tuple[int, int], ...]:
        """The operand of the epilogue whose place the result may take: sums are kept apart then."""
        if self.residual is None:
            return ()
        number = self.first + self.residual
        return () if number in self.numbers else ((number, 0),)

    def widened(self) -> None:
        """lhs in the type of the sums, in scratch."""
        x = self.x.a
        self.copy_a(prod(x.shape[:-1]), x.shape[-1], x.shape[-1], lambda i, j: i * x.shape[-1] + j)

    def copied_rows(self) -> Plan:
        """The rows of A in scratch, and the plan for those."""
        q = self.p.problem
        (region,) = self.p.regions
        dims = sorted(region.dims, key=lambda d: -d.m)

        def source(i: Index, j: Index) -> Index:
            at = j + region.a
            for d, x in zip(dims, index.delinear(i, [d.size for d in dims]), strict=True):
                at = at + x * d.a
            return at

        pitch = q.inputs + SKEW
        self.copy_a(q.rows, q.inputs, pitch, source)
        p = self.x.plan(Problem(1, (q.rows,), (q.rows,), (Axis(),), q.inputs, q.outputs, pitch=pitch), self.target)
        assert p is not None  # the same problem with other strides
        self.p = p
        return p

    def copy_a(self, rows: int, columns: int, pitch: int, source: Callable[[Index, Index], Index]) -> None:
        """A phase that copies A to scratch, in the type of the sums."""
        self.copied = True
        self.scratch = -(-rows * pitch * self.size // RESULT_ALIGN) * RESULT_ALIGN
        x, number, to = self.x.a, self.numbers[0], self.result + 1
        unit = contraction_pack.rows_unit(
            lambda _, i, j: source(i, j), (1, rows, columns), pitch, x.dtype, self.held,
            lambda b, bufs: (pointer(b, bufs, number), pointer(b, bufs, to)), None, 0, self.target)  # fmt: skip
        self.phases.append(Phase(contraction_pack.phase_func("contraction_rows", unit), rows, columns * 0.1))

    def table(self, b: Builder, bufs: Node) -> tuple[Node, Node]:
        """The walk's places and its table."""
        p, size, q = self.p, self.size, self.p.problem
        memory = size if p.bound else self.x.b.dtype.itemsize
        several = p.blocks > 1
        crowded_result = several and q.outputs * size % 4096 == 0
        direct = self.x.direct and not self.in_place() and not crowded_result
        slots = p.slots * p.width * size if several and not direct else 0  # of a panel
        (region, *others) = p.regions
        flat = not others and len(region.dims) == 1 and region.dims[0].a == q.inputs and p.inner == q.inputs
        ahead_a = flat and q.depth * q.outputs * size <= self.target.l2 // 4
        row_bytes = p.width * size
        block = p.segments_step * p.inner_step * row_bytes
        rows = max(r.rows * r.pair for r in p.regions)
        whole, edge = self.epilogue is not None or not direct, q.outputs % p.width != 0  # what is finished
        narrow = "" if self.x.b.dtype is self.held else self.x.b.dtype.name
        pack = tile.Pack(self.held.name, narrow, p.vectors, p.lanes, self.target.has_masks)
        places: dict[str, int | Node] = {
            "a": pointer(b, bufs, self.result + 1 if self.copied else self.numbers[0]),
            "b": pointer(b, bufs, self.numbers[1]),
            "result": pointer(b, bufs, self.result),
            "sums": b.alloca(max(slots * p.together, (p.slots if several else rows) * row_bytes)),
            "packed": b.alloca(block * p.together) if p.packs else 0,
            "finish": b.funcptr(self.helper(self.finish(whole, edge))) if whole or edge else 0,
            "pack": b.funcptr(self.helper(tile.pack(pack))) if p.packs else 0,
            "touch": pointer(b, bufs, self.result if self.residual is None else self.first + self.residual),
            "b_panel": q.depth * row_bytes if p.bound else p.width * memory,
            "b_k": row_bytes if p.bound else q.outputs * memory,
            "packs": int(p.packs),
        }
        head = {
            "units_m": p.units_m,
            "units_n": p.units_n,
            "rows": p.total,
            "step": p.step,
            "panels": p.panels,
            "width": p.width,
            "columns": q.outputs,
            "per_group": p.panels // q.groups,
            "a_group": q.inputs * size,
            "together": p.together,
            "direct": int(direct),
            "finishes": int(self.epilogue is not None),
            "outer": p.outer,
            "segments": p.segments,
            "inner": p.inner,
            "segments_step": p.segments_step,
            "inner_step": p.inner_step,
            "size": size,
            "slot": row_bytes if several else 0,
            "slots": slots,
            "ahead_a": int(ahead_a),
            "lines": max(1, p.width * memory // 64),
        }
        if self.keeps:
            self.take_kept(b, bufs, places, q.depth * row_bytes, row_bytes)
        rows_used = sorted({*p.heights, *(2 * n for n in p.pairs)})
        tiles: dict[int, Node] = {}
        for n in rows_used:
            t = tile.Tile(self.combine, self.held.name, n, p.vectors, p.lanes, self.target.has_lanes, self.half())
            tiles[n] = b.funcptr(self.helper(tile.tile(t)))
        return walk.write(b, places, head, self.regions(), [walk.takes(p.heights), walk.takes(p.pairs)], tiles)

    def take_kept(self, b: Builder, bufs: Node, places: dict[str, int | Node], panel: int, row: int) -> None:
        """The panels that a call brings, in B's place; `panel`, `row`: their bytes."""
        kept = pointer(b, bufs, self.result + 2)
        given = b.cmp("ne", b.convert("ptrtoint", kept, "i64"), 0)
        for name, value in (("b", kept), ("b_panel", panel), ("b_k", row), ("packs", 0)):
            own = places[name]
            places[name] = b.select(given, value, own if isinstance(own, Node) else b.i64(own))

    def half(self) -> bool:
        """Whether half a vector is enough for the last one of each tile."""
        p = self.p
        last = p.problem.outputs - (p.vectors - 1) * p.lanes
        return p.panels == 1 and last <= p.lanes // 2 and self.target.has_halves

    def regions(self) -> list[dict[str, int]]:
        """The walk's records of the regions."""
        p, size = self.p, self.size
        out = []
        for r in p.regions:
            dims = [None] * (3 - len(r.dims)) + [*r.dims]
            outer, segments = r.taps
            record = {
                "o_lo": outer[0], "o_hi": outer[1], "o_step": outer[2],
                "s_lo": segments[0], "s_hi": segments[1], "s_step": segments[2],
                "r_lo": r.run[0], "r_hi": r.run[1], "bare": int(r.bare),
                "a": r.a * size, "a_outer": outer[3] * size, "a_segment": segments[3] * size, "m": r.m,
                "axis": 3, "first": 0, "stride": 1, "rows": r.rows, "pair": r.pair,
            }  # fmt: skip
            for i, d in enumerate(dims):
                record |= {f"n{i}": d.size if d else 1, f"a{i}": d.a * size if d else 0, f"m{i}": d.m if d else 0}
                if d is not None and d.axis == p.axis:
                    record |= {"axis": i, "first": d.first, "stride": d.step}
            out.append(record)
        return out

    def finish(self, whole: bool, edge: bool) -> Func:
        """What is done with a tile of sums, of `whole` panels and of one at the `edge`: rounding, epilogue, storing."""
        p, size, epilogue, out = self.p, self.size, self.epilogue, self.x.out
        n, m = p.problem.outputs, p.problem.rows
        stored = epilogue.out if epilogue else out

        def row(b: Builder, bufs: Node, at: Node, sums: Node, column: Node, live: Node) -> None:
            result = pointer(b, bufs, self.result)
            sources = [Buffer(pointer(b, bufs, epilogue.first + i), t, constant=True)
                       for i, t in enumerate(epilogue.operands)] if epilogue else []  # fmt: skip
            row_index = index.loop_var(at, 0, m)

            def turn(offset: Node | int, v: Vector) -> None:
                x = arith.load_elem(b, b.gep(sums, offset), 0, self.held, v.lanes, v.mask)
                x = arith.convert(b, x, out.dtype)
                position = row_index * n + v.at
                if epilogue is not None:
                    shape = stored.shape
                    places = index.delinear(position, shape) if prod(shape) != 1 else [index.ZERO] * len(shape)
                    x = epilogue.build(b, places, x, [lambda i, s=s: s.load(b, tuple(i), v.lanes, v.mask)
                                                      for s in sources])  # fmt: skip
                store(b, result, position, x, v)

            lanes = p.lanes
            if live.const is not None:
                for j in range(0, p.width, lanes):
                    last = max(1, n - lanes + 1)
                    turn(j * size, Vector(index.vector_var(b.add(column, j), lanes, 0, last, lanes), lanes))
                return

            def edge(j: Node) -> None:
                left = b.sub(live, j)
                mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), left)
                turn(b.mul(j, size), Vector(index.vector_var(b.add(column, j), lanes, 0, n, lanes, top=n), lanes, mask))

            def one(j: Node) -> None:
                turn(b.mul(j, size), Vector(index.loop_var(b.add(column, j), 0, n), 1))

            if self.target.has_masks:
                b.for_(0, live, lanes, edge)
            else:
                b.for_(0, live, 1, one)

        func = walk.finish(p.width, whole, edge, row)
        func.name = f"conv_finish.{digest(func)}"  # equal ones are one
        func.attrs["rare"] = True
        func.attrs["outer"] = epilogue is None and p.products >= FINISHED * OUTER_PRODUCTS
        return func
