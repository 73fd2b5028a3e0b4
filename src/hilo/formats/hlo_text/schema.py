"""HLO's names, as tables: element types, opcodes with their attributes, how the attributes are written. Imports dtypes.

Facts from XLA's parser and from what jaxlib's accepts.
"""

from __future__ import annotations

from typing import Final

from hilo.ir.dtypes import ALL, DType

#: Element types by HLO's name.
DTYPES: Final[dict[str, DType]] = {
    **{{"i1": "pred"}.get(t.name, f"s{t.bits}" if t.kind == "i" else t.name.lower()): t for t in ALL},
}
DTYPE_NAMES: Final[dict[DType, str]] = {t: name for name, t in DTYPES.items()}


def words(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """`names ...: words ...` lines, one entry per name."""
    rows = (line.partition(":") for line in text.strip().splitlines())
    return {name: tuple(words.split()) for names, _, words in rows for name in names.split()}


#: Opcodes that XLA's text has, but not all of its compilers: they are read, and written as what they are made of.
RARE: Final = words("acos acosh asin asinh atanh cosh mulhi sinh")

#: HLO opcodes that are an op of the same meaning, elementwise on their operands.
ELEMENTWISE: Final[dict[str, str]] = {
    **{
        name: f"stablehlo.{name.replace('-', '_')}"
        for name in words(
            "abs cbrt ceil cosine exponential exponential-minus-one floor imag is-finite log log-plus-one logistic "
            "negate not popcnt real round-nearest-afz round-nearest-even rsqrt sign sine sqrt tan tanh "
            "count-leading-zeros add and atan2 complex divide maximum minimum multiply or power remainder shift-left "
            "shift-right-arithmetic shift-right-logical subtract xor select clamp"
        )
    },
    **{name: f"chlo.{name}" for name in (*RARE, "erf")},
}

_GROUPS = "replica_groups channel_id use_global_device_ids constrain_layout mode"
_DOT = "lhs_contracting_dims rhs_contracting_dims lhs_batch_dims rhs_batch_dims operand_precision algorithm"

#: Opcodes, and the attributes that each of them has beside `COMMON`.
OPCODES: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(ELEMENTWISE, ("result_accuracy",)),
    **_table(f"""
parameter constant tuple copy convert bitcast bitcast-convert after-all add-dependency partition-id replica-id:
stochastic-convert dynamic-update-slice dynamic-reshape opt-barrier optimization-barrier copy-done:
reduce map: dimensions to_apply
reduce-window: window to_apply
select-and-scatter: window select scatter
sort: dimensions is_stable to_apply
scatter: update_window_dims inserted_window_dims scatter_dims_to_operand_dims index_vector_dim input_batching_dims \
scatter_indices_batching_dims indices_are_sorted unique_indices to_apply
gather: offset_dims collapsed_slice_dims start_index_map index_vector_dim slice_sizes operand_batching_dims \
start_indices_batching_dims indices_are_sorted
dot: {_DOT}
scaled-dot: {_DOT}
ragged-dot: {_DOT} lhs_ragged_dims rhs_group_dims
convolution: window dim_labels feature_group_count batch_group_count operand_precision convolution_kind
broadcast transpose reverse concatenate get-dimension-size set-dimension-size: dimensions
reshape: inferred_dimension
slice: slice
dynamic-slice: dynamic_slice_sizes
pad: padding
iota: iota_dimension
compare: direction type
get-tuple-element: index
fft: fft_type fft_length
cholesky: lower
triangular-solve: left_side lower unit_diagonal transpose_a
rng: distribution
rng-bit-generator: algorithm
rng-get-and-update-state: delta
reduce-precision: exponent_bits mantissa_bits
batch-norm-training batch-norm-inference batch-norm-grad: epsilon feature_index
topk: k largest
call: to_apply is_composite
fusion: kind calls output_to_operand_aliasing
while: condition body
conditional: branch_computations true_computation false_computation
custom-call: custom_call_target api_version custom_call_has_side_effect schedule called_computations to_apply \
operand_layout_constraints output_to_operand_aliasing literal window dim_labels feature_group_count batch_group_count \
operand_precision padding_type
all-reduce: to_apply {_GROUPS}
collective-reduce: to_apply {_GROUPS}
reduce-scatter: to_apply dimensions {_GROUPS}
all-gather: dimensions {_GROUPS}
all-to-all: dimensions replica_groups channel_id constrain_layout
collective-permute: source_target_pairs channel_id slice_sizes
collective-broadcast: replica_groups channel_id
ragged-all-to-all: dimensions replica_groups channel_id
infeed: infeed_config
outfeed: outfeed_shape outfeed_config
send recv send-done recv-done: channel_id is_host_transfer
copy-start: cross_program_prefetch_index
scan: dimensions is_reverse is_associative num_carries to_apply
domain: domain
async-start async-update async-done: calls output_to_operand_aliasing
""".replace("\\\n", "")),
}  # fmt: skip

#: Attributes of any instruction.
COMMON: Final = words(
    "sharding frontend_attributes statistics parameter_replication control-predecessors origin metadata "
    "backend_config async_execution_thread"
)

#: How each attribute is written: the kind of its value (see attributes.py).
ATTRIBUTES: Final[dict[str, str]] = {
    name: kind
    for kind, names in {
        "integers": "dimensions update_window_dims inserted_window_dims scatter_dims_to_operand_dims "
                    "input_batching_dims scatter_indices_batching_dims offset_dims collapsed_slice_dims "
                    "start_index_map slice_sizes operand_batching_dims start_indices_batching_dims "
                    "lhs_contracting_dims rhs_contracting_dims "
                    "lhs_batch_dims rhs_batch_dims lhs_ragged_dims rhs_group_dims dynamic_slice_sizes fft_length",
        "integer": "index_vector_dim feature_group_count batch_group_count inferred_dimension iota_dimension index "
                   "delta exponent_bits mantissa_bits feature_index k channel_id cross_program_prefetch_index "
                   "num_carries",
        "number": "epsilon",
        "flag": "is_stable indices_are_sorted unique_indices lower left_side unit_diagonal largest is_composite "
                "custom_call_has_side_effect use_global_device_ids constrain_layout is_host_transfer is_reverse "
                "is_associative",
        "word": "algorithm convolution_kind direction type fft_type transpose_a distribution kind schedule "
                "padding_type api_version mode",
        "string": "custom_call_target infeed_config outfeed_config async_execution_thread",
        "words": "operand_precision",
        "names": "control-predecessors",
        "computation": "to_apply select scatter calls condition body true_computation false_computation",
        "computations": "branch_computations called_computations",
        "window": "window",
        "labels": "dim_labels",
        "padding": "padding",
        "slices": "slice",
        "groups": "replica_groups source_target_pairs",
        "shape": "outfeed_shape",
        "shapes": "operand_layout_constraints",
        "aliases": "output_to_operand_aliasing",
        "dictionary": "frontend_attributes",
        "metadata": "metadata",
        "config": "backend_config",
        "text": "sharding statistics parameter_replication origin domain literal result_accuracy",
    }.items()
    for name in words(names)
}  # fmt: skip

#: Dot algorithms: precision of the operands, of the sum, components of each operand, products, imprecise sums.
ALGORITHMS: Final[dict[str, tuple[str, str, str, int, int, int, bool]]] = {
    "dot_any_f8_any_f8_f32": ("f8E4M3FN", "f8E4M3FN", "f32", 1, 1, 1, False),
    "dot_any_f8_any_f8_f32_fast_accum": ("f8E4M3FN", "f8E4M3FN", "f32", 1, 1, 1, True),
    "dot_f16_f16_f16": ("f16", "f16", "f16", 1, 1, 1, False),
    "dot_f16_f16_f32": ("f16", "f16", "f32", 1, 1, 1, False),
    "dot_bf16_bf16_bf16": ("bf16", "bf16", "bf16", 1, 1, 1, False),
    "dot_bf16_bf16_f32": ("bf16", "bf16", "f32", 1, 1, 1, False),
    "dot_bf16_bf16_f32_x3": ("bf16", "bf16", "f32", 1, 1, 3, False),
    "dot_bf16_bf16_f32_x6": ("bf16", "bf16", "f32", 1, 1, 6, False),
    "dot_bf16_bf16_f32_x9": ("bf16", "bf16", "f32", 1, 1, 9, False),
    "dot_tf32_tf32_f32": ("tf32", "tf32", "f32", 1, 1, 1, False),
    "dot_tf32_tf32_f32_x3": ("tf32", "tf32", "f32", 1, 1, 3, False),
    "dot_f32_f32_f32": ("f32", "f32", "f32", 1, 1, 1, False),
    "dot_f64_f64_f64": ("f64", "f64", "f64", 1, 1, 1, False),
}

#: Operations on another thread or device: the end of an opcode, without what it is about.
START: Final = "-start"
DONE: Final = "-done"
UPDATE: Final = "-update"
