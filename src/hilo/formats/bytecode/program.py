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
from hilo.formats.bytecode.attributes import text
from hilo.formats.bytecode.build import Region, declaration, function, make_all
from hilo.formats.bytecode.container import File
from hilo.formats.bytecode.dialects import ATTRS, TYPES
from hilo.formats.bytecode.entries import Table
from hilo.formats.bytecode.op_attributes import Key, OpAttributes
from hilo.formats.bytecode.opset import OPERATIONS
from hilo.formats.bytecode.values import FunctionType, Value
from hilo.formats.bytecode.wire import Reader
from hilo.formats.mlir_text.cursor import MAX_DEPTH
from hilo.formats.mlir_text.functions import DECLARATION, VISIBILITIES
from hilo.formats.mlir_text.parser import TERMINATORS
from hilo.formats.mlir_text.scope import Captures, Scope
from hilo.ir.dtypes import DType
from hilo.ir.module import Function, Loc, Module, parameter
from hilo.ir.op import NO_ATTRS, Attrs, Op, Opaque
from hilo.ir.types import OpaqueType, Results, Type

_ATTRS, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USES, _PROPERTIES = 1, 2, 4, 8, 16, 32, 64


_NAMES = ("sym_name", "sym_visibility")
_CAST = "builtin.unrealized_conversion_cast"  # between the types of dialects, which are the same here


class Head:
    """An op up to its regions."""

    __slots__ = ("isolated", "key", "loc", "name", "operands", "regions", "results")

    def __init__(self) -> None:
        self.name = ""
        self.key: Key = (0, -1, -1)
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
        self.attributes = OpAttributes(self.table)
        self.value_types: dict[int, Type] = {}

    # -- the module -----------------------------------------------------------------------------

    def module(self) -> Module:
        r = self.r
        n, has_arguments = r.flagged()
        if n != 1 or has_arguments:
            raise r.error("a file should hold one module")
        head = self.head(r)
        if head.name != "builtin.module" or head.regions != 1:
            raise r.error(f"a module should be here, not {head.name}", Unsupported)
        found = self.attributes.raw(head.key, r)
        attrs = {k: Opaque(text(v)) for part in found for k, v in part.items() if k not in _NAMES}
        functions: dict[str, Function] = {}
        with self._around_regions(head):
            self._functions(functions, attrs)
        loc = head.loc if head.loc.kind != "unknown" else None
        name = found[0].get("sym_name")
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
                mesh, extra = self.attributes.raw(head.key, r)
                if not isinstance(mesh.get("sym_name"), str) or "mesh" not in mesh:
                    raise r.error("a mesh needs sym_name and mesh")
                more = f" {{{', '.join(f'{k} = {text(v)}' for k, v in extra.items())}}}" if extra else ""
                attrs[f"sdy.mesh @{mesh['sym_name']}"] = Opaque(text(mesh["mesh"]).removeprefix("#sdy.mesh") + more)
            else:
                raise r.error(f"{head.name} at module level is not supported", Unsupported)

    def function(self, head: Head) -> Function:
        """A function, whose op has been read up to its region."""
        own, extra = self.attributes.raw(head.key, self.r)
        name, declared = own.get("sym_name"), own.get("function_type")
        visibility = own.get("sym_visibility", "")
        if not isinstance(name, str) or not isinstance(declared, FunctionType) or not isinstance(visibility, str):
            raise self.r.error("a function needs sym_name and function_type")
        if visibility not in ("", *VISIBILITIES):
            raise self.r.error(f"function @{name}: '{visibility[:40]}' is no visibility")
        if head.regions != 1:
            raise self.r.error(f"function @{name} has {head.regions} regions")
        extra = {**{k: v for k, v in own.items() if k not in OPERATIONS["func"][0].attrs}, **extra}
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
        head.name = self.file.ops[index][0]
        mask = r.byte()
        self.count += 1
        head.loc = self._loc(r.varint())
        attrs = r.varint() if mask & _ATTRS else -1
        head.key = index, attrs, r.varint() if mask & _PROPERTIES else -1
        if mask & _RESULTS:
            types = self.value_types
            head.results = [types.get(i) or self._value_type(i) for i in r.varints(r.count())]
        if mask & _OPERANDS:
            names = self.scope.names
            head.operands = [names.get(f"%{n}") or self._operand(n) for n in r.varints(r.count())]
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
        if head.name == _CAST and len(head.operands) == len(head.results) and not head.regions:
            self.scope.names.update((f"%{first + i}", x) for i, x in enumerate(head.operands))
            return None
        try:
            if head.name in TERMINATORS or head.name == "vhlo.return_v1":
                if head.results or head.regions:
                    raise Error("a terminator has no results and no regions")
                return head.operands
            regions = self._regions(head, captures) if captures is not None else []
            kind, attrs = self.attributes.of_op(head.key, self.r)
            *before, op = make_all(kind, head.operands, attrs, head.results, regions, captures, head.loc)
        except Error as e:
            if e.loc is None or not str(e.loc):
                loc = head.loc if str(head.loc) else f"{self.file.loc} (op {self.count})"
                raise e.at(loc, e.op or _plain_name(head.name)) from e.__cause__
            raise
        values = op.results()
        self.scope.ops += (*before, op)
        if isinstance(op.type, Results):
            self.scope.ops.extend(values)
        names = self.scope.names
        for value in values:
            names[f"%{first}"] = value
            first += 1
        return None

    # -- references -----------------------------------------------------------------------------

    def _operand(self, number: int) -> Op:
        value = self.scope.find(f"%{number}")
        if value is None:
            raise self.r.error(f"value {number} is used but not defined before this point")
        return value

    def _value_type(self, index: int) -> Type:
        self.table.begin()
        t = self.table.type(index, self.r)
        if isinstance(t, DType):
            t = OpaqueType(t.mlir)
        if not isinstance(t, Type):
            raise self.r.error("a value of a function type", Unsupported)
        self.value_types[index] = t
        return t

    def _loc(self, index: int) -> Loc:
        self.table.begin()
        loc = self.table.attr(index, self.r)
        if not isinstance(loc, Loc):
            raise self.r.error("an attribute should be a location here")
        return loc


def _plain_name(name: str) -> str:
    """`stablehlo.add` for `vhlo.add_v1`."""
    short = name.removeprefix("vhlo.")
    return name if short == name else f"stablehlo.{short.rpartition('_v')[0]}"
