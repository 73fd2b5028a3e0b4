"""XLA's messages as tables: numbers of types, of enums, and of the fields that are attributes. Imports schema.

Facts from xla/service/hlo.proto and xla/xla_data.proto.
"""

from __future__ import annotations

from typing import Final

from hilo.formats.hlo_text.schema import ALGORITHMS

#: PrimitiveType by hilo's names.
TYPES: Final[dict[str, int]] = {
    "i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "u8": 6, "u16": 7, "u32": 8, "u64": 9, "f16": 10, "f32": 11,
    "f64": 12, "c64": 15, "bf16": 16, "c128": 18, "f8E5M2": 19, "f8E4M3FN": 20, "i4": 21, "u4": 22,
    "f8E4M3B11FNUZ": 23, "f8E5M2FNUZ": 24, "f8E4M3FNUZ": 25, "i2": 26, "u2": 27, "f8E4M3": 28, "f8E3M4": 29,
    "f4E2M1FN": 32, "f8E8M0FNU": 33,
}  # fmt: skip
TUPLE_TYPE: Final = 13
TOKEN_TYPE: Final = 17

#: Fields of a literal whose elements stand one after the other as in memory, and of those that are packed numbers.
AS_BYTES: Final = {
    "i8": 15, "u8": 3, "i16": 17, "u16": 16, "f16": 11, "bf16": 13, "f8E5M2": 19, "f8E4M3FN": 20, "f8E4M3B11FNUZ": 23,
    "f8E5M2FNUZ": 24, "f8E4M3FNUZ": 25, "f8E4M3": 28, "f8E3M4": 29, "f8E8M0FNU": 33, "f32": 8, "f64": 9, "c64": 12,
    "c128": 18, "i4": 21, "u4": 22, "i2": 26, "u2": 27, "f4E2M1FN": 32,
}  # fmt: skip
AS_NUMBERS: Final = {"i1": 2, "i32": 4, "i64": 5, "u32": 6, "u64": 7}

PRECISIONS: Final = {"default": 0, "high": 1, "highest": 2}
ALGORITHM_NUMBERS: Final = {
    **{name: n for n, name in enumerate((name for name in ALGORITHMS if not name.endswith("_x9")), 1)},
    "dot_bf16_bf16_f32_x9": 13,
}
FFT: Final = {"FFT": 0, "IFFT": 1, "RFFT": 2, "IRFFT": 3}
TRANSPOSE: Final = {"NO_TRANSPOSE": 1, "TRANSPOSE": 2, "ADJOINT": 3}
RNG: Final = {"rng_default": 0, "rng_three_fry": 1, "rng_philox": 2, "rng_uniform": 1, "rng_normal": 2}

#: Attributes that are a field of an instruction whatever the opcode, as (number, kind of value): "int", "flag", "text",
#: or "numbers". The writer and the reader have further ones of their own.
FIELDS: Final[dict[str, tuple[int, str]]] = {
    name: (number, kind)
    for kind, numbers in {
        "int": {"number": 9, "index": 13, "exponent_bits": 18, "mantissa_bits": 19, "feature_index": 25,
                "channel_id": 26, "feature_group_count": 50, "batch_group_count": 58, "k": 81},
        "flag": {"is_host_transfer": 47, "is_stable": 60, "custom_call_has_side_effect": 65, "indices_are_sorted": 67,
                 "unique_indices": 69, "use_global_device_ids": 71, "largest": 85, "is_composite": 89},
        "text": {"kind": 11, "outfeed_config": 22, "infeed_config": 27, "custom_call_target": 28, "backend_config": 43,
                 "direction": 63, "type": 72},
        "numbers": {"dimensions": 14, "dynamic_slice_sizes": 20, "fft_length": 32, "slice_sizes": 34},
    }.items()
    for name, number in numbers.items()
}  # fmt: skip

DOT_DIMENSIONS: Final = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")

#: Messages of an opcode's own whose fields 1, 2 ... are attributes (lists, but for `ONE_NUMBER`): the message's number,
#: and the attributes.
GROUPED: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "dot": (30, DOT_DIMENSIONS),
    "gather": (33, ("offset_dims", "collapsed_slice_dims", "start_index_map", "index_vector_dim",
                    "operand_batching_dims", "start_indices_batching_dims")),
    "scatter": (48, ("update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims",
                     "index_vector_dim", "input_batching_dims", "scatter_indices_batching_dims")),
    "cholesky": (62, ("lower",)),
}  # fmt: skip

ONE_NUMBER: Final = ("index_vector_dim", "lower")

# What an instruction calls, in the order in which XLA numbers it.
CALLEES: Final = ("calls", "to_apply", "body", "condition", "select", "scatter", "true_computation",
                  "false_computation", "branch_computations", "called_computations")  # fmt: skip
