"""DLPack for arrays of the platform `hilo`, whose memory is the host's. Imports nothing of hilo; JAX when called.

JAX's own functions look at the platform's name, jaxlib's at its number.
"""

from __future__ import annotations

from functools import wraps
from importlib import import_module
from typing import Any, Final

import numpy as np

HILO: Final = "hilo"


class _Memory:
    """The memory of a JAX array of one device, as numpy takes it; keeps the array."""

    def __init__(self, array: Any, dtype: np.dtype) -> None:
        self.array = array
        data = (array.unsafe_buffer_pointer(), False)  # DLPack cannot say that memory is read-only
        self.__array_interface__ = {"version": 3, "shape": array.shape, "typestr": dtype.str, "data": data}


def _capsule(dlpack: Any, original: Any) -> Any:
    """`x.__dlpack__()`: jaxlib makes capsules for CPUs and GPUs that it knows by number."""

    @wraps(original)
    def _to_dlpack(x: Any, stream: Any, src_device: Any = None, device: Any = None, copy: bool | None = None) -> Any:
        source = src_device if src_device is not None else next(iter(x.devices()))
        if source.platform != HILO:
            return original(x, stream, src_device, device, copy)
        if device is not None and device.platform != HILO:
            return original(dlpack.device_put(x, device), stream, device, device, copy)
        if x.dtype.kind not in "biufc":
            raise BufferError(f"DLPack through numpy has no {x.dtype}; view the array as integers")
        x = dlpack._array_copy(x) if copy else x
        x.block_until_ready()
        return np.asarray(_Memory(x, np.dtype(x.dtype))).__dlpack__()

    return _to_dlpack


class _Platforms(dict[Any, str]):
    """DLPack's types of devices and JAX's platforms: the CPU is hilo where hilo is the default."""

    def __getitem__(self, key: Any) -> str:
        name = super().__getitem__(key)
        bridge = import_module("jax._src.xla_bridge")
        return HILO if name == "cpu" and bridge.default_backend() == HILO else name


def _platforms(dlpack: Any, original: dict[Any, str]) -> dict[Any, str]:
    """`jnp.from_dlpack(x)` of memory of the host."""
    return _Platforms(original)


def _device(array: Any, original: Any) -> Any:
    """`x.__dlpack_device__()`."""

    @wraps(original)
    def dlpack_device(self: Any) -> tuple[Any, int]:
        if len(self._arrays) == 1 and self.platform() == HILO:
            return import_module("jax._src.dlpack").DLDeviceType.kDLCPU, 0
        return original(self)

    return dlpack_device


PLACES: Final = (
    ("dlpack", "_to_dlpack", _capsule),
    ("dlpack", "_DL_DEVICE_TO_PLATFORM", _platforms),
    ("array", "ArrayImpl.__dlpack_device__", _device),
)
