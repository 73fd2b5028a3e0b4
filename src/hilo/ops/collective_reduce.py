"""collective_reduce: an all_reduce of which one process of a group keeps the result. Imports ir, ops/collectives."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, f32, i32
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.process import current
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops import collectives as shared
from hilo.ops.checks import one_or_results, one_or_tuple, same_dim, tensors
from hilo.ops.decompose import full
from hilo.ops.elementwise_arith import add
from hilo.ops.groups import Channel, across, along, combined, gathered, group_of, promoted, roots_of
from hilo.ops.reduce import body_of
from hilo.ops.sharding import passed_through


@op("collective_reduce")
class collective_reduce:
    """Combine each operand's elements over the processes of a group with `computation`; one process has the result.

    That is the first of the group or, with `has_dynamic_root`, the one that the last operand names for each operand (by
    its place in the group). All other processes get zeros. Spec: collective_reduce.
    """

    attrs = {**shared.CHANNEL, "has_dynamic_root": False}

    @staticmethod
    def infer(*types: Type, replica_groups: shared.Groups, channel_handle: tuple[int, int] | None,
              use_global_device_ids: bool, has_dynamic_root: bool, computation: Function) -> Type:  # fmt: skip
        xs = tensors(types)
        n = len(xs) - has_dynamic_root
        require(n >= 1, "C3" if has_dynamic_root else "I1", "nothing to reduce: {n} operands{r}", n=len(xs),
                r=", of which the last is the roots" if has_dynamic_root and xs else "")  # fmt: skip
        shared.check_groups(
            replica_groups, ("C1", "C2"), "I2", padded=True, dense=False, needed=use_global_device_ids
        )
        shared.check_channel(channel_handle, use_global_device_ids, "I3")
        if has_dynamic_root:
            ok = xs[-1].dtype is i32 and xs[-1].rank == 1 and same_dim(xs[-1].shape[0], n)
            require(ok, "C3", "the roots must be a vector of {n} i32, not {t}", n=n, t=xs[-1])
        return one_or_results([x.with_dtype(shared.combined_type(computation, x, "C4")) for x in xs[:n]])

    @staticmethod
    def evaluate(*xs: np.ndarray, replica_groups: shared.Groups, channel_handle: Channel, has_dynamic_root: bool,
                 use_global_device_ids: bool, computation: Function) -> Any:  # fmt: skip
        d = tensors(computation.result_types)[0].dtype
        data = xs[: len(xs) - has_dynamic_root]
        if (me := current()) is None:
            here = shared.alone(replica_groups)
            return one_or_tuple([promoted(x if here else np.zeros_like(x), d) for x in data])
        how = across(channel_handle, True) if use_global_device_ids else along(channel_handle)
        group = group_of(me, how, replica_groups, "C2")
        if group is None:
            return one_or_tuple([promoted(np.zeros_like(x), d) for x in data])
        roots = roots_of(xs[-1] if has_dynamic_root else None, len(data), len(group), "C3")
        each = gathered(me, "collective_reduce", channel_handle, group, data)
        return one_or_tuple([
            combined(values, computation, d) if group[root] == me.id else promoted(np.zeros_like(values[0]), d)
            for values, root in zip(each, roots, strict=True)
        ])

    @staticmethod
    def expand(*xs: Op, replica_groups: shared.Groups, has_dynamic_root: bool, computation: Function,
               **_: Any) -> Op | tuple[Op, ...]:  # fmt: skip
        here = shared.alone(replica_groups)
        d = tensors(computation.result_types)[0].dtype
        data = xs[: len(xs) - has_dynamic_root]
        return shared.one_or_ops([shared.promoted_op(x, d) if here else full(0, d, x.shape) for x in data])

    sharding = staticmethod(passed_through)
    cost = staticmethod(shared.free)
    examples = [
        ((TensorType(f32, (2, 3)),), {"replica_groups": ((0,),), "computation": body_of(add, f32)}),
        ((TensorType(bf16, (3,)),), {"replica_groups": (), "computation": body_of(add, f32)}),
        ((TensorType(f32, (2,)), TensorType(f32), TensorType(i32, (2,))),
         {"replica_groups": ((0,),), "has_dynamic_root": True, "computation": body_of(add, f32)}),
        ((TensorType(f32, (3,)),), {"replica_groups": ((1,),), "computation": body_of(add, f32)}),
    ]  # fmt: skip
