"""Loop IR -> LLVM IR as text, for any target that LLVM has. Imports loop and backend of hilo.

Values are numbered in order of appearance and nothing depends on addresses or hashes, so that equal functions give
equal text: caches key on it. Floating point is strict: no fast-math flags, and only an `fma` is contracted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from hilo.backend.llvm_effects import Effects
from hilo.backend.llvm_text import ModuleWriter, symbol, type_text
from hilo.backend.llvm_values import Values
from hilo.backend.nesting import run
from hilo.backend.target import Target
from hilo.loop.nodes import Block, Func, Node, VType

_METADATA = """
!0 = !{i32 1}
!1 = !{!"branch_weights", i32 1, i32 1000}
"""


def emit(funcs: Sequence[Func], target: Target, public: Collection[str] | None = None) -> str:
    """A module with `funcs` as LLVM IR text for `target`.

    A function is external unless it has the attribute `private`, or is not among `public`, if those are named.
    Functions called that are not in `funcs` are declared.
    Function attributes read: private, inline ("always", "never"), noalias (names of pointer parameters), product (for
    which there may be assembly).
    """
    from hilo.backend.cpu import data_layout
    from hilo.backend.names import names

    module = ModuleWriter(target)
    private = {f.name for f in funcs if f.attrs.get("private") or (public is not None and f.name not in public)}
    assembled: dict[Func, tuple[str, ...]] = {}
    if products := [f for f in funcs if "product" in f.attrs]:
        from hilo.backend import x86_products

        assembled = {f: lines for f in products if (lines := x86_products.assembly(f, target, f.name in private))}
    newline = "\\0A"
    parts = [f'module asm "{newline.join(lines)}"' for lines in assembled.values()]
    written = [f for f in funcs if f not in assembled]
    module.defined.update(f.name for f in written)
    parts += [_Emitter(module, f).text(f.name in private) for f in written]
    triple, cpu, features = names(target)
    layout = data_layout(triple, cpu, features)
    head = f'target triple = "{triple}"\ntarget datalayout = "{layout}"\n'
    parts += [f"{name} = internal constant [{len(v)} x i64] [{', '.join([f'i64 {x}' for x in v])}], align 8"
              for v, name in module.data.items()]  # fmt: skip
    declared = [d for name, d in sorted(module.declared.items()) if name not in module.defined]
    of_cpu = f' "target-cpu"="{cpu}"' if cpu else ""
    attributes = f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bytes * 8}"{of_cpu} }}\n'
    return "\n".join((head, *parts, *declared, attributes)) + _METADATA


class _Emitter(Values, Effects):
    """Emits one function: its frame and its structured control flow."""

    def __init__(self, module: ModuleWriter, func: Func) -> None:
        super().__init__(module)
        self.func = func
        self.results: dict[Node, list[str]] = {}  # of structured nodes

    # ---- the function
    def text(self, private: bool = False) -> str:
        f = self.func
        noalias = set(f.attrs.get("noalias") or ())
        params = []
        for i, p in enumerate(f.params):
            self.names[p] = f"%p{i}"
            extra = " noalias" if p.type.scalar == "ptr" and p.attrs["name"] in noalias else ""
            params.append(f"{type_text(p.type)}{extra} %p{i}")
        inline = {"always": " alwaysinline", "never": " noinline"}.get(f.attrs.get("inline") or "", "")
        linkage = "internal " if private else ""
        head = f"define {linkage}{type_text(f.ret)} {symbol(f.name)}({', '.join(params)}){inline} #0 {{\nentry:"
        run(self.block(f.body))
        if not f.body.nodes or f.body.nodes[-1].kind != "ret":
            self.line("ret void")
        return "\n".join((head, *self.lines, "}"))

    def block(self, block: Block) -> Iterator[Iterator]:
        """Emit a block's nodes. Yields the generators of nested structures, which `run` drives to their end."""
        structured = {"for": self.for_, "while": self.while_, "if": self.if_}
        names = self.names
        for node in block.nodes:
            kind = node.kind
            if kind in structured:
                yield structured[kind](node)
            elif kind == "result":
                names[node] = self.results[node.args[0]][node.attrs["index"]]
            else:
                name = getattr(self, "_" + kind, self.plain)(node)
                if name is not None:
                    names[node] = name

    # ---- structured control flow
    def phis(self, at: int, values: Sequence[str], types: Sequence[VType], *edges: tuple[Sequence[str], str]) -> None:
        """Put phi nodes for `values` at line `at`; each edge is the incoming values and the label they come from."""
        text = []
        for i, (v, t) in enumerate(zip(values, types, strict=True)):
            incoming = ", ".join(f"[ {names[i]}, %{label} ]" for names, label in edges)
            text.append(f"  {v} = phi {type_text(t)} {incoming}")
        self.lines[at:at] = ["\n".join(text)] if text else []

    def for_(self, node: Node) -> Iterator[Iterator]:
        lo, hi, step, *init = node.args
        initial = [self.names[v] for v in (lo, *init)]
        unroll = max(1, node.attrs.get("unroll", 1))
        if unroll > 1 and step.const is not None:
            ahead = (unroll - 1) * step.const
            limit = self.op(f"sub nsw {self.arg(hi)}, {ahead}") if hi.const is None else str(hi.const - ahead)
            initial = yield from self.loop(node, initial, limit, unroll, None)
        known = lo.const is not None and hi.const is not None and lo.const < hi.const and unroll == 1
        final = yield from self.loop(node, initial, self.names[hi], 1, True if known else None)
        self.results[node] = final[1:]

    def loop(self, node: Node, initial: list[str], limit: str, copies: int, entered: bool | None) -> Iterator:
        """for (iv = initial[0]; iv < limit; ) with `copies` of the body a turn; gives the last values."""
        lo, _, step, *init = node.args
        (body,) = node.blocks
        types = [lo.type, *(v.type for v in init)]
        iv_type = type_text(lo.type)
        flags = "nuw nsw" if lo.const is not None and lo.const >= 0 else "nsw"
        before, turn, after = self.here, self.label(), self.label()
        if entered:
            self.line(f"br label %{turn}")
        else:
            enter = self.op(f"icmp slt {iv_type} {initial[0]}, {limit}")
            self.line(f"br i1 {enter}, label %{turn}, label %{after}")
        self.start(turn)
        at = len(self.lines)
        values = [self.new() for _ in types]
        current = values
        for _ in range(copies):
            self.names.update(zip(body.params, current, strict=True))
            yield self.block(body)
            following = self.op(f"add {flags} {iv_type} {current[0]}, {self.names[step]}")
            current = [following, *(self.names[y] for y in body.yields)]
        again = self.op(f"icmp slt {iv_type} {current[0]}, {limit}")
        self.line(f"br i1 {again}, label %{turn}, label %{after}")
        last = self.here
        self.phis(at, values, types, (initial, before), (current, last))
        self.start(after)
        if entered:
            return current
        final = [self.new() for _ in types]
        self.phis(len(self.lines), final, types, (initial, before), (current, last))
        return final

    def while_(self, node: Node) -> Iterator[Iterator]:
        test, body = node.blocks
        types = [v.type for v in node.args]
        initial = [self.names[v] for v in node.args]
        before, head, turn, after = self.here, self.label(), self.label(), self.label()
        self.line(f"br label %{head}")
        self.start(head)
        at = len(self.lines)
        values = [self.new() for _ in types]
        self.names.update(zip(test.params, values, strict=True))
        self.names.update(zip(body.params, values, strict=True))
        yield self.block(test)
        self.line(f"br i1 {self.names[test.yields[0]]}, label %{turn}, label %{after}")
        self.start(turn)
        yield self.block(body)
        self.line(f"br label %{head}")
        self.phis(at, values, types, (initial, before), ([self.names[y] for y in body.yields], self.here))
        self.start(after)
        self.results[node] = values

    def if_(self, node: Node) -> Iterator[Iterator]:
        then, orelse = node.blocks
        first, second, after = self.label(), self.label(), self.label()
        rare = ", !prof !1" if "rare" in node.attrs else ""
        self.line(f"br i1 {self.names[node.args[0]]}, label %{first}, label %{second}{rare}")
        edges = []
        for label, block in ((first, then), (second, orelse)):
            self.start(label)
            yield self.block(block)
            edges.append(([self.names[y] for y in block.yields], self.here))
            self.line(f"br label %{after}")
        self.start(after)
        types = [y.type for y in then.yields]
        values = [self.new() for _ in types]
        self.phis(len(self.lines), values, types, *edges)
        self.results[node] = values

    def _ret(self, node: Node) -> None:
        self.line(f"ret {self.arg(node.args[0])}" if node.args else "ret void")
        if node.level:  # in a branch, whose end is then never reached
            self.start(self.label())
