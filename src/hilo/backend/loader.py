"""Object files in memory, ready to be called: 64-bit ELF for x86-64 and AArch64. Imports backend.relocations, errors.

All sections lie in one block. LLVM's own loader asks for memory section by section: where a process has memory left in
places far apart, as beside TensorFlow's libraries, code cannot reach its constants then, and LLVM ends the process.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, PAGESIZE, PROT_EXEC, PROT_READ, PROT_WRITE
from typing import Any, Final

import numpy as np

from hilo.backend.relocations import ARM, PAGE, X86, Machine, TooFar, size_of, written
from hilo.errors import Error

SECTION: Final = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, info, align, entry size
SYMBOL: Final = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"),
                          ("size", "<u8")])  # fmt: skip
RELOCATION: Final = np.dtype([("offset", "<u8"), ("kind", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])
SYMTAB, RELA, NOBITS = 2, 4, 8  # types of sections
WRITE, ALLOC, EXEC = 1, 2, 4  # their flags
COMMON: Final = 0xFFF2  # the section of symbols that have none in a file
LARGEST: Final = 1 << 31  # bytes of a section: more is out of reach
WEAK: Final = 2  # a symbol's binding
FUNCTION: Final = 2  # a symbol's type
# Frames for unwinding (.eh_frame) are left out: nothing is ever thrown through this code.
STUB_SIZE, SLOT_SIZE = 16, 8
PROTECTIONS: Final = (PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE)  # code, constants, variables


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
        starts = [0, *np.cumsum([-(-g.size // PAGESIZE) * PAGESIZE for g in groups]).tolist()]
        self._size = max(starts[-1], PAGESIZE)
        self._base = _map(self._size)
        block: Any = (ctypes.c_uint8 * self._size).from_address(self._base)
        memory = np.frombuffer(block, np.uint8)
        addresses = [self._base + s for s in starts]
        for o in objects:
            o.place(addresses, memory, self._base)
            for name, (address, weak) in o.defined.items():
                if name not in self.symbols or not weak:
                    self.symbols[name] = address
        found: dict[str, int] = {}
        jumps: dict[str, int] = {}
        for i, name in enumerate(outside):
            found[name] = find(name)
            at = starts[0] + stubs + STUB_SIZE * i
            memory[at : at + STUB_SIZE] = np.frombuffer(machine.stub(found[name]), np.uint8)
            jumps[name] = self._base + at
        slot = addresses[1] + table
        for o in objects:
            o.resolve({**found, **self.symbols}, {**jumps, **self.symbols})
            if o.has_slots:
                at = slot - self._base
                memory[at : at + SLOT_SIZE * len(o.symbols)] = o.address.view(np.uint8)
            o.relocate(memory, self._base, slot, addresses[1] + table)
            slot += SLOT_SIZE * len(o.symbols) * o.has_slots
        for start, end, protection in zip(starts, starts[1:], PROTECTIONS):
            if end > start and _libc().mprotect(self._base + start, end - start, protection):
                raise Error("the system does not allow code in memory")
        if machine is ARM:
            _forget_instructions(self._base, self._base + starts[1])

    def __del__(self) -> None:
        if self._base:
            _libc().munmap(self._base, self._size)
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
    """One file. `address`: of each symbol; `jump`: the same, or of the stub that jumps there."""

    def __init__(self, data: bytes, machine: Machine) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or int.from_bytes(data[18:20], "little") != machine.number:
            raise Error(f"not an ELF object file for {machine.name}")
        self.data, self.machine = data, machine
        start, entry, count, names = struct.unpack_from("<Q10xHHH", data, 0x28)
        self.sections = [SECTION.unpack_from(data, start + i * entry) for i in range(count)]
        texts = self.sections[names][4]
        self.is_placed = [bool(s[2] & ALLOC and s[5]) and self._text(texts + s[0]) != ".eh_frame"
                          for s in self.sections]  # fmt: skip
        tables = [s for s in self.sections if s[1] == SYMTAB]
        self.symbols = np.zeros(0, SYMBOL)
        self.defined: dict[str, tuple[int, bool]] = {}  # number of the symbol, once placed its address; is it weak
        self.names: dict[int, str] = {}  # of symbols that other files may know
        self.missing: list[str] = []
        if tables:
            _, _, _, _, offset, size, link, first, _, _ = tables[0]
            self.symbols = np.frombuffer(data, SYMBOL, size // SYMBOL.itemsize, offset)
            texts = self.sections[link][4]
            for i, (at, info, _, section, _, _) in enumerate(self.symbols[:first].tolist()):
                if section and info & 15 == FUNCTION:  # a kernel's helper is private, but in a module of its own
                    self.defined[self._text(texts + at)] = i, True
            for i, (at, info, _, section, _, _) in enumerate(self.symbols[first:].tolist(), first):
                name = self.names[i] = self._text(texts + at)
                if section:
                    self.defined[name] = i, info >> 4 == WEAK
                else:
                    self.missing.append(name)
        # Per section: its relocations, and their kinds. (np.unique and its kin import numpy.ma, which takes 7 ms.)
        self.relocations: list[tuple[int, np.ndarray, set[int]]] = []
        for _, kind, _, _, offset, size, _, section, _, _ in self.sections:
            if kind == RELA and self.is_placed[section]:
                all_of = np.frombuffer(data, RELOCATION, size // RELOCATION.itemsize, offset)
                self.relocations.append((section, all_of, set(all_of["kind"].tolist())))
        slots = {n for n, kind in machine.kinds.items() if kind.of == "slot"}
        self.has_slots = any(not kinds.isdisjoint(slots) for _, _, kinds in self.relocations)
        self.address = self.jump = np.zeros(len(self.symbols), np.uint64)

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
        self.commons = {int(i): groups[2].add(int(self.symbols[i]["size"]), int(self.symbols[i]["value"]))
                        for i in np.flatnonzero(self.symbols["section"] == COMMON)}  # fmt: skip

    def place(self, addresses: Sequence[int], memory: np.ndarray, base: int) -> None:
        """Copy sections to their places; `addresses` are the groups'."""
        starts = np.zeros(len(self.sections), np.uint64)
        self.start = starts
        for i, (group, offset) in self.spots.items():
            _, kind, _, _, at, size, *_ = self.sections[i]
            starts[i] = addresses[group] + offset
            if kind != NOBITS:
                if at + size > len(self.data):
                    raise ValueError("a section ends behind the file")
                to = addresses[group] + offset - base
                memory[to : to + size] = np.frombuffer(self.data, np.uint8, size, at)
        inside = self.symbols["section"] < len(self.sections)
        address = self.symbols["value"].copy()
        address[inside] += starts[self.symbols["section"][inside]]
        for i, offset in self.commons.items():
            address[i] = addresses[2] + offset
        self.address = address
        self.jump = address.copy()
        self.defined = {name: (int(address[i]), weak) for name, (i, weak) in self.defined.items()}

    def resolve(self, found: dict[str, int], jumps: dict[str, int]) -> None:
        """Give symbols of other files their addresses."""
        for i, name in self.names.items():
            if name not in self.defined:
                self.address[i], self.jump[i] = found[name], jumps[name]

    def relocate(self, memory: np.ndarray, base: int, slots: int, table: int) -> None:
        """Put addresses where the code wants them; `slots` is where this file's part of the `table` is."""
        for section, all_of, kinds in self.relocations:
            for number in sorted(kinds):
                kind = self.machine.kinds.get(number)
                if kind is None:
                    raise Error(f"object file with relocations of the unknown kind {number}")
                r = all_of[all_of["kind"] == number]
                place = (self.start[section] + r["offset"]).astype(np.int64)
                symbol = r["symbol"].astype(np.int64)
                if kind.of == "slot":
                    value = slots + SLOT_SIZE * symbol + r["addend"]
                elif kind.of == "table":
                    value = table + r["addend"]
                else:
                    value = (self.jump if kind.of == "jump" else self.address)[symbol].astype(np.int64) + r["addend"]
                if kind.origin == "here":
                    value = value - place
                elif kind.origin == "page":
                    value = value // PAGE * PAGE - place // PAGE * PAGE
                elif kind.origin == "table":
                    value = value - table
                at, size = place - base, size_of(kind)
                if len(at) and (at.min() < 0 or at.max() + size > len(memory)):
                    raise ValueError("a relocation outside of its section")
                every = at[:, None] + np.arange(size)
                memory[every] = written(kind, value, memory[every])


@cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return libc


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
    address = _libc().mmap(None, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise MemoryError
    return address
