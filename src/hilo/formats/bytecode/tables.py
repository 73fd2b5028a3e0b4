"""The numbers of attributes and types in the dialects' encodings, and the ops' properties, as data. Imports the schema.

A struct's fields are letters: i signed number, I list of them, v number, d double, a attribute, A list of attributes,
t type, s string, b byte, o byte and then an attribute if it is 1, O the same with a number, q attribute that may be
absent.
"""

from __future__ import annotations

from typing import Final

from hilo.formats.mlir_text.schema import CONV_FIELDS, ENUMS

API_VERSIONS: Final = (
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI",
)  # fmt: skip
ENUM_VALUES: Final[dict[str, dict[int, str]]] = {
    kind: dict(enumerate(names, 1 if kind == "rng_distribution" else 0))
    for kind, names in {**ENUMS, "api_version": API_VERSIONS}.items()
}

Struct = tuple[str, dict[str, str]]


def _fields(text: str) -> dict[str, str]:
    return dict(item.split(":") for item in text.split())  # type: ignore[misc]


_DOT: Final = (
    "lhs_batching_dimensions:I rhs_batching_dimensions:I lhs_contracting_dimensions:I rhs_contracting_dimensions:I"
)
_ALIAS: Final = "output_tuple_indices:I operand_index:i operand_tuple_indices:I"
_ACCURACY: Final = "atol:d rtol:d ulps:i mode:a"
_SUB_AXIS: Final = "pre_size:i size:i"

# -- VHLO ---------------------------------------------------------------------------------------

VHLO_ENUMS: Final = {
    3: "comparison_direction", 4: "comparison_type", 5: "api_version", 7: "fft_type", 11: "precision",
    12: "rng_algorithm", 13: "rng_distribution", 16: "transpose", 19: "result_accuracy_mode",
}  # fmt: skip
VHLO_STRUCTS: Final[dict[int, Struct]] = {
    10: ("output_operand_alias", _fields(_ALIAS)),
    18: ("type_extensions", _fields("bounds:I")),
    20: ("result_accuracy", _fields(_ACCURACY)),
    21: ("sub_axis_info", _fields(_SUB_AXIS)),
    22: ("axis_ref", _fields("name:a sub_axis_info:O")),
    23: ("replica_group_mesh_axes", _fields("mesh:a axes:a")),
    24: ("mesh_axis", _fields("name:a size:i")),
    25: ("mesh", _fields("axes:a device_ids:q")),
}

# Scalar types: by number, MLIR's name.
VHLO_SCALARS: Final = {
    0: "i1", 2: "bf16", 3: "f16", 4: "f32", 5: "f64", 6: "f8E4M3FN", 7: "f8E5M2", 9: "index", 10: "i4", 11: "i8",
    12: "i16", 13: "i32", 14: "i64", 15: "ui4", 16: "ui8", 17: "ui16", 18: "ui32", 19: "ui64", 22: "!stablehlo.token",
    26: "!shape.witness", 27: "f8E4M3FNUZ", 28: "f8E5M2FNUZ", 29: "f8E4M3B11FNUZ", 31: "i2", 32: "ui2", 33: "none",
    34: "tf32", 35: "f8E4M3", 36: "f8E3M4", 37: "f4E2M1FN", 38: "f6E2M3FN", 39: "f6E3M2FN", 40: "f8E8M0FNU",
}  # fmt: skip

# -- StableHLO and builtin ----------------------------------------------------------------------

STABLEHLO_ENUMS: Final = {
    2: "comparison_direction", 3: "comparison_type", 6: "fft_type", 8: "precision", 9: "rng_algorithm",
    10: "rng_distribution", 12: "transpose", 16: "result_accuracy_mode",
}  # fmt: skip
CHLO_ENUMS: Final = {0: "comparison_direction", 1: "comparison_type"}
STABLEHLO_STRUCTS: Final[dict[int, Struct]] = {
    1: ("channel_handle", _fields("handle:i type:i")),
    4: ("conv", {name: "I" if name.endswith("s") else "i" for name in CONV_FIELDS}),
    5: ("dot", _fields(_DOT)),
    7: ("gather", _fields("offset_dims:I collapsed_slice_dims:I operand_batching_dims:I "
                          "start_indices_batching_dims:I start_index_map:I index_vector_dim:i")),
    11: ("scatter", _fields("update_window_dims:I inserted_window_dims:I input_batching_dims:I "
                            "scatter_indices_batching_dims:I scatter_dims_to_operand_dims:I index_vector_dim:i")),
    13: ("type_extensions", _fields("bounds:I")),
    14: ("output_operand_alias", _fields(_ALIAS)),
    15: ("dot_algorithm", _fields("lhs_precision_type:t rhs_precision_type:t accumulation_type:t lhs_component_count:i "
                                  "rhs_component_count:i num_primitive_operations:i allow_imprecise_accumulation:b")),
    17: ("result_accuracy", _fields(_ACCURACY)),
    18: ("replica_group_mesh_axes", _fields("mesh:a axes:A")),
    19: ("sub_axis_info", _fields(_SUB_AXIS)),
    20: ("axis_ref", _fields("name:s sub_axis_info:o")),
    21: ("mesh_axis", _fields("name:s size:i")),
    22: ("mesh", _fields("axes:a device_ids:o")),
}  # fmt: skip
BUILTIN_FLOATS: Final = {
    3: "bf16", 4: "f16", 5: "f32", 6: "f64", 7: "f80", 8: "f128", 21: "tf32", 22: "f8E5M2", 23: "f8E4M3",
    24: "f8E4M3FN", 25: "f8E5M2FNUZ", 26: "f8E4M3FNUZ", 27: "f8E4M3B11FNUZ", 28: "f8E3M4", 29: "f4E2M1FN",
    30: "f6E2M3FN", 31: "f6E3M2FN", 32: "f8E8M0FNU",
}  # fmt: skip

# -- properties of plain ops --------------------------------------------------------------------
# The inherent attributes by op; ops that are not here have none. A ? behind one that may be absent, ?? behind one that
# older versions of the op do not have. `+2`: the numbers of operands in 2 groups come last. (VHLO's are in `opset`.)

_CONV: Final = ("batch_group_count dimension_numbers feature_group_count lhs_dilation? precision_config? rhs_dilation? "
                "window_reversal? window_strides?")  # fmt: skip
_LINES: Final = f"""
cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh: result_accuracy??
all_gather: all_gather_dim channel_handle? replica_groups use_global_device_ids?
all_reduce: channel_handle? replica_groups use_global_device_ids?
all_to_all: channel_handle? concat_dimension replica_groups split_count split_dimension
batch_norm_grad batch_norm_inference batch_norm_training: epsilon feature_index
broadcast: broadcast_sizes
broadcast_in_dim: broadcast_dimensions
cholesky: lower?
collective_broadcast: channel_handle? has_dynamic_root?? replica_groups
collective_permute: channel_handle? source_target_pairs
collective_reduce: channel_handle? has_dynamic_root? replica_groups use_global_device_ids?
compare: compare_type? comparison_direction
composite: composite_attributes? decomposition name version?
concatenate get_dimension_size set_dimension_size: dimension
constant: value
convolution: {_CONV} padding?
cross-replica-sum: replica_groups
custom_call: api_version? backend_config? call_target_name called_computations? has_side_effect? operand_layouts?
 output_operand_aliases? result_layouts? result_tilings??
dot: precision_config?
dot_general: algorithm?? dot_dimension_numbers precision_config?
dynamic_broadcast_in_dim: broadcast_dimensions known_expanding_dimensions? known_nonexpanding_dimensions?
dynamic_conv: {_CONV}
dynamic_gather: dimension_numbers indices_are_sorted?
dynamic_slice: slice_sizes
einsum unary_einsum: einsum_config
fft: fft_length fft_type
gather: dimension_numbers indices_are_sorted? slice_sizes
get_tuple_element: index
infeed: infeed_config? layout?
iota dynamic_iota: iota_dimension
map reduce reverse: dimensions
outfeed: outfeed_config?
pad: edge_padding_high edge_padding_low interior_padding
recv send: channel_handle is_host_transfer? source_target_pairs??
reduce_precision: exponent_bits mantissa_bits
reduce_scatter: channel_handle? replica_groups scatter_dimension use_global_device_ids?
reduce_window: base_dilations? padding? window_dilations? window_dimensions window_strides?
rng: rng_distribution
rng_bit_generator: rng_algorithm
scatter: indices_are_sorted? scatter_dimension_numbers unique_indices?
select_and_scatter: padding? window_dimensions? window_strides?
slice: limit_indices start_indices strides
sort: dimension? is_stable?
torch_index_select: batch_dims dim
transpose: permutation
triangular_solve: left_side lower transpose_a unit_diagonal
"""
_CHLO_LINES: Final = """
constant constant_like: value
broadcast_compare: broadcast_dimensions? compare_type? comparison_direction
ragged_dot: precision_config? ragged_dot_dimension_numbers
top_k: is_stable?? k
scan: dimension is_associative? is_reverse? scan_dim_size? +2
"""
_BROADCASTS: Final = (
    "add and atan2 complex divide maximum minimum multiply next_after or polygamma power remainder shift_left "
    "shift_right_arithmetic shift_right_logical subtract xor zeta"
)

Properties = tuple[tuple[str, bool], ...]  # names in order, and whether they may be absent; "+" for segment sizes


def _properties(text: str) -> Properties:
    names = sorted(text.split(), key=lambda n: (n[0] == "+", n))
    return tuple((n.rstrip("?"), n.endswith("?")) for n in names)


def _versions(text: str) -> tuple[Properties, ...]:
    """The newest version, and the one before where that had fewer attributes."""
    newest = _properties(text)
    before = _properties(" ".join(n for n in text.split() if not n.endswith("??")))
    return (newest,) if newest == before else (newest, before)


def _parse(dialect: str, lines: str) -> dict[str, tuple[Properties, ...]]:
    table: dict[str, tuple[Properties, ...]] = {}
    for line in lines.strip().replace("\n ", " ").split("\n"):
        names, _, attrs = line.partition(":")
        table.update((f"{dialect}.{name}", _versions(attrs)) for name in names.split())
    return table


_FUNC: Final = "arg_attrs? function_type no_inline?? res_attrs? sym_name sym_visibility?"
PROPERTIES: Final[dict[str, tuple[Properties, ...]]] = {
    **_parse("stablehlo", _LINES),
    **_parse("chlo", _CHLO_LINES),
    **{f"chlo.broadcast_{name}": _versions("broadcast_dimensions?") for name in _BROADCASTS.split()},
    "builtin.module": _versions("sym_name? sym_visibility?"),
    "func.func": _versions(_FUNC),
    "func.call": (*_versions("arg_attrs? callee no_inline?? res_attrs?"), *_versions("callee no_inline??")),
    "sdy.mesh": _versions("mesh sym_name"),
    "sdy.sharding_constraint": _versions("sharding"),
    "sdy.reshard": _versions("sharding"),
    "sdy.propagation_barrier": _versions("allowed_direction"),
    "sdy.data_flow_edge": _versions("sharding?"),
    "sdy.sharding_group": _versions("group_id"),
    "sdy.manual_computation": _versions("in_shardings manual_axes out_shardings"),
    "sdy.named_computation": _versions("in_shardings? name out_shardings?"),
}  # fmt: skip

# -- what is younger than 0.9 -------------------------------------------------------------------

VHLO_TYPE_SINCE: Final[dict[int, tuple[int, int, int]]] = {
    27: (0, 10, 0), 28: (0, 10, 0), 29: (0, 11, 0), 30: (0, 18, 0), 31: (1, 2, 0), 32: (1, 2, 0), 33: (1, 6, 0),
    34: (1, 6, 0), 35: (1, 7, 0), 36: (1, 7, 0), **dict.fromkeys((37, 38, 39, 40), (1, 8, 0)), 41: (1, 13, 0),
    42: (1, 15, 0),
}  # fmt: skip
VHLO_ATTR_SINCE: Final[dict[int, tuple[int, int, int]]] = {
    19: (1, 9, 0), 20: (1, 9, 0), **dict.fromkeys((21, 22, 23, 24, 25), (1, 16, 0)),
}  # fmt: skip
OTHER_DIALECTS_SINCE: Final = (1, 11, 0)
