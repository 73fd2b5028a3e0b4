"""Arguments that cannot be used in place: other memory orders, other frameworks' arrays, and the errors.

Called by the native part for whatever is not a dense, aligned numpy array of exactly the expected type. Imports errors,
ir.dtypes and the native part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.ir import dtypes
from hilo.ir.dtypes import from_numpy
from hilo.runtime import _native

# (type code, bits) of DLPack. Types narrower than a byte are packed there: not these.
_DLPACK = {
    **{(0, t.bits): t.np for t in (dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64)},
    **{(1, t.bits): t.np for t in (dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64)},
    **{(2, t.bits): t.np for t in (dtypes.f16, dtypes.f32, dtypes.f64)},
    (4, 16): dtypes.bf16.np,
    **{(5, t.bits): t.np for t in (dtypes.c64, dtypes.c128)},
    (6, 8): dtypes.i1.np,
    **{(7 + i, 8): dtypes.dtype(name).np for i, name in enumerate(
        ("f8E3M4", "f8E4M3", "f8E4M3B11FNUZ", "f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ", "f8E8M0FNU"))},
}  # fmt: skip
_CPU_DEVICES = (1, 3, 11)  # DLPack: CPU, and host memory pinned by CUDA or ROCm
_SCALARS = (bool, int, float, complex)


def adapt(value: Any, dtype: np.dtype, shape: tuple[int, ...], what: str, index: int) -> np.ndarray:
    """`value` as a dense, aligned array of `dtype` and `shape`, without a copy where its memory allows it.

    Takes numpy arrays and scalars, anything with DLPack, `__array_interface__`, `__array__` or the buffer protocol, and
    Python numbers whose numpy type is `dtype`. Sizes of -1 are any. Never casts: another dtype or shape is
    an `Error` that begins with `what` and `index`.
    """
    where = f"{what} {index}"
    expected = type_text(dtype, shape)
    array = _as_array(value, where, expected)
    if array.dtype != dtype or not _fits(array.shape, shape):
        given = type_text(array.dtype, array.shape)
        raise Error(f"{where}: expected {expected}, got {given}{_hint(value, array, dtype, shape)}")
    dense = np.asarray(array, order="C")
    if type(dense) is not np.ndarray or not dense.flags.aligned or not dense.flags.c_contiguous:
        dense = np.array(dense, order="C", subok=False)
    return dense


def type_text(dtype: np.dtype, shape: tuple[int, ...]) -> str:
    """`f32[2,3]`; a dtype that programs do not have is named as numpy does."""
    try:
        name = from_numpy(dtype).name
    except KeyError:
        name = str(dtype)
    return f"{name}[{','.join('?' if n == -1 else str(n) for n in shape)}]"


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether an array's shape is the wanted one, in which -1 is any size."""
    return len(shape) == len(wanted) and all(n in (m, -1) for m, n in zip(shape, wanted, strict=True))


def _as_array(value: Any, where: str, expected: str) -> np.ndarray:
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray)
    if isinstance(value, (np.generic, *_SCALARS)):
        return np.asarray(value)
    if value is None or isinstance(value, (list, tuple, str, dict, set)):
        numbers = isinstance(value, (list, tuple))
        how = f"numpy.asarray(value, dtype) with the dtype of {expected}" if numbers else "an array"
        raise Error(f"{where}: expected {expected}, got a {type(value).__name__}: pass {how}")
    try:
        array = _from_protocols(value)
    except Error as error:
        raise Error(f"{where}: {error.message}") from error
    except Exception as error:
        raise Error(f"{where}: cannot read a {type(value).__name__} as an array: {error}") from error
    if array is None:
        raise Error(f"{where}: expected {expected}, got a {type(value).__name__}, which is not an array")
    return array


def _from_protocols(value: Any) -> np.ndarray | None:
    """The array behind a foreign object; None if it offers no protocol."""
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        device = value.__dlpack_device__()
        if int(device[0]) not in _CPU_DEVICES:
            where = tuple(map(int, device))
            raise Error(f"the {type(value).__name__} is not in host memory (DLPack device {where}): copy it there")
        try:
            return _native.from_dlpack(_capsule(value), _DLPACK)
        except (TypeError, RuntimeError, BufferError, ValueError):
            # The framework's own conversion may know what DLPack cannot say.
            if not hasattr(value, "__array__"):
                raise
    if hasattr(value, "__array_interface__") or hasattr(value, "__array__") or _is_buffer(value):
        array = np.asarray(value)
        return None if array.dtype == object else array
    return None


def _capsule(value: Any) -> Any:
    """A DLPack capsule, of version 1 from frameworks that know it (only they can pass read-only arrays)."""
    try:
        return value.__dlpack__(max_version=(1, 0))
    except TypeError:
        return value.__dlpack__()


def _is_buffer(value: Any) -> bool:
    try:
        memoryview(value)
    except (TypeError, BufferError):
        return False
    return True


def _hint(value: Any, array: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> str:
    if array.dtype.newbyteorder("=") == dtype and array.dtype != dtype:
        return " (byte-swapped): convert it with astype"
    if isinstance(value, _SCALARS):
        return f": pass numpy.asarray(value, dtype) with the dtype of {type_text(dtype, shape)}"
    if array.dtype != dtype and _fits(array.shape, shape):
        return ": values are never converted; use astype"
    return ""
