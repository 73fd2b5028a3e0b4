"""The assembler: jumps of every length, what aligns, constants, functions of this file and others; its object files."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from x86_lines import by_llvm, code_of

from hilo.backend.elf import symbols
from hilo.backend.jit import load
from hilo.backend.target import Target
from hilo.backend.x86.assembler import Assembler, fill
from hilo.backend.x86.disassemble import Instruction, disassembled
from hilo.backend.x86.encode import R11, RAX, RDI, RSI, RSP, general, vector
from hilo.backend.x86.text import assemble
from hilo.errors import Error

runs = pytest.mark.skipif(not Target.host().includes(Target.named("x86-avx512")), reason="needs AVX-512 to run")


def of_lines(lines: list[str]) -> bytes:
    """The code of lines, by the assembler."""
    assembler = Assembler()
    assemble(assembler, lines)
    return code_of(assembler.finish())


def function(file: bytes, name: str, result: Any, *kinds: Any) -> Any:
    return load([file], [name]).function(name, *kinds, restype=result)


@pytest.mark.parametrize("size", [0, 1, 40, 41, 42, 43])
@pytest.mark.parametrize("apart", [0, 30])
def test_jumps_are_as_short_as_they_can_be(size: int, apart: int) -> None:
    """Each jump reaches just or just not over what is between, which holds jumps of both lengths itself."""
    between = ["addq $1, %rax"] * apart + ["nop"] * size
    lines = ["jle end", "start:", "jmp middle", *between, "jne start", ".p2align 5", "middle:", "jmp start", *between,
             "jg middle", ".p2align 4", *between, "ja end", "jmp start", "end:", "retq"]  # fmt: skip
    assert of_lines(lines) == by_llvm(lines)


def test_one_jump_that_grows_makes_another_grow() -> None:
    far = ["addq $1000, %rbx"] * 17
    lines = ["one:", "jmp two", *far, "je three", "two:", *far, "je one", "three:", *far, "jne two", "jmp one"]
    assert of_lines(lines) == by_llvm(lines)


def test_layouts_of_all_kinds() -> None:
    rng = random.Random(3)
    for _ in range(300):
        labels = [f"l{i}" for i in range(rng.randint(1, 12))]
        lines = [f"{label}:" for label in labels]
        lines += [f"{rng.choice(['jmp', 'je', 'jl'])} {rng.choice(labels)}" for _ in range(rng.randint(1, 25))]
        others = ["nop", "addq $1000, %rax", "vaddps 4096(%rax,%rcx,8), %zmm1, %zmm2"]
        lines += rng.choices(others, k=rng.randint(0, 90))
        lines += [f".p2align {rng.randint(1, 6)}" for _ in range(rng.randint(0, 4))]
        rng.shuffle(lines)
        assert of_lines(lines) == by_llvm(lines), lines


@pytest.mark.parametrize("size", range(33))
def test_what_aligns(size: int) -> None:
    lines = [*["nop"] * size, ".p2align 5", "retq"]
    assert of_lines(lines) == by_llvm(lines)
    assert len(fill(size)) == size


@runs
def test_constants_are_kept_once_and_aligned() -> None:
    assembler = Assembler()
    assembler.function("f")
    lanes = np.arange(16, dtype=np.float32)
    one, all_ = assembler.constant(b"\0\0\x80\x3f"), assembler.constant(lanes.tobytes())
    assert assembler.constant(b"\0\0\x80\x3f") == one != all_ == assembler.constant(lanes.tobytes(), 64)
    assert assembler.constant(b"\0\0\x80\x3f", 64) not in (one, all_)
    assembler.emit(vector("vmovaps", 2, 0, None, all_), all_)  # which must be aligned
    assembler.emit(vector("vaddps", 2, 17, 0, one, broadcast=True), one)
    assembler.emit(vector("vpermilps", 2, 17, None, 17, imm=0b10110001))
    assembler.emit(vector("vshufps", 2, 1, 17, all_, imm=0b11100100), all_, 1)  # an immediate behind the distance
    assembler.emit(vector("vmovups_store", 2, 1, None, (RDI, None, 1, 0)) + general("ret", 8))
    to = np.empty(16, np.float32)
    function(assembler.finish(), "f", None, ctypes.c_void_p)(to.ctypes.data)
    assert to.tolist() == [v for i in range(0, 16, 4) for v in (i + 2, i + 1, i + 2, i + 3)]


@runs
def test_functions_call_one_another_and_others() -> None:
    assembler = Assembler()
    assembler.function("twice", private=True)
    assembler.emit(general("lea", 8, RAX, (RDI, RDI, 1, 0)) + general("ret", 8))
    assembler.function("f")
    assembler.call("later")
    assembler.emit(general("mov", 8, RDI, RAX))
    assembler.call("twice")
    assembler.emit(general("mov", 4, RDI, RAX) + general("sub", 8, RSP, None, 8))
    assembler.call("labs")
    assembler.emit(general("add", 8, RSP, None, 8) + general("ret", 8))
    assembler.function("later")
    assembler.address("twice", R11)
    assembler.emit(general("sub", 8, RSP, None, 8) + general("call", 8, R11) + general("mov", 8, RDI, RAX))
    assembler.address("labs", RAX, outside=True)
    assembler.emit(general("call", 8, RAX) + general("add", 8, RSP, None, 8) + general("ret", 8))
    file = assembler.finish()
    assert symbols(file) == ({"twice", "f", "later"}, {"labs"})
    assert function(file, "f", ctypes.c_long, ctypes.c_long)(-5) == 20


@runs
def test_files_are_loaded_together() -> None:
    """A private function of one file is found by another, as kernels' helpers are; what is public goes before."""
    files = []
    for name, factor in (("one", 2), ("two", 4)):
        assembler = Assembler()
        assembler.function("times", private=name == "one")
        assembler.emit(general("imul", 8, RAX, RDI, factor) + general("ret", 8))
        assembler.function(name)
        assembler.emit(general("sub", 8, RSP, None, 8))
        assembler.call("times")
        assembler.emit(general("add", 8, RSP, None, 8) + general("ret", 8))
        files.append(assembler.finish())
    assembler = Assembler()
    assembler.function("user")
    for name in ("one", "two", "times"):
        assembler.emit(general("push", 8, RDI))
        assembler.call(name)
        assembler.emit(general("pop", 8, RDI) + general("add", 8, RDI, RAX))
    assembler.emit(general("mov", 8, RAX, RDI) + general("ret", 8))
    for order in ([*files, assembler.finish()], [assembler.finish(), *reversed(files)]):
        f = load(order, ["user"]).function("user", ctypes.c_long, restype=ctypes.c_long)
        assert f(1) == 75  # 1 + 2, + 4 times that, + 4 times that


@runs
def test_a_loop() -> None:
    assembler = Assembler()
    assembler.function("f")
    assembler.emit(general("xor", 4, RAX, RAX) + general("test", 8, RDI, RDI))
    assembler.jump("end", "le")
    assembler.align(32)
    assembler.label(("turn", 1))
    assembler.emit(general("add", 8, RAX, RDI) + general("add", 8, RAX, RSI) + general("dec", 8, RDI))
    assembler.jump(("turn", 1), "ne")
    assembler.label("end")
    assembler.emit(general("ret", 8))
    f = function(assembler.finish(), "f", ctypes.c_long, ctypes.c_long, ctypes.c_long)
    assert [f(n, 100) for n in (-3, 0, 1, 4)] == [0, 0, 101, 410]


@runs
@pytest.mark.parametrize("value", [0, 1, -1, 127, 1 << 31, (1 << 32) - 1, 1 << 32, -(1 << 31), -(1 << 31) - 1, 1 << 63])
def test_numbers(value: int) -> None:
    assembler = Assembler()
    assembler.function("f")
    assembler.emit(general("mov", 8, RAX, None, value) + general("ret", 8))
    assert function(assembler.finish(), "f", ctypes.c_uint64)() == value % (1 << 64)


@runs
def test_linkers_take_the_files(tmp_path: Path) -> None:
    assembler = Assembler()
    assembler.function("f")
    assembler.emit(general("sub", 8, RSP, None, 8) + general("neg", 8, RDI))
    assembler.call("labs")
    eight = assembler.constant((8).to_bytes(8, "little"))
    assembler.emit(general("add", 8, RAX, eight), eight)
    assembler.emit(general("add", 8, RSP, None, 8) + general("ret", 8))
    (tmp_path / "f.o").write_bytes(assembler.finish())
    link = ["gcc", "-shared", "-Wl,--fatal-warnings", str(tmp_path / "f.o"), "-o", str(tmp_path / "f.so")]
    subprocess.run(link, check=True)
    assert ctypes.CDLL(str(tmp_path / "f.so")).f(12) == 20


def test_machine_code_is_read_back() -> None:
    assembler = Assembler()
    assembler.function("f", private=True)
    assembler.emit(general("push", 8, RAX))
    assembler.call("labs")
    assembler.emit(general("add", 8, RAX, None, 1))
    assembler.label("again")
    eight = assembler.constant(bytes(range(8)))
    assembler.emit(general("add", 8, RAX, eight), eight)
    assembler.jump("again", "ne")
    assembler.call("g")
    assembler.emit(general("ret", 8))
    assembler.function("g")
    assembler.address("memset", R11, outside=True)
    assembler.emit(general("ret", 8))
    assert disassembled(assembler.finish()) == """f:
    pushq %rax
    callq labs
    addq $1, %rax
.L3:
    addq .C0(%rip), %rax
    jne .L3
    callq g
    retq
.globl g
g:
    movabsq $memset, %r11
    retq
.C0:
    .byte 00 01 02 03 04 05 06 07
"""


def test_what_is_no_machine_code() -> None:
    for code in (b"\x06", b"\x62\xf1", b"\xc5\xf8\x77"[:2], b"\x0f\xff\xc0", b"\xe8\0"):
        with pytest.raises(Error, match="not known"):
            Instruction(code, 0, str)


def test_what_is_not_there() -> None:
    assembler = Assembler()
    assembler.function("f")
    assembler.jump("nowhere")
    with pytest.raises(Error, match="jumps to 'nowhere'"):
        assembler.finish()
    assembler = Assembler()
    assembler.function("f")
    assembler.emit(vector("vmovaps", 2, 0, None, "nothing"), "nothing")
    with pytest.raises(Error, match="refers to 'nothing'"):
        assembler.finish()


@pytest.mark.parametrize("line", [
    "frob %rax", ".section .data", "vpcmpeqd %xmm0, %xmm1, %xmm2", "addq $zero, %rax",
    "vaddps (%rax,%zmm99,4), %zmm1, %zmm2", "vmovaps %zmm1, %zmm2{%q1}", "vmovmskps %zmm1, %eax", "addq", "jxx there",
])  # fmt: skip
def test_lines_that_are_not_known(line: str) -> None:
    with pytest.raises(Error, match="not known"):
        assemble(Assembler(), [line])
