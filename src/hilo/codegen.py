"""From a planned program to loaded code: names, who makes the code, grouping into LLVM modules, the cache of objects.

Imports plan, backend, runtime.

Where hilo's own generator knows the machine, it makes all functions that it covers, in one object: that takes less time
than to look an object up. LLVM makes the others, and is not loaded if there are none. Kernels are named by their order,
so that the same program gives the same text; LLVM gets a few kernels at a time (a module costs a millisecond whatever
is in it), each group cached by its text. What several programs share (the micro-kernels of contractions) forms groups
of its own where there is a cache.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from hilo.errors import Unsupported
from hilo.ir.dims import typical
from hilo.loop.nodes import Func
from hilo.options import Options
from hilo.plan.entry import chunk_units, emit_entry
from hilo.plan.program import Program
from hilo.record import record
from hilo.runtime.stores import cache_of

if TYPE_CHECKING:
    from hilo.backend.cpu import Spent
    from hilo.backend.jit import LoadedCode
    from hilo.backend.target import Target
    from hilo.runtime.cache import Cache
    from hilo.trace import Trace

GROUP = 16  # functions per LLVM module
OUTER_NS = 4000  # of a kernel, beside which the code that calls it does not matter
SHORT = 64  # nodes of all functions of a program without loops, beside which calling the program takes far longer
MOST_CONSTANTS = 1 << 30  # bytes of constants in an object file: its code must reach them


class Code:
    """The functions of a program, who makes each, their LLVM texts, and the code once made and loaded."""

    def __init__(self, program: Program, target: Target, *, portable: bool = False, cached: bool = True,
                 by_llvm: bool = True) -> None:  # fmt: skip
        """`by_llvm`: LLVM makes all of it; `cached`, `portable`: as `named` and `group` have them."""
        self.program = program
        self.target = target
        if portable:
            check_portable(program)
        self._functions = named(program, portable=portable, ready={} if portable else ready_made())
        self._cached = cached
        covers = (lambda f: False) if portable or by_llvm else own_generator(program, target)
        self.share([f for f in self._functions.all() if covers(f)])
        self.objects: list[bytes]
        self.loaded: LoadedCode

    def share(self, own: list[Func]) -> None:
        """Let hilo's own generator make some functions, and LLVM the others."""
        self.own = own
        self.groups = group(self._functions.without(own), self.program, cached=self._cached, quick=self.is_quick)

    def is_quick(self, f: Func) -> bool:
        """Whether LLVM's quick ways do for `f`: most of its time is spent in what it calls, or it is assembly."""
        if self.target.arch != "x86_64":
            return False
        if f.attrs.get("outer"):
            return True
        if "product" not in f.attrs:
            return False
        from hilo.backend.x86_products import covers

        return covers(f, self.target)

    def levels(self, most: int = 1) -> list[int]:
        """How much LLVM is to do about each group: at most `most`."""
        return [0 if all(map(self.is_quick, g)) else most for g in self.groups]

    def llvm_texts(self) -> list[str]:
        from hilo.backend import llvm

        texts = [llvm.emit(g, self.target) for g in self.groups]
        if texts:
            texts[-1] = self.linked(texts[-1])  # the entry, if it makes such custom calls, is in the last group
        return texts

    def linked(self, text: str) -> str:
        """A module with the custom calls in LLVM IR that it needs."""
        modules = dict.fromkeys(h.target.text for h in self.program.hosts if h.target.convention == "llvm")
        if not modules:
            return text
        from hilo.backend.link import link

        return link(text, modules, self.target)

    def object_file(self, symbol: str) -> bytes:
        """All functions in one object file, of which others see `symbol`, the entry, and its table of constants.

        Raises `Unsupported` for constants that are too large.
        """
        from hilo.backend import cpu, llvm, llvm_data

        program = self.program
        if sum(c.nbytes for c in program.constants) > MOST_CONSTANTS:
            raise Unsupported(f"constants of more than {MOST_CONSTANTS >> 20} MiB fit in no object file")
        functions = named(program, portable=True, entry=symbol).all()
        text = self.linked(llvm.emit(functions, self.target, {symbol}))
        return cpu.compile(text + llvm_data.arrays(f"{symbol}_constants", program.constants), self.target)

    def text(self, form: str) -> str:
        """ "llvm", "asm", "kernels" (a table), or "c", if the target has no vectors."""
        if form == "kernels":
            return kernel_table(self.program)
        if form == "c":
            from hilo.backend import c

            if any(h.target.convention == "llvm" for h in self.program.hosts):
                raise Unsupported("a custom call in LLVM IR cannot be written as C; compile the program to an object")
            return c_note(self.program) + c.emit([f for g in self.groups for f in g])
        if form == "llvm" and self.own:  # what LLVM would be told
            from hilo.backend import llvm

            return "\n".join([llvm.emit(self.own, self.target), *self.llvm_texts()])
        texts = self.llvm_texts()
        if form == "asm":
            from hilo.backend import cpu

            texts = [cpu.assembly(t, self.target, n) for t, n in zip(texts, self.levels(), strict=True)]
            if self.own:
                from hilo.backend.x86 import listing

                texts.insert(0, listing(self.own, self.target))
        return "\n".join(texts)

    def by_generator(self) -> list[bytes]:
        """The object that hilo's own generator makes, if it makes any. What it fails at, which would be a mistake in
        it, LLVM makes instead, with a warning."""
        if not self.own:
            return []
        from hilo.backend import x86

        try:
            return [x86.compile(self.own, self.target, None if self.groups else set(self.symbols))]
        except MemoryError:
            raise
        except Exception as e:  # whatever it is: the program can be had all the same
            import warnings

            warnings.warn(f"hilo's code generator failed, LLVM makes the code instead; please report this "
                          f"({type(e).__name__}: {e})", RuntimeWarning, stacklevel=2)  # fmt: skip
            self.share([])
            return []

    @property
    def symbols(self) -> list[str]:
        """Names of the functions that the runtime calls."""
        return ["entry"] if self.program.symbols is None else ["entry", "shapes"]


def c_note(program: Program) -> str:
    """A comment that says how to call a program in C."""
    args, results = (", ".join(f"{b.type}" for b in bs) or "none" for bs in (program.arguments, program.results))
    constants = ", ".join(f"{c.dtype.name}{list(c.shape)}" for c in program.constants) or "none"
    symbols = dict.fromkeys(h.target.symbol for h in program.hosts if h.is_direct)
    calls = "".join(f"\n   calls:   int32_t {s}(const struct hilo_call *), see hilo_custom_call.h" for s in symbols)
    return f"""/* {program.name}: int32_t entry(ctx, args, results, arena), 0 is success.
   Build with -ffp-contract=off, link with -lm.
   ctx:     struct {{ void (*parallel_for)(void *ctx, void (*fn)(void **bufs, int64_t begin, int64_t end),
                                          void **bufs, int64_t units, int64_t chunk);
                     void **constants; int32_t (*host_call)(void *ctx, int64_t index, void **bufs); int64_t threads;
                     char *message; int64_t message_size, failed; }} (these three for custom calls)
            parallel_for runs fn over [0, units), `chunk` units at a time, in any order
   args:    pointers to {args}
   results: pointers to {results}
   arena:   {program.arena_size} bytes, 64-byte aligned
   constants: {constants}{calls} */
"""


def check_portable(program: Program) -> None:
    """Raise `Unsupported` for a custom call that only works inside of this process."""
    for h in program.hosts:
        if h.target.convention == "llvm" or (h.target.convention == "c" and h.target.symbol):
            continue
        what = "has no symbol: register it as (library, symbol)"
        if h.target.convention != "c":
            what = f"has the convention {h.target.convention!r}; outside of Python only 'c' and 'llvm' work"
        raise Unsupported(f"custom call target {h.target.name!r} {what}", loc=h.op.loc, op=h.op.kind.full_name)


def ready_made() -> dict[str, int]:
    """Addresses of the functions that programs of this process do not bring along."""
    from hilo.runtime import _native

    return _native.ready()


def own_generator(program: Program, target: Target) -> Callable[[Func], bool]:
    """Which functions of a program hilo's own generator makes."""
    from hilo.backend import x86

    if not x86.is_machine(target):
        return lambda f: False
    if any(h.target.convention == "llvm" for h in program.hosts):  # the entry becomes one with LLVM IR
        return lambda f: f.name != "entry" and x86.covers(f, target)
    return lambda f: x86.covers(f, target)


@record
class Functions:
    """The functions of a program, named: what kernels call, kernels, and the entry, which is the last of its list."""

    helpers: list[Func]
    kernels: list[Func]
    entry: list[Func]

    def all(self) -> list[Func]:
        return [*self.helpers, *self.kernels, *self.entry]

    def without(self, funcs: Collection[Func]) -> Functions:
        if not funcs:
            return self
        gone = set(map(id, funcs))
        return Functions(*([f for f in fs if id(f) not in gone] for fs in (self.helpers, self.kernels, self.entry)))


def named(program: Program, *, portable: bool = False, entry: str = "entry", ready: Collection[str] = ()) -> Functions:
    """The functions of a program, the main one called `entry`. Those that are `ready` are left out, and kernels that
    have become part of the entry. `portable`: for use outside of this process."""
    helpers: dict[str, Func] = {}
    kernels: list[Func] = []
    seen: set[int] = set()
    for call in program.calls():
        if id(call.lowered) in seen:
            continue
        seen.add(id(call.lowered))
        for phase in call.lowered.phases:
            for h in phase.helpers:
                if not (h.attrs.get("ready") and h.name in ready):
                    helpers.setdefault(h.name, h)
            if id(phase.func) not in seen:  # a kernel may go through a phase again
                seen.add(id(phase.func))
                phase.func.name = f"k{len(kernels)}_{call.op.name}"
                kernels.append(phase.func)
    last = emit_entry(program, entry, portable=portable)
    if program.symbols is not None:
        from hilo.plan.dynamic import emit_shapes

        last.append(emit_shapes(program))
    needed = called(last)
    return Functions(list(helpers.values()), [k for k in kernels if k.name in needed], last)


def group(functions: Functions, program: Program, *, cached: bool = True,
          quick: Callable[[Func], bool] = lambda f: False) -> list[list[Func]]:  # fmt: skip
    """Functions of a program in groups for LLVM; the last one holds the entry, if that is among them.
    `cached`: what other programs share is apart, so that they find it in the cache. All of a group are `quick`, or none
    needs to be."""
    helpers, kernels, last = functions.helpers, functions.kernels, functions.entry
    if not helpers and is_short([*kernels, *last], program):
        for f in (*kernels, *last):
            f.attrs["outer"] = True
    elif last and is_outer(last, program):
        last[-1].attrs["outer"] = True
    kernels = [*(h for h in helpers if h.attrs.get("rare") or not cached), *kernels]
    shared = [[h] for h in helpers if not h.attrs.get("rare")] if cached else []
    parts = [k for k in kernels if not quick(k)], [k for k in kernels if quick(k)]
    if not all(map(quick, last)):
        parts = parts[::-1]
    own = [part[i : i + GROUP] for part in parts for i in range(0, len(part), GROUP)]
    if last and own and len(own[-1]) + len(last) <= GROUP and quick(own[-1][0]) == all(map(quick, last)):
        own[-1] = [*own[-1], *last]
    elif last:
        own.append(last)
    return [*shared, *own]


def is_outer(entry: Sequence[Func], program: Program) -> bool:
    """Whether a program's time is spent in its kernels: these are called one after the other and take their time."""
    if len(entry) > 1 or any(h.target.convention == "llvm" for h in program.hosts):
        return False
    stack = [entry[0].body]
    while stack:
        for n in stack.pop().nodes:
            if n.kind in ("for", "while"):
                return False
            stack.extend(n.blocks)
    kernels = [call.lowered.phases for call in program.calls()]
    return sum(typical(p.units) * p.unit_cost for phases in kernels for p in phases) >= OUTER_NS * len(kernels)


def is_short(funcs: Iterable[Func], program: Program) -> bool:
    """Whether a program is over as soon as it is called: its functions have no loops and hardly any nodes."""
    if any(h.target.convention == "llvm" for h in program.hosts):
        return False
    nodes = [n for f in funcs for n in f.body.nodes]
    return len(nodes) <= SHORT and not any(n.blocks for n in nodes)


def called(funcs: Iterable[Func]) -> set[str]:
    """Names of the functions that `funcs` call or take the address of."""
    names: set[str] = set()
    stack = [f.body for f in funcs]
    while stack:
        for n in stack.pop().nodes:
            stack.extend(n.blocks)
            if n.kind == "call":
                names.add(n.attrs["callee"])
            elif n.kind == "funcptr":
                names.add(n.attrs["name"])
    return names


def generate(program: Program, target: Target, options: Options, trace: Trace | None = None) -> Code:
    """Make (or find) and load the code of a program."""
    from hilo.backend import jit

    start = perf_counter()
    store = cache_of(options) if options.cache or options.cache_explain else None
    code = Code(program, target, cached=store is not None and not store.is_silent, by_llvm=options.codegen == "llvm")
    code.objects = code.by_generator()
    if trace is not None and code.own:
        trace.part("code", perf_counter() - start,
                   f"{len(code.own)} functions by hilo, {sum(map(len, code.objects)) >> 10} KB")  # fmt: skip
    if code.groups:
        code.objects += by_llvm(code, store, options, trace)
    start = perf_counter()
    code.loaded = jit.load(code.objects, code.symbols, ready_made())
    if trace is not None:
        trace.part("load", perf_counter() - start, f"{sum(map(len, code.objects)) >> 10} KB of code")
    return code


def by_llvm(code: Code, store: Cache | None, options: Options, trace: Trace | None) -> list[bytes]:
    """The objects of a program's groups, made by LLVM or found."""
    from hilo.backend.cpu import Spent

    start = perf_counter()
    texts = code.llvm_texts()
    emitted = perf_counter()
    spent = Spent()
    objects = [object_for(text, code.target, store, n, spent)
               for text, n in zip(texts, code.levels(options.opt), strict=True)]  # fmt: skip
    made = perf_counter()
    if trace is not None:
        kinds = sum(len(g) for g in code.groups)
        trace.part("emit", emitted - start,
                   f"{kinds} functions in {len(texts)} modules, {sum(map(len, texts)) >> 10} KB of text")  # fmt: skip
        trace.part("parse", spent.parse, f"{spent.modules} modules by LLVM")
        trace.part("select", spent.select, f"{len(texts) - spent.modules} modules from the cache")
        trace.part("cache", made - emitted - spent.parse - spent.select)
    return objects


def object_for(text: str, target: Target, store: Cache | None, opt: int = 1, spent: Spent | None = None) -> bytes:
    """The object code of an LLVM module's text, from the cache if it is there."""
    from hilo.backend import cpu

    level = min(opt, cpu.OPT_LEVEL)
    if store is None or store.is_silent:
        return cpu.compile(text, target, level, spent)
    from hilo.backend.llvm_file import version
    from hilo.backend.names import names
    from hilo.runtime.cache import Key

    _, name, features = names(target)
    key = Key.of(text, cpu=name, features=features, llvm=version(), opt=str(level))
    data = store.get(key)
    if data is None:
        data = cpu.compile(text, target, level, spent)
        store.put(key, data)
    return data


def kernel_table(program: Program) -> str:
    """Each kernel call: name, units, chunk, estimated microseconds, operands and results."""
    lines = [f"{'kernel':34}{'units':>9}{'chunk':>8}{'us':>10}  buffers"]
    for call in program.calls():
        types = ", ".join(repr(o.type) for o in call.op.operands)
        for p in call.lowered.phases:
            lines.append(f"{p.func.name:34}{p.units!s:>9}{chunk_units(p)!s:>8}{p.units * p.unit_cost / 1e3:>10.1f}  "
                         f"({types}) -> {call.op.type!r}")  # fmt: skip
    return "\n".join(lines)
