"""HLO text to HLO as data. Imports its siblings, mlir_text's cursor, and ir.

Names (of instructions within a computation, of computations) are used only after they are defined, as XLA has it.
"""

from __future__ import annotations

from typing import Any, Final

from hilo.formats.hlo_text import schema
from hilo.formats.hlo_text.attributes import PARSE, aliases, flag, integers, text
from hilo.formats.hlo_text.lexer import HloSource, unquote
from hilo.formats.hlo_text.locations import parse_tables
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction, Shape
from hilo.formats.hlo_text.shapes import is_shape, parse_shape
from hilo.formats.mlir_text.cursor import Cursor
from hilo.ir.module import Loc

_CONSTANT: Final = "constant("
_HEADER: Final = schema.words(
    "is_scheduled replica_count num_partitions entry_computation_layout input_output_alias buffer_donor "
    "alias_passthrough_params frontend_attributes allow_spmd_sharding_propagation_to_parameters "
    "allow_spmd_sharding_propagation_to_output origin_recovery_table"
)


def read(source: HloSource) -> HloModule:
    """The module that the text holds. Raises `Error` with file:line:col."""
    r = Reader(source)
    try:
        return r.module()
    except RecursionError:
        raise r.error("nested too deeply") from None


class Reader(Cursor):
    """A cursor with the names that are known so far."""

    def __init__(self, source: HloSource) -> None:
        super().__init__(source)
        self.shapes: dict[str, Shape] = {}
        self.computations: dict[str, Computation] = {}
        self.frames: dict[int, Loc] = {}
        self.names: dict[str, Instruction] = {}
        self.body: list[Instruction] = []

    # -- tokens ---------------------------------------------------------------------------------

    def string(self) -> str:
        token = self.tokens[self.at]
        if len(token) < 2 or token[0] not in "\"'":
            raise self.expected("a string")
        self.at += 1
        return unquote(token)

    def name(self) -> str:
        """A name, without its `%`."""
        token = self.tokens[self.at].removeprefix("%")
        if not token or not (token[0].isalnum() or token[0] in "_.$"):
            raise self.expected("a name")
        self.at += 1
        return token

    def following(self, distance: int = 1) -> str:
        """The token that comes so much later; "" beyond the end."""
        at = self.at + distance
        return self.tokens[at] if at < len(self.tokens) else ""

    # -- the module -----------------------------------------------------------------------------

    def module(self) -> HloModule:
        start = self.here()
        self.expect("HloModule")
        module = HloModule(self.name(), self.computations, frames=self.frames, loc=start)
        while self.accept(","):
            self._header_attribute(module.attrs)
        parse_tables(self)
        while self.tokens[self.at]:
            at, is_entry = self.at, self.accept("ENTRY")
            c = self.computation()
            if is_entry and module.entry is not None:
                raise self.error("a second ENTRY computation", at)
            module.entry = c if is_entry else module.entry
        if not self.computations:
            raise self.expected("a computation")
        if module.entry is None:
            module.entry = next(reversed(self.computations.values()))
        return module

    def _header_attribute(self, attrs: dict[str, Any]) -> None:
        start, key = self.at, self.keyword("an attribute of the module")
        if key not in _HEADER:
            raise self.error(f"unknown attribute '{key}' of the module", start)
        if key in attrs:
            raise self.error(f"attribute '{key}' is given twice", start)
        self.expect("=")
        if key == "entry_computation_layout":
            attrs[key] = self.signature()
        elif key == "input_output_alias":
            attrs[key] = aliases(self)
        elif key == "buffer_donor":
            attrs[key] = self._donors()
        elif key == "frontend_attributes":
            attrs[key] = PARSE["dictionary"](self)
        elif key in ("replica_count", "num_partitions"):
            attrs[key] = self.integer()
        else:
            attrs[key] = flag(self) if key == "is_scheduled" else text(self)

    def signature(self) -> tuple[tuple[Shape, ...], Shape]:
        """`{(shape, ...)->shape}`"""
        self.expect("{")
        self.expect("(")
        parameters = tuple(self.comma_list(")", lambda: parse_shape(self, self.shapes)))
        self.expect("->")
        result = parse_shape(self, self.shapes)
        self.expect("}")
        return parameters, result

    def _donors(self) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """`{ (parameter, {part}), ... }`"""

        def one() -> tuple[int, tuple[int, ...]]:
            self.expect("(")
            number = self.integer()
            part = integers(self) if self.accept(",") else ()
            self.expect(")")
            return number, part

        self.expect("{")
        return tuple(self.comma_list("}", one))

    # -- computations ---------------------------------------------------------------------------

    def computation(self) -> Computation:
        """`name [(p: shape, ...) -> shape] { instructions }`"""
        start = self.at
        name = self.name()
        if name in self.computations:
            raise self.error(f"computation {name} is defined twice", start)
        if self.accept("("):
            self.comma_list(")", self._parameter)
            self.expect("->")
            parse_shape(self, self.shapes)
        c = self._block(name)
        while self.accept(","):
            key = self.keyword("an attribute of the computation")
            self.expect("=")
            if key != "execution_thread":
                raise self.error(f"unknown attribute '{key}' of the computation", self.at - 2)
            self.string()
        self.computations[name] = c
        return c

    def _parameter(self) -> None:
        self.name()
        self.expect(":")
        parse_shape(self, self.shapes)

    def _block(self, name: str) -> Computation:
        """`{ instructions }`"""
        c = Computation(name, loc=self.here())
        outer = self.names, self.body
        self.names, self.body = {}, c.instructions
        with self.nested():
            self.expect("{")
            while not self.accept("}"):
                start = self.at
                is_root = self.accept("ROOT")
                i = self._named()
                if is_root and c.root is not None:
                    raise self.error("a second ROOT instruction", start)
                c.root = i if is_root else c.root
            if not self.body:
                raise self.error("a computation without instructions", self.at - 1)
        c.root = c.root or self.body[-1]
        self.names, self.body = outer
        return c

    def callee(self) -> Computation:
        """A computation by its name, or written out in braces."""
        if self.tokens[self.at] == "{":
            return self._block(f"{self.body[-1].name if self.body else ''}computation")
        start, name = self.at, self.name()
        found = self.computations.get(name)
        if found is None:
            raise self.error(f"computation {name} is used but not defined before this point", start)
        return found

    def callees(self) -> tuple[Computation, ...]:
        self.expect("{")
        return tuple(self.comma_list("}", self.callee))

    # -- instructions ---------------------------------------------------------------------------

    def _named(self) -> Instruction:
        """`name = instruction`"""
        start = self.at
        name = self.name()
        self.expect("=")
        i = self._instruction(name, start)
        if name in self.names:
            raise self.error(f"instruction {name} is defined twice", start)
        self.names[name] = i
        return i

    def _instruction(self, name: str, start: int) -> Instruction:
        """`[shape] opcode(operands), attributes`"""
        shape = parse_shape(self, self.shapes) if is_shape(self.tokens[self.at]) else None
        i = Instruction(name, "", shape, loc=self.source.loc(start))
        outer, self.op = self.op, None
        token = self.tokens[self.at]
        if token.startswith(_CONSTANT):
            self.at += 1
            i.opcode = "constant"
            i.attrs["value"] = token[len(_CONSTANT) : -1]
        else:
            i.opcode = self.keyword_opcode()
        self.op = i.opcode
        if i.opcode == "parameter":
            self.expect("(")
            i.attrs["number"] = self.integer()
            self.expect(")")
        elif i.opcode != "constant":
            self.expect("(")
            with self.nested():
                i.operands = self.comma_list(")", self._operand)
        allowed = attributes_of(i.opcode)
        while self.tokens[self.at] == "," and self.following(2) == "=":
            self.at += 1
            self._attribute(i, allowed)
        self.op = outer
        self.body.append(i)
        return i

    def keyword_opcode(self) -> str:
        start, token = self.at, self.tokens[self.at]
        if not token[:1].isalpha():
            raise self.expected("an opcode")
        if attributes_of(token) is None:
            raise self.error(f"unknown opcode '{token}'", start)
        self.at += 1
        return token

    def _operand(self) -> Instruction:
        """`name`, `shape name`, or an instruction written in place."""
        start = self.at
        if is_shape(self.tokens[self.at]):
            parse_shape(self, self.shapes)
        following = self.following()
        if self.tokens[self.at].startswith(_CONSTANT) or following == "(":
            self.at = start
            return self._instruction("", start)
        if following == "=":
            self.at = start
            return self._named()
        start, name = self.at, self.name()
        found = self.names.get(name)
        if found is None:
            raise self.error(f"instruction {name} is used but not defined before this point", start)
        return found

    def _attribute(self, i: Instruction, allowed: tuple[str, ...] | None) -> None:
        start, token = self.at, self.tokens[self.at]
        key = token
        if key not in schema.COMMON and key not in (allowed or ()):
            known = f"; it has {', '.join(allowed)}" if allowed else ""
            raise self.error(f"'{key}' is no attribute of this instruction{known}", start)
        if key in i.attrs:
            raise self.error(f"attribute '{key}' is given twice", start)
        self.at += 1
        self.expect("=")
        i.attrs[key] = PARSE[schema.ATTRIBUTES[key]](self)


def attributes_of(opcode: str) -> tuple[str, ...] | None:
    """The attributes that an opcode has of its own; None for an opcode that is not known."""
    known = schema.OPCODES.get(opcode)
    if known is not None:
        return known
    for suffix in (schema.START, schema.UPDATE, schema.DONE):
        if opcode.endswith(suffix) and (inner := schema.OPCODES.get(opcode[: -len(suffix)])) is not None:
            return inner
    return None


