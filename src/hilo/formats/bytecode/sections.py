"""The sections of a bytecode file, put together around the IR that a `Writer` made. Imports its siblings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilo.formats.bytecode import container
from hilo.formats.bytecode.emit import Numbered
from hilo.formats.bytecode.wire import Sink

if TYPE_CHECKING:
    from hilo.formats.bytecode.writer import Writer


def file_of(w: Writer, ir: Sink, producer: str) -> bytes:
    """The whole file: `w`'s tables and the IR section, in the form of the bytecode version `w.version`."""
    t = w.tables
    used = [*(n.partition(".")[0] for n in w.names), *(e[0] for e in t.attrs.entries + t.types.entries)]
    dialects = {d: i for i, d in enumerate(dict.fromkeys(used))}
    out = Sink(container.MAGIC)
    out.varint(w.version)
    out += producer.encode() + b"\0"
    out.section(container.DIALECT, _dialects(w, dialects))
    offsets = Sink()
    offsets.varint(len(t.attrs.entries))
    offsets.varint(len(t.types.entries))
    for table in (t.attrs, t.types):
        _offsets(offsets, table, dialects)
    out.section(container.OFFSETS, offsets)
    contents = [content for table in (t.attrs, t.types) for _, content, _ in table.entries]
    out.append(container.DATA)
    out.varint(sum(map(len, contents)))
    before, out = out, Sink()
    out.section(container.IR, ir)
    out.section(container.STRING, _strings(t.strings))
    if w.version >= 5:
        properties = Sink()
        properties.varint(len(w.properties))
        for blob in w.properties:
            properties.blob(blob)
        out.section(container.PROPERTIES, properties)
    return b"".join([before, *contents, out])  # the contents may be large: they are copied once


def _offsets(offsets: Sink, table: Numbered, dialects: dict[str, int]) -> None:
    entries = table.entries
    at = 0
    while at < len(entries):
        end = at
        while end < len(entries) and entries[end][0] == entries[at][0]:
            end += 1
        offsets.varint(dialects[entries[at][0]])
        offsets.varint(end - at)
        for _, content, is_custom in entries[at:end]:
            offsets.flagged(len(content), is_custom)
        at = end


def _dialects(w: Writer, dialects: dict[str, int]) -> Sink:
    s = Sink()
    s.varint(len(dialects))
    for d in dialects:
        if w.version == 0:
            s.varint(w.tables.string(d))
        else:
            s.flagged(w.tables.string(d), False)
    if w.version >= 4:
        s.varint(len(w.names))
    names = list(w.names)
    at = 0
    while at < len(names):
        dialect = names[at].partition(".")[0]
        end = at
        while end < len(names) and names[end].partition(".")[0] == dialect:
            end += 1
        s.varint(dialects[dialect])
        s.varint(end - at)
        for name in names[at:end]:
            index = w.tables.string(name.partition(".")[2])
            if w.version >= 5:
                s.flagged(index, True)
            else:
                s.varint(index)
        at = end
    return s


def _strings(strings: dict[str, int]) -> Sink:
    s = Sink()
    encoded = [text.encode(errors="surrogateescape") + b"\0" for text in strings]
    s.varint(len(encoded))
    for item in reversed(encoded):
        s.varint(len(item))
    for item in encoded:
        s += item
    return s
