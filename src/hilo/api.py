"""The public face: load, parse, text, compile, interpret, custom calls. Kept small; the phases are in pipeline.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from os.path import isfile, join
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.errors import Error
from hilo.ir.module import Module

if TYPE_CHECKING:
    from hilo.ir.host import HostQueues
    from hilo.ir.probes import Probes
    from hilo.options import Options
    from hilo.runtime.executable import Executable

Program = Module | str | bytes


def load(path: str | PathLike[str]) -> Module | Any:
    """The program in a file. A folder that is a SavedModel of TensorFlow's gives a `tensorflow.saved_model.SavedModel`:
    it has a program for each of its signatures, and is taken wherever a program is, for that of the default signature.

    Raises `Error` (file:line:col: what) if the file cannot be read or is no valid program.
    """
    from hilo.formats import load as load_file

    if not isinstance(path, str | PathLike):
        raise Error(f"a path is a text or a Path, not {type(path).__name__}")
    if isfile(join(path, "saved_model.pb")):
        return import_module("hilo.tensorflow").load(path)  # a front end, which stands above
    return load_file(path)


def parse(text_or_bytes: str | bytes) -> Module:
    """The program in `text_or_bytes`: StableHLO as MLIR text, or a file's bytes in any format that `load` reads.

    Raises `Error` with line and column, or with the place in the file.
    """
    from hilo.formats import parse as parse_text

    if not isinstance(text_or_bytes, str | bytes):
        raise Error(f"a program is a Module, a text or bytes, not {type(text_or_bytes).__name__}")
    return parse_text(text_or_bytes)


def text(program: Program, *, locations: bool = False, elide: int | None = None) -> str:
    """The program as StableHLO text, which `parse` reads.

    locations  say where each op came from
    elide      leave out constants of more than so many elements (for reading: it does not parse)
    """
    from hilo.formats.mlir_text import print_module

    _expect(elide=(elide, int, "a number"))
    return print_module(_module(program), locations=locations, elide=elide)


def _module(program: Any) -> Module:
    """Of a `Program`, or of what has one (a SavedModel)."""
    if isinstance(program, Module):
        return program
    return program.module() if hasattr(program, "module") else parse(program)


def _expect(**given: tuple[Any, type | tuple[type, ...], str]) -> None:
    """`Error` for an argument of another kind than those, in words the third; `None` counts as left out."""
    for name, (value, kinds, wanted) in given.items():
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise Error(f"{name} should be {wanted}, not {type(value).__name__}")


def compile(program: Program, *, entry: str = "main", target: str = "host", threads: int | None = None,  # noqa: A001
            constants: Mapping[int, Any] | None = None, shapes: Mapping[int, Iterable[int]] | None = None,
            donate: Iterable[int] = (), host: HostQueues | None = None,
            options: Options | None = None) -> Executable:  # fmt: skip
    """Compile a program to native code.

    program    a `Module`, MLIR text, or bytes of it
    entry      the function to call
    target     "host", or a named one ("x86-avx2" ...)
    threads    how many threads calls use; None: as many as the process may use
    constants  {argument number: array}: arguments bound now; calls leave them out
    shapes     {argument number: shape}: compile for these shapes of arguments only, where the program leaves sizes
               open; otherwise one compilation serves all sizes
    donate     numbers of arguments whose memory results may take
    host       the queues that `infeed`, `outfeed`, `send` and `recv` of the program exchange arrays through
    options    an `Options`; None: from the environment

    Gives an `Executable`: call it with numpy arrays (anything with DLPack or the array interface), get a list of them.
    Raises `Error` for an invalid program, or one that needs what hilo does not have yet.
    """
    from hilo.options import Options

    donate = () if donate is None else donate
    _expect(
        entry=(entry, str, "the name of a function"),
        target=(target, str, "the name of a target"),
        threads=(threads, int, "a number"),
        constants=(constants, Mapping, "a mapping of argument numbers to arrays"),
        shapes=(shapes, Mapping, "a mapping of argument numbers to shapes"),
        donate=(donate, Iterable, "the numbers of arguments"),
        options=(options, Options, "an Options"),
    )
    if isinstance(program, str | bytes) and not constants and not shapes and host is None:
        from hilo.kept import compile_source

        return compile_source(program, entry=entry, target=target, threads=threads, donate=tuple(donate),
                              options=options)  # fmt: skip
    from hilo.ir.connection import connected
    from hilo.ir.host import HostQueues
    from hilo.pipeline import compile_module

    _expect(host=(host, HostQueues, "a HostQueues"))
    with connected(host):
        return compile_module(_module(program), entry=entry, target=target, threads=threads, constants=constants,
                              shapes=shapes, donate=tuple(donate), options=options)  # fmt: skip


def inspect(program: Program | Executable, stage: str, *, entry: str = "main", target: str = "host",
            elide: int | None = None, options: Options | None = None) -> str | bytes:  # fmt: skip
    """A program, or what was compiled, at a stage of the compilation (`hilo.stages.STAGES` says what each one is).

    stage      of the program as it came: "stablehlo", "hlo", "hlo_serialized" (XLA's HloModuleProto, as bytes);
               optimized: "optimized" (our IR), "optimized_hlo", "optimized_hlo_serialized" (bytes),
               "optimized_hlo_dot" or "dot" (a graph that Graphviz draws);
               compiled: "llvm", "asm", "c", "object" (a file, as bytes), "header" (in C, of the object file), "memory",
               "memory.svg"
    target     what the code is for: "host", or a named machine, which may be one that this one cannot run code for
    elide      leave out constants of more than so many elements (for reading; not of stages of an executable)

    Nothing is compiled for stages that need no code. Raises `Error` for a stage that there is not, `Unsupported` for
    a program that HLO has no form for.
    """
    from hilo.inspection import inspect_module
    from hilo.options import Options
    from hilo.runtime.executable import Executable

    _expect(
        stage=(stage, str, "the name of a stage"),
        entry=(entry, str, "the name of a function"),
        target=(target, str, "the name of a target"),
        elide=(elide, int, "a number"),
        options=(options, Options, "an Options"),
    )
    if isinstance(program, Executable):
        from hilo.stages import named

        return program.inspect(named(stage))
    return inspect_module(_module(program), stage, entry=entry, target=target, elide=elide, options=options)


def interpret(program: Program, *arrays: Any, entry: str = "main", host: HostQueues | None = None,
              probes: Probes | None = None) -> list[np.ndarray]:  # fmt: skip
    """Run a program with every op's reference semantics in numpy: slow, exact, the arbiter of everything else.

    host       the queues that `infeed`, `outfeed`, `send` and `recv` exchange arrays through
    probes     what takes down the values of `interpreter.probe`

    Raises `Error` if the arrays do not fit the entry function's parameters; nothing is cast.
    """
    from hilo.ir.connection import connected
    from hilo.ir.host import HostQueues
    from hilo.ir.interpret import interpret as run
    from hilo.ir.probes import Probes, recording

    _expect(
        entry=(entry, str, "the name of a function"),
        host=(host, HostQueues, "a HostQueues"),
        probes=(probes, Probes, "a Probes"),
    )
    module = _module(program)
    if entry not in module.functions:
        raise Error(f"no function @{entry}; there are {', '.join('@' + n for n in module.functions)}")
    with connected(host), recording(probes):
        return run(module, arrays, entry)


def interpret_parallel(program: Program, inputs: Sequence[Sequence[Any]], *, replicas: int = 1, partitions: int = 1,
                       entry: str | Sequence[str] = "main", host: HostQueues | Sequence[HostQueues] | None = None,
                       probes: Probes | None = None) -> list[list[np.ndarray]]:  # fmt: skip
    """Run a program in a grid of simulated processes, with the collectives' semantics in the specification.

    inputs     the arguments of each process: those of replica r, partition p at r * partitions + p
    entry      the function that all run, or one for each process
    host       the queues of `infeed`, `outfeed`, `send` and `recv` that all share, or one for each process; None: what
               a process sends to a channel of the host another one can receive from it
    probes     what takes down the values of `interpreter.probe`

    Gives the results of each process, in the order of `inputs`. Runs are deterministic. The first error of a process
    ends all; processes that wait for each other for ever are an `Error` that says what each one waits for.
    """
    from hilo.ir.host import HostQueues
    from hilo.ir.parallel import interpret_grid
    from hilo.ir.probes import Probes, recording
    from hilo.ir.process import Grid

    lists = list | tuple | np.ndarray
    inputs = list(inputs) if isinstance(inputs, Iterable) and not isinstance(inputs, Mapping | str | bytes) else inputs
    if not isinstance(inputs, list) or not all(isinstance(arrays, lists) for arrays in inputs):
        raise Error("inputs should be a list of arguments for each process")
    _expect(entry=(entry, (str, Sequence), "the name of a function, or one for each process"),
            host=(host, (HostQueues, Sequence), "a HostQueues, or one for each process"),
            probes=(probes, Probes, "a Probes"))  # fmt: skip
    for queues in host if isinstance(host, Sequence) else ():
        if not isinstance(queues, HostQueues):
            raise Error(f"host should be a HostQueues, or one for each process, not {type(queues).__name__}")
    module = _module(program)
    grid = Grid(replicas, partitions)
    names = [entry] * len(grid.processes) if isinstance(entry, str) else list(entry)
    for name in names:
        if not isinstance(name, str) or name not in module.functions:
            raise Error(f"no function @{name}; there are {', '.join('@' + n for n in module.functions)}")
    with recording(probes):
        return interpret_grid(module, grid, [module[name] for name in names], inputs, host)


def register_custom_call(name: str, function: Any = None, *, convention: str = "python") -> Any:
    """Make `function` the code that programs call as `stablehlo.custom_call @name`, interpreted and compiled.

    With convention "python", `function(*operands)` gets numpy arrays that it must not change, and returns an array, or
    a tuple of arrays, of exactly the types of the call's results. It may take the keywords `results` (the types),
    `attributes` (a dictionary), `backend_config` (a text), `out` (arrays for the results, to fill and return None) and
    `call` (all there is to know: `CallSite`). Without `function` it is a decorator. A later registration replaces an
    earlier one for programs compiled from then on. Raises `Error` for a name, function or convention that cannot be
    one.
    """
    if convention == "python":
        from hilo.custom_calls.registry import register

        return register(name, function)
    from hilo.custom_calls.registry import CONVENTIONS
    from hilo.runtime.foreign import register as register_native

    if convention not in CONVENTIONS:
        raise Error(f"there is no calling convention {convention!r}; there are {', '.join(CONVENTIONS)}")
    if function is None:
        return lambda f: register_custom_call(name, f, convention=convention)
    return register_native(name, function, convention)


def register_ffi_type(name: str, type_id: Any, type_info: Any = None) -> None:
    """Register a type of the states that handlers of XLA's FFI keep between stages (convention "xla-ffi").

    `type_id` and `type_info` are capsules (as `jax.ffi.register_ffi_type` takes them), addresses or (library, symbol).
    Raises `Error` for what is none of these, or a name that another type has.
    """
    from hilo.runtime.foreign import register_ffi_type as register_type

    register_type(name, type_id, type_info)
