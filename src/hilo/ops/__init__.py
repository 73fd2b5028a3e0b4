"""The ops: one file per family, one class per op. A file is loaded when one of its ops is looked up
(`hilo.ir.registry`): a program needs few of them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

#: The ops of each file; without a dialect: StableHLO's. tests/ops/test_homes.py compares it with the files.
FILES: Final[dict[str, str]] = {
    "asynchronous": "async_done async_start",
    "batch_norm": "batch_norm_grad batch_norm_inference batch_norm_training",
    "calls": "composite custom_call func.call",
    "chlo": (
        "chlo.acos chlo.acosh chlo.asin chlo.asinh chlo.atan chlo.atanh chlo.conj chlo.constant "
        "chlo.constant_like chlo.cosh chlo.digamma chlo.erf chlo.erf_inv chlo.erfc chlo.is_inf chlo.is_neg_inf "
        "chlo.is_pos_inf chlo.lgamma chlo.next_after chlo.sinh chlo.square chlo.tan"
    ),
    "chlo_broadcast": (
        "chlo.broadcast_add chlo.broadcast_and chlo.broadcast_atan2 chlo.broadcast_compare chlo.broadcast_complex "
        "chlo.broadcast_divide chlo.broadcast_maximum chlo.broadcast_minimum chlo.broadcast_multiply "
        "chlo.broadcast_next_after chlo.broadcast_or chlo.broadcast_polygamma chlo.broadcast_power "
        "chlo.broadcast_remainder chlo.broadcast_select chlo.broadcast_shift_left "
        "chlo.broadcast_shift_right_arithmetic chlo.broadcast_shift_right_logical chlo.broadcast_subtract "
        "chlo.broadcast_xor chlo.broadcast_zeta"
    ),
    "chlo_integers": "chlo.dynamic_reshape chlo.mulhi",
    "chlo_series": "chlo.bessel_i1e chlo.polygamma chlo.zeta",
    "collective_reduce": "collective_reduce",
    "collective_sends": "collective_broadcast collective_permute",
    "collectives": "all_gather all_reduce all_to_all cross-replica-sum reduce_scatter",
    "compare": "clamp compare is_finite select",
    "complex": "complex imag real",
    "concat_pad": "concatenate pad",
    "constant": "constant",
    "control": "case if while",
    "convert": "bitcast_convert convert reduce_precision",
    "convolution": "convolution",
    "dot": "dot dot_general",
    "dynamic": "get_dimension_size hilo.broadcast hilo.guards",
    "dynamic_conv": "dynamic_conv",
    "dynamic_shape": (
        "dynamic_broadcast_in_dim dynamic_gather dynamic_iota dynamic_pad dynamic_reshape "
        "real_dynamic_slice set_dimension_size"
    ),
    "elementwise_arith": "abs add divide maximum minimum multiply negate power remainder sign subtract",
    "elementwise_bits": (
        "and count_leading_zeros not or popcnt shift_left shift_right_arithmetic shift_right_logical xor"
    ),
    "elementwise_math": (
        "atan2 cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic "
        "round_nearest_afz round_nearest_even rsqrt sine sqrt tan tanh"
    ),
    "fft": "fft",
    "fusion": "hilo.fusion",
    "gather": "gather",
    "host": "infeed outfeed recv send",
    "interpreter": "interpreter.print interpreter.probe interpreter.run_parallel",
    "linalg": "cholesky triangular_solve",
    "mhlo": "mhlo.add_dependency mhlo.bitcast mhlo.copy mhlo.topk",
    "older": "broadcast einsum rng torch_index_select unary_einsum",
    "quantized": "uniform_dequantize uniform_quantize",
    "ragged_dot": "chlo.ragged_dot",
    "random": "rng_bit_generator",
    "reduce": "map reduce",
    "reduce_window": "reduce_window select_and_scatter",
    "scan": "chlo.scan",
    "scatter": "scatter",
    "shape": "broadcast_in_dim iota reshape reverse transpose",
    "shardy": (
        "sdy.data_flow_edge sdy.manual_computation sdy.named_computation sdy.propagation_barrier sdy.reshard "
        "sdy.sharding_constraint sdy.sharding_group"
    ),
    "slicing": "dynamic_slice dynamic_update_slice slice",
    "sort": "chlo.top_k sort",
    "tuples": "after_all create_token get_tuple_element optimization_barrier partition_id replica_id tuple",
}


@cache
def homes() -> dict[str, str]:
    """The file of each op, by the op's full name."""
    return {name if "." in name else f"stablehlo.{name}": file for file, ops in FILES.items() for name in ops.split()}


def load(full_name: str) -> None:
    """Load the file that defines an op, if there is such an op."""
    file = homes().get(full_name)
    if file is not None:
        import_module(f"hilo.ops.{file}")


def load_quantized_rules() -> None:
    """Load what the ops mean on quantized tensors (`ir.quantized.RULES`)."""
    import_module("hilo.ops.quantized_rules")


def load_all() -> None:
    """Load all files that define ops."""
    for file in FILES:
        import_module(f"hilo.ops.{file}")
