"""Items: an op whose leading axes only count independent pieces, done piece by piece with the kernel of one.

The number of pieces may be known only at run time. That axes are independent is what the op's sharding rule says.
Imports ir, kernels.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

from hilo.hashes import sha256
from hilo.ir.dims import Number, Size, Undecided, evaluate
from hilo.ir.module import parameter
from hilo.ir.op import Attrs, Op
from hilo.ir.types import Results, TensorType, Type, result_types
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.loop import index
from hilo.loop.builder import Builder, Func, Node
from hilo.loop.nodes import Block

if TYPE_CHECKING:
    from hilo.backend.target import Target

WITNESS = 1013  # a size that no program has by chance: what the sharding rule is asked about


def lower_items(op: Op, target: Target, lower_one: Callable[[Op, Target], Lowered]) -> Lowered:
    """The kernel of `op` from the kernel of one item. Raises `Undecided` if its run-time sizes do not count items."""
    depth, prefix = items(op)
    one = lower_one(_with_types(op, lambda t: _one(t, depth)), target)
    if one.tables:
        raise Undecided("a kernel with tables of its own")
    count = prod(prefix)
    types = [*(o.tensor for o in op.operands), *(t for t in result_types(op.type) if isinstance(t, TensorType))]
    strides = [0 if t.is_static else _one(t, depth).nbytes for t in types]
    scratch = -(-one.scratch // RESULT_ALIGN) * RESULT_ALIGN
    phases = [_phase(p, count, strides, scratch) for p in one.phases if p.units]
    why = "a run-time size counts independent items"
    return Lowered(phases, count * scratch if scratch else 0, one.in_place,
                   strategy=f"item by item: {one.strategy}", reason=f"{why}; {one.reason}")  # fmt: skip


def items(op: Op) -> tuple[int, Sequence[Number]]:
    """How many leading axes of every tensor with a run-time size count items, and their sizes."""
    types = [t for x in (*op.operands, op) for t in result_types(x.type)]
    if not all(isinstance(t, TensorType) for t in types) or any(isinstance(n, Size) for n in _numbers(op.attrs)):
        raise Undecided("run-time sizes that are more than a number of items")
    tensors = [t for t in types if isinstance(t, TensorType)]
    moving = [t for t in tensors if not t.is_static]
    if all(o.tensor.is_static for o in op.operands) or any(t.is_static for t in tensors[len(op.operands) :]):
        raise Undecided("run-time sizes of results that do not come item by item from the operands")
    depth = 1 + max(d for t in moving for d, n in enumerate(t.shape) if isinstance(n, Size))
    prefix = moving[0].shape[:depth]
    if any(t.shape[:depth] != prefix for t in moving):
        raise Undecided("run-time sizes that are not the same leading axes everywhere")
    ins, _, out = _rule(op).partition("->")
    names = [n for side in (ins, out) for n in (side.split(",") if side else [""])]
    first = [n[:depth] for n, t in zip(names, tensors, strict=True) if not t.is_static]
    others = "".join(n if t.is_static else n[depth:] for n, t in zip(names, tensors, strict=True))
    if len(set(first)) != 1 or any(c in others for c in first[0]) or moving[-1] is not tensors[-1]:
        raise Undecided("run-time sizes along axes that depend on each other")
    return depth, prefix


def _numbers(attrs: Attrs) -> list[Any]:
    return [x for v in attrs.values() for x in (v if isinstance(v, tuple) else (v,))]


def _rule(op: Op) -> str:
    """The sharding rule of `op`, with numbers for run-time sizes."""
    kind = op.kind
    if isinstance(kind.sharding, str):
        return kind.sharding
    fixed = _with_types(op, lambda t: t.with_shape(evaluate(n, lambda _: WITNESS) for n in t.shape))
    out = fixed.type
    return kind.sharding(*(o.type for o in fixed.operands), out=out, **fixed.attrs.own())


def _with_types(op: Op, change: Callable[[TensorType], TensorType]) -> Op:
    """`op` with other types."""

    def each(t: Type) -> Type:
        if isinstance(t, Results):
            return Results(map(each, t.types))
        return change(t) if isinstance(t, TensorType) else t

    distinct = {o: parameter(i, each(o.type)) for i, o in enumerate(dict.fromkeys(op.operands))}
    t = each(op.type)
    attrs = op.attrs.replace(type=t) if op.kind.typed and "type" in op.attrs else op.attrs
    return Op(op.kind, tuple(distinct[o] for o in op.operands), attrs, t, op.loc)


def _one(t: TensorType, depth: int) -> TensorType:
    """The type of one item, with leading axes of size 1."""
    return t if t.is_static else t.with_shape([1] * depth + list(t.shape[depth:]))


def _phase(p: Phase, count: Number, strides: Sequence[int], scratch: int) -> Phase:
    """`p` for `count` items: unit u is unit u % p.units of item u // p.units."""
    inner = p.func
    _relax(inner, gcd(*strides, RESULT_ALIGN))
    inner.name = f"item.{digest(inner)}"
    inner.attrs.update(private=True, inline="never")  # its loads of pointers are invariant only inside
    func = new_func("items")
    b = Builder(func)
    bufs, begin, end = func.params
    local = b.alloca(8 * (len(strides) + 1))
    where = [*strides, *([scratch] if scratch else [])]

    def unit(u: Node) -> None:
        item, k = index.delinear(index.loop_var(u, 0, count * p.units), (count, p.units))
        for i, stride in enumerate(where):
            b.store(b.gep(local, 8 * i), b.gep(pointer(b, bufs, i), index.node(b, item * stride)))
        first = index.node(b, k)
        b.call(inner.name, (local, first, b.add(first, 1)))

    b.for_(begin, end, 1, unit)
    b.ret()
    return Phase(func, count * p.units, p.unit_cost + 2.0, [*p.helpers, inner])


def _relax(func: Func, align: int) -> None:
    """Let `func` assume no more of its arrays than that they are multiples of `align`: items lie between items."""
    if align == RESULT_ALIGN:
        return
    stack = [func.body]
    while stack:
        for n in stack.pop().nodes:
            stack.extend(n.blocks)
            if n.kind in ("load", "store") and n.attrs["align"] > align:
                part = (n.type if n.kind == "load" else n.args[1].type).size
                n.attrs["align"] = max(align & -align, part)
                if n.kind == "store":
                    n.attrs["nontemporal"] = False


def digest(func: Func) -> str:
    """A name for the code of a function: equal code, equal name."""
    number: dict[Node, int] = {}
    seen: list[Any] = []

    def walk(block: Block) -> None:
        for x in (*block.params, *block.nodes):
            number[x] = len(number)
            t = x.type
            attrs = repr(x.attrs) if x.attrs else ""  # whatever is in there
            seen.append((x.kind, [number[a] for a in x.args], t.scalar, t.lanes, attrs, len(x.blocks)))
            for inner in x.blocks:
                walk(inner)
        seen.append([number[y] for y in block.yields])

    walk(func.body)
    return sha256(marshal.dumps(seen, 2)).hexdigest()[:16]  # a version that does not tell who else has an object
