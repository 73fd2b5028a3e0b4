"""Products written as assembly do what LLVM makes of the same functions' bodies, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backend_runs import compile_llvm, usable

from hilo.backend.target import Target
from hilo.backend.x86_products import assembly
from hilo.kernels import contraction_panels, convolution_depthwise, convolution_tile, microkernel
from hilo.loop.nodes import SIZES, Func
from hilo.loop.product import Depthwise
from hilo.ops.window_axes import Axis

DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32}
SHAPES = {64: ((14, 2), (8, 3), (6, 4), (24, 1), (13, 2), (5, 3), (1, 4), (2, 1), (7, 2)),
          32: ((6, 2), (4, 3), (12, 1), (5, 2), (1, 1))}  # fmt: skip


def both(f: Func, target: Target) -> tuple[Any, Any]:
    """`f` as assembly, and by LLVM."""
    assert assembly(f, target) is not None
    plain = Func(f.name, [], f.ret, **{k: v for k, v in f.attrs.items() if k != "product"})
    plain.params, plain.body = f.params, f.body
    return compile_llvm([f], target)(f.name), compile_llvm([plain], target)(f.name)


def numbers(scalar: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if scalar == "i32":
        return rng.integers(-(2**31), 2**31, shape).astype(np.int32)
    return rng.standard_normal(shape).astype(DTYPES[scalar])


def wide_targets() -> list[Target]:
    return [t for t in usable() if t.vector_bytes == 64]


def targets_and_shapes() -> list[Any]:
    return [pytest.param(t, *s, id=f"{t.name}-{s[0]}x{s[1]}") for t in usable() for s in SHAPES.get(t.vector_bytes, ())]


def agree(f: Func, target: Target, cases: list[dict[str, Any]], size: int) -> None:
    """Both versions of `f` leave the same `size` bytes of C, whatever the parameters; None stands for C."""
    functions = both(f, target)
    for case in cases:
        left = []
        for function in functions:
            room = np.empty(size // 4 + 16, np.float32)
            c = room[-room.ctypes.data % 64 // 4 :][: size // 4]  # aligned, as results are
            c[:] = np.arange(size // 4) % 7
            at = c.ctypes.data + 256
            function(*[at if case[p.attrs["name"]] is None else case[p.attrs["name"]] for p in f.params])
            left.append(c.tobytes())
        assert left[0] == left[1], case


def tile_cases(t: microkernel.Tile) -> list[dict[str, Any]]:
    """Every kind of parameters: A by rows and turned, sums from zero and from C, short and long k, live columns."""
    size, b_size = SIZES[t.scalar], microkernel.memory_size(t.scalar, t.narrow)
    a, b = numbers(t.scalar, (2048,), 1), numbers(t.scalar, (4096,), 2)
    kept.extend((a, b))
    out = []
    for k in (0, 1, 9):
        for init_row in (-1, 256 * size):
            for a_row, a_k in ((11 * size, size), (size, 25 * size)):
                last = t.lanes // 2 if t.half else t.lanes
                for live in {1, last - 1, last} if t.masked else {last}:
                    n = (t.vectors - 1) * t.lanes + live
                    out.append({
                        "a": a.ctypes.data, "a_row": a_row, "a_k": a_k, "b": b.ctypes.data,
                        "b_k": (t.width + 3) * b_size, "c": None, "c_row": 256 * size, "init": None,
                        "init_row": init_row, "k": k, "n": n, "ahead": b.ctypes.data, "ahead_k": 64,
                    })  # fmt: skip
    return out


kept: list[np.ndarray] = []  # operands of cases


@pytest.mark.parametrize(("target", "rows", "vectors"), targets_and_shapes())
@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_tile(target: Target, rows: int, vectors: int, scalar: str) -> None:
    for masked, half in ((False, False), (True, False), (True, True)) if target.has_masks else ((False, False),):
        t = microkernel.Tile("fma", scalar, rows, vectors, target.lanes(scalar), masked, 2, touches=masked, half=half)
        agree(microkernel.tile(t), target, tile_cases(t), 256 * 8 * 32)
    t = microkernel.Tile("fma", scalar, rows, vectors, target.lanes(scalar), target.has_masks, streams=True)
    agree(microkernel.tile(t), target, tile_cases(t), 256 * 8 * 32)


@pytest.mark.parametrize("target", [t for t in usable() if t.vector_bytes >= 32], ids=lambda t: t.name)
def test_tile_of_narrow_columns(target: Target) -> None:
    for masked, half in ((False, False), (True, False), (True, True)) if target.has_masks else ((False, False),):
        t = microkernel.Tile("fma", "f32", 4, 3, target.lanes("f32"), masked, narrow="bf16", half=half)
        agree(microkernel.tile(t), target, tile_cases(t), 256 * 4 * 32)


@pytest.mark.parametrize("target", [t for t in wide_targets() if t.has_dot4], ids=lambda t: t.name)
def test_tile_of_bytes(target: Target) -> None:
    for vectors, masked, half in ((3, False, False), (1, True, False), (2, True, False), (2, True, True)):
        t = microkernel.Tile("dot4", "i32", 8, vectors, 16, masked, half=half)
        agree(microkernel.tile(t), target, tile_cases(t), 256 * 4 * 32)


@pytest.mark.parametrize(("target", "rows", "vectors"), [p for p in targets_and_shapes() if p.values[1] <= 14])
@pytest.mark.parametrize("scalar", ["f32", "f64"])
def test_tile_in_segments(target: Target, rows: int, vectors: int, scalar: str) -> None:
    size, lanes = SIZES[scalar], target.lanes(scalar)
    a, b = numbers(scalar, (4096,), 3), numbers(scalar, (4096,), 4)
    width, row = vectors * lanes, 256 * size
    cases = []
    for k, segments in ((0, 2), (1, 1), (5, 3), (4, 0)):
        for more in (0, 1):
            cases.append({
                "a": a.ctypes.data, "b": b.ctypes.data, "k": k, "a_row": 17 * size, "b_k": width * size,
                "ahead": b.ctypes.data, "ahead_k": 64, "a_group": 301 * size, "segments": segments,
                "a_segment": 31 * size, "b_segment": 5 * width * size, "c": None, "c_row": row,
                "c_group": (rows + 1) // 2 * row + 64, "more": more, "touch": None, "touch_row": row,
                "touch_group": 8 * row,
            })  # fmt: skip
    for half in (False, True) if target.has_masks else (False,):
        t = convolution_tile.Tile("fma", scalar, rows, vectors, lanes, half=half)
        agree(convolution_tile.tile(t), target, cases, 256 * 8 * 32)


ROWS = {  # of depthwise convolutions: taps, stride, dilation, positions, low, columns, places
    "three": (3, 1, 1, 5, 1, 23, 23),
    "one_tile": (3, 1, 1, 4, 1, 4, 4),
    "strided": (3, 2, 1, 4, 0, 20, 10),
    "wide": (5, 2, 1, 3, 2, 19, 10),
    "holes": (3, 1, 3, 6, 3, 21, 21),
    "single": (1, 1, 1, 7, 0, 17, 17),
    "far": (7, 1, 1, 8, 3, 25, 25),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("scalar", ["f32", "f64"])
@pytest.mark.parametrize("target", [t for t in usable() if t.vector_bytes >= 32], ids=lambda t: t.name)
def test_depthwise_row(target: Target, scalar: str, name: str) -> None:
    taps, stride, dilation, most, low, columns, places = ROWS[name]
    axis = Axis(size=taps, stride=stride, dilation=dilation, low=low)
    found = convolution_depthwise.tiles_of(axis, columns, places, most + taps + 2)
    assert found is not None
    positions, _, end, tiles = found
    size, lanes = SIZES[scalar], target.lanes(scalar)
    x, w = numbers(scalar, (3 * columns * (lanes + 3),), 7), numbers(scalar, (4 * taps * (lanes + 3),), 8)
    x_column = w_column = (lanes + 3) * size
    inner = places - sum(o * stride - low + axis.reach > columns for o in range(places))
    for masked in (False, True) if target.has_masks else (False,):
        sums = Depthwise(scalar, lanes, masked, taps, stride, dilation, positions, low, end, tiles)
        r = convolution_depthwise.Row(scalar, scalar, sums)
        cases = [{
            "x": x.ctypes.data, "x_row": columns * x_column, "x_column": x_column,
            "w": w.ctypes.data + (-turn * (taps - 1) * w_column if turn < 0 else 0), "w_row": taps * w_column,
            "w_column": turn * w_column, "rows": rows, "ahead": columns * x_column, "fresh": 1, "to": None,
            "to_column": apart * size, "inner": inner, "width": places, "live": live,
        } for rows, turn, apart, live in ((3, 1, lanes, lanes), (0, 1, lanes, 1), (2, -1, lanes + 5, lanes - 1))
        ]  # fmt: skip
        agree(convolution_depthwise.sums_of_row(r), target, cases, 256 * 8 * 32)


def test_others_are_left_to_llvm() -> None:
    """What there is no code for: no multiply-add, narrower vectors than the target has, other ways to combine."""
    wide, small = Target.named("x86-avx512"), Target.named("x86-sse2")
    for t, target in (
        (microkernel.Tile("fmuladd", "f32", 4, 2, 4), small),
        (microkernel.Tile("fma", "f32", 4, 2, 1), wide),
        (microkernel.Tile("dot2", "i32", 4, 2, 16), wide),
        (microkernel.Tile("fma", "f32", 8, 4, 16), wide),  # more registers than there are
        (microkernel.Tile("fma", "f32", 4, 2, 8, masked=True), Target.named("x86-avx2")),
    ):
        assert assembly(microkernel.tile(t), target) is None


@pytest.mark.parametrize("target", wide_targets(), ids=lambda t: t.name)
@pytest.mark.parametrize("scalar", ["f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("vectors", [1, 3])
def test_panels(target: Target, scalar: str, vectors: int) -> None:
    """Panels copied as they lie and turned: whole ones, and with columns that are not there."""
    size, lanes = SIZES[scalar], target.lanes(scalar)
    source = np.random.default_rng(5).integers(0, 255, 1 << 17, dtype=np.uint8)  # bit patterns
    kept.append(source)
    width, row = vectors * lanes, (vectors * lanes + 5) * size
    packings, turnings = [], []
    for k in (0, 1, lanes - 1, lanes, lanes + 3, 4 * lanes):
        for live in (width, width - 1, width - lanes + 1):
            packings += [{
                "to": None, "source": source.ctypes.data, "b_k": row, "b_segment": 64 * row, "segments": segments,
                "k": k, "live": live, "panels": panels, "to_panel": 2 * 64 * width * size, "source_panel": width * size,
            } for segments in (1, 2) for panels in (0, 1, 3)]  # fmt: skip
            turnings.append({
                "panel": None, "width": width * size, "source": source.ctypes.data, "b_col": 70 * size, "k": k,
                "live": live, "vectors": vectors,
            })  # fmt: skip
    pack = convolution_tile.Pack(scalar, "", vectors, lanes, target.has_masks)
    agree(convolution_tile.pack(pack), target, packings, 1 << 18)
    # Columns that are not there are of no account, yet both ways take the last one for them.
    agree(contraction_panels.turn(scalar, "", lanes, target.has_masks), target, turnings, 1 << 18)


def test_narrow_panels() -> None:
    for target in wide_targets():
        source = np.arange(1 << 14, dtype=np.uint16)
        kept.append(source)
        cases = [{
            "to": None, "source": source.ctypes.data, "b_k": 100, "b_segment": 900, "segments": 2, "k": 5, "live": live,
            "panels": 2, "to_panel": 4096, "source_panel": 64,
        } for live in (32, 17, 3)]  # fmt: skip
        pack = convolution_tile.Pack("f32", "bf16", 2, 16, target.has_masks)
        agree(convolution_tile.pack(pack), target, cases, 1 << 15)
