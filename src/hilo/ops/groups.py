"""What collective ops do in a grid of processes: who is in a group, and what comes of what all of it have. Imports ir.

An op's replica_groups are read by one of the specification's strategies. All processes of a group meet
(`ir.process`), each with its operands; what follows each of them computes for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hilo.errors import Error, require
from hilo.ir.dtypes import DType
from hilo.ir.interpret import running
from hilo.ir.module import Function
from hilo.ir.op import Opaque
from hilo.ir.process import Id, Process
from hilo.ir.types import TensorType
from hilo.ops.checks import same_dim
from hilo.ops.mesh import groups_along
from hilo.ops.numeric import narrow
from hilo.ops.regions import apply

Groups = Sequence[Sequence[int]]
Channel = tuple[int, int] | None

REPLICA: Final = "cross_replica"
PARTITION: Final = "cross_partition"
BOTH: Final = "cross_replica_and_partition"
FLAT: Final = "flattened_ids"


def listed(groups: Groups) -> Groups:
    """Groups along the axes of a mesh as lists of numbers; others as they are."""
    return groups_along(groups, running()) if isinstance(groups, Opaque) else groups


def channel_id(channel: Channel) -> int:
    return 0 if channel is None else channel[0]


def along(channel: Channel) -> str:
    """The strategy of ops that go along one axis of the grid: partitions if they have a channel, else replicas."""
    return PARTITION if channel_id(channel) > 0 else REPLICA


def across(channel: Channel, use_global_device_ids: bool) -> str:
    """The strategy of ops that may go along both axes of the grid."""
    if channel_id(channel) <= 0:
        return REPLICA
    return FLAT if use_global_device_ids else BOTH


def group_of(me: Process, how: str, groups: Groups, rule: str, whole: str = "") -> tuple[Id, ...] | None:
    """The processes of the group that `me` is in; None if it is in none. No groups at all: one of everybody.

    `how` is the strategy. Numbers must be those of the grid (constraint `rule`), and all of them (constraint `whole`,
    if there is one).
    """
    groups = listed(groups)
    grid = me.grid
    count, mine, what = {
        REPLICA: (grid.replicas, me.replica, "replicas"),
        BOTH: (grid.replicas, me.replica, "replicas"),
        PARTITION: (grid.partitions, me.partition, "partitions"),
        FLAT: (grid.replicas * grid.partitions, me.number, "processes"),
    }[how]
    rows = [[n for n in g if n >= 0] for g in groups] or [list(range(count))]
    named = [n for row in rows for n in row]
    require(all(n < count for n in named), rule, "groups {g} name more than the {c} {w} of the grid",
            g=tuple(map(tuple, groups)), c=count, w=what)  # fmt: skip
    require(not whole or len(named) == count, whole, "groups {g} must name all {c} {w} of the grid",
            g=tuple(map(tuple, groups)), c=count, w=what)  # fmt: skip
    row = next((row for row in rows if mine in row), None)
    if row is None:
        return None
    if how == REPLICA:
        return tuple((r, me.partition) for r in row)
    if how == PARTITION:
        return tuple((me.replica, p) for p in row)
    if how == BOTH:
        return tuple((r, p) for p in range(grid.partitions) for r in row)
    return tuple(divmod(n, grid.partitions) for n in row)


def whole_group(me: Process, groups: Groups, how: str, whole: str, rule: str) -> tuple[Id, ...]:
    """The group of `me`, where the groups must hold all processes (constraint `whole`; `rule` on their numbers)."""
    group = group_of(me, how, groups, rule, whole)
    assert group is not None
    return group


def pairs_of(me: Process, channel: Channel, pairs: Groups, rule: str) -> list[tuple[Id, Id]]:
    """The (source, target) in which `me` is one, in order; pairs of numbers along one axis of the grid."""
    partitions = along(channel) == PARTITION
    count, mine = (me.grid.partitions, me.partition) if partitions else (me.grid.replicas, me.replica)
    require(all(0 <= n < count for p in pairs for n in p), rule, "pairs {p} name more than the {c} {w} of the grid",
            p=tuple(map(tuple, pairs)), c=count, w="partitions" if partitions else "replicas")  # fmt: skip

    def at(n: int) -> Id:
        return (me.replica, n) if partitions else (n, me.partition)

    return [(at(s), at(t)) for s, t in pairs if mine in (s, t)]


def gathered(me: Process, op: str, channel: Channel, group: Sequence[Id], xs: Sequence[Any]) -> list[list[np.ndarray]]:
    """For each operand what the processes of the group have, in the group's order; all of one type."""
    found = me.meet(f"stablehlo.{op}", channel_id(channel), group, tuple(xs))
    for p, theirs in zip(group, found, strict=True):
        if len(theirs) != len(xs):
            raise Error(f"process {me.id} has {len(xs)} operands here, but {p} has {len(theirs)}")
        for i, (x, y) in enumerate(zip(xs, theirs, strict=True)):
            if x.shape != y.shape or x.dtype != y.dtype:
                raise Error(f"operand {i} is {x.dtype}{list(x.shape)} in process {me.id}, "
                            f"but {y.dtype}{list(y.shape)} in {p}")  # fmt: skip
    return [list(each) for each in zip(*found, strict=True)]


def promoted(x: np.ndarray, d: DType) -> np.ndarray:
    return x if x.dtype == d.np else narrow(x, d) if d.kind in "fc" else x.astype(d.np)


def combined(values: Sequence[np.ndarray], computation: Function, d: DType) -> np.ndarray:
    """The values of a group, combined element by element in the group's order."""
    total, *others = [promoted(x, d) for x in values]
    for x in others:
        (total,) = apply(computation, [total, x], (), total.shape)
    return np.asarray(total)


def part(x: np.ndarray, axis: int, count: int, index: int) -> np.ndarray:
    """Part `index` of `count` equal parts of `x` along `axis`."""
    n = x.shape[axis] // count
    at = [slice(None)] * x.ndim
    at[axis] = slice(index * n, (index + 1) * n)
    return x[tuple(at)]


def roots_of(roots: np.ndarray | None, operands: int, processes: int, rule: str) -> list[int]:
    """For each operand the place in its group of the process that it comes from, or goes to; None: the first."""
    if roots is None:
        return [0] * operands
    found = [int(r) for r in roots]
    ok = all(0 <= r < processes for r in found)
    require(ok, rule, "roots {r} must be places in a group of {n}", r=found, n=processes)
    return found


def check_size(x: np.ndarray, t: TensorType, rule: str, processes: int) -> None:
    ok = x.ndim == t.rank and all(map(same_dim, x.shape, t.shape))
    require(ok, rule, "the result of {p} processes has the shape {s}, but its type is {t}", p=processes, s=x.shape, t=t)
