"""The edges of a program as PJRT has them: element types, layouts, memory kinds, donation; no tuples, no tokens.

`prepare` puts what a layout asks for into the program, as transposes that the compiler fuses: native code takes and
gives dense row-major arrays whose dims stand in the order of memory. Imports ir, formats, rewrite, errors, siblings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from hilo.errors import Error, Unsupported
from hilo.ir.module import Function, Module
from hilo.ir.op import PARAMETER, Attrs, Op
from hilo.ir.types import TOKEN, TensorType, TupleType, Type
from hilo.pjrt.element_types import TOKEN_CODE, code
from hilo.pjrt.request import Layout, Request
from hilo.pjrt.tokens import without_tokens
from hilo.record import field, record

DEVICE: Final = "device"  # the kind of memory of values that ask for none
KINDS: Final = (DEVICE, "pinned_host", "unpinned_host")
_LAYOUT: Final = re.compile(r"\{([\d,\s]*)(?::(?:E\(\d+\))?)?\}")

Place = tuple[int, tuple[int, ...], Layout]  # PJRT's number of the element type, dims, minor to major


@record
class Boundary:
    """What goes into a program and comes out. `must_donate`: arguments that the program gives up for a result."""

    arguments: list[Place] = field(default_factory=list)
    results: list[Place] = field(default_factory=list)
    argument_kinds: list[str] = field(default_factory=list)
    result_kinds: list[str] = field(default_factory=list)
    must_donate: list[int] = field(default_factory=list)


def entry_of(module: Module) -> str:
    """The function that clients call: `main`, or the only one that is not private."""
    if "main" in module.functions:
        return "main"
    public = [n for n, f in module.functions.items() if f.visibility != "private"]
    if len(public) != 1:
        names = ", ".join("@" + n for n in module.functions)
        raise Error(f"the program has no function @main; there are {names or 'none'}")
    return public[0]


def prepare(module: Module, request: Request) -> tuple[Module, Function, Boundary]:
    """`module` with its entry as native code takes it, the entry as it was but without tuples, and its edges.

    Raises `Unsupported` for what cannot cross them.
    """
    name = entry_of(module)
    whole = without_tuples(module[name])
    f = without_tokens(whole)
    b = Boundary()
    if len(request.argument_layouts) not in (0, len(f.params)):
        raise Error(f"the options give {len(request.argument_layouts)} argument layouts, but @{name} has "
                    f"{len(f.params)} arguments")  # fmt: skip
    own_arguments, own_results = _own_layouts(module, f)
    layouts = request.argument_layouts or own_arguments
    b.arguments, b.argument_kinds = _sides(f, f.param_types, f.arg_attrs, layouts, "argument")
    layouts = request.result_layouts if len(request.result_layouts) == len(f.results) else own_results
    b.results, b.result_kinds = _sides(f, f.result_types, f.result_attrs, layouts, "result")
    b.results = [(TOKEN_CODE, (), ()) if r.type is TOKEN else place
                 for r, place in zip(whole.results, b.results, strict=True)]  # fmt: skip
    b.must_donate = [i for i, a in enumerate(f.arg_attrs) if "tf.aliasing_output" in a]
    native = in_memory_order(f, [p[2] for p in b.arguments], [p[2] for p in b.results])
    if native is module[name]:
        return module, f, b
    return module.replace({**module.functions, name: native}), f, b


def _sides(f: Function, types: Sequence[Type], attrs: Sequence[Attrs], layouts: Sequence[Layout | None],
           side: str) -> tuple[list[Place], list[str]]:  # fmt: skip
    """The places of all arguments or results, and their kinds of memory."""
    places: list[Place] = []
    kinds: list[str] = []
    for i, t in enumerate(types):
        what = f"{side} {i} of @{f.name}"
        own = attrs[i] if i < len(attrs) else Attrs()
        if not isinstance(t, TensorType):
            raise Unsupported(f"{what} is of type {t}, which is no array", loc=f.loc)
        if not t.is_static:
            raise Unsupported(f"{what} is {t}: programs whose sizes are not known do not run through PJRT, whose "
                              "clients must refine them first", loc=f.loc)  # fmt: skip
        wanted = _layout(_text(own.get("mhlo.layout_mode")), what)
        if wanted is None and i < len(layouts):
            wanted = layouts[i]
        order = row_major(t.rank) if wanted is None else wanted
        if sorted(order) != list(range(t.rank)):
            raise Error(f"{what} is {t}, which cannot have the layout {{{','.join(map(str, order))}}}", loc=f.loc)
        places.append((code(t.dtype, what), t.shape, order))
        kinds.append(_kind(_text(own.get("mhlo.memory_kind")), what))
    return places, kinds


def _own_layouts(module: Module, f: Function) -> tuple[Sequence[Layout | None], Sequence[Layout | None]]:
    """The layouts that a program in HLO says in its header."""
    from hilo.formats.hlo_text.signature import SIGNATURE

    if SIGNATURE not in module.attrs:
        return (), ()
    from hilo.formats.hlo_text.heading import signature

    shapes, result = signature(module, f)
    leaves = [leaf.layout for s in (*shapes, result) for leaf in s.leaves()]
    orders = [None if x is None else x.minor_to_major for x in leaves]
    return orders[: len(f.params)], orders[len(f.params) :]


def row_major(rank: int) -> Layout:
    """The layout in which the last dim is the innermost."""
    return tuple(range(rank - 1, -1, -1))


def _text(attribute: Any) -> str:
    """The value of a string attribute, which is kept as its MLIR text; "" if there is none."""
    if attribute is None:
        return ""
    from hilo.formats.mlir_text.lexer import unquote

    text = str(attribute)
    return unquote(text) if text.startswith('"') else text


def _layout(mode: str, what: str) -> Layout | None:
    """The layout that a layout mode asks for: `default`, `auto`, or minor to major as in `{0,1}`."""
    if mode in ("", "default", "auto"):
        return None
    m = _LAYOUT.fullmatch(mode.replace(" ", ""))
    if m is None:
        raise Unsupported(f"{what}: hilo has no layout {mode!r}")
    return tuple(int(n) for n in m[1].split(",") if n)


def _kind(kind: str, what: str) -> str:
    if kind not in ("", *KINDS):
        raise Unsupported(f"{what}: hilo has no memory of kind {kind!r}; there are {', '.join(KINDS)}")
    return kind or DEVICE


def in_memory_order(f: Function, arguments: Sequence[Layout], results: Sequence[Layout]) -> Function:
    """`f` with parameters and results whose dims stand in the order of memory."""
    if all(o == row_major(len(o)) for o in (*arguments, *results)):
        return f
    from hilo.rewrite.ops import transpose

    new: dict[Op, Op] = {}
    params: list[Op] = []
    ops: list[Op] = []
    for p, order in zip(f.params, arguments, strict=True):
        t = p.tensor.with_shape(tuple(p.tensor.shape[d] for d in reversed(order)))
        params.append(p if order == row_major(len(order)) else Op(PARAMETER, (), p.attrs.replace(type=t), t, p.loc))
        if params[-1] is not p:
            memory = order[::-1]
            new[p] = transpose(params[-1], permutation=tuple(memory.index(d) for d in range(len(memory))))
            ops.append(new[p])
    for o in f.ops[len(f.params) :]:
        if any(x in new for x in o.operands):
            new[o] = o.with_operands([new.get(x, x) for x in o.operands])
        ops.append(new.get(o, o))
    out = []
    for r, order in zip(f.results, results, strict=True):
        value = new.get(r, r)
        if order != row_major(len(order)):
            value = transpose(value, permutation=order[::-1])
            ops.append(value)
        out.append(value)
    return f.replace(params=params, ops=[*params, *ops], results=out)


def without_tuples(f: Function) -> Function:
    """`f` whose parameters and results are the parts of tuples one by one, as PJRT's clients give and take them."""
    if not any(isinstance(v.type, TupleType) for v in (*f.params, *f.results)):
        return f
    from hilo.rewrite.ops import get_tuple_element, tuple_

    params: list[Op] = []
    made: list[Op] = []

    def parameter_of(t: Type, loc: Any) -> Op:
        if isinstance(t, TupleType):
            made.append(tuple_(*[parameter_of(part, loc) for part in t]))
            return made[-1]
        params.append(Op(PARAMETER, (), Attrs(index=len(params), type=t), t, loc))
        return params[-1]

    new = {p: parameter_of(p.type, p.loc) for p in f.params}
    ops = made
    for o in f.ops[len(f.params) :]:
        if any(x in new for x in o.operands):
            new[o] = o.with_operands([new.get(x, x) for x in o.operands])
        ops.append(new.get(o, o))
    results: list[Op] = []

    def take_apart(values: Iterable[Op]) -> None:
        for v in values:
            if isinstance(v.type, TupleType):
                parts = [get_tuple_element(v, index=i) for i in range(len(v.type))]
                ops.extend(parts)
                take_apart(parts)
            else:
                results.append(v)

    take_apart(new.get(r, r) for r in f.results)
    kept = {} if len(params) != len(f.params) else {"arg_attrs": f.arg_attrs}
    if len(results) == len(f.results):
        kept["result_attrs"] = f.result_attrs
    return Function(f.name, params, [*params, *ops], results, attrs=f.attrs, visibility=f.visibility, loc=f.loc, **kept)
