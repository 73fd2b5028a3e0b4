"""Portable artifacts: modules as VHLO of a target version, in the bytecode that this version wrote.

One pass over the program fills the tables and writes the IR section; the file is put together at the end
(sections.py). Imports its siblings, mlir_text and ir.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hilo.errors import Error
from hilo.formats.bytecode import container
from hilo.formats.bytecode.emit import NOTHING, Need, Tables
from hilo.formats.bytecode.from_text import value_of
from hilo.formats.bytecode.lower import attributes, constraints, operation_for
from hilo.formats.bytecode.opset import OPERATIONS, Version
from hilo.formats.bytecode.sections import file_of
from hilo.formats.bytecode.tables import OTHER_DIALECTS_SINCE
from hilo.formats.bytecode.values import FunctionType
from hilo.formats.bytecode.wire import Sink
from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.functions import DECLARATION, texts
from hilo.formats.mlir_text.lexer import Source
from hilo.formats.mlir_text.printer import own_parameters
from hilo.formats.mlir_text.shardy import MARKS
from hilo.formats.mlir_text.types import print_type
from hilo.ir import quantized
from hilo.ir.module import Function, Module
from hilo.ir.op import GET, PARAMETER, Attrs, Op, Opaque
from hilo.ir.types import Type, result_types

_FORMATS: Final[tuple[tuple[Version, int], ...]] = (
    ((0, 15, 0), 6), ((0, 14, 0), 4), ((0, 12, 0), 3), ((0, 10, 0), 1), ((0, 9, 0), 0),
)  # fmt: skip
_RANGES_SINCE: Final = (1, 9, 0)  # readers of older versions know only places, not where they end
_MESH: Final = "sdy.mesh @"


def write_module(module: Module, target: Version, producer: str, locations: bool) -> bytes:
    """The file. Raises `Error` that names an op, and the lowest version that has it, if `target` does not."""
    version = next(v for since, v in _FORMATS if since <= target)
    w = Writer(target, version, locations)
    ir = w.module(module)
    if w.worst.version > target:
        raise Error(f"{w.worst.what} needs StableHLO {_dotted(w.worst.version)} or later; the target is "
                    f"{_dotted(target)}", loc=w.worst_at[0], op=w.worst_at[1])  # fmt: skip
    return file_of(w, ir, producer)


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


class Writer:
    """The state of writing a module."""

    def __init__(self, target: Version, version: int, locations: bool) -> None:
        self.target = target
        self.version = version  # of the bytecode
        self.locations = locations
        self.tables = Tables(ranges=target >= _RANGES_SINCE)
        self.names: dict[str, int] = {}  # of ops
        self.properties: dict[bytes, int] = {}
        self.numbers: dict[Op, int] = {}
        self.next = 0  # the next value's number
        self.top = 0  # the number of values of the regions around
        self.worst: Need = NOTHING
        self.worst_at: tuple[Any, str] = (None, "")

    # -- pieces ---------------------------------------------------------------------------------

    def _begin(self, s: Sink, name: str, loc: Any) -> int:
        """An op's name, place for its mask, and its location; where the mask goes."""
        s.varint(self.names.setdefault(name, len(self.names)))
        s.append(0)
        at = len(s) - 1
        s.varint(self._loc(loc))
        return at

    def _loc(self, loc: Any) -> int:
        return self.tables.loc(loc if self.locations else None)

    def _attributes(self, s: Sink, at: int, own: Sequence[tuple[str, int]], extra: Iterable[tuple[str, int]],
                    optional: Sequence[str] = ()) -> None:  # fmt: skip
        """An op's own attributes, as properties where the bytecode has them (`optional`: all that there could be, if
        they may be absent), and discardable ones."""
        extra = list(extra)
        dictionary = extra if self.version >= 5 else [*own, *extra]
        if dictionary:
            s[at] |= 1
            s.varint(self.tables.dictionary(dictionary))
        if self.version >= 5 and (own or optional):
            blob = Sink()
            present = dict(own)
            for name in optional or sorted(present):
                if optional:
                    blob.flagged(present.get(name, 0), name in present)
                else:
                    blob.varint(present[name])
            s[at] |= 64
            s.varint(self.properties.setdefault(bytes(blob), len(self.properties)))

    def _discardable(self, attrs: Attrs) -> list[tuple[str, int]]:
        t = self.tables
        return [(k.removeprefix("."), t.attr(value_of(v) if isinstance(v, Opaque) else v)) for k, v in attrs.items()]

    def _note(self, op: str, loc: Any) -> None:
        """Keep what needs the newest version so far."""
        need, self.tables.need = self.tables.need, NOTHING
        if need.version > self.worst.version:
            self.worst, self.worst_at = need, (loc, op)

    # -- module and functions -------------------------------------------------------------------

    def module(self, module: Module) -> Sink:
        """The IR section."""
        t = self.tables
        s = Sink()
        s.flagged(1, False)
        at = self._begin(s, "builtin.module", module.loc)
        own = [("sym_name", t.builtin_string(module.name))] if module.name else []
        extra = [(k, t.text(str(v))) for k, v in module.attrs.items() if not k.startswith(_MESH)]
        self._attributes(s, at, own, extra, ("sym_name", "sym_visibility"))
        s[at] |= 16
        s.flagged(1, True)
        body = Sink()
        body.varint(1)
        body.varint(0)
        meshes = [(k.removeprefix(_MESH), str(v)) for k, v in module.attrs.items() if k.startswith(_MESH)]
        body.flagged(len(meshes) + len(module.functions), False)
        for name, text in meshes:
            self._mesh(body, name, text)
        for f in module.functions.values():
            self.function(body, f)
        if self.version >= 2:
            s.section(container.IR, body)
        else:
            s += body
        return s

    def _mesh(self, s: Sink, name: str, text: str) -> None:
        t = self.tables
        t.require(OTHER_DIALECTS_SINCE, "a mesh")
        at = self._begin(s, "sdy.mesh", None)
        mesh, _, more = text.partition(" {")
        extra = texts(Cursor(Source(f"{{{more}", ""))) if more else {}
        own = [("mesh", t.text(f"#sdy.mesh{mesh}")), ("sym_name", t.builtin_string(name))]
        self._attributes(s, at, own, [(k, t.text(str(v))) for k, v in extra.items()])
        self._note("sdy.mesh", None)

    def function(self, s: Sink, f: Function) -> None:
        """`vhlo.func_v1`; the numbers of its values start at 0."""
        t = self.tables
        at = self._begin(s, "vhlo.func_v1", f.loc)
        values: dict[str, Any] = {
            "arg_attrs": self._lists(f.arg_attrs),
            "function_type": FunctionType(f.param_types, f.result_types),
            "res_attrs": self._lists(f.result_attrs),
            "sym_name": f.name,
            "sym_visibility": f.visibility,
        }
        own = [(name, t.attr(values[name])) for name in OPERATIONS["func"][0].attrs]
        attrs = Attrs({k: v for k, v in f.attrs.items() if k != DECLARATION})
        self._attributes(s, at, own, self._discardable(attrs))
        s[at] |= 16
        s.flagged(1, True)
        self._note("func.func", f.loc)
        body = Sink()
        self.numbers, self.top = {}, 0
        if DECLARATION in f.attrs:
            body.varint(0)
        else:
            self.region(body, f, len(f.params))
        if self.version >= 2:
            s.section(container.IR, body)
        else:
            s += body

    @staticmethod
    def _lists(attrs: tuple[Attrs, ...]) -> Any:
        if not any(attrs):
            return ()
        return tuple([Attrs({k: value_of(v) if isinstance(v, Opaque) else v for k, v in a.items()}) for a in attrs])

    # -- regions and ops ------------------------------------------------------------------------

    def region(self, s: Sink, f: Function, own: int) -> None:
        """A region of one block, whose first `own` parameters are the block's."""
        t = self.tables
        before = self.next, self.top
        params = f.params[:own]
        folded = _quantized_constants(f)
        ops = [o for o in f.ops if o.kind is not PARAMETER and o.kind is not GET and o not in folded]
        values = own + sum(len(result_types(o.type)) + _casts(o) for o in ops)
        self.next = self.top
        self.top += values
        s.varint(1)
        s.varint(values)
        s.flagged(sum(1 + _casts(o) for o in ops) + 1, bool(params))
        if params:
            s.varint(own)
            for p in params:
                index, loc = t.type(p.type), self._loc(p.loc)
                if self.version >= 4:
                    s.flagged(index, True)
                else:
                    s.varint(index)
                s.varint(loc)
                self.numbers[p] = self.next
                self.next += 1
            if self.version >= 3:
                s.append(0)
        for o in f.ops:
            if o.kind is GET:
                self.numbers[o] = self.numbers[o.operands[0]] + o.attrs["index"]
            elif o.kind is not PARAMETER and o not in folded:
                literal = o.operands[0] if o.operands and o.operands[0] in folded else None
                self.op(s, o if literal is None else Op(literal.kind, (), literal.attrs, o.type, o.loc), o)
        at = self._begin(s, "vhlo.return_v1", None)
        self._values(s, at, f.results)
        self.next, self.top = before

    def _values(self, s: Sink, at: int, values: Sequence[Op]) -> None:
        if values:
            s[at] |= 4
            s.varint(len(values))
            for v in values:
                s.varint(self.numbers[v])

    def op(self, s: Sink, op: Op, value: Op) -> None:
        """One op with its regions; `value` is what its results are known by."""
        t = self.tables
        if op.kind.dialect == "sdy" and op.name in MARKS:
            self._mark(s, op)
            return
        regions = _regions(op)
        captured = len(regions[0].params) - own_parameters(op) if regions else 0
        operands = op.operands[: len(op.operands) - captured]
        try:
            operation = operation_for(op, self.target, t)
            constraints(op, len(operands), t)
            at = self._begin(s, f"vhlo.{operation.full_name}", op.loc)
            own = [(n, t.attr(v)) for n, v in zip(operation.attrs, attributes(op, operation), strict=True)]
            extra = Attrs({k: v for k, v in op.attrs.items() if "." in k})
            self._attributes(s, at, own, self._discardable(extra))
            types: tuple[Type, ...] = result_types(op.type)
            if types:
                s[at] |= 2
                s.varint(len(types))
                for x in types:
                    s.varint(t.type(x))
        except Error as e:
            raise e.at(op.loc, op.kind.full_name) from None
        self._note(op.kind.full_name, op.loc)
        self._values(s, at, operands)
        self.numbers[value] = self.next
        self.next += len(types)
        if regions:
            s[at] |= 16
            s.flagged(len(regions), False)
            outside = op.operands[len(operands) :]
            for r in regions:
                own_count = len(r.params) - captured
                self.numbers.update((p, self.numbers[o]) for p, o in zip(r.params[own_count:], outside, strict=True))
                self.region(s, r, own_count)


    def _mark(self, s: Sink, op: Op) -> None:
        """An op of Shardy, whose operand and result are cast to and from the builtin dialect's types."""
        t = self.tables
        t.require(OTHER_DIALECTS_SINCE, "an op of Shardy")
        (x,) = op.operands
        plain = t.builtin_type(print_type(x.type))
        self._cast(s, self.numbers[x], plain, op.loc)
        at = self._begin(s, op.kind.full_name, op.loc)
        key, _, is_optional = MARKS[op.name]
        value = op.attrs.get(key)
        own = [] if value is None else [(key, t.text(f"{value} : i64" if isinstance(value, int) else str(value)))]
        extra = self._discardable(Attrs({k: v for k, v in op.attrs.items() if "." in k}))
        self._attributes(s, at, own, extra, (key,) if is_optional else ())
        has_result = bool(result_types(op.type))
        if has_result:
            s[at] |= 2
            s.varint(1)
            s.varint(plain)
        s[at] |= 4
        s.varint(1)
        s.varint(self.next)
        self.next += 1 + has_result
        if has_result:
            self._cast(s, self.next - 1, t.type(x.type), op.loc)
            self.numbers[op] = self.next
            self.next += 1
        self._note(op.kind.full_name, op.loc)

    def _cast(self, s: Sink, value: int, index: int, loc: Any) -> None:
        """Value number `value` as one of type `index`; its number is the next."""
        at = self._begin(s, "builtin.unrealized_conversion_cast", loc)
        s[at] |= 2 | 4
        for n in (1, index, 1, value):
            s.varint(n)


def _casts(op: Op) -> int:
    """How many casts are around an op: of its operand, and of its result."""
    return 1 + len(result_types(op.type)) if op.kind.dialect == "sdy" and op.name in MARKS else 0


def _quantized_constants(f: Function) -> set[Op]:
    """Constants that are only there to be reinterpreted as quantized: the two are one constant in StableHLO."""
    uses: dict[Op, list[Op]] = {}
    if not quantized.POOL:
        return set()
    for o in f.ops:
        for x in o.operands:
            uses.setdefault(x, []).append(o)
    return {
        x for x, users in uses.items()
        if x.kind.full_name == "stablehlo.constant" and len(users) == 1 and x not in f.results
        and users[0].kind.full_name == "stablehlo.bitcast_convert" and quantized.stored(users[0].type) is x.type
        and users[0].type is not x.type
    }  # fmt: skip


def _regions(op: Op) -> list[Function]:
    """The regions of an op, in their order."""
    found: dict[str, list[Function]] = {}
    for name, value in op.attrs.items():
        if isinstance(value, Function):
            found[name] = [value]
        elif isinstance(value, tuple) and value and isinstance(value[0], Function):
            found[name] = list(value)
    order = [n.rstrip("*?") for n in schema.REGIONS.get(op.name, ())]
    return [r for name in sorted(found, key=order.index) for r in found[name]]
