"""Rules about branches that are decided, and tuples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hilo.ir.dtypes import DType, i1, i32
from hilo.ir.module import Function, region
from hilo.ir.op import Array, Op
from hilo.ir.types import Results, TensorType
from hilo.rewrite import PACK, RuleSet
from hilo.rewrite.bodies import instantiate
from hilo.rewrite.ops import add, case, convert, get_tuple_element, if_, tuple_
from hilo.rewrite.pattern import constant, splat
from hilo.rewrite.regions import Effects
from hilo.rewrite.rules import arg

CONTROL = RuleSet("control")


def pack(values: Sequence[Op], like: Op) -> Op:
    """`values` as what replaces an op with the results of `like`."""
    return PACK.make(values) if isinstance(like.type, Results) else values[0]


def is_pure(f: Function) -> bool:
    effects = Effects()
    return not any(effects.of(op) for op in f.ops)


# ---- if, case
def branches_example(t: DType, n: int) -> list[Function]:
    s = TensorType(t, (3,))
    return [region([s, s], f) for f in (lambda a, b: (add(a, b), a), lambda a, b: (a, b), lambda a, b: (b, a))][:n]


def _if(pred: Op, t: DType) -> Op:
    yes, no = branches_example(t, 2)
    return if_(pred, arg(t, 3), arg(t, 3), true_branch=yes, false_branch=no)


def _case(index: Op, t: DType, n: int = 3) -> Op:
    return case(index, arg(t, 3), arg(t, 3), branches=tuple(branches_example(t, n)))


@CONTROL.rule(if_, example=lambda t: [_if(splat(v, TensorType(i1)), t) for v in (True, False)])
def if_with_known_condition(op: Op) -> Op | None:
    """The branch that is taken replaces the `if`."""
    pred, *captures = op.operands
    yes, no = op.attrs["true_branch"], op.attrs["false_branch"]
    if pred.kind.name != "constant" and yes != no:
        return None
    taken = yes if yes == no or pred.attrs["value"].scalar else no
    return pack(instantiate(taken, captures)[1], op) if is_pure(taken) else None


@CONTROL.rule(
    case, example=lambda t: [_case(constant(Array(np.int32(v))), t) for v in (0, 1, 7, -1)] + [_case(arg(i32), t, 1)]
)
def case_with_known_index(op: Op) -> Op | None:
    """The branch that is taken replaces the `case`; an index out of range means the last one."""
    index, *captures = op.operands
    branches = op.attrs["branches"]
    if len(branches) == 1:
        k = 0
    elif index.kind.name == "constant":
        k = int(index.attrs["value"].scalar)
    else:
        return None
    taken = branches[k if 0 <= k < len(branches) else -1]
    return pack(instantiate(taken, captures)[1], op) if is_pure(taken) else None


@CONTROL.rule(case, example=lambda t: [_case(convert(arg(i1), type=TensorType(i32)), t, 2)])
def case_of_boolean_is_if(op: Op) -> Op | None:
    """`case` on a converted boolean with two branches, as frameworks write `cond`."""
    index, *captures = op.operands
    branches = op.attrs["branches"]
    if len(branches) != 2 or index.kind.name != "convert" or index.operands[0].dtype is not i1:
        return None
    return if_(index.operands[0], *captures, true_branch=branches[1], false_branch=branches[0])


# ---- tuples
@CONTROL.rule(
    get_tuple_element, example=lambda t: [get_tuple_element(tuple_(arg(t, 2), arg(i32, 3)), index=k) for k in (0, 1)]
)
def element_of_tuple(op: Op) -> Op | None:
    source = op.operands[0]
    return source.operands[op.attrs["index"]] if source.kind.name == "tuple" else None
