"""What several commands share: arguments, arrays from files or at random, tables. Imports the public face."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zipfile import BadZipFile

import click
import numpy as np

from hilo.errors import Error
from hilo.ir.example_arrays import random_array
from hilo.ir.module import Function, Module
from hilo.ir.types import TensorType

if TYPE_CHECKING:
    from hilo.options import Options
    from hilo.runtime.executable import Executable

Sized = tuple[TensorType, "np.ndarray | None"]


def entry_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--entry", default="main", show_default=True, metavar="NAME", help="The function to use.")(f)


def threads_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads per call.  [default: all]")(f)


def target_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--target", default="host", show_default=True, metavar="NAME", help="host, x86-avx2, ...")(f)


def opt_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("-O", "opt", type=click.IntRange(0, 1), metavar="N",
                        help="0 compiles quickly for slow code, for debugging.  [default: 1]")(f)  # fmt: skip


class Seconds(click.FloatRange):
    """A time in seconds: not negative, and a number."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        seconds = super().convert(value, param, ctx)
        if seconds != seconds:
            self.fail(f"{value} is no number of seconds.", param, ctx)
        return seconds


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C ends the process at once, also in native code, after which alone Python would notice it."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def compile_options(opt: int | None) -> Options:
    """The options of the environment, with what the command line says."""
    from hilo.options import Options

    return Options.from_env() if opt is None else Options.from_env(opt=opt)


def bind_option(f: Callable[..., Any]) -> Callable[..., Any]:
    return click.option("--bind", default="", metavar="NUMBERS", help="Arguments that are constants, e.g. 1,3-5.")(f)


def bound(text: str, args: list[np.ndarray]) -> tuple[dict[int, np.ndarray], list[np.ndarray]]:
    """The arguments that `text` ("1,3-5") names, by number, and the others. Raises `Error` for a wrong one."""
    numbers: set[int] = set()
    for part in filter(None, (x.strip() for x in text.split(","))):
        first, dash, last = part.partition("-")
        ends = (first, last if dash else first)
        if not all(x.isascii() and x.isdigit() for x in ends) or not int(ends[0]) <= int(ends[1]) < len(args):
            raise Error(f"--bind {part}: arguments have numbers from 0 to {len(args) - 1}")
        numbers.update(range(int(ends[0]), int(ends[1]) + 1))
    return {i: args[i] for i in sorted(numbers)}, [a for i, a in enumerate(args) if i not in numbers]


def load(path: str, entry: str = "main") -> Module:
    """The program in a file, or of the signature `entry` in the folder of a SavedModel."""
    import hilo

    loaded = hilo.load(path)
    return loaded if isinstance(loaded, Module) else loaded.module(entry)


class Program:
    """The program in a file. It is parsed when somebody asks for its module: compiling may find it in the cache. Or
    that of a signature in the folder of a SavedModel, whose name is the entry's."""

    def __init__(self, path: str, entry: str) -> None:
        """Raises `Error` for a file that cannot be read."""
        from hilo.formats import read

        self.path = path
        self.entry = entry
        self.data = None if os.path.isdir(path) else read(path)

    @cached_property
    def module(self) -> Module:
        """Raises `Error` for a file without a program."""
        from hilo.formats import parse

        return load(self.path, self.entry) if self.data is None else parse(self.data, self.path)

    def compile(self, *, target: str, threads: int | None, options: Options) -> Executable:
        """As `hilo.compile` does."""
        if self.data is None:
            import hilo

            return hilo.compile(self.module, entry=self.entry, target=target, threads=threads, options=options)
        from hilo.kept import compile_source

        return compile_source(self.data, entry=self.entry, target=target, threads=threads, options=options,
                              filename=self.path)  # fmt: skip


def function(module: Module, name: str) -> Function:
    """The function called `name`, or an error that lists the others."""
    if name not in module.functions:
        raise Error(f"no function @{name}; there are {', '.join('@' + n for n in module.functions)}")
    return module[name]


def need_arrays(program: Program, entry: str, files: Sequence[str], seed: int | None) -> None:
    """Raises `Error` if the entry takes arrays and none are given, before anything is compiled."""
    if not files and seed is None:
        arguments(function(program.module, entry), files, seed)


def arguments(f: Function | Executable, files: Sequence[str], seed: int | None,
              sizes: Callable[[], list[Sized]] | None = None) -> list[np.ndarray]:  # fmt: skip
    """One array per argument of `f`: from .npy and .npz files in order, or at random. `sizes` gives the types, and
    some values, of parameters whose sizes are known only at run time."""
    types = f.param_types if isinstance(f, Function) else f.arg_types
    if not files and (seed is not None or not types):
        rng = np.random.default_rng(seed)
        if sizes is not None and any(isinstance(t, TensorType) and not t.is_static for t in types):
            return [random_array(t, rng) if value is None else value for t, value in sizes()]
        return [random_array(t, rng) for t in types if isinstance(t, TensorType)]
    if not files:
        raise Error(f"@{f.name} takes {len(types)} arrays: name .npy or .npz files, or use --random SEED")
    return [a for path in files for a in read_arrays(path)]


def sizes(module: Module, entry: str, dim: int | None) -> list[Sized]:
    """Types and known values of the parameters of `entry` where run-time sizes are `dim`, if the program lets them."""
    from hilo.passes.example_sizes import example_sizes
    from hilo.passes.inline import inline

    if dim is None:
        raise Error(f"@{entry} has sizes that are known only at run time: choose them with --dim N, or give arrays")
    return example_sizes(inline(module, entry), dim, module)


def read_arrays(path: str) -> list[np.ndarray]:
    """The array of a .npy file, or the arrays of a .npz file in its order. Raises `Error` if it is neither."""
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return [loaded]
            with loaded:
                return [loaded[name] for name in loaded.files]
    except OSError as e:
        raise Error(f"{path}: {e.strerror or e}") from None
    except (ValueError, EOFError, BadZipFile, zlib.error, KeyError) as e:
        text = "it holds Python objects, or is damaged" if "pickle" in str(e) else str(e) or "it is damaged"
        raise Error(f"{path}: no .npy or .npz file: {text}") from None


def summary(a: np.ndarray) -> str:
    """A line about an array: type, shape and either its values or their range and mean."""
    head = f"{a.dtype}[{','.join(map(str, a.shape))}]"
    if a.size <= 8:
        return f"{head}  {np.array2string(a.astype(object) if a.dtype.kind == 'V' else a, separator=', ')}"
    if a.dtype == bool:
        return f"{head}  {int(a.sum())} of {a.size} true"
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    if a.dtype.kind == "c":
        return f"{head}  mean {wide.mean():.6g}, largest magnitude {np.abs(wide).max():.6g}"
    finite = wide[np.isfinite(wide)]
    odd = f", {wide.size - finite.size} not finite" if finite.size < wide.size else ""
    if not finite.size:
        return f"{head}  nothing finite"
    return f"{head}  min {finite.min():.6g}, max {finite.max():.6g}, mean {finite.mean():.6g}{odd}"


@contextmanager
def atomic_write(path: str) -> Iterator[IO[bytes]]:
    """Write a file whole or not at all: to a temporary one beside it, then rename. A link stays one; what is no plain
    file (a device, a pipe) is never replaced, but written to."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        try:
            with target.open("wb") as f:
                yield f
        except BrokenPipeError:
            raise
        except OSError as e:
            raise Error(f"{path}: {e.strerror or e}") from None
        return
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as e:
        raise Error(f"{path}: {e.strerror or e}") from None
    try:
        with os.fdopen(handle, "wb") as f:
            yield f
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException as e:
        Path(name).unlink(missing_ok=True)
        if isinstance(e, OSError):
            raise Error(f"{path}: {e.strerror or e}") from None
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_bytes(data: bytes, output: str | None, what: str) -> None:
    """To a file, or to stdout unless that is a terminal. `what` they are is for the error."""
    if output is not None and output != "-":
        with atomic_write(output) as f:
            f.write(data)
    elif sys.stdout.isatty():
        raise Error(f"{what} is no text: name a file with -o, or redirect the output")
    else:
        sys.stdout.buffer.write(data)


def write_text(text: str, output: str | None) -> None:
    """To a file, or to stdout."""
    if output is None or output == "-":
        click.echo(text.rstrip("\n"))
        return
    with atomic_write(output) as f:
        f.write(text.encode())
