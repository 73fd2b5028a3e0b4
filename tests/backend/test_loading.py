"""Targets, code generation in a worker, loading, and the errors of each."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from hilo.backend import c, cpu, elf, jit, llvm
from hilo.backend.target import NAMED, Target
from hilo.errors import Error, Unsupported
from hilo.ir import dtypes
from hilo.loop.builder import F32, I64, PTR, Builder, Func, VType
from hilo.record import replace


def simple(name: str, callee: str | None = None) -> Func:
    """out[0] = x + 1, through `callee` if there is one."""
    f = Func(name, [("x", I64), ("out", PTR)])
    b = Builder(f)
    y = b.call(callee, [f.params[0]], I64) if callee else b.add(f.params[0], 1)
    b.store(f.params[1], y)
    return f


def test_target_facts() -> None:
    avx2 = Target.named("x86-avx2")
    assert avx2.lanes(dtypes.f32) == avx2.lanes("f32") == avx2.lanes(F32) == 8
    assert (avx2.lanes(dtypes.bf16), avx2.lanes(dtypes.c128), avx2.lanes(dtypes.u8)) == (8, 4, 32)
    assert hash(avx2) == hash(Target.named("x86-avx2"))
    with pytest.raises(AttributeError):
        avx2.cpu = "x"  # type: ignore[misc]
    with pytest.raises(Error, match="no target 'x86-mmx'"):
        Target.named("x86-mmx")
    assert Target.host() is Target.named("host")
    assert NAMED["x86-avx512"].includes(avx2)
    assert not avx2.includes(NAMED["x86-avx512"])


def test_code_for_another_machine_is_made_in_a_worker() -> None:
    x86 = Target.named("x86-sse2")
    arm = replace(x86, name="arm", triple="aarch64-unknown-linux-gnu", cpu="")
    text = llvm.emit([simple("f")], arm)
    assert "aarch64" in text
    assert "\tret" in cpu.assembly(text, arm)
    assert elf.symbols(cpu.compile(text, arm))[0] >= {"f"}
    with pytest.raises(Error, match="LLVM rejects"):
        cpu.compile(text.replace("add i64", "nonsense i64"), arm)
    with pytest.raises(Error, match="no target"):
        cpu.compile("", replace(arm, triple="none-none-none"))


def test_rejected_text_is_an_error_and_not_an_abort() -> None:
    t = Target.host()
    with pytest.raises(Error, match="LLVM rejects"):
        cpu.compile("define void @f() { ret i32 0 }", t)


def test_loading_several_objects_that_call_each_other() -> None:
    t = Target.host()
    objects = [cpu.compile(llvm.emit([f], t), t) for f in (simple("a", "labs"), simple("b"))]
    out = np.zeros(2, np.int64)
    code = jit.load(objects, ["a", "b"])
    fs = [code.function(s, ctypes.c_int64, ctypes.c_void_p) for s in ("a", "b")]
    del code
    gc.collect()
    fs[0](-5, out.ctypes.data)
    fs[1](6, out.ctypes.data + 8)
    assert out.tolist() == [5, 7]


def test_unknown_symbols_and_damaged_objects() -> None:
    t = Target.host()
    data = cpu.compile(llvm.emit([simple("a", "no_such_function")], t), t)
    with pytest.raises(Error, match="no_such_function"):
        jit.load([data], ["a"])
    with pytest.raises(Error, match="no symbol 'z'"):
        jit.load([data], ["z"])
    with pytest.raises(Error, match="ELF"):
        jit.load([b"nonsense"], [])
    with pytest.raises(Error, match="damaged"):
        elf.symbols(data[:80])


def test_software_fma_calls_libm_and_floor_does_not() -> None:
    t = Target.named("x86-sse2")
    f = Func("k", [("p", PTR)])
    b = Builder(f)
    v = b.load(f.params[0], VType("f64", 2))
    b.store(f.params[0], b.floor(b.fma(v, v, v)))
    missing = elf.symbols(cpu.compile(llvm.emit([f], t), t))[1]
    assert missing == {"fma"}


def test_c_refuses_vectors_and_odd_names() -> None:
    f = Func("k", [("p", PTR)])
    b = Builder(f)
    b.store(f.params[0], b.fneg(b.load(f.params[0], VType("f64", 2))))
    with pytest.raises(Unsupported, match="no vectors"):
        c.emit([f])
    with pytest.raises(Unsupported, match="not a C identifier"):
        c.emit([Func("a.b", [])])


def test_odd_names_in_llvm() -> None:
    t = Target.host()
    name = 'wei rd"\\$'
    code = jit.load([cpu.compile(llvm.emit([simple(name)], t), t)], [name])
    out = np.zeros(1, np.int64)
    code.function(name, ctypes.c_int64, ctypes.c_void_p)(1, out.ctypes.data)
    assert out[0] == 2
