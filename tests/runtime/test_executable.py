"""The public object around a program."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from hilo.errors import Error
from hilo.ir.dtypes import f32
from hilo.ir.types import TensorType
from hilo.runtime.executable import Executable

V8 = (np.dtype(np.float32), (8,))
T8 = TensorType(f32, (8,))
X = np.arange(8, dtype=np.float32)


class Code:
    pass


def test_executable(program):
    code = Code()
    released = weakref.ref(code)
    texts = {"import": "func.func @main", "llvm": "define i32 @entry"}
    executable = Executable(
        program("add8", [V8, V8], [V8], threads=2), name="main", arg_types=[T8, T8], result_types=[T8],
        memory="report", texts=texts.__getitem__, cost=(8, 96), keep=(code,),
    )  # fmt: skip
    del code
    assert [o.tolist() for o in executable(X, X)] == [(2 * X).tolist()]
    assert repr(executable) == "<Executable main(f32[8], f32[8]) -> (f32[8])>"
    assert executable.num_threads == 2
    assert executable.text("llvm") == "define i32 @entry"
    assert executable.memory() == "report"
    assert executable.cost == (8, 96)
    assert executable.arg_types == (T8, T8)
    assert executable.result_types == (T8,)
    with pytest.raises(Error, match="takes 2 arguments, got 1"):
        executable(X)
    assert released() is not None
    del executable
    gc.collect()
    assert released() is None


def test_donation_through_an_executable(program):
    donating = program("increment8", [V8], [V8], aliases=[(0, 0)])
    executable = Executable(donating, name="main", arg_types=[T8], result_types=[T8])
    state = executable(X)
    address = state[0].ctypes.data
    state = executable.consume(state)
    assert state[0].ctypes.data == address
    assert state[0].tolist() == (X + 2).tolist()
    assert X.tolist() == list(range(8))
