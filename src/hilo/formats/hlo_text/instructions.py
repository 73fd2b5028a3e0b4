"""What each opcode means: instructions that compute arrays from arrays. The others are in control.py and applying.py.

Every function takes the body under construction and the instruction, and gives the op (or a `Value`). Imports its
siblings and ir.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text import applying, control, schema
from hilo.formats.hlo_text.bitcast import bitcast
from hilo.formats.hlo_text.literals import parse_literal
from hilo.formats.hlo_text.lower import Body, static_shape
from hilo.formats.hlo_text.model import Instruction, Value
from hilo.ir.op import Op
from hilo.ir.types import Results, TensorType

Lower = Callable[[Body, Instruction], "Op | Value"]
_NUMBERS: Final = {"i": "SIGNED", "u": "UNSIGNED", "b": "UNSIGNED", "f": "FLOAT", "c": "FLOAT"}


def lowering_of(i: Instruction) -> Lower:
    """How the instruction is lowered; an `Error` for opcodes that StableHLO has nothing for."""
    found = _TABLE.get(i.opcode)
    if found is None and i.opcode in schema.ELEMENTWISE:
        return _elementwise
    if found is None:
        found = control.asynchronous(i.opcode)
    if found is None:
        raise i.error("StableHLO has no such operation", Unsupported)
    return found


def _elementwise(b: Body, i: Instruction) -> Op:
    attrs = {}
    if (accuracy := i.get("result_accuracy")) is not None:
        attrs["result_accuracy"] = _accuracy(i, accuracy)
    return b.op(i, schema.ELEMENTWISE[i.opcode], b.leaves(i), **attrs)


def _accuracy(i: Instruction, text: str) -> str:
    """`{mode=highest}` or `{tolerance={atol=0,rtol=0,ulps=1}}` in hilo's words."""
    plain = text.replace(" ", "").strip("{}")
    if plain.startswith("mode="):
        mode = plain.removeprefix("mode=").upper()
        if mode in ("DEFAULT", "HIGHEST"):
            return mode
    if plain.startswith("tolerance={"):
        fields = [f.partition("=") for f in plain.removeprefix("tolerance={").split(",")]
        try:
            numbers = {k: float(v) for k, _, v in fields}
        except ValueError:
            numbers = {"": 0.0}
        if set(numbers) <= {"atol", "rtol", "ulps"}:
            shown = (f"{k}={int(v) if k == 'ulps' else v!r}" for k, v in numbers.items() if v and abs(v) < 1e300)
            return " ".join(["TOLERANCE", *shown])
    raise i.error(f"malformed result_accuracy {text}")


def named(name: str, count: int | None = None, **attributes: str) -> Lower:
    """An op whose attributes only have other names: `named("stablehlo.x", stablehlo_name="hlo_name")`."""

    def lower(b: Body, i: Instruction) -> Op:
        values: dict[str, Any] = {k: i[v] for k, v in attributes.items()}
        return b.op(i, name, b.leaves(i, count), **values)

    return lower


def defaulted(name: str, count: int, defaults: dict[str, Any], **attributes: str) -> Lower:
    """The same where attributes that the text leaves out have a value."""

    def lower(b: Body, i: Instruction) -> Op:
        values = {k: i.get(v, defaults[v]) if v in defaults else i[v] for k, v in attributes.items()}
        return b.op(i, name, b.leaves(i, count), **values)

    return lower


# -- constants and shapes -----------------------------------------------------------------------


def _constant(b: Body, i: Instruction) -> Op | Value:
    shape = i.declared
    for part in shape.leaves():
        if isinstance(part.type, TensorType):
            static_shape(i, part.type)
    value = i["value"]
    try:
        arrays = parse_literal(value, shape) if isinstance(value, str) else value
    except Error as e:
        raise i.error(e.message, type(e)) from None
    except (MemoryError, ValueError, OverflowError):
        raise i.error("the constant is too large") from None
    if not shape.is_tuple:
        return b.op(i, "stablehlo.constant", (), value=arrays[0])
    return Value(shape, tuple(b.helper(i, "stablehlo.constant", (), value=a) for a in arrays))


def _along(name: str, attribute: str, count: int | None = None) -> Lower:
    """An op along the one dimension in `dimensions`."""
    def lower(b: Body, i: Instruction) -> Op:
        values: dict[str, Any] = {attribute: applying.one_dimension(i)}
        return b.op(i, name, b.leaves(i, count), **values)

    return lower


def _copy(b: Body, i: Instruction) -> Value:
    """The operand itself: the layouts of HLO do not exist here."""
    leaves = b.leaves(i, 1, tuples=True)
    return Value(i.shape or b.operand(i).shape, tuple(leaves))


def _first(b: Body, i: Instruction) -> Value:
    """The first operand; what follows only orders the program."""
    value = b.operand(i)
    return Value(i.shape or value.shape, value.leaves)


def _slice(b: Body, i: Instruction) -> Op:
    rows = i["slice"]
    starts, limits, strides = zip(*rows, strict=True) if rows else ((), (), ())
    return b.op(i, "stablehlo.slice", b.leaves(i, 1), start_indices=starts, limit_indices=limits, strides=strides)


def _pad(b: Body, i: Instruction) -> Op:
    rows = i["padding"]
    low, high, interior = zip(*rows, strict=True) if rows else ((), (), ())
    return b.op(i, "stablehlo.pad", b.leaves(i, 2), edge_padding_low=low, edge_padding_high=high,
                interior_padding=interior)  # fmt: skip


def _compare(b: Body, i: Instruction) -> Op:
    operands = b.leaves(i, 2)
    t = operands[0].type
    kind = i.get("type") or (_NUMBERS[t.dtype.kind] if isinstance(t, TensorType) else "NOTYPE")
    return b.op(i, "stablehlo.compare", operands, comparison_direction=i["direction"], compare_type=kind)


# -- contractions -------------------------------------------------------------------------------


def precision(i: Instruction) -> tuple[str, ...] | None:
    """`operand_precision={highest,default}` as StableHLO has it."""
    words = i.get("operand_precision")
    if words is None:
        return None
    found = tuple(w.upper() for w in words)
    if any(w not in ("DEFAULT", "HIGH", "HIGHEST") for w in found):
        raise i.error(f"operand_precision {{{','.join(words)}}} is not supported", Unsupported)
    return found


def _dot(b: Body, i: Instruction) -> Op:
    if i.opcode == "ragged-dot":
        more: dict[str, Any] = {"lhs_ragged_dimensions": i["lhs_ragged_dims"]}
        more["rhs_group_dimensions"] = i.get("rhs_group_dims", ())
        name, operands = "chlo.ragged_dot", b.leaves(i, 3)
    else:
        name, operands = "stablehlo.dot_general", b.leaves(i, 2)
        word = i.get("algorithm", "dot_unset")
        if word != "dot_unset" and word not in schema.ALGORITHMS:
            raise i.error(f"unknown algorithm '{word}'")
        more = {"algorithm": schema.ALGORITHMS.get(word)}
    return b.op(
        i, name, operands, lhs_batching_dimensions=i.get("lhs_batch_dims", ()),
        rhs_batching_dimensions=i.get("rhs_batch_dims", ()),
        lhs_contracting_dimensions=i.get("lhs_contracting_dims", ()),
        rhs_contracting_dimensions=i.get("rhs_contracting_dims", ()), precision_config=precision(i), **more,
    )  # fmt: skip


_SIDES: Final = (
    ("bf", ("input_batch_dimension", "input_feature_dimension"), "input_spatial_dimensions"),
    ("io", ("kernel_input_feature_dimension", "kernel_output_feature_dimension"), "kernel_spatial_dimensions"),
    ("bf", ("output_batch_dimension", "output_feature_dimension"), "output_spatial_dimensions"),
)


def _labels(i: Instruction) -> dict[str, Any]:
    """`b01f_01io->b01f`: where each dimension stands."""
    fields: dict[str, Any] = {}
    left, _, right = i["dim_labels"].partition("->")
    lhs, _, rhs = left.partition("_")
    for text, (letters, names, spatial) in zip((lhs, rhs, right), _SIDES, strict=True):
        digits = sorted(ch for ch in text if ch.isdecimal())
        ok = sorted(text) == sorted([*digits, *letters]) and digits == [str(d) for d in range(len(digits))]
        if not ok:
            wanted = f"{letters[0]}, {letters[1]} and the digits from 0 on"
            raise i.error(f"dim_labels: '{text}' must have {wanted}, each once")
        fields.update((name, text.index(letter)) for letter, name in zip(letters, names, strict=True))
        fields[spatial] = tuple(text.index(d) for d in digits)
    return fields


def _convolution(b: Body, i: Instruction) -> Op:
    if "convolution_kind" in i.attrs:
        raise i.error("a convolution_kind is not supported", Unsupported)
    fields = _labels(i)
    window = i.get("window", {})
    n = len(fields["kernel_spatial_dimensions"])
    kernel = b.leaves(i, 2)[1]
    if isinstance(kernel.type, TensorType) and "size" in window and kernel.type.rank == n + 2:
        size = tuple(kernel.type.shape[d] for d in fields["kernel_spatial_dimensions"])
        if window["size"] != size:
            raise i.error(f"the window is {window['size']}, but the kernel {size}")
    return b.op(
        i, "stablehlo.convolution", b.leaves(i, 2), **fields,
        window_strides=window.get("stride", (1,) * n), padding=window.get("pad", ((0, 0),) * n),
        lhs_dilation=window.get("lhs_dilate", (1,) * n), rhs_dilation=window.get("rhs_dilate", (1,) * n),
        window_reversal=tuple(map(bool, window.get("rhs_reversal", (0,) * n))),
        feature_group_count=i.get("feature_group_count", 1), batch_group_count=i.get("batch_group_count", 1),
        precision_config=precision(i),
    )  # fmt: skip


# -- gather, random numbers, and others ---------------------------------------------------------


def _rng(b: Body, i: Instruction) -> Op:
    low, high = b.leaves(i, 2)
    shape = b.constant(i, np.array(static_shape(i, i.tensor), np.int64))
    distribution = i["distribution"].removeprefix("rng_").upper()
    return b.op(i, "stablehlo.rng", (low, high, shape), rng_distribution=distribution)


def _rng_bit_generator(b: Body, i: Instruction) -> Op | Value:
    algorithm = i["algorithm"].removeprefix("rng_").upper()
    if not i.declared.is_tuple:  # an older form without the new state
        state = b.leaves(i, 1)
        pair = b.helper(i, "stablehlo.rng_bit_generator", state, result=Results([state[0].type, i.tensor]),
                        rng_algorithm=algorithm)  # fmt: skip
        b.ops.extend(found := pair.results())
        return Value(i.declared, found[1:])
    return b.op(i, "stablehlo.rng_bit_generator", b.leaves(i, 1), rng_algorithm=algorithm)


def _top_k(b: Body, i: Instruction) -> Op:
    if not i.get("largest", True):
        raise i.error("topk of the smallest elements is not supported", Unsupported)
    return b.op(i, "chlo.top_k", b.leaves(i, 1), k=i["k"])


_GATHER: Final = {
    "offset_dims": "offset_dims", "collapsed_slice_dims": "collapsed_slice_dims",
    "operand_batching_dims": "operand_batching_dims", "start_indices_batching_dims": "start_indices_batching_dims",
    "start_index_map": "start_index_map", "index_vector_dim": "index_vector_dim", "slice_sizes": "slice_sizes",
    "indices_are_sorted": "indices_are_sorted",
}  # fmt: skip
_GATHER_DEFAULTS: Final = {
    "operand_batching_dims": (), "start_indices_batching_dims": (), "indices_are_sorted": False,
}  # fmt: skip

_BATCH_NORM: Final = {"epsilon": "epsilon", "feature_index": "feature_index"}

_TABLE: Final[dict[str, Lower]] = {
    "constant": _constant,
    "broadcast": named("stablehlo.broadcast_in_dim", 1, broadcast_dimensions="dimensions"),
    "reshape": named("stablehlo.reshape", 1),
    "transpose": named("stablehlo.transpose", 1, permutation="dimensions"),
    "reverse": named("stablehlo.reverse", 1, dimensions="dimensions"),
    "concatenate": _along("stablehlo.concatenate", "dimension"),
    "get-dimension-size": _along("stablehlo.get_dimension_size", "dimension", 1),
    "set-dimension-size": _along("stablehlo.set_dimension_size", "dimension", 2),
    "iota": named("stablehlo.iota", 0, iota_dimension="iota_dimension"),
    "slice": _slice,
    "dynamic-slice": named("stablehlo.dynamic_slice", slice_sizes="dynamic_slice_sizes"),
    "dynamic-update-slice": named("stablehlo.dynamic_update_slice"),
    "pad": _pad,
    "convert": named("stablehlo.convert", 1),
    "bitcast-convert": named("stablehlo.bitcast_convert", 1),
    "bitcast": bitcast,
    "copy": _copy,
    "copy-done": control.copy_done,
    "copy-start": control.copy_start,
    "domain": _first,
    "add-dependency": _first,
    "compare": _compare,
    "reduce-precision": named(
        "stablehlo.reduce_precision", 1, exponent_bits="exponent_bits", mantissa_bits="mantissa_bits"
    ),
    "dot": _dot,
    "ragged-dot": _dot,
    "convolution": _convolution,
    "gather": defaulted("stablehlo.gather", 2, _GATHER_DEFAULTS, **_GATHER),
    "rng": _rng,
    "rng-bit-generator": _rng_bit_generator,
    "fft": named("stablehlo.fft", 1, fft_type="fft_type", fft_length="fft_length"),
    "cholesky": defaulted("stablehlo.cholesky", 1, {"lower": False}, lower="lower"),
    "triangular-solve": defaulted(
        "stablehlo.triangular_solve", 2,
        {"left_side": False, "lower": False, "unit_diagonal": False, "transpose_a": "NO_TRANSPOSE"},
        left_side="left_side", lower="lower", unit_diagonal="unit_diagonal", transpose_a="transpose_a",
    ),
    "batch-norm-training": named("stablehlo.batch_norm_training", 3, **_BATCH_NORM),
    "batch-norm-inference": named("stablehlo.batch_norm_inference", 5, **_BATCH_NORM),
    "batch-norm-grad": named("stablehlo.batch_norm_grad", 5, **_BATCH_NORM),
    "topk": _top_k,
    "partition-id": named("stablehlo.partition_id", 0),
    "replica-id": named("stablehlo.replica_id", 0),
    **control.TABLE,
    **applying.TABLE,
}  # fmt: skip
