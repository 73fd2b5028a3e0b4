"""Which instructions ops with regions, calls, tuples, tokens and collectives become. Imports its siblings and ir."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from hilo.custom_calls.site import TYPED_FFI
from hilo.errors import Unsupported
from hilo.formats.hlo_text.annotations import CONFIG, FRONTEND, FUSION, dictionary_of, text_of
from hilo.formats.hlo_text.control import API_VERSIONS
from hilo.formats.hlo_text.model import Instruction, Layout, Shape, shape_of, tuple_of
from hilo.formats.mlir_text.attr_printer import by_type
from hilo.ir.dtypes import u32
from hilo.ir.module import Function
from hilo.ir.op import Attrs, Op, Opaque
from hilo.ir.types import TOKEN, FutureType, TensorType, Type, result_types

if TYPE_CHECKING:
    from hilo.formats.hlo_text.emit import BodyEmitter

_API_NAMES: Final = {number: name for name, number in API_VERSIONS.items()}


def _error(op: Op, message: str) -> Unsupported:
    return Unsupported(message, loc=op.loc, op=op.kind.full_name)


_USUAL: Final = {"stride": 1, "pad": (0, 0), "lhs_dilate": 1, "rhs_dilate": 1, "rhs_reversal": False}


def window(size: tuple[int, ...], **fields: tuple[Any, ...] | None) -> dict[str, Any]:
    """A window, without the fields that say nothing."""
    found: dict[str, Any] = {"size": size} if size else {}
    for name, values in fields.items():
        if values and any(v != _USUAL[name] for v in values):
            found[name] = tuple(values)
    return found


# -- computations applied to elements -----------------------------------------------------------


def _applied(e: BodyEmitter, op: Op, name: str, own: int) -> Any:
    """The computation of region `name`, which has `own` parameters beside what it captures."""
    f: Function = op.attrs[name]
    captured = op.operands[len(op.operands) - (len(f.params) - own) :] if len(f.params) > own else ()
    return e.module.region(f, captured, op)


def _as_accumulated(e: BodyEmitter, op: Op, count: int) -> list[Instruction]:
    """The inputs and initial values of a reduction, in the element types that its body computes in."""
    f: Function = op.attrs["body"]
    operands = e.operands(op)[:count]
    types = [r.tensor.dtype for r in f.results] * 2
    out = []
    for i, t in zip(operands, types, strict=True):
        x = i.declared.type
        assert isinstance(x, TensorType)
        out.append(i if x.dtype is t else e.add("convert", x.with_dtype(t), [i]))
    return out


def _reduce(e: BodyEmitter, op: Op) -> Instruction:
    count = 2 * len(op.attrs["body"].results)
    operands = _as_accumulated(e, op, count)
    return e.add("reduce", op.type, operands, dimensions=op.attrs["dimensions"],
                 to_apply=_applied(e, op, "body", count))  # fmt: skip


def _reduce_window(e: BodyEmitter, op: Op) -> Instruction:
    a, count = op.attrs, 2 * len(op.attrs["body"].results)
    operands = _as_accumulated(e, op, count)
    shown = window(
        a["window_dimensions"], stride=a.get("window_strides"), pad=a.get("padding"),
        lhs_dilate=a.get("base_dilations"), rhs_dilate=a.get("window_dilations"),
    )  # fmt: skip
    return e.add("reduce-window", op.type, operands, window=shown or None, to_apply=_applied(e, op, "body", count))


def _select_and_scatter(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    x = op.operands[0].tensor
    size = a.get("window_dimensions") or (1,) * x.rank
    shown = window(size, stride=a.get("window_strides"), pad=a.get("padding"))
    return e.add("select-and-scatter", op.type, e.operands(op)[:3], window=shown or None,
                 select=_applied(e, op, "select", 2), scatter=_applied(e, op, "scatter", 2))  # fmt: skip


def _map(e: BodyEmitter, op: Op) -> Instruction:
    f: Function = op.attrs["body"]
    count = sum(1 for o in op.operands if o.tensor.shape == op.tensor.shape)
    return e.add("map", op.type, e.operands(op)[:count], dimensions=op.attrs["dimensions"],
                 to_apply=_applied(e, op, "body", min(count, len(f.params))))  # fmt: skip


def _sort(e: BodyEmitter, op: Op) -> Instruction:
    count = len(result_types(op.type))
    return e.add(
        "sort", op.type, e.operands(op)[:count], is_stable=op.attrs.get("is_stable") or None,
        dimensions=(op.attrs["dimension"] % max(op.operands[0].tensor.rank, 1),),
        to_apply=_applied(e, op, "comparator", 2 * count),
    )  # fmt: skip


_SCATTER: Final = ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "index_vector_dim")


def _scatter(e: BodyEmitter, op: Op) -> Instruction:
    a, count = op.attrs, len(result_types(op.type))
    attrs: dict[str, Any] = {name: a[name] for name in _SCATTER}
    for name in ("input_batching_dims", "scatter_indices_batching_dims", "indices_are_sorted", "unique_indices"):
        attrs[name] = a[name] or None
    return e.add("scatter", op.type, e.operands(op)[: 2 * count + 1],
                 to_apply=_applied(e, op, "update_computation", 2 * count), **attrs)  # fmt: skip


# -- loops and branches -------------------------------------------------------------------------


def _while(e: BodyEmitter, op: Op) -> Instruction:
    """What the regions capture is carried along, and not changed."""
    cond, body = op.attrs["cond"], op.attrs["body"]
    own = len(result_types(op.type))
    operands = e.operands(op)
    whole = e.one(operands)
    made = e.add(
        "while", whole.declared, [whole], condition=e.module.packed(cond, own, returns_captures=False),
        body=e.module.packed(body, own, returns_captures=True),
    )  # fmt: skip
    if own == len(operands):
        return made
    return e.one([e.take(made, k) for k in range(own)])


def _if(e: BodyEmitter, op: Op) -> Instruction:
    return _conditional(e, op, (op.attrs["true_branch"], op.attrs["false_branch"]))


def _case(e: BodyEmitter, op: Op) -> Instruction:
    return _conditional(e, op, op.attrs["branches"])


def _conditional(e: BodyEmitter, op: Op, branches: tuple[Function, ...]) -> Instruction:
    selector, *captured = e.operands(op)
    whole = e.one(captured)
    callees = [e.module.packed(f, len(captured), returns_captures=False) for f in branches]
    operands = [selector, *[whole] * len(callees)]
    if op.name == "if":
        return e.add("conditional", op.type, operands, true_computation=callees[0], false_computation=callees[1])
    return e.add("conditional", op.type, operands, branch_computations=tuple(callees))


# -- calls --------------------------------------------------------------------------------------


def _call(e: BodyEmitter, op: Op) -> Instruction:
    callee = e.module.function(op.attrs["callee"])
    if kind := text_of(op.attrs, FUSION):
        return e.add("fusion", op.type, e.operands(op), kind=kind, calls=callee)
    return e.add("call", op.type, e.operands(op), to_apply=callee)


# What a fusion is for, in XLA's words.
_FUSION_KINDS: Final = {"loop": "kLoop", "rows": "kInput", "contraction": "kOutput", "attention": "kCustom",
                        "online": "kCustom"}


def _fusion(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("fusion", op.type, e.operands(op), kind=_FUSION_KINDS[op.attrs["kind"]],
                 calls=e.module.region(op.attrs["body"], (), op))  # fmt: skip


def _composite(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    frontend = Attrs(dictionary_of(a, FRONTEND) or {}, **{
        "composite.attributes": by_type(a["composite_attributes"] or Attrs()), "composite.name": a["name"],
        "composite.version": str(a["version"]),
    })  # fmt: skip
    return e.add("call", op.type, e.operands(op), to_apply=e.module.function(a["decomposition"]), is_composite=True,
                 frontend_attributes=frontend)  # fmt: skip


def _custom_call(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    config, api = a["backend_config"], a["api_version"]
    if not config and isinstance(typed := a.get(CONFIG), Opaque) and typed.startswith("{"):  # as JAX writes it
        config, api = str(typed), TYPED_FFI
    if isinstance(config, Attrs):
        config = by_type(config)
    if api not in _API_NAMES:
        raise _error(op, f"HLO has no api_version {api}")
    callees = tuple(e.module.function(name) for name in a["called_computations"] or ())
    aliases = tuple(_alias(x) for x in a["output_operand_aliases"] or ())
    operand_shapes, shape = _constrained(op)
    return e.add(
        "custom-call", shape, e.operands(op), custom_call_target=a["call_target_name"],
        custom_call_has_side_effect=a["has_side_effect"] or None,
        api_version=_API_NAMES[api] if api != 1 else None, called_computations=callees or None,
        operand_layout_constraints=operand_shapes, output_to_operand_aliasing=aliases or None,
        backend_config=str(config) or None,
    )  # fmt: skip


def _alias(a: Attrs) -> tuple[Any, ...]:
    return a["output_tuple_indices"], a["operand_index"], a["operand_tuple_indices"], ""


def _constrained(op: Op) -> tuple[tuple[Shape, ...] | None, Shape | Type]:
    """Operand shapes with layouts and the result's shape, where the op has layouts."""
    operands, results = op.attrs.get("operand_layouts"), op.attrs.get("result_layouts")
    if not operands and not results:
        return None, op.type
    types = result_types(op.type)
    shapes = [_laid_out(t, layout) for t, layout in zip(types, results or [None] * len(types), strict=False)]
    inputs = [o.type for o in op.operands]
    constraints = tuple(_laid_out(t, o) for t, o in zip(inputs, operands or [None] * len(inputs), strict=False))
    return constraints, shapes[0] if len(shapes) == 1 else tuple_of(shapes)


def _laid_out(t: Type, order: tuple[int, ...] | None) -> Shape:
    if not isinstance(t, TensorType) or order is None or len(order) != t.rank or not t.rank:
        return shape_of(t)
    layout = Layout(tuple(order))
    return Shape(t, None if layout.is_default else layout)


# -- tuples and tokens --------------------------------------------------------------------------


def _tuple(e: BodyEmitter, op: Op) -> Instruction:
    return e.tuple(e.operands(op))


def _get_tuple_element(e: BodyEmitter, op: Op) -> Instruction:
    return e.take(e.operands(op)[0], op.attrs["index"])


def _barrier(e: BodyEmitter, op: Op) -> Instruction:
    whole = e.one(e.operands(op))
    return e.add("opt-barrier", whole.declared, [whole])


def _after_all(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("after-all", TOKEN, e.operands(op))


def _infeed(e: BodyEmitter, op: Op) -> Instruction:
    """Data and token are nested: `((data, ...), token)`."""
    *data, _ = result_types(op.type)
    shape = tuple_of([tuple_of([shape_of(t) for t in data]), shape_of(TOKEN)])
    made = e.add("infeed", shape, e.operands(op), infeed_config=op.attrs.get("infeed_config") or None)
    whole = e.take(made, 0)
    parts = [*(e.take(whole, k) for k in range(len(data))), e.take(made, 1)]
    e.parts[op] = parts
    return parts[0] if len(parts) == 1 else made


def _outfeed(e: BodyEmitter, op: Op) -> Instruction:
    *data, token = e.operands(op)
    whole = e.tuple(data)
    return e.add("outfeed", TOKEN, [whole, token], outfeed_shape=whole.declared,
                 outfeed_config=op.attrs.get("outfeed_config") or None)  # fmt: skip


def _send(e: BodyEmitter, op: Op) -> Instruction:
    *data, token = e.operands(op)
    whole = e.one(data)
    channel, host = op.attrs["channel_handle"][0], op.attrs.get("is_host_transfer") or None
    shape = tuple_of([whole.declared, shape_of(TensorType(u32)), shape_of(TOKEN)])
    sent = e.add("send", shape, [whole, token], channel_id=channel, is_host_transfer=host)
    return e.add("send-done", TOKEN, [sent], channel_id=channel, is_host_transfer=host)


def _recv(e: BodyEmitter, op: Op) -> Instruction:
    *data, _ = result_types(op.type)
    shapes = [shape_of(t) for t in data]
    inner = shapes[0] if len(shapes) == 1 else tuple_of(shapes)
    channel, host = op.attrs["channel_handle"][0], op.attrs.get("is_host_transfer") or None
    shape = tuple_of([inner, shape_of(TensorType(u32)), shape_of(TOKEN)])
    begun = e.add("recv", shape, e.operands(op), channel_id=channel, is_host_transfer=host)
    made = e.add("recv-done", tuple_of([inner, shape_of(TOKEN)]), [begun], channel_id=channel, is_host_transfer=host)
    whole = e.take(made, 0)
    values = [whole] if len(data) == 1 else [e.take(whole, k) for k in range(len(data))]
    e.parts[op] = [*values, e.take(made, 1)]
    return made


# -- collectives --------------------------------------------------------------------------------


def _groups(op: Op) -> dict[str, Any]:
    groups = op.attrs.get("replica_groups", ())
    if not isinstance(groups, tuple):
        raise _error(op, "replica groups by the axes of a mesh have no HLO text here")
    handle = op.attrs.get("channel_handle")
    return {
        "replica_groups": tuple(tuple(d for d in g if d >= 0) for g in groups),
        "channel_id": handle[0] if handle and handle[0] else None,
        "use_global_device_ids": op.attrs.get("use_global_device_ids") or None,
    }


def _all_reduce(e: BodyEmitter, op: Op, opcode: str = "all-reduce") -> Instruction:
    region = op.attrs["computation"]
    count = len(result_types(op.type))
    return e.add(opcode, op.type, e.operands(op)[:count],
                 to_apply=e.module.region(region, op.operands[count:], op), **_groups(op))  # fmt: skip


def _collective_reduce(e: BodyEmitter, op: Op) -> Instruction:
    if op.attrs["has_dynamic_root"]:
        raise _error(op, "a root that is computed has no HLO text here")
    return _all_reduce(e, op, "collective-reduce")


def _reduce_scatter(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("reduce-scatter", op.type, e.operands(op)[:1], dimensions=(op.attrs["scatter_dimension"],),
                 to_apply=e.module.region(op.attrs["computation"], op.operands[1:], op), **_groups(op))  # fmt: skip


def _all_gather(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("all-gather", op.type, e.operands(op), dimensions=(op.attrs["all_gather_dim"],), **_groups(op))


def _all_to_all(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    if a["split_dimension"] != a["concat_dimension"] or len(op.operands) != 1:
        raise _error(op, "HLO's all-to-all splits and joins one array along the same dimension")
    attrs = _groups(op)
    del attrs["use_global_device_ids"]
    return e.add("all-to-all", op.type, e.operands(op), dimensions=(a["split_dimension"],), **attrs)


def _permute(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("collective-permute", op.type, e.operands(op), source_target_pairs=op.attrs["source_target_pairs"],
                 channel_id=_groups(op)["channel_id"])  # fmt: skip


def _collective_broadcast(e: BodyEmitter, op: Op) -> Instruction:
    if op.attrs["has_dynamic_root"]:
        raise _error(op, "a root that is computed has no HLO text here")
    attrs = _groups(op)
    del attrs["use_global_device_ids"]
    return e.add("collective-broadcast", op.type, e.operands(op), **attrs)


# -- asynchronous forms -------------------------------------------------------------------------


def _async_start(e: BodyEmitter, op: Op) -> Instruction:
    """The start of a computation; its result is a tuple of the operands, what is waited for, and a context."""
    operands = e.operands(op)
    computation = e.module.region(op.attrs["body"], (), op)
    assert isinstance(op.type, FutureType)
    shape = tuple_of([tuple_of([o.declared for o in operands]), shape_of(op.type[0]), shape_of(TensorType(u32))])
    return e.add("async-start", shape, operands, calls=computation)


def _async_done(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("async-done", op.type, e.operands(op))


EMIT: Final[dict[str, Callable[[Any, Op], Instruction]]] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.map": _map,
    "stablehlo.sort": _sort,
    "stablehlo.scatter": _scatter,
    "stablehlo.while": _while,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
    "func.call": _call,
    "hilo.fusion": _fusion,
    "stablehlo.composite": _composite,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.tuple": _tuple,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.after_all": _after_all,
    "stablehlo.create_token": _after_all,
    "stablehlo.infeed": _infeed,
    "stablehlo.outfeed": _outfeed,
    "stablehlo.send": _send,
    "stablehlo.recv": _recv,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_permute": _permute,
    "stablehlo.collective_broadcast": _collective_broadcast,
    "stablehlo.collective_reduce": _collective_reduce,
    "stablehlo.async_start": _async_start,
    "stablehlo.async_done": _async_done,
}
