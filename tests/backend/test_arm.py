"""Code for 64-bit Arm machines: made everywhere, run where there are a C compiler for them and qemu."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
from object_runs import Program, needs_emulator, whole_numbers
from registry_runs import Batch  # pyright: ignore[reportMissingImports]

import hilo
from hilo.backend.cpu import compile as compile_text
from hilo.backend.loader import Code
from hilo.backend.relocations import ARM, X86, TooFar, written
from hilo.backend.target import NAMED, Target, described
from hilo.errors import Error
from hilo.ir.op import OpDef
from hilo.testing.pieces import all_ops

TARGETS = [name for name, t in NAMED.items() if t.arch == "aarch64"]
MACHINE = 183  # EM_AARCH64
APART = ("hilo", "interpreter")  # dialects of what is inside, and of what only the interpreter has
NOT_RUN = ("stablehlo.custom_call", "stablehlo.infeed", "stablehlo.outfeed", "stablehlo.send", "stablehlo.recv")
DEFS = [d for d in all_ops() if d.full_name.partition(".")[0] not in APART and d.full_name not in NOT_RUN]
PARTS = 8  # programs that all the examples go into

PRODUCT = """
func.func @main(%a: tensor<{m}x{k}x{t}>, %b: tensor<{k}x{n}x{t}>) -> tensor<{m}x{n}x{out}> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<{m}x{k}x{t}>, tensor<{k}x{n}x{t}>) -> tensor<{m}x{n}x{out}>
  return %0 : tensor<{m}x{n}x{out}>
}}
"""


def product(m: int, k: int, n: int, t: str = "f32", out: str = "f32") -> str:
    return PRODUCT.format(m=m, k=k, n=n, t=t, out=out)


def unary(op: str, t: str, to: str = "") -> str:
    to = to or t
    return f"""func.func @main(%x: tensor<1003x{t}>) -> tensor<1003x{to}> {{
      %y = stablehlo.{op} %x : (tensor<1003x{t}>) -> tensor<1003x{to}>
      return %y : tensor<1003x{to}>
    }}"""


def shown(text: str, stage: str, target: str = "arm-neon") -> str:
    out = hilo.inspect(text, stage, target=target)
    assert isinstance(out, str)
    return out


def assembly(text: str, target: str = "arm-neon") -> str:
    return shown(text, "asm", target)


def loops(text: str) -> list[list[str]]:
    """The innermost loops of a function in assembly: instructions from a label to the branch back to it."""
    lines = [line.strip() for line in text.splitlines()]
    found: list[list[str]] = []
    start: dict[str, int] = {}
    for i, line in enumerate(lines):
        if line.endswith(":"):
            start[line[:-1]] = i
            continue
        words = line.split()
        if words and words[0].startswith("b.") and words[-1] in start:
            body = lines[start[words[-1]] + 1 : i]
            if not any(x.endswith(":") or x.startswith(("b.", "b\t", "bl")) for x in body):
                found.append([x.split()[0] for x in body if x and x[0] not in "./"])
    return found


def machine_of(data: bytes) -> int:
    assert data[:6] == b"\x7fELF\x02\x01"
    return struct.unpack_from("<H", data, 18)[0]


# ---- what is known of machines
def test_hosts_are_recognized() -> None:
    caches = {"l1": 64 << 10, "l2": 1 << 20}
    t = described("aarch64-unknown-linux-gnu", "neoverse-n1", {"neon": True, "dotprod": True, "sve": False}, caches)
    assert (t.name, t.cpu, t.features) == ("arm-neoverse-n1", "neoverse-n1", "+dotprod,+neon,-sve")
    assert (t.vector_bytes, t.registers, t.has_fma, t.has_masks, t.l1) == (16, 32, True, False, 64 << 10)
    assert t.includes(Target.named("arm-neon"))
    old = described("aarch64-unknown-linux-gnu", "cortex-a53", {"neon": True})
    assert old.includes(Target.named("arm-neon"))
    assert not old.includes(Target.named("x86-sse2"))
    assert not Target.named("x86-avx512").includes(old)
    with pytest.raises(Error, match="riscv64"):
        described("riscv64-unknown-linux-gnu", "generic", {})


def test_code_for_others_does_not_run_here() -> None:
    if Target.host().arch == "aarch64":
        pytest.skip("this is such a machine")
    with pytest.raises(Error, match=r"cannot run code for arm-neon.*--emit object"):
        hilo.compile(product(4, 4, 4), target="arm-neon")


# ---- code, without such a machine
def batches(defs: Sequence[OpDef], parts: int) -> Iterable[Batch]:
    for i in range(parts):
        yield Batch((d, types, attrs) for d in defs[i::parts] for types, attrs in d.examples)


def test_objects_hold_code_of_all_ops() -> None:
    batch = Batch((d, *d.examples[0]) for d in DEFS if d.examples)
    data = hilo.inspect(batch.module(), "object", target="arm-neon")
    assert isinstance(data, bytes)
    assert machine_of(data) == MACHINE


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_products_are_multiply_adds_by_lanes(target: str, t: str) -> None:
    text = assembly(product(64, 96, 64, t, t), target)
    count = {"f32": "4s", "f64": "2d"}[t]
    sums = max(loops(text), key=lambda body: body.count("fmla"))
    assert sums.count("fmla") >= 12, text
    assert not {"fmul", "fadd", "dup", "str", "stp"} & set(sums), "multiply-adds alone, all sums in registers"
    loads = sum(x.startswith("ld") for x in sums)
    assert loads <= sums.count("fmla") / 3, "elements of A are lanes of registers, read together"
    assert len(sums) <= 2 * sums.count("fmla")
    assert re.search(rf"fmla\tv\d+\.{count}, v\d+\.{count}, v\d+\.{count[1]}\[1\]", text)


@pytest.mark.parametrize(("t", "how"), [("i8", "sdot"), ("ui8", "udot")])
def test_products_of_bytes(t: str, how: str) -> None:
    text = assembly(product(64, 96, 64, t, "i32"), "arm-neon-dotprod")
    assert re.search(rf"{how}\tv\d+\.4s, v\d+\.16b, v\d+\.4b\[3\]", text)
    sums = max(loops(text), key=lambda body: body.count(how))
    assert sums.count(how) >= 48
    assert not {"dup", "str", "stp", "mul", "mla"} & set(sums)
    plain = assembly(product(64, 96, 64, t, "i32"))
    assert how not in plain
    assert re.search(r"mla\tv\d+\.4s, v\d+\.4s, v\d+\.s\[2\]", plain)


def test_elementwise_code_is_vectors() -> None:
    text = assembly(unary("floor", "f32"))
    assert "frintm" in text and ".4s" in text  # noqa: PT018
    text = assembly(unary("round_nearest_even", "f64"))
    assert "frintx" in text and ".2d" in text  # noqa: PT018
    text = assembly(unary("exponential", "f32"))
    assert text.count("fmla") >= 4, "polynomials of vectors"
    assert "bl\texp" not in text, "no call of the C library"


MODULE = """
@table = private unnamed_addr constant [64 x i64] zeroinitializer, align 64
@shared = global i64 5
declare double @cbrt(double)
define ptr @inside(i64 %i) noinline {
  %p = getelementptr i64, ptr @table, i64 %i
  ret ptr %p
}
define i64 @seventh() {
  %x = load i64, ptr getelementptr (i8, ptr @table, i64 56)
  ret i64 %x
}
define ptr @through_the_table() {
  ret ptr @shared
}
define ptr @call() {
  %p = call ptr @inside(i64 9)
  ret ptr %p
}
define double @outside(double %x) {
  %y = call double @cbrt(double %x)
  %z = fmul double %y, 0.1
  ret double %z
}
"""


def read(address: int, size: int) -> int:
    return int.from_bytes(ctypes.string_at(address, size), "little")


def reached(function: int) -> list[tuple[str, int]]:
    """What the instructions of a function of AArch64 in memory reach: addresses made, loaded from, and called."""
    found: list[tuple[str, int]] = []
    page: dict[int, int] = {}
    at = function
    while (word := read(at, 4)) != 0xD65F03C0:  # ret
        if word >> 24 & 0x9F == 0x90:  # adrp
            pages = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
            page[word & 31] = (at & -4096) + ((pages ^ 1 << 20) - (1 << 20)) * 4096
        elif word >> 22 == 0x244 and word >> 5 & 31 in page:  # add, of a number
            found.append(("made", page[word >> 5 & 31] + (word >> 10 & 0xFFF)))
        elif word >> 22 in (0x3E5, 0x3F5) and word >> 5 & 31 in page:  # ldr, of 8 bytes
            found.append(("loaded", page[word >> 5 & 31] + 8 * (word >> 10 & 0xFFF)))
        elif word >> 26 == 0x25:  # bl
            found.append(("called", at + (((word & 0x3FFFFFF) ^ 1 << 25) - (1 << 25)) * 4))
        at += 4
    return found


def test_loaded_code_reaches_what_it_needs() -> None:
    target = Target.named("arm-neon")
    code = Code([compile_text(MODULE, target)], {"cbrt": 0x123456789ABC}.__getitem__, ARM)
    at = code.symbols
    ((how, table),) = reached(at["inside"])
    assert (how, table % 64) == ("made", 0)
    assert reached(at["seventh"]) == [("loaded", table + 56)]
    ((how, slot),) = reached(at["through_the_table"])
    assert how == "loaded"
    assert read(slot, 8) == at["shared"]
    assert read(at["shared"], 8) == 5
    assert reached(at["call"]) == [("called", at["inside"])]
    (called, stub), (loaded, number) = reached(at["outside"])
    assert (called, loaded) == ("called", "loaded")
    assert np.frombuffer(ctypes.string_at(number, 8), "<f8")[0] == 0.1
    assert (read(stub, 4), read(stub + 4, 4)) == (0x58000050, 0xD61F0200)  # ldr x16, 8 bytes on; br x16
    assert read(stub + 8, 8) == 0x123456789ABC


def test_what_is_out_of_reach_is_an_error() -> None:
    for form, far in (("branch", 1 << 27), ("page", 1 << 32), ("i32", 1 << 31), ("low 8", 4)):
        with pytest.raises(TooFar):
            written(("address", "", form), far, 0)
    with pytest.raises(Error, match="not an ELF object file for x86-64"):
        Code([compile_text(MODULE, Target.named("arm-neon"))], lambda _: 0, X86)


def test_c_text_is_the_same_for_all_targets() -> None:
    assert hilo.inspect(product(3, 4, 5), "c", target="arm-neon") == hilo.inspect(product(3, 4, 5), "c")


# ---- code that runs
def check_examples(batch: Batch, target: str, folder: Path) -> list[str]:
    """What is wrong with the examples of a batch."""
    folder.mkdir()
    inputs = [batch.inputs(seed) for seed in range(3)]
    results = Program(batch.module(), folder, target)(*inputs)
    return [line for arrays, got in zip(inputs, results, strict=True)
            for line in batch.differences(arrays, got, batch.expected(arrays))]  # fmt: skip


@needs_emulator
def test_examples_of_all_ops_run(tmp_path: Path) -> None:
    wrong = [x for i, b in enumerate(batches(DEFS, PARTS)) for x in check_examples(b, "arm-neon", tmp_path / str(i))]
    assert not wrong, "\n".join(wrong[:10])


SHAPES = [(1, 1, 1), (1, 37, 29), (5, 3, 1), (2, 130, 24), (6, 4, 16), (7, 5, 12), (13, 17, 43), (25, 66, 33),
          (64, 67, 48), (70, 9, 41), (3, 300, 130), (31, 0, 8)]  # fmt: skip
TYPES = [("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("f16", "f16"), ("i8", "i32"), ("ui8", "i32"), ("i16", "i32"),
         ("i64", "i64"), ("complex<f32>", "complex<f32>")]  # fmt: skip


def products(t: str, out: str, turned: tuple[bool, bool]) -> str:
    """A program of products of all `SHAPES`; `turned`: which operands lie with the other axis first."""
    params, lines, results, types = [], [], [], []
    for i, (m, k, n) in enumerate(SHAPES):
        lhs, rhs = ((k, m), (m, k))[not turned[0]], ((n, k), (k, n))[not turned[1]]
        a, b, c = (f"tensor<{x}x{y}x{e}>" for (x, y), e in ((lhs, t), (rhs, t), ((m, n), out)))
        params += [f"%a{i}: {a}", f"%b{i}: {b}"]
        axes = f"[{int(not turned[0])}] x [{int(turned[1])}]"
        lines.append(f"%c{i} = stablehlo.dot_general %a{i}, %b{i}, contracting_dims = {axes} : ({a}, {b}) -> {c}")
        results.append(f"%c{i}")
        types.append(c)
    body = "\n".join(lines)
    return (f"func.func @main({', '.join(params)}) -> ({', '.join(types)}) {{\n{body}\n"
            f"return {', '.join(results)} : {', '.join(types)} }}")  # fmt: skip


@needs_emulator
@pytest.mark.parametrize("target", TARGETS)
def test_products_of_all_shapes_and_types(target: str, tmp_path: Path) -> None:
    for number, (t, out) in enumerate(TYPES):
        if target != "arm-neon" and "i8" not in t:
            continue  # the same code
        turned = ((False, False), (True, False), (False, True))[number % 3]
        if t in ("f32", "i8"):
            turned = (False, False)
        module = hilo.parse(products(t, out, turned))
        arrays = whole_numbers(module)
        folder = tmp_path / str(number)
        folder.mkdir()
        (got,) = Program(module, folder, target)(arrays)
        for shape, g, want in zip(SHAPES, got, hilo.interpret(module, *arrays), strict=True):
            np.testing.assert_array_equal(g, want, err_msg=f"{t} {shape}")


CONVOLUTIONS = [  # lhs, rhs, result, window, groups
    ("2x14x15x3", "3x3x3x20", "2x7x15x20", "stride = [2, 1], pad = [[1, 1], [0, 2]]", 1),
    ("1x9x9x16", "3x3x16x33", "1x7x7x33", "pad = [[1, 1], [1, 1]], rhs_dilate = [2, 2]", 1),
    ("1x12x10x24", "3x3x1x24", "1x12x10x24", "pad = [[1, 1], [1, 1]]", 24),
    ("3x8x8x12", "1x1x12x16", "3x8x8x16", "", 1),
    ("1x10x7x8", "5x2x4x16", "1x6x12x16", "lhs_dilate = [1, 2]", 2),
]


def convolutions(t: str) -> str:
    params, lines, results, types = [], [], [], []
    for i, (*shapes, window, groups) in enumerate(CONVOLUTIONS):
        a, b, c = (f"tensor<{s}x{t}>" for s in shapes)
        params += [f"%a{i}: {a}", f"%b{i}: {b}"]
        lines.append(f"""%c{i} = stablehlo.convolution(%a{i}, %b{i})
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{{window}}}
          {{batch_group_count = 1 : i64, feature_group_count = {groups} : i64}} : ({a}, {b}) -> {c}""")
        results.append(f"%c{i}")
        types.append(c)
    body = "\n".join(lines)
    return (f"func.func @main({', '.join(params)}) -> ({', '.join(types)}) {{\n{body}\n"
            f"return {', '.join(results)} : {', '.join(types)} }}")  # fmt: skip


@needs_emulator
def test_convolutions(tmp_path: Path) -> None:
    module = hilo.parse(convolutions("f32"))
    arrays = whole_numbers(module)
    (got,) = Program(module, tmp_path, "arm-neon")(arrays)
    for case, g, want in zip(CONVOLUTIONS, got, hilo.interpret(module, *arrays), strict=True):
        np.testing.assert_array_equal(g, want, err_msg=str(case))


@needs_emulator
def test_examples_of_products_run_with_dot_products_of_bytes(tmp_path: Path) -> None:
    defs = [d for d in DEFS if any(word in d.name for word in ("dot", "convolution", "einsum"))]
    (batch,) = batches(defs, 1)
    wrong = check_examples(batch, "arm-neon-dotprod", tmp_path / "0")
    assert not wrong, "\n".join(wrong[:10])
