"""LLVM IR text -> object code or assembly, by LLVM. Imports backend.llvm_library, backend.names and backend.target.

LLVM may abort the process when it cannot select an instruction, so code for a machine that is not this one is made in a
worker process.
"""

from __future__ import annotations

import sys
from functools import cache
from time import perf_counter
from typing import Final

from hilo.backend.forks import Unforked
from hilo.backend.llvm_library import emitted, library, parsed, text_of, text_out
from hilo.backend.names import names
from hilo.backend.target import Target
from hilo.errors import Error
from hilo.record import record

OPT_LEVEL: Final = 1  # 1 and 2 give the same code for IR that is vector code already

# Steps of LLVM's that kernels do without. Loop strength reduction takes a third of the time of code generation and
# makes kernels with many pointers slower. The others, together 4 %, find nothing to do in what hilo writes: large
# numbers used again and again, calls of sqrt, chains of comparisons, tails of branches.
LEFT_OUT: Final = (b"-disable-lsr", b"-disable-constant-hoisting", b"-disable-partial-libcall-inlining",
                   b"-disable-mergeicmps", b"-disable-early-taildup")  # fmt: skip


@cache
def initialize() -> None:
    """Set LLVM up for this machine, once per process."""
    lib = library()
    lib.InitializeNativeTarget()
    lib.InitializeNativeAsmPrinter()
    lib.InitializeNativeAsmParser()
    for option in LEFT_OUT:
        lib.SetCommandLine(b"hilo", option)


@cache
def initialize_all() -> None:
    """Set LLVM up for all machines that it knows."""
    initialize()
    lib = library()
    lib.InitializeAllTargetInfos()
    lib.InitializeAllTargets()
    lib.InitializeAllTargetMCs()
    lib.InitializeAllAsmPrinters()


@cache
def target_machine(triple: str, cpu: str, features: str, opt: int = OPT_LEVEL) -> int:
    """LLVM's machine. The small code model: the JIT's default, "large", makes every constant an indirection."""
    initialize()
    lib = library()
    with text_out() as why:
        found = lib.GetTargetFromTriple(triple.encode(), why)
    if not found:
        initialize_all()
        with text_out() as why:
            found = lib.GetTargetFromTriple(triple.encode(), why)
            if not found:
                raise Error(f"LLVM has no target for {triple!r}: {(why.value or b'').decode(errors='replace')}")
    return lib.CreateTargetMachine(
        found, triple.encode(), cpu.encode(), features.encode(), opt, b"pic", b"small", 0, 0, b""
    )


@cache
def data_layout(triple: str, cpu: str = "", features: str = "") -> str:
    """How LLVM lays data out on a machine, in its notation. The triple decides; of the machine that is asked, which
    takes time to make, most programs have need anyway."""
    lib = library()
    layout = lib.CreateTargetMachineData(target_machine(triple, cpu, features, 0))
    try:
        return text_of("CopyStringRepOfTargetData", layout)
    finally:
        lib.DisposeTargetData(layout)


def compile(text: str, target: Target, opt: int = OPT_LEVEL, spent: Spent | None = None) -> bytes:  # noqa: A001
    """The object file for a module of LLVM IR text; `opt` 0: by LLVM's quick ways, for code that is slower.

    Raises `Error` with LLVM's words if the text is not valid. `spent` takes down what the steps took.
    """
    return _generate(text, target, "object", opt, Spent() if spent is None else spent)


def assembly(text: str, target: Target, opt: int = OPT_LEVEL) -> str:
    """The assembly for a module of LLVM IR text, for reading and for tests."""
    return _generate(text, target, "assembly", opt, Spent()).decode()


@record
class Spent:
    """Seconds that went into reading LLVM IR and into making code of it, of so many modules."""

    parse: float = 0.0
    select: float = 0.0
    modules: int = 0


def _generate(text: str, target: Target, form: str, opt: int, spent: Spent) -> bytes:
    if Target.host().includes(target):
        return generate_here(text, *names(target), form, opt, spent)
    return _generate_in_worker(text, target, form)


def generate_here(text: str, triple: str, cpu: str, features: str, form: str, opt: int = OPT_LEVEL,
                  spent: Spent | None = None) -> bytes:  # fmt: skip
    """Make code in this process; `form` is "object" or "assembly"."""
    machine = target_machine(triple, cpu, features, opt)
    start = perf_counter()
    try:
        with Unforked(), parsed(text) as module:
            read = perf_counter()
            code = emitted(machine, module, assembly=form != "object")
    except ValueError as e:
        raise Error(f"internal error: LLVM rejects the generated code: {e}") from None
    if spent is not None:
        spent.parse += read - start
        spent.select += perf_counter() - read
        spent.modules += 1
    return code


_WORKER = "import sys; from hilo.backend.cpu import work; work()"


def _generate_in_worker(text: str, target: Target, form: str) -> bytes:
    import subprocess

    parts = (*names(target), form, text)
    done = subprocess.run([sys.executable, "-c", _WORKER], input="\0".join(parts).encode(), capture_output=True,
                          env=_worker_env(), check=False)  # fmt: skip
    if done.returncode == 0:
        return done.stdout
    if done.returncode == 3:
        raise Error(done.stderr.decode(errors="replace"))
    last = done.stderr.decode(errors="replace").strip().splitlines()[:1]
    raise Error(f"LLVM cannot make code for {target.name}: {last[0] if last else f'it ended with {done.returncode}'}")


def _worker_env() -> dict[str, str]:
    import os
    from pathlib import Path

    import hilo.errors

    root = str(Path(hilo.errors.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def work() -> None:
    """The worker process: one job from stdin, the code to stdout. Exit status 3: an error of ours, on stderr."""
    triple, cpu, features, form, text = sys.stdin.buffer.read().decode().split("\0", 4)
    try:
        code = generate_here(text, triple, cpu, features, form)
    except Error as e:
        sys.stderr.write(str(e))
        sys.exit(3)
    sys.stdout.buffer.write(code)
