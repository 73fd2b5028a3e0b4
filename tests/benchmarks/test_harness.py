"""The benchmarks' harness: what is kept of peers, processes that fail or hang, and how a row is measured."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import kept, server
from benchmarks.kept import Kept
from benchmarks.modules import Case, cases
from benchmarks.report import format_row, ratio, summary, table
from benchmarks.server import Failed, Peer, Server, reason
from benchmarks.timing import difference, measure, started

CASE = Case("one", "module {}", (), 0, 0)
OTHER = Case("two", "module { }", (), 0, 0)

ANSWER = """
import json, sys
for line in sys.stdin:
    command = json.loads(line)
    print(json.dumps({answer}), flush=True)
"""
BUILT = ANSWER.format(answer="{'value': None}")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "kept"))
    return tmp_path / "kept"


def fake(code: str, peer: str = "iree", **options: float) -> Server:
    """A peer whose process runs a few lines instead."""
    s = Server(peer, 2, **options)  # pyright: ignore[reportArgumentType]
    s.command = [sys.executable, "-S", "-c", code]
    return s


# ---- what is kept


def test_a_module_is_built_once() -> None:
    built: list[str] = []

    def build(what: str) -> Callable[[], bytes]:
        return lambda: built.append(what) or what.encode()

    assert Kept("iree", 2).module("text", build("a")) == b"a"
    assert Kept("iree", 1).module("text", build("b")) == b"a"  # threads are no part of the code
    assert Kept("iree", 2).module("another text", build("c")) == b"c"
    assert built == ["a", "c"]


def test_a_build_that_fails_keeps_nothing() -> None:
    def build() -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Kept("iree", 2).module("text", build)
    assert Kept("iree", 2).module("text", lambda: b"") == b""
    assert Kept("iree", 2).module("text", build) == b""  # empty, but kept


@pytest.mark.parametrize("what", ["flags", "version", "machine", "folder"])
def test_other_circumstances_build_anew(what: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Kept("iree", 2).module("text", lambda: b"old")
    Kept("iree", 2).refuse("text", "cannot")
    if what == "flags":
        monkeypatch.setattr(kept, "IREE_FLAGS", ["-O0"])
    elif what == "version":
        monkeypatch.setattr(kept, "_version", lambda package: f"{package}-99")
    elif what == "machine":
        monkeypatch.setattr(kept, "_machine", lambda: {"cpu": "another"})
    else:
        monkeypatch.setenv(kept.FOLDER, str(tmp_path / "elsewhere"))
    assert Kept("iree", 2).refusal("text") == ""
    assert Kept("iree", 2).module("text", lambda: b"new") == b"new"


def test_refusals_belong_to_peer_text_and_threads() -> None:
    Kept("iree", 2).refuse("text", "cannot")
    assert Kept("iree", 2).refusal("text") == "cannot"
    others = [Kept("iree", 2).refusal("text "), Kept("iree", 1).refusal("text"), Kept("inductor", 2).refusal("text")]
    assert others == ["", "", ""]
    Kept("iree", 2).refuse("text", "")
    assert Kept("iree", 2).refusal("text") == ""


def test_other_programs_are_tried_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    Kept("inductor", 2).refuse("text", "cannot")
    monkeypatch.setattr(kept, "_programs", lambda: "edited")
    assert Kept("inductor", 2).refusal("text") == ""


def test_the_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    assert kept.folder() == str(folder)
    assert kept.inductor_folder(1) != kept.inductor_folder(2)
    monkeypatch.delenv(kept.FOLDER)
    monkeypatch.setenv("XDG_CACHE_HOME", "/a")
    assert kept.folder() == "/a/hilo-benchmarks"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert kept.folder().endswith("/.cache/hilo-benchmarks")


# ---- processes


def failure(s: Server, case: Case = CASE) -> str:
    try:
        with pytest.raises(Failed) as caught:
            s.load(case)
        return str(caught.value)
    finally:
        s.close()


def test_a_failure_is_remembered_until_it_is_retried() -> None:
    assert failure(fake(ANSWER.format(answer="{'failed': 'no such op'}"))) == "no such op"
    assert failure(fake("must not even start")) == "no such op"
    works = fake(BUILT, retry=True)
    assert not works.load(CASE)
    works.close()
    works = fake(BUILT)
    assert not works.load(CASE)
    works.close()


def test_what_a_peer_cannot_express_is_not_remembered() -> None:
    assert failure(fake(ANSWER.format(answer="{'failed': ''}"))) == ""
    works = fake(BUILT)
    works.load(CASE)
    works.close()


def test_peers_that_compile_quickly_are_asked_again() -> None:
    assert failure(fake(ANSWER.format(answer="{'failed': 'broken'}"), "xla")) == "broken"
    works = fake(BUILT, "xla")
    works.load(CASE)
    works.close()


def test_a_process_that_dies_says_how_and_is_started_anew(tmp_path: Path) -> None:
    once = f"import os, pathlib\np = pathlib.Path({str(tmp_path / 'died')!r})\n"
    s = fake(once + "if not p.exists():\n p.touch()\n os.kill(os.getpid(), 11)\n" + BUILT)
    with pytest.raises(Failed, match="build: the process ended, SIGSEGV"):
        s.load(CASE)
    with pytest.raises(Failed, match="SIGSEGV"):
        s.load(CASE)
    assert not s.load(OTHER)
    s.close()
    assert failure(fake("raise SystemExit(3)"), OTHER).endswith("status 3")


def test_a_process_that_hangs_is_ended() -> None:
    s = fake("import time\ntime.sleep(60)", limit=0.2)
    with pytest.raises(Failed, match="build: no answer within"):
        s.load(CASE)
    assert s.process is None
    assert "no answer" in failure(fake("must not even start"))


def test_reasons_are_one_line() -> None:
    assert reason(ValueError("first\nsecond")) == "ValueError: first"
    assert reason(ValueError()) == "ValueError: "
    assert reason(RuntimeError("Error invoking\nx:3:1: error: no op\n")) == "RuntimeError: x:3:1: error: no op"


# ---- calls


class Clock:
    """Time that passes only by calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float]) -> None:
        self.now, self.count, self.seconds = 0.0, 0, seconds
        monkeypatch.setattr(server.time, "perf_counter", lambda: self.now)
        monkeypatch.setattr(server.time, "sleep", lambda s: None)

    def __call__(self) -> None:
        self.now += self.seconds(self.count)
        self.count += 1


def loaded(clock: Clock) -> Peer:
    peer = Peer("hilo", 2)
    peer.call = clock
    return peer


def test_a_cold_first_call_does_not_shorten_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = loaded(Clock(monkeypatch, lambda n: 0.01 if n < 3 else 1e-4))
    assert peer.first_calls() is False
    assert peer.repeat == pytest.approx(server.ROUND / 1e-4, abs=1)
    assert peer.time() == pytest.approx(1e-4)


@pytest.mark.parametrize(("seconds", "first", "each"), [(0.05, 2, 2), (1.0, 2, 1), (6.0, 1, 0)])
def test_long_calls_are_few(monkeypatch: pytest.MonkeyPatch, seconds: float, first: int, each: int) -> None:
    clock = Clock(monkeypatch, lambda n: seconds)
    peer = loaded(clock)
    assert peer.first_calls() is (seconds > server.SLOW)
    assert clock.count == first
    assert peer.time() == pytest.approx(seconds)
    assert clock.count == first + each


# ---- rows


class Turn(Server):
    """A peer without a process, which notes when it is asked."""

    def __init__(
        self, name: str, log: list[str], seconds: float = 1e-3, why: str | None = None, last: int = 99
    ) -> None:
        self.name, self.log, self.seconds, self.why, self.last = name, log, seconds, why, last

    def load(self, case: Case) -> bool:
        if self.why is not None:
            raise Failed(self.why)
        return self.seconds > server.SLOW

    def time(self) -> float:
        self.log.append(self.name)
        if self.log.count(self.name) > self.last:
            raise Failed("time: the process ended, SIGKILL")
        return self.seconds

    def results(self) -> list[np.ndarray]:
        return [np.ones(3)]


def order(seed: int, case: Case = CASE) -> list[str]:
    log: list[str] = []
    measure(case, {p: Turn(p, log) for p in ("hilo", "xla", "torch", "limit")}, 6, seed=seed)
    return log


def test_each_round_has_an_order_of_its_own() -> None:
    log = order(0)
    rounds = [tuple(log[i : i + 4]) for i in range(0, 24, 4)]
    assert all(sorted(r) == ["hilo", "limit", "torch", "xla"] for r in rounds)
    assert len(set(rounds)) > 2
    assert order(0) == log
    assert order(1) != log
    assert order(0, OTHER) != log


def test_a_row_says_what_failed() -> None:
    log: list[str] = []
    peers = {
        "hilo": Turn("hilo", log),
        "hilo-bound": Turn("hilo-bound", log, why=""),
        "iree": Turn("iree", log, why="cannot"),
        "xla": Turn("xla", log, last=1),
        "torch": Turn("torch", log, seconds=7.0),
    }
    row = measure(CASE, peers, 5)
    assert row["hilo"] == pytest.approx(1.0)
    assert (row["iree_error"], row["xla_error"]) == ("cannot", "time: the process ended, SIGKILL")
    assert not {"iree", "xla", "xla_difference", "hilo-bound", "hilo-bound_error"} & row.keys()
    assert row["torch_once"]
    assert row["torch_difference"] == 0
    assert log.count("xla") == 2  # it is not asked again
    line = format_row(row, list(peers))
    assert "iree: cannot" in line
    assert "torch 7000.0000 ms (one call) = 7000.00x" in line
    assert "one call" in table([row], list(peers))


def test_slow_peers_have_fewer_rounds() -> None:
    log: list[str] = []
    measure(CASE, {"hilo": Turn("hilo", log), "iree": Turn("iree", log, seconds=4.0)}, 9)
    assert (log.count("hilo"), log.count("iree")) == (9, 3)


def test_differences() -> None:
    nan, one = np.array([np.nan, 2.0]), np.array([1.0, 2.0])
    assert difference([nan], [nan]) == 0
    assert difference([one], [np.array([1.0, 4.0])]) == 0.5
    assert difference([nan], [one]) == difference([one], [nan]) == np.inf
    assert difference([one], [one.reshape(1, 2)]) == difference([one], []) == np.inf
    assert difference([np.zeros((0, 3))], [np.zeros((0, 3))]) == 0
    assert ratio({"hilo": 1.0, "xla": 2.0, "xla_difference": np.inf}, "xla") is None


def test_a_module_in_real_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    monkeypatch.chdir(root)
    (case,) = cases(["matmul_37x511x129"])
    with started(["hilo", "hilo-bound"], 1) as servers:
        row = measure(case, servers, 2)
        ours = servers["hilo"].results()
    assert "hilo-bound_error" not in row  # it has no weights to bind, which is no error
    assert 0 < row["hilo_best"] <= row["hilo"]
    a, b = case.inputs()
    assert difference(ours, [a @ b]) < 1e-6


def test_summaries_are_by_medians_and_by_minima() -> None:
    rows = [
        {"name": "matmul_64", "hilo": 2.0, "hilo_best": 1.0, "xla": 4.0, "xla_best": 4.0, "iree": 1.0, "iree_best": 1},
        {"name": "sort_4k", "hilo": 1.0, "hilo_best": 1.0, "xla": 1.0, "xla_best": 1.0, "iree_error": "cannot"},
    ]
    medians, minima = summary(rows, ["hilo", "xla", "iree"]).split("\n\n")
    assert "xla: 1.41 in the geometric mean of 2 rows; slower in 0" in medians
    assert "the fastest of each row: 0.71 in the geometric mean of 2 rows; slower in 1: matmul_64 0.50" in medians
    assert "of mainstream rows: 0.50 in the geometric mean of 1 rows" in medians
    assert "xla: 2.00 in the geometric mean of 2 rows; slower in 0" in minima
    assert "the fastest of each row: 1.00 in the geometric mean of 2 rows; slower in 0" in minima
