"""The algebra of run-time sizes against Python's integers."""

from __future__ import annotations

import itertools
import pickle

import pytest

from hilo.errors import Unsupported
from hilo.ir import dims
from hilo.ir.dims import Undecided, apply, axis_size, element, estimating, evaluate, floordiv, larger, smaller
from hilo.ir.dtypes import f32
from hilo.ir.types import UNKNOWN, TensorType

N, M, V = axis_size(0, 0), axis_size(1, 2), element(2, 0)


def at(n: object, **values: int) -> int:
    return evaluate(n, lambda a: values[a.name])  # type: ignore[arg-type]


def test_equal_expressions_are_one_object() -> None:
    assert N * 2 + 3 + M is M + 1 + 2 * N + 2
    assert (N + 1) * (N - 1) is N * N - 1
    assert N - N == 0
    assert isinstance(N - N, int)
    assert TensorType(f32, (N * 2, 3)) is TensorType(f32, (N + N, 3))
    assert TensorType(f32, (N,)) is not TensorType(f32, (M,))


def test_pickled_sizes_are_the_same_object() -> None:
    n = floordiv(N * M + 7, 4) + larger(V, 2)
    assert pickle.loads(pickle.dumps(n)) is n


@pytest.mark.parametrize("name", sorted(dims.EVALUATE))
def test_functions_mean_what_they_mean_for_integers(name: str) -> None:
    """Whatever is simplified: symbols first, numbers later, or numbers at once."""
    samples: list[dims.Number] = [N, N + 1, 2 * N - 3, V, V - 1, N * M, 0, 1, 5, -3]
    count = 3 if name == "select" else 2
    if name in ("and", "or", "xor"):
        samples = [apply("lt", V, 2), apply("eq", N, 3), 0, 1]
    for args in itertools.product(samples, repeat=count):
        if name == "select":
            args = (apply("lt", 0, args[0]), *args[1:])
        made = apply(name, *args)
        for n, m, v in itertools.product((0, 1, 2, 7), (1, 3), (-2, 0, 2, 5)):
            numbers = [at(a, n0_0=n, n1_2=m, v2_0=v) for a in args]
            if name in ("floordiv", "quotient", "remainder") and numbers[1] == 0:
                continue
            assert at(made, n0_0=n, n1_2=m, v2_0=v) == dims.EVALUATE[name](*numbers), (args, made, n, m, v)


def test_ranges_decide_comparisons_or_nothing_does() -> None:
    assert N >= 0
    assert N + 1 > 0
    assert not N < 0
    assert axis_size(0, 1, bound=4) <= 4
    assert bool(N + 1)
    with pytest.raises(Undecided, match="n0_0 < 4"):
        _ = N < 4
    with pytest.raises(Unsupported):
        bool(N)
    with pytest.raises(Undecided):
        range(N)  # type: ignore[arg-type]
    with estimating():
        assert not N < 4


def test_division_takes_exact_parts_out() -> None:
    assert floordiv(N * 8 + 5, 4) is N * 2 + 1
    assert (N * M) // M is N
    assert (N * 4) % 2 == 0
    assert -(-(N * 16) // 16) is N


def test_size_of_a_type() -> None:
    assert TensorType(f32, (N, 3)).size is N * 3
    assert TensorType(f32, (N, 3)).nbytes is N * 12
    assert TensorType(f32, (UNKNOWN, 3)).size == -1
    assert not TensorType(f32, (N,)).is_static


def test_smaller_and_larger_of_what_is_known() -> None:
    assert larger(N, 0) is N
    assert smaller(N, N + 1) is N
    assert larger(N, M) is not N
