"""All op names of the StableHLO and CHLO specifications, to tell "unknown" from "not supported".

Imports the cursor.
"""

from __future__ import annotations

from typing import Final

from hilo.errors import Error, Unsupported
from hilo.formats.mlir_text.cursor import Cursor


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


UNARY: Final = _words(
    "abs cbrt ceil convert count_leading_zeros cosine exponential exponential_minus_one floor imag "
    "is_finite log log_plus_one logistic negate not popcnt real round_nearest_afz round_nearest_even "
    "rsqrt sign sine sqrt tan tanh"
)
BINARY: Final = _words(
    "add and atan2 divide maximum minimum multiply or power remainder shift_left "
    "shift_right_arithmetic shift_right_logical subtract xor"
)
STABLEHLO: Final = frozenset((
    *UNARY, *BINARY,
    *_words("after_all all_gather all_reduce all_to_all async_done async_start batch_norm_grad "
    "batch_norm_inference batch_norm_training bitcast_convert broadcast broadcast_in_dim case "
    "cholesky clamp collective_broadcast collective_permute collective_reduce compare complex "
    "composite concatenate constant convolution create_token cross-replica-sum custom_call dot "
    "dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad "
    "dynamic_reshape dynamic_slice dynamic_update_slice einsum fft gather get_dimension_size "
    "get_tuple_element if infeed iota map optimization_barrier outfeed pad partition_id "
    "real_dynamic_slice recv reduce reduce_precision reduce_scatter reduce_window replica_id reshape "
    "return reverse rng rng_bit_generator scatter select select_and_scatter send set_dimension_size "
    "slice sort torch_index_select transpose triangular_solve tuple unary_einsum uniform_dequantize "
    "uniform_quantize while"),
))  # fmt: skip
CHLO_UNARY: Final = _words(
    "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv erfc "
    "is_inf is_neg_inf is_pos_inf lgamma sinh square tan"
)
CHLO_BROADCAST: Final = tuple(
    f"broadcast_{x}" for x in _words("add and atan2 compare complex divide maximum minimum multiply next_after or "
    "polygamma power remainder shift_left shift_right_arithmetic shift_right_logical subtract xor zeta")
)  # fmt: skip
CHLO: Final = frozenset((
    *CHLO_UNARY, *CHLO_BROADCAST,
    *_words("broadcast_select constant constant_like dynamic_reshape mulhi next_after polygamma ragged_dot scan "
            "top_k zeta"),
))  # fmt: skip


_KNOWN: Final = {"stablehlo": STABLEHLO, "chlo": CHLO}


# Functions that MHLO has under CHLO's names.
MHLO_FUNCTIONS: Final = _words("acos acosh asin asinh atan atanh cosh erf sinh square tan")
# Of the `check` dialect, in StableHLO's own tests.
CHECKS: Final = (
    "check.eq", "check.expect_eq", "check.expect_eq_const", "check.expect_almost_eq", "check.expect_almost_eq_const",
    "check.expect_close", "check.expect_serialized_eq",
)  # fmt: skip


def definitions(name: str) -> tuple[str, ...]:
    """The names under which an op may be defined here: MHLO's ops are StableHLO's, or CHLO's."""
    dialect, _, short = name.partition(".")
    return (name, f"stablehlo.{short}", f"chlo.{short}") if dialect == "mhlo" else (name,)


def is_specified(name: str) -> bool:
    """Whether the specification has an op of this name, with its dialect."""
    dialect, _, short = name.partition(".")
    return short in (CHLO if dialect == "chlo" else STABLEHLO if dialect in ("stablehlo", "mhlo") else ())


def missing_op(c: Cursor, name: str, at: int) -> Error:
    """The error for an op that has no definition."""
    c.op = name
    if is_specified(name):
        return c.error("this op is in the specification, but not supported yet", at, Unsupported)
    from difflib import get_close_matches

    near = get_close_matches(name, [f"{d}.{x}" for d, known in _KNOWN.items() for x in known], 1, 0.8)
    return c.error(f"unknown op; is {near[0]} meant?" if near else "unknown op", at)
