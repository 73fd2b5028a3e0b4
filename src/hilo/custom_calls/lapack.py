"""LAPACK's routines as targets of custom calls, under the names that JAX gives them. Imports siblings; scipy when used.

`lapack_spotrf_ffi` and its kin, for s, d, c, z. Operands and results have their logical shapes: the column-major
layouts that programs ask for are what LAPACK wants of memory, which is settled in here. A routine that fails says so
in its `info` result, as LAPACK does; what becomes of that is the program's business (JAX makes NaN of it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from hilo.custom_calls.batches import One, batched
from hilo.custom_calls.registry import register
from hilo.errors import Error, Unsupported

EXTRA: Final = "lapack"
Attributes = Mapping[str, Any]


@cache
def _routine(letter: str, name: str) -> Any:
    """scipy's wrapper of a routine of LAPACK or BLAS. Raises `Unsupported` that names the extra it comes with."""
    try:
        from scipy.linalg import blas, lapack
    except ImportError:
        raise Unsupported(
            f"LAPACK's {letter}{name} comes with scipy, which is not installed: pip install 'hilo-compiler[{EXTRA}]'"
        ) from None
    return getattr(lapack, letter + name, None) or getattr(blas, letter + name)


def _call(like: np.ndarray, names: str, *args: Any, **options: Any) -> tuple[Any, ...]:
    """Run the routine for the element type of `like`; `names` gives it for real, and perhaps for complex numbers."""
    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[like.dtype.char]
    real, _, complex_ = names.partition("/")
    routine = _routine(letter, complex_ if complex_ and letter in "cz" else real)
    try:
        out = routine(*args, **options)
    except Error:
        raise
    except Exception as e:  # of f2py, for what does not fit together
        raise Error(f"LAPACK's {real} does not take these operands: {e}") from e
    return out if isinstance(out, tuple) else (out,)


def letter_of(attributes: Attributes, name: str, default: str = "") -> str:
    """An attribute that is a character, given by its number. Raises `Error` if there is none, and no default."""
    value = attributes.get(name)
    if value is None and default:
        return default
    if value is None:
        raise Error(f"attribute '{name}' is missing")
    return value if isinstance(value, str) else chr(int(value))


def _lower(attributes: Attributes) -> int:
    return int(letter_of(attributes, "uplo") == "L")


def _lwork(like: np.ndarray, n: int) -> dict[str, int]:
    """Room to work in for routines that work by blocks; f2py's default allows no blocks."""
    return {"lwork": max(1, 32 * n)}


def _potrf(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> factor (with x in the other triangle), info"""
    if not x.size:
        return x, 0
    return _call(x, "potrf", x, lower=_lower(a), clean=0)


def _getrf(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> factors, pivots (from 1), info"""
    if not x.size:
        return x, like[1], 0
    lu, pivots, info = _call(x, "getrf", x)
    return lu, pivots + 1, info


def _geqrf(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> r and reflectors, tau, (info)"""
    if not x.size:
        return x, like[1], 0
    qr, tau, _, info = _call(x, "geqrf", x, **_lwork(x, x.shape[1]))
    return qr, tau, info


def _orgqr(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray, tau: np.ndarray) -> Sequence[Any]:
    """reflectors, tau -> q, (info)"""
    if not x.size:
        return x, 0
    if not tau.size:
        return np.eye(*x.shape, dtype=x.dtype), 0
    q, _, info = _call(x, "orgqr/ungqr", x, tau, **_lwork(x, x.shape[1]))
    return q, info


def _geqp3(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray, pivots: np.ndarray) -> Sequence[Any]:
    """x, pivots (0: free to move; others move to the front) -> r and reflectors, pivots (from 1), tau, (info)"""
    if pivots.any():
        raise Unsupported("columns that geqp3 is told to move to the front")
    if not x.size:
        return x, np.arange(1, x.shape[1] + 1), like[2], 0
    qr, jpvt, tau, _, info = _call(x, "geqp3", x)
    return qr, jpvt, tau, info


def _ormqr(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray, tau: np.ndarray, c: np.ndarray) -> Sequence[Any]:
    """reflectors, tau, c -> q @ c (or transposed, or from the right), (info)"""
    if not c.size or not tau.size:
        return c, 0
    left, turned = bool(a["left"]), bool(a["transpose"])
    trans = ("C" if c.dtype.kind == "c" else "T") if turned else "N"
    out, _, info = _call(x, "ormqr/unmqr", "L" if left else "R", trans, x, tau, c, max(1, 64 * max(c.shape)))
    return out, info


def _svd(routine: str) -> One:
    def run(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
        """x -> (nothing), s, u, vt, info; mode A (all), S (the first ones) or N (no vectors)"""
        mode = letter_of(a, "mode")
        if mode not in "ASN":
            raise Unsupported(f"mode {mode} of {routine}")
        if not x.size:
            return x, like[1], *(np.eye(*v.shape) if mode == "A" and v.size else v for v in like[2:4]), 0
        u, s, vt, info = _call(x, routine, x, compute_uv=int(mode != "N"), full_matrices=int(mode == "A"))
        return x, s, *((u, vt) if mode != "N" else like[2:4]), info

    return run


def _syevd(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> vectors, w, info"""
    if not x.size:
        return x, like[1], 0
    vectors = letter_of(a, "mode", "V") == "V"
    w, v, info = _call(x, "syevd/heevd", x, compute_v=int(vectors), lower=_lower(a))
    return v if vectors else x, w, info


def _geev(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> w (real: wr, wi), left vectors, right vectors, info; vectors are complex"""
    left, right = (letter_of(a, f"compute_{side}") == "V" for side in ("left", "right"))
    is_complex = x.dtype.kind == "c"
    if not x.size:
        return *like[: 1 if is_complex else 2], *like[-3:-1], 0
    *w, vl, vr, info = _call(x, "geev", x, compute_vl=int(left), compute_vr=int(right))
    pairs = [
        (v if is_complex else _unpacked(w[1], v)) if wanted else nothing
        for v, wanted, nothing in ((vl, left, like[-3]), (vr, right, like[-2]))
    ]
    return *w, *pairs, info


def _unpacked(wi: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Complex vectors of LAPACK's real ones: conjugate pairs stand as real and imaginary part side by side."""
    out = v.astype(np.complex128 if v.dtype == np.float64 else np.complex64)
    j = 0
    while j < len(wi):
        if wi[j] == 0 or np.isnan(wi[j]) or j + 1 == len(wi):
            j += 1
            continue
        out[:, j] = v[:, j] + 1j * v[:, j + 1]
        out[:, j + 1] = np.conj(out[:, j])
        j += 2
    return out


def _gees(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> t, vectors, w (real: wr, wi), number of selected, info"""
    if letter_of(a, "sort", "N") != "N":
        raise Unsupported("Schur forms with sorted eigenvalues")
    if not x.size:
        return x, *like[1:-2], 0, 0
    vectors = letter_of(a, "mode") == "V"
    t, _, *w, vs, _, info = _call(x, "gees", lambda *_: 0, x, compute_v=int(vectors), lwork=max(3, 32 * len(x)))
    return t, vs if vectors else like[1], *w, 0, info


def _gehrd(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> upper Hessenberg matrix and reflectors, tau, info; rows and columns `low` to `high` (from 1)"""
    if len(x) < 2:
        return x, like[1], 0
    low, high = int(a["low"]), int(a["high"])
    if not 1 <= low <= high <= len(x):
        raise Error(f"gehrd of rows {low} to {high} of {len(x)}")
    return _call(x, "gehrd", x, lo=low - 1, hi=high - 1, **_lwork(x, len(x)))


def _sytrd(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray) -> Sequence[Any]:
    """x -> tridiagonal matrix and reflectors, d, e, tau, info"""
    if not x.size:
        return x, *like[1:4], 0
    return _call(x, "sytrd/hetrd", x, lower=_lower(a), **_lwork(x, len(x)))


def _gtsv(a: Attributes, like: Sequence[np.ndarray], dl: np.ndarray, d: np.ndarray, du: np.ndarray,
          b: np.ndarray) -> Sequence[Any]:  # fmt: skip
    """lower diagonal (from its second), diagonal, upper diagonal, b -> what elimination makes of the four, info"""
    if not b.size:
        return dl, d, du, b, 0
    if len(d) == 1:
        with np.errstate(all="ignore"):
            return dl, d, du, b / d if d[0] else b, int(d[0] == 0)
    lower, diagonal, upper, x, info = _call(b, "gtsv", dl[1:], d, du[:-1], b)
    return np.append(dl[:1], lower), diagonal, np.append(upper, du[-1:]), x, info


def _trsm(a: Attributes, like: Sequence[np.ndarray], x: np.ndarray, b: np.ndarray) -> Sequence[Any]:
    """triangular x, b -> y with op(x) @ y = b, or y @ op(x) = b"""
    if not b.size:
        return (b,)
    trans = {"N": 0, "T": 1, "C": 2}[letter_of(a, "trans_x")]
    diag, side = int(letter_of(a, "diag") == "U"), int(letter_of(a, "side") == "R")
    return _call(b, "trsm", 1.0, x, b, side=side, lower=_lower(a), trans_a=trans, diag=diag)


def _scaled_trsm(x: np.ndarray, b: np.ndarray, *alpha: np.ndarray, results: Any, attributes: Attributes) -> Any:
    """Until JAX 0.5 a factor of `b` was the last operand."""
    return _solve(x, (b * alpha[0]).astype(b.dtype) if alpha else b, results=results, attributes=attributes)


_solve: Final = batched(_trsm)
ROUTINES: Final[dict[str, Callable[..., Any]]] = {
    "potrf": batched(_potrf),
    "getrf": batched(_getrf),
    "geqrf": batched(_geqrf),
    "orgqr/ungqr": batched(_orgqr, 2, 0),
    "geqp3": batched(_geqp3, 2, 0),
    "ormqr/unmqr": batched(_ormqr),
    "gesdd": batched(_svd("gesdd")),
    "gesvd": batched(_svd("gesvd")),
    "syevd/heevd": batched(_syevd),
    "geev": batched(_geev),
    "gees": batched(_gees),
    "gehrd": batched(_gehrd),
    "sytrd/hetrd": batched(_sytrd),
    "gtsv": batched(_gtsv),
    "trsm": _scaled_trsm,
}


def _register() -> None:
    for names, function in ROUTINES.items():
        real, _, complex_ = names.partition("/")
        for letter in "sdcz":
            name = complex_ if complex_ and letter in "cz" else real
            register(f"lapack_{letter}{name}_ffi", function, builtin=True)


_register()
