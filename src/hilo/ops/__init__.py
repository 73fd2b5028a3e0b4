"""The ops: one file per family, one class per op. Importing this fills the registry (`hilo.ir.registry`)."""

from __future__ import annotations

from hilo.ops import (  # noqa: F401
    batch_norm,
    calls,
    chlo,
    chlo_broadcast,
    chlo_series,
    collectives,
    compare,
    complex,  # noqa: A004
    concat_pad,
    constant,
    control,
    convert,
    convolution,
    dot,
    dynamic,
    dynamic_shape,
    elementwise_arith,
    elementwise_bits,
    elementwise_math,
    fft,
    gather,
    host,
    linalg,
    older,
    quantized,
    random,
    reduce,
    reduce_window,
    scatter,
    shape,
    slicing,
    sort,
    tuples,
)
