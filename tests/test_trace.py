"""The trace: states, stopping, skipping, dumping, printing, verifying; the collector's pause."""

from __future__ import annotations

import gc
import io
import threading
import weakref
from pathlib import Path

import pytest

from hilo import gc_pause
from hilo.errors import Error
from hilo.gc_pause import gc_paused
from hilo.ir.dtypes import f32, i1
from hilo.ir.module import Function, region
from hilo.ir.types import TensorType
from hilo.options import Options
from hilo.passes.cse import cse
from hilo.passes.dce import dce
from hilo.passes.simplify import simplify
from hilo.rewrite.ops import add, if_, negate
from hilo.trace import Trace, program_text, run_passes

F = TensorType(f32, (3,))


def program() -> Function:
    return region([F], lambda a: add(negate(a), negate(negate(negate(a)))), name="main")


def test_states_and_rules_are_recorded() -> None:
    trace = Trace()
    f = program()
    trace.start(f)
    g = run_passes(f, [("simplify", simplify), cse, cse, dce], trace=trace)
    outer = [s for s in trace.states if not s.depth]
    inner = [s.label for s in trace.states if s.depth]
    assert inner == ["rules", "hoist", "cse", "dce", "rules#2"]
    assert [s.label for s in outer] == ["input", "simplify", "cse#2", "cse#3", "dce#2"]
    assert [s.changed for s in outer] == [True, True, False, False, False]
    assert trace.states[1].rules == outer[1].rules
    fired = outer[1].rules
    assert any(name.startswith("negate(negate(x)) -> x (rules/algebra.py:") for name in fired)
    assert trace.after("cse#2") is g
    assert trace.after("input") is f
    with pytest.raises(Error, match="no pass 'fuse' ran; there are: input, rules, hoist"):
        trace.after("fuse")
    assert "simplify" in trace.table()


@pytest.mark.parametrize(
    ("stop", "labels"),
    [("cse", ["cse"]), ("cse#2", ["cse", "dce", "cse#2"]), ("cse#9", ["cse", "dce", "cse#2", "dce#2"])],
)
def test_stop_names_a_pass_or_one_of_its_runs(stop: str, labels: list[str]) -> None:
    trace = Trace(Options(stop=stop))
    run_passes(program(), [cse, dce, cse, dce], trace.options, trace)
    assert [s.label for s in trace.states] == labels
    assert trace.stopped == ("" if stop == "cse#9" else stop)


def test_stop_and_skip_reach_the_steps_inside_of_a_pass() -> None:
    trace = Trace(Options(stop="cse", skip=("hoist",)))
    run_passes(program(), [("simplify", simplify), dce], trace.options, trace)
    assert [s.label for s in trace.states] == ["rules", "cse", "simplify"]
    assert trace.stopped == "cse"


def test_skipped_passes_leave_the_program_alone() -> None:
    trace = Trace(Options(skip=("cse#1", "dce")))
    run_passes(program(), [cse, dce, cse], trace.options, trace)
    assert [(s.name, s.number) for s in trace.states] == [("cse", 2)]


def test_dump_writes_every_state_whole(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "dump"
    trace = Trace(Options(dump=str(folder)))
    trace.start(program())
    run_passes(program(), [("merge", cse), cse], trace.options, trace)
    assert sorted(p.name for p in folder.iterdir()) == ["000.input.mlir", "001.merge.mlir", "002.cse.mlir"]
    assert "stablehlo.negate" in (folder / "000.input.mlir").read_text()
    assert "changed nothing" in (folder / "002.cse.mlir").read_text()


def test_an_unwritable_dump_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(Error, match="cannot write"):
        Trace(Options(dump=str(tmp_path / "file" / "dump"))).start(program())


def test_print_and_time_go_to_the_stream() -> None:
    out = io.StringIO()
    trace = Trace(Options(print=("cse",), time=True), out)
    run_passes(program(), [cse, dce], trace.options, trace)
    trace.finish()
    text = out.getvalue()
    assert text.startswith("// ---- after cse\n")
    assert text.count("// ---- after") == 1
    assert "total" in text


def test_verify_names_the_pass_that_broke_the_program() -> None:
    def breaks(f: Function) -> Function:
        return f.replace(ops=[o for o in f.ops if o.kind.name != "negate"])

    with pytest.raises(Error, match=r"after pass breaks: .*"):
        run_passes(program(), [cse, breaks], Options(verify=True))
    run_passes(program(), [cse, dce], Options(verify=True))


def test_regions_without_bottom_are_one_clear_error() -> None:
    t = TensorType(i1)
    f = region([t], lambda p: p)
    for _ in range(400):
        f = region([t], lambda p, inner=f: if_(p, p, true_branch=inner, false_branch=region([t], lambda p: p)))
    with pytest.raises(Error, match="nest too deeply"):
        run_passes(f, [("simplify", simplify)])


def test_phases_are_timed_and_keep_what_they_made() -> None:
    trace = Trace()
    with trace.phase("plan") as made:
        made.append("a program")
    assert trace.after("plan") == "a program"
    assert program_text("a program") == "a program"


def test_the_collector_is_paused_by_a_counter_across_threads() -> None:
    assert gc.isenabled()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with gc_paused():
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    with gc_paused():
        assert not gc.isenabled()
    assert not gc.isenabled()  # the other thread is still at work
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with gc_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


class Ring:
    """An object in a cycle, which only the collector frees."""

    def __init__(self) -> None:
        self.me = self


def test_what_lived_through_a_pause_is_not_walked_through_at_once_but_is_collected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gc.collect()
    ran: list[str] = []
    gc.callbacks.append(lambda phase, info: ran.append(phase))
    try:
        with gc_paused():
            ring = weakref.ref(Ring())
            many = [[[]] for _ in range(5000)]
        more = [[[]] for _ in range(50)]
        assert not ran, (many, more)
        assert ring() is not None
        gc.collect()
        assert ring() is None
        monkeypatch.setattr(gc_pause, "MOST_UNSEEN", 0)
        with gc_paused():
            ring = weakref.ref(Ring())
        assert ring() is None
    finally:
        gc.callbacks.pop()


def test_frozen_objects_stay_frozen() -> None:
    gc.collect()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with gc_paused():
            pass
        assert gc.get_freeze_count() == frozen
    finally:
        gc.unfreeze()
