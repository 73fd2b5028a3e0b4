"""The IR section: ops, blocks, regions, and from them functions and the module. Imports its siblings, mlir_text, ir.

The values of a region are numbered in program order, from the number of all values of the regions around it. In a scope
value 7 is called `%7`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode import container
from hilo.formats.bytecode.attributes import discardable, inherent, text
from hilo.formats.bytecode.build import Region, declaration, definition, function, make
from hilo.formats.bytecode.container import File
from hilo.formats.bytecode.dialects import ATTRS, TYPES
from hilo.formats.bytecode.entries import EntryReader, Table
from hilo.formats.bytecode.opset import OPERATIONS
from hilo.formats.bytecode.tables import PROPERTIES
from hilo.formats.bytecode.upgrade import operation, upgrade
from hilo.formats.bytecode.values import FunctionType, Symbol, Value
from hilo.formats.bytecode.wire import Reader
from hilo.formats.mlir_text.attr_kinds import Spread
from hilo.formats.mlir_text.cursor import MAX_DEPTH
from hilo.formats.mlir_text.functions import DECLARATION
from hilo.formats.mlir_text.parser import TERMINATORS
from hilo.formats.mlir_text.schema import INHERENT
from hilo.formats.mlir_text.scope import Captures, Scope
from hilo.ir.dtypes import DType
from hilo.ir.module import Function, Loc, Module, parameter
from hilo.ir.op import NO_ATTRS, Attrs, Op, Opaque, OpDef
from hilo.ir.types import OpaqueType, Results, Type

_ATTRS, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USES, _PROPERTIES = 1, 2, 4, 8, 16, 32, 64
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes", "operand_segment_sizes", "result_segment_sizes")


class Head:
    """An op up to its regions."""

    __slots__ = ("attrs", "extra", "isolated", "loc", "name", "operands", "regions", "results")

    def __init__(self) -> None:
        self.name = ""
        self.attrs: dict[str, Value] = {}  # its own
        self.extra: dict[str, Value] = {}  # discardable ones
        self.loc: Any = None
        self.operands: list[Op] = []
        self.results: list[Type] = []
        self.regions = 0
        self.isolated = False


class Program:
    """Reads the program of a file."""

    def __init__(self, file: File) -> None:
        assert file.ir is not None
        self.file = file
        self.r: Reader = file.ir
        self.table = Table(file, ATTRS, TYPES)
        self.scope = Scope()
        self.next = 0  # the next value's number
        self.top = 0  # the number of values of the regions around
        self.depth = 0
        self.count = 0  # of ops so far
        self.kinds: dict[int, tuple[OpDef, Any]] = {}  # by the number of the op's name
        self.properties: dict[tuple[int, int], dict[str, Any]] = {}

    # -- the module -----------------------------------------------------------------------------

    def module(self) -> Module:
        r = self.r
        n, has_arguments = r.flagged()
        if n != 1 or has_arguments:
            raise r.error("a file should hold one module")
        head = self.head(r)
        if head.name != "builtin.module" or head.regions != 1:
            raise r.error(f"a module should be here, not {head.name}", Unsupported)
        name = head.attrs.pop("sym_name", "")
        attrs = {k: Opaque(text(v)) for k, v in {**head.attrs, **head.extra}.items() if k != "sym_visibility"}
        functions: dict[str, Function] = {}
        with self._around_regions(head):
            self._functions(functions, attrs)
        loc = head.loc if head.loc.kind != "unknown" else None
        return Module(functions, name=name if isinstance(name, str) else "",
                      attrs=Attrs(attrs) if attrs else NO_ATTRS, loc=loc)  # fmt: skip

    def _functions(self, functions: dict[str, Function], attrs: dict[str, Opaque]) -> None:
        """The module's region: functions, and meshes as attributes."""
        r = self.r
        blocks, _ = self._blocks(r)
        if blocks != 1:
            raise r.error(f"a module of {blocks} blocks")
        n, has_arguments = r.flagged()
        if has_arguments or n > r.left:
            raise r.error("the module's block is damaged")
        for _ in range(n):
            head = self.head(r)
            if head.name in ("func.func", "vhlo.func_v1"):
                f = self.function(head)
                if f.name in functions:
                    raise r.error(f"function @{f.name} is defined twice")
                functions[f.name] = f
            elif head.name == "sdy.mesh" and not head.regions:
                attrs[f"sdy.mesh @{head.attrs['sym_name']}"] = Opaque(
                    text(head.attrs["mesh"]).removeprefix("#sdy.mesh")
                )
            else:
                raise r.error(f"{head.name} at module level is not supported", Unsupported)

    def function(self, head: Head) -> Function:
        """A function, whose op has been read up to its region."""
        own = head.attrs
        name, declared = own.get("sym_name"), own.get("function_type")
        visibility = own.get("sym_visibility", "")
        if not isinstance(name, str) or not isinstance(declared, FunctionType) or not isinstance(visibility, str):
            raise self.r.error("a function needs sym_name and function_type")
        if head.regions != 1:
            raise self.r.error(f"function @{name} has {head.regions} regions")
        extra = {**{k: v for k, v in own.items() if k not in OPERATIONS["func"][0].attrs}, **head.extra}
        attrs = {k: Opaque(text(v)) for k, v in extra.items()}
        with self._around_regions(head):
            region = self.region(Scope())
        if region is None:
            attrs[DECLARATION] = Opaque("unit")
            self.scope = Scope()
            self.scope.own.extend(parameter(i, t) for i, t in enumerate(declared.operands))
            results = declaration(self.scope, name, declared.results, head.loc)
        else:
            self.scope, results = region.scope, region.results
        for what, found, types in (("parameters", self.scope.own, declared.operands),
                                   ("results", results, declared.results)):  # fmt: skip
            if tuple(o.type for o in found) != types:
                raise self.r.error(f"the {what} of @{name} do not have the types that it declares")
        return function(
            name, self.scope, results, attrs=Attrs(attrs) if attrs else NO_ATTRS, visibility=visibility, loc=head.loc,
            arg_attrs=self._lists("arg_attrs", own.get("arg_attrs"), len(declared.operands)),
            result_attrs=self._lists("res_attrs", own.get("res_attrs"), len(declared.results)),
        )  # fmt: skip

    def _lists(self, what: str, value: Value, n: int) -> list[Attrs]:
        """The attributes of each parameter or result, as text."""
        if value is None or value == ():
            return [NO_ATTRS] * n
        if not isinstance(value, tuple) or len(value) != n or not all(isinstance(x, Attrs) for x in value):
            raise self.r.error(f"{what} is no list of {n} dictionaries")
        return [Attrs({k: Opaque(text(v)) for k, v in x.items()}) if x else NO_ATTRS for x in value]

    # -- regions --------------------------------------------------------------------------------

    @contextmanager
    def _around_regions(self, head: Head) -> Iterator[None]:
        """The regions of an op that sees nothing from outside: a section of their own, with numbers of their own."""
        outer, before = self.r, (self.next, self.top)
        if head.isolated:
            self.next = self.top = 0
            if self.file.version >= 2:
                ident, self.r = container.section(outer)
                if ident != container.IR:
                    raise outer.error("a region is not where it should be")
        yield
        if self.r is not outer and self.r.left:
            raise self.r.error(f"{self.r.left} bytes are left over behind a region")
        self.r = outer
        self.next, self.top = before

    def _regions(self, head: Head, captures: Captures) -> list[Region]:
        regions: list[Region] = []
        with self._around_regions(head):
            for _ in range(head.regions):
                region = self.region(Scope(None if head.isolated else self.scope, captures))
                if region is None:
                    raise self.r.error("an empty region")
                regions.append(region)
        return regions

    @staticmethod
    def _blocks(r: Reader) -> tuple[int, int]:
        """The numbers of blocks, and of values, of the region that begins."""
        blocks = r.count()
        return blocks, r.count() if blocks else 0

    def region(self, scope: Scope) -> Region | None:
        """A region of one block, whose values go into `scope`, or None for an empty one."""
        r = self.r
        blocks, values = self._blocks(r)
        before = self.next, self.top
        if blocks == 0:
            return None
        if blocks > 1:
            raise r.error("regions of several blocks are not supported", Unsupported)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise r.error(f"nested more than {MAX_DEPTH} levels deep")
        self.next = self.top
        self.top += values
        outer, self.scope = self.scope, scope
        n, has_arguments = r.flagged()
        if has_arguments:
            self._arguments(r)
        results: list[Op] | None = None
        for _ in range(n):
            if results is not None:
                raise r.error("an op behind the end of a block")
            results = self.op()
        if results is None:
            raise r.error("a block without a terminator")
        self.scope = outer
        if self.next != self.top:
            raise r.error(f"a region of {values} values that defines {values + self.next - self.top}")
        self.depth -= 1
        self.next, self.top = before
        return Region(scope, results)

    def _arguments(self, r: Reader) -> None:
        for i in range(r.count()):
            index, has_loc = r.flagged() if self.file.version >= 4 else (r.varint(), True)
            t = self._value_type(index)
            op = parameter(i, t, self._loc(r.varint()) if has_loc else None)
            self.scope.own.append(op)
            self.scope.names[f"%{self.next}"] = op
            self.next += 1
        if self.file.version >= 3 and r.byte():
            self._skip_uses(r, len(self.scope.own))

    def _skip_uses(self, r: Reader, n: int) -> None:
        """Orders of uses only matter to tools that keep them."""
        for _ in range(r.count() if n > 1 else 1):
            if n > 1:
                r.varint()
            count = r.varint() >> 1
            if count > r.left:
                raise r.cut()
            for _ in range(count):
                r.varint()

    # -- ops ------------------------------------------------------------------------------------

    def head(self, r: Reader) -> Head:
        """The op at the reader, up to its regions."""
        head = Head()
        index = r.varint()
        if index >= len(self.file.ops):
            raise r.error(f"op name {index} of {len(self.file.ops)}")
        head.name, registered = self.file.ops[index]
        mask = r.byte()
        self.count += 1
        head.loc = self._loc(r.varint())
        if mask & _ATTRS:
            attrs = self._dictionary(r)
            if self.file.version < 5:
                head.attrs = attrs
            else:
                head.extra = attrs
        if mask & _PROPERTIES:
            if self.file.version < 5:
                raise r.error("properties in a file of an old version")
            head.attrs = self._properties(head.name, r.varint(), r) if registered else self._dictionary(r)
        if mask & _RESULTS:
            head.results = [self._value_type(r.varint()) for _ in range(r.count())]
        if mask & _OPERANDS:
            head.operands = [self._operand(r.varint()) for _ in range(r.count())]
        if mask & _SUCCESSORS:
            raise r.error("ops that lead to other blocks are not supported", Unsupported)
        if mask & _USES and self.file.version >= 3:
            self._skip_uses(r, len(head.results))
        if mask & _REGIONS:
            head.regions, head.isolated = r.flagged()
            if head.regions > r.left:
                raise r.cut()
        return head

    def op(self) -> list[Op] | None:
        """Read one op into the scope; the returned values if it ends the block."""
        head = self.head(self.r)
        first = self.next
        self.next += len(head.results)
        captures = Captures() if head.regions else None
        try:
            if head.name in TERMINATORS or head.name == "vhlo.return_v1":
                if head.results or head.regions:
                    raise Error("a terminator has no results and no regions")
                return head.operands
            regions = self._regions(head, captures) if captures is not None else []
            kind, attrs = self._build(head)
            op = make(kind, head.operands, attrs, head.results, regions, captures, head.loc)
        except Error as e:
            if e.loc is None or not str(e.loc):
                loc = head.loc if str(head.loc) else f"{self.file.loc} (op {self.count})"
                raise e.at(loc, e.op or _plain_name(head.name)) from e.__cause__
            raise
        values = op.results()
        self.scope.ops.append(op)
        if isinstance(op.type, Results):
            self.scope.ops.extend(values)
        names = self.scope.names
        for value in values:
            names[f"%{first}"] = value
            first += 1
        return None

    def _build(self, head: Head) -> tuple[OpDef, dict[str, Any]]:
        if head.name.startswith("vhlo."):
            old = operation(head.name)
            name = "func.call" if old.name == "call" else f"stablehlo.{old.name}"
            kind, attrs = definition(name), upgrade(old, head.attrs)
            others = {k: v for k, v in head.attrs.items() if k not in old.attrs}
        else:
            kind, attrs, others = definition(head.name), {}, head.attrs
        for k, v in {**others, **head.extra}.items():
            if k not in INHERENT:
                name, attrs_text = discardable(k, v)
                attrs[name] = attrs_text
            elif isinstance(value := inherent(k, v), Spread):
                attrs.update(value)
            elif k not in _SEGMENTS:
                attrs[k] = value
        return kind, attrs

    # -- references -----------------------------------------------------------------------------

    def _operand(self, number: int) -> Op:
        name = f"%{number}"
        value = self.scope.names.get(name) or self.scope.find(name)
        if value is None:
            raise self.r.error(f"value {number} is used but not defined before this point")
        return value

    def _value_type(self, index: int) -> Type:
        self.table.begin()
        t = self.table.type(index, self.r)
        if isinstance(t, Type):
            return t
        if isinstance(t, DType):
            return OpaqueType(t.mlir)
        raise self.r.error("a value of a function type", Unsupported)

    def _loc(self, index: int) -> Loc:
        self.table.begin()
        loc = self.table.attr(index, self.r)
        if not isinstance(loc, Loc):
            raise self.r.error("an attribute should be a location here")
        return loc

    def _dictionary(self, r: Reader) -> dict[str, Value]:
        self.table.begin()
        value = self.table.attr(r.varint(), r)
        if not isinstance(value, Attrs):
            raise r.error("an op's attributes should be a dictionary")
        return dict(value)

    def _properties(self, name: str, index: int, r: Reader) -> dict[str, Value]:
        if index >= len(self.file.properties):
            raise r.error(f"properties {index} of {len(self.file.properties)}")
        at, size = self.file.properties[index]
        failure: Error | None = None
        if name.startswith("vhlo."):
            variants: Any = (tuple((attr, False) for attr in operation(name).attrs),)
        else:
            if name not in PROPERTIES:
                definition(name)
            variants = PROPERTIES.get(name, ((),))
        for variant in variants:
            try:
                return self._decode_properties(variant, EntryReader(self.table, at, size))
            except Error as e:
                failure = failure or e
        assert failure is not None
        raise failure.at(self.file.loc, name)

    def _decode_properties(self, variant: Any, r: EntryReader) -> dict[str, Value]:
        self.table.begin()
        attrs: dict[str, Value] = {}
        for name, is_optional in variant:
            if name.startswith("+"):  # how many operands each group has, which the op finds out itself
                _skip_segments(r)
                continue
            value = r.optional() if is_optional else r.attr()
            if value is not None:
                attrs[name] = value.name if isinstance(value, Symbol) and name == "sym_name" else value
        if r.left:
            raise r.error(f"{r.left} bytes of properties are left over")
        return attrs


def _skip_segments(r: EntryReader) -> None:
    while r.left:
        r.varint()


def _plain_name(name: str) -> str:
    """`stablehlo.add` for `vhlo.add_v1`."""
    short = name.removeprefix("vhlo.")
    return name if short == name else f"stablehlo.{short.rpartition('_v')[0]}"
