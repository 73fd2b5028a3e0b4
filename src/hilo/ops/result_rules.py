"""Which constraint of the specification a declared result type breaks. Imports errors and ir.

Results are inferred; a text or a file also declares them. Where the two differ, the error names the constraint that
ties the result to the operands: most ops have one for the shape and one for the element type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hilo.errors import VerifyError, require
from hilo.ir.types import UNKNOWN, Dim, TensorType, Type, compatible, result_types
from hilo.record import record


@record(frozen=True)
class Rules:
    """The constraints on a result's shape, its element type (or type, if it is no tensor), the number of results."""

    shape: str = "C1"
    element: str = "C1"
    number: str = ""


_RULES: Final[dict[str, tuple[str, ...]]] = {  # the fields of `Rules`
    "stablehlo.abs": ("C1", "C2"),
    "stablehlo.after_all": ("", ""),
    "stablehlo.all_gather": ("C6", "C6", "C6"),
    "stablehlo.all_reduce": ("C6", "C7", "C6"),
    "stablehlo.all_to_all": ("C9", "C9", "C9"),
    "stablehlo.async_start": ("C4", "C4"),
    "stablehlo.batch_norm_grad": ("C3", "C2"),
    "stablehlo.batch_norm_inference": ("C7", "C7"),
    "stablehlo.batch_norm_training": ("C7", "C7"),
    "stablehlo.broadcast": ("", ""),
    "stablehlo.case": ("C4", "C4", "C4"),
    "stablehlo.clamp": ("C4", "C4"),
    "stablehlo.collective_broadcast": ("C3", "C3", "C5"),
    "stablehlo.collective_permute": ("C5", "C5"),
    "stablehlo.collective_reduce": ("C3", "C3", "C3"),
    "stablehlo.compare": ("C2", ""),
    "stablehlo.complex": ("C2", "C3"),
    "stablehlo.concatenate": ("C6", "C5"),
    "stablehlo.convolution": ("C25", "C27"),
    "stablehlo.create_token": ("", ""),
    "stablehlo.cross-replica-sum": ("C6", "C7"),
    "stablehlo.dynamic_gather": ("C13", "C14"),
    "stablehlo.dynamic_slice": ("C5", "C1"),
    "stablehlo.fft": ("C5", "C2"),
    "stablehlo.gather": ("C22", "C23"),
    "stablehlo.get_dimension_size": ("", ""),
    "stablehlo.get_tuple_element": ("C2", "C2"),
    "stablehlo.if": ("C3", "C3", "C3"),
    "stablehlo.imag": ("C1", "C2"),
    "stablehlo.is_finite": ("C1", ""),
    "stablehlo.map": ("C1", "C4"),
    "stablehlo.optimization_barrier": ("C1", "C1", "C1"),
    "stablehlo.outfeed": ("", ""),
    "stablehlo.pad": ("C4", "C1"),
    "stablehlo.partition_id": ("", ""),
    "stablehlo.real": ("C1", "C2"),
    "stablehlo.reduce": ("C7", "C8", "C3"),
    "stablehlo.reduce_scatter": ("C8", "C9"),
    "stablehlo.reduce_window": ("C15", "C16", "C1"),
    "stablehlo.replica_id": ("", ""),
    "stablehlo.rng_bit_generator": ("C1", "C1", "C1"),
    "stablehlo.scatter": ("C24", "C25", "C5"),
    "stablehlo.select": ("C2", "C2"),
    "stablehlo.select_and_scatter": ("C11", "C12"),
    "stablehlo.send": ("", ""),
    "stablehlo.set_dimension_size": ("", ""),
    "stablehlo.slice": ("C5", "C1"),
    "stablehlo.sort": ("C2", "C2", "C2"),
    "stablehlo.torch_index_select": ("", ""),
    "stablehlo.transpose": ("C3", "C1"),
    "stablehlo.triangular_solve": ("C4", "C4"),
    "stablehlo.while": ("C3", "C3", "C2"),
}
# Ops whose result's shape the program must know when it is compiled: their dynamic_* forms take it as an operand.
_STATIC: Final = {
    "stablehlo.reshape": "dynamic_reshape",
    "stablehlo.broadcast_in_dim": "dynamic_broadcast_in_dim",
    "stablehlo.iota": "dynamic_iota",
}


def rules_of(op: str) -> Rules:
    """The constraints on the results of `op` (its full name); ops outside of the specification have none."""
    return Rules(*_RULES.get(op, () if op.startswith("stablehlo.") else ("", "")))


def check_result(op: str, inferred: Type, declared: Type, show: Callable[[Type], str] = repr) -> None:
    """Require that the declared result type fits the inferred one; `VerifyError` with the constraint that it breaks.

    Unknown dims and bounds may differ as long as the sizes can be the same. `show` writes a type into the message.
    """
    if op in _STATIC and isinstance(declared, TensorType) and not declared.is_static:
        dims = [d for d in declared.shape if isinstance(d, Dim)]
        require(UNKNOWN not in dims and len(dims) <= 1, "",
                "the result {t} must be static, with at most one bounded dimension; use {d} for run-time sizes",
                t=show(declared), d=_STATIC[op])  # fmt: skip
    if compatible(inferred, declared):
        return
    rules = rules_of(op)
    want, got = result_types(inferred), result_types(declared)
    require(len(want) == len(got), rules.number or rules.shape,
            "the op has {n} results by its rules, but {m} are declared", n=len(want), m=len(got))  # fmt: skip
    at, (a, b) = next((i, pair) for i, pair in enumerate(zip(want, got, strict=True)) if not compatible(*pair))
    which = f"type of result {at}" if len(want) > 1 else "result type"
    text = f"the {which} is {show(a)} by the op's rules, but {show(b)} is declared"
    raise VerifyError(text, rule=_broken(rules, a, b))


def _broken(rules: Rules, a: Type, b: Type) -> str:
    """The constraint that `b`, declared in the place of `a`, breaks."""
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return rules.element
    same_shape = compatible(a, TensorType(a.dtype, b.shape, a.encoding))
    return rules.element if same_shape else rules.shape
