"""LLVM as a library: the C functions that llvmlite's shared library exports, called directly. Imports errors and
backend.llvm_file.

llvmlite's Python part takes 25 ms to import, of which nothing is needed here; its library takes 7. The functions are
the same in all versions that pyproject.toml admits. Every module has an LLVM context of its own, so that nothing is
shared with other users of llvmlite in this process but the tables of targets.
"""

from __future__ import annotations

import ctypes
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache
from typing import Any, Final

from hilo.backend.llvm_file import path
from hilo.errors import Error

_TEXT: Final = POINTER(c_char_p)
#: Result and arguments of each function, without the prefix `LLVMPY_`.
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {
    "GetVersionInfo": (c_uint,),
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeNativeAsmParser": (None,),
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "SetCommandLine": (None, c_char_p, c_char_p),
    "DisposeString": (None, c_char_p),
    "GetProcessTriple": (None, _TEXT),
    "GetHostCPUName": (None, _TEXT),
    "GetHostCPUFeatures": (c_int, _TEXT),
    "GetTargetFromTriple": (c_void_p, c_char_p, _TEXT),
    "CreateTargetMachine": (c_void_p, c_void_p, c_char_p, c_char_p, c_char_p, c_int, c_char_p, c_char_p, c_int, c_int,
                            c_char_p),
    "CreateTargetMachineData": (c_void_p, c_void_p),
    "CopyStringRepOfTargetData": (None, c_void_p, _TEXT),
    "DisposeTargetData": (None, c_void_p),
    "ContextCreate": (c_void_p,),
    "ContextDispose": (None, c_void_p),
    "ParseAssembly": (c_void_p, c_void_p, c_char_p, _TEXT),
    "VerifyModule": (c_bool, c_void_p, _TEXT),
    "DisposeModule": (None, c_void_p),
    "TargetMachineEmitToMemory": (c_void_p, c_void_p, c_void_p, c_int, _TEXT),
    "GetBufferStart": (c_void_p, c_void_p),
    "GetBufferSize": (c_size_t, c_void_p),
    "DisposeMemoryBuffer": (None, c_void_p),
}  # fmt: skip


AT_HWCAP: Final = 16
ASIMDDP: Final = 1 << 20  # of a 64-bit Arm's bits: dot products of bytes
_LOCK: Final = allocate_lock()  # a target machine serves one module at a time


class Library:
    """The functions by their names without `LLVMPY_`."""

    def __init__(self, path: str) -> None:
        self._loaded = ctypes.CDLL(path)

    def __getattr__(self, name: str) -> Any:
        result, *arguments = _FUNCTIONS[name]
        f = getattr(self._loaded, f"LLVMPY_{name}")
        f.restype, f.argtypes = result, arguments
        setattr(self, name, f)
        return f


@cache
def library() -> Library:
    """The library, loaded once. Raises `Error` if llvmlite is not installed."""
    found = path()
    if not found:
        raise Error("hilo needs the package llvmlite, which is not installed")
    return Library(found)


@cache
def llvm_version() -> str:
    """LLVM's version."""
    packed = library().GetVersionInfo()  # the last number in the lowest byte
    return ".".join(str(packed >> shift & 255) for shift in (16, 8, 0))


def llvmlite_version() -> str:
    """llvmlite's version."""
    from llvmlite import __version__

    return __version__


@contextmanager
def text_out() -> Iterator[c_char_p]:
    """A place for a text that LLVM writes; it lives as long as the block."""
    place = c_char_p()
    try:
        yield place
    finally:
        if place:
            library().DisposeString(place)


def text_of(function: str, *arguments: Any) -> str:
    """The text that one of the functions writes into its last argument."""
    with text_out() as out:
        getattr(library(), function)(*arguments, byref(out))
        return (out.value or b"").decode(errors="replace")


@cache
def host() -> tuple[str, str, dict[str, bool]]:
    """The triple, the CPU's name and its features, of the machine that this process runs on."""
    features = text_of("GetHostCPUFeatures")
    has = {f[1:]: f[0] == "+" for f in features.split(",") if f}
    triple = text_of("GetProcessTriple")
    if triple.startswith("aarch64") and "linux" in triple:
        has["dotprod"] = bool(_hardware() & ASIMDDP)  # which LLVM does not look for
    return triple, text_of("GetHostCPUName"), has


def _hardware() -> int:
    """What the system says of the processor, in bits: getauxval(AT_HWCAP)."""
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype, getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    return int(getauxval(AT_HWCAP))


@contextmanager
def parsed(text: str) -> Iterator[int]:
    """The module of a text of LLVM IR, checked; it lives as long as the block. Raises `ValueError` in LLVM's words."""
    lib = library()
    context = lib.ContextCreate()
    try:
        with text_out() as why:
            module = lib.ParseAssembly(context, text.encode(), byref(why))
            if not module:
                raise ValueError(_said(why))
        try:
            with text_out() as why:
                if lib.VerifyModule(module, byref(why)):
                    raise ValueError(_said(why))
            yield module
        finally:
            lib.DisposeModule(module)
    finally:
        lib.ContextDispose(context)


def emitted(machine: int, module: int, *, assembly: bool = False) -> bytes:
    """The object file of a module, or its assembly. Raises `ValueError` in LLVM's words."""
    lib = library()
    with text_out() as why:
        with _LOCK:
            buffer = lib.TargetMachineEmitToMemory(machine, module, int(not assembly), byref(why))
        if not buffer:
            raise ValueError(_said(why))
    try:
        return ctypes.string_at(lib.GetBufferStart(buffer), lib.GetBufferSize(buffer))
    finally:
        lib.DisposeMemoryBuffer(buffer)


def _said(why: c_char_p) -> str:
    return (why.value or b"").decode(errors="replace").strip()
