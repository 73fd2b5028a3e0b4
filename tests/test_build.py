"""Programs made in Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import hilo
from hilo import build
from hilo.build import constant, f32, function, i1, i32, module  # type: ignore[attr-defined]
from hilo.formats import mlir_text
from hilo.ir.module import Module
from hilo.ir.verify import verify

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def run(m: Module, *arrays: np.ndarray) -> list[np.ndarray]:
    """Results of the interpreter, which native code and the program read back from text must give too."""
    verify(m, types=True)
    want = hilo.interpret(m, *arrays)
    for n in (m, hilo.parse(mlir_text.print_module(m))):
        for got, w in zip(hilo.compile(n)(*arrays), want, strict=True):
            np.testing.assert_array_equal(got, w)
    return want


def main(types: list, body: object) -> Module:
    return module(function("main", types, body))  # type: ignore[arg-type]


def test_ops_by_name() -> None:
    m = main([f32(2, 3), f32(2, 3)], lambda x, y: build.transpose(build.add(x, y), permutation=[1, 0]))
    (out,) = run(m, X, X)
    np.testing.assert_array_equal(out, (X + X).T)


def test_names_that_python_or_other_dialects_have() -> None:
    m = main([i1(3)], lambda x: build.not_(build.and_(x, constant(True, i1(3)))))
    assert run(m, np.array([True, False, True]))[0].tolist() == [False, True, False]
    assert main([f32()], lambda x: build.chlo_erf(x))["main"].results[0].kind.full_name == "chlo.erf"


def test_regions_on_elements() -> None:
    m = main([f32(2, 3)], lambda x: build.reduce(x, constant(0.0, f32()), dimensions=[1], body=build.add))
    assert run(m, X)[0].tolist() == [3.0, 12.0]
    keys = np.array([3, 1, 2], np.int32)
    m = main([i32(3), f32(3)], lambda k, v: build.sort(
        k, v, dimension=0, is_stable=True,
        comparator=lambda a, b, *_: build.compare(a, b, comparison_direction="LT")))  # fmt: skip
    assert [r.tolist() for r in run(m, keys, X[1])] == [[1, 2, 3], [4.0, 5.0, 3.0]]


def test_captures() -> None:
    """Regions see values around them, in regions within regions too."""

    def body(x, n):
        y = build.multiply(x, x)
        big = build.compare(n, constant(2, i32()), comparison_direction="GT")
        zero = constant(0, i32())

        def turn(i, acc):
            more = build.if_(big, lambda: build.add(acc, y), lambda: build.subtract(acc, x))
            return build.add(i, constant(1, i32())), more

        return build.while_(lambda i, _: build.compare(i, n, comparison_direction="LT"), turn, zero, x)[1]

    m = main([f32(2, 3), i32()], body)
    np.testing.assert_array_equal(run(m, X, np.array(3, np.int32))[0], X + 3 * X * X)
    np.testing.assert_array_equal(run(m, X, np.array(1, np.int32))[0], X - X)


def test_case_and_calls() -> None:
    twice = function("twice", [f32(2, 3)], lambda x: build.add(x, x), private=True)
    m = module(twice, function("main", [i32(), f32(2, 3)], lambda k, x: build.case(
        k, lambda: x, lambda: build.call(twice, x), lambda: build.negate(x))))  # fmt: skip
    for k, want in enumerate((X, 2 * X, -X)):
        np.testing.assert_array_equal(run(m, np.array(k, np.int32), X)[0], want)


def test_sizes_known_at_run_time() -> None:
    m = main([f32(None, 3)], lambda x: build.add(x, x))
    np.testing.assert_array_equal(run(m, X)[0], X + X)


def test_no_results_and_no_parameters() -> None:
    assert run(main([], lambda: ())) == []
    assert run(main([], lambda: constant(np.arange(3, dtype=np.int32))))[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (lambda x: build.add(x, constant(1.0, f32(3))), "stablehlo.add: operands must have one type"),
        (lambda x: build.add(x, 1.0), "operand 1 of add is 1.0, which is no value"),
        (lambda x: build.transpose(x, permutations=(1, 0)), "is 'permutation' meant"),
        (lambda _: 3, "which is no value"),
        (lambda _: constant(300, build.i8()), "300 does not fit into i8"),
        (lambda _: constant(1.5, build.i8()), "cannot be made of float64"),
        (lambda _: constant(1.5), "needs a type"),
        (lambda _: constant([1.0, 2.0], f32(3)), "constant"),
        (lambda _: constant(np.array(["a"])), "no tensor has elements of"),
        (lambda _: f32(-1), "a size must be"),
        (lambda _: build.tensor("f7"), "no element type 'f7'"),
        (lambda x: build.custom_call(x, call_target_name=lambda: 0), "made by `region`"),
    ],
)
def test_mistakes(body: object, words: str) -> None:
    with pytest.raises(hilo.Error) as e:
        main([f32(2, 3)], body)
    assert words in str(e.value)


def test_mistakes_name_the_line() -> None:
    with pytest.raises(hilo.Error, match=r"test_build\.py:\d+:1: stablehlo\.add: "):
        main([f32(2), f32(3)], lambda x, y: build.add(x, y))


def test_values_belong_to_one_function() -> None:
    kept: list = []
    function("f", [f32(2)], lambda x: kept.append(x) or x)
    with pytest.raises(hilo.Error, match="a value of another function"):
        function("g", [f32(2)], lambda x: build.add(x, kept[0]))


def test_modules_are_checked() -> None:
    f = function("f", [f32(2)], lambda x: x)
    with pytest.raises(hilo.Error, match="two functions @f"):
        module(f, f)
    with pytest.raises(hilo.Error, match="no function @f"):
        module(function("g", [f32(2)], lambda x: build.call(f, x)))
    with pytest.raises(hilo.Error, match="@f takes"):
        function("g", [f32(3)], lambda x: build.call(f, x))


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="is 'transpose' meant"):
        build.transposed  # noqa: B018
    assert {"add", "f32", "chlo_erf", "function"} <= set(dir(build))
    assert "Spec: add" in build.add.__doc__


def test_programs_are_made_in_any_thread() -> None:
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: main([f32(2)], lambda x: build.add(x, x)), range(4)))
    assert all(m["main"] == made[0]["main"] for m in made)


def test_it_is_loaded_when_used() -> None:
    loaded = "'hilo.build' in sys.modules"
    code = f"import sys, hilo; assert not ({loaded}); hilo.build.f32; assert {loaded}"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: function("f", [5], lambda x: x), "the type of parameter 0 of @f is 5, which is no type"),
        (lambda: function("f", 5, lambda x: x), "the type of parameter 0 of @f is 5, which is no type"),
        (lambda: function(5, [f32(2)], lambda x: x), "the name of a function is a text"),
        (lambda: module(5), "a module is made of functions, not of 5"),
        (lambda: constant([1, 2], f32(3)), r"an array of shape \(2,\) is no constant of f32\[3\]"),
        (
            lambda: function("f", [f32(2)], lambda x: build.reduce(x, constant(0.0, f32()), dimensions=[0], body=5)),
            "stablehlo.reduce: body is 5, which is no function",
        ),
    ],
)
def test_what_is_no_function_type_or_region_is_an_error_with_the_line(make: Callable[[], Any], what: str) -> None:
    with pytest.raises(hilo.Error, match=what) as caught:
        make()
    assert "test_build.py" in str(caught.value)


def test_one_type_stands_for_itself() -> None:
    f = function("f", f32(2), lambda x: x)
    assert f.param_types == (f32(2),)
    assert repr(module(f)) == "<Module: f>"


def test_programs_are_shown_as_text() -> None:
    made = main([f32(2)], lambda x: build.add(x, constant([1.0, 2.0], f32(2))))
    text = hilo.text(made)
    assert hilo.text(hilo.parse(text)) == text
    assert "stablehlo.add %arg0, %0" in text
    assert "2.0" not in hilo.text(made, elide=1)
    assert "test_build.py" in hilo.text(made, locations=True)
    with pytest.raises(hilo.Error, match="elide should be a number, not str"):
        hilo.text(made, elide="all")
