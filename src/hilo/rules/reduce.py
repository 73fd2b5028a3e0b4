"""Rules about reduce and map: reductions of nothing, and scalar functions mapped over tensors."""

from __future__ import annotations

from hilo.ir.dtypes import DType
from hilo.ir.module import region
from hilo.ir.op import Op
from hilo.ir.types import Results, TensorType
from hilo.ops.regions import sole_op, widened
from hilo.rewrite import PACK, RuleSet
from hilo.rewrite.ops import add, broadcast_in_dim, map_, maximum, multiply, reduce, reshape, subtract, transpose
from hilo.rewrite.pattern import COMMUTATIVE
from hilo.rewrite.rules import arg

REDUCE = RuleSet("reduce")


def _reduce_units(t: DType) -> list[Op]:
    s = TensorType(t)
    one = [
        reduce(arg(t, 3, 1), arg(t), dimensions=d, body=region([s, s], f))
        for f in (add, maximum, multiply)
        for d in ((1,), ())
    ]
    two = reduce(
        arg(t, 3, 1),
        arg(t, 3, 1),
        arg(t),
        arg(t),
        dimensions=(1,),
        body=region([s] * 4, lambda a, b, c, d: (add(a, c), multiply(b, d))),
    )
    return [*one, two]


@REDUCE.rule(reduce, example=_reduce_units)
def reduce_of_single_elements(op: Op) -> Op | None:
    """Each result combines the init value with one element: an elementwise op, if the body is."""
    body = op.attrs["body"]
    n = len(body.results)
    x = op.operands[0]
    if any(x.shape[d] != 1 for d in op.attrs["dimensions"]) or x.tensor.size == 0 or len(op.operands) != 2 * n:
        return None
    types = op.type.types if isinstance(op.type, Results) else (op.type,)
    shape = types[0].shape if isinstance(types[0], TensorType) else ()
    if any(p.type is not TensorType(o.dtype) for p, o in zip(body.params[n:], op.operands)):
        return None  # the body works in a wider type
    wide = widened(body, shape)
    if wide is None:
        return None
    inits = [broadcast_in_dim(i, broadcast_dimensions=(), type=i.tensor.with_shape(shape)) for i in op.operands[n:]]
    elements = [reshape(o, type=o.tensor.with_shape(shape)) for o in op.operands[:n]]
    from hilo.rewrite.bodies import instantiate

    results = instantiate(wide, [*inits, *elements])[1]
    return PACK.make(results) if isinstance(op.type, Results) else results[0]


def _reduce_transposed(t: DType) -> list[Op]:
    s = TensorType(t)
    x = transpose(arg(t, 3, 4, 2), permutation=(2, 0, 1))
    return [
        reduce(x, arg(t), dimensions=d, body=region([s, s], lambda a, b, f=f: f(a, b)))
        for f in (add, maximum)
        for d in ((0,), (0, 2), (0, 1, 2), (1, 2))
    ]


def order_is_free(name: str, t: DType) -> bool:
    """Whether a reduction by this op may take its elements in any order: always the same, or a sum (see numerics)."""
    if f"stablehlo.{name}" not in COMMUTATIVE:
        return False
    return t.kind in "biu" or name in ("maximum", "minimum") or name == "add"


@REDUCE.rule(reduce, among=("transpose",), reorders_sums=True, example=_reduce_transposed)
def reduce_of_transpose(op: Op) -> Op | None:
    """A reduction by an op that commutes sees no transpose, if the dims that are left keep their order."""
    if len(op.operands) != 2 or op.operands[0].kind.name != "transpose":
        return None
    if not order_is_free(sole_op(op.attrs["body"]), op.dtype):
        return None
    p = op.operands[0].attrs["permutation"]
    dims = op.attrs["dimensions"]
    left = [i for d, i in enumerate(p) if d not in dims]
    if left != sorted(left):
        return None
    changed = op.attrs.replace(dimensions=tuple(sorted(p[d] for d in dims)))
    return op.kind.make((op.operands[0].operands[0], op.operands[1]), changed)


def _map_examples(t: DType) -> list[Op]:
    s = TensorType(t)
    return [map_(arg(t, 5), arg(t, 5), dimensions=(0,), body=region([s, s], lambda a, b: subtract(multiply(a, b), a)))]


@REDUCE.rule(map_, example=_map_examples)
def map_of_elementwise(op: Op) -> Op | None:
    """A scalar function of elementwise ops, mapped over tensors, is those ops on tensors."""
    body = op.attrs["body"]
    if len(body.params) != len(op.operands) or any(
        p.type is not TensorType(o.dtype) for p, o in zip(body.params, op.operands)
    ):
        return None  # captures
    wide = widened(body, op.operands[0].shape)
    if wide is None or len(wide.results) != 1 or wide.results[0].type is not op.type:
        return None
    from hilo.rewrite.bodies import instantiate

    return instantiate(wide, op.operands)[1][0]
