"""Programs looked at between the passes: the state after a phase, a stage by name, named passes. Imports pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from hilo.errors import Error, Unsupported
from hilo.gc_pause import gc_paused
from hilo.ir.module import Function, Module
from hilo.options import Options
from hilo.pipeline import (
    PHASES,
    SOMETIMES,
    Pass,
    ProgramText,
    choices,
    compile_module,
    optimize,
    plan,
    portable_code,
    stage_modules,
)
from hilo.stages import STAGES, named, show_optimized, show_source
from hilo.trace import Trace, program_text, run_passes


def text_after(module: Module, phase: str, *, entry: str = "main", target: str = "host",
               options: Options | None = None) -> str:  # fmt: skip
    """The program as text after `phase` (one of `PHASES`, or `cse#2`-like labels that options know)."""
    from hilo.backend.target import Target
    from hilo.ir.dims import ComputedSize

    if phase.partition("#")[0] not in PHASES:
        raise Error(f"no phase {phase!r}; there are {', '.join(PHASES)}")
    options = Options.from_env() if options is None else options
    if phase == "codegen":
        return str(inspect_module(module, "llvm", entry=entry, target=target, options=options))
    trace = Trace(options)
    try:
        f = optimize(module, entry, options, trace)
    except ComputedSize:
        parts = stage_modules(module, entry)
        return "\n".join(text_after(m, phase, entry=entry, target=target, options=options) for m in parts)
    if phase == "plan":
        machine = Target.named(target) if options.opt else Target.named(target).plain()
        with choices(options, machine):
            return str(ProgramText(plan(f, machine)))
    return program_text(trace.after(phase))


def inspect_module(module: Module, stage: str, *, entry: str = "main", target: str = "host",
                   elide: int | None = None, options: Options | None = None) -> str | bytes:  # fmt: skip
    """See `hilo.inspect`."""
    from hilo.ir.dims import ComputedSize

    options = Options.from_env() if options is None else options
    of = STAGES[name := named(stage)].of
    if entry not in module.functions:
        raise Error(f"no function @{entry}; there are {', '.join('@' + n for n in module.functions) or 'none'}")
    if of == "source":
        return show_source(name, module, entry, elide)
    if of == "optimized":
        try:
            return show_optimized(name, optimize(module, entry, options), module.name, elide)
        except ComputedSize:
            pass  # several programs, which an executable shows
    elif name in ("object", "header") or is_foreign(target, options):
        return code_elsewhere(module, name, entry, target, options)
    return compile_module(module, entry=entry, target=target, options=options).inspect(name)


def is_foreign(target: str, options: Options) -> bool:
    """Whether code for the target that is asked for does not run on this machine."""
    from hilo.backend.target import Target

    return not Target.host().includes(Target.named(target if target != "host" else options.target))


def code_elsewhere(module: Module, stage: str, entry: str, target: str, options: Options) -> str | bytes:
    """A stage of the code of a program that is not to run in this process, and maybe not on this machine."""
    from hilo.backend.target import Target
    from hilo.ir.dims import ComputedSize

    machine = Target.named(target if target != "host" else options.target)
    with gc_paused():
        try:
            f = optimize(module, entry, options)
        except ComputedSize:
            raise Unsupported(f"@{entry} computes sizes: it is several programs, for this machine only") from None
        return portable_code(f, stage, machine, options)


def optimized_text(module: Module, *, entry: str = "main", passes: Iterable[str] | None = None) -> str:
    """The entry function as StableHLO after the passes up to fusion, or after those named."""
    from hilo.passes.cse import cse
    from hilo.passes.dce import dce
    from hilo.passes.fuse import fuse
    from hilo.passes.inline import inline
    from hilo.passes.legalize import legalize
    from hilo.passes.schedule import schedule
    from hilo.passes.simplify import simplify

    options = Options.from_env()
    known: dict[str, Pass] = {
        "legalize": legalize,
        "simplify": lambda f: simplify(f, options),
        "cse": cse,
        "dce": dce,
        "fuse": lambda f: fuse(f, options),
        "schedule": schedule,
    }
    names = list(passes) if passes is not None else ["inline", "legalize", "simplify"]
    for n in names:
        if n != "inline" and n not in known:
            raise Error(f"no pass {n!r}; there are inline, {', '.join(known)}")
    if entry not in module.functions:
        raise Error(f"no function @{entry}; there are {', '.join('@' + n for n in module.functions) or 'none'}")
    trace = Trace(options)
    trace.start(module)
    if "inline" in names:
        f: Any = trace.step("inline", lambda _: inline(module, entry), cast("Any", module))
        f = f if isinstance(f, Function) else module[entry]
    else:
        f = module[entry]
    f = run_passes(f, [(n, known[n]) for n in names if n != "inline"], options, trace)
    trace.check_names((*PHASES, *SOMETIMES))
    trace.finish()
    return program_text(f)
