"""Attributes of ops: properties and dictionaries, sorted into an op's own and others. Imports its siblings, mlir_text.

Many ops have the same attributes, and then refer to the same entries: they are made once.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from hilo.errors import Error
from hilo.formats.bytecode.attributes import discardable, inherent, text
from hilo.formats.bytecode.build import definition
from hilo.formats.bytecode.entries import EntryReader, Table
from hilo.formats.bytecode.tables import PROPERTIES, Properties
from hilo.formats.bytecode.upgrade import operation, upgrade
from hilo.formats.bytecode.values import Symbol, Value
from hilo.formats.bytecode.wire import Reader
from hilo.formats.mlir_text.attr_kinds import Spread
from hilo.formats.mlir_text.schema import INHERENT
from hilo.ir.op import Attrs, Opaque, OpDef

Key: TypeAlias = tuple[int, int, int]  # numbers of the op's name, its dictionary, its properties; -1 for none
_SEGMENTS = ("operandSegmentSizes", "resultSegmentSizes", "operand_segment_sizes", "result_segment_sizes")


def _kept(name: str, value: Value) -> Any:
    """An attribute of an op of Shardy: its text, but for names and numbers."""
    if isinstance(value, str):
        return value
    written = text(value)
    number = written.partition(" ")[0]
    return int(number) if name == "group_id" and number.isdecimal() else Opaque(written)


class OpAttributes:
    """Attributes by the numbers that ops refer to them with."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.file = table.file
        self._made: dict[Key, tuple[OpDef, dict[str, Any]]] = {}

    def raw(self, key: Key, r: Reader) -> tuple[dict[str, Value], dict[str, Value]]:
        """The op's own attributes and the discardable ones; old files do not tell them apart: then all are first."""
        index, dictionary, properties = key
        name, registered = self.file.ops[index]
        found = self._dictionary(dictionary, r) if dictionary >= 0 else {}
        if self.file.version < 5:
            if properties >= 0:
                raise r.error("properties in a file of an old version")
            return found, {}
        if properties < 0:
            return {}, found
        return self._properties(name, properties, r) if registered else self._dictionary(properties, r), found

    def of_op(self, key: Key, r: Reader) -> tuple[OpDef, dict[str, Any]]:
        """The definition of an op in the IR, and its attributes (to keep)."""
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(key, r)
        return made[0], dict(made[1])

    def _make(self, key: Key, r: Reader) -> tuple[OpDef, dict[str, Any]]:
        name = self.file.ops[key[0]][0]
        if name.startswith("vhlo."):
            old = operation(name)
            kind = definition("func.call" if old.name == "call" else f"stablehlo.{old.name}")
            own, extra = self.raw(key, r)
            attrs = upgrade(old, own)
            others = {k: v for k, v in own.items() if k not in old.attrs}
        else:
            kind, attrs = definition(name), {}
            others, extra = self.raw(key, r)
            if kind.dialect == "sdy":
                attrs, others = {k: _kept(k, v) for k, v in others.items()}, {}
        for k, v in {**others, **extra}.items():
            if k not in INHERENT:
                name, value = discardable(k, v)
                attrs[name] = value
            elif isinstance(value := inherent(k, v), Spread):
                attrs.update(value)
            elif k not in _SEGMENTS:
                attrs[k] = value
        return kind, attrs

    def _dictionary(self, index: int, r: Reader) -> dict[str, Value]:
        self.table.begin()
        value = self.table.attr(index, r)
        if not isinstance(value, Attrs):
            raise r.error("an op's attributes should be a dictionary")
        return dict(value)

    def _properties(self, name: str, index: int, r: Reader) -> dict[str, Value]:
        """Properties do not say what they are: that is known here, for every version of the op."""
        if index >= len(self.file.properties):
            raise r.error(f"properties {index} of {len(self.file.properties)}")
        at, size = self.file.properties[index]
        if name.startswith("vhlo."):
            variants = (tuple((attr, False) for attr in operation(name).attrs),)
        else:
            variants = PROPERTIES.get(name, ((),))
        failure: Error | None = None
        for variant in variants:
            try:
                return self._decode(variant, EntryReader(self.table, at, size))
            except Error as e:
                failure = failure or e
        assert failure is not None
        raise failure.at(self.file.loc, name)

    def _decode(self, variant: Properties, r: EntryReader) -> dict[str, Value]:
        self.table.begin()
        attrs: dict[str, Value] = {}
        for name, is_optional in variant:
            if name.startswith("+"):  # how many operands each group has, which the op finds out itself
                r.at = r.end
                continue
            value = r.optional() if is_optional else r.attr()
            if value is not None:
                attrs[name] = value.name if isinstance(value, Symbol) and name == "sym_name" else value
        if r.left:
            raise r.error(f"{r.left} bytes of properties are left over")
        return attrs
