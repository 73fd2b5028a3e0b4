"""Collectives that send what one process has: collective_permute, collective_broadcast. Imports ir, ops/collectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import f32, i32
from hilo.ir.op import Op
from hilo.ir.process import current
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.checks import one_or_results, one_or_tuple, same_dim, tensors, unique
from hilo.ops.collectives import alone, check_groups, check_rows, free, one_or_ops
from hilo.ops.decompose import full
from hilo.ops.groups import Channel, Groups, along, gathered, group_of, pairs_of, roots_of
from hilo.ops.sharding import passed_through


@op("collective_permute")
class collective_permute:
    """Send the operand from each source to its target; a process that nobody sends to gets zeros.

    `source_target_pairs` lists (source, target). Spec: collective_permute.
    """

    attrs = {"channel_handle": None}

    @staticmethod
    def infer(x: Type, *, source_target_pairs: Groups, channel_handle: tuple[int, int] | None) -> Type:
        check_pairs(source_target_pairs, ("C1", "C2", "C3", "C4"))
        return tensors((x,))[0]

    @staticmethod
    def evaluate(x: np.ndarray, *, source_target_pairs: Groups, channel_handle: Channel) -> np.ndarray:
        if (me := current()) is None:
            return x if _sends_to_itself(source_target_pairs) else np.zeros_like(x)
        result = np.zeros_like(x)
        for source, target in pairs_of(me, channel_handle, source_target_pairs, "C4"):
            group = tuple(dict.fromkeys((source, target)))
            (values,) = gathered(me, "collective_permute", channel_handle, group, [x])
            result = values[0] if target == me.id else result
        return result

    @staticmethod
    def expand(x: Op, *, source_target_pairs: Groups, **_: Any) -> Op:
        return x if _sends_to_itself(source_target_pairs) else full(0, x.dtype, x.shape)

    sharding = staticmethod(passed_through)
    cost = staticmethod(free)
    examples = [
        ((TensorType(f32, (2, 3)),), {"source_target_pairs": ((0, 0),)}),
        ((TensorType(f32, (2, 3)),), {"source_target_pairs": ()}),
    ]


def check_pairs(pairs: Groups, rules: tuple[str, str, str, str], label: str = "I2") -> None:
    """Require pairs of process numbers, each number at most once a source and once a target."""
    check_rows(pairs, "source_target_pairs", label)
    require(all(len(p) == 2 for p in pairs), rules[0], "source_target_pairs {p} must be pairs", p=pairs)
    for side, rule in ((0, rules[1]), (1, rules[2])):
        ok = unique([p[side] for p in pairs])
        require(ok, rule, "source_target_pairs {p} name a {s} twice", p=pairs, s=("source", "target")[side])
    require(all(n >= 0 for p in pairs for n in p), rules[3], "source_target_pairs {p} are negative", p=pairs)


def _sends_to_itself(pairs: Groups) -> bool:
    if any(n > 0 for p in pairs for n in p):
        raise Unsupported(f"pairs {tuple(map(tuple, pairs))} need several processes, but the program runs as one; "
                          "hilo.interpret_parallel simulates several")  # fmt: skip
    return bool(pairs)


@op("collective_broadcast")
class collective_broadcast:
    """The operands of the first process of a group; a process in no group gets zeros.

    With `has_dynamic_root` the last operand says, for each operand, which process of the group it comes from.
    Spec: collective_broadcast.
    """

    attrs = {"channel_handle": None, "has_dynamic_root": False}

    @staticmethod
    def infer(*types: Type, replica_groups: Groups, channel_handle: tuple[int, int] | None,
              has_dynamic_root: bool) -> Type:  # fmt: skip
        xs = tensors(types)
        check_groups(replica_groups, ("C1", "C2"), "I2", dense=False)
        n = len(xs) - has_dynamic_root
        require(n >= 1, "C4" if has_dynamic_root else "C3", "too few operands: {n}", n=len(xs))
        if has_dynamic_root:
            ok = xs[-1].dtype is i32 and xs[-1].rank == 1 and same_dim(xs[-1].shape[0], n)
            require(ok, "C4", "the roots must be a vector of {n} i32, not {t}", n=n, t=xs[-1])
        return one_or_results(xs[:n])

    @staticmethod
    def evaluate(*xs: np.ndarray, replica_groups: Groups, channel_handle: Channel, has_dynamic_root: bool) -> Any:
        data = xs[: len(xs) - has_dynamic_root]
        if (me := current()) is None:
            here = alone(replica_groups)
            return one_or_tuple([x if here else np.zeros_like(x) for x in data])
        group = group_of(me, along(channel_handle), replica_groups, "C2")
        if group is None:
            return one_or_tuple([np.zeros_like(x) for x in data])
        roots = roots_of(xs[-1] if has_dynamic_root else None, len(data), len(group), "C6")
        each = gathered(me, "collective_broadcast", channel_handle, group, data)
        return one_or_tuple([values[r] for values, r in zip(each, roots, strict=True)])

    @staticmethod
    def expand(*xs: Op, replica_groups: Groups, has_dynamic_root: bool, **_: Any) -> Op | tuple[Op, ...]:
        here = alone(replica_groups)
        return one_or_ops([x if here else full(0, x.dtype, x.shape) for x in xs[: len(xs) - has_dynamic_root]])

    sharding = staticmethod(passed_through)
    cost = staticmethod(free)
    examples = [
        ((TensorType(f32, (2, 3)),), {"replica_groups": ((0,),)}),
        ((TensorType(f32, (2,)), TensorType(i32, (1,))), {"replica_groups": ((0,),), "has_dynamic_root": True}),
        ((TensorType(f32, (3,)),), {"replica_groups": ((1,),)}),
    ]
