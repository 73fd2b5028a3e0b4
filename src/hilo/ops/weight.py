"""How much work one element of an op is, for decisions about fusion and unrolling. Imports ir."""

from __future__ import annotations

from typing import Final

from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types

# Names by work, in operations of a vector unit; what is not named is one operation.
_CLASSES: Final = {
    0.0: "constant parameter get broadcast_in_dim reshape transpose slice bitcast_convert",
    4.0: "divide sqrt remainder",
    16.0: "rsqrt cbrt exponential log logistic tanh erf exponential_minus_one log_plus_one",
    32.0: "sine cosine tan power atan2 erf_inv erfc asin acos atan sinh cosh asinh acosh atanh",
    128.0: "digamma lgamma polygamma zeta bessel_i1e",
}
WORK: Final = {name: w for w, names in _CLASSES.items() for name in names.split()}
EXPENSIVE: Final = 16.0  # from here on a value is not computed twice


def weight(o: Op) -> float:
    """Operations for one element of `o`, without those for its operands."""
    return WORK.get(o.name, 1.0)


def cost(o: Op) -> tuple[float, float]:
    """(operations, bytes moved) of one op: what its definition says, or one operation for each element of its results,
    with every operand read and every result written once."""
    types = [x.type for x in o.operands]
    if o.kind.cost is not None:
        return o.kind.cost(*types, out=o.type, **o.attrs.own())
    outs = [t for t in result_types(o.type) if isinstance(t, TensorType)]
    tensors = [t for t in types if isinstance(t, TensorType)] + outs
    return float(sum(t.size for t in outs)), float(sum(t.nbytes for t in tensors))
