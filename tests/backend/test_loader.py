"""Object files are loaded by hilo itself: what they call in each other and in the process, constants, damage."""

from __future__ import annotations

import ctypes
import random
from contextlib import suppress

import pytest

from hilo.backend.cpu import compile as compile_text
from hilo.backend.jit import address_in_process, load
from hilo.backend.loader import Code
from hilo.backend.relocations import MACHINES
from hilo.backend.target import Target
from hilo.errors import Error

HOST = Target.host()
MACHINE = MACHINES[HOST.arch]
ONE = compile_text("""
@table = private unnamed_addr constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 64
@shared = global i64 5
@pointer = global ptr @shared
declare i64 @twice(i64)
declare double @cbrt(double)
define i64 @pick(i64 %i) {
  %p = getelementptr i64, ptr @table, i64 %i
  %x = load i64, ptr %p
  %y = call i64 @twice(i64 %x)
  %q = load ptr, ptr @pointer
  %z = load i64, ptr %q
  %s = add i64 %y, %z
  ret i64 %s
}
define double @root(double %x) {
  %y = call double @cbrt(double %x)
  %z = fmul double %y, 0.1
  ret double %z
}
""", HOST)  # fmt: skip
TWO = compile_text("""
@shared = external global i64
define i64 @twice(i64 %x) {
  %y = mul i64 %x, 2
  %s = load i64, ptr @shared
  %t = add i64 %s, 1
  store i64 %t, ptr @shared
  ret i64 %y
}
""", HOST)  # fmt: skip


def test_files_see_each_other_and_the_process() -> None:
    code = load([ONE, TWO], ["pick", "root"])
    pick = code.function("pick", ctypes.c_int64, restype=ctypes.c_int64)
    assert [pick(i) for i in range(4)] == [26, 47, 68, 89]  # `shared` goes up with each call
    root = code.function("root", ctypes.c_double, restype=ctypes.c_double)
    assert root(27.0) == pytest.approx(0.3)


def test_helpers_of_kernels_are_private_and_stand_in_files_of_their_own() -> None:
    helper = compile_text("define internal i64 @twice(i64 %x) noinline { %y = mul i64 %x, 2\n ret i64 %y }", HOST)
    user = compile_text("""
declare i64 @twice(i64)
define i64 @f(i64 %x) {
  %y = call i64 @twice(i64 %x)
  ret i64 %y
}""", HOST)  # fmt: skip
    for files in ([helper, user], [user, helper]):
        f = load(files, ["f"]).function("f", ctypes.c_int64, restype=ctypes.c_int64)
        assert f(21) == 42


def test_what_nobody_has_is_an_error() -> None:
    with pytest.raises(Error, match="needs symbols that this process does not have: twice"):
        load([ONE], ["pick"])
    with pytest.raises(Error, match="has no symbol 'nothing'"):
        load([ONE, TWO], ["nothing"])


def test_damaged_files_are_errors_or_load() -> None:
    rng = random.Random(0)
    for n in range(0, len(ONE), 7):
        with pytest.raises(Error):
            Code([ONE[:n]], address_in_process, MACHINE)
    for _ in range(400):
        data = bytearray(ONE)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(Error):
            Code([bytes(data), TWO], lambda symbol: 0, MACHINE)
