"""Custom calls of Python functions, interpreted and compiled: what they get, what they may return, how they fail."""

from __future__ import annotations

import gc
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.custom_calls import registry
from hilo.ir.types import TensorType

F3 = "tensor<3xf32>"
X = np.array([1, 2, 3], np.float32)
Run = Callable[..., list[Any]]


def compiled(text: str, *arrays: np.ndarray) -> list[Any]:
    return hilo.compile(text)(*arrays)


@pytest.fixture(params=[hilo.interpret, compiled], ids=["interpreted", "compiled"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def call(name: str = "f", attrs: str = "", result: str = F3) -> str:
    """A program that calls `name` on twice its argument."""
    return f"""func.func @main(%a: {F3}) -> {result} {{
      %x = stablehlo.add %a, %a : {F3}
      %r = stablehlo.custom_call @{name}(%x) {{{attrs}}} : ({F3}) -> {result}
      return %r : {result} }}"""


def test_forms_of_registering(run: Run) -> None:
    @hilo.register_custom_call("f")
    def negated(x: np.ndarray) -> np.ndarray:
        return -x

    assert run(call(), X)[0].tolist() == [-2, -4, -6]
    assert negated(X).tolist() == [-1, -2, -3]
    assert hilo.register_custom_call("f", np.exp2) is np.exp2  # no signature to look at
    assert run(call(), X)[0].tolist() == [4, 16, 64]
    hilo.register_custom_call("f", lambda x: (x,))
    assert run(call(), X)[0].tolist() == [2, 4, 6]
    for name, function, message in (("", np.exp, "not empty"), ("f", 3, "3 cannot be called")):
        with pytest.raises(hilo.Error, match=message):
            hilo.register_custom_call(name, function)


def test_a_compiled_program_keeps_its_targets() -> None:
    hilo.register_custom_call("f", lambda x: -x)
    f = hilo.compile(call())
    hilo.register_custom_call("f", lambda x: x)
    registry.unregister("f")
    gc.collect()
    assert f(X)[0].tolist() == [-2, -4, -6]


def test_what_a_function_is_told(run: Run) -> None:
    seen: dict[str, Any] = {}

    @hilo.register_custom_call("f")
    def f(x: np.ndarray, *, results: Any, attributes: Any, backend_config: str, call: Any) -> np.ndarray:
        seen.update(results=results, attributes=attributes, config=backend_config, call=call)
        return x

    attrs = """api_version = 4 : i32, has_side_effect = true, my.more = 7 : i16, backend_config = {
      u = 76 : ui8, i = 3, h = 0x7FC00000 : f32, f = 1.5, b = true, s = "a\\22\\0Ab", l = [1 : i32, "x"], e = [],
      a = array<i64: 1, 2>, d = dense<[[1, 2]]> : tensor<1x2xi32>, w = dense<0.5> : tensor<3xf16>, n = {k = false}}"""
    run(call(attrs=attrs), X)
    (t,) = seen["results"]
    assert isinstance(t, TensorType)
    assert t.shape == (3,)
    a = seen["attributes"]
    assert (a["u"], a["u"].dtype, a["i"].dtype, a["f"].dtype) == (76, np.uint8, np.int64, np.float64)
    assert np.isnan(a["h"])
    assert a["h"].dtype == np.float32
    assert (a["b"], a["s"], a["l"], a["e"], a["n"]) == (True, 'a"\nb', (1, "x"), (), {"k": False})
    assert (a["a"].tolist(), a["d"].tolist(), a["d"].dtype) == ([1, 2], [[1, 2]], np.int32)
    assert (a["w"].tolist(), a["w"].dtype) == ([0.5] * 3, np.float16)
    assert (seen["config"], seen["call"].api_version, seen["call"].has_side_effect) == ("", 4, True)
    assert seen["call"].more == {"my.more": 7}
    run(call(attrs='backend_config = "text"'), X)
    assert (seen["config"], dict(seen["attributes"])) == ("text", {})
    run(call(attrs="mhlo.backend_config = {k = 1 : i32}"), X)
    assert seen["attributes"] == {"k": 1}


def test_operands_are_read_only_and_may_be_kept(run: Run) -> None:
    kept: list[np.ndarray] = []

    @hilo.register_custom_call("f")
    def f(x: np.ndarray) -> np.ndarray:
        if run is compiled:
            with pytest.raises(ValueError, match="read-only"):
                x[0] = 5
        kept.extend((x, x[1:]))
        return x

    for k in range(5):
        assert run(call(), X * k)[0].tolist() == (2 * k * X).tolist()
    gc.collect()
    assert [v.tolist() for v in kept[::2]] == [(2 * k * X).tolist() for k in range(5)]
    assert all(v.shape == (2,) for v in kept[1::2])  # views are of memory that is still there
    assert float(sum(v.sum() for v in kept[1::2])) == float(sum(v.sum() for v in kept[1::2]))


def test_results_may_be_written_in_place(run: Run) -> None:
    @hilo.register_custom_call("f")
    def f(x: np.ndarray, *, out: tuple[np.ndarray, ...]) -> None:
        assert (len(out), out[0].shape, out[0].dtype) == (1, (3,), np.float32)
        np.negative(x, out=out[0])

    assert run(call(), X)[0].tolist() == [-2, -4, -6]


def test_results_in_each_others_places(run: Run) -> None:
    @hilo.register_custom_call("swap")
    def swap(x: np.ndarray, y: np.ndarray, *, out: tuple[np.ndarray, ...]) -> Any:
        out[0][...], out[1][...] = x, y
        return out[::-1]

    text = f"""func.func @main(%a: {F3}, %b: {F3}) -> ({F3}, {F3}) {{
      %r:2 = stablehlo.custom_call @swap(%a, %b) : ({F3}, {F3}) -> ({F3}, {F3})
      return %r#0, %r#1 : {F3}, {F3} }}"""
    a, b = run(text, X, -X)
    assert (a.tolist(), b.tolist()) == ((-X).tolist(), X.tolist())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x.astype(np.float64), r": result 0 is float64\[3\], but f32\[3\] is wanted"),
        (lambda x: x[:2], r": result 0 is float32\[2\], but f32\[3\] is wanted"),
        (lambda x: (x, x), " returned 2 results, but 1 are wanted"),
        (lambda x: None, " returned 0 results, but 1 are wanted"),
        (lambda x: "text", r": result 0 is <U4\[\], but f32\[3\] is wanted"),
        (lambda x: ([[1], [1, 2]],), ": result 0 is no array: "),
        (lambda x: 1 / 0, " failed: ZeroDivisionError: division by zero"),
        (lambda x, y: x, " failed: TypeError: .* missing 1 required positional argument: 'y'"),
    ],
)
def test_errors(run: Run, function: Any, message: str) -> None:
    hilo.register_custom_call("f", function)
    with pytest.raises(hilo.Error, match=rf"^<text>:3:12: stablehlo.custom_call: custom call target 'f'{message}"):
        run(call(), X)


def test_an_exception_is_the_cause_of_the_error(run: Run) -> None:
    def deep(x: np.ndarray) -> np.ndarray:
        view = x[1:]
        raise KeyError(view.shape)

    hilo.register_custom_call("f", deep)
    with pytest.raises(hilo.Error) as e:
        run(call(), X)
    assert isinstance(e.value.__cause__, KeyError)
    assert e.value.op == "stablehlo.custom_call"
    assert "in deep" in "".join(traceback.format_exception(e.value))
    gc.collect()
    frames = list(traceback.walk_tb(e.value.__cause__.__traceback__))
    assert frames[-1][0].f_locals["view"].shape == (2,)

    def ours(x: np.ndarray) -> np.ndarray:
        raise hilo.Error("the message", op="mine")

    hilo.register_custom_call("f", ours)
    with pytest.raises(hilo.Error, match=r"^<text>:3:12: mine: the message$"):
        run(call(), X)


def test_interrupts_are_not_errors(run: Run) -> None:
    def stop(x: np.ndarray) -> np.ndarray:
        raise KeyboardInterrupt

    hilo.register_custom_call("f", stop)
    with pytest.raises(KeyboardInterrupt):
        run(call(), X)


def test_an_unknown_target_is_an_error_of_compiling() -> None:
    hilo.register_custom_call("my_function", lambda x: x)
    with pytest.raises(hilo.Error) as e:
        hilo.compile(call("my_funktion"))
    text = str(e.value)
    assert text.startswith("<text>:3:12: stablehlo.custom_call: hilo knows no custom call target 'my_funktion'")
    assert "is 'my_function' meant?" in text
    assert "hilo.register_custom_call('my_funktion', function)" in text


def test_effects_stay_in_order_and_are_never_removed(run: Run) -> None:
    seen: list[float] = []

    def note(x: np.ndarray) -> None:
        seen.append(float(x[0]))

    hilo.register_custom_call("note", note)
    hilo.register_custom_call("note_too", note)
    text = f"""func.func @main(%a: {F3}) -> {F3} {{
      %b = stablehlo.add %a, %a : {F3}
      stablehlo.custom_call @note(%b) {{has_side_effect = true}} : ({F3}) -> ()
      stablehlo.custom_call @note_too(%a) {{has_side_effect = true}} : ({F3}) -> ()
      stablehlo.custom_call @note(%b) {{has_side_effect = true}} : ({F3}) -> ()
      %c = stablehlo.add %b, %b : {F3}
      stablehlo.custom_call @note(%c) {{has_side_effect = true}} : ({F3}) -> ()
      return %c : {F3} }}"""
    assert run(text, X)[0].tolist() == (4 * X).tolist()
    assert seen == [2, 1, 2, 4]


def test_tuples_and_tokens(run: Run) -> None:
    hilo.register_custom_call("two", lambda x, y: (x + y, x - y))
    t = f"tuple<{F3}, !stablehlo.token, tuple<{F3}>>"
    text = f"""func.func @main(%x: {F3}, %y: {F3}) -> ({F3}, {F3}) {{
      %tok = stablehlo.create_token : !stablehlo.token
      %p = stablehlo.tuple %x, %tok : tuple<{F3}, !stablehlo.token>
      %n = stablehlo.custom_call @two(%p, %tok, %y)
        : (tuple<{F3}, !stablehlo.token>, !stablehlo.token, {F3}) -> {t}
      %a = stablehlo.get_tuple_element %n[0] : ({t}) -> {F3}
      %b = stablehlo.get_tuple_element %n[2] : ({t}) -> tuple<{F3}>
      %c = stablehlo.get_tuple_element %b[0] : (tuple<{F3}>) -> {F3}
      return %a, %c : {F3}, {F3} }}"""
    a, b = run(text, 10 * X, X)
    assert (a.tolist(), b.tolist()) == ((11 * X).tolist(), (9 * X).tolist())


def test_element_types_and_shapes(run: Run) -> None:
    hilo.register_custom_call("f", lambda x: x)
    for t, shape in (("bf16", (2, 0)), ("i1", ()), ("i4", (3,)), ("complex<f32>", (2, 2)), ("f8E4M3FN", (5,))):
        dims = "".join(f"{n}x" for n in shape)
        text = f"""func.func @main(%x: tensor<{dims}{t}>) -> tensor<{dims}{t}> {{
          %r = stablehlo.custom_call @f(%x) : (tensor<{dims}{t}>) -> tensor<{dims}{t}>
          return %r : tensor<{dims}{t}> }}"""
        dtype = hilo.parse(text)["main"].params[0].tensor.dtype.np
        x = np.ones(shape, dtype)
        (r,) = run(text, x)
        assert (r.dtype, r.shape, r.tobytes()) == (dtype, shape, x.tobytes())


def test_markers_are_the_identity(run: Run) -> None:
    for name in ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement",
                 "LayoutConstraint", "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier"):  # fmt: skip
        assert run(call(name), X)[0].tolist() == [2, 4, 6]
    with pytest.raises(hilo.Error, match="the program is for several devices"):
        run(call("SPMDFullToShardShape", result="tensor<1xf32>"), X)


def test_functions_of_the_module(run: Run) -> None:
    def twice(x: np.ndarray, *, call: Any) -> np.ndarray:
        (f,) = call.computations
        return f(f(x)[0])[0]

    hilo.register_custom_call("twice", twice)
    text = call("twice", "called_computations = [@square]") + f"""
    func.func private @square(%x: {F3}) -> {F3} {{
      %r = stablehlo.multiply %x, %x : {F3}
      return %r : {F3} }}"""
    assert run(text, X)[0].tolist() == [16, 256, 1296]


def test_shapes_that_operands_say(run: Run) -> None:
    def repeat(x: np.ndarray, *, results: Any) -> np.ndarray:
        return np.resize(x, results[0].shape) if run is compiled else np.resize(x, 6)

    hilo.register_custom_call("repeat", repeat)
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %m = stablehlo.add %n, %n : tensor<i32>
      %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.custom_call @repeat(%x, %s) {indices_of_shape_operands = dense<1> : tensor<1xi64>}
        : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32> }"""
    assert run(text, X)[0].tolist() == [1, 2, 3, 1, 2, 3]
    if run is compiled:
        f = hilo.compile(text)
        assert [f(X[:n])[0].tolist() for n in (0, 1, 2)] == [[], [1, 1], [1, 2, 1, 2]]
        with pytest.raises(hilo.Error, match=r"the size of f32\[\?\] does not follow"):
            hilo.compile(text.replace("{indices_of_shape_operands = dense<1> : tensor<1xi64>}", ""))


def test_a_wrong_run_time_size_is_an_error() -> None:
    hilo.register_custom_call("cut", lambda x: x[1:])
    text = """func.func @main(%x: tensor<?xf32>, %n: tensor<1xi32>) -> tensor<?xf32> {
      %r = stablehlo.custom_call @cut(%x, %n) {indices_of_shape_operands = dense<1> : tensor<1xi64>}
        : (tensor<?xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32> }"""
    f = hilo.compile(text)
    assert f(X, np.array([2], np.int32))[0].tolist() == [2, 3]
    with pytest.raises(hilo.Error, match=r"'cut': result 0 is float32\[2\], but f32\[3\] is wanted"):
        f(X, np.array([3], np.int32))
    with pytest.raises(hilo.Error, match="negative size"):
        f(X, np.array([-1], np.int32))


def test_assertions_in_static_programs(run: Run) -> None:
    text = """func.func @main(%ok: tensor<i1>, %n: tensor<i32>) -> tensor<i32> {
      stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "the size {0} is odd", has_side_effect = true}
        : (tensor<i1>, tensor<i32>) -> ()
      return %n : tensor<i32> }"""
    n = np.array(3, np.int32)
    assert run(text, np.array(True), n)[0] == 3
    with pytest.raises(hilo.Error, match=r"^<text>:2:7: stablehlo.custom_call: the size 3 is odd$"):
        run(text, np.array(False), n)


def test_calls_inside_of_calls() -> None:
    hilo.register_custom_call("leaf", lambda x: x + 1)
    leaf = hilo.compile(call("leaf"), threads=2)
    hilo.register_custom_call("f", lambda x: leaf(x)[0])
    outer = hilo.compile(call(), threads=2)
    assert outer(X)[0].tolist() == (4 * X + 1).tolist()

    def recursive(x: np.ndarray) -> np.ndarray:
        return outer_again(x)[0] if x[0] < 50 else x

    hilo.register_custom_call("f", recursive)
    outer_again = hilo.compile(call(), threads=2)
    assert outer_again(X)[0].tolist() == (64 * X).tolist()


def test_calls_from_several_threads() -> None:
    big = "tensor<300000xf32>"
    hilo.register_custom_call("f", lambda x: x + 1)
    text = f"""func.func @main(%a: {big}) -> {big} {{
      %x = stablehlo.exponential %a : {big}
      %r = stablehlo.custom_call @f(%x) : ({big}) -> {big}
      %y = stablehlo.exponential %r : {big}
      return %y : {big} }}"""
    f = hilo.compile(text, threads=2)
    x = np.linspace(-1, 1, 300000, dtype=np.float32)
    want = f(x)[0]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(5):
            if not np.array_equal(f(x)[0], want):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_arguments_are_not_given_away_under_a_call() -> None:
    hilo.register_custom_call("f", lambda x: x[::-1] * 10)
    text = f"""func.func @main(%x: {F3}) -> {F3} {{
      %r = stablehlo.custom_call @f(%x) : ({F3}) -> {F3}
      %y = stablehlo.add %r, %x : {F3}
      return %y : {F3} }}"""
    f = hilo.compile(text, donate=(0,))
    assert f.consume([X.copy()])[0].tolist() == [31, 22, 13]
    assert f(X)[0].tolist() == [31, 22, 13]


def test_calls_in_the_regions_of_other_ops(run: Run) -> None:
    hilo.register_custom_call("add", lambda x, y: x + y)
    text = f"""func.func @main(%x: {F3}) -> tensor<f32> {{
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %r = "stablehlo.reduce"(%x, %z) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.custom_call @add(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        stablehlo.return %c : tensor<f32> }}) {{dimensions = array<i64: 0>}} : ({F3}, tensor<f32>) -> tensor<f32>
      return %r : tensor<f32> }}"""
    assert run(text, X)[0] == 6


def test_the_list_of_targets_begins_with_the_users_own() -> None:
    hilo.register_custom_call("zzz", lambda x: x)
    listed = r"there are: (\w+, )*zzz, ApproxTopK, .* and \d+ more\. hilo\.register_custom_call"
    with pytest.raises(hilo.Error, match=listed):
        hilo.compile(call("nothing_like_it"))


def test_functions_cannot_write_to_operands(run: Run) -> None:
    def write(x: np.ndarray) -> np.ndarray:
        x[0] = 9
        return x

    hilo.register_custom_call("t.write", write)
    text = f"""func.func @main(%a: {F3}) -> {F3} {{
      %r = stablehlo.custom_call @t.write(%a) : ({F3}) -> {F3}
      return %r : {F3} }}"""
    x = X.copy()
    with pytest.raises(hilo.Error, match="read-only"):
        run(text, x)
    assert x.tolist() == X.tolist()
