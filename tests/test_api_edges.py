"""The public face takes anything and answers with a result or one `Error`."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hilo
from hilo.runtime.executable import Executable

SAME = "func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> { return %a : tensor<2x3xf32> }"
ANY = "func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> { return %a : tensor<?x3xf32> }"
GOOD = np.arange(6, dtype=np.float32).reshape(2, 3)


class Raises:
    """An object whose way to become an array fails."""

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("no array\nin two lines")


class Capsule:
    """DLPack with a capsule that is none."""

    def __init__(self, capsule: Any, device: Any = (1, 0)) -> None:
        self.capsule, self.device = capsule, device

    def __dlpack__(self, *_: Any, **__: Any) -> Any:
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return self.device


class Interface:
    def __init__(self, interface: Any) -> None:
        self.__array_interface__ = interface


VALUES: dict[str, Any] = {
    "None": None,
    "an object": object(),
    "a text": "x",
    "bytes": b"abc",
    "a ragged list": [[1], [2, 3]],
    "a dict": {},
    "a class": Raises,
    "a number": 3,
    "a huge number": 10**30,
    "NaN": float("nan"),
    "a generator": (x for x in ()),
    "f64": GOOD.astype("f8"),
    "big-endian": GOOD.astype(">f4"),
    "integers": GOOD.astype("i4"),
    "booleans": GOOD > 1,
    "complex": GOOD.astype("c8"),
    "bf16": GOOD.astype(ml_dtypes.bfloat16),
    "objects": GOOD.astype(object),
    "strings": np.zeros((2, 3), "U4"),
    "records": np.zeros((2, 3), "i4,i4"),
    "dates": np.zeros((2, 3), "M8[s]"),
    "transposed": GOOD.T,
    "reversed": GOOD[::-1],
    "rank 0": np.float32(1),
    "rank 9": np.zeros((1,) * 9, "f4"),
    "no rows": np.zeros((0, 3), "f4"),
    "masked": np.ma.masked_array(GOOD, GOOD > 2),
    "a view of memory": memoryview(GOOD.tobytes()),
    "fails": Raises(),
    "DLPack that fails": Capsule(RuntimeError("no")),
    "DLPack that is none": Capsule(7),
    "DLPack of another device": Capsule(None, (2, 0)),
    "DLPack of no device": Capsule(None, "x"),
    "an interface at address 0": Interface({"shape": (2, 3), "typestr": "<f4", "data": (0, False), "version": 3}),
    "an interface of negative size": Interface({"shape": (2, -3), "typestr": "<f4", "data": (16, False), "version": 3}),
    "an interface that is none": Interface("x"),
}

PLACES: dict[str, Callable[[Executable, Any], Any]] = {
    "an argument": lambda f, x: f(x),
    "an argument that is given up": lambda f, x: f.consume([x]),
    "an interpreter's argument": lambda f, x: hilo.interpret(SAME, x),
    "a program": lambda f, x: hilo.compile(x),
    "what is parsed": lambda f, x: hilo.parse(x),
    "a path": lambda f, x: hilo.load(x),
    "an entry": lambda f, x: hilo.compile(SAME, entry=x),
    "an interpreter's entry": lambda f, x: hilo.interpret(SAME, GOOD, entry=x),
    "a target": lambda f, x: hilo.compile(SAME, target=x),
    "threads": lambda f, x: hilo.compile(SAME, threads=x),
    "constants": lambda f, x: hilo.compile(SAME, constants=x),
    "a constant": lambda f, x: hilo.compile(SAME, constants={0: x}),
    "shapes": lambda f, x: hilo.compile(ANY, shapes=x),
    "a shape": lambda f, x: hilo.compile(ANY, shapes={0: x}),
    "options": lambda f, x: hilo.compile(SAME, options=x),
}


@pytest.fixture(scope="module")
def same() -> Executable:
    return hilo.compile(SAME)


@pytest.mark.parametrize("place", PLACES)
def test_anything_is_a_result_or_an_error(place: str, same: Executable) -> None:
    for what, value in VALUES.items():
        try:
            with suppress(hilo.Error):
                PLACES[place](same, value)
        except Exception as e:
            raise AssertionError(f"{what} as {place}: {type(e).__name__}: {e}") from e


@pytest.mark.parametrize("value", [
    GOOD[::-1],
    np.zeros((4, 6), np.float32)[::2, ::2],
    np.broadcast_to(np.float32(1), (2, 3)),
    np.frombuffer(b"x" + GOOD.tobytes(), np.uint8)[1:].view(np.float32).reshape(2, 3),
    np.asfortranarray(GOOD),
])  # fmt: skip
def test_any_strides_and_alignment_will_do(value: np.ndarray, same: Executable) -> None:
    (out,) = same(value)
    assert np.array_equal(out, value)


def test_what_does_not_fit_into_memory_is_an_error() -> None:
    t = "tensor<99999999999999xf32>"
    huge = f"func.func @main() -> {t} {{\n%0 = stablehlo.iota dim = 0 : {t}\nreturn %0 : {t}\n}}"
    with pytest.raises(hilo.Error, match="not enough memory"):
        hilo.compile(huge)()
    with pytest.raises(hilo.Error, match="not enough memory"):
        hilo.interpret(huge)


def test_what_does_not_fit_into_any_memory_is_not_compiled() -> None:
    t = "tensor<9999999999x9999999999xf32>"
    with pytest.raises(hilo.Error, match="larger than any memory"):
        hilo.compile(f"func.func @main() -> {t} {{\n%0 = stablehlo.iota dim = 0 : {t}\nreturn %0 : {t}\n}}")


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: hilo.compile(SAME, host=5), "host should be a HostQueues, not int"),
    (lambda: hilo.interpret(SAME, GOOD, host=[hilo.HostQueues()]), "host should be a HostQueues, not list"),
    (lambda: hilo.interpret(SAME, GOOD, probes="probes"), "probes should be a Probes, not str"),
    (lambda: hilo.interpret_parallel(SAME, None), "inputs should be a list of arguments for each process"),
    (lambda: hilo.interpret_parallel(SAME, [None]), "inputs should be a list of arguments for each process"),
    (lambda: hilo.interpret_parallel(SAME, {0: [GOOD]}), "inputs should be a list of arguments for each process"),
    (lambda: hilo.interpret_parallel(SAME, [[GOOD]], entry=5), "entry should be the name of a function, or one for"),
    (lambda: hilo.interpret_parallel(SAME, [[GOOD]], entry=[[]]), r"no function @\[\]; there are @main"),
    (lambda: hilo.interpret_parallel(SAME, [[GOOD]], host=5), "host should be a HostQueues, or one for each process"),
    (lambda: hilo.interpret_parallel(SAME, [[GOOD]], host=[5]), "or one for each process, not int"),
    (lambda: hilo.interpret_parallel(SAME, [[GOOD]], probes=5), "probes should be a Probes, not int"),
    (lambda: hilo.HostQueues(timeout="long"), "a timeout must be a number of seconds, not 'long'"),
    (lambda: hilo.HostQueues().put_channel([], GOOD), r"a channel is a number, not \[\]"),
    (lambda: hilo.HostQueues().take_channel("a"), "a channel is a number, not 'a'"),
    (lambda: hilo.HostQueues().put_infeed(GOOD, config=5), "the config of an infeed or outfeed is a text, not 5"),
    (lambda: hilo.Probes(5), "the directory of probes is a text or a Path, not 5"),
    (lambda: hilo.load("a\0b"), "cannot read the file: embedded null byte"),
    (lambda: hilo.register_custom_call("t.bad", 5), "custom call target 't.bad': 5 cannot be called"),
    (lambda: hilo.register_custom_call("t.bad", 5, convention="c"), "custom call target 't.bad': 5 is no address"),
    (lambda: hilo.register_custom_call("t.bad", 1 << 70, convention="c"), "is no address"),
    (lambda: hilo.register_ffi_type("t.bad", 5), "5 is no address"),
    (lambda: hilo.compile(SAME).consume((GOOD,)), "consume takes a list of arrays, which it empties, not a tuple"),
    (lambda: hilo.compile(SAME, options=hilo.Options(dump="a\0b")), "cannot write .*embedded null byte"),
    (lambda: pickle.dumps(hilo.compile(SAME)), "cannot be pickled: keep the program"),
]


@pytest.mark.parametrize(("call", "what"), WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_wrong_arguments_are_one_error(call: Callable[[], Any], what: str) -> None:
    with pytest.raises(hilo.Error, match=what):
        call()


def test_a_copy_of_an_executable_is_itself() -> None:
    f = hilo.compile(SAME)
    assert copy.copy(f) is f
    assert copy.deepcopy([f])[0] is f


OWN = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<2xf32>) {
  %y = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>
  %c = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %x, %y, %x, %c : tensor<4xf32>, tensor<2x2xf32>, tensor<4xf32>, tensor<2xf32>
}"""


@pytest.mark.parametrize(
    "run",
    [hilo.interpret, lambda p, x: hilo.compile(p)(x), lambda p, x: hilo.interpret_parallel(p, [[x]])[0]],
    ids=["interpreted", "compiled", "parallel"],
)
def test_results_are_arrays_of_their_own(run: Callable[..., list[np.ndarray]]) -> None:
    module, x = hilo.parse(OWN), np.arange(4, dtype=np.float32)
    for _ in range(2):  # what was written to the first results is nowhere in the second
        results = run(module, x)
        assert [r.tolist() for r in results] == [[0, 1, 2, 3], [[0, 1], [2, 3]], [0, 1, 2, 3], [1, 2]]
        for r in results:
            r += 7
    assert x.tolist() == [0, 1, 2, 3]
