"""Which instructions each op becomes: ops that compute arrays from arrays. The others are in operations_control.py.

Every function takes the computation under construction and the op, and gives the instruction of its value. Imports its
siblings and ir.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.errors import Unsupported
from hilo.formats.hlo_text import operations_control, schema
from hilo.formats.hlo_text.emit import BodyEmitter
from hilo.formats.hlo_text.model import Instruction
from hilo.formats.hlo_text.operations_control import window
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType, Type

Emit = Callable[[BodyEmitter, Op], Instruction]
_FEW: Final = 1  # elements of a constant of one value that is written out, not broadcast


def unsupported(op: Op, message: str) -> Unsupported:
    return Unsupported(message, loc=op.loc, op=op.kind.full_name)


def same(opcode: str, **attributes: str) -> Emit:
    """An instruction whose attributes only have other names: `same("x", hlo_name="stablehlo_name")`."""

    def emit(e: BodyEmitter, op: Op) -> Instruction:
        values: dict[str, Any] = {k: op.attrs[v] for k, v in attributes.items()}
        return e.add(opcode, op.type, e.operands(op), **values)

    return emit


def along(opcode: str, attribute: str) -> Emit:
    """An instruction along the one dimension of `attribute`."""
    return lambda e, op: e.add(opcode, op.type, e.operands(op), dimensions=(op.attrs[attribute],))


# -- elementwise --------------------------------------------------------------------------------


def _elementwise(opcode: str) -> Emit:
    def emit(e: BodyEmitter, op: Op) -> Instruction:
        accuracy = op.attrs.get("result_accuracy", "DEFAULT")
        text = None if accuracy == "DEFAULT" else _accuracy(accuracy)
        operands = [_widened(e, i, op.type) for i in e.operands(op)]
        return e.add(opcode, op.type, operands, result_accuracy=text)

    return emit


def _widened(e: BodyEmitter, i: Instruction, result: Type) -> Instruction:
    """A rank-0 operand (of select or clamp) in the shape of the result."""
    t = i.declared.type
    if isinstance(t, TensorType) and isinstance(result, TensorType) and t.rank == 0 and result.rank:
        return e.add("broadcast", result.with_dtype(t.dtype), [i], dimensions=())
    return i


def _accuracy(value: str) -> str:
    mode, *numbers = value.split(" ")
    if mode != "TOLERANCE":
        return f"{{mode={mode.lower()}}}"
    found = {"atol": "0", "rtol": "0", "ulps": "0"} | dict(n.split("=") for n in numbers)
    return f"{{tolerance={{{','.join(f'{k}={v}' for k, v in found.items())}}}}}"


def _compare(e: BodyEmitter, op: Op) -> Instruction:
    kind = op.attrs["compare_type"]
    t = op.operands[0].tensor.dtype
    usual = {"i": "SIGNED", "u": "UNSIGNED", "b": "UNSIGNED"}.get(t.kind, "FLOAT")
    word = None if kind in ("NOTYPE", usual) else kind
    return e.add("compare", op.type, e.operands(op), direction=op.attrs["comparison_direction"], type=word)


# -- constants and shapes -----------------------------------------------------------------------


def constant(e: BodyEmitter, t: TensorType, value: Array) -> Instruction:
    """A constant; a splat is a broadcast scalar."""
    if value.is_splat and t.size > _FEW:
        one = e.add("constant", t.with_shape(()), value=Array(np.asarray(value.scalar, t.dtype.np)))
        return e.add("broadcast", t, [one], dimensions=())
    return e.add("constant", t, value=value)


def _constant(e: BodyEmitter, op: Op) -> Instruction:
    t = op.attrs["value"].type
    if op.type is not t:
        raise unsupported(op, f"HLO text has no type like {op.type!r}")
    return constant(e, t, op.attrs["value"])


def _broadcast(e: BodyEmitter, op: Op) -> Instruction:
    """HLO's broadcast does not repeat along axes of size 1: they are reshaped away first."""
    x, dims, t = op.operands[0].tensor, op.attrs["broadcast_dimensions"], op.tensor
    kept = [k for k, d in enumerate(dims) if x.shape[k] == t.shape[d] or x.shape[k] != 1]
    (i,) = e.operands(op)
    if len(kept) != len(dims):
        i = e.add("reshape", x.with_shape(x.shape[k] for k in kept), [i])
    return e.add("broadcast", t, [i], dimensions=tuple(dims[k] for k in kept))


def _slice(e: BodyEmitter, op: Op) -> Instruction:
    names = ("start_indices", "limit_indices", "strides")
    return e.add("slice", op.type, e.operands(op), slice=tuple(zip(*(op.attrs[n] for n in names), strict=True)))


def _pad(e: BodyEmitter, op: Op) -> Instruction:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    rows = tuple(zip(*(op.attrs[n] for n in names), strict=True))
    if not rows:  # rank 0 has no text for no padding
        return e.operands(op)[0]
    return e.add("pad", op.type, e.operands(op), padding=rows)


def _concatenate(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("concatenate", op.type, e.operands(op), dimensions=(op.attrs["dimension"],))


# -- contractions -------------------------------------------------------------------------------


def precision(op: Op) -> tuple[str, ...] | None:
    words = op.attrs.get("precision_config")
    return tuple(w.lower() for w in words) if words else None


def _algorithm(op: Op) -> str | None:
    found = op.attrs.get("algorithm")
    if found is None:
        return None
    name = next((n for n, a in schema.ALGORITHMS.items() if a == found), None)
    if name is None:
        raise unsupported(op, f"HLO has no name for the algorithm {found}")
    return name


def _dot_general(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    ragged = {}
    if op.name == "ragged_dot":
        ragged = {"lhs_ragged_dims": a["lhs_ragged_dimensions"], "rhs_group_dims": a["rhs_group_dimensions"]}
    return e.add(
        "ragged-dot" if ragged else "dot", op.type, e.operands(op),
        lhs_batch_dims=a["lhs_batching_dimensions"] or None, rhs_batch_dims=a["rhs_batching_dimensions"] or None,
        lhs_contracting_dims=a["lhs_contracting_dimensions"], rhs_contracting_dims=a["rhs_contracting_dimensions"],
        operand_precision=precision(op), algorithm=_algorithm(op), **ragged,
    )  # fmt: skip


def _dot(e: BodyEmitter, op: Op) -> Instruction:
    x = op.operands[0].tensor
    return e.add("dot", op.type, e.operands(op), lhs_contracting_dims=(x.rank - 1,), rhs_contracting_dims=(0,),
                 operand_precision=precision(op))  # fmt: skip


def _side(rank: int, letters: dict[str, int], spatial: tuple[int, ...]) -> str:
    places = {d: letter for letter, d in letters.items()} | {d: str(k) for k, d in enumerate(spatial)}
    return "".join(places.get(d, "?") for d in range(rank))


def _convolution(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    if len(a["kernel_spatial_dimensions"]) > 10:
        raise unsupported(op, "HLO text has no labels for more than 10 spatial dimensions")
    lhs, rhs = (o.tensor for o in op.operands)
    labels = (
        _side(lhs.rank, {"b": a["input_batch_dimension"], "f": a["input_feature_dimension"]},
              a["input_spatial_dimensions"]),
        _side(rhs.rank, {"i": a["kernel_input_feature_dimension"], "o": a["kernel_output_feature_dimension"]},
              a["kernel_spatial_dimensions"]),
        _side(op.tensor.rank, {"b": a["output_batch_dimension"], "f": a["output_feature_dimension"]},
              a["output_spatial_dimensions"]),
    )  # fmt: skip
    size = tuple(rhs.shape[d] for d in a["kernel_spatial_dimensions"])
    shown = window(
        size, stride=a.get("window_strides"), pad=a.get("padding"), lhs_dilate=a.get("lhs_dilation"),
        rhs_dilate=a.get("rhs_dilation"), rhs_reversal=a.get("window_reversal"),
    )  # fmt: skip
    groups = {k: v for k in ("feature_group_count", "batch_group_count") if (v := a.get(k, 1)) != 1}
    return e.add("convolution", op.type, e.operands(op), window=shown or None,
                 dim_labels=f"{labels[0]}_{labels[1]}->{labels[2]}", operand_precision=precision(op),
                 **groups)  # fmt: skip


# -- others -------------------------------------------------------------------------------------


def _rng(e: BodyEmitter, op: Op) -> Instruction:
    word = f"rng_{op.attrs['rng_distribution'].lower()}"
    return e.add("rng", op.type, [e.values[o] for o in op.operands[:2]], distribution=word)


def _rng_bit_generator(e: BodyEmitter, op: Op) -> Instruction:
    word = f"rng_{op.attrs['rng_algorithm'].lower()}"
    return e.add("rng-bit-generator", op.type, e.operands(op), algorithm=word)


def _top_k(e: BodyEmitter, op: Op) -> Instruction:
    return e.add("topk", op.type, e.operands(op), k=op.attrs["k"], largest=True)


_GATHER: Final = (
    "offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim", "slice_sizes",
)  # fmt: skip


def _square(e: BodyEmitter, op: Op) -> Instruction:
    (i,) = e.operands(op)
    return e.add("multiply", op.type, [i, i])


def _conj(e: BodyEmitter, op: Op) -> Instruction:
    (i,) = e.operands(op)
    t = op.tensor
    if not t.dtype.is_complex:
        return i
    part = t.with_dtype(t.dtype.part)
    imag = e.add("negate", part, [e.add("imag", part, [i])])
    return e.add("complex", t, [e.add("real", part, [i]), imag])


def _is_infinite(direction: str) -> Emit:
    """Whether |x|, x or -x is infinity."""

    def emit(e: BodyEmitter, op: Op) -> Instruction:
        (i,) = e.operands(op)
        t = op.operands[0].tensor
        if direction:
            i = e.add(direction, t, [i])
        infinity = constant(e, t, Array(np.asarray(np.inf).astype(t.dtype.np), t.shape))
        return e.add("compare", op.type, [i, infinity], direction="EQ")

    return emit


def _gather(e: BodyEmitter, op: Op) -> Instruction:
    a = op.attrs
    attrs = {name: a[name] for name in _GATHER}
    for name in ("operand_batching_dims", "start_indices_batching_dims", "indices_are_sorted"):
        attrs[name] = a[name] or None
    return e.add("gather", op.type, e.operands(op), **attrs)


EMIT: Final[dict[str, Emit]] = {
    **{name: _elementwise(opcode) for opcode, name in schema.ELEMENTWISE.items() if opcode not in schema.RARE},
    "stablehlo.constant": _constant,
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": same("reshape"),
    "stablehlo.transpose": same("transpose", dimensions="permutation"),
    "stablehlo.reverse": same("reverse", dimensions="dimensions"),
    "stablehlo.concatenate": _concatenate,
    "stablehlo.get_dimension_size": along("get-dimension-size", "dimension"),
    "stablehlo.set_dimension_size": along("set-dimension-size", "dimension"),
    "stablehlo.iota": same("iota", iota_dimension="iota_dimension"),
    "stablehlo.slice": _slice,
    "stablehlo.dynamic_slice": same("dynamic-slice", dynamic_slice_sizes="slice_sizes"),
    "stablehlo.dynamic_update_slice": same("dynamic-update-slice"),
    "stablehlo.pad": _pad,
    "stablehlo.convert": same("convert"),
    "stablehlo.bitcast_convert": same("bitcast-convert"),
    "stablehlo.compare": _compare,
    "stablehlo.reduce_precision": same(
        "reduce-precision", exponent_bits="exponent_bits", mantissa_bits="mantissa_bits"
    ),
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dot": _dot,
    "chlo.ragged_dot": _dot_general,
    "stablehlo.convolution": _convolution,
    "stablehlo.gather": _gather,
    "stablehlo.rng": _rng,
    "stablehlo.rng_bit_generator": _rng_bit_generator,
    "stablehlo.fft": same("fft", fft_type="fft_type", fft_length="fft_length"),
    "stablehlo.cholesky": same("cholesky", lower="lower"),
    "stablehlo.triangular_solve": same(
        "triangular-solve", left_side="left_side", lower="lower", unit_diagonal="unit_diagonal",
        transpose_a="transpose_a",
    ),
    **{
        f"stablehlo.batch_norm_{kind}": same(f"batch-norm-{kind}", epsilon="epsilon", feature_index="feature_index")
        for kind in ("training", "inference", "grad")
    },
    "chlo.top_k": _top_k,
    "chlo.constant": _constant,
    "chlo.tan": _elementwise("tan"),
    "chlo.square": _square,
    "chlo.conj": _conj,
    "chlo.is_inf": _is_infinite("abs"),
    "chlo.is_pos_inf": _is_infinite(""),
    "chlo.is_neg_inf": _is_infinite("negate"),
    "stablehlo.partition_id": same("partition-id"),
    "stablehlo.replica_id": same("replica-id"),
    **operations_control.EMIT,
}  # fmt: skip
