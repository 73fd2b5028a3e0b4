"""The older forms of LAPACK's routines give what the newer ones give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hilo.custom_calls import registry
from hilo.custom_calls.site import CallSite
from hilo.errors import Error
from hilo.ir.dtypes import from_numpy
from hilo.ir.types import TensorType

TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
I = np.int32
B, N = 2, 4
L, V, NONE, S = (ord(c) for c in "LVNS")


def run(name: str, operands: list[Any], results: list[Any], **attributes: Any) -> list[np.ndarray]:
    types = tuple(TensorType(from_numpy(np.dtype(d)), s) for d, s in results)
    return registry.call(registry.find(name), CallSite(name, types, attributes), operands)


@pytest.mark.parametrize("letter", TYPES)
def test_they_agree(letter: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((B, N, N)) + (1j * rng.standard_normal((B, N, N)) if letter in "cz" else 0)
    d = TYPES[letter]
    x = x.astype(d)
    h = (x @ np.conj(np.swapaxes(x, -1, -2)) + 4 * np.eye(N)).astype(d)
    r, c = x.real.dtype, np.result_type(d, np.complex64)
    q, e, t = ("orgqr", "syevd", "sytrd") if letter in "sd" else ("ungqr", "heevd", "hetrd")
    m, tau, info, work = (d, (B, N, N)), (d, (B, N)), (I, (B,)), (d, (9,))
    reals = letter in "sd"
    values = [(d, (B, N))] * (2 if reals else 1)
    spaces = [(d, (N, N))] * 3 if reals else [(d, (N, N)), (r, (2 * N,))]
    rwork = [] if reals else [(r, (N,))]
    tau3 = (d, (B, N - 1))
    cases: list[tuple[str, list[Any], list[Any], list[int], list[Any], dict[str, Any]]] = [
        ("potrf", [1, B, N], [h], [0, 1], [m, info], {"uplo": L}),
        ("getrf", [B, N, N], [x], [0, 1, 2], [m, (I, (B, N)), info], {}),
        ("geqrf", [B, N, N, 9], [x], [0, 1], [m, tau, info, work], {}),
        (q, [B, N, N, N, 9], [x, x[..., 0]], [0], [m, info, work], {}),
        ("gesdd", [0, 1, B, N, N, 9], [x], [0, 1, 2, 3, 4], [m, (r, (B, N)), m, m, info, (I, (9,)), work], {"mode": S}),
        (e, [1, B, N], [h], [0, 1, 2], [m, (r, (B, N)), info, work, (I, (9,))], {"mode": V, "uplo": L}),
        ("geev", [B, N, np.uint8(V), np.uint8(V)], [x], list(range(len(spaces), len(spaces) + len(values) + 3)),
         [*spaces, *values, (c, (B, N, N)), (c, (B, N, N)), info], {"compute_left": V, "compute_right": V}),
        ("gees", [B, N, np.uint8(V), np.uint8(NONE)], [x], [0, 3, *([1, 2] if reals else [2]), 4, 5],
         [m, *rwork, *values, m, info, info], {"mode": V, "sort": NONE}),
        ("gehrd", [N, 1, N, N, B, 9], [x], [0, 1, 2], [m, tau3, info, work], {"low": 1, "high": N}),
        (t, [N, 1, N, B, 9], [h], [0, 1, 2, 3, 4], [m, (r, (B, N)), (r, (B, N - 1)), tau3, info, work], {"uplo": L}),
    ]  # fmt: skip
    for name, scalars, matrices, picked, results, attributes in cases:
        front = [np.asarray(s, getattr(s, "dtype", I)) for s in scalars]
        old = run(f"lapack_{letter}{name}", [*front, *matrices], results)
        new = run(f"lapack_{letter}{name}_ffi", matrices, [results[i] for i in picked], **attributes)
        for i, want in zip(picked, new, strict=True):
            np.testing.assert_array_equal(old[i], want, name)
    scalars = [np.array(s, I) for s in (1, 1, 2 if letter in "cz" else 1, 0, N, N, B)]
    old = run(f"blas_{letter}trsm", [*scalars, np.array(2, d), h, x], [m])
    codes = {"side": L, "uplo": L, "trans_x": ord("C" if letter in "cz" else "T"), "diag": NONE}
    np.testing.assert_allclose(old[0], 2 * run(f"lapack_{letter}trsm_ffi", [h, x], [m], **codes)[0], rtol=1e-5)


def test_too_few_operands_are_one_error() -> None:
    with pytest.raises(Error, match="3 scalars, matrices"):
        run("lapack_spotrf", [np.eye(2, dtype=np.float32)], [(np.float32, (2, 2)), (I, ())])
