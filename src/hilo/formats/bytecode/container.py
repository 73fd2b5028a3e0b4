"""The file around a program: header, sections, tables of strings, op names, entries. Imports wire and errors.

Nothing is decoded here beyond where things are; sections may come in any order.
"""

from __future__ import annotations

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode.wire import Reader
from hilo.record import field, record

MAGIC = b"ML\xefR"
NEWEST = 6
STRING, DIALECT, DATA, OFFSETS, IR, RESOURCE, RESOURCE_OFFSETS, DIALECT_VERSION, PROPERTIES = range(9)
_NAMES = ("string", "dialect", "attribute data", "attribute offset", "IR", "resource", "resource offset",
          "dialect version", "property")  # fmt: skip
_MAX_ALIGNMENT = 1 << 20


@record
class Entry:
    """Where an attribute or type is: `is_custom` says whether the dialect encoded it, else it is text."""

    dialect: str
    at: int
    size: int
    is_custom: bool


@record
class File:
    """The tables of a file; `ir` is the reader of its program."""

    data: bytes
    loc: object
    version: int
    producer: str
    strings: list[str] = field(default_factory=list)
    ops: list[tuple[str, bool]] = field(default_factory=list)  # full names; whether they have properties
    attrs: list[Entry] = field(default_factory=list)
    types: list[Entry] = field(default_factory=list)
    properties: list[tuple[int, int]] = field(default_factory=list)
    resources: list[tuple[str, bytes | None]] = field(default_factory=list)  # blobs; None: another kind of resource
    ir: Reader | None = None

    def string(self, r: Reader) -> str:
        """The string whose number is next."""
        i = r.varint()
        if i >= len(self.strings):
            raise r.error(f"string {i} of {len(self.strings)}")
        return self.strings[i]

    def reader(self, at: int, size: int) -> Reader:
        return Reader(self.data, at, at + size, self.loc)


def open_file(data: bytes, loc: object) -> File:
    """The tables of the file `data`. Raises `Error` if it is damaged, `Unsupported` if it is newer than this."""
    r = Reader(data, 0, len(data), loc)
    if data[:4] != MAGIC:
        raise Error("this is no MLIR bytecode", loc=loc)
    r.at = 4
    version = r.varint()
    if version > NEWEST:
        raise Unsupported(f"MLIR bytecode of version {version}; versions up to {NEWEST} are known here", loc=loc)
    end = data.find(b"\0", r.at)
    if end < 0:
        raise r.cut()
    file = File(data, loc, version, data[r.at : end].decode(errors="surrogateescape"))
    r.at = end + 1
    sections = _sections(r)
    for ident in (STRING, DIALECT, DATA, OFFSETS, IR):
        if ident not in sections:
            raise Error(f"MLIR bytecode without its {_NAMES[ident]} section", loc=loc)
    _read_strings(file, sections[STRING])
    dialects = _read_dialects(file, sections[DIALECT])
    _read_offsets(file, sections[OFFSETS], sections[DATA], dialects)
    if PROPERTIES in sections:
        _read_properties(file, sections[PROPERTIES])
    if RESOURCE_OFFSETS in sections and RESOURCE in sections:
        _read_resources(file, sections[RESOURCE_OFFSETS], sections[RESOURCE], len(dialects))
    file.ir = sections[IR]
    return file


def section(r: Reader) -> tuple[int, Reader]:
    """The next section: its number and its content."""
    ident = r.byte()
    size = r.varint()
    if ident & 0x80:
        align(r, r.varint())
    if ident & 0x7F >= len(_NAMES):
        raise r.error(f"section {ident & 0x7F} is not known here")
    return ident & 0x7F, r.part(size)


def align(r: Reader, alignment: int) -> None:
    """Move over padding to a multiple of `alignment` bytes in the file."""
    if not alignment or alignment & (alignment - 1) or alignment > _MAX_ALIGNMENT:
        raise r.error(f"an alignment of {alignment} bytes")
    r.part(-r.at % alignment)


def _sections(r: Reader) -> dict[int, Reader]:
    found: dict[int, Reader] = {}
    while r.left:
        ident, content = section(r)
        if ident in found:
            raise r.error(f"a second {_NAMES[ident]} section")
        found[ident] = content
    return found


def _done(r: Reader, what: str) -> None:
    if r.left:
        raise r.error(f"{r.left} bytes are left over in the {what} section")


def _read_strings(file: File, r: Reader) -> None:
    """Sizes come last to first, and count the zero byte at the end of each string."""
    sizes = [r.varint() for _ in range(r.count())]
    for size in reversed(sizes):
        part = r.part(size)
        if not size or file.data[part.end - 1]:
            raise r.error("a string does not end with a zero byte")
        file.strings.append(file.data[part.at : part.end - 1].decode(errors="surrogateescape"))
    _done(r, "string")


def _read_dialects(file: File, r: Reader) -> list[str]:
    dialects: list[str] = []
    for _ in range(r.count()):
        if file.version == 0:
            dialects.append(file.string(r))
            continue
        index, has_version = r.flagged()
        if index >= len(file.strings):
            raise r.error(f"string {index} of {len(file.strings)}")
        dialects.append(file.strings[index])
        if has_version:
            section(r)
    if file.version >= 4:
        r.varint()  # how many names of ops follow
    while r.left:
        dialect = _dialect(r, dialects)
        for _ in range(r.count()):
            index, registered = r.flagged() if file.version >= 5 else (r.varint(), False)
            if index >= len(file.strings):
                raise r.error(f"string {index} of {len(file.strings)}")
            file.ops.append((f"{dialect}.{file.strings[index]}", registered))
    return dialects


def _dialect(r: Reader, dialects: list[str]) -> str:
    i = r.varint()
    if i >= len(dialects):
        raise r.error(f"dialect {i} of {len(dialects)}")
    return dialects[i]


def _read_offsets(file: File, r: Reader, data: Reader, dialects: list[str]) -> None:
    n_attrs, n_types = r.varint(), r.varint()
    for what, entries, n in (("attributes", file.attrs, n_attrs), ("types", file.types, n_types)):
        if n > r.left:
            raise r.error(f"{n} {what} are announced, but {r.left} bytes are left")
        while len(entries) < n:
            dialect = _dialect(r, dialects)
            count = r.count()
            if not 0 < count <= n - len(entries):
                raise r.error(f"a group of {count} {what} where {n - len(entries)} are left")
            for _ in range(count):
                size, is_custom = r.flagged()
                entries.append(Entry(dialect, data.at, size, is_custom))
                data.part(size)
    _done(r, "attribute offset")
    _done(data, "attribute data")


def _read_properties(file: File, r: Reader) -> None:
    for _ in range(r.count()):
        size = r.varint()
        file.properties.append((r.at, size))
        r.part(size)
    _done(r, "property")


def _read_resources(file: File, offsets: Reader, data: Reader, n_dialects: int) -> None:
    """Only the dialects' blobs are kept; external resources are for tools."""
    for _ in range(offsets.count()):
        file.string(offsets)
        _read_group(file, offsets, data)
    while offsets.left:
        if offsets.varint() >= n_dialects:
            raise offsets.error("a resource of an unknown dialect")
        file.resources += _read_group(file, offsets, data)


def _read_group(file: File, offsets: Reader, data: Reader) -> list[tuple[str, bytes | None]]:
    group: list[tuple[str, bytes | None]] = []
    for _ in range(offsets.count()):
        key = file.string(offsets)
        size = offsets.varint()
        part = data.part(size)
        if offsets.byte() != 0:  # a boolean or a string
            group.append((key, None))
            continue
        alignment, length = part.varint(), part.varint()
        align(part, alignment)
        content = part.part(length)
        group.append((key, file.data[content.at : content.end]))
    return group
