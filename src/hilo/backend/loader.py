"""Object files in memory, ready to be called: 64-bit ELF for x86-64 and AArch64. Imports backend.relocations, errors.

All sections lie in one block. LLVM's own loader asks for memory section by section: where a process has memory left in
places far apart, as beside TensorFlow's libraries, code cannot reach its constants then, and LLVM ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Sequence
from functools import cache
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, PROT_EXEC, PROT_READ, PROT_WRITE
from struct import Struct
from typing import Any, Final

from hilo.backend.relocations import ARM, PAGE, X86, Machine, TooFar, size_of, written
from hilo.errors import Error

HEADER: Final = Struct("<Q10xHHH")  # behind the first 40 bytes: where sections are said, size, number, the one of names
SECTION: Final = Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry size
SYMBOL: Final = Struct("<IBBHQQ")  # name, info, other, section, value, size
RELOCATION: Final = Struct("<QIIq")  # offset, kind, symbol, addend
SYMTAB, RELA, NOBITS = 2, 4, 8  # types of sections
WRITE, ALLOC, EXEC = 1, 2, 4  # their flags
COMMON: Final = 0xFFF2  # the section of symbols that have none in a file
LARGEST: Final = 1 << 31  # bytes of a section: more is out of reach
WEAK: Final = 2  # a symbol's binding
FUNCTION: Final = 2  # a symbol's type
# Frames for unwinding (.eh_frame) are left out: nothing is ever thrown through this code.
STUB_SIZE, SLOT_SIZE = 16, 8
PROTECTIONS: Final = (PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE)  # code, constants, variables
SMALL: Final = 1 << 20  # bytes that are written at once: the system makes the pages beforehand, where it can
_POPULATE: Final = getattr(mmap, "MAP_POPULATE", 0)
_NOWHERE: Final = (1 << 8 * struct.calcsize("P")) - 1  # what mmap gives when there is no memory
_WRITABLE: Final = 0x200  # PyBUF_WRITE


class Code:
    """Object files loaded together. The memory goes with this object.

    symbols  the addresses of what the files define
    """

    def __init__(self, files: Sequence[bytes], find: Callable[[str], int], machine: Machine = X86) -> None:
        """`find` gives the address of a symbol that no file defines; files are for `machine`. Raises `Error` for a file
        that is damaged, or has what is not known here."""
        self.symbols: dict[str, int] = {}
        self._base = self._size = 0
        try:
            objects = [_Object(data, machine) for data in files]
            self._load(objects, find, machine)
        except TooFar as e:
            raise Error(str(e)) from None
        except (struct.error, IndexError, ValueError, OverflowError) as e:
            raise Error(f"damaged object file: {e}") from None

    def _load(self, objects: list[_Object], find: Callable[[str], int], machine: Machine) -> None:
        groups = [_Group(), _Group(), _Group()]
        for o in objects:
            o.lay_out(groups)
        defined = {name for o in objects for name in o.defined}
        outside = list(dict.fromkeys(name for o in objects for name in o.missing if name not in defined))
        stubs = groups[0].add(STUB_SIZE * len(outside), STUB_SIZE)
        table = groups[1].add(SLOT_SIZE * sum(len(o.symbols) for o in objects if o.has_slots), SLOT_SIZE)
        size, starts = 0, []
        for g in groups:
            starts.append(size)
            size += -(-g.size // PAGESIZE) * PAGESIZE
        self._size = max(size, PAGESIZE)
        self._base = base = _map(self._size)
        memory = _library().view(base, self._size, _WRITABLE)
        for o in objects:
            o.place([base + s for s in starts], memory, base)
            for name, (address, weak) in o.placed.items():
                if name not in self.symbols or not weak:
                    self.symbols[name] = address
        found = dict(self.symbols)
        jumps = dict(self.symbols)
        for i, name in enumerate(outside):
            at = starts[0] + stubs + STUB_SIZE * i
            found[name] = find(name)
            jumps[name] = base + at
            memory[at : at + STUB_SIZE] = machine.stub(found[name])
        slot = table = base + starts[1] + table
        for o in objects:
            o.resolve(found, jumps)
            if o.has_slots:
                at = slot - base
                memory[at : at + SLOT_SIZE * len(o.symbols)] = b"".join([a.to_bytes(8, "little") for a in o.address])
            o.relocate(memory, base, slot, table)
            slot += SLOT_SIZE * len(o.symbols) * o.has_slots
        for start, g, protection in zip(starts, groups, PROTECTIONS, strict=True):
            if g.size and _library().protect(base + start, g.size, protection):
                raise Error("the system does not allow code in memory")
        if machine is ARM:
            _forget_instructions(base, base + groups[0].size)

    def __del__(self) -> None:
        if self._base:
            _library().unmap(self._base, self._size)
            self._base = 0


class _Group:
    """Sections of the same protection, one behind the other."""

    def __init__(self) -> None:
        self.size = 0

    def add(self, size: int, align: int) -> int:
        at = -(-self.size // max(align, 1)) * max(align, 1)
        self.size = at + size
        return at


class _Object:
    """One file.

    defined, missing  names of its symbols: numbers of those that it has, and are they weak; those that it has not
    placed            the same with addresses
    address, jump     of each symbol: its address; the same, or that of the stub that jumps there
    """

    def __init__(self, data: bytes, machine: Machine) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or int.from_bytes(data[18:20], "little") != machine.number:
            raise Error(f"not an ELF object file for {machine.name}")
        self.data, self.machine = data, machine
        start, entry, count, names = HEADER.unpack_from(data, 40)
        self.sections = [SECTION.unpack_from(data, start + i * entry) for i in range(count)]
        texts = self.sections[names][4]
        self.is_placed = [bool(s[2] & ALLOC and s[5]) and self._text(texts + s[0]) != ".eh_frame"
                          for s in self.sections]  # fmt: skip
        self.symbols: list[tuple[int, ...]] = []
        self.defined: dict[str, tuple[int, bool]] = {}
        self.placed: dict[str, tuple[int, bool]] = {}
        self.names: dict[int, str] = {}  # of symbols that other files may know
        self.missing: list[str] = []
        self.relocations: list[tuple[int, list[tuple[int, int, int, int]]]] = []  # of which section
        for _, kind, _, _, offset, size, link, info, _, _ in self.sections:
            if kind == SYMTAB and not self.symbols:
                self.symbols = list(SYMBOL.iter_unpack(data[offset : offset + size]))
                self._read_names(self.sections[link][4], info)
            elif kind == RELA and self.is_placed[info]:
                self.relocations.append((info, list(RELOCATION.iter_unpack(data[offset : offset + size]))))
        slots = machine.slots
        self.has_slots = any(r[1] in slots for _, all_of in self.relocations for r in all_of)
        self.address: list[int] = []
        self.jump: list[int] = []

    def _read_names(self, texts: int, first: int) -> None:
        """Names of symbols; those before `first` are private."""
        for i, (at, info, _, section, _, _) in enumerate(self.symbols):
            if i >= first:
                name = self.names[i] = self._text(texts + at)
                if section:
                    self.defined[name] = i, info >> 4 == WEAK
                else:
                    self.missing.append(name)
            elif section and info & 15 == FUNCTION:  # a kernel's helper is private, but in a module of its own
                self.defined[self._text(texts + at)] = i, True

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def lay_out(self, groups: Sequence[_Group]) -> None:
        """Take room in the groups for code, constants and variables."""
        self.spots: dict[int, tuple[int, int]] = {}  # section -> (group, offset in it)
        for i, s in enumerate(self.sections):
            if self.is_placed[i]:
                if max(s[5], s[8]) > LARGEST:
                    raise ValueError("a section of impossible size")
                group = 0 if s[2] & EXEC else 2 if s[2] & WRITE else 1
                self.spots[i] = group, groups[group].add(s[5], s[8])
        self.commons = {i: groups[2].add(size, align) for i, (_, _, _, section, align, size) in enumerate(self.symbols)
                        if section == COMMON}  # fmt: skip
        if any(g.size > LARGEST for g in groups):
            raise ValueError("sections of impossible size")

    def place(self, addresses: Sequence[int], memory: memoryview, base: int) -> None:
        """Copy sections to their places; `addresses` are the groups'."""
        self.start = starts = [0] * len(self.sections)
        for i, (group, offset) in self.spots.items():
            _, kind, _, _, at, size, *_ = self.sections[i]
            starts[i] = addresses[group] + offset
            if kind != NOBITS:
                to = starts[i] - base
                memory[to : to + size] = self.data[at : at + size]  # an error if the file ends before
        count = len(starts)
        self.address = [value + starts[section] if section < count else value
                        for _, _, _, section, value, _ in self.symbols]  # fmt: skip
        for i, offset in self.commons.items():
            self.address[i] = addresses[2] + offset
        self.jump = self.address.copy()
        self.placed = {name: (self.address[i], weak) for name, (i, weak) in self.defined.items()}

    def resolve(self, found: dict[str, int], jumps: dict[str, int]) -> None:
        """Give symbols of other files their addresses."""
        for i, name in self.names.items():
            if name not in self.defined:
                self.address[i], self.jump[i] = found[name], jumps[name]

    def relocate(self, memory: memoryview, base: int, slots: int, table: int) -> None:
        """Put addresses where the code wants them; `slots` is where this file's part of the `table` is."""
        kinds = self.machine.kinds
        for section, all_of in self.relocations:
            start, size = self.start[section], self.sections[section][5]
            for offset, number, symbol, addend in all_of:
                kind = kinds.get(number)
                if kind is None:
                    raise Error(f"object file with relocations of the unknown kind {number}")
                of, origin, _ = kind
                length = size_of(kind)
                if offset + length > size:
                    raise ValueError("a relocation outside of its section")
                place = start + offset
                if of == "slot":
                    value = slots + SLOT_SIZE * symbol + addend
                elif of == "table":
                    value = table + addend
                else:
                    value = (self.jump if of == "jump" else self.address)[symbol] + addend
                if origin == "here":
                    value -= place
                elif origin == "page":
                    value = value // PAGE * PAGE - place // PAGE * PAGE
                elif origin == "table":
                    value -= table
                at = place - base
                before = int.from_bytes(memory[at : at + length], "little")
                memory[at : at + length] = written(kind, value, before).to_bytes(length, "little")


class _Library:
    """What the loader calls, of the C library and of Python itself. Nothing of it takes so long that other threads
    should go on meanwhile."""

    def __init__(self) -> None:
        pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
        self.map = self._function("mmap", pointer, pointer, size, number, number, number, ctypes.c_long)
        self.unmap = self._function("munmap", number, pointer, size)
        self.protect = self._function("mprotect", number, pointer, size, number)
        self.view = self._function("PyMemoryView_FromMemory", ctypes.py_object, pointer, ctypes.c_ssize_t, number)

    @staticmethod
    def _function(name: str, result: Any, *arguments: Any) -> Any:
        f = ctypes.pythonapi[name]
        f.restype, f.argtypes = result, arguments
        return f


_library = cache(_Library)


def _forget_instructions(begin: int, end: int) -> None:
    """Drop what the processor may hold of instructions in a range. Linux does so when pages become code for the first
    time; the function, where there is one, makes sure."""
    for library in (None, "libgcc_s.so.1"):
        try:
            forget = ctypes.CDLL(library).__clear_cache
        except (OSError, AttributeError):
            continue
        forget.argtypes, forget.restype = (ctypes.c_void_p, ctypes.c_void_p), None
        forget(begin, end)
        return


def _map(size: int) -> int:
    how = MAP_PRIVATE | MAP_ANONYMOUS | (_POPULATE if size <= SMALL else 0)
    address = _library().map(None, size, PROT_READ | PROT_WRITE, how, -1, 0)
    if address in (None, _NOWHERE):
        raise MemoryError
    return address
