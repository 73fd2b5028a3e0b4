"""LAPACK's routines as custom calls: what they give fits together, for every element type, batches and empty ones."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.custom_calls import lapack, registry
from hilo.custom_calls.site import CallSite
from hilo.errors import Error, Unsupported
from hilo.ir.dtypes import from_numpy
from hilo.ir.types import TensorType

TYPES = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
U, L, V, N, A, S = (ord(c) for c in "ULVNAS")


def matrix(letter: str, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if letter in "cz" else x).astype(TYPES[letter])


def hermitian(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def call(
    name: str, operands: list[np.ndarray], results: list[tuple[Any, tuple[int, ...]]], **attributes: Any
) -> list[np.ndarray]:
    types = tuple(TensorType(from_numpy(np.dtype(d)), s) for d, s in results)
    target = registry.find(name)
    assert target.builtin
    return registry.call(target, CallSite(name, types, attributes), operands)


def close(a: np.ndarray, b: np.ndarray) -> None:
    tolerance = 2e-5 if a.dtype.char in "fF" else 1e-12
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(b).max(initial=0))))


def real(x: np.ndarray) -> np.dtype:
    return x.real.dtype


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("batch", [(), (2, 3), (0,)])
def test_cholesky_and_solves(letter: str, batch: tuple[int, ...]) -> None:
    x = matrix(letter, *batch, 4, 4)
    spd = (x @ hermitian(x) + 4 * np.eye(4)).astype(x.dtype)
    for uplo in (L, U):
        factor, info = call(f"lapack_{letter}potrf_ffi", [spd], [(x.dtype, x.shape), (np.int32, batch)], uplo=uplo)
        assert not info.any()
        f = np.tril(factor) if uplo == L else hermitian(np.triu(factor))
        close(f @ hermitian(f), spd)
    b = matrix(letter, *batch, 4, 2, seed=1)
    f = np.tril(factor := np.tril(spd))
    for trans, op in (("N", f), ("T", np.swapaxes(f, -1, -2)), ("C", hermitian(f))):
        more = {"uplo": L, "diag": N, "trans_x": ord(trans)}
        (y,) = call(f"lapack_{letter}trsm_ffi", [factor, b], [(b.dtype, b.shape)], side=L, **more)
        close(op @ y, b)
        bt = np.ascontiguousarray(np.swapaxes(b, -1, -2))
        (y,) = call(f"lapack_{letter}trsm_ffi", [factor, bt], [(b.dtype, bt.shape)], side=ord("R"), **more)
        close(y @ op, bt)


def test_what_is_not_positive_definite_is_said_in_info() -> None:
    x = np.stack([np.eye(3), np.diag([1.0, -1.0, 1.0])]).astype(np.float32)
    _, info = call("lapack_spotrf_ffi", [x], [(x.dtype, x.shape), (np.int32, (2,))], uplo=L)
    assert info.tolist() == [0, 2]


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (4, 4), (3, 0), (0, 3)])
def test_qr(letter: str, m: int, n: int) -> None:
    x, k = matrix(letter, 2, m, n), min(m, n)
    q = "orgqr" if letter in "sd" else "ungqr"
    packed, tau = call(f"lapack_{letter}geqrf_ffi", [x], [(x.dtype, x.shape), (x.dtype, (2, k))])
    (full,) = call(f"lapack_{letter}{q}_ffi", [packed[..., :k], tau], [(x.dtype, (2, m, k))])
    close(full @ np.triu(packed)[..., :k, :], x)
    close(hermitian(full) @ full, np.broadcast_to(np.eye(k, dtype=x.dtype), (2, k, k)))
    mqr = "ormqr" if letter in "sd" else "unmqr"
    c = matrix(letter, 2, m, 2, seed=3)
    (turned,) = call(
        f"lapack_{letter}{mqr}_ffi", [packed[..., :k], tau, c], [(x.dtype, c.shape)], left=True, transpose=True
    )
    close(turned[..., :k, :], hermitian(full) @ c)
    free = np.zeros((2, n), np.int32)
    p, order, taup = call(
        f"lapack_{letter}geqp3_ffi", [x, free], [(x.dtype, x.shape), (np.int32, (2, n)), (x.dtype, (2, k))]
    )
    (qp,) = call(f"lapack_{letter}{q}_ffi", [p[..., :k], taup], [(x.dtype, (2, m, k))])
    close(qp @ np.triu(p)[..., :k, :], np.take_along_axis(x, order[:, None, :] - 1, -1))


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("routine", ["gesdd", "gesvd"])
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (2, 0)])
def test_singular_values(letter: str, routine: str, m: int, n: int) -> None:
    x, k = matrix(letter, 2, m, n), min(m, n)
    r = real(x)
    for mode, (p, q) in ((A, (m, n)), (S, (k, k)), (N, (m, n))):
        shapes = [(x.dtype, x.shape), (r, (2, k)), (x.dtype, (2, m, p)), (x.dtype, (2, q, n)), (np.int32, (2,))]
        _, s, u, vt, info = call(f"lapack_{letter}{routine}_ffi", [x], shapes, mode=mode)
        assert not info.any()
        close(s, np.linalg.svd(x, compute_uv=False).astype(r))
        if mode != N:
            close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], x)
            close(hermitian(u) @ u, np.broadcast_to(np.eye(p, dtype=x.dtype), (2, p, p)))


@pytest.mark.parametrize("letter", TYPES)
def test_eigenvalues(letter: str) -> None:
    x = matrix(letter, 2, 5, 5)
    h, r = (x + hermitian(x)).astype(x.dtype), real(x)
    ev = "syevd" if letter in "sd" else "heevd"
    for uplo in (L, U):
        v, w, info = call(
            f"lapack_{letter}{ev}_ffi", [h], [(x.dtype, x.shape), (r, (2, 5)), (np.int32, (2,))], mode=V, uplo=uplo
        )
        assert not info.any()
        close(h @ v, v * w[..., None, :].astype(x.dtype))
    complex_ = np.result_type(x.dtype, np.complex64)
    values = [(x.dtype, (2, 5))] * (2 if letter in "sd" else 1)
    vectors = [(complex_, x.shape)] * 2
    *w, vl, vr, info = call(
        f"lapack_{letter}geev_ffi", [x], [*values, *vectors, (np.int32, (2,))], compute_left=V, compute_right=V
    )
    w = w[0] + 1j * w[1] if letter in "sd" else w[0]
    close((x @ vr).astype(complex_), vr * w[..., None, :])
    close((hermitian(vl) @ x).astype(complex_), w[..., None] * hermitian(vl))
    t, vs, *_, info = call(
        f"lapack_{letter}gees_ffi", [x], [(x.dtype, x.shape)] * 2 + values + [(np.int32, (2,))] * 2, mode=V, sort=N
    )
    assert not info.any()
    close(vs @ t @ hermitian(vs), x)


@pytest.mark.parametrize("letter", TYPES)
def test_reductions(letter: str) -> None:
    x = matrix(letter, 2, 5, 5)
    h, _, info = call(
        f"lapack_{letter}gehrd_ffi",
        [x],
        [(x.dtype, x.shape), (x.dtype, (2, 4)), (np.int32, (2,))],
        low=np.int32(1),
        high=np.int32(5),
    )
    assert not info.any()
    close(np.trace(h, axis1=1, axis2=2), np.trace(x, axis1=1, axis2=2))
    trd, r = ("sytrd" if letter in "sd" else "hetrd"), real(x)
    herm = (x + hermitian(x)).astype(x.dtype)
    results = [(x.dtype, x.shape), (r, (2, 5)), (r, (2, 4)), (x.dtype, (2, 4)), (np.int32, (2,))]
    _, d, e, _, info = call(f"lapack_{letter}{trd}_ffi", [herm], results, uplo=L)
    three = np.stack([np.diag(a) + np.diag(b, 1) + np.diag(b, -1) for a, b in zip(d, e, strict=True)])
    close(np.linalg.eigvalsh(three).astype(r), np.linalg.eigvalsh(herm).astype(r))


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize("n", [1, 2, 6])
def test_tridiagonal_systems(letter: str, n: int) -> None:
    dl, d, du = (matrix(letter, 2, n, seed=i) for i in range(3))
    d, b = d + 4, matrix(letter, 2, n, 3, seed=4)
    results = [(d.dtype, d.shape)] * 3 + [(b.dtype, b.shape), (np.int32, (2,))]
    *_, y, info = call(f"lapack_{letter}gtsv_ffi", [dl, d, du, b], results)
    assert not info.any()
    for i in range(2):
        close(((np.diag(d[i]) + np.diag(dl[i, 1:], -1) + np.diag(du[i, :-1], 1)) @ y[i]).astype(b.dtype), b[i])


@pytest.mark.parametrize("letter", TYPES)
@pytest.mark.parametrize(("m", "n"), [(5, 3), (3, 5), (0, 2)])
def test_lu(letter: str, m: int, n: int) -> None:
    x, k = matrix(letter, 2, m, n), min(m, n)
    packed, pivots, info = call(
        f"lapack_{letter}getrf_ffi", [x], [(x.dtype, x.shape), (np.int32, (2, k)), (np.int32, (2,))]
    )
    assert not info.any()
    ours = call("LuDecomposition", [x], [(x.dtype, x.shape), (np.int32, (2, k)), (np.int32, (2, m))])
    np.testing.assert_array_equal(ours[1], pivots - 1)
    close(ours[0], packed)
    lower = np.tril(packed[..., :k], -1) + np.eye(m, k, dtype=x.dtype)
    close(lower @ np.triu(packed[..., :k, :]), np.take_along_axis(x, ours[2][..., None], -2))


MODULE = """func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {mhlo.backend_config = {uplo = 76 : ui8},
    operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
    result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
    : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<3x3xf32>, tensor<i32>
}"""


def test_a_program_as_jax_writes_it() -> None:
    x = np.diag([4.0, 9.0, 16.0]).astype(np.float32)
    factor, info = hilo.interpret(hilo.parse(MODULE), x)
    np.testing.assert_array_equal(factor, np.diag([2.0, 3.0, 4.0]))
    assert int(info) == 0


def test_without_scipy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    lapack._routine.cache_clear()
    monkeypatch.setitem(sys.modules, "scipy.linalg", None)
    try:
        with pytest.raises(Unsupported, match=r"hilo-compiler\[lapack\]"):
            hilo.interpret(hilo.parse(MODULE), np.eye(3, dtype=np.float32))
    finally:
        lapack._routine.cache_clear()


def test_what_does_not_fit_is_one_error() -> None:
    with pytest.raises(Error, match="attribute 'uplo' is missing"):
        call("lapack_spotrf_ffi", [np.eye(3, dtype=np.float32)], [(np.float32, (3, 3)), (np.int32, ())])
    with pytest.raises(Error, match="are no batches alike"):
        call("lapack_spotrf_ffi", [np.ones(3, np.float32)], [(np.float32, (3,)), (np.int32, ())], uplo=L)
    with pytest.raises(Error, match="does not take these operands"):
        call("lapack_spotrf_ffi", [np.ones((2, 3), np.float32)], [(np.float32, (2, 3)), (np.int32, ())], uplo=L)
