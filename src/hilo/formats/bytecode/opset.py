"""The operations of VHLO: their versions and attributes, as data. Imports nothing.

A line: names, `vK` with the first and the last version if they are not 0.9 and the newest, attributes (sorted).
"""

from __future__ import annotations

from typing import Final

from hilo.record import record

CURRENT: Final = (1, 20, 0)
MINIMUM: Final = (0, 9, 0)
Version = tuple[int, int, int]

_CONV: Final = (
    "batch_group_count feature_group_count input_batch_dimension input_feature_dimension input_spatial_dimensions "
    "kernel_input_feature_dimension kernel_output_feature_dimension kernel_spatial_dimensions lhs_dilation "
    "output_batch_dimension output_feature_dimension output_spatial_dimensions precision_config rhs_dilation "
    "window_reversal window_strides"
)
_CALL: Final = (
    "api_version backend_config call_target_name called_computations has_side_effect operand_layouts "
    "output_operand_aliases result_layouts"
)
_DOT: Final = (
    "lhs_batching_dimensions lhs_contracting_dimensions precision_config rhs_batching_dimensions "
    "rhs_contracting_dimensions"
)
ALGORITHM: Final = (
    "lhs_precision_type", "rhs_precision_type", "accumulation_type", "lhs_component_count", "rhs_component_count",
    "num_primitive_operations", "allow_imprecise_accumulation",
)  # fmt: skip
_GATHER: Final = "collapsed_slice_dims index_vector_dim indices_are_sorted offset_dims start_index_map"
_GATHER_BATCH: Final = "operand_batching_dims start_indices_batching_dims"
_SCATTER: Final = (
    "index_vector_dim indices_are_sorted inserted_window_dims scatter_dims_to_operand_dims unique_indices "
    "update_window_dims"
)
_LINES: Final = f"""
abs bitcast_convert ceil count_leading_zeros convert floor imag negate not popcnt real reshape round_nearest_even
 round_nearest_afz sign uniform_dequantize uniform_quantize add and atan2 complex divide maximum minimum multiply or
 power remainder shift_left shift_right_arithmetic shift_right_logical subtract xor partition_id replica_id after_all
 case clamp create_token dynamic_pad dynamic_reshape dynamic_update_slice if is_finite optimization_barrier
 real_dynamic_slice return select tuple while v1 :
async_done async_start v1 1.15 :
cbrt cosine exponential_minus_one log_plus_one logistic log rsqrt sine sqrt tanh v1 0.9 1.9 :
tan v1 1.4 1.9 :
exponential v1 0.9 1.8 :
exponential v2 1.9 : result_accuracy
cbrt cosine exponential_minus_one log_plus_one logistic log rsqrt sine sqrt tanh tan v2 1.10 : result_accuracy
all_gather v1 0.9 1.4 : all_gather_dim channel_id replica_groups use_global_device_ids
all_gather v2 1.5 : all_gather_dim channel_id replica_groups use_global_device_ids
all_reduce v1 0.9 1.4 : channel_id replica_groups use_global_device_ids
all_reduce v2 1.5 : channel_id replica_groups use_global_device_ids
all_to_all v1 0.9 1.4 : channel_id concat_dimension replica_groups split_count split_dimension
all_to_all v2 1.5 : channel_id concat_dimension replica_groups split_count split_dimension
batch_norm_grad batch_norm_inference batch_norm_training v1 : epsilon feature_index
broadcast_in_dim v1 : broadcast_dimensions
broadcast v1 : broadcast_sizes
call v1 : callee
cholesky v1 : lower
collective_broadcast v1 0.16 1.19 : channel_id replica_groups
collective_broadcast v2 1.20 : channel_id has_dynamic_root replica_groups
collective_reduce v1 1.19 : channel_id has_dynamic_root replica_groups use_global_device_ids
collective_permute v1 : channel_id source_target_pairs
compare v1 : compare_type comparison_direction
composite v1 0.19 1.13 : composite_attributes decomposition name version
composite v2 1.14 : composite_attributes decomposition name version
concatenate get_dimension_size set_dimension_size v1 : dimension
constant v1 : value
convolution v1 : {_CONV} padding
cross-replica-sum v1 : replica_groups
custom_call v1 0.9 1.17 : {_CALL}
custom_call v2 1.18 : {_CALL} result_tilings
dot_general v1 0.9 1.5 : {_DOT}
dot_general v2 1.6 : {_DOT} {" ".join(ALGORITHM)}
dot v1 : precision_config
dynamic_broadcast_in_dim v1 : broadcast_dimensions known_expanding_dimensions known_nonexpanding_dimensions
dynamic_conv v1 0.9 0.19 : {_CONV} padding
dynamic_conv v2 0.20 : {_CONV}
dynamic_gather v1 0.9 1.0 : {_GATHER}
dynamic_gather v2 1.1 : {_GATHER} {_GATHER_BATCH}
dynamic_iota iota v1 : iota_dimension
dynamic_slice v1 : slice_sizes
einsum unary_einsum v1 : einsum_config
fft v1 : fft_length fft_type
func v1 : arg_attrs function_type res_attrs sym_name sym_visibility
gather v1 0.9 1.0 : {_GATHER} slice_sizes
gather v2 1.1 : {_GATHER} {_GATHER_BATCH} slice_sizes
get_tuple_element v1 : index
infeed v1 : infeed_config layout
map reduce reverse v1 : dimensions
outfeed v1 : outfeed_config
pad v1 : edge_padding_high edge_padding_low interior_padding
recv send v1 0.9 1.11 : channel_id channel_type is_host_transfer
recv send v2 1.12 : channel_id channel_type is_host_transfer source_target_pairs
reduce_precision v1 : exponent_bits mantissa_bits
reduce_scatter v1 : channel_id replica_groups scatter_dimension use_global_device_ids
reduce_window v1 : base_dilations padding window_dilations window_dimensions window_strides
rng_bit_generator v1 : rng_algorithm
rng v1 : rng_distribution
scatter v1 0.9 1.0 : {_SCATTER}
scatter v2 1.1 : {_SCATTER} input_batching_dims scatter_indices_batching_dims
select_and_scatter v1 : padding window_dimensions window_strides
slice v1 : limit_indices start_indices strides
sort v1 : dimension is_stable
torch_index_select v1 : batch_dims dim
transpose v1 : permutation
triangular_solve v1 : left_side lower transpose_a unit_diagonal
"""


@record(frozen=True)
class Operation:
    """One version of an operation: `name` without `_vK`, its first and its last version, its attributes in order."""

    name: str
    number: int
    since: Version
    until: Version
    attrs: tuple[str, ...]

    @property
    def full_name(self) -> str:
        return f"{self.name}_v{self.number}"


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor), 0


def _parse() -> dict[str, list[Operation]]:
    table: dict[str, list[Operation]] = {}
    for line in _LINES.strip().replace("\n ", " ").split("\n"):
        head, _, attrs = line.partition(":")
        words = head.split()
        at = next(i for i, w in enumerate(words) if w in ("v1", "v2"))
        span = [_version(w) for w in words[at + 1 :]]
        since, until = [*span, *(MINIMUM, CURRENT)[len(span) :]]
        for name in words[:at]:
            operation = Operation(name, int(words[at][1]), since, until, tuple(sorted(attrs.split())))
            table.setdefault(name, []).append(operation)
    return table


OPERATIONS: Final = _parse()  # by name, oldest first
BY_NAME: Final = {f"vhlo.{o.full_name}": o for versions in OPERATIONS.values() for o in versions}

# Attributes with the value that they have where StableHLO leaves them out: read, they are dropped.
DEFAULTS: Final[dict[str, dict[str, object]]] = {
    "cholesky": {"lower": False},
    "compare": {"compare_type": "NOTYPE"},
    "composite": {"version": 0, "composite_attributes": {}},
    "custom_call": {
        "has_side_effect": False, "backend_config": "", "api_version": 1, "called_computations": (),
        "operand_layouts": (), "result_layouts": (), "output_operand_aliases": (), "result_tilings": (),
    },
    "dynamic_broadcast_in_dim": {"known_expanding_dimensions": (), "known_nonexpanding_dimensions": ()},
    "gather": {"indices_are_sorted": False},
    "dynamic_gather": {"indices_are_sorted": False},
    "scatter": {"indices_are_sorted": False, "unique_indices": False},
    "infeed": {"infeed_config": "", "layout": ()},
    "outfeed": {"outfeed_config": ""},
    "send": {"is_host_transfer": False, "source_target_pairs": ()},
    "recv": {"is_host_transfer": False, "source_target_pairs": ()},
    "sort": {"dimension": -1, "is_stable": False},
    "all_gather": {"use_global_device_ids": False},
    "all_reduce": {"use_global_device_ids": False},
    "reduce_scatter": {"use_global_device_ids": False},
    "collective_reduce": {"use_global_device_ids": False, "has_dynamic_root": False},
    "collective_broadcast": {"has_dynamic_root": False},
}  # fmt: skip
# The same for those that are lists of one number, by op.
_WINDOW: Final = {
    "window_strides": 1, "lhs_dilation": 1, "rhs_dilation": 1, "padding": 0, "window_reversal": False,
    "precision_config": "DEFAULT",
}  # fmt: skip
SPLATS: Final[dict[str, dict[str, object]]] = {
    "convolution": _WINDOW,
    "dynamic_conv": _WINDOW,
    "dot": {"precision_config": "DEFAULT"},
    "dot_general": {"precision_config": "DEFAULT"},
    "reduce_window": {"window_strides": 1, "base_dilations": 1, "window_dilations": 1, "padding": 0},
    "select_and_scatter": {"window_strides": 1, "padding": 0},
}  # fmt: skip
