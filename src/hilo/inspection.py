"""Programs looked at between the passes: the state after a phase, a stage by name, named passes. Imports pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from hilo.errors import Error
from hilo.ir.module import Function, Module
from hilo.options import Options
from hilo.pipeline import PHASES, SOMETIMES, Pass, ProgramText, choices, compile_module, optimize, plan, stage_modules
from hilo.stages import STAGES, named, show_optimized, show_source
from hilo.trace import Trace, program_text, run_passes


def text_after(module: Module, phase: str, *, entry: str = "main", target: str = "host",
               options: Options | None = None) -> str:  # fmt: skip
    """The program as text after `phase` (one of `PHASES`, or `cse#2`-like labels that options know)."""
    from hilo.backend.target import Target
    from hilo.passes.computed_size import ComputedSize

    if phase.partition("#")[0] not in PHASES:
        raise Error(f"no phase {phase!r}; there are {', '.join(PHASES)}")
    options = Options.from_env() if options is None else options
    if phase == "codegen":
        return compile_module(module, entry=entry, target=target, options=options).text("llvm")
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
    from hilo.passes.computed_size import ComputedSize

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
    return compile_module(module, entry=entry, target=target, options=options).inspect(name)


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
