"""Groups of processes along the axes of a mesh, as lists of numbers. Imports ir.

Such groups, `#stablehlo.replica_group_mesh_axes<mesh = ..., axes = [...]>`, are kept as text. The mesh is written in
place, or is a symbol of the module (`sdy.mesh @mesh = <["x"=2, "y"=3]>`).
"""

from __future__ import annotations

import re
from itertools import pairwise
from math import prod
from typing import Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.ir.module import Module

_REF: Final = re.compile(
    r'axis_ref<\s*name\s*=\s*"([^"]*)"\s*(?:,\s*sub_axis_info\s*=\s*\(\s*(\d+)\s*\)\s*(\d+)\s*)?>'
)
_SYMBOL: Final = re.compile(r'\bmesh\s*=\s*@([\w$.-]+|"[^"]*")')
_AXIS: Final = re.compile(r'mesh_axis<\s*name\s*=\s*"([^"]*)"\s*,\s*size\s*=\s*(\d+)|"([^"]*)"\s*=\s*(\d+)')
_IDS: Final = re.compile(r"device_ids\s*=\s*(?:dense<)?\s*(\[[^\]]*\]|\d+)")
_LARGEST: Final = 1 << 20  # processes of a mesh


def groups_along(text: str, module: Module | None) -> tuple[tuple[int, ...], ...]:
    """The groups that `text` describes: the numbers of devices that differ along the given axes only, in the order of
    those. `module` has the meshes that are symbols. Raises `Error` for an axis that the mesh does not have.
    """
    axes, ids = _mesh(text, module)
    refs = [(name, int(pre or 1), int(size) if size else axes.get(name, 0) // int(pre or 1))
            for name, pre, size in _REF.findall(text)]  # fmt: skip
    dims: list[tuple[str, int, int]] = []  # (axis, the product of its parts before this one, size)
    for name, n in axes.items():
        cuts = {1, n, *(c for axis, pre, size in refs if axis == name for c in (pre, pre * size))}
        for a, b in pairwise(sorted(cuts)):
            if b > n or b % a or n % b:
                raise Error(f"the parts of axis {name!r} in {text} do not divide its size {n}")
            dims.append((name, a, b // a))
    grouped: list[int] = []
    for name, pre, size in refs:
        if name not in axes:
            raise Error(f"the mesh has no axis {name!r}; it has {', '.join(axes) or 'none'}")
        grouped += [i for i, (axis, a, _) in enumerate(dims) if axis == name and pre <= a < pre * size]
    if len(set(grouped)) != len(grouped):
        raise Error(f"the axes in {text} overlap")
    kept = [i for i in range(len(dims)) if i not in grouped]
    rows = ids.reshape([n for *_, n in dims]).transpose(kept + grouped)
    return tuple(map(tuple, rows.reshape(-1, prod(dims[i][2] for i in grouped)).tolist()))


def _mesh(text: str, module: Module | None) -> tuple[dict[str, int], np.ndarray]:
    """The axes of the mesh with their sizes, and its devices in order."""
    symbol = _SYMBOL.search(text)
    if symbol:
        name = symbol[1].strip('"')
        attrs = module.attrs if module is not None else {}
        found = next((str(v) for k, v in attrs.items() if k.split(" @")[-1] == name and " @" in k), None)
        if found is None:
            raise Unsupported(f"the groups {text} are along the axes of a mesh @{name}, which is not known here")
        text = found
    axes = {a or b: int(m or n) for a, m, b, n in _AXIS.findall(text)}
    count = prod(axes.values())
    if count > _LARGEST:
        raise Error(f"a mesh of {count} devices is too large")
    ids = _IDS.search(text)
    devices = np.array([int(n) for n in re.findall(r"\d+", ids[1])] if ids else range(count), np.int64)
    if len(devices) != count:
        raise Error(f"a mesh of {count} devices lists {len(devices)}")
    return axes, devices
