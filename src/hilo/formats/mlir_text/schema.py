"""What StableHLO's attributes are called and how they are written, as tables. Imports nothing.

`HOW` gives the way in which an inherent attribute is written in the generic form (the default is by its Python type).
"""

from __future__ import annotations

from typing import Any, Final

ENUMS: Final[dict[str, tuple[str, ...]]] = {
    "comparison_direction": ("EQ", "NE", "GE", "GT", "LE", "LT"),
    "comparison_type": ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "precision": ("DEFAULT", "HIGH", "HIGHEST"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "transpose": ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "rng_distribution": ("UNIFORM", "NORMAL"),
    "rng_algorithm": ("DEFAULT", "THREE_FRY", "PHILOX"),
    "result_accuracy_mode": ("DEFAULT", "HIGHEST", "TOLERANCE"),
}

_DOT: Final = (
    "lhs_batching_dimensions", "rhs_batching_dimensions", "lhs_contracting_dimensions", "rhs_contracting_dimensions",
)  # fmt: skip

# Structs whose fields are attributes of the op itself, with the value of a field that is left out (None: required).
SPREAD: Final[dict[str, dict[str, Any]]] = {
    "dot": dict.fromkeys(_DOT, ()),
    "gather": {
        **dict.fromkeys(("offset_dims", "collapsed_slice_dims", "operand_batching_dims"), ()),
        **dict.fromkeys(("start_indices_batching_dims", "start_index_map"), ()),
        "index_vector_dim": 0,
    },
    "scatter": {
        **dict.fromkeys(("update_window_dims", "inserted_window_dims", "input_batching_dims"), ()),
        **dict.fromkeys(("scatter_indices_batching_dims", "scatter_dims_to_operand_dims"), ()),
        "index_vector_dim": 0,
    },
    "ragged_dot": dict.fromkeys((*_DOT, "lhs_ragged_dimensions", "rhs_group_dimensions"), ()),
}  # fmt: skip

# Structs that stay one value.
STRUCTS: Final[dict[str, dict[str, Any]]] = {
    "channel_handle": {"handle": None, "type": None},
    "output_operand_alias": {"output_tuple_indices": (), "operand_index": None, "operand_tuple_indices": ()},
    "dot_algorithm": {
        "lhs_precision_type": "", "rhs_precision_type": "", "accumulation_type": "", "lhs_component_count": None,
        "rhs_component_count": None, "num_primitive_operations": None, "allow_imprecise_accumulation": None,
    },
}  # fmt: skip

# The attribute that holds a spread struct in the generic form, and the struct's kind, by op.
HOLDER: Final[dict[str, tuple[str, str]]] = {
    "dot_general": ("dot_dimension_numbers", "dot"),
    "gather": ("dimension_numbers", "gather"),
    "dynamic_gather": ("dimension_numbers", "gather"),
    "scatter": ("scatter_dimension_numbers", "scatter"),
    "convolution": ("dimension_numbers", "conv"),
    "dynamic_conv": ("dimension_numbers", "conv"),
    "ragged_dot": ("ragged_dot_dimension_numbers", "ragged_dot"),
}

CONV_FIELDS: Final = (
    "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
    "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions",
    "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions",
)  # fmt: skip


def _names(how: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), how)


HOW: Final[dict[str, str]] = {
    **_names("i32", "cross_program_prefetch_index index exponent_bits mantissa_bits version"),
    **_names("i64", "all_gather_dim batch_dims batch_group_count concat_dimension dim dimension feature_group_count "
                    "feature_index group_id iota_dimension k scan_dim_size scatter_dimension split_count "
                    "split_dimension"),
    **_names("f32", "epsilon"),
    **_names("bool", "has_side_effect indices_are_sorted is_associative is_host_transfer is_reverse is_stable "
                     "largest left_side lower unique_indices unit_diagonal"),
    **_names("string", "backend_config call_target_name einsum_config infeed_config name outfeed_config "
                       "probe_id"),
    **_names("i64s", "base_dilations broadcast_dimensions broadcast_sizes dimensions "
                     "edge_padding_high edge_padding_low fft_length interior_padding "
                     "known_expanding_dimensions known_nonexpanding_dimensions lhs_dilation "
                     "limit_indices permutation result_layout rhs_dilation slice_sizes source_layout "
                     "start_indices strides "
                     "window_dilations window_dimensions window_strides"),
    **_names("bools", "window_reversal"),
    **_names("dense", "padding replica_groups source_target_pairs"),
    **_names("unit", "use_global_device_ids has_dynamic_root"),
    **_names("symbol", "callee decomposition"),
    **_names("symbols", "called_computations infeed"),
    **_names("symbol_rows", "programs"),
    **_names("layouts", "operand_layouts result_layouts"),
    **_names("tilings", "result_tilings"),
    **_names("text", "allowed_direction in_shardings manual_axes out_shardings sharding"),
    **_names("list", "composite_attributes layout output_operand_aliases"),
    **_names("dense_array", "operandSegmentSizes resultSegmentSizes"),
    "algorithm": "dot_algorithm",
    "api_version": "i32",
    "channel_handle": "channel_handle",
    "compare_type": "enum comparison_type",
    "comparison_direction": "enum comparison_direction",
    "fft_type": "enum fft_type",
    "precision_config": "enums precision",
    "result_accuracy": "result_accuracy",
    "rng_algorithm": "enum rng_algorithm",
    "rng_distribution": "enum rng_distribution",
    "transpose_a": "enum transpose",
    "value": "value",
    "type": "type",
}  # fmt: skip

HOLDERS: Final = frozenset(holder for holder, _ in HOLDER.values())
INHERENT: Final = frozenset(HOW) | HOLDERS

# Attributes that MLIR lets one leave out: the printer does so where they have the op definition's default.
OPTIONAL: Final = frozenset(_names(
    "",
    "api_version backend_config base_dilations called_computations channel_handle compare_type "
    "composite_attributes has_dynamic_root has_side_effect indices_are_sorted infeed infeed_config "
    "is_host_transfer known_expanding_dimensions known_nonexpanding_dimensions operand_layouts "
    "outfeed_config output_operand_aliases padding precision_config result_accuracy result_layouts "
    "result_tilings source_target_pairs unique_indices use_global_device_ids version window_dilations "
    "algorithm lhs_dilation rhs_dilation window_reversal window_strides broadcast_dimensions layout",
))

# The regions of each op, in order; a trailing * takes all as a tuple, a trailing ? too, or leaves the attribute out.
REGIONS: Final[dict[str, tuple[str, ...]]] = {
    "all_reduce": ("computation",), "async_start": ("body",), "case": ("branches*",),
    "collective_reduce": ("computation",), "composite": ("composite_regions?",), "if": ("true_branch", "false_branch"),
    "manual_computation": ("body",), "map": ("body",), "named_computation": ("body",), "reduce": ("body",),
    "reduce_scatter": ("computation",), "reduce_window": ("body",),
    "scan": ("body",), "scatter": ("update_computation",), "select_and_scatter": ("select", "scatter"),
    "sort": ("comparator",), "while": ("cond", "body"),
}  # fmt: skip
