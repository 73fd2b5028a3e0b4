"""The fuzzer finds what is wrong, says where, and finds nothing in a small slice of what it makes."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

import hilo
from hilo.errors import Error
from hilo.testing import fuzz as fuzzing
from hilo.testing.attacks import ATTACKS
from hilo.testing.fuzz import Effort, Found, Worker, fuzz, nth, smaller
from hilo.testing.fuzz_seeds import FORMATS, seeds
from hilo.testing.fuzz_worker import examine, signature
from hilo.testing.mutate import joined, mutated, split

PROGRAM = b"""func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
# Attacks that take long for what they are: the command `hilo fuzz --attacks` runs them.
SLOW = ("100k ops", "30k ops", "1000 loops", "location aliases in a chain", "3000 branches", "nested loops, 20k",
        "HLO: 10k instructions", "message: 10k instructions", "message: calls, 3k deep",
        "message: calls that double, 40 deep", "message: a million empty computations",
        "3000 parameters and results", "3k adds", "3k elementwise and index-moving ops",
        "a comparator of 3000 ops", "3000 operands", "calls that double, 16 deep", "calls that double, 40 deep",
        "100k functions", "calls, 10k deep", "HLO: calls, 10k deep", "nested regions, 100k", "nested array attribute",
        "nested dictionary attribute", "nested opaque attribute", "nested function type", "nested complex type",
        "nested opaque type", "nested regions, 60", "type aliases in a chain", "aliases in a chain")  # fmt: skip


@pytest.fixture(scope="module")
def pools() -> dict[str, list[bytes]]:
    return {form: seeds(form) for form in FORMATS}


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    w = Worker()
    yield w
    w.close()


def test_a_slice_finds_nothing(pools: dict[str, list[bytes]]) -> None:
    """In this process, so that a finding is a traceback here."""
    reached: set[tuple[str, str]] = set()
    for number in range(240):
        form, data, effort = nth(7, number, pools)
        reached.add((form, examine(data, Effort(optimize=effort.optimize, run=effort.run and number % 4 == 0))))
    for form in FORMATS:
        assert {(form, "refused"), (form, "optimized")} <= reached


@pytest.mark.parametrize("name", [n for n in ATTACKS if n not in SLOW])
def test_attacks(name: str, worker: Worker) -> None:
    how, found, trace = worker.examine(ATTACKS[name](), Effort(compile=True))
    assert not found, f"{how}: {found}\n{trace}"


def test_inputs_follow_from_the_seed(pools: dict[str, list[bytes]]) -> None:
    assert [nth(3, n, pools) for n in range(9)] == [nth(3, n, pools) for n in range(9)]
    assert [nth(3, n, pools)[1] for n in range(9)] != [nth(4, n, pools)[1] for n in range(9)]


@pytest.mark.parametrize("form", FORMATS)
def test_seeds_are_valid_and_mutations_are_not_the_same(form: str, pools: dict[str, list[bytes]]) -> None:
    pool = pools[form]
    assert len(pool) > 100
    for data in pool[::40]:
        hilo.parse(data)
    r = random.Random(0)
    assert sum(mutated(r, form, pool) not in pool for _ in range(50)) > 40


def test_bytecode_is_taken_apart_and_put_together(pools: dict[str, list[bytes]]) -> None:
    for data in pools["bytecode"][::25]:
        assert joined(*split(data)) == data


def test_seeds_from_files(tmp_path: Path) -> None:
    pieces = PROGRAM, PROGRAM.replace(b"add", b"multiply"), b"x"
    (tmp_path / "two.mlir").write_bytes(b"\n// -----\n".join(pieces))
    assert len(seeds("text", tmp_path)) == len(seeds("text")) + 2
    assert len(seeds("bytecode", tmp_path)) == len(seeds("bytecode")) + 2
    with pytest.raises(Error, match="no such directory"):
        seeds("text", tmp_path / "none")


def test_formats_are_checked() -> None:
    with pytest.raises(Error, match="no format 'yaml'"):
        fuzz(1, forms=["yaml"])


# ---- findings: what a worker does that goes wrong
def go_wrong(data: bytes, effort: Effort) -> str:
    """Runs in a worker; what goes wrong is in the input."""
    if b"crash" in data:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"hang" in data:
        while True:
            pass
    if b"memory" in data:
        return str(len(b"x" * (64 << 30)))
    if b"deep" in data:
        return go_wrong(data, effort)
    if b"exit" in data:
        os._exit(3)
    if b"error" in data:
        raise KeyError(data)
    return "read"


@pytest.fixture(scope="module")
def wrong() -> Iterator[Worker]:
    w = Worker(seconds=0.5, task=go_wrong)
    yield w
    w.close()


@pytest.mark.parametrize(("data", "said"), [
    (b"crash", "ended by signal 11"),
    (b"hang", "hang"),
    (b"memory", "MemoryError"),
    (b"deep", "RecursionError"),
    (b"exit", "ended with 3"),
    (b"error", "KeyError"),
])  # fmt: skip
def test_what_goes_wrong_is_told_and_the_next_input_is_taken(data: bytes, said: str, wrong: Worker) -> None:
    how, found, _ = wrong.examine(data, Effort())
    assert how == "failed"
    assert found.startswith(said)
    assert wrong.examine(b"fine", Effort()) == ("read", "", "")


def test_findings_are_made_small(wrong: Worker) -> None:
    data = b"one two\nthree error, four\nfive"
    found = Found("text", 0, wrong.examine(data, Effort())[1], "", data, Effort())
    assert smaller(wrong, found) == b"error"


def test_a_run_counts_and_tells_of_a_finding_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "seeds", lambda form, corpus: [b"error error error", b"fine"])
    monkeypatch.setattr(fuzzing, "Worker", lambda limit, memory: Worker(limit, memory, go_wrong))
    told: list[Found] = []
    tally = fuzz(30, 0, ["text", "hlo"], count=20, tell=lambda _, found: told.extend([found] if found else []))
    assert sum(tally.counts.values()) == 20
    assert tally.inputs("text") == tally.inputs("hlo") == 10
    assert [f.form for f in told] == [f.form for f in tally.found]
    assert sorted(f.form for f in told) == ["hlo", "text"]
    assert all(f.data == b"error" for f in told)
    assert tally.counts["text", "failed"] > 1


def test_exceptions_are_named_by_their_place() -> None:
    with pytest.raises(Error) as raised:
        hilo.parse("func.func @f() { x }")
    assert signature(raised.value).startswith("Error in cursor.py:") or ".py:" in signature(raised.value)


def test_what_is_printed_wrong_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    from hilo.formats import mlir_text

    printed = mlir_text.print_module
    names = cycle(("add", "multiply", "subtract"))
    monkeypatch.setattr(mlir_text, "print_module", lambda m: printed(m).replace("add", next(names)))
    with pytest.raises(AssertionError, match="the text changes when it is read and written"):
        examine(PROGRAM, Effort(optimize=False))
