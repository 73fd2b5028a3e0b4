"""Custom calls in native code: every convention, interpreted and compiled; targets.c holds the targets."""

from __future__ import annotations

import ctypes
import gc
import json
import subprocess
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_entries import NATIVE, c_compiler

import hilo
from hilo.custom_calls import registry
from hilo.runtime.foreign import STAGES, _share_status

F3 = "tensor<3xf32>"
X = np.array([1, 2, 3], np.float32)
Y = np.array([10, 20, 30], np.float32)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("targets") / "targets.so"
    flags = ["-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread", f"-I{NATIVE}"]
    subprocess.run([compiler, *flags, str(Path(__file__).parent / "targets.c"), "-o", str(path)], check=True)
    _share_status()  # tests load it by themselves, too
    return path


@pytest.fixture
def target(library: Path) -> Any:
    """`target(symbol, convention)`: registers a function of targets.c under its own name."""

    def add(symbol: str, convention: str = "c") -> None:
        hilo.register_custom_call(symbol, (str(library), symbol), convention=convention)

    return add


def both(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The results of a program, the same interpreted and compiled, on one thread and two."""
    want = hilo.interpret(text, *arrays)
    for threads in (1, 2):
        got = hilo.compile(text, threads=threads)(*arrays)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype
            np.testing.assert_array_equal(g, w)
    return want


def errors(text: str, *arrays: np.ndarray) -> set[str]:
    """The messages of interpreting and of running a program."""
    out = set()
    for run in (hilo.interpret, lambda t, *a: hilo.compile(t)(*a)):
        with pytest.raises(hilo.Error) as e:
            run(text, *arrays)
        out.add(str(e.value))
    return out


def call(name: str, attrs: str = "", operands: str = "%x", types: str = f"({F3}) -> {F3}") -> str:
    """A program that calls `name` once, on its parameters."""
    params, _, results = types.partition(" -> ")
    names = operands.split(", ")
    given = ", ".join(f"{n}: {t}" for n, t in zip(names, params[1:-1].split(", "), strict=True)) if operands else ""
    outs = results.strip("()").split(", ")
    many = f":{len(outs)}" if len(outs) > 1 else ""
    values = ", ".join(f"%r#{i}" if many else "%r" for i in range(len(outs)))
    return f"""func.func @main({given}) -> ({", ".join(outs)}) {{
      %r{many} = stablehlo.custom_call @{name}({operands}) {{{attrs}}} : {types}
      return {values} : {", ".join(outs)} }}"""


def test_plain(target: Any) -> None:
    target("twice")
    assert both(call("twice"), X)[0].tolist() == [2, 4, 6]
    for shape, t in (((), "tensor<f32>"), ((0, 2), "tensor<0x2xf32>"), ((2, 1, 3), "tensor<2x1x3xf32>")):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        assert both(call("twice", types=f"({t}) -> {t}"), x)[0].tolist() == (2 * x).tolist()


def test_what_a_plain_call_is_told(target: Any) -> None:
    target("describe")
    types = "(tensor<2x3xf32>, tensor<7xi8>) -> (tensor<3xi64>, tensor<12xui8>)"
    arrays = np.zeros((2, 3), np.float32), np.zeros(7, np.int8)
    dims, config = both(call("describe", 'backend_config = "abc"', "%x, %y", types), *arrays)
    assert dims.tolist() == [2, 3, 7]
    assert config.tobytes() == b"abc" + bytes(9)
    attrs = "api_version = 4 : i32, backend_config = {k = 2 : i32}"
    _, config = both(call("describe", attrs, "%x, %y", types), *arrays)
    assert json.loads(config.tobytes().rstrip(b"\0")) == {"k": 2}


def test_layouts_are_the_order_of_memory(target: Any) -> None:
    target("bytes")
    t = "(tensor<2x3xf32>) -> tensor<2x3xf32>"
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    columns, rows = "[dense<[0, 1]> : tensor<2xindex>]", "[dense<[1, 0]> : tensor<2xindex>]"

    def run(a: str, b: str) -> np.ndarray:
        return both(call("bytes", f"operand_layouts = {a}, result_layouts = {b}", types=t), x)[0]

    assert run(columns, columns).tolist() == x.tolist()
    assert run(columns, rows).tobytes() == x.tobytes(order="F")
    assert run(rows, columns).tobytes(order="F") == x.tobytes()


def test_the_dims_of_a_call_with_layouts_are_logical(target: Any) -> None:
    target("describe")
    types = "(tensor<2x3xf32>) -> (tensor<2xi64>, tensor<1xui8>)"
    layouts = ("operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
               "result_layouts = [dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>]")  # fmt: skip
    assert both(call("describe", layouts, types=types), np.zeros((2, 3), np.float32))[0].tolist() == [2, 3]


@pytest.mark.parametrize(("config", "says"), [("", "it ended with status -7"), ("abc", "no luck with abc")])
def test_failures_have_the_place_and_the_reason(target: Any, config: str, says: str) -> None:
    target("fail_plain")
    assert errors(call("fail_plain", f'backend_config = "{config}"'), X) == {
        f"<text>:2:12: stablehlo.custom_call: custom call target 'fail_plain' failed: {says}"
    }


def test_a_failure_in_a_loop_ends_the_program(target: Any, library: Path) -> None:
    target("note")
    target("fail_plain")
    text = f"""func.func @main(%x: {F3}) -> {F3} {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %n = stablehlo.constant dense<5> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, {F3}
      cond {{
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      }} do {{
        stablehlo.custom_call @note(%a) {{has_side_effect = true}} : ({F3}) -> ()
        %b = stablehlo.add %a, %a : {F3}
        %j = stablehlo.add %i, %one : tensor<i32>
        %two = stablehlo.add %one, %one : tensor<i32>
        %last = stablehlo.compare EQ, %j, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %d = "stablehlo.if"(%last) ({{
          %f = stablehlo.custom_call @fail_plain(%b) : ({F3}) -> {F3}
          stablehlo.return %f : {F3}
        }}, {{
          stablehlo.return %b : {F3}
        }}) : (tensor<i1>) -> {F3}
        stablehlo.return %j, %d : tensor<i32>, {F3}
      }}
      return %r#1 : {F3} }}"""
    loaded = ctypes.CDLL(str(library))
    count = ctypes.c_int32.in_dll(loaded, "log_count")
    values = (ctypes.c_float * 64).in_dll(loaded, "logged")
    for run in (hilo.interpret, lambda t, *a: hilo.compile(t)(*a)):
        count.value = 0
        with pytest.raises(hilo.Error, match="status -7"):
            run(text, X)
        assert values[: count.value] == [1, 2]
    fine = text.replace("@fail_plain", "@twice")
    target("twice")
    count.value = 0
    assert hilo.compile(fine)(X)[0].tolist() == (64 * X).tolist()
    assert values[: count.value] == [1, 2, 8, 16, 32]


def test_long_programs_are_cut_and_still_end_at_a_failure(target: Any) -> None:
    target("fail_plain")
    target("twice")
    lines = [f"%v{i + 1} = stablehlo.custom_call @twice(%v{i}) : ({F3}) -> {F3}" for i in range(300)]

    def text(at: int) -> str:
        body = "\n".join(line.replace("@twice", "@fail_plain") if i == at else line for i, line in enumerate(lines))
        return f"func.func @main(%v0: {F3}) -> {F3} {{\n{body}\nreturn %v300 : {F3} }}"

    assert hilo.compile(text(-1))(np.zeros(3, np.float32))[0].tolist() == [0, 0, 0]
    with pytest.raises(hilo.Error, match=r"^<text>:102:\d+: .*status -7"):
        hilo.compile(text(100))(X)


def test_an_alias_is_one_place(target: Any) -> None:
    target("in_place")
    alias = ("output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], "
             "operand_index = 0, operand_tuple_indices = []>]")  # fmt: skip
    x = X.copy()
    assert both(call("in_place", alias), x)[0].tolist() == [2, 3, 4]
    assert x.tolist() == X.tolist()  # the argument is not touched
    donated = hilo.compile(call("in_place", alias), donate=(0,))
    assert donated.consume([X.copy()])[0].tolist() == [2, 3, 4]
    assert "status 1" in errors(call("in_place"), x).pop()  # without an alias: two places
    used_again = f"""func.func @main(%x: {F3}) -> {F3} {{
      %y = stablehlo.add %x, %x : {F3}
      %r = stablehlo.custom_call @in_place(%y) {{{alias}}} : ({F3}) -> {F3}
      %z = stablehlo.subtract %r, %y : {F3}
      return %z : {F3} }}"""
    assert both(used_again, x)[0].tolist() == [1, 1, 1]


IR = """
@factor = constant float 3.0
define float @helper(float %x) { %f = load float, ptr @factor  %y = fmul float %x, %f  ret float %y }
define i32 @triple(ptr %call) {
  %operands_at = getelementptr i8, ptr %call, i64 24
  %operands = load ptr, ptr %operands_at
  %results_at = getelementptr i8, ptr %call, i64 32
  %results = load ptr, ptr %results_at
  %x = load ptr, ptr %operands
  %y = load ptr, ptr %results
  %dims_at = getelementptr i8, ptr %operands, i64 8
  %dims = load ptr, ptr %dims_at
  %n = load i64, ptr %dims
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %j, %loop ]
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %w = call float @helper(float %v)
  %to = getelementptr float, ptr %y, i64 %i
  store float %w, ptr %to
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""


def test_llvm_ir_becomes_part_of_the_program() -> None:
    hilo.register_custom_call("triple", IR, convention="llvm")
    assert both(call("triple"), X)[0].tolist() == [3, 6, 9]
    text = hilo.compile(call("triple")).text("llvm")
    assert "fmul float" in text
    assert "call i32 @hilo_call" not in text  # inlined
    hilo.register_custom_call("triple", IR.replace("3.0", "4.0"), convention="llvm")
    assert both(call("triple"), X)[0].tolist() == [4, 8, 12]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("define i32 @f(ptr %c) {", "LLVM rejects the text"),
        (3, "LLVM IR is a text, not a int"),
        ("declare i32 @f(ptr)", "one function that is not private, or one of this name; it has none"),
        ("define i32 @f(ptr %c) { ret i32 0 } define i32 @g(ptr %c) { ret i32 0 }", "it has f, g"),
        ("define void @f(ptr %c) { ret void }", r"must be of type i32 \(ptr\), not void \(ptr\)"),
    ],
)
def test_llvm_ir_that_cannot_be_a_target(text: Any, message: str) -> None:
    with pytest.raises(hilo.Error, match=message):
        hilo.register_custom_call("target", text, convention="llvm")


def test_xla_without_a_status(target: Any) -> None:
    target("xla_one", "xla")
    target("xla_two_results", "xla")
    assert both(call("xla_one", "", "%x, %y", f"({F3}, {F3}) -> {F3}"), X, Y)[0].tolist() == [11, 22, 33]
    a, b = both(call("xla_two_results", "", "%x, %y", f"({F3}, {F3}) -> ({F3}, {F3})"), X, Y)
    assert (a.tolist(), b.tolist()) == ([11, 22, 33], [-9, -18, -27])


def test_xla_with_a_status(target: Any) -> None:
    types = f"({F3}, {F3}) -> {F3}"
    target("xla_status", "xla")
    text = call("xla_status", "api_version = 2 : i32", "%x, %y", types)
    assert both(text, X, Y)[0].tolist() == [11, 22, 33]
    (message,) = errors(text, -X, Y)
    assert message.endswith("custom call target 'xla_status' failed: negative")
    target("xla_unified", "xla")
    text = call("xla_unified", 'api_version = 3 : i32, backend_config = "\\01\\02"', "%x, %y", types)
    assert both(text, X, Y)[0].tolist() == [14, 22, 33]
    assert "empty" in errors(call("xla_unified", "api_version = 3 : i32", "%x, %y", types), X, Y).pop()


FFI = "api_version = 4 : i32"


def test_ffi(target: Any) -> None:
    target("ffi_scale", "xla-ffi")
    attrs = f"{FFI}, backend_config = {{z = true, factor = 2.0 : f32, add = array<i64: 1, 2>, s = \"text\", d = {{}}}}"
    assert both(call("ffi_scale", attrs), X)[0].tolist() == [5, 7, 9]
    older = "api_version = 4 : i32, mhlo.backend_config = {factor = 0.5 : f32}"
    t = "(tensor<2x0xf32>) -> tensor<2x0xf32>"
    assert both(call("ffi_scale", older), X)[0].tolist() == [0.5, 1, 1.5]
    assert both(call("ffi_scale", older, types=t), np.zeros((2, 0), np.float32))[0].shape == (2, 0)
    assert "factor is missing" in errors(call("ffi_scale", FFI), X).pop()


def test_ffi_failures(target: Any) -> None:
    target("ffi_fail", "xla-ffi")
    assert errors(call("ffi_fail", FFI), X) == {
        "<text>:2:12: stablehlo.custom_call: custom call target 'ffi_fail' failed: refused by the handler"
    }
    target("ffi_old", "xla-ffi")
    assert "version 9.0 of XLA's FFI, hilo knows 0.3" in errors(call("ffi_old", FFI), X).pop()
    attrs = f"{FFI}, backend_config = {{factor = [1, \"a\"]}}"
    assert "XLA's FFI has no form for attribute 'factor'" in errors(call("ffi_fail", attrs), X).pop()
    types = "(tensor<2xi4>) -> tensor<2xi4>"
    with pytest.raises(hilo.Error, match="operand 0 has element type i4"):
        hilo.compile(call("ffi_fail", FFI, types=types))


def test_ffi_stages_and_state(library: Path) -> None:
    names = {"instantiate": "ffi_make_counter", "execute": "ffi_count"}
    hilo.register_custom_call("count", {s: (library, n) for s, n in names.items()}, convention="xla-ffi")
    text = call("count", FFI, "", "() -> tensor<i64>")
    alive = ctypes.c_int64.in_dll(ctypes.CDLL(str(library)), "alive")
    first, second = hilo.compile(text), hilo.compile(text)
    assert [int(first()[0]) for _ in range(3)] == [1, 2, 3]
    assert int(second()[0]) == 1
    assert alive.value == 2
    del first, second
    gc.collect()
    assert alive.value == 0
    assert hilo.interpret(text)[0] == 1
    with pytest.raises(hilo.Error, match="there is no stage 'run'; there are instantiate"):
        hilo.register_custom_call("count", {"run": 1}, convention="xla-ffi")
    with pytest.raises(hilo.Error, match="no code for the stage 'execute'"):
        hilo.register_custom_call("count", {"prepare": 1}, convention="xla-ffi")
    assert STAGES[-1] == "execute"


def test_the_convention_and_api_version_must_agree(target: Any) -> None:
    target("xla_one", "xla")
    types = f"({F3}, {F3}) -> {F3}"
    assert "registered with convention 'xla', but the call has api_version 4" in errors(
        call("xla_one", FFI, "%x, %y", types), X, Y).pop()  # fmt: skip
    target("ffi_scale", "xla-ffi")
    assert "convention 'xla-ffi', but the call has api_version 1" in errors(call("ffi_scale"), X).pop()


def test_forms_of_native_code(library: Path) -> None:
    function = ctypes.CDLL(str(library)).twice
    place = ctypes.cast(function, ctypes.c_void_p).value
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    name = ctypes.c_char_p(b"a.name")
    for code in (function, place, new(place, name, None), new(place, None, None), (library, "twice")):
        hilo.register_custom_call("forms", code, convention="c")
        assert both(call("forms"), X)[0].tolist() == [2, 4, 6]
    for code, message in (
        (0, "the address is null"),
        (-1, "-1 is no address"),
        ("twice", "expected an address"),
        ((library, "thrice"), "thrice"),
        (("/nowhere.so", "twice"), "nowhere"),
        (lambda x: x, "not a function"),
    ):
        with pytest.raises(hilo.Error, match=message):
            hilo.register_custom_call("forms", code, convention="c")
    with pytest.raises(hilo.Error, match="no calling convention 'fortran'; there are python, c, llvm, xla, xla-ffi"):
        hilo.register_custom_call("forms", 1, convention="fortran")


def test_cached_code_does_not_know_addresses(target: Any, library: Path, tmp_path: Path) -> None:
    from hilo.options import Options

    options = Options(cache_dir=str(tmp_path))
    target("twice")
    text = call("twice")
    assert hilo.compile(text, options=options)(X)[0].tolist() == [2, 4, 6]
    before = sorted(p.name for p in tmp_path.rglob("*") if p.is_file())
    hilo.register_custom_call("twice", (library, "fail_plain"), convention="c")
    with pytest.raises(hilo.Error, match="status -7"):
        hilo.compile(text, options=options)(X)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == before


def test_c_text_calls_a_symbol(target: Any, library: Path) -> None:
    target("twice")
    text = hilo.compile(call("twice")).text("c")
    assert "extern uint32_t twice(char *);" in text
    assert "int32_t twice(const struct hilo_call *)" in text
    hilo.register_custom_call("twice", ctypes.cast(ctypes.CDLL(str(library)).twice, ctypes.c_void_p).value,
                              convention="c")  # fmt: skip
    with pytest.raises(hilo.Error, match="'twice' has no symbol: register it as"):
        hilo.compile(call("twice")).text("c")
    hilo.register_custom_call("twice", lambda x: x)
    with pytest.raises(hilo.Error, match="'twice' has the convention 'python'"):
        hilo.compile(call("twice")).text("c")


def test_run_time_sizes(target: Any) -> None:
    target("describe")
    text = """func.func @main(%x: tensor<?x3xf32>) -> (tensor<2xi64>, tensor<1xui8>) {
      %r:2 = stablehlo.custom_call @describe(%x) : (tensor<?x3xf32>) -> (tensor<2xi64>, tensor<1xui8>)
      return %r#0, %r#1 : tensor<2xi64>, tensor<1xui8> }"""
    f = hilo.compile(text)
    for n in (0, 1, 5):
        x = np.zeros((n, 3), np.float32)
        assert f(x)[0].tolist() == hilo.interpret(text, x)[0].tolist() == [n, 3]


def test_types_of_states(library: Path) -> None:
    number = ctypes.c_int64.in_dll(ctypes.CDLL(str(library)), "counter_type")
    mine = ctypes.c_int64(7)
    hilo.register_ffi_type("a.type", ctypes.addressof(mine))
    assert mine.value == 7  # XLA numbered it before
    other = ctypes.c_int64(0)
    hilo.register_ffi_type("another.type", ctypes.addressof(other))
    again = ctypes.c_int64(0)
    hilo.register_ffi_type("another.type", ctypes.addressof(again))
    assert other.value == again.value > 1 << 32
    assert number.value != other.value
    with pytest.raises(hilo.Error, match=r"type a\.type of XLA's FFI: there is another type of this name"):
        hilo.register_ffi_type("a.type", ctypes.addressof(other))
    for name, code in (("", 1), ("x", "text"), ("x", 0)):
        with pytest.raises(hilo.Error, match="type"):
            hilo.register_ffi_type(name, code)


def test_a_program_in_a_cycle_with_its_target_goes_away() -> None:
    def make() -> weakref.ref[Any]:
        cell: list[Any] = []
        hilo.register_custom_call("f", lambda x: cell[0](x + x)[0] if x[0] < 4 else x)
        cell.append(hilo.compile(call("f")))
        assert cell[0](X)[0].tolist() == [4, 8, 12]
        return weakref.ref(cell[0])

    gone = make()
    registry.unregister("f")
    gc.collect()
    assert gone() is None


def test_jax_leaves_the_version_out_beside_its_dictionary(target: Any) -> None:
    target("ffi_scale", "xla-ffi")
    attrs = "mhlo.backend_config = {factor = 3.0 : f32}"
    assert both(call("ffi_scale", attrs), X)[0].tolist() == [3, 6, 9]


def test_an_operand_that_nobody_else_needs_is_given_up_to_its_alias(target: Any) -> None:
    target("in_place")
    alias = ("output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], "
             "operand_index = 0, operand_tuple_indices = []>]")  # fmt: skip
    text = f"""func.func @main(%x: {F3}) -> {F3} {{
      %a = stablehlo.exponential %x : {F3}
      %b = stablehlo.custom_call @in_place(%a) {{{alias}}} : ({F3}) -> {F3}
      %c = stablehlo.custom_call @in_place(%b) {{{alias}}} : ({F3}) -> {F3}
      %d = stablehlo.add %c, %USED : {F3}
      return %d : {F3} }}"""
    zero = np.zeros(3, np.float32)
    assert "copy" not in hilo.compile(text.replace("%USED", "%c")).text("plan")
    assert both(text.replace("%USED", "%c"), zero)[0].tolist() == [6, 6, 6]
    for other, result in (("%a", 4), ("%b", 5), ("%x", 3)):
        assert both(text.replace("%USED", other), zero)[0].tolist() == [result] * 3


def test_c_text_runs(target: Any, library: Path, tmp_path: Path) -> None:
    target("twice")
    target("fail_plain")
    text = f"""func.func @main(%x: {F3}) -> {F3} {{
      %y = stablehlo.custom_call @twice(%x) : ({F3}) -> {F3}
      %z = stablehlo.custom_call @NAME(%y) {{backend_config = "this"}} : ({F3}) -> {F3}
      return %z : {F3} }}"""
    compiler = c_compiler()
    assert compiler is not None

    class Context(ctypes.Structure):
        _fields_ = (("parallel_for", ctypes.c_void_p), ("constants", ctypes.c_void_p), ("host_call", ctypes.c_void_p),
                    ("threads", ctypes.c_int64), ("message", ctypes.c_void_p), ("message_size", ctypes.c_int64),
                    ("failed", ctypes.c_int64))  # fmt: skip

    def run(name: str) -> tuple[int, list[float], int, bytes]:
        out = tmp_path / f"{name}.so"
        (tmp_path / "program.c").write_text(hilo.compile(text.replace("NAME", name)).text("c"))
        subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-ffp-contract=off", str(tmp_path / "program.c"),
                        str(library), "-lm", "-o", str(out)], check=True)  # fmt: skip
        result, arena = np.zeros(3, np.float32), np.zeros(4096, np.uint8)
        configs = [np.frombuffer(c, np.uint8) for c in (b"\0", b"this\0")]
        pointers = [(ctypes.c_void_p * len(a))(*[x.ctypes.data for x in a]) for a in (configs, [X], [result])]
        message = ctypes.create_string_buffer(64)
        context = Context(None, ctypes.addressof(pointers[0]), None, 1, ctypes.addressof(message), 64, -1)
        code = ctypes.CDLL(str(out)).entry(ctypes.byref(context), pointers[1], pointers[2], ctypes.c_void_p(
            arena.ctypes.data + -arena.ctypes.data % 64))  # fmt: skip
        return code, result.tolist(), context.failed, message.value

    assert run("twice") == (0, [4, 8, 12], -1, b"")
    code, _, failed, message = run("fail_plain")
    assert (code, failed, message) == (-7, 1, b"no luck with this")
