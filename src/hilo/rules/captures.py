"""Rules about what regions capture: constants move into them."""

from __future__ import annotations

from hilo.ir.dtypes import DType, i1, i32
from hilo.ir.module import Function, region
from hilo.ir.op import Attrs, Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet
from hilo.rewrite.ops import add, case, if_, reduce, while_
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg

CAPTURES = RuleSet("captures")

_SINK_SIZE = 1024  # elements of a constant that is cloned into regions (a splat: any size)


def _first_capture(op: Op) -> int:
    """The number of the first operand that is a capture."""
    name = op.kind.name
    return 1 if name in ("if", "case") else len(op.attrs["body"].results) * (2 if name == "reduce" else 1)


def _with_operands(op: Op, order: list[int], bound: dict[int, Op]) -> Op:
    """`op` with only the operands `order`; captures in `bound` are cloned into its regions."""
    first = 1 if op.kind.name in ("if", "case") else 0  # operands that are no parameters of the regions
    params = [i - first for i in order if i >= first]
    inside = {i - first: o for i, o in bound.items()}

    from hilo.rewrite.bodies import restrict

    def change(f: Function) -> Function:
        return restrict(f, params, bound=inside)

    attrs = {
        k: change(v)
        if isinstance(v, Function)
        else tuple(map(change, v))
        if isinstance(v, tuple) and v and isinstance(v[0], Function)
        else v
        for k, v in op.attrs.items()
    }
    return op.kind.make([op.operands[i] for i in order], Attrs(attrs))


def _capturing(t: DType) -> list[Op]:
    from hilo.rules.control import branches_example
    from hilo.rules.loops import counting, upto

    s = TensorType(t, (3,))
    one, i = splat(1, s), TensorType(i32)
    types = [i, s, s, s]
    x = arg(t, 3)
    loop = while_(
        splat(0, i),
        x,
        one,
        one,
        cond=region(types, upto(2)),
        body=region(types, lambda i, x, c, d: (counting(i), add(add(x, c), d))),
    )
    e = TensorType(t)
    total = reduce(
        arg(t, 4), arg(t), splat(1, e), dimensions=(0,), body=region([e] * 3, lambda a, b, c: add(a, add(b, c)))
    )
    yes, no = branches_example(t, 2)
    return [loop, if_(arg(i1), x, one, true_branch=yes, false_branch=no), total]


@CAPTURES.rule(while_, if_, case, reduce, example=_capturing)
def constants_move_into_regions(op: Op) -> Op | None:
    """A captured constant is cloned into the regions, where rules can see it."""
    first = _first_capture(op)
    bound = {i: o for i, o in enumerate(op.operands) if i >= first and o.kind.name == "constant" and _small(o)}
    if not bound:
        return None
    return _with_operands(op, [i for i in range(len(op.operands)) if i not in bound], bound)


def _small(o: Op) -> bool:
    return o.attrs["value"].is_splat or o.tensor.size <= _SINK_SIZE
