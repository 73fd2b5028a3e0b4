"""Custom calls in native code: what can be registered as such, and calls of it. Imports custom_calls, backend, ir.

Addresses come from ints, ctypes functions, capsules, or names in shared libraries; a module of LLVM IR is compiled when
the interpreter needs it, and becomes part of the code of the programs that call it (backend/link.py).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from hilo.custom_calls import registry
from hilo.custom_calls.element_types import number
from hilo.custom_calls.registry import Target
from hilo.custom_calls.signature import is_row_major
from hilo.custom_calls.site import CallSite
from hilo.errors import Error, Unsupported
from hilo.ir.types import TensorType
from hilo.runtime import _native
from hilo.runtime.ffi_attributes import Attributes

STAGES: Final = ("instantiate", "prepare", "initialize", "execute")
_LOWEST: Final = 1 << 12  # nothing is mapped below
PLAIN, FFI = 0, 4  # numbers of conventions in native/foreign.h; XLA's older ones have those of api_version


def register(name: str, code: Any, convention: str) -> Any:
    """Make native `code` the custom call target `name`; gives `code`. Raises `Error` for what is no code."""
    registry.add(native_target(name, code, convention))
    return code


def native_target(name: str, code: Any, convention: str, user_data: int = 0, keep: Any = None) -> Target:
    """A target that is native `code`, not registered. `user_data`: an address for handlers of XLA's FFI; `keep` lives
    as long as the target. Raises `Error` for what is no code."""
    what = f"custom call target {name!r}"
    if convention == "llvm":
        from hilo.backend.link import custom_call_module

        text, symbol = custom_call_module(code, name)
        return Target(name, convention, code, symbol=symbol, text=text, invoke=invoke)
    _share_status()  # before a library is loaded
    if convention == "xla-ffi" and isinstance(code, Mapping):
        if unknown := [s for s in code if s not in STAGES]:
            raise Error(f"{what}: there is no stage {unknown[0]!r}; there are {', '.join(STAGES)}")
        if not code.get("execute"):
            raise Error(f"{what}: there is no code for the stage 'execute'")
        found = [address(code[s], what) if code.get(s) is not None else (0, "") for s in STAGES]
    else:
        found = [(0, ""), (0, ""), (0, ""), address(code, what)]
    a, b, c, d = (place for place, _ in found)
    return Target(name, convention, code, addresses=(a, b, c, d), symbol=found[-1][1], user_data=user_data,
                  invoke=invoke, keep=(code, keep))  # fmt: skip


def register_ffi_type(name: str, type_id: Any, type_info: Any = None) -> None:
    """Make a type of the states of XLA's FFI handlers known; both are given like code, `type_info` may be left out."""
    if not isinstance(name, str) or not name:
        raise Error(f"the name of a type is a string that is not empty, not {name!r}")
    what = f"type {name!r} of XLA's FFI"
    info = address(type_info, what)[0] if type_info is not None else 0
    _native.register_ffi_type(name, address(type_id, what)[0], info)


def address(code: Any, what: str) -> tuple[int, str]:
    """The address of native code, and its symbol if it has one that is known."""
    pointer: Any
    if isinstance(code, int) and not isinstance(code, bool):
        found, symbol = code, ""
    elif type(code).__name__ == "PyCapsule":
        found, symbol = _capsule(code), ""
    elif isinstance(code, tuple) and len(code) == 2:
        library, symbol = code
        try:
            pointer = getattr(ctypes.CDLL(os.fspath(library)), symbol)
        except (OSError, AttributeError, TypeError) as e:
            raise Error(f"{what}: {e}") from None
        found = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    elif isinstance(code, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        pointer = code
        found, symbol = ctypes.cast(pointer, ctypes.c_void_p).value or 0, getattr(code, "__name__", "")
    else:
        raise Error(f"{what}: expected an address, a capsule, a ctypes function or (library, symbol), not a "
                    f"{type(code).__name__}")  # fmt: skip
    if found == 0:
        raise Error(f"{what}: the address is null")
    if not _LOWEST <= found < 1 << 64:
        raise Error(f"{what}: {found} is no address")
    return found, symbol


def _capsule(capsule: Any) -> int:
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)) or 0


def _share_status() -> None:
    """Make our `XlaCustomCallStatusSetFailure` known to libraries that are loaded from now on."""
    ctypes.CDLL(_native.__file__, mode=ctypes.RTLD_GLOBAL)


def foreign(target: Target, site: CallSite) -> _native.Foreign:
    """One call of native code, ready to be made. Raises `Error` if the code cannot be called so."""
    g = site.signature
    operands, results = g.operand_tensors(), g.result_tensors()
    convention = _convention(target, site)
    packed = convention != PLAIN
    types = [number(t.dtype, f"operand {i}", packed=packed) for i, t in enumerate(operands)]
    types += [number(t.dtype, f"result {i}", packed=packed) for i, t in enumerate(results)]
    attributes = Attributes(site.attributes) if convention == FFI else None
    code = target.addresses if target.convention != "llvm" else (0, 0, 0, _compiled(target))
    try:
        return _native.Foreign(
            convention, code, list(map(spec, operands)), list(map(spec, results)), types, _numbered(g.operands),
            _numbered(g.results), site.config_text(), [n for pair in g.aliases for n in pair], g.is_tuple,
            attributes.address if attributes is not None else 0, (target, attributes), target.user_data,
        )  # fmt: skip
    except Error as e:
        raise failed(target.name, e.message) from None


def failed(name: str, message: str) -> Error:
    """What native code's failure is to the caller of a program."""
    return Error(f"custom call target {name!r} failed: {message}")


def spec(t: TensorType) -> tuple[np.dtype, tuple[int, ...]]:
    """A tensor's dtype and shape for the native part; -1: known at run time."""
    return t.dtype.np, tuple(n if isinstance(n, int) else -1 for n in t.shape)


def _numbered(leaves: Sequence[TensorType | None]) -> list[int]:
    """The number of each tensor; -1 for a token."""
    out: list[int] = []
    for t in leaves:
        out.append(-1 if t is None else sum(n >= 0 for n in out))
    return out


def _convention(target: Target, site: CallSite) -> int:
    if target.convention in ("c", "llvm"):
        return PLAIN
    is_ffi = site.api_version == FFI
    if is_ffi != (target.convention == "xla-ffi"):
        raise Error(f"custom call target {target.name!r} is registered with convention {target.convention!r}, but the "
                    f"call has api_version {site.api_version}")  # fmt: skip
    if not is_ffi and site.api_version not in (1, 2, 3):
        raise Unsupported(f"api_version {site.api_version} is not known")
    return site.api_version


def invoke(target: Target, site: CallSite, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Call native code with the interpreter's arrays, which are logical unless the call is in the order of memory."""
    g = site.signature
    call = foreign(target, site)
    given = [t for t in zip(g.operands, g.operand_layouts) if t[0] is not None]
    made = [t for t in zip(g.results, g.result_layouts) if t[0] is not None]
    arrays = []
    for a, (t, layout) in zip(operands, given, strict=True):
        assert t is not None
        a = a if g.in_memory or is_row_major(layout) else a.transpose(layout[::-1])
        arrays.append(np.ascontiguousarray(a).reshape(t.shape))
    try:
        results = call(*arrays)
    except Error as e:
        raise failed(target.name, e.message) from None
    out = []
    for r, (_, layout) in zip(results, made, strict=True):
        order = layout[::-1]
        r = r.reshape([r.shape[d] for d in order])
        out.append(r if g.in_memory else np.ascontiguousarray(r.transpose(np.argsort(order))) if order else r)
    return out


def _compiled(target: Target) -> int:
    """The address of a target that is LLVM IR, compiled on first use."""
    from hilo.backend.link import load_custom_call

    return load_custom_call(target.text, target.symbol)
