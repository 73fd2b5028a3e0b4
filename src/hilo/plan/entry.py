"""The entry function: a program's steps as loop IR, `i32 entry(ptr ctx, ptr args, ptr results, ptr arena)`.

Kernels get their pointers through one array on the stack (the frame). `while`, `if` and `case` become native control
flow. The entry of a long program is cut into functions of bounded length, since code generation is not linear in the
length of a function. In loops, small kernels become part of the entry: a scalar that counts costs nanoseconds then.
Imports custom_calls, loop, kernels, plan.program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilo.ir.dims import Atom, Number, Size, larger, smaller
from hilo.kernels.lowered import Phase
from hilo.loop.builder import I8, I32, I64, PTR, Builder, Func, Node
from hilo.plan.program import Buffer, Call, Copy, HostCall, Program, Step, Switch, While

if TYPE_CHECKING:
    from hilo.plan.profile import Profile, Timed
    from hilo.plan.together import Together

CHUNK_STEPS = 128  # steps per outlined function
# ns of work below which no thread is woken for a kernel, and below which it runs on the calling thread anyway. A thread
# that waits for work starts within a microsecond; waking one that sleeps takes the caller about four.
INLINE_COST = 15_000.0
LITTLE_COST = 5_000.0
CHUNK_COST = 8_000.0  # ns of work that one chunk of a parallel loop should have at least
MAX_CHUNKS = 64
FEW_PIECES = 20  # of a loop, up to which it matters how two threads share them
INLINE_NODES = 128  # of a kernel that becomes part of a loop's code
INLINE_NS = 200.0  # of work that such a kernel does: beyond, the call does not matter
INLINE_TOTAL = 2048  # nodes taken in by one function: code generation is not linear
_CTX_PARALLEL_FOR, _CTX_CONSTANTS, _CTX_HOST_CALL = 0, 8, 16  # byte offsets in struct hilo_ctx
_CTX_FORMS = 56
_CLOCK = 1  # CLOCK_MONOTONIC


def chunk_units(phase: Phase) -> Number:
    """Units per chunk of a parallel loop: from shapes and cost only, so that results never depend on threads."""
    by_cost = max(1, int(CHUNK_COST / max(phase.unit_cost, 1e-3)))
    if is_little(phase) and is_shared(phase):
        return -(-phase.units // 2)
    if isinstance(phase.units, Size):
        return smaller(larger(phase.units, 1), larger(-(-phase.units // MAX_CHUNKS), by_cost))
    most = max(1, min(phase.units, max(by_cost, -(-phase.units // MAX_CHUNKS))))
    pieces = -(-phase.units // most)
    return _even(phase.units, pieces) if 1 < pieces < FEW_PIECES else most


def is_little(phase: Phase) -> bool:
    """Whether a phase is so little work that no thread is woken for it: those that are awake share it."""
    return not isinstance(phase.units, Size) and phase.units * phase.unit_cost <= INLINE_COST


def is_shared(phase: Phase) -> bool:
    """Whether threads share a phase of a known number of units."""
    return phase.units > 1 and phase.units * phase.unit_cost > LITTLE_COST


def _even(units: int, pieces: int) -> int:
    """Units per chunk for `pieces` or up to twice as many: where what one of two threads does at the most is least. One
    of few pieces too many would leave the other without work."""

    def larger_half(size: int) -> int:
        return (-(-units // size) + 1) // 2 * size

    return min((-(-units // p) for p in range(pieces, min(2 * pieces, units) + 1)), key=larger_half)


def emit_entry(program: Program, name: str = "entry", *, portable: bool = False) -> list[Func]:
    """The entry function of `program` and the functions it is cut into, callees first. `portable`: custom calls in C
    are external symbols, not addresses of this process."""
    steps = program.steps
    bound = CHUNK_STEPS if len(steps) > 2 * CHUNK_STEPS else max(1, len(steps))
    parts = [steps[i : i + bound] for i in range(0, len(steps), bound)] or [steps]
    frame = _Frame(program, portable, parts)
    if len(parts) == 1:
        return _emit(frame, name, parts[0])
    for part in parts:
        frame.add_pointers(part)
    written = [_emit(frame, f"{name}.{i}", part, outlined=True) for i, part in enumerate(parts)]
    funcs = [fs[-1] for fs in written]
    entry = Func(name, [("ctx", PTR), ("args", PTR), ("results", PTR), ("arena", PTR)], I32)
    b = Builder(entry)
    stack = frame.allocate(b)
    for f, part in zip(funcs, parts, strict=True):
        code = b.call(f.name, (*entry.params, stack), I32)
        if has_host_call(part):
            b.if_(b.cmp("ne", code, 0), lambda code=code: b.ret(code))
    b.ret(b.const(0, I32))
    return [*(f for fs in written for f in fs), entry]


def has_host_call(steps: list[Step]) -> bool:
    """Whether a call into the host may end the program within `steps`."""
    stack = list(steps)
    while stack:
        s = stack.pop()
        if isinstance(s, HostCall):
            return True
        if isinstance(s, While):
            stack += [*s.cond, *s.body]
        elif isinstance(s, Switch):
            stack += [x for branch in s.branches for x in branch]
    return False


class _Frame:
    """The layout of the stack array: pointers for the current kernel, then pointers that outlive an outlined part."""

    def __init__(self, program: Program, portable: bool, parts: list[list[Step]]) -> None:
        self.rows: dict[int, list[Step | Together]] = {}  # by the list of steps that they are
        calls = (*program.calls(), *program.hosts)
        widest = [len(c.operands) + len(c.results) + 2 for c in calls]
        if program.symbols is None and program.profile is None and len(calls) > 1:
            from hilo.plan.together import Places, Together, arrange, bodies

            places = Places(program)
            for part in (*parts, *bodies(program.steps)):
                self.rows[id(part)] = arrange(part, places, INLINE_COST, CHUNK_COST)
            widest += [s.pointers for row in self.rows.values() for s in row if isinstance(s, Together)]
        self.size = 8 * max(widest, default=1)
        direct = [h for h in program.hosts if h.is_direct]
        open_sizes = self.call_size = 0
        if program.hosts:
            from hilo.plan.calls_out import call_size, open_dims

            open_sizes = max(len(open_dims(h)) for h in program.hosts)
            self.call_size = max(map(call_size, direct), default=0)
        # Room before the pointers, where kernels and calls find run-time sizes.
        self.before = 8 * max(len(program.symbols or ()), open_sizes)
        self.symbols = {s: i for i, s in enumerate(program.symbols or ())}
        self.table = 8 * len(program.arguments)  # where in `args` the pointer to the symbols is
        self.slots: dict[Buffer, int] = {}
        self.profile: Profile | None = program.profile
        self.portable = portable
        addresses = [h.index for h in direct if h.target.convention == "c"]
        self.address_slots = {index: len(program.constants) + k for k, index in enumerate(addresses)}

    def allocate(self, b: Builder) -> Node:
        return b.gep(b.alloca(self.before + self.size), self.before)

    def add_pointers(self, steps: list[Step]) -> None:
        for s in steps:
            if isinstance(s, While):
                for r in s.results:
                    self.slots[r] = self.size
                    self.size += 8


def _emit(frame: _Frame, name: str, steps: list[Step], *, outlined: bool = False) -> list[Func]:
    """The function of `steps`, and before it those that it hands to a parallel loop."""
    params = [("ctx", PTR), ("args", PTR), ("results", PTR), ("arena", PTR)]
    if outlined:
        params.append(("frame", PTR))
    func = Func(name, params, I32)
    writer = Writer(func, frame, outlined)
    writer.steps(steps)
    writer.b.ret(writer.b.const(0, I32))
    return [*writer.units, func]


class Writer:
    """Writes steps into one function; knows where every buffer is."""

    def __init__(self, func: Func, frame: _Frame, outlined: bool) -> None:
        self.b = Builder(func)
        self.ctx, self.args, self.results, self.arena = func.params[:4]
        self.layout = frame
        self.frame = func.params[4] if outlined else frame.allocate(self.b)
        self.b.sizes = self.symbol
        self.outlined = outlined
        self.loops = 0  # around the place
        self.room = INLINE_TOTAL
        self.pointers: dict[Buffer, Node] = {}
        self.clock: Node | None = None  # memory for the time
        self.call_block: Node | None = None  # memory for a call by hilo's own convention
        self.name = func.name
        self.units: list[Func] = []  # functions for parallel loops over several steps

    def symbol(self, a: Atom) -> Node:
        """The value of a symbol, from the table behind the arguments."""
        b = self.b
        table = b.load(b.gep(self.args, self.layout.table), PTR, invariant=True)
        return b.load(b.gep(table, 8 * self.layout.symbols[a]), I64, invariant=True)

    def address(self, buffer: Buffer) -> Node:
        """The pointer to a buffer."""
        b, root = self.b, buffer.root()
        if root.kind == "temp":
            base = self.arena if root.inside is None else self.address(root.inside)
            return b.gep(base, b.i64(root.offset))
        if root.kind == "pointer":
            node = self.pointers.get(root)
            return node if node is not None else b.load(b.gep(self.frame, self.layout.slots[root]), PTR)
        table = self.args if root.kind == "argument" else self.results
        if root.kind in ("constant", "form"):
            at = _CTX_CONSTANTS if root.kind == "constant" else _CTX_FORMS
            table = b.load(b.gep(self.ctx, at), PTR, invariant=True)
        return b.load(b.gep(table, 8 * root.index), PTR, invariant=True)

    def steps(self, steps: list[Step]) -> None:
        for s in self.layout.rows.get(id(steps), steps):
            if self.layout.profile is not None and isinstance(s, Call | HostCall | Copy):
                self.timed(s, self.layout.profile)
            elif isinstance(s, Call):
                self.call(s)
            elif isinstance(s, HostCall):
                self.host_call(s)
            elif isinstance(s, Copy):
                self.copy(s)
            elif isinstance(s, While):
                self.loop(s)
            elif isinstance(s, Switch):
                self.switch(s)
            else:
                self.together(s)

    def timed(self, s: Timed, profile: Profile) -> None:
        """A step between two looks at the clock; its counters are in a constant that is the program's own."""
        from hilo.plan.profile import STEP_BYTES

        b = self.b
        before = self.now()
        if isinstance(s, Call):
            self.call(s)
        elif isinstance(s, HostCall):
            self.host_call(s)
        else:
            self.copy(s)
        spent = b.sub(self.now(), before)
        at = b.gep(self.address(profile.table), profile.numbers[id(s)] * STEP_BYTES)
        b.store(at, b.add(b.load(at, I64), spent))
        runs = b.gep(at, 8)
        b.store(runs, b.add(b.load(runs, I64), 1))

    def now(self) -> Node:
        """Nanoseconds of a clock that never goes back."""
        b = self.b
        if self.clock is None:
            self.clock = b.alloca(16)
        b.call("clock_gettime", (b.const(_CLOCK, I32), self.clock), I32)
        return b.add(b.mul(b.load(self.clock, I64), 1_000_000_000), b.load(b.gep(self.clock, 8), I64))

    def call(self, s: Call) -> None:
        b = self.b
        if self.loops and self.inlines(s):
            from hilo.loop.inline import inline

            pointers = [self.address(x) for x in s.buffers]
            for phase in s.lowered.phases:
                inline(b, phase.func, pointers, (b.i64(0), b.i64(phase.units)))
            return
        self.store_pointers(s, 0)
        for phase in s.lowered.phases:
            for k, a in enumerate(phase.func.attrs.get("sizes", ())):
                b.store(b.gep(self.frame, -8 * (k + 1)), self.symbol(a))
            if isinstance(phase.units, Size):
                self.dynamic_phase(phase)
                continue
            if phase.units <= 0:
                continue
            units, fn = b.i64(phase.units), phase.func.name
            little = is_little(phase)
            if is_shared(phase) and not (little and self.layout.portable):  # others' loops know no negative chunk
                parallel_for = b.load(b.gep(self.ctx, _CTX_PARALLEL_FOR), PTR, invariant=True)
                chunk = b.i64(-chunk_units(phase) if little else chunk_units(phase))
                b.callptr(parallel_for, (self.ctx, b.funcptr(fn), self.frame, units, chunk))
            else:
                b.call(fn, (self.frame, b.i64(0), units))

    def store_pointers(self, s: Call, at: int) -> int:
        """A kernel's pointers, from byte `at` of the frame on; gives where they end."""
        for x in s.buffers:
            self.b.store(self.b.gep(self.frame, at), self.address(x))
            at += 8
        return at

    def together(self, s: Together) -> None:
        """A parallel loop over units of several kernels, by a function that finds all their pointers in the frame."""
        func = Func(f"{self.name}.row{len(self.units)}", [("bufs", PTR), ("begin", I64), ("end", I64)])
        inner = Builder(func)
        bufs, begin, end = func.params
        at = 0
        for i, unit in enumerate(s.units):
            calls = []
            for step in unit:
                calls.append((step, at))
                at = self.store_pointers(step, at)

            def run(calls: list[tuple[Call, int]] = calls) -> None:
                for step, at in calls:
                    for phase in step.lowered.phases:
                        if phase.units > 0:
                            inner.call(phase.func.name, (inner.gep(bufs, at), inner.i64(0), inner.i64(phase.units)))

            inner.if_(inner.and_(inner.cmp("sle", begin, i), inner.cmp("sgt", end, i)), run)
        inner.ret()
        self.units.append(func)
        b = self.b
        parallel_for = b.load(b.gep(self.ctx, _CTX_PARALLEL_FOR), PTR, invariant=True)
        b.callptr(parallel_for, (self.ctx, b.funcptr(func.name), self.frame, b.i64(len(s.units)), b.i64(1)))

    def host_call(self, s: HostCall) -> None:
        """Call into the host; a code that is not 0 ends the program."""
        from hilo.plan.calls_out import direct_call, open_dims

        b = self.b
        if s.is_direct:
            direct_call(self, s)
            return
        for i, x in enumerate((*s.operands, *s.results)):
            b.store(b.gep(self.frame, 8 * i), self.address(x))
        for k, n in enumerate(open_dims(s)):
            b.store(b.gep(self.frame, -8 * (k + 1)), b.i64(n))
        fn = b.load(b.gep(self.ctx, _CTX_HOST_CALL), PTR, invariant=True)
        self.leave_on_error(b.callptr(fn, (self.ctx, b.i64(s.index), self.frame), I32))

    def leave_on_error(self, code: Node) -> None:
        b = self.b
        b.if_(b.cmp("ne", code, 0), lambda: b.ret(code))

    def inlines(self, s: Call) -> bool:
        """Whether a kernel is small enough to become part of a loop, and there is room for it."""
        phases = s.lowered.phases
        if any(isinstance(p.units, Size) or "sizes" in p.func.attrs for p in phases):
            return False
        if sum(p.units * p.unit_cost for p in phases) > INLINE_NS:
            return False
        from hilo.loop.inline import size

        nodes = sum(size(p.func, INLINE_NODES) for p in phases)
        if nodes > min(INLINE_NODES, self.room):
            return False
        self.room -= nodes
        return True

    def dynamic_phase(self, phase: Phase) -> None:
        """A phase whose number of units is known only now: so is whether it is worth other threads."""
        b, fn = self.b, phase.func.name
        units = b.i64(phase.units)

        def parallel() -> None:
            parallel_for = b.load(b.gep(self.ctx, _CTX_PARALLEL_FOR), PTR, invariant=True)
            chunk = b.i64(chunk_units(phase))
            b.callptr(parallel_for, (self.ctx, b.funcptr(fn), self.frame, units, chunk))

        def once() -> None:
            b.call(fn, (self.frame, b.i64(0), units))

        def inline() -> None:
            b.if_(b.cmp("sgt", units, 0), once)

        most = int(INLINE_COST / max(phase.unit_cost, 1e-3))
        b.if_(b.cmp("sgt", units, max(1, most)), parallel, inline)

    def copy(self, s: Copy) -> None:
        if s.source.nbytes == 0 or s.source.root() is s.target.root():
            return
        target, source = self.address(s.target), self.address(s.source)
        kinds = (s.source.root().kind, s.target.root().kind)
        if "pointer" not in kinds and kinds != ("argument", "result"):  # those may be one place: loops, donation
            self.b.memcpy(target, source, self.b.i64(s.source.nbytes))
            return

        def differ() -> None:
            self.b.memcpy(target, source, self.b.i64(s.source.nbytes))

        b = self.b
        b.if_(b.cmp("ne", b.convert("ptrtoint", target, "i64"), b.convert("ptrtoint", source, "i64")), differ)

    def switch(self, s: Switch) -> None:
        b = self.b
        narrow = s.index.nbytes == 1
        index = b.load(self.address(s.index), I8 if narrow else I32)
        if narrow:
            truth = b.cmp("ne", index, 0)
            b.if_(truth, lambda: self.steps(s.branches[0]), lambda: self.steps(s.branches[1]))
            return

        def choose(low: int, high: int) -> None:
            """One of the branches low..high by halving; as unsigned numbers, those out of range are beyond the last."""
            if high - low == 1:
                self.steps(s.branches[low])
            else:
                middle = (low + high) // 2
                b.if_(b.cmp("ult", index, middle), lambda: choose(low, middle), lambda: choose(middle, high))

        choose(0, len(s.branches))

    def loop(self, s: While) -> None:
        b = self.b
        names = (*s.params, *s.spare)
        init = [self.address(x) for x in (*s.storage, *s.spare_storage)]

        def cond(*pointers: Node) -> Node:
            self.pointers.update(zip(names, pointers, strict=True))
            self.steps(s.cond)
            return b.cmp("ne", b.load(self.address(s.pred), I8), 0)

        def body(*pointers: Node) -> list[Node]:
            self.pointers.update(zip(names, pointers, strict=True))
            self.steps(s.body)
            return [self.address(x) for x in (*s.next_params, *s.next_spare)]

        self.loops += 1
        out = b.while_(init, cond, body)
        self.loops -= 1
        for r, node in zip(s.results, out[: len(s.results)], strict=True):
            self.pointers[r] = node
            if self.outlined and r in self.layout.slots:
                b.store(b.gep(self.frame, self.layout.slots[r]), node)
