"""hilo_pjrt.so: a host without Python loads it, and so does one with Python."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import hilo
import hilo.pjrt
from hilo.errors import Error

HERE = Path(__file__).parent
SOURCE = Path(hilo.__file__).parents[1]
HEADERS = Path(hilo.__file__).parent / "runtime" / "native" / "pjrt"
SHARED = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))


def c_compiler() -> str:
    candidates = [(sysconfig.get_config_var("CC") or "cc").split()[0], "cc", "gcc", "clang"]
    found = next((found for c in candidates if (found := shutil.which(c))), None)
    if found is None:
        pytest.skip("needs a C compiler")
    return found


def build(source: Path, program: Path) -> Path:
    flags = ["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS}"]
    subprocess.run([c_compiler(), *flags, str(source), "-o", str(program), "-pthread", "-ldl"], check=True)
    return program


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(HERE / "pjrt_host.c", tmp_path_factory.mktemp("host") / "host")


def start(*command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs without this environment's own Python, but for `variables`."""
    hidden = ("PYTHON", "VIRTUAL_ENV", "HILO_PYTHON")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, cwd="/",
                          env=environment | variables)  # fmt: skip


needs_libpython = pytest.mark.skipif(not SHARED, reason="this Python has no shared libpython to start")


@needs_libpython
@pytest.mark.parametrize(
    ("mode", "middle"),
    [("plain", ""), ("fork", "child: 56\nstatus 0\n"), ("signal", "the host's own handler\n")],
)
def test_a_host_without_python(host: Path, mode: str, middle: str) -> None:
    """Threads that ask for the table at once, compile and run; forks; signals, which stay the host's; a clean end."""
    done = start(host, hilo.pjrt.library_path(), mode)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"PJRT 0.114\n11 24 39 56\n{middle}done\n", "")


@needs_libpython
def test_errors_of_programs_are_the_hosts_to_show(host: Path) -> None:
    done = start(host, hilo.pjrt.library_path(), "bad")
    said = "client_compile: <program>:1:18: expected a type, found '{'"
    assert (done.returncode, done.stdout) == (1, f"PJRT 0.114\n{said}\n")


def test_without_libpython_there_is_no_table(host: Path) -> None:
    done = start(host, hilo.pjrt.library_path(), HILO_PYTHON_LIBRARY="/nowhere/libpython.so")
    assert (done.returncode, done.stdout) == (2, "no table\n")
    line = (
        r"hilo: this process has no Python, and libpython\S+ cannot be loaded \(/nowhere/libpython.so: .*\); "
        r"HILO_PYTHON_LIBRARY is to name it"
    )
    assert all(re.fullmatch(line, said) for said in done.stderr.splitlines())
    assert len(done.stderr.splitlines()) == 4  # once for each thread that asked


@needs_libpython
def test_a_python_without_hilos_packages_is_named(host: Path, tmp_path: Path) -> None:
    """HILO_PYTHON says whose packages are used."""
    if (SOURCE / "numpy").exists():
        pytest.skip("what hilo needs is installed beside it, where any Python finds it")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    done = start(host, hilo.pjrt.library_path(), HILO_PYTHON=str(python))
    assert (done.returncode, done.stdout) == (2, "no table\n")
    assert done.stderr.startswith("hilo: it cannot be imported: ModuleNotFoundError: No module named ")
    assert f" of {tmp_path / 'venv'})" in done.stderr


def example_of_the_page(language: str) -> str:
    page = (HERE.parents[1] / "docs" / "pjrt.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)[0]


@needs_libpython
def test_the_example_in_c(tmp_path: Path) -> None:
    example = example_of_the_page("c")
    (tmp_path / "example.c").write_text(example)
    done = start(build(tmp_path / "example.c", tmp_path / "example"), hilo.pjrt.library_path())
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 4 6 8\n", "")


IN_PYTHON = """
import ctypes, sys, threading
import hilo.pjrt
from hilo.runtime import _native

library = ctypes.PyDLL(hilo.pjrt.library_path())  # with the GIL held
get = library.GetPjrtApi
get.restype = ctypes.c_void_p
found = []
threads = [threading.Thread(target=lambda: found.append(get())) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert set(found) == {_native.pjrt_api()}, found
print("the same table")
"""


def test_a_host_that_is_python() -> None:
    done = start(sys.executable, "-c", IN_PYTHON, PYTHONPATH=str(SOURCE))
    assert (done.returncode, done.stdout, done.stderr) == (0, "the same table\n", "")


AT_THE_END = """
import time
import numpy as np
import hilo, hilo.pjrt
from pjrt_client import Api, Host

@hilo.register_custom_call("pjrt.slow")
def slow(x):
    time.sleep(0.1)
    print("called", int(x), flush=True)
    return x + 1

host = Host(Api(hilo.pjrt.table()))
call = "stablehlo.custom_call @pjrt.slow(%x) : (tensor<i32>) -> tensor<i32>"
f = host.compile(f"func.func @main(%x: tensor<i32>) -> tensor<i32> {{ %y = {call} return %y : tensor<i32> }}")
x = host.put(np.array(0, np.int32))
for _ in range(3):
    (x,) = host.run(f, [x])
print("the end", flush=True)
"""


def test_what_is_in_flight_when_python_ends_is_waited_for() -> None:
    done = start(sys.executable, "-c", AT_THE_END, PYTHONPATH=f"{SOURCE}:{HERE}")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == ["called 0", "called 1", "called 2", "the end"]


def test_a_python_that_lacks_hilo() -> None:
    path = hilo.pjrt.library_path()
    code = f"import ctypes; f = ctypes.CDLL({path!r}).GetPjrtApi; f.restype = ctypes.c_void_p; print(f())"
    done = start(sys.executable, "-S", "-I", "-c", code)
    assert (done.returncode, done.stdout) == (0, "None\n")
    line = r"hilo: it cannot be imported: ModuleNotFoundError: No module named 'hilo' \(Python .* of .*\)\n"
    assert re.fullmatch(line, done.stderr)


def test_a_library_that_was_not_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hilo.pjrt, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(Error, match=r"hilo_pjrt\.so was not built: install hilo with a C compiler"):
        hilo.pjrt.library_path()


#: Checks of pypjrt's harness that say nothing of hilo, and why.
NOT_OURS = {
    "abi.unknown_slot_is_clean_error": "hilo has every function that the harness knows: none to refuse",
    "device.coords": "one device has no place in a mesh",
    "triton.compile": "Triton is a compiler for GPUs",
    "stream.external_ready_events": "the CPU has no streams",
    "topology.create_by_name": "the harness asks for a TPU; hilo's topologies are hilo and cpu",
}


def test_the_example_with_pypjrt() -> None:
    pytest.importorskip("pypjrt", reason="needs pypjrt (extra dev)")
    text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    done = start(sys.executable, "-W", "error", "-c", f"text = {text!r}\n{example_of_the_page('py')}",
                 PYTHONPATH=str(SOURCE))  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "array('f', [1.0, 2.0, 3.0, 4.0])\n", "")


def test_the_conformance_harness_of_pypjrt(tmp_path: Path) -> None:
    pytest.importorskip("pypjrt", reason="needs pypjrt (extra dev)")
    report = tmp_path / "report.json"
    done = start(sys.executable, "-m", "pypjrt.conform", hilo.pjrt.library_path(), "--json", report, "-v",
                 PYTHONPATH=str(SOURCE))  # fmt: skip
    checks = {c["id"]: c for c in json.loads(report.read_text())["checks"]}
    assert len(checks) >= 63
    others = {name: c for name, c in checks.items() if c["result"] != "pass"}
    assert set(others) == set(NOT_OURS), others
    assert not any(c["result"] == "fail" for c in others.values()), others
    assert done.returncode == 0, done.stderr
