"""LLVM IR text -> object code or assembly, through llvmlite. Imports llvmlite and backend.target.

LLVM may abort the process when it cannot select an instruction, so code for a machine that is not this one is made in a
worker process.
"""

from __future__ import annotations

import sys
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

from hilo.backend.target import Target
from hilo.errors import Error
from hilo.record import record

if TYPE_CHECKING:
    import llvmlite.binding as llvm

OPT_LEVEL = 1  # 1 and 2 give the same code for IR that is vector code already


@cache
def initialize() -> None:
    """Set LLVM up, once per process."""
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    # Loop strength reduction takes a third of the time of code generation and makes kernels with many pointers slower.
    llvm.set_option("hilo", "-disable-lsr")


def new_target_machine(triple: str, cpu: str, features: str, opt: int = OPT_LEVEL) -> llvm.TargetMachine:
    """LLVM's machine. The small code model: the JIT's default, "large", makes every constant an indirection."""
    import llvmlite.binding as llvm

    initialize()
    try:
        found = llvm.Target.from_triple(triple)
    except RuntimeError as e:
        raise Error(f"LLVM has no target for {triple!r}: {e}") from None
    return found.create_target_machine(cpu=cpu, features=features, opt=opt, reloc="pic", codemodel="small")


target_machine = cache(new_target_machine)


def compile(text: str, target: Target, opt: int = OPT_LEVEL, spent: Spent | None = None) -> bytes:  # noqa: A001
    """The object file for a module of LLVM IR text; `opt` 0: by LLVM's quick ways, for code that is slower.

    Raises `Error` with LLVM's words if the text is not valid. `spent` takes down what the steps took.
    """
    return _generate(text, target, "object", opt, Spent() if spent is None else spent)


def assembly(text: str, target: Target) -> str:
    """The assembly for a module of LLVM IR text, for reading and for tests."""
    return _generate(text, target, "assembly", OPT_LEVEL, Spent()).decode()


@record
class Spent:
    """Seconds that went into reading LLVM IR and into making code of it, of so many modules."""

    parse: float = 0.0
    select: float = 0.0
    modules: int = 0


def _generate(text: str, target: Target, form: str, opt: int, spent: Spent) -> bytes:
    if Target.host().includes(target):
        return generate_here(text, target.triple, target.cpu, target.features, form, opt, spent)
    return _generate_in_worker(text, target, form)


def generate_here(text: str, triple: str, cpu: str, features: str, form: str, opt: int = OPT_LEVEL,
                  spent: Spent | None = None) -> bytes:  # fmt: skip
    """Make code in this process; `form` is "object" or "assembly"."""
    import llvmlite.binding as llvm

    machine = target_machine(triple, cpu, features, opt)
    start = perf_counter()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as e:
        raise Error(f"internal error: LLVM rejects the generated code: {str(e).strip()}") from None
    parsed = perf_counter()
    with module:
        code = machine.emit_object(module) if form == "object" else machine.emit_assembly(module).encode()
    if spent is not None:
        spent.parse += parsed - start
        spent.select += perf_counter() - parsed
        spent.modules += 1
    return code


_WORKER = "import sys; from hilo.backend.cpu import work; work()"


def _generate_in_worker(text: str, target: Target, form: str) -> bytes:
    import subprocess

    parts = (target.triple, target.cpu, target.features, form, text)
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
