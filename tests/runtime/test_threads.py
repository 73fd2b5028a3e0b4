"""The thread pool through programs: results for any number of threads, callers, forks, floating-point state."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from runtime_entries import HERE, NATIVE, c_compiler

from hilo.runtime import _native

F32 = np.dtype(np.float32)
F64 = np.dtype(np.float64)
I64 = np.dtype(np.int64)
N = 100003


@pytest.mark.parametrize("threads", [1, 2, 3, 8, 600])
def test_squares(program, threads):
    p = program("squares", [(F64, (N,))], [(F64, (N,))], threads=threads)
    x = np.arange(N, dtype=F64)
    for _ in range(5):
        assert np.array_equal(p(x)[0], x * x + 1)
    assert p.threads == min(threads, 512)


def test_results_do_not_depend_on_threads(program):
    x = np.random.default_rng(1).standard_normal(4096).astype(F32)
    outs = set()
    for threads in (1, 2, 3, 5, 16):
        p = program("sum4096", [(F32, (4096,))], [(F32, ())], threads=threads, arena_size=256)
        outs |= {p(x)[0].tobytes() for _ in range(10)}
    assert len(outs) == 1


@pytest.mark.parametrize("release_gil", [False, True])
def test_several_python_threads_at_once(program, release_gil):
    p = program("squares", [(F64, (N,))], [(F64, (N,))], threads=3, release_gil=release_gil)
    wrong = []

    def call(seed):
        x = np.random.default_rng(seed).standard_normal(N)
        for _ in range(20):
            if not np.array_equal(p(x)[0], x * x + 1):
                wrong.append(seed)

    callers = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert wrong == []


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="sets x86's control register")
def test_subnormals_are_kept_whatever_the_caller_has_set(program, entries):
    p = program("subnormal", [], [(F32, ()), (I64, ())])
    workers = program("states64", [], [(I64, (64,))], threads=3)
    clean = p()[1]
    before = entries.get_fp_state()
    entries.set_fp_state(before | 0xE040)  # flush to zero, subnormals are zero, round toward zero
    try:
        value, state = p()
        states = workers()[0] & 0xFFC0  # without the sticky flags
        after = entries.get_fp_state()
    finally:
        entries.set_fp_state(before)
    assert value == np.float32(2.0**-127)
    assert state == clean
    assert set(states.tolist()) == {clean.item() & 0xFFC0}
    assert after & 0xE040 == 0xE040


def completes(script: str, *arguments: str) -> None:
    """Run a script in a process of its own, which must end well and say nothing against it."""
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


SQUARES = """
import ctypes, os, resource, sys, warnings
import numpy as np
from hilo.runtime import _native
library = ctypes.CDLL(sys.argv[1])
address = ctypes.cast(library.squares, ctypes.c_void_p).value
f64 = np.dtype(np.float64)
x = np.arange(100003, dtype=f64)
def squares(**options):
    p = _native.Program(address, [(f64, (100003,))], [(f64, (100003,))], **options)
    return lambda: np.array_equal(p(x)[0], x * x + 1)
"""
FORK = """
warnings.simplefilter("ignore")
right = squares(threads=3, release_gil=True)
for _ in range(5):
    assert right()
    assert _native.workers() == 2
    child = os.fork()
    ok = _native.workers() == (2 if child else 0) and all(right() for _ in range(20))
    if child == 0:
        os._exit(0 if ok and _native.workers() == 2 else 1)
    assert ok
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork(entries):
    """A child of a process whose pool runs gets a pool of its own, and both go on."""
    completes(SQUARES + FORK, entries._name)


PART = """
right = squares(threads=2)
cores = os.sched_getaffinity(0)
home = {min(cores)}
os.sched_setaffinity(0, home)
assert all(right() for _ in range(20))
(worker,) = [int(t) for t in os.listdir("/proc/self/task") if open(f"/proc/self/task/{t}/comm").read() == "hilo-1\\n"]
assert os.sched_getaffinity(worker) == home
os.sched_setaffinity(0, cores)
for _ in range(100000):
    assert right()
    if os.sched_getaffinity(worker) != home:
        break
away = os.sched_getaffinity(worker)
assert away and away < cores and len(away) == len(cores) - 1, (away, cores)
assert os.sched_getaffinity(0) == cores
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux's affinities")
def test_a_worker_on_the_core_of_its_caller_is_sent_away(entries):
    """A worker inherits the caller's only core; as soon as the caller may run elsewhere, they part."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    completes(SQUARES + PART, entries._name)


FEW = """
right = squares(threads=300)
used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20),) * 2)
cores = os.sched_getaffinity(0)
for core in sorted(cores):
    os.sched_setaffinity(0, {core})
    os.sched_setaffinity(0, cores)
    assert all(right() for _ in range(50))
assert 0 < _native.workers() < 299, _native.workers()
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs Linux's affinities")
def test_fewer_workers_than_asked_for(entries):
    """Where the system has no memory for more threads, the others do their shares, whatever core the caller is on."""
    completes(SQUARES + FEW, entries._name)


EXIT = """
import ctypes, sys, threading, time
from hilo.runtime import _native
import numpy as np
library = ctypes.CDLL(sys.argv[1])
entry = lambda name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value
p = _native.Program(entry("states64"), [], [(np.dtype(np.int64), (64,))], threads=4, release_gil=True)
p()
threading.Thread(target=lambda: [p() for _ in range(1000)], daemon=True).start()
time.sleep(0.02)
"""


def test_exit_while_a_daemon_thread_runs_programs(entries):
    completes(EXIT, entries._name)


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = "import sys\\ntry:\\n    import hilo.runtime\\nexcept ImportError as e:\\n    print(e, flush=True)"
interpreters.run_string(interpreters.create(), code)
"""


def test_subinterpreters_are_refused_clearly():
    done = subprocess.run([sys.executable, "-c", SUBINTERPRETER], capture_output=True, text=True, timeout=60)
    assert "subinterpreters" in done.stdout or "loaded in subinterpreters" in done.stdout, done.stderr


@pytest.mark.parametrize("sanitizer", ["none", "thread", "address,undefined"])
def test_native_code_under_sanitizers(sanitizer, tmp_path: Path):
    """Pool and memory without Python (native_test.c): loops of all shapes, callers, nesting, forks, allocations."""
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path / "native_test"
    sources = [str(HERE / "native_test.c"), str(NATIVE / "pool.c"), str(NATIVE / "memory.c")]
    flags = ["-std=c11", "-O1", "-g", "-pthread", "-Wall", "-Wextra", "-Werror", f"-I{NATIVE}"]
    if sanitizer != "none":
        flags += [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]
        probe = tmp_path / "probe.c"
        probe.write_text("int main(void) { return 0; }\n")
        built = subprocess.run([compiler, *flags, str(probe), "-o", str(program)], capture_output=True)
        if built.returncode or subprocess.run([str(program)], capture_output=True).returncode:
            pytest.skip(f"the compiler has no {sanitizer} sanitizer that works here")
    subprocess.run([compiler, *flags, *sources, "-o", str(program)], check=True)
    # ThreadSanitizer does not follow forks of threaded processes.
    arguments = ["nofork"] if sanitizer == "thread" else []
    done = subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr[:4000]


def test_workers_are_few(program):
    """A program with few pieces starts no more workers than it can use."""
    before = _native.workers()
    p = program("host_in_loop", [], [], threads=64)
    with pytest.raises(Exception, match="host call"):
        p()
    assert _native.workers() == before
