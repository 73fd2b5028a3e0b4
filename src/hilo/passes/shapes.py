"""Shape refinement: every value of a function gets a type whose unknown sizes are expressions (`ir.dims.Size`).

Imports ir, ops, rewrite, passes.shape_values, passes.shape_rules.

Sizes come from the shapes of the arguments and from integers among them. Small integer tensors are followed through the
arithmetic that programs do with sizes (passes/shape_values.py), so that ops that take shapes as operands become their
plain forms (passes/shape_rules.py). What must hold of the sizes (equal sizes, `shape_assertion`s) becomes a guard,
checked once per call. Where two sizes must be equal, one takes the other's place in the whole function.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from hilo.custom_calls.shape_operands import shape_operands
from hilo.errors import Error, Unsupported, VerifyError
from hilo.ir import dims
from hilo.ir.dims import Atom, ComputedSize, Guard, Number, Size
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import GET, PARAMETER, Attrs, Op, Opaque
from hilo.ir.registry import lookup
from hilo.ir.types import Dim, Results, TensorType, TupleType, Type, equations, holds_unknown_sizes, result_types
from hilo.passes.custom_calls import sized_call
from hilo.passes.inline import inline
from hilo.passes.quantized import lower_quantized
from hilo.passes.shape_calls import CALLS
from hilo.passes.shape_rules import RULES
from hilo.passes.shape_values import value_of

COMPUTED = "values that the program computes"
MOST_ELEMENTS = 16  # of an integer argument that may hold sizes
_REGIONS_OF_VALUES = ("stablehlo.while", "stablehlo.if", "stablehlo.case")


def refine(f: Function, module: Module | None = None) -> Function:
    """`f` with symbolic sizes in all types, and an op that holds what must be true of them; no op is quantized then.

    Raises `Error` if sizes can never agree, `ComputedSize` for a size that depends on computed values.
    """
    f = lower_quantized(f)
    known: dict[Atom, Number] = {}
    guards: dict[Any, Guard] = {}
    while True:
        r = Refiner(known, module)
        out = r.function(f, parameters(f, r))
        found, r.guards = r.guards, []
        again = r.solve()
        known = r.known
        for g in (*r.guards, *(found if not again else ())):  # the last walk knows most of what ops ask for
            guards.setdefault((g.condition, g.message), g)
        if not again:
            break
    checks = Op(lookup("hilo.guards"), (), Attrs(guards=tuple(guards.values())), Results(()), f.loc)
    return out.replace(ops=[*out.params, checks, *out.ops[len(out.params) :]])


def parameters(f: Function, r: Refiner) -> list[Op]:
    """Parameters whose unknown axes are symbols, and whose elements are, if they are few integers."""
    out = []
    for i, p in enumerate(f.params):
        t = p.type
        if isinstance(t, TensorType) and not t.is_static:
            shape = [d if isinstance(d, int) else r.now(dims.axis_size(i, k, d.bound)) for k, d in enumerate(t.shape)]
            for k, d in enumerate(t.shape):
                if not isinstance(d, int) and d.bound is not None:
                    n = dims.axis_size(i, k)
                    message = f"argument {i}: axis {k} must be at most {d.bound}, but is {{0}}"
                    r.guard(dims.apply("le", n, d.bound), message, n)
            t = TensorType(t.dtype, shape)
        new = parameter(i, t, p.loc)
        if isinstance(t, TensorType) and t.is_static and t.dtype.is_int and t.size <= MOST_ELEMENTS:
            elements = [r.now(dims.element(i, k)) for k in range(t.size)]
            r.values[new] = np.array(elements, object).reshape(t.shape)
        out.append(new)
    return out


class Refiner:
    """One walk over a function. `known`: what symbols stand for; grows by `solve` from the equations of the walk."""

    def __init__(self, known: dict[Atom, Number], module: Module | None = None) -> None:
        self.known = known
        self.module = module
        self.values: dict[Op, np.ndarray] = {}  # integers and sizes that small tensors hold
        self.guards: list[Guard] = []
        self.equations: list[tuple[Number, Number, str]] = []
        self.op: Op | None = None
        self.made_by: list[Op] = []  # tensors with elements that are not known, by number
        self.original: dict[Op, Op] = {}  # the op that a refined one stands for

    def now(self, n: Number) -> Number:
        """`n` with what is known of its symbols."""
        return dims.evaluate(n, lambda a: self.known[a] if a in self.known else _itself(a)) if self.known else n

    def guard(self, condition: Number, message: str, *values: Number) -> None:
        if (isinstance(condition, int) and condition) or dims.is_computed(condition):
            return
        self.guards.append(Guard(condition, message, values))

    def equal(self, a: Number, b: Number) -> None:
        """Two sizes must be equal, or the program has no meaning."""
        if a is b or (isinstance(a, int) and isinstance(b, int) and a == b):
            return
        where = f"{self.op.kind.full_name}{_at(self.op)}" if self.op is not None else "the results"
        if (isinstance(a, int) and isinstance(b, int)) or isinstance(a - b, int):
            raise VerifyError(f"sizes {a} and {b} can never be equal", loc=self.op.loc if self.op else None,
                              op=self.op.kind.full_name if self.op else None)  # fmt: skip
        self.equations.append((a, b, where))

    def solve(self) -> bool:
        """Take symbols out by the equations of this walk; whether there were any."""
        found = False
        for a, b, where in self.equations:
            a, b = self.now(a), self.now(b)
            if a is b or a == b or dims.is_computed(a - b):
                continue
            message = f"sizes do not agree: {where} needs {a} = {b}, but they are {{0}} and {{1}}"
            self.guard(dims.apply("eq", a, b), message, a, b)
            pick = _solved(a, b)
            if pick is None:
                continue
            symbol, value = pick
            self.known = {s: _replaced(v, symbol, value) for s, v in self.known.items()}
            self.known[symbol] = value
            found = True
        return found

    def size_is(self, n: Number) -> Number:
        """`n`, which must be known and not negative, as a size."""
        if not isinstance(n, int) and not n.is_known:
            raise Unsupported(f"a size of the result that nothing says: {self.op and self.op.type}")
        if isinstance(n, int) and n < 0:
            raise VerifyError(f"a size of {n}")
        if isinstance(n, Size) and n.lo < 0:
            where = f"{self.op.kind.full_name}{_at(self.op)}" if self.op is not None else ""
            self.guard(dims.apply("le", 0, n), f"{where} has a negative size: {n} is {{0}}", n)
        return n

    def integers(self, o: Op, what: str) -> list[Number]:
        """The elements of a small integer tensor that are sizes, in order."""
        found = self.values.get(o)
        if found is None:
            raise ComputedSize(f"{what} depends on {COMPUTED}", causes=[self.original.get(o, o)])
        return list(found.flat)

    def sizes(self, o: Op, what: str) -> list[Number]:
        """The same, where they must be known before the program runs."""
        found = self.integers(o, what)
        self.known_before(what, found)
        return found

    def known_before(self, what: str, sizes: Iterable[Number]) -> None:
        """Raise `ComputedSize` if one of the sizes is computed."""
        found = {s: None for n in sizes if dims.is_computed(n) for s in dims.symbols(n)}
        computed = [s.source[1] for s in found if s.source is not None and s.source[0] == "computed"]
        if computed:
            causes = dict.fromkeys(self.original.get(o, o) for o in map(self.made_by.__getitem__, computed))
            raise ComputedSize(f"{what} depends on {COMPUTED}", causes=tuple(causes))

    # ---- the walk
    def function(self, f: Function, params: Sequence[Op]) -> Function:
        """`f` on other parameters, with refined types."""
        new: dict[Op, Op] = dict(zip(f.params, params, strict=True))
        ops: list[Op] = list(params)
        placed = dict.fromkeys(ops)
        for o in f.ops:
            if o.kind is PARAMETER:
                continue
            self.op = o
            try:
                made = self.one(o, [new[x] for x in o.operands])
            except Error as e:
                raise e.at(o.loc, o.kind.full_name) from None
            if made is None:
                continue
            new[o] = made
            self.original[made] = o
            for x in _fresh(made, placed):
                ops.append(x)
                placed[x] = None
            if made not in self.values:
                self.note_value(made)
        self.op = None
        results = [new[x] for x in f.results]
        for r, declared in zip(results, f.result_types, strict=True):
            self.agree(r.type, declared)
        return f.replace(params=params, ops=ops, results=results)

    def note_value(self, o: Op) -> None:
        """The elements of `o`, if it is a small integer tensor: followed where they are known, else by their name."""
        found = value_of(o, self.values)
        t = o.type
        few = isinstance(t, TensorType) and t.is_static and t.dtype.kind in "iub" and 0 < t.size <= MOST_ELEMENTS
        if found is None and few and o.kind is not PARAMETER:
            found = np.full(o.shape, None, object)
        if found is None:
            return
        for k, n in enumerate(found.flat):
            if n is None:
                found.flat[k] = dims.computed(len(self.made_by), k)
        self.made_by.append(o)
        self.values[o] = found

    def agree(self, a: Type, b: Type) -> None:
        """Static sizes of a declared type must come out."""
        if isinstance(a, TensorType) and isinstance(b, TensorType) and a.rank == b.rank:
            for m, n in zip(a.shape, b.shape, strict=True):
                if isinstance(n, int) or n.is_known:
                    self.equal(m, n)

    def one(self, o: Op, operands: list[Op]) -> Op | None:
        """`o` on refined operands; None for an op that only asserts something."""
        name = o.kind.full_name
        if o.kind is GET:
            t = result_types(operands[0].type)[o.attrs["index"]]
            return Op(GET, tuple(operands), o.attrs, t, o.loc)
        if name == "stablehlo.custom_call" and o.attrs["call_target_name"] == "shape_assertion":
            self.assertion(o, operands)
            return None
        static = all(isinstance(t, TensorType) and t.is_static for x in operands for t in result_types(x.type))
        static = static and all(t.is_static if isinstance(t, TensorType) else not isinstance(t, TupleType)
                                for t in result_types(o.type))  # fmt: skip
        static = static and not (name in _REGIONS_OF_VALUES and holds_unknown_sizes(o))
        call = CALLS.get(o.attrs["call_target_name"]) if name == "stablehlo.custom_call" else None
        if call is None and name == "stablehlo.custom_call" and shape_operands(o.attrs):
            call = sized_call
        if call is not None:
            made = call(self, o, operands)
        elif static:
            made = o.with_operands(operands)
        elif name in RULES:
            made = RULES[name](self, o, operands)
        elif name in _REGIONS_OF_VALUES:
            made = self.structured(o, operands)
        else:
            made = self.plain(o, operands)
        for t in result_types(made.type):
            if isinstance(t, TensorType) and any(not isinstance(d, int) and not d.is_known for d in t.shape):
                raise Unsupported(f"the size of {t} does not follow from the sizes of the operands")
            if isinstance(t, TensorType):
                self.known_before("a size", t.shape)
        return made

    def plain(self, o: Op, operands: list[Op]) -> Op:
        """An op whose own rule infers its type from sizes like from numbers; what the rule finds equal must be so."""
        given = o.attrs.own()
        open_: dict[Dim, Number] = {}  # unknown sizes of the declared type, and what the rule finds them equal to
        if o.kind.typed and "type" in given:
            given["type"] = _each(given["type"], lambda d: d if isinstance(d, int) or d.is_known else Dim("?", d.bound))
            open_ = {d: d for t in result_types(given["type"]) if isinstance(t, TensorType) for d in t.shape
                     if isinstance(d, Dim) and not d.is_known}  # fmt: skip
        with equations() as found:
            t = o.kind.infer(*[x.type for x in operands], **given)
        for a, b in (*found, *((b, a) for a, b in found)):
            if a in open_ and (isinstance(b, int) or b.is_known):
                open_[a] = b
        for a, b in found:
            self.known_equal(open_.get(a, a), open_.get(b, b))
        if open_:
            t = _each(t, lambda d: open_.get(d, d))
        for a, b in zip(result_types(t), result_types(o.type), strict=True):
            self.agree(a, b)
        attrs = o.attrs.replace(type=t) if open_ else o.attrs
        return Op(o.kind, tuple(operands), attrs, t, o.loc)

    def known_equal(self, a: Any, b: Any) -> None:
        if all(isinstance(x, int) or x.is_known for x in (a, b)):
            self.equal(a, b)

    def structured(self, o: Op, operands: list[Op]) -> Op:
        """`while`, `if`, `case`: regions on refined parameters; sizes do not change in a loop or differ by branch."""
        first = 1 if o.kind.name != "while" else 0
        carried = len(o.attrs["body"].results) if not first else 0

        def region(f: Function) -> Function:
            given = operands[first:]
            params = [parameter(i, x.type, p.loc) for i, (p, x) in enumerate(zip(f.params, given, strict=True))]
            for i, (p, x) in enumerate(zip(params, given, strict=True)):
                if x in self.values and (first or i >= carried):
                    self.values[p] = self.values[x]
            outer, out = self.op, self.function(f, params)
            self.op = outer
            return out

        attrs: dict[str, Any] = {}
        for k, v in o.attrs.items():
            if isinstance(v, Function):
                attrs[k] = region(v)
            elif isinstance(v, tuple) and v and isinstance(v[0], Function):
                attrs[k] = tuple(map(region, v))
        branches = [g for v in attrs.values() for g in (v if isinstance(v, tuple) else (v,))]
        bodies = [attrs["body"]] if "body" in attrs else branches
        wanted = bodies[0].result_types if first else tuple(x.type for x in operands[:carried])
        for g in bodies:
            for a, b in zip(g.result_types, wanted, strict=True):
                self.agree(a, b)
        types = tuple(wanted)
        t = Results(types) if isinstance(o.type, Results) else types[0]
        return Op(o.kind, tuple(operands), Attrs(o.attrs, **attrs), t, o.loc)

    def called(self, o: Op) -> Function:
        """The function that a custom call names."""
        names = o.attrs.get("called_computations") or ("",)
        name = str(names[0]).removeprefix("@")
        if self.module is None or name not in self.module.functions:
            raise Unsupported(f"there is no function {name} to call")
        return inline(self.module, name)

    def assertion(self, o: Op, operands: list[Op]) -> None:
        (holds,) = self.integers(operands[0], "the condition of a shape assertion")
        self.known_before("the condition of a shape assertion", [holds])
        message = o.attrs.get(".error_message", o.attrs.get("error_message", "a shape assertion failed"))
        message = _text(message) if isinstance(message, Opaque) else str(message)
        shown = [self.integers(x, "a value in a shape assertion's message")[0] for x in operands[1:]]
        self.guard(holds, message, *shown)


def _each(t: Any, change: Callable[[Any], Any]) -> Any:
    """A type whose tensors have the sizes that `change` gives for theirs."""
    if isinstance(t, Results):
        return Results([_each(x, change) for x in t.types])
    return t.with_shape([change(d) for d in t.shape]) if isinstance(t, TensorType) else t


def _fresh(o: Op, placed: dict[Op, None]) -> list[Op]:
    """`o` and the ops under it that are not `placed`, operands first; rules make a few of them."""
    order: dict[Op, None] = {}
    stack = [(o, False)]
    while stack:
        x, ready = stack.pop()
        if x in placed or x in order:
            continue
        if ready:
            order[x] = None
        else:
            stack.append((x, True))
            stack.extend((y, False) for y in reversed(x.operands))
    return list(order)


def _text(literal: str) -> str:
    """The text of a string literal in MLIR's syntax."""
    inside = literal.strip().removeprefix('"').removesuffix('"')
    plain = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
    return re.sub(
        r"\\([0-9A-Fa-f]{2}|.)", lambda m: plain[m[1]] if m[1] in plain else chr(int(m[1], 16)), inside
    )


def _replaced(n: Number, symbol: Atom, value: Number) -> Number:
    """`n` with `value` in the place of `symbol`."""
    return dims.evaluate(n, lambda a: value if a is symbol else _itself(a))


def _itself(a: Atom) -> Number:
    return Size.of({(a,): 1})


def _at(o: Op) -> str:
    return f" at {o.loc}" if o.loc is not None and str(o.loc) else ""


def _solved(a: Number, b: Number) -> tuple[Atom, Number] | None:
    """A symbol and what it must be for a = b, if the equation is linear in one. Elements of arguments go first."""
    d = a - b
    picks: list[tuple[Atom, Number]] = []
    for m, c in d.terms.items():
        if len(m) == 1 and m[0].source is not None and abs(c) == 1:
            rest = (d - _itself(m[0]) * c) * -c
            if m[0] not in dims.symbols(rest):
                picks.append((m[0], rest))
    picks.sort(key=lambda p: (p[0].source[0] != "value", isinstance(p[1], Size), [-x for x in p[0].source[1:]]))  # type: ignore[index]
    return picks[0] if picks else None
