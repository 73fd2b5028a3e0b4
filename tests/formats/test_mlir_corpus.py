# ruff: noqa: E501  (programs are quoted as they are printed)
"""Real programs: a sample of StableHLO's test data and the benchmark programs parse, print and parse to the same structure."""

from __future__ import annotations

import lzma
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hilo.errors import Unsupported
from hilo.formats.mlir_text import parse, parse_pieces, print_module
from hilo.ir.module import Module

SHARED = Path(os.environ.get("HILO_SHARED") or Path(__file__).resolve().parents[2].parent / "shared")
CORPUS = SHARED / "conformance" / "stablehlo-dev.tar.xz"
BENCH = SHARED / "bench"
EVERY = 12


def sample() -> Iterator[tuple[str, str]]:
    with lzma.open(CORPUS) as packed, tarfile.open(fileobj=packed, mode="r|") as files:  # type: ignore[arg-type]
        for i, item in enumerate(files):
            content = files.extractfile(item) if item.isfile() and item.name.endswith(".mlir") and i % EVERY == 0 else None
            if content is not None:
                yield item.name, content.read().decode()


def same(a: Module, b: Module) -> bool:
    def rest(m: Module) -> object:
        return m.name, m.attrs, [(f.name, f.visibility, f.attrs, f.arg_attrs, f.result_attrs) for f in m.functions.values()]

    return list(a.functions.values()) == list(b.functions.values()) and rest(a) == rest(b)


@pytest.mark.usefixtures("every_op")
@pytest.mark.skipif(not CORPUS.is_file(), reason="no corpus: HILO_SHARED does not lead to conformance/stablehlo-dev.tar.xz")
def test_a_sample_of_the_corpus_round_trips(capsys: pytest.CaptureFixture[str]) -> None:
    count, unsupported = 0, []
    for name, text in sample():
        if "interpreter." in text or "quantized" in name:
            continue
        try:
            modules = parse_pieces(text, name)
        except Unsupported as e:
            unsupported.append(str(e))
            continue
        for m in modules:
            assert same(parse(print_module(m), name), m), name
            located = print_module(m, locations=True)
            assert print_module(parse(located), locations=True) == located
        count += 1
    with capsys.disabled():
        print(f" [{count} corpus files parse and round-trip, {len(unsupported)} unsupported]", end="")
    assert count > 100
    assert not unsupported


@pytest.mark.usefixtures("every_op")
@pytest.mark.skipif(not BENCH.is_dir(), reason="no benchmark programs: HILO_SHARED does not lead to bench/")
def test_benchmark_programs_round_trip() -> None:
    files = sorted(BENCH.glob("*.mlir"))
    assert files
    for file in files:
        m = parse(file.read_bytes(), file.name)
        assert same(parse(print_module(m)), m), file.name


@pytest.mark.usefixtures("every_op")
@pytest.mark.skipif(not BENCH.is_dir(), reason="no benchmark programs: HILO_SHARED does not lead to bench/")
def test_mlir_itself_reads_what_is_printed() -> None:
    ir = pytest.importorskip("jaxlib.mlir.ir", reason="jaxlib, whose MLIR parser is the judge, is not installed")
    from jax._src.interpreters import mlir  # type: ignore[import-not-found]

    with mlir.make_ir_context():
        for file in sorted(BENCH.glob("*.mlir")):
            text = file.read_text()
            assert str(ir.Module.parse(print_module(parse(text)))) == str(ir.Module.parse(text)), file.name
