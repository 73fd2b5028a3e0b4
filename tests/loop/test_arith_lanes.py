"""Elements of one lane beside elements of many; loads, stores and gathers of elements, with and without masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import edges, same_bits
from test_arith import BINARY, DIRECTIONS, check, kind_of

from hilo.errors import Error
from hilo.ir.dtypes import COMMON, DType
from hilo.ir.types import TensorType
from hilo.loop import arith, interpret
from hilo.loop.builder import Builder
from hilo.loop.nodes import I1, I64, PTR, Func

N = 8


def run(params: dict[str, Any], build: Any) -> None:
    """Build `build(b, *nodes)` as a function of these arrays and run it."""
    func = Func("f", [(name, PTR) for name in params])
    b = Builder(func)
    build(b, *func.params)
    b.ret()
    interpret.run(func, *params.values())


@pytest.mark.parametrize("t", COMMON, ids=str)
@pytest.mark.parametrize("first", [True, False])
def test_one_lane_beside_many(t: DType, first: bool) -> None:
    """`first`: the first operand has one lane, else the second."""
    many, one = np.resize(edges(t)[-N - 3 :], N), edges(t, 1)[1:2]
    attrs: list[tuple[str, dict[str, Any]]] = [(n, {}) for n, kinds in BINARY.items() if t.kind in kinds]
    attrs += [("compare", {"comparison_direction": d, "compare_type": "NOTYPE"}) for d in DIRECTIONS]
    for name, given in attrs:
        kind = kind_of(name)
        wide = np.resize(one, N)
        want = kind.evaluate(*((wide, many) if first else (many, wide)), **given)
        out = np.zeros(N, want.dtype)

        def build(b: Builder, x: Any, y: Any, z: Any, kind: Any = kind, given: Any = given) -> None:
            e = [arith.load_elem(b, x, 0, t, N), arith.load_elem(b, y, 0, t)]
            value = kind.scalar(b, TensorType(t, (N,)), *(e[::-1] if first else e), **given)
            assert value.lanes == N
            assert value.im is None or value.im.type.lanes == N
            arith.store_elem(b, z, 0, value)

        run({"x": many, "y": one, "z": out}, build)
        check(kind, t, out, want, [wide, many] if first else [many, wide], name)


@pytest.mark.parametrize("t", COMMON, ids=str)
def test_select_and_clamp_share_rank_0_operands(t: DType) -> None:
    x, y, lo = edges(t)[:N], np.resize(edges(t, 1), N), edges(t)[1:2]
    x = np.resize(x, N)
    for pred in (False, True):
        outs = [np.zeros(N, t.np) for _ in range(2)]

        def build(b: Builder, p: Any, x: Any, y: Any, lo: Any, o: Any, q: Any) -> None:
            from hilo.ir.dtypes import i1

            e, f, bound = arith.load_elem(b, x, 0, t, N), arith.load_elem(b, y, 0, t, N), arith.load_elem(b, lo, 0, t)
            arith.store_elem(b, o, 0, arith.select(b, arith.load_elem(b, p, 0, i1), e, f))
            arith.store_elem(b, q, 0, arith.clamp(b, bound, e, f))

        run({"p": np.array([pred]), "x": x, "y": y, "lo": lo, "o": outs[0], "q": outs[1]}, build)
        same_bits(outs[0], x if pred else y)
        same_bits(outs[1], kind_of("clamp").evaluate(lo.reshape(()), x, y))


@pytest.mark.parametrize("t", COMMON, ids=str)
def test_masked_lanes_touch_no_memory(t: DType) -> None:
    """The arrays end where the mask does: another access would be an error."""
    x = np.resize(edges(t), 3)
    out = np.zeros(3, t.np)
    stored = np.array([True, False, True])

    def build(b: Builder, x: Any, z: Any) -> None:
        mask = b.cmp("slt", b.iota(I64.with_lanes(N)), 3)
        e = arith.load_elem(b, x, 0, t, N, mask)
        odd = b.cmp("ne", b.iota(I64.with_lanes(N)), 1)
        arith.store_elem(b, z, 0, e, mask=b.and_(mask, odd))

    run({"x": x, "z": out}, build)
    same_bits(out, np.where(stored, x, np.zeros((), t.np)))

    def beyond(b: Builder, x: Any, z: Any) -> None:
        arith.store_elem(b, z, 0, arith.load_elem(b, x, 0, t, N))

    with pytest.raises(Error):
        run({"x": x, "z": out}, beyond)


@pytest.mark.parametrize("t", COMMON, ids=str)
def test_gathers(t: DType) -> None:
    x = np.resize(edges(t), 5)
    order = [4, 0, 3, 3, 1, 2, 0, 4]
    out, masked = np.zeros(N, t.np), np.zeros(N, t.np)

    def build(b: Builder, x: Any, z: Any, m: Any) -> None:
        offsets = b.const(tuple(k * t.itemsize for k in order), I64.with_lanes(N))
        arith.store_elem(b, z, 0, arith.gather_elem(b, x, offsets, t))
        wild = b.const(tuple(k * t.itemsize if i % 2 else 1 << 40 for i, k in enumerate(order)), I64.with_lanes(N))
        mask = b.const(tuple(i % 2 for i in range(N)), I1.with_lanes(N))
        arith.store_elem(b, m, 0, arith.gather_elem(b, x, wild, t, mask))

    run({"x": x, "z": out, "m": masked}, build)
    same_bits(out, x[order])
    same_bits(masked, np.where(np.arange(N) % 2 == 1, x[order], np.zeros((), t.np)))


def test_a_splat_is_stored_to_all_lanes() -> None:
    for t in COMMON:
        x, out = edges(t)[1:2], np.zeros(N, t.np)
        run({"x": x, "z": out}, lambda b, x, z, t=t: arith.store_elem(b, z, 0, arith.load_elem(b, x, 0, t), N))
        same_bits(out, np.resize(x, N))
