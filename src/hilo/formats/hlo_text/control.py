"""Instructions about values and computations as wholes: tuples, calls, loops, branches, tokens, asynchronous forms.

Imports its siblings, rewrite.bodies and ir.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hilo.custom_calls.site import TYPED_FFI
from hilo.errors import Unsupported, VerifyError
from hilo.formats.hlo_text import schema
from hilo.formats.hlo_text.annotations import FUSION, dictionary, string
from hilo.formats.hlo_text.model import Computation, Instruction, Shape, Value, tuple_of
from hilo.formats.hlo_text.shapes import leaf_count
from hilo.ir.dtypes import i1, u32
from hilo.ir.module import Function, parameter
from hilo.ir.op import Attrs, Op
from hilo.ir.types import TOKEN, TensorType, Type, compatible
from hilo.ops.checks import one_or_results
from hilo.rewrite.bodies import instantiate

if TYPE_CHECKING:
    from hilo.formats.hlo_text.lower import Body

API_VERSIONS: Final = {
    "API_VERSION_ORIGINAL": 1, "API_VERSION_STATUS_RETURNING": 2, "API_VERSION_STATUS_RETURNING_UNIFIED": 3,
    "API_VERSION_TYPED_FFI": 4,
}  # fmt: skip
_CHANNEL_TYPES: Final = {(False, "send"): 1, (False, "recv"): 1, (True, "send"): 2, (True, "recv"): 3}


def _value(shape: Shape, leaves: Any) -> Value:
    return Value(shape, tuple(leaves))


# -- tuples -------------------------------------------------------------------------------------


def _tuple(b: Body, i: Instruction) -> Value:
    shape = i.shape or tuple_of([b.values[x].shape for x in i.operands])
    if not shape.is_tuple:
        raise i.error("the result must be a tuple")
    return _value(shape, b.leaves(i, tuples=True))


def part(i: Instruction, value: Value, index: int) -> Value:
    """Part `index` of a tuple."""
    shape = value.shape
    if not shape.is_tuple or not 0 <= index < len(shape.parts):
        raise i.error(f"there is no part {index} of a value of type {shape.type!r}")
    first = sum(leaf_count(p.type) for p in shape.parts[:index])
    chosen = shape.parts[index]
    return _value(chosen, value.leaves[first : first + leaf_count(chosen.type)])


def _get_tuple_element(b: Body, i: Instruction) -> Value:
    b.leaves(i, 1, tuples=True)
    found = part(i, b.operand(i), i["index"])
    return _value(i.shape or found.shape, found.leaves)


def _barrier(b: Body, i: Instruction) -> Op:
    return b.op(i, "stablehlo.optimization_barrier", b.leaves(i, tuples=True))


# -- calls --------------------------------------------------------------------------------------


def _call(b: Body, i: Instruction, c: Computation | None = None, **more: Any) -> Op:
    """A call of a computation, or (attribute `is_composite`) an op that it defines."""
    name, f = b.module.call(c or i["to_apply"])
    operands = b.leaves(i, tuples=True)
    _check_arguments(i, name, f, operands)
    result = one_or_results(f.result_types)
    if i.get("is_composite"):
        return _composite(b, i, name, operands, result)
    return b.op(i, "func.call", operands, result=result, callee=name, **more)


def _check_arguments(i: Instruction, name: str, f: Function, operands: Sequence[Op]) -> None:
    got = tuple(o.type for o in operands)
    if len(got) != len(f.params) or not all(map(compatible, got, f.param_types)):
        raise i.error(f"{name} takes {f.param_types}, but is called with {got}", VerifyError)


def _composite(b: Body, i: Instruction, name: str, operands: list[Op], result: Type) -> Op:
    """Its name, attributes and version are frontend attributes."""
    frontend = dict(i.get("frontend_attributes") or {})
    label = frontend.pop("composite.name", "")
    text = frontend.pop("composite.attributes", "{}")
    version = frontend.pop("composite.version", "0")
    attrs = dictionary(str(text))
    if not isinstance(label, str) or attrs is None or not str(version).isdecimal() or len(str(version)) > 9:
        raise i.error("a composite needs composite.name, composite.attributes and composite.version")
    i.attrs = {**i.attrs, "frontend_attributes": Attrs(frontend)}
    return b.op(i, "stablehlo.composite", operands, result=result, name=label, decomposition=name,
                version=int(version), composite_attributes=attrs)  # fmt: skip


def _fusion(b: Body, i: Instruction) -> Op:
    return _call(b, i, i["calls"], **{FUSION: string(i.get("kind", "kLoop"))})


def _custom_call(b: Body, i: Instruction) -> Op:
    if "literal" in i.attrs:
        raise i.error("custom calls with a literal are not supported", Unsupported)
    version = API_VERSIONS.get(i.get("api_version", "API_VERSION_ORIGINAL"))
    if version is None:
        raise i.error(f"unknown api_version '{i.get('api_version')}'")
    config: Any = i.get("backend_config", "")
    if version == TYPED_FFI:
        config = dictionary(config) if config else Attrs()
        if config is None:
            raise i.error("with API_VERSION_TYPED_FFI, backend_config must be a dictionary of attributes")
    attrs: dict[str, Any] = {
        "call_target_name": i["custom_call_target"],
        "has_side_effect": i.get("custom_call_has_side_effect", False),
        "backend_config": config,
        "api_version": version,
    }
    callees = (*i.get("called_computations", ()), *([i["to_apply"]] if "to_apply" in i.attrs else ()))
    if callees:
        attrs["called_computations"] = tuple(b.module.call(c)[0] for c in callees)
    if aliasing := i.get("output_to_operand_aliasing"):
        attrs["output_operand_aliases"] = tuple(_alias(i, a) for a in aliasing)
    attrs.update(_layouts(i))
    operands = [_packed(b, i, b.values[x]) for x in i.operands]
    i.declared  # noqa: B018  # its shape says what the result is
    return b.op(i, "stablehlo.custom_call", operands, **attrs)


def _packed(b: Body, i: Instruction, v: Value) -> Op:
    """An operand as one value."""
    if not v.shape.is_tuple:
        return v.leaves[0]
    parts = [_packed(b, i, part(i, v, k)) for k in range(len(v.shape.parts))]
    return b.helper(i, "stablehlo.tuple", parts)


def _alias(i: Instruction, alias: Any) -> Attrs:
    output, operand, where, _ = alias
    shape, number = i.declared, 0
    for k in output:  # results of the op are flat
        if not shape.is_tuple or not 0 <= k < len(shape.parts):
            raise i.error(f"output_to_operand_aliasing: there is no output {list(output)}")
        number += sum(leaf_count(p.type) for p in shape.parts[:k])
        shape = shape.parts[k]
    flat = (number,) if sum(1 for _ in i.declared.leaves()) > 1 else ()
    return Attrs(output_tuple_indices=flat, operand_index=operand, operand_tuple_indices=where)


def _layouts(i: Instruction) -> dict[str, Any]:
    """`operand_layouts` and `result_layouts`, where the text constrains them."""
    constraints = i.get("operand_layout_constraints")
    if constraints is None:
        return {}
    results = i.declared.parts if i.declared.is_tuple else (i.declared,)
    shapes = [*constraints, *results]
    if any(s.is_tuple for s in shapes):
        return {}
    return {"operand_layouts": tuple(map(_order, constraints)), "result_layouts": tuple(map(_order, results))}


def _order(s: Shape) -> tuple[int, ...]:
    if s.layout is not None:
        return s.layout.minor_to_major
    return tuple(range(s.type.rank - 1, -1, -1)) if isinstance(s.type, TensorType) else ()


# -- loops and branches -------------------------------------------------------------------------


def _while(b: Body, i: Instruction) -> Op:
    cond, body = b.region(i, i["condition"]), b.region(i, i["body"])
    operands = b.leaves(i, 1, tuples=True)
    return b.op(i, "stablehlo.while", operands, cond=cond, body=body)


def _conditional(b: Body, i: Instruction) -> Op:
    """Each branch takes its own operand; in the IR, all branches take what any of them needs."""
    selector = b.operand(i)
    is_if = selector.leaves and selector.leaves[0].type is TensorType(i1)
    if "branch_computations" in i.attrs:
        branches = i["branch_computations"]
    else:
        branches = (i["true_computation"], i["false_computation"])
    if len(i.operands) != 1 + len(branches) or len(selector.leaves) != 1 or (is_if and len(branches) != 2):
        raise i.error(f"{len(i.operands)} operands and {len(branches)} branches do not fit each other")
    captured: dict[Op, int] = {}
    for x in i.operands[1:]:
        for leaf in b.values[x].leaves:
            captured.setdefault(leaf, len(captured))
    regions = []
    for x, c in zip(i.operands[1:], branches, strict=True):
        f, leaves = b.region(i, c), b.values[x].leaves
        _check_arguments(i, c.name, f, leaves)
        regions.append(_spread(f, [captured[leaf] for leaf in leaves], list(captured)))
    operands = [selector.leaves[0], *captured]
    if is_if:
        return b.op(i, "stablehlo.if", operands, true_branch=regions[0], false_branch=regions[1])
    return b.op(i, "stablehlo.case", operands, branches=tuple(regions))


def _spread(f: Function, places: list[int], operands: list[Op]) -> Function:
    """`f` with parameters for all `operands`, its own being those at `places`."""
    params = [parameter(k, o.type, o.loc) for k, o in enumerate(operands)]
    ops, results = instantiate(f, [params[k] for k in places])
    return Function(f.name, params, [*params, *ops], results, loc=f.loc)


# -- tokens and the host ------------------------------------------------------------------------


def _after_all(b: Body, i: Instruction) -> Op:
    operands = b.leaves(i)
    return b.op(i, "stablehlo.after_all" if operands else "stablehlo.create_token", operands)


def _infeed(b: Body, i: Instruction) -> Op:
    return b.op(i, "stablehlo.infeed", b.leaves(i, 1), infeed_config=i.get("infeed_config", ""))


def _outfeed(b: Body, i: Instruction) -> Op:
    return b.op(i, "stablehlo.outfeed", b.leaves(i, 2, tuples=True), outfeed_config=i.get("outfeed_config", ""))


def _channel(i: Instruction, direction: str) -> dict[str, Any]:
    host = i.get("is_host_transfer", False)
    handle = (i.get("channel_id", 0), _CHANNEL_TYPES[host, direction])
    return {"channel_handle": handle, "is_host_transfer": host}


def _send(b: Body, i: Instruction) -> Value:
    """`(data, context, token)`; sending is one op here, and send-done takes its token."""
    leaves = b.leaves(i, 2, tuples=True)
    token = b.helper(i, "stablehlo.send", leaves, result=TOKEN, **_channel(i, "send"))
    return _value(i.declared, [*leaves[:-1], b.context(i, u32), token])


def _recv(b: Body, i: Instruction) -> Value:
    data = list(part(i, _value(i.declared, [None] * leaf_count(i.declared.type)), 0).shape.leaves())
    result = one_or_results([*(s.type for s in data), TOKEN])
    op = b.helper(i, "stablehlo.recv", b.leaves(i, 1), result=result, **_channel(i, "recv"))
    b.ops.extend(found := op.results())
    return _value(i.declared, [*found[:-1], b.context(i, u32), found[-1]])


def _send_done(b: Body, i: Instruction) -> Value:
    return _value(i.declared, b.leaves(i, 1, tuples=True)[-1:])


def _recv_done(b: Body, i: Instruction) -> Value:
    leaves = b.leaves(i, 1, tuples=True)
    return _value(i.declared, [*leaves[:-2], *leaves[-1:]])


# -- asynchronous forms -------------------------------------------------------------------------


def copy_start(b: Body, i: Instruction) -> Value:
    """`(copy, operand, context)`"""
    leaves = b.leaves(i, 1, tuples=True)
    return _filled(b, i, [*leaves, *leaves])


def copy_done(b: Body, i: Instruction) -> Value:
    return _retyped(i, part(i, b.operand(i), 0))


def _retyped(i: Instruction, v: Value) -> Value:
    return _value(i.shape or v.shape, v.leaves)


def _filled(b: Body, i: Instruction, leaves: list[Op]) -> Value:
    """A value that begins with these ops; the rest are contexts."""
    shapes = list(i.declared.leaves())[len(leaves) :]
    zeros = []
    for s in shapes:
        if not isinstance(s.type, TensorType) or s.type.rank or s.type.dtype.kind not in "iu":
            raise i.error(f"the result of an asynchronous operation has a part {s.type!r} that is no context")
        zeros.append(b.context(i, s.type.dtype))
    return _value(i.declared, [*leaves, *zeros])


def asynchronous(opcode: str) -> Callable[[Body, Instruction], Value] | None:
    """How the start, update or done of an operation is lowered; None for another opcode.

    The operation happens at its start; done takes the result out of `(operands, result, contexts ...)`.
    """
    if opcode.endswith(schema.START):
        return _start
    if opcode == "all-reduce-done":
        return lambda b, i: _retyped(i, b.operand(i))
    if opcode.endswith(schema.UPDATE):
        return lambda b, i: _retyped(i, b.operand(i))
    if opcode.endswith(schema.DONE):
        return lambda b, i: _retyped(i, part(i, b.operand(i), 1))
    return None


def _start(b: Body, i: Instruction) -> Value:
    inner = Instruction(i.name, i.opcode.removesuffix(schema.START), None, i.operands, i.attrs, i.loc)
    shape = i.declared
    if i.opcode == "all-reduce-start":
        inner.shape = shape
        return _retyped(i, b.lower(inner))
    if not shape.is_tuple or len(shape.parts) < 2:
        raise i.error("the result must be a tuple of operands, result and contexts")
    inner.shape = shape.parts[1]
    if inner.opcode == "async":
        inner.opcode = "call"
        inner.attrs = {**i.attrs, "to_apply": i["calls"]}
    made = b.lower(inner)
    operands = b.leaves(i, tuples=True)
    if len(operands) != leaf_count(shape.parts[0].type):
        raise i.error(f"{len(operands)} operands, but {shape.parts[0].type!r} is declared")
    return _filled(b, i, [*operands, *made.leaves])


TABLE: Final[dict[str, Callable[[Any, Instruction], Any]]] = {
    "tuple": _tuple,
    "get-tuple-element": _get_tuple_element,
    "opt-barrier": _barrier,
    "optimization-barrier": _barrier,
    "call": _call,
    "fusion": _fusion,
    "custom-call": _custom_call,
    "while": _while,
    "conditional": _conditional,
    "after-all": _after_all,
    "infeed": _infeed,
    "outfeed": _outfeed,
    "send": _send,
    "send-done": _send_done,
    "recv": _recv,
    "recv-done": _recv_done,
}
