"""Elementwise operations on bits: and, or, xor, not, shifts, popcnt, count_leading_zeros. Imports ir, loop."""

from __future__ import annotations

import numpy as np

from hilo.ir.registry import op
from hilo.ops import numeric
from hilo.ops.elementwise_arith import by_kind
from hilo.ops.elementwise_base import arith, binary, examples, pointwise, unary
from hilo.ops.numeric import Arr


@op("and")
class and_:
    """Bitwise (booleans: logical) AND. Booleans, integers. Spec: and."""

    infer = binary("biu")
    evaluate = by_kind(b=np.logical_and, i=numeric.exact_int(np.bitwise_and))
    scalar = arith("and_")
    sharding = pointwise
    examples = examples("biu", 2)


@op("or")
class or_:
    """Bitwise (booleans: logical) OR. Booleans, integers. Spec: or."""

    infer = binary("biu")
    evaluate = by_kind(b=np.logical_or, i=numeric.exact_int(np.bitwise_or))
    scalar = arith("or_")
    sharding = pointwise
    examples = examples("biu", 2)


@op("xor")
class xor:
    """Bitwise (booleans: logical) exclusive OR. Booleans, integers. Spec: xor."""

    infer = binary("biu")
    evaluate = by_kind(b=np.logical_xor, i=numeric.exact_int(np.bitwise_xor))
    scalar = arith("xor")
    sharding = pointwise
    examples = examples("biu", 2)


@op("not")
class not_:
    """Bitwise (booleans: logical) NOT. Booleans, integers. Spec: not."""

    infer = unary("biu")
    evaluate = by_kind(b=np.logical_not, i=numeric.exact_int(np.invert))
    scalar = arith("not_")
    sharding = pointwise
    examples = examples("biu")


@op("shift_left")
class shift_left:
    """`lhs` shifted left by `rhs` bits (taken as unsigned); 0 when that is past the width. Integers.

    Spec: shift_left.
    """

    infer = binary("iu")

    @staticmethod
    def evaluate(x: Arr, y: Arr) -> Arr:
        return numeric.shift(x, y, "left")

    scalar = arith("shift_left")
    sharding = pointwise
    examples = examples("iu", 2)


@op("shift_right_arithmetic")
class shift_right_arithmetic:
    """`lhs` shifted right by `rhs` bits (taken as unsigned), filled with its highest bit, also past the width.

    Integers (of unsigned ones the highest bit counts as the sign). Spec: shift_right_arithmetic.
    """

    infer = binary("iu")

    @staticmethod
    def evaluate(x: Arr, y: Arr) -> Arr:
        return numeric.shift(x, y, "arithmetic")

    scalar = arith("shift_right_arithmetic")
    sharding = pointwise
    examples = examples("iu", 2)


@op("shift_right_logical")
class shift_right_logical:
    """`lhs` shifted right by `rhs` bits (taken as unsigned), filled with zeros; 0 past the width. Integers.

    Spec: shift_right_logical.
    """

    infer = binary("iu")

    @staticmethod
    def evaluate(x: Arr, y: Arr) -> Arr:
        return numeric.shift(x, y, "logical")

    scalar = arith("shift_right_logical")
    sharding = pointwise
    examples = examples("iu", 2)


@op("popcnt")
class popcnt:
    """The number of bits that are one. Integers. Spec: popcnt."""

    infer = unary("iu")
    evaluate = numeric.popcnt
    scalar = arith("popcnt")
    sharding = pointwise
    examples = examples("iu")


@op("count_leading_zeros")
class count_leading_zeros:
    """The number of zero bits above the highest one; the width for 0. Integers. Spec: count_leading_zeros."""

    infer = unary("iu")
    evaluate = numeric.count_leading_zeros
    scalar = arith("count_leading_zeros")
    sharding = pointwise
    examples = examples("iu")
