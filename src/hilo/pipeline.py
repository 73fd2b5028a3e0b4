"""The phases of a compilation, as one flat list. Imports everything below it.

Module ── legalize, inline, simplify, fuse, schedule ──> Function      (the tensor IR; PASSES)
       ── plan (kernels, buffers) ──> Program ── codegen ──> objects ── load ──> Executable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hilo.backend.forks import Unforked
from hilo.errors import Error, Unsupported
from hilo.gc_pause import gc_paused
from hilo.ir.dims import ComputedSize, estimating, typical
from hilo.ir.module import Function, Module
from hilo.ir.op import Op
from hilo.ir.types import TensorType, has_unknown_sizes
from hilo.options import Options
from hilo.trace import Trace, program_text

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.kernels.pins import Lookup
    from hilo.plan.program import Program
    from hilo.plan.report import MemoryReport
    from hilo.runtime.executable import Executable
    from hilo.runtime.image import Image

Pass = Callable[[Function], Function]
PASSES = ("inline", "shapes", "legalize", "simplify", "fuse", "schedule")  # what `hilo opt --passes` may name
NONE_DONATED: Mapping[int, int | None] = MappingProxyType({})
GIL_COST = 20_000.0  # estimated ns of a call from which other Python threads may run during it
# What native code cannot do without: `stop` and `skip` do not touch it.
REQUIRED = ("inline", "shapes", "legalize", "schedule")
SOMETIMES = ("layout",)  # parts of passes that only some programs go through
PHASES = ("input", *PASSES, "plan", "codegen")  # what `hilo compile --to` may name


def passes(options: Options, donated: Iterable[int] = ()) -> list[tuple[str, Pass]]:
    """The passes on tensor IR after inlining, in order. `donated`: parameters whose memory results may take."""
    from hilo.passes.legalize import legalize
    from hilo.passes.schedule import schedule
    from hilo.passes.simplify import simplify

    chosen: list[tuple[str, Pass]] = [("legalize", legalize)]
    if options.opt:
        chosen.append(("simplify", lambda f: simplify(f, options)))
    if options.opt and options.fuse:
        chosen.append(("fuse", estimated(lambda f: fused(f, options))))
    return [*chosen, ("schedule", estimated(lambda f: schedule(f, donated)))]


def fused(f: Function, options: Options) -> Function:
    """`f` with its ops in fusions, and attention by blocks of rows."""
    from hilo.passes.fuse import fuse
    from hilo.rewrite.regions import any_op

    products = any_op(f, lambda o: o.name == "dot_general")
    f = fuse(f, options)
    rows = any(o.kind.full_name == "hilo.fusion" and o.attrs["kind"] == "rows" for o in f.ops)
    if not pinned_switch(options, "attention") or not (products and rows):
        return f
    from hilo.passes.attention import attention

    return attention(f, "online" in options.fast_math)


def pinned_switch(options: Options, knob: str) -> bool:
    """Whether a knob that a pass consults is on: it is, unless it is pinned."""
    from hilo.kernels.pins import parse

    value = parse(options.pin, "pin (HILO_PIN)").get(knob, "on")
    if value not in ("on", "off"):
        raise Error(f"pin {knob}={value}: it is on or off")
    return value == "on"


def estimated(p: Pass) -> Pass:
    """`p`, whose choices are right for all sizes, with run-time sizes estimated."""

    def run(f: Function) -> Function:
        with estimating():
            return p(f)

    return run


def optimize(module: Module, entry: str, options: Options, trace: Trace | None = None,
             constants: Mapping[int, Any] | None = None,
             shapes: Mapping[int, Iterable[int]] | None = None,
             donated: Iterable[int] = ()) -> Function:  # fmt: skip
    """The entry function, inlined, simplified, fused and scheduled; `shapes`: of arguments that have run-time sizes;
    `donated`: parameters, numbered without those that are constants, whose memory results may take.

    After the pass that `options.stop` names, only what native code needs still runs (`REQUIRED`): the program stays
    right, so that the pass that makes it wrong can be found.
    """
    from hilo.passes.inline import inline

    trace = Trace(options) if trace is None else trace
    trace.start(module)
    if entry not in module.functions:
        raise Error(f"no function @{entry}; there are {', '.join('@' + n for n in module.functions) or 'none'}")
    f: Any = trace.step("inline", lambda _: inline(module, entry), cast("Any", module), required=True)
    f = told(f, shapes, constants)

    def refine(g: Function) -> Function:
        if not has_unknown_sizes(g) and not any(map(takes_sizes, g.ops)):
            return g
        from hilo.passes.shapes import refine as refine_shapes

        return refine_shapes(g, module)

    f = trace.step("shapes", refine, f, required=True)
    for name, p in passes(options, donated):
        f = trace.step(name, p, f, required=name in REQUIRED)
    trace.check_names((*PHASES, *SOMETIMES))
    return f


def told(f: Function, shapes: Mapping[int, Iterable[int]] | None, constants: Mapping[int, Any] | None) -> Function:
    """`f` for these shapes and values of parameters only."""
    if not shapes and not constants:
        return f
    from hilo.passes.arguments import bind, sized

    f = sized(f, shapes) if shapes else f
    return bind(f, constants) if constants else f


def takes_sizes(o: Op) -> bool:
    """Whether `o` is a custom call that stands for an op with sizes as operands (passes/shape_calls.py)."""
    return o.name == "custom_call" and str(o.attrs.get("call_target_name")).startswith("stablehlo.dynamic_")


def plan(f: Function, target: Target, donated: Mapping[int, int | None] = NONE_DONATED,
         limit: int | None = None, *, forms: bool = False) -> Program:  # fmt: skip
    """The program of a scheduled function: kernels, steps, buffers with their places. `limit`: the most bytes that
    temporaries may take, for which values are computed again; `forms`: calls may bring arguments that are not donated
    in other layouts, too (`Program.forms`)."""
    from hilo import kernels
    from hilo.kernels.lowered import steady
    from hilo.plan.assign import assign_buffers
    from hilo.plan.build import plan_program
    from hilo.plan.limits import check_sizes

    if limit is not None:
        from hilo.plan.fit import fit

        return fit(f, lambda g: plan(g, target, donated, forms=forms), limit, donated)
    check_sizes(f)
    guarded = any(o.kind.full_name == "hilo.guards" and o.attrs["guards"] for o in f.ops)
    if not guarded and not has_unknown_sizes(f):
        with steady(p for i, p in enumerate(f.params) if forms and i not in donated):
            return assign_buffers(plan_program(f, lambda op: kernels.lower(op, target)), donated)
    from hilo.kernels.dynamic import lower
    from hilo.plan.dynamic import add_sizes

    return add_sizes(assign_buffers(plan_program(f, lambda op: lower(op, target)), donated), f)


def compile_module(module: Module, *, entry: str = "main", target: str = "host", threads: int | None = None,
                   constants: Mapping[int, Any] | None = None, shapes: Mapping[int, Iterable[int]] | None = None,
                   donate: tuple[int, ...] = (), options: Options | None = None,
                   keep: Callable[[Image], None] | None = None, trace: Trace | None = None,
                   forms: bool = False) -> Executable:  # fmt: skip
    """See `hilo.compile`. `keep` is given the program as data, if it can be loaded from that alone; `trace` takes down
    the states; `forms`: as `plan` has it."""
    from hilo.runtime.settings import settings

    options = Options.from_env() if options is None else options
    machine, threads = settings(target, threads, options)
    trace = Trace(options) if trace is None else trace
    with Unforked(), gc_paused():
        donated: dict[int, int | None] = {}
        if entry in module.functions and (donate or any(module[entry].arg_attrs)):
            from hilo.passes.arguments import check_donate, given_away

            kept = [i for i in range(len(module[entry].params)) if i not in (constants or {})]
            wishes = given_away(module[entry])
            asked = [*check_donate(donate, kept, entry), *(i for i in wishes if i in kept)]
            donated = {kept.index(d): wishes.get(d) for d in asked}
        try:
            f = optimize(module, entry, options, trace, constants, shapes, donated)
        except ComputedSize:
            return compile_stages(module, entry, machine, threads, options, constants, shapes)
        return _build(f, machine, threads, options, trace, donated, module, keep, forms)


def compile_stages(module: Module, entry: str, machine: Target, threads: int, options: Options,
                   constants: Mapping[int, Any] | None,
                   shapes: Mapping[int, Iterable[int]] | None) -> Executable:  # fmt: skip
    """An executable of a program with sizes that it computes, from one of each stage (passes/stages.py)."""
    from hilo.passes.inline import inline
    from hilo.passes.stages import stages
    from hilo.runtime.chain import Chain
    from hilo.runtime.executable import Executable

    whole = told(inline(module, entry), shapes, constants)
    parts: list[tuple[Executable, tuple[int, ...]]] = []
    for stage in stages(whole, module):
        trace = Trace(options)
        f = optimize(module.replace({**module.functions, entry: stage.function}), entry, options, trace)
        parts.append((_build(f, machine, threads, options, trace, {}, module), stage.inputs))
    executables = [e for e, _ in parts]

    def text(phase: str) -> str | bytes:
        from hilo.stages import NAMES, STAGES, named, show_source

        if phase in NAMES and STAGES[name := named(phase)].of == "source":
            return show_source(name, module, entry)
        shown = [e.inspect(phase) for e in executables]
        if any(isinstance(s, bytes) for s in shown):
            raise Unsupported(f"@{entry} computes sizes: it is {len(shown)} programs, and has no {phase}")
        return "\n".join(map(str, shown))

    return Executable(
        Chain(parts, threads),
        name=entry,
        arg_types=executables[0].arg_types,
        result_types=executables[-1].result_types,
        memory=max((e.memory() for e in executables), key=lambda m: m.peak),
        texts=text,
        cost=sum(e.cost for e in executables),
        profile=[p for e in executables for p in e._profile],
    )


def stage_modules(module: Module, entry: str) -> list[Module]:
    """The module with each stage of a program, whose sizes it computes, as `entry`."""
    from hilo.passes.inline import inline
    from hilo.passes.stages import stages

    return [module.replace({**module.functions, entry: s.function}) for s in stages(inline(module, entry), module)]


def compile_function(f: Function, *, target: str = "host", threads: int | None = None,
                     options: Options | None = None) -> Executable:  # fmt: skip
    """An executable of a function that has gone through the passes already (for tests and for looking at values)."""
    from hilo.backend.target import Target
    from hilo.runtime.machine import default_threads

    options = Options.from_env() if options is None else options
    with gc_paused():
        return _build(f, Target.named(target), threads or default_threads(), options, Trace(options), {})


def _build(f: Function, machine: Target, threads: int, options: Options, trace: Trace,
           donated: Mapping[int, int | None], module: Module | None = None,
           keep: Callable[[Image], None] | None = None, forms: bool = False) -> Executable:  # fmt: skip
    """Plan, generate code, load. `donated`: arguments, and the result that each is meant for, if that is said;
    `module` has the functions that custom calls name; `keep`, `forms`: as `compile_module` has them."""
    from hilo.codegen import generate
    from hilo.runtime import _native
    from hilo.runtime.executable import Executable

    machine = machine.relaxed(options.fast_math) if options.opt else machine.plain()
    with trace.phase("plan") as made:
        with choices(options, machine):
            program = plan(f, machine, donated, options.memory_limit, forms=forms)
        if options.verify:
            from hilo.plan.check import check_plan

            check_plan(program)
        made.append(ProgramText(program))
        kernels = [c.lowered for c in program.calls()]
        trace.part("kernels", 0.0, f"{len(kernels)} kernels, {len(set(map(id, kernels)))} different")
    profile = None
    if options.profile:
        from hilo.plan.profile import Profile

        profile = Profile(program)
    with trace.phase("codegen"):
        code = generate(program, machine, options, trace)
    trace.finish()
    calls = [(h.op, h.target) for h in program.hosts]
    is_native = any(t.convention != "python" for _, t in calls)
    cost = estimated_cost(program)
    may_take_long = cost > GIL_COST or program.has_loops()
    if keep is not None and not calls and program.symbols is None and profile is None:
        from hilo.runtime.image import Image

        types = tuple(p.tensor for p in f.params), tuple(r.tensor for r in f.results)
        keep(Image(f.name, *types, code.objects, program.constants, program.arena_size, program.aliases, cost,
                   may_take_long, program.form_numbers()))  # fmt: skip
    native = _native.Program(
        code.loaded.address["entry"],
        [_spec(p.tensor) for p in f.params],
        [_spec(r.tensor) for r in f.results],
        name=f.name,
        arena_size=program.arena_size if program.symbols is None else 0,  # the program itself says how large
        constants=program.constants,
        **_hosts(calls, module),
        addresses=[t.addresses[-1] for _, t in calls if t.convention == "c"],
        threads=threads,
        aliases=program.aliases,
        release_gil=may_take_long or is_native,
        keep=code.loaded,
        forms=program.form_numbers(),
        **_sizes(program, code.loaded.address),
    )

    @cache
    def memory() -> MemoryReport:
        from hilo.plan.report import memory_report

        return memory_report(program, code=sum(map(len, code.objects)))

    def text(phase: str) -> str | bytes:
        from hilo.stages import NAMES, STAGES, named, show_optimized, show_source

        if phase in NAMES and (of := STAGES[phase := named(phase)].of) != "code":
            source = module if module is not None else Module({f.name: f})
            return show_source(phase, source, f.name) if of == "source" else show_optimized(phase, f, source.name)
        if phase == "memory":
            return memory().details()
        if phase in ("memory.svg", "memory_before.svg"):
            return memory().svg(assigned=phase == "memory.svg")
        if phase in ("c", "object", "header"):
            return portable_code(f, phase, machine, options)
        if phase in ("llvm", "asm", "kernels"):
            return code.text(phase)
        return program_text(trace.after(phase))

    return Executable(
        native,
        name=f.name,
        arg_types=f.param_types,
        result_types=f.result_types,
        memory=memory,
        texts=text,
        cost=cost,
        keep=(code.loaded,),
        profile=() if profile is None else (profile,),
    )


def portable_code(f: Function, stage: str, machine: Target, options: Options) -> str | bytes:
    """A stage of the code of a function that has gone through the passes, for use outside of this process, on whatever
    machine; "c" is for any."""
    from hilo.backend.names import title
    from hilo.backend.target import Target
    from hilo.codegen import Code
    from hilo.kernels.pins import unasked
    from hilo.plan.header import header, symbol_of

    if stage == "c":  # the C emitter has no vectors: kernels made for one lane
        with unasked():
            return Code(plan(f, Target.named("scalar")), Target.named("scalar"), portable=True).text("c")
    machine = machine.relaxed(options.fast_math) if options.opt else machine.plain()
    with choices(options, machine):
        program = plan(f, machine, limit=options.memory_limit)
    if stage.startswith("memory"):
        from hilo.plan.report import memory_report

        report = memory_report(program)
        return report.details() if stage == "memory" else report.svg(assigned=stage == "memory.svg")
    if stage in ("object", "header") and program.symbols is not None:
        raise Unsupported("an object file has no run-time sizes: compile the program for shapes of its arguments")
    code = Code(program, machine, portable=True)
    if stage == "header":
        return header(program, title(machine))
    return code.object_file(symbol_of(program)) if stage == "object" else code.text(stage)


def choices(options: Options, machine: Target) -> AbstractContextManager[None]:
    """Kernels made in the block follow what is pinned and what was tuned; plain code knows neither."""
    from hilo.kernels.pins import parse, pinned, unasked

    pins = parse(options.pin, "pin (HILO_PIN)")
    return pinned(pins, tuned_values(options, machine)) if options.opt else unasked()


def tuned_values(options: Options, machine: Target) -> Lookup | None:
    """What `hilo tune` found for kernels on this machine, if anything was."""
    from hilo.kernels.pins import content
    from hilo.runtime.stores import is_tuned, tuned_of

    if not (options.tuned and options.opt and is_tuned(options.cache_dir)):
        return None
    store = tuned_of(options, machine)
    return lambda op: store.get(content(op))


def estimated_cost(program: Program) -> float:
    """Estimated nanoseconds of one call on one thread (a loop's body counts once)."""
    return sum(typical(p.units) * p.unit_cost for c in program.calls() for p in c.lowered.phases)


def _spec(t: TensorType) -> tuple[np.dtype, tuple[int, ...]]:
    return t.dtype.np, tuple(n if isinstance(n, int) else -1 for n in t.shape)


def _hosts(calls: list[tuple[Op, Any]], module: Module | None) -> dict[str, Any]:
    """What the runtime must know of a program that calls out."""
    if not calls:
        return {}
    from hilo.runtime.hosts import failure, host_calls

    return {"host_calls": host_calls(calls, module), "failure": failure(calls)}


def _sizes(program: Program, address: Mapping[str, int]) -> dict[str, Any]:
    """What the runtime must know of a program with run-time sizes."""
    if program.symbols is None:
        return {}
    from hilo.plan.dynamic import explainer, sources

    return {"shapes": address["shapes"], "symbols": sources(program), "explain": explainer(program)}


class ProgramText:
    """A plan as text, written when somebody looks."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def __str__(self) -> str:
        from hilo.plan.show import show

        return show(self.program)
