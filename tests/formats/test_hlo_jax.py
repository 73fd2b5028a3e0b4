"""HLO that JAX and XLA's CPU compiler print: it computes what the StableHLO of the same program does.

The programs are in jax_programs.py. XLA's own parser judges what is printed; it runs in a child process, since it
aborts on some texts.
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Unsupported
from hilo.formats import parse
from hilo.formats.hlo_text import print_module
from hilo.ir.verify import verify

pytest.importorskip("jax", reason="jax, whose programs are read, is not installed")
pytestmark = pytest.mark.filterwarnings("ignore")  # of jax, not of hilo

import jax_programs  # noqa: E402

# XLA's CPU compiler makes calls of its own libraries of these.
LIBRARIES = {"linear_algebra", "triangular", "top_k"}


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Equal integers, nearly equal floats: XLA's passes rewrite what they compute."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "biu":
        return np.array_equal(a, b)
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    rtol = 2e-2 if a.dtype.itemsize == 2 else 2e-5
    return np.allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=1e-5, equal_nan=True)


def texts(p: jax_programs.Program) -> dict[str, str]:
    lowered = p.lowered()
    return {
        "stablehlo": jax_programs.stablehlo(lowered),
        "before": jax_programs.before(lowered),
        "after": jax_programs.after(lowered),
    }


_JUDGE = """
import pickle, sys
import jax, numpy as np
from jaxlib import _hlo, _jax

def run(program, arguments):
    if isinstance(program, str):
        module = _hlo.hlo_module_from_text(program)
    else:
        module = _hlo.HloModule.from_serialized_hlo_module_proto(program)
    if arguments is None:
        return []
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    devices = jax.devices()[:1]
    options = _jax.DeviceList(tuple(devices)), _jax.CompileOptions()
    made = devices[0].client.compile_and_load(_jax.mlir.xla_computation_to_mlir_module(computation), *options)
    out = made.execute_sharded([jax.device_put(a) for a in arguments])
    return [np.asarray(x[0]) for x in out.disassemble_into_single_device_arrays()]

for line in sys.stdin:
    path = line.strip()
    try:
        results = run(*pickle.load(open(path, "rb")))
    except Exception as e:
        results = str(e)
    pickle.dump(results, open(path, "wb"))
    print("done", flush=True)
"""
Xla = Callable[["str | bytes", "list[Any] | None"], list[Any]]


@pytest.fixture(scope="module")
def xla(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Xla]:
    """What XLA's CPU compiler makes of a text, or a message, and arguments; without arguments, it is only read."""
    pipe, path = subprocess.PIPE, tmp_path_factory.mktemp("xla") / "exchange"
    with subprocess.Popen([sys.executable, "-c", _JUDGE], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL,
                          text=True) as child:  # fmt: skip

        def judge(text: str | bytes, arguments: list[Any] | None) -> list[Any]:
            assert child.stdin is not None
            assert child.stdout is not None
            path.write_bytes(pickle.dumps((text, arguments)))
            print(path, file=child.stdin, flush=True)
            assert child.stdout.readline() == "done\n", "XLA aborted"
            results = pickle.loads(path.read_bytes())
            assert isinstance(results, list), results
            return results

        yield judge


@pytest.mark.parametrize("program", jax_programs.PROGRAMS, ids=lambda p: p.name)
def test_computes_the_same(program: jax_programs.Program, xla: Xla) -> None:
    arguments = program.arguments()
    written = texts(program)
    modules = {kind: parse(text, f"{program.name}.{kind}") for kind, text in written.items()}
    expected: list[Any] | None = None
    for kind, m in modules.items():
        verify(m, types=True)
        text = print_module(m)
        again = parse(text)
        assert print_module(again) == text
        runs = kind == "stablehlo" and program.name not in LIBRARIES
        theirs = xla(text, arguments if runs else None)
        try:
            results = hilo.interpret(m, *arguments)
        except Unsupported:
            assert program.name in LIBRARIES
            continue
        if expected is None:
            expected = results
            for a, b in zip(theirs, results, strict=runs):
                assert close(a, b), "XLA computes something else from what is printed"
        assert len(results) == len(expected)
        for k, (a, b) in enumerate(zip(results, expected, strict=True)):
            assert close(a, b), (kind, k, a, b)
        for a, b in zip(hilo.interpret(again, *arguments), results, strict=True):
            assert close(a, b), kind  # a special function is written as what it is made of


@pytest.mark.parametrize("name", ["dense", "scanned", "conditional", "attention", "training_step"])
def test_compiles_to_the_same(name: str) -> None:
    program = next(p for p in jax_programs.PROGRAMS if p.name == name)
    arguments = program.arguments()
    made = {kind: hilo.compile(text)(*arguments) for kind, text in texts(program).items()}
    for kind in ("before", "after"):
        for a, b in zip(made[kind], made["stablehlo"], strict=True):
            assert close(np.asarray(a), np.asarray(b)), kind


@pytest.mark.parametrize("program", jax_programs.PROGRAMS, ids=lambda p: p.name)
def test_messages_are_read_as_texts_are(program: jax_programs.Program) -> None:
    lowered = program.lowered()
    before = parse(lowered.compiler_ir("hlo").as_serialized_hlo_module_proto())
    verify(before, types=True)
    assert print_module(before) == print_module(parse(jax_programs.before(lowered)))


@pytest.mark.parametrize("program", [p for p in jax_programs.PROGRAMS if p.name not in LIBRARIES], ids=lambda p: p.name)
def test_messages_of_compiled_programs_compute_the_same(program: jax_programs.Program) -> None:
    """They have the instructions in another order than the text."""
    lowered, arguments = program.lowered(), program.arguments()
    after = parse(lowered.compile().runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    verify(after, types=True)
    expected = hilo.interpret(parse(jax_programs.stablehlo(lowered)), *arguments)
    for a, b in zip(hilo.interpret(after, *arguments), expected, strict=True):
        assert close(a, b)


RUN = ["elementwise", "dense", "reductions", "scanned", "conditional", "gathered", "scattered", "sorting",
       "convolution", "large_constant", "training_step"]  # fmt: skip


def called(text: str) -> str:
    """The program with calls for fusions, which XLA's way from HLO through MLIR knows none of."""
    return re.sub(r"\bfusion\((.*?)\), kind=\w+, calls=", r"call(\1), to_apply=", text)


@pytest.mark.parametrize("name", RUN)
def test_xla_computes_the_same_from_what_is_written(name: str, xla: Xla) -> None:
    program = next(p for p in jax_programs.PROGRAMS if p.name == name)
    arguments = program.arguments()
    m = parse(jax_programs.stablehlo(program.lowered()))
    expected = hilo.interpret(m, *arguments)
    message, text = hilo.inspect(m, "hlo_serialized"), hilo.inspect(m, "optimized_hlo")
    assert isinstance(text, str)
    made = hilo.interpret(parse(message), *arguments), xla(message, arguments), xla(called(text), arguments)
    for results in made:
        for a, b in zip(results, expected, strict=True):
            assert close(np.asarray(a), b)
    assert xla(hilo.inspect(m, "optimized_hlo_serialized"), None) == []  # its reader takes fusions, too
