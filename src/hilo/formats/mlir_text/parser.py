"""The parser's core: values, blocks, regions, and how an op is built from its syntax. Imports its siblings and ir."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hilo.errors import Error, Unsupported
from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.attributes import parse_dict
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.lexer import Source
from hilo.formats.mlir_text.locations import parse_trailing_loc
from hilo.formats.mlir_text.names import definitions, missing_op
from hilo.formats.mlir_text.scope import Captures, Scope
from hilo.formats.mlir_text.types import parse_function_type, parse_type, print_type
from hilo.ir import registry
from hilo.ir.module import Loc, parameter
from hilo.ir.op import Attrs, Op, OpDef
from hilo.ir.types import OpaqueType, Results, Type, any_quantized
from hilo.later import Later
from hilo.ops.result_rules import check_result
from hilo.ops.value_rules import check_values

if TYPE_CHECKING:
    from hilo.ir import quantized
else:
    quantized = Later("hilo.ir.quantized")

TERMINATORS = frozenset(("return", "func.return", "stablehlo.return", "mhlo.return", "chlo.return", "sdy.return"))


class Region:
    """A region that has been read but not closed: its captures are final only when all regions of the op are read."""

    __slots__ = ("results", "scope")

    def __init__(self, scope: Scope, results: list[Op]) -> None:
        self.scope = scope
        self.results = results


class Syntax:
    """What an op's syntax gave. `operand_types` None: not written down. `result_types` None: to be inferred.

    `kind` names the definition where it is not that of the op's own name.
    """

    __slots__ = ("attrs", "captures", "kind", "operand_types", "operands", "regions", "result_types")

    def __init__(self, operands: list[Op], attrs: dict[str, Any], operand_types: Sequence[Type] | None,
                 result_types: Sequence[Type] | None, regions: list[Region] | None = None,
                 captures: Captures | None = None, kind: str | None = None) -> None:  # fmt: skip
        self.kind = kind
        self.operands = operands
        self.attrs = attrs
        self.operand_types = operand_types
        self.result_types = result_types
        self.regions = regions or []
        self.captures = captures


ReadSyntax: TypeAlias = "Callable[[Parser, str], Syntax]"


class Parser(Cursor):
    """A cursor with the scope of the function being read and the op definitions already looked up.

    `pretty` reads ops by name, `read_generic` those in the generic form; both from after the name.
    """

    def __init__(self, source: Source, pretty: Mapping[str, ReadSyntax], read_generic: ReadSyntax) -> None:
        super().__init__(source)
        self.pretty = pretty
        self.read_generic = read_generic
        self.scope = Scope()
        self.kinds: dict[str, OpDef] = {}

    # -- values ---------------------------------------------------------------------------------

    def operand(self) -> Op:
        """The value named by the `%name` at the cursor."""
        token = self.tokens[self.at]
        value = self.scope.names.get(token) or self._find(token)
        self.at += 1
        return value

    def _find(self, token: str) -> Op:
        if token[:1] != "%" or len(token) < 2:
            raise self.expected("a value (%name)")
        value = self.scope.find(token)
        if value is None:
            raise self.error(f"value {token} is used but not defined before this point")
        return value

    def operands(self) -> list[Op]:
        """`%a, %b`, possibly none; a comma that is not followed by a value is left."""
        found: list[Op] = []
        tokens = self.tokens
        while tokens[self.at][:1] == "%":
            found.append(self.operand())
            if tokens[self.at] != "," or tokens[self.at + 1][:1] != "%":
                break
            self.at += 1
        return found

    def define(self, name: str, value: Op, at: int) -> None:
        if name in self.scope.names:
            raise self.error(f"value {name} is defined twice", at)
        self.scope.names[name] = value

    # -- ops ------------------------------------------------------------------------------------

    def result_names(self) -> list[tuple[str, int, int]]:
        """`%a, %b:2 =` as (name, number of results, token)."""
        names: list[tuple[str, int, int]] = []
        while True:
            start, token = self.at, self.take()
            if token[:1] != "%" or len(token) < 2 or "#" in token:
                self.at = start
                raise self.expected("the name of a result (%name)")
            count = 1
            if self.accept(":"):
                count = self.integer()
                if not 1 <= count <= 1 << 20:
                    raise self.error(f"{count} results", self.at - 1)
            names.append((token, count, start))
            if not self.accept(","):
                break
        self.expect("=")
        return names

    def parse_op(self) -> list[Op] | None:
        """Read one op into the scope; the returned values if it is the block's terminator."""
        names = self.result_names() if self.tokens[self.at][:1] == "%" else []
        start, token = self.at, self.tokens[self.at]
        outer = self.op
        generic = token[:1] == '"'
        name = self.string() if generic else token
        if "." not in name:
            name = f"func.{name}"
        self.op = name
        if name in TERMINATORS:
            if names:
                raise self.error("a terminator has no results", start)
            self.at += not generic
            values = self._terminator(generic)
            self.op = outer
            return values
        if generic:
            syntax = self.read_generic(self, name)
        else:
            parse = self.pretty.get(name)
            if parse is None:
                if not token[:1].isalpha():
                    self.op = outer
                    raise self.expected("an op")
                raise missing_op(self, name, start)
            self.at += 1
            syntax = parse(self, name)
        loc = parse_trailing_loc(self) or self.source.loc(start)
        op = self.build(name, syntax, loc, start)
        self._bind(op, names, start)
        self.op = outer
        return None

    def kind(self, name: str, at: int) -> OpDef:
        """The definition of op `name`; one that is missing is an error that says whether the spec knows it."""
        found = self.kinds.get(name)
        if found is None:
            for candidate in definitions(name):
                try:
                    found = self.kinds[name] = registry.lookup(candidate)
                    return found
                except KeyError:
                    continue
            raise missing_op(self, name, at)
        return found

    def build(self, name: str, s: Syntax, loc: Loc, at: int) -> Op:
        """The op, with its types checked against what the text declares, added to the scope."""
        kind = self.kind(s.kind or name, at)
        if s.operand_types is not None:
            self._check_operands(s, at)
        attrs = s.attrs
        operands = s.operands
        if s.regions or name.partition(".")[2] in schema.REGIONS:
            self._close_regions(name, s, at)
            operands = [*operands, *s.captures.positions] if s.captures is not None else operands
        declared = s.result_types
        want: Type | None = None
        if kind.name == "constant" and declared is not None and any_quantized(declared):
            return self._stored_constant(s, declared, loc, at)
        if declared is not None:
            want = declared[0] if len(declared) == 1 else Results(declared)
            if kind.typed or any_quantized([*declared, *(o.type for o in s.operands)]):
                attrs["type"] = want
        if "result_layout" in attrs and "result_layout" not in kind.attrs:
            del attrs["result_layout"]  # XLA writes it on all transposes; what it says is not the program's meaning
        try:
            op = kind.make(operands, Attrs(attrs), loc)
            if want is not None:
                check_result(kind.full_name, op.type, want, print_type)
            check_values(op)
        except Error as e:
            e.loc = loc if _has_file(loc) else self.source.loc(at)
            e.op = e.op or kind.full_name
            raise
        except AttributeError:
            if any(isinstance(o.type, OpaqueType) for o in operands) or isinstance(want, OpaqueType):
                raise self.error("operands or results of an opaque type", at, Unsupported) from None
            raise
        if want is not None and op.type is not want:
            op = Op(kind, op.operands, op.attrs, want, loc)
        self.scope.ops.append(op)
        return op

    def _stored_constant(self, s: Syntax, declared: Sequence[Type], loc: Loc, at: int) -> Op:
        """A constant of a quantized type: the literal of its storage type, with its bits read as that type."""
        stored = Results(map(quantized.stored, declared)).types
        value = {k: s.attrs.pop(k) for k in ("value",) if k in s.attrs}
        plain = self.build("stablehlo.constant", Syntax([], value, None, stored), loc, at)
        return self.build("stablehlo.bitcast_convert", Syntax([plain], s.attrs, None, declared), loc, at)

    def _check_operands(self, s: Syntax, at: int) -> None:
        types = s.operand_types
        assert types is not None
        if len(types) != len(s.operands):
            raise self.error(f"{len(s.operands)} operands, but {len(types)} operand types", at)
        for i, (o, t) in enumerate(zip(s.operands, types, strict=True)):
            if o.type is not t:
                raise self.error(f"operand {i} is of type {print_type(o.type)}, but {print_type(t)} is declared", at)

    def _close_regions(self, name: str, s: Syntax, at: int) -> None:
        names = schema.REGIONS.get(name.partition(".")[2], ())
        closed = [r.scope.close(r.results, "region") for r in s.regions]
        if names and names[-1][-1] in "*?":
            s.attrs |= {names[-1][:-1]: tuple(closed)} if closed or names[-1][-1] == "*" else {}
        elif len(closed) != len(names):
            raise self.error(f"{len(closed)} regions, but the op has {len(names)}", at)
        else:
            s.attrs.update(zip(names, closed, strict=True))

    def _bind(self, op: Op, names: list[tuple[str, int, int]], at: int) -> None:
        """Bind the results to their names; several results are taken out by `get`s."""
        is_pack = isinstance(op.type, Results)
        results = op.results()
        if is_pack:
            self.scope.ops.extend(results)
        if not names:
            if results:  # MLIR lets one leave results unnamed
                return
            return
        total = sum(count for _, count, _ in names)
        if total != len(results):
            raise self.error(f"the op has {len(results)} results, but {total} are named", at)
        i = 0
        for name, count, where in names:
            if count == 1:
                self.define(name, results[i], where)
                i += 1
                continue
            if name in self.scope.names:
                raise self.error(f"value {name} is defined twice", where)
            for k in range(count):
                self.define(f"{name}#{k}", results[i], where)
                i += 1

    def _terminator(self, generic: bool) -> list[Op]:
        """The rest of `return %a, %b : T, T` or `"stablehlo.return"(%a) : (T) -> ()`."""
        start = self.at
        if generic:
            self.expect("(")
            values = self.operands()
            self.expect(")")
            if self.accept("<"):
                parse_dict(self)
                self.expect(">")
            parse_dict(self)
            self.expect(":")
            types, results = parse_function_type(self)
            if results:
                raise self.error("a terminator has no results", start)
        else:
            values = self.operands()
            parse_dict(self)
            types = ()
            if values:
                self.expect(":")
                types = [parse_type(self)]
                while self.accept(","):
                    types.append(parse_type(self))
        self._check_operands(Syntax(values, {}, types, ()), start)
        parse_trailing_loc(self)
        return values

    # -- blocks ---------------------------------------------------------------------------------

    def parse_region(self, captures: Captures, arguments: Sequence[tuple[str, Type]] | None = None) -> Region:
        """`{ ^bb0(%a: T): ops return }`; with `arguments`, those are the block's and the header is absent."""
        self.expect("{")
        outer = self.scope
        self.scope = scope = Scope(outer, captures)
        with self.nested():
            if arguments is not None:
                for name, t in arguments:
                    self.add_argument(name, t, None, self.at)
            elif self.tokens[self.at][:1] == "^":
                self.block_header()
            results = self.parse_body()
        self.scope = outer
        return Region(scope, results)

    def add_argument(self, name: str, t: Type, loc: Loc | None, at: int) -> Op:
        op = parameter(len(self.scope.own), t, loc)
        if name:
            if name in self.scope.names:
                raise self.error(f"value {name} is defined twice", at)
            self.scope.names[name] = op
        self.scope.own.append(op)
        return op

    def block_header(self) -> None:
        """`^bb0(%a: T, ...):`"""
        self.take()
        if self.accept("("):
            self.comma_list(")", self._block_argument)
        self.expect(":")

    def _block_argument(self) -> None:
        start = self.at
        name = self.value_name()
        self.expect(":")
        t = parse_type(self)
        self.add_argument(name, t, parse_trailing_loc(self), start)

    def value_name(self) -> str:
        token = self.tokens[self.at]
        if token[:1] != "%" or len(token) < 2 or "#" in token:
            raise self.expected("a value (%name)")
        self.at += 1
        return token

    def parse_body(self) -> list[Op]:
        """Ops up to the terminator and the closing brace; the returned values."""
        while True:
            token = self.tokens[self.at]
            if token == "}" or not token:
                raise self.expected("an op or the block's return")
            if token[:1] == "^":
                raise self.error("regions of several blocks are not supported", kind=Unsupported)
            results = self.parse_op()
            if results is not None:
                break
        if self.tokens[self.at][:1] == "^":
            raise self.error("regions of several blocks are not supported", kind=Unsupported)
        self.expect("}")
        return results


def _has_file(loc: Loc) -> bool:
    """Whether a location leads to a line of a file."""
    stack = [loc]
    while stack:
        x = stack.pop()
        if x.kind == "file":
            return True
        stack.extend(x.children)
    return False
