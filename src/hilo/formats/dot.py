"""A function as a graph in Graphviz's language, for people: `dot -Tsvg` draws it. Imports ir, rewrite, hlo_text.

One node per op, with its type; coloured by kind. A fusion is a box of its ops, the bodies of loops and branches are
boxes in the box of their op. Constants that are one value stand in the ops that use them, since edges from them would
cross the whole picture. A tooltip says the op's name, place and attributes. The text is the same for the same program.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from hilo.formats.hlo_text.locations import name_and_place
from hilo.ir.module import Function
from hilo.ir.op import GET, PARAMETER, Array, Op
from hilo.ir.types import Results, Type, result_types
from hilo.rewrite.regions import regions

#: Colours of nodes by kind of op: background, and frame.
COLORS: Final[dict[str, tuple[str, str]]] = {
    "parameter": ("#fff1d6", "#d19a2a"),
    "constant": ("#f0f0f0", "#9a9a9a"),
    "result": ("#ffffff", "#555555"),
    "elementwise": ("#fffbe0", "#c9b458"),
    "contraction": ("#cfe0f7", "#3a6fb7"),
    "convolution": ("#c9e8ee", "#2b8797"),
    "reduction": ("#e6d9f2", "#7d55a8"),
    "data movement": ("#dcefd8", "#5a9a4d"),
    "control flow": ("#ffdfc7", "#cf6a1d"),
    "custom call": ("#f8d3d3", "#bf3b3b"),
    "other": ("#dfe7ea", "#607d8b"),
}
#: Frames of the boxes of fusions, by what kernel they are for.
FUSIONS: Final = {"loop": "#c9b458", "rows": "#7d55a8", "contraction": "#3a6fb7", "attention": "#2b8797",
                  "online": "#2b8797"}

_KINDS: Final[dict[str, str]] = {
    **dict.fromkeys(("dot", "dot_general", "ragged_dot", "einsum", "unary_einsum"), "contraction"),
    **dict.fromkeys(("convolution", "dynamic_conv"), "convolution"),
    **dict.fromkeys(("reduce", "reduce_window", "select_and_scatter", "scan", "all_reduce", "reduce_scatter"),
                    "reduction"),
    **dict.fromkeys(("broadcast", "scatter", "torch_index_select", "tuple", "get_tuple_element", "all_gather",
                     "all_to_all", "collective_permute", "collective_broadcast", "dynamic_broadcast_in_dim",
                     "dynamic_gather", "dynamic_reshape", "copy"), "data movement"),
    **dict.fromkeys(("while", "if", "case", "call", "composite", "after_all", "create_token", "optimization_barrier",
                     "async_start", "async_done"), "control flow"),
    **dict.fromkeys(("custom_call", "infeed", "outfeed", "send", "recv"), "custom call"),
    "constant": "constant",
    "map": "elementwise",
}  # fmt: skip
#: Attributes that a node shows: what the op does along which axes.
_SHOWN: Final = {
    "dimensions": "dims", "dimension": "dim", "permutation": "order", "broadcast_dimensions": "to dims",
    "iota_dimension": "dim", "comparison_direction": "", "call_target_name": "", "callee": "", "fft_type": "",
    "lhs_contracting_dimensions": "lhs contracts", "rhs_contracting_dimensions": "rhs contracts",
    "start_indices": "from", "limit_indices": "to", "strides": "by", "slice_sizes": "sizes", "window_strides": "stride",
    "window_dimensions": "window", "rng_algorithm": "", "rng_distribution": "", "k": "k",
}  # fmt: skip
_FEW: Final = 8  # elements of a constant that are shown
_LONG: Final = 48  # characters of a line in a node
_LONG_TOOLTIP: Final = 600
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def print_function(f: Function) -> str:
    """The function as DOT text: valid for any program."""
    g = _Graph()
    title = f"{f.name}: {len(f.params)} parameters, {_count(f)} ops"
    g.line(f"digraph {quote(f.name or 'main')} {{")
    g.line(f'  graph [label={quote(title)}, labelloc=t, fontname="Helvetica", fontsize=14, nodesep=0.2, ranksep=0.35, '
           f'tooltip=" "];')  # fmt: skip
    g.line('  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=10, margin="0.08,0.04", '
           "height=0.2];")  # fmt: skip
    g.line('  edge [fontname="Helvetica", fontsize=8, arrowsize=0.6, color="#707070"];')
    g.function(f, 1, is_whole=True)
    g.line("}")
    for source, target, attrs in g.edges:
        g.lines.insert(-1, f"  {source} -> {target}{attrs};")
    return "\n".join(g.lines) + "\n"


def kind_of(op: Op) -> str:
    """The kind of an op, one of `COLORS`."""
    if op.kind is PARAMETER:
        return "parameter"
    name = op.name
    if name in _KINDS:
        return _KINDS[name]
    if op.kind.scalar is not None or (name.startswith("broadcast_") and op.kind.dialect == "chlo"):
        return "elementwise"
    return "data movement" if op.kind.element is not None else "other"


def quote(text: str) -> str:
    """A quoted string of DOT that shows `text` as it is; newlines end lines."""
    plain = _CONTROL.sub("\ufffd", text)
    plain = plain.replace("\\", "\\\\").replace("&", "&amp;").replace('"', '\\"').replace("\n", "\\n")
    return f'"{plain}"'


def _count(f: Function) -> int:
    return sum(1 for o in _all_ops(f) if o.kind is not PARAMETER and o.kind is not GET)


def _all_ops(f: Function) -> Iterator[Op]:
    stack = [f]
    while stack:
        for o in stack.pop().ops:
            yield o
            if o.name in _BODIES or o.name == "fusion":
                stack.extend(regions(o))


_BODIES: Final = ("while", "if", "case")  # ops whose regions are drawn
Port = tuple[str, str]  # a node, and which of its results ("" if it has one)


class _Graph:
    """The text so far. Every value is known by the node that it comes from."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.edges: list[tuple[str, str, str]] = []
        self.count = 0
        self.boxes = 0

    def line(self, text: str) -> None:
        self.lines.append(text)

    def function(self, f: Function, depth: int, *, is_whole: bool = False) -> None:
        """All of a function but for unused parameters of regions, then its results."""
        ports: dict[Op, Port] = {}
        used = {x for o in f.ops for x in o.operands} | set(f.results)
        for k, p in enumerate(f.params):
            if is_whole or p in used:
                ports[p] = self.node(depth, f"{'parameter' if is_whole else 'arg'} {k}", p, "parameter"), ""
        self.ops(f, depth, ports)
        for k, r in enumerate(f.results):
            label = "result" if len(f.results) == 1 else f"result {k}"
            node = self.plain_node(depth, f"{label}\n{_type(r.type)}", "result", _type(r.type))
            self.edge(ports, r, node, depth)

    def ops(self, f: Function, depth: int, ports: dict[Op, Port]) -> None:
        for o in f.ops:
            if o.kind is PARAMETER or _is_inline(o):
                continue
            if o.kind is GET:
                if o not in ports:
                    node, _ = ports[o.operands[0]]
                    ports[o] = node, str(o.attrs["index"])
            elif o.name == "fusion":
                self.fusion(o, depth, ports, f)
            elif o.name in _BODIES:
                self.control(o, depth, ports)
            else:
                node = self.node(depth, _label(o), o, kind_of(o))
                ports[o] = node, ""
                for x in o.operands:
                    if not _is_inline(x):
                        self.edge(ports, x, node, depth)

    def fusion(self, o: Op, depth: int, ports: dict[Op, Port], f: Function) -> None:
        """A box of the body's ops: edges go to them, and come from them, through it."""
        body, kind = o.attrs["body"], o.attrs["kind"]
        inner = {p: self.value(ports, x, depth) for p, x in zip(body.params, o.operands, strict=True)}
        self.open(depth, f"{kind} fusion", _tooltip(o), FUSIONS.get(kind, "#607d8b"), "#fafafa")
        self.ops(body, depth + 1, inner)
        found = [self.value(inner, r, depth + 1) for r in body.results]
        self.close(depth)
        if not isinstance(o.type, Results):
            ports[o] = found[0]
        for g in f.ops:
            if g.kind is GET and g.operands[0] is o:
                ports[g] = found[g.attrs["index"]]

    def control(self, o: Op, depth: int, ports: dict[Op, Port]) -> None:
        """A box with the op itself, and in it a box for each of its bodies."""
        for x in o.operands:
            self.value(ports, x, depth)  # constants stand before the box
        self.open(depth, o.name, _tooltip(o), COLORS["control flow"][1], "#fffaf5")
        node = self.node(depth + 1, _label(o), o, "control flow")
        ports[o] = node, ""
        for x in o.operands:
            self.edge(ports, x, node, depth + 1)
        for label, region in _named_regions(o):
            self.open(depth + 1, label, "", "#cfa27f", "#ffffff")
            self.function(region, depth + 2)
            self.close(depth + 1)
        self.close(depth)

    # -- pieces ---------------------------------------------------------------------------------

    def node(self, depth: int, label: str, o: Op, kind: str) -> str:
        return self.plain_node(depth, "\n".join(filter(None, (label, _types(o.type)))), kind, _tooltip(o))

    def plain_node(self, depth: int, label: str, kind: str, tooltip: str) -> str:
        name = f"n{self.count}"
        self.count += 1
        fill, color = COLORS[kind]
        shape = ", shape=ellipse" if kind in ("parameter", "result") else ""
        self.line(f'{"  " * depth}{name} [label={quote(label)}, fillcolor="{fill}", color="{color}"{shape}, '
                  f"tooltip={quote(tooltip or label)}];")  # fmt: skip
        return name

    def open(self, depth: int, label: str, tooltip: str, color: str, fill: str) -> None:
        indent = "  " * depth
        self.line(f"{indent}subgraph cluster_{self.boxes} {{")
        self.boxes += 1
        self.line(f'{indent}  graph [label={quote(label)}, fontsize=10, style="filled,rounded", color="{color}", '
                  f'fillcolor="{fill}", tooltip={quote(tooltip or label)}];')  # fmt: skip

    def close(self, depth: int) -> None:
        self.line(f"{'  ' * depth}}}")

    def value(self, ports: dict[Op, Port], x: Op, depth: int) -> Port:
        """Where a value comes from; constants that stand in their users get a node if something else needs them."""
        if x not in ports:
            ports[x] = self.node(depth, _label(x), x, kind_of(x)), ""
        return ports[x]

    def edge(self, ports: dict[Op, Port], x: Op, target: str, depth: int) -> None:
        source, index = self.value(ports, x, depth)
        label = f"label={quote(index)}, " if index else ""
        self.edges.append((source, target, f" [{label}tooltip={quote(_type(x.type))}]"))


def _is_inline(o: Op) -> bool:
    """Whether a value stands in the ops that use it: a constant whose elements are all the same."""
    return o.name == "constant" and isinstance(value := o.attrs.get("value"), Array) and _is_one_value(value.data)


def _is_one_value(a: np.ndarray) -> bool:
    """Whether all elements (there are some) have the same bits; most arrays show at once that they have not."""
    if a.size < 2:
        return a.size == 1
    first, few = a[(0,) * a.ndim].tobytes(), a.flat[:64].tobytes()
    return few == first * min(64, a.size) and a.tobytes() == first * a.size


def _named_regions(o: Op) -> list[tuple[str, Function]]:
    if o.name == "while":
        return [("condition", o.attrs["cond"]), ("body", o.attrs["body"])]
    if o.name == "if":
        return [("true", o.attrs["true_branch"]), ("false", o.attrs["false_branch"])]
    return [(f"branch {k}", r) for k, r in enumerate(o.attrs["branches"])]


def _label(o: Op) -> str:
    """The op's name, what it does, and the constants that it takes."""
    lines = [o.name]
    if o.name == "constant":
        lines.append(_value(o.attrs.get("value")))
    if (region := next(regions(o), None)) is not None and o.name not in _BODIES:
        lines.append(_region(region))
    for name, label in _SHOWN.items():
        if (value := o.attrs.get(name)) not in (None, ()):
            text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
            lines.append(_short(f"{label} {text}".strip()))
    if o.name not in _BODIES:
        for k, x in enumerate(o.operands):
            if _is_inline(x):
                lines.append(_short(f"operand {k} = {_value(x.attrs['value'])}"))
    return "\n".join(lines)


def _region(f: Function) -> str:
    own = [o.name for o in f.ops if o.kind is not PARAMETER]
    return own[0] if len(own) == 1 else f"region of {len(own)} ops"


def _value(value: Any) -> str:
    """A constant's elements, or what there is to say of many."""
    if not isinstance(value, Array):
        return ""
    a = value.data
    if _is_one_value(a):
        return _element(a.flat[0])
    return _short(", ".join(map(_element, a.flat))) if a.size <= _FEW else f"{a.size:,} elements"


def _element(x: Any) -> str:
    if isinstance(x, bool | np.bool_):
        return str(bool(x)).lower()
    return f"{x:.6g}" if isinstance(x, np.floating) else str(x)


def _type(t: Type) -> str:
    return _short(repr(t))


def _types(t: Type) -> str:
    return _short("\n".join(_type(x) for x in result_types(t)[:6]), 6 * _LONG)


def _short(text: str, most: int = _LONG) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


def _tooltip(o: Op) -> str:
    """The op with its attributes, what the program calls it, and where that stands."""
    name, place = name_and_place(o.loc)
    attrs = ", ".join(f"{k}={_attr(v)}" for k, v in o.attrs.own().items() if k != "type")
    kind = f"{o.kind.full_name} {attrs}".strip()
    where = f"{place.file}:{place.line}" if place is not None else ""
    return "\n".join(filter(None, (_short(kind, _LONG_TOOLTIP), _short(name, 200), _short(where, 200))))


def _attr(v: Any) -> str:
    if isinstance(v, Array):
        return f"{v.type!r}"
    if isinstance(v, Function):
        return _region(v)
    if isinstance(v, tuple):
        return f"[{', '.join(map(_attr, v))}]"
    return _short(str(v), 80)


__all__ = ["COLORS", "kind_of", "print_function", "quote"]
