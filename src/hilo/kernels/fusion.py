"""Kernels of fusions and of single ops that are computed like a fusion of one. Imports ops, kernels (each strategy when
a fusion needs it: most programs have few kinds)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hilo.errors import Unsupported
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.lowered import Lowered
from hilo.loop import index
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.fusion import Elements, composes, contracts, turns, wrap
from hilo.ops.trace import trace

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.kernels.epilogue import Source


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `hilo.fusion`."""
    body = op.attrs["body"]
    n = len(op.operands)
    if op.attrs["kind"] == "rows":
        from hilo.kernels import rows

        return rows.lower(body, range(n), n, target)
    if op.attrs["kind"] == "attention":
        from hilo.kernels import attention

        return attention.lower(op, target)
    if op.attrs["kind"] == "online":
        from hilo.kernels import attention_online

        return attention_online.lower(op, target)
    if op.attrs["kind"] == "contraction":
        return lower_contraction(op, target)
    if any(map(turns, body.ops)):
        from hilo.kernels import transpose

        tiled = transpose.lower_fused(body, n, target)
        if tiled is not None:
            return tiled
    return elementwise.lower(body, range(n), n, target)


def lower_contraction(op: Op, target: Target) -> Lowered:
    """The kernel of a contraction with what is computed from it, element by element."""
    from hilo.kernels.epilogue import Epilogue

    body = op.attrs["body"]
    (hero,) = (o for o in body.ops if contracts(o))
    (result,) = body.results
    first, second = (body.params.index(x) for x in hero.operands)

    def build(b: Builder, at: Sequence[Index], acc: Elem, sources: Sequence[Source]) -> Elem:
        known = {p: (lambda i, read=read: read(i)) for p, read in zip(body.params, sources, strict=True)}
        return Elements(b, {**known, hero: lambda _: acc})(result, tuple(at))

    epilogue = Epilogue(result.tensor, body.param_types, build, (first, second), read_in_place(body, hero))
    alone = {x: sum(x in o.operands for o in body.ops) == 1 for x in hero.operands}
    outside = [op.operands[i] if alone[x] else x for i, x in zip((first, second), hero.operands, strict=True)]
    if hero.kind.full_name == "stablehlo.convolution":
        from hilo.kernels import convolution

        return convolution.lower_convolution(hero.with_operands(outside), target, epilogue)
    from hilo.kernels import contraction

    return contraction.lower_contraction(hero.with_operands(outside), target, epilogue)


def read_in_place(body: Function, hero: Op) -> tuple[int, ...]:
    """Numbers of the parameters of which, after `hero`, each element is read only for the result's at its position."""
    (result,) = body.results
    if not result.tensor.is_static:
        return ()
    found = trace(result.shape, body.results, [*body.params, hero])
    own = index.linear(found.variables, result.shape)
    moved = {a.op for a in found.accesses if a.position != own or not a.is_inside}
    return tuple(i for i, p in enumerate(body.params)
                 if p not in moved and p not in hero.operands and p.tensor.size == result.tensor.size)  # fmt: skip


def lower_bare(op: Op, target: Target) -> Lowered:
    """The kernel of an op that stands alone: an elementwise or index-moving op, a reduction, or a splat constant."""
    body = wrap(op)
    operands = [op.operands.index(x) for x in dict.fromkeys(op.operands)]
    if op.kind.full_name == "stablehlo.reduce":
        from hilo.kernels import rows

        return rows.lower(body, operands, len(op.operands), target)
    if not composes(op):
        raise Unsupported("there is no kernel for this op yet", op=op.kind.full_name, loc=op.loc)
    return _with_repeats(elementwise.lower(body, operands, len(op.operands), target), op)


def _with_repeats(lowered: Lowered, op: Op) -> Lowered:
    """`x + x` reads x once, at its first place: what may be done in place of that may be in place of the others."""
    first = [op.operands.index(x) for x in op.operands]
    lowered.in_place = tuple((i, k) for i, place in enumerate(first) for at, k in lowered.in_place if at == place)
    return lowered
