"""Programs kept whole in the cache: when they are, when they are not, and that they are the same."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hilo
from hilo import kept
from hilo.custom_calls.registry import unregister
from hilo.options import Options
from hilo.runtime.image import Image

TEXT = """
func.func @main(%x: tensor<3x4xf32>, %y: tensor<3xbf16>) -> (tensor<3x4xf32>, tensor<3xbf16>) {
  %c = stablehlo.constant dense<[1.5, -2.0, 0.25]> : tensor<3xbf16>
  %0 = stablehlo.exponential %x : tensor<3x4xf32>
  %1 = stablehlo.multiply %y, %c : tensor<3xbf16>
  return %0, %1 : tensor<3x4xf32>, tensor<3xbf16>
}
"""


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(cache_dir=str(tmp_path), cache_programs=True)


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was parsed: what came whole from the cache was not."""
    import hilo.formats

    seen: list[Any] = []
    real = hilo.formats.parse
    monkeypatch.setattr(hilo.formats, "parse", lambda text, *more: [seen.append(text), real(text)][1])
    return seen


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.linspace(-1, 2, 12, dtype="f4").reshape(3, 4), np.array([1, -0.0, np.inf], ml_dtypes.bfloat16)


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return all(x.dtype == y.dtype and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True))


def test_a_program_is_compiled_once(options: Options, parses: list[Any]) -> None:
    first = hilo.compile(TEXT, options=options)
    assert len(parses) == 1
    for text in (TEXT, TEXT.encode()):
        again = hilo.compile(text, options=options, threads=1)
        assert len(parses) == 1
        assert (again.name, again.arg_types, again.result_types) == ("main", first.arg_types, first.result_types)
        assert again.cost == first.cost
        assert again.num_threads == 1
        assert same(again(*arrays()), first(*arrays()))
        with pytest.raises(hilo.Error):
            again(arrays()[0])


def test_texts_and_memory_are_made_when_asked_for(options: Options, parses: list[Any]) -> None:
    first = hilo.compile(TEXT, options=options)
    again = hilo.compile(TEXT, options=options)
    assert len(parses) == 1
    assert again.text("fuse") == first.text("fuse")
    assert again.memory() == first.memory()
    assert again.memory().details() == first.memory().details()
    assert len(parses) == 2


def test_large_constants_and_tables_are_aligned(options: Options) -> None:
    text = """func.func @main(%x: tensor<64x7xf32>) -> tensor<64x7xf32> {
      %c = stablehlo.iota dim = 1 : tensor<64x64xf32>
      %0 = stablehlo.dot_general %c, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x7xf32>)
        -> tensor<64x7xf32>
      return %0 : tensor<64x7xf32>
    }"""
    x = np.random.default_rng(1).normal(size=(64, 7)).astype("f4")
    first, again = (hilo.compile(text, options=options)(x) for _ in range(2))
    assert same(first, again)


def test_whatever_code_depends_on_makes_another_program(options: Options, parses: list[Any],
                                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    hilo.compile(TEXT, options=options)
    hilo.compile(TEXT + "\n", options=options)
    hilo.compile(TEXT, options=options, donate=(0,))
    hilo.compile(TEXT, options=options, target="scalar")
    hilo.compile(TEXT, options=options.replace(fuse=False))
    assert len(parses) == 5
    monkeypatch.setattr(kept, "own_files", lambda: "other")
    hilo.compile(TEXT, options=options)
    assert len(parses) == 6
    hilo.compile(TEXT, options=options)
    assert len(parses) == 6


def test_no_program_is_kept_while_somebody_looks(options: Options, parses: list[Any], tmp_path: Path) -> None:
    for changes in ({"cache": False}, {"cache_programs": False}, {"verify": True}, {"profile": True},
                    {"dump": str(tmp_path / "dump")}):  # fmt: skip
        for _ in range(2):
            hilo.compile(TEXT, options=options.replace(**changes))
    assert len(parses) == 10


def test_run_time_sizes_and_bound_arguments_are_compiled_each_time(options: Options, parses: list[Any]) -> None:
    text = "func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"
    for _ in range(2):
        assert hilo.compile(text, options=options)(np.ones(3, "f4"))[0].shape == (3,)
        hilo.compile(text, options=options, shapes={0: (2,)})
    one = "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }"
    values = [hilo.compile(one, options=options, constants={0: np.float32(v)})()[0] for v in (1, 2)]
    assert values == [1, 2]


def test_custom_calls_run_what_is_registered_now(options: Options) -> None:
    text = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @kept.test(%x) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }"""
    try:
        for factor in (2, 3):
            hilo.register_custom_call("kept.test", partial(np.multiply, np.float32(factor)))
            assert hilo.compile(text, options=options)(np.ones(2, "f4"))[0].tolist() == [factor, factor]
    finally:
        unregister("kept.test")
    with pytest.raises(hilo.Error, match=r"kept\.test"):
        hilo.compile(text, options=options)


@pytest.mark.parametrize("data", [b"", b"no pickle", b"\x80\x05N.", b"\x80\x05}."])
def test_bad_entries_are_compiled_anew(options: Options, parses: list[Any], data: bytes,
                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    assert Image.read(data) is None
    with monkeypatch.context() as m:
        m.setattr(Image, "data", lambda self: data)
        hilo.compile(TEXT, options=options)
    good = hilo.compile(TEXT, options=options)
    assert len(parses) == 2
    assert same(hilo.compile(TEXT, options=options)(*arrays()), good(*arrays()))
    assert len(parses) == 2


def test_code_that_cannot_be_loaded_is_made_anew(options: Options, parses: list[Any],
                                                 monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    with monkeypatch.context() as m:
        m.setattr(Image, "data", _without_code(Image.data))
        hilo.compile(TEXT, options=options)
    hilo.compile(TEXT, options=options)(*arrays())
    assert len(parses) == 2


def _without_code(real: Any) -> Any:
    def data(self: Image) -> bytes:
        self.objects = [b"\x7fELF"]
        return real(self)

    return data


def test_errors_are_those_of_compiling(options: Options) -> None:
    for _ in range(2):
        with pytest.raises(hilo.Error, match="no function @f"):
            hilo.compile(TEXT, options=options, entry="f")
        with pytest.raises(hilo.Error, match="donate"):
            hilo.compile(TEXT, options=options, donate=("0",))  # type: ignore[arg-type]
        with pytest.raises(hilo.Error, match="threads"):
            hilo.compile(TEXT, options=options, threads=0 - 1)
        with pytest.raises(hilo.Error):
            hilo.compile("func.func \udc80", options=options)


def test_the_command_run_takes_programs_from_the_cache(tmp_path: Path, parses: list[Any]) -> None:
    from click.testing import CliRunner

    from hilo.cli import main

    (tmp_path / "p.mlir").write_text(TEXT)
    arguments = ["run", str(tmp_path / "p.mlir"), "--random", "0"]
    variables = {"HILO_CACHE": "1", "HILO_CACHE_PROGRAMS": "1", "HILO_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (CliRunner().invoke(main, arguments, env=variables) for _ in range(2))
    assert first.exit_code == second.exit_code == 0, first.output + second.output
    assert first.output == second.output
    assert len(parses) == 1
