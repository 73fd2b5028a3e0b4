"""What one input goes through, and the process in which it does. Imports the public face, formats and the pipeline.

parse - verify - print, read again, print the same - the other formats, there and back - passes - compile - interpret
and run. `Error` is a good end at any step. Anything else that is raised is a finding; so is what is printed and then
refused, or comes back different. Time and memory are limited by the system: by a signal, and a limit on addresses.
"""

from __future__ import annotations

import faulthandler
import os
import random
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hilo.errors import Error
from hilo.ir.module import Module
from hilo.ir.types import TensorType, result_types

ELEMENTS: Final = 4096  # of all values of a program that is run
RUN_SECONDS: Final = 1.0  # for running one: a program may take its time, and is then left
_MAX_RANK: Final = 64  # of numpy's arrays
LARGEST: Final = 1 << 20  # bytes of a printed program that is read again


@dataclass(frozen=True)
class Effort:
    """What is done beyond reading and printing."""

    optimize: bool = True
    compile: bool = False
    run: bool = False


class Finding(AssertionError):
    """A program that is printed wrong."""


class _Enough(BaseException):
    pass


def examine(data: bytes, effort: Effort) -> str:
    """How far an input got: "refused", "read", "optimized", "compiled" or "run". A finding is raised."""
    import hilo
    from hilo.formats import sniff
    from hilo.ir.verify import verify

    form = sniff(data)
    try:
        module = hilo.parse(data if form in ("bytecode", "hlo_proto") else _text(data))
    except Error:
        return "refused"
    verify(module, types=False)
    _there_and_back(module, form)
    if not effort.optimize or not module.functions:
        return "read"
    entry = "main" if "main" in module.functions else next(iter(module.functions))
    try:
        return _run(module, entry) if effort.run and _is_small(module) else _optimize(module, entry, effort)
    except Error:
        return "read"


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _there_and_back(module: Module, form: str) -> None:
    """Every format gives back what it got; `Error`s of writing are of what it has no form for."""
    from hilo.formats import bytecode, hlo_text, mlir_text

    text = mlir_text.print_module(module)
    if len(text) > LARGEST:
        return
    _stable("text", module, text, mlir_text.print_module, mlir_text.parse, form == "mlir_text")
    for name, write, parse in (("bytecode", bytecode.write, bytecode.parse),
                               ("HLO", hlo_text.print_module, hlo_text.parse),
                               ("hlo_proto", hlo_text.module_message, hlo_text.parse_message)):  # fmt: skip
        try:
            once = write(module)
        except Error:
            continue
        _stable(name, module, once, write, parse, form == name)


def _stable(name: str, module: Module, once: Any, write: Any, parse: Any, own: bool) -> None:
    """What is written is read, and is written the same: at once by the format that the program came in, or by another
    the next time, as what only they tell apart (a constant inside of a region or before it) is settled then."""
    before = once
    from hilo.formats.bytecode.build import TOLERATED

    for _ in range(1 if own else 2):
        try:
            again = write(parse(once))
        except Error as e:
            if (e.op, getattr(e, "rule", "")) in TOLERATED:  # read from artifacts alone
                return
            raise Finding(f"the written {name} is refused: {e}") from None
        if again == once:
            return
        before, once = once, again
    raise Finding(f"the {name} changes when it is read and written: {_difference(before, once)}")


def _difference(a: Any, b: Any) -> str:
    if isinstance(a, bytes):
        return f"{len(a)} bytes become {len(b)}"
    for x, y in zip(a.splitlines(), b.splitlines(), strict=False):
        if x != y:
            return f"{x.strip()[:200]!r} becomes {y.strip()[:200]!r}"
    return "lines are lost"


def _options() -> Any:
    from hilo.options import Options

    return Options(cache=False, threads=1)


def _optimize(module: Module, entry: str, effort: Effort) -> str:
    from hilo.pipeline import compile_module, optimize

    if effort.compile:
        compile_module(module, entry=entry, options=_options())
        return "compiled"
    optimize(module, entry, _options())
    return "optimized"


def _is_small(module: Module) -> bool:
    """Whether a program can be run quickly: fixed sizes, few elements, no loop that only values end."""
    from hilo.rewrite.regions import regions

    count, pending = 0, list(module.functions.values())
    while pending:
        f = pending.pop()
        for o in f.ops:
            if o.name in ("while", "custom_call", "infeed", "outfeed", "send", "recv"):
                return False
            for t in result_types(o.type):
                if not isinstance(t, TensorType) or not t.is_static or t.rank > _MAX_RANK:
                    return False
                count += t.size
            if count > ELEMENTS:
                return False
            pending.extend(regions(o))
    return True


def _run(module: Module, entry: str) -> str:
    import hilo
    from hilo.testing.generate import inputs

    arrays = inputs(module, 0, entry)
    try:
        with _for(RUN_SECONDS):
            hilo.interpret(module, *arrays, entry=entry)
    except _Enough:
        return "run"
    compiled = hilo.compile(module, entry=entry, options=_options())
    if compiled.cost < RUN_SECONDS * 1e9:
        compiled(*arrays)
    return "run"


@contextmanager
def _for(seconds: float) -> Iterator[None]:
    """Leave the block with `_Enough` after so many seconds of the processor's time."""

    def stop(*_: Any) -> None:
        raise _Enough

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


# ---- the process
Task: TypeAlias = Callable[[bytes, Effort], str]


def work(connection: Any, log: str, seconds: float, memory: int, task: Task = examine) -> None:
    """Take (data, effort) from `connection`, answer what `task` says of them, or ("signature", "trace") of what it
    raises, until it is closed.

    An input that takes more than `seconds` of the processor's time, or crashes, ends the process; `log` then holds
    where it was. Addresses beyond `memory` bytes are refused, which Python tells as MemoryError.
    """
    trace = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):  # programs may print
        os.dup2(trace, stream)
    faulthandler.enable(trace, all_threads=False)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.register(signal.SIGPROF, trace, all_threads=False, chain=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    import warnings

    warnings.simplefilter("ignore")
    while True:
        try:
            data, effort = connection.recv()
        except EOFError:
            return
        os.ftruncate(trace, 0)
        random.seed(0)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            answer: Any = task(data, effort)
        except BaseException as e:
            answer = signature(e), "".join(traceback.format_exception(e, limit=-12))
        signal.setitimer(signal.ITIMER_PROF, 0)
        connection.send(answer)


def signature(e: BaseException) -> str:
    """What tells findings apart: the kind of exception and the innermost place of hilo."""
    place = "?"
    for frame in traceback.extract_tb(e.__traceback__)[-60:]:
        if "hilo" in frame.filename and "fuzz_worker" not in frame.filename:
            place = f"{os.path.basename(frame.filename)}:{frame.name}"
    message = str(e).partition(": ")[0][:80] if isinstance(e, Finding) else ""
    return " ".join(filter(None, (type(e).__name__, message or f"in {place}")))
