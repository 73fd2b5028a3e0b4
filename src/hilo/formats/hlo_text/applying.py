"""Instructions that apply a computation to elements (reduce, scatter, sort ...), and collectives. Imports lower, ir."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hilo.errors import Unsupported
from hilo.formats.hlo_text.model import Instruction
from hilo.ir.op import Op
from hilo.ir.types import TensorType

if TYPE_CHECKING:
    from hilo.formats.hlo_text.lower import Body

_CHANNEL_TYPE: Final = 1  # device to device


def _reduce(b: Body, i: Instruction) -> Op:
    body = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.reduce", b.leaves(i), dimensions=i["dimensions"], body=body)


def _map(b: Body, i: Instruction) -> Op:
    body = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.map", b.leaves(i), dimensions=i.get("dimensions", ()), body=body)


def _window(i: Instruction, rank: int) -> dict[str, Any]:
    """The window of reduce-window and select-and-scatter, with all its fields."""
    window = i.get("window", {})
    if "rhs_reversal" in window and any(window["rhs_reversal"]):
        raise i.error("reversed windows are not supported here", Unsupported)
    ones = (1,) * rank
    return {
        "window_dimensions": window.get("size", ones),
        "window_strides": window.get("stride", ones),
        "padding": window.get("pad", ((0, 0),) * rank),
        "base_dilations": window.get("lhs_dilate", ones),
        "window_dilations": window.get("rhs_dilate", ones),
    }


def _rank(b: Body, i: Instruction) -> int:
    return len(getattr(b.operand(i).leaves[0].type, "shape", ())) if b.operand(i).leaves else 0


def _reduce_window(b: Body, i: Instruction) -> Op:
    body = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.reduce_window", b.leaves(i), body=body, **_window(i, _rank(b, i)))


def _select_and_scatter(b: Body, i: Instruction) -> Op:
    window = _window(i, _rank(b, i))
    for key in ("base_dilations", "window_dilations"):
        if any(n != 1 for n in window.pop(key)):
            raise i.error("dilated windows are not supported here", Unsupported)
    select, scatter = b.region(i, i["select"]), b.region(i, i["scatter"])
    return b.op(i, "stablehlo.select_and_scatter", b.leaves(i, 3), select=select, scatter=scatter, **window)


def _sort(b: Body, i: Instruction) -> Op:
    comparator = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.sort", b.leaves(i), dimension=one_dimension(i), is_stable=i.get("is_stable", False),
                comparator=comparator)  # fmt: skip


_SCATTER: Final[dict[str, Any]] = {
    "update_window_dims": (), "inserted_window_dims": (), "input_batching_dims": (),
    "scatter_indices_batching_dims": (), "scatter_dims_to_operand_dims": (), "indices_are_sorted": False,
    "unique_indices": False,
}  # fmt: skip


def _scatter(b: Body, i: Instruction) -> Op:
    attrs = {name: i.get(name, default) for name, default in _SCATTER.items()}
    update = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.scatter", b.leaves(i), index_vector_dim=i["index_vector_dim"],
                update_computation=update, **attrs)  # fmt: skip


# -- collectives --------------------------------------------------------------------------------


def _groups(i: Instruction, *, global_ids: bool) -> dict[str, Any]:
    """The attributes that collectives share."""
    groups = i.get("replica_groups", ())
    width = max(map(len, groups), default=0)
    attrs: dict[str, Any] = {"replica_groups": tuple(g + (-1,) * (width - len(g)) for g in groups)}
    if (channel := i.get("channel_id")) is not None:
        attrs["channel_handle"] = (channel, _CHANNEL_TYPE)
    if global_ids and i.get("use_global_device_ids"):
        attrs["use_global_device_ids"] = True
    return attrs


def one_dimension(i: Instruction) -> int:
    """The one dimension in `dimensions`."""
    dims = i["dimensions"]
    if len(dims) != 1:
        raise i.error(f"dimensions must be one dimension, not {len(dims)}")
    return dims[0]


def _all_reduce(b: Body, i: Instruction) -> Op:
    region = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.all_reduce", b.leaves(i), computation=region, **_groups(i, global_ids=True))


def _collective_reduce(b: Body, i: Instruction) -> Op:
    region = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.collective_reduce", b.leaves(i), computation=region, **_groups(i, global_ids=True))


def _reduce_scatter(b: Body, i: Instruction) -> Op:
    region = b.region(i, i["to_apply"])
    return b.op(i, "stablehlo.reduce_scatter", b.leaves(i, 1), scatter_dimension=one_dimension(i), computation=region,
                **_groups(i, global_ids=True))  # fmt: skip


def _all_gather(b: Body, i: Instruction) -> Op:
    return b.op(i, "stablehlo.all_gather", b.leaves(i), all_gather_dim=one_dimension(i), **_groups(i, global_ids=True))


def _exchange(b: Body, i: Instruction, attrs: dict[str, Any]) -> Any:
    """all-to-all of a tuple: operand k goes to participant k, result k comes from it. Here they are stacked."""
    operands = b.leaves(i)
    count = len(attrs["replica_groups"][0])
    t = operands[0].type if operands else None
    if not isinstance(t, TensorType) or len(operands) != count or any(o.type is not t for o in operands):
        raise i.error(f"all-to-all among {count} needs as many operands of one type")
    row = t.with_shape((1, *t.shape))
    rows = [b.helper(i, "stablehlo.reshape", (o,), result=row) for o in operands]
    stack = b.helper(i, "stablehlo.concatenate", rows, dimension=0)
    stack = b.helper(i, "stablehlo.all_to_all", (stack,), result=stack.type, split_dimension=0, concat_dimension=0,
                     split_count=count, **attrs)  # fmt: skip
    zeros, ones = (0,) * t.rank, (1,) * (t.rank + 1)
    made = []
    for k in range(count):
        part = b.helper(i, "stablehlo.slice", (stack,), start_indices=(k, *zeros), limit_indices=(k + 1, *t.shape),
                        strides=ones)  # fmt: skip
        made.append(b.helper(i, "stablehlo.reshape", (part,), result=t))
    return b.value(i, made)


def _all_to_all(b: Body, i: Instruction) -> Any:
    attrs = _groups(i, global_ids=False)
    groups = attrs["replica_groups"]
    if not groups:
        raise i.error("all-to-all without replica_groups is not supported", Unsupported)
    if "dimensions" not in i.attrs:
        return _exchange(b, i, attrs)
    d = one_dimension(i)
    return b.op(i, "stablehlo.all_to_all", b.leaves(i, 1), split_dimension=d, concat_dimension=d,
                split_count=len(groups[0]), **attrs)  # fmt: skip


def _permute(b: Body, i: Instruction) -> Op:
    attrs = _groups(i, global_ids=False)
    del attrs["replica_groups"]
    if i.get("slice_sizes"):
        raise i.error("collective-permute of slices is not supported", Unsupported)
    pairs = i["source_target_pairs"]
    if any(len(p) != 2 for p in pairs):
        raise i.error("source_target_pairs must be pairs")
    return b.op(i, "stablehlo.collective_permute", b.leaves(i, 1), source_target_pairs=pairs, **attrs)


def _collective_broadcast(b: Body, i: Instruction) -> Op:
    return b.op(i, "stablehlo.collective_broadcast", b.leaves(i, 1), **_groups(i, global_ids=False))


TABLE: Final[dict[str, Callable[[Any, Instruction], Any]]] = {
    "reduce": _reduce,
    "map": _map,
    "reduce-window": _reduce_window,
    "select-and-scatter": _select_and_scatter,
    "sort": _sort,
    "scatter": _scatter,
    "all-reduce": _all_reduce,
    "reduce-scatter": _reduce_scatter,
    "all-gather": _all_gather,
    "all-to-all": _all_to_all,
    "collective-permute": _permute,
    "collective-broadcast": _collective_broadcast,
    "collective-reduce": _collective_reduce,
}
