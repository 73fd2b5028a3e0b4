"""LAPACK's routines under the names and with the operands that JAX gave them until 2024. Imports siblings.

`lapack_spotrf`, `blas_strsm` ...: sizes and options come as scalars in front of the matrices, and room to work in is
among the results (it stays zero).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hilo.custom_calls.lapack import ROUTINES
from hilo.custom_calls.registry import register
from hilo.errors import Error
from hilo.ir.types import TensorType
from hilo.record import record


@record(frozen=True)
class Older:
    """An older form: how many scalars are in front, the attributes that they are, and which results matter, in the
    order of the newer form, for real and for complex numbers."""

    scalars: int
    attributes: Callable[[Sequence[Any]], dict[str, Any]]
    results: tuple[int, ...]
    complex_results: tuple[int, ...] = ()


def _uplo(lower: Any) -> int:
    return ord("L" if lower else "U")


def _first(n: int) -> tuple[int, ...]:
    return tuple(range(n))


def _trsm(s: Sequence[Any]) -> dict[str, Any]:
    left, lower, trans, unit, *_ = s
    if int(trans) not in (0, 1, 2):
        raise Error(f"trsm with the transposition {trans}")
    return {"side": ord("L" if left else "R"), "uplo": _uplo(lower), "trans_x": ord("NTC"[int(trans)]),
            "diag": ord("U" if unit else "N")}  # fmt: skip


_FORMS: Final[dict[str, Older]] = {
    "potrf": Older(3, lambda s: {"uplo": _uplo(s[0])}, _first(2)),
    "getrf": Older(3, lambda s: {}, _first(3)),
    "geqrf": Older(4, lambda s: {}, _first(3)),
    "geqp3": Older(4, lambda s: {}, _first(4)),
    "orgqr/ungqr": Older(5, lambda s: {}, _first(2)),
    "gesdd": Older(6, lambda s: {"mode": ord(("A" if s[0] else "S") if s[1] else "N")}, _first(5)),
    "syevd/heevd": Older(3, lambda s: {"mode": ord("V"), "uplo": _uplo(s[0])}, _first(3)),
    "geev": Older(4, lambda s: {"compute_left": s[2], "compute_right": s[3]}, (3, 4, 5, 6, 7), (2, 3, 4, 5)),
    "gees": Older(4, lambda s: {"mode": s[2], "sort": s[3]}, (0, 3, 1, 2, 4, 5), (0, 3, 2, 4, 5)),
    "gehrd": Older(6, lambda s: {"low": s[1], "high": s[2]}, _first(3)),
    "sytrd/hetrd": Older(5, lambda s: {"uplo": _uplo(s[1])}, _first(5)),
    "trsm": Older(7, _trsm, (0,)),
}


def _target(newer: Callable[..., Any], form: Older, is_complex: bool) -> Callable[..., list[Any]]:
    picked = form.complex_results if is_complex and form.complex_results else form.results

    def target(*operands: np.ndarray, results: Sequence[TensorType]) -> list[Any]:
        scalars, matrices = operands[: form.scalars], operands[form.scalars :]
        if not matrices or any(x.ndim for x in scalars) or len(results) <= max(picked):
            raise Error(f"{form.scalars} scalars, matrices and at least {max(picked) + 1} results are wanted")
        if form.attributes is _trsm:  # the factor of b, before both
            matrices = (*matrices[1:], matrices[0])
        outs: list[Any] = [np.zeros(t.shape, t.dtype.np) for t in results]
        values = newer(*matrices, results=[results[i] for i in picked],
                       attributes=form.attributes([x.item() for x in scalars]))  # fmt: skip
        for i, value in zip(picked, values, strict=True):
            outs[i] = value
        return outs

    return target


def _register() -> None:
    for names, form in _FORMS.items():
        real, _, complex_ = names.partition("/")
        for letter in "sdcz":
            name = complex_ if complex_ and letter in "cz" else real
            library = "blas" if real == "trsm" else "lapack"
            function = _target(ROUTINES[names], form, letter in "cz")
            register(f"{library}_{letter}{name}", function, builtin=True)


_register()
