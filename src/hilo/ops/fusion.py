"""The fusion: ops that one kernel computes together, and how their elements are composed. Imports ir, loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dims import typical
from hilo.ir.dtypes import DType, f32, from_numpy, i1
from hilo.ir.module import Function, parameter, region
from hilo.ir.op import PARAMETER, Op
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type
from hilo.later import Later
from hilo.loop.builder import Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Index, linear, node

if TYPE_CHECKING:
    from hilo.ir import interpret
else:
    interpret = Later("hilo.ir.interpret")

REGION: Final = 64  # elements of a value in a region that kernels compute in registers
SMALL_TURN: Final = 4096  # elements below which moving data in any order costs nothing
CONTRACTIONS: Final = frozenset(("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution"))
INLINE: Final = frozenset(  # ops whose regions kernels compute for elements in registers
    f"stablehlo.{name}" for name in ("map", "reduce", "reduce_window", "scatter", "select_and_scatter", "sort")
)
KINDS = ("loop", "rows", "contraction", "attention", "online")
Indices = tuple[Index, ...]
Source = Callable[[Indices], Elem]


@op("fusion", dialect="hilo")
class fusion:
    """Several ops computed by one kernel: the results of `body` on the operands.

    `kind` says what kernel it is for: "loop" (all results have one shape and are computed element by element), "rows"
    (reductions, and what is computed from them row by row), "contraction" (one `dot_general`, `dot` or `convolution` of
    parameters, and one result that is computed from its elements, each from the one at the same place) or "attention"
    (a product, a row region of the product's rows, and products that take the region's results batch by batch; their
    results, and those of the region that others need), or "online" (product, softmax, product, whose rows are
    normalized block by block as they come: `fast_math` "online"). Made by passes/fuse.py and passes/attention.py.
    """

    @staticmethod
    def infer(*types: Type, body: Function, kind: str) -> Type:
        require(kind in KINDS, "", "there is no kind of fusion {kind}", kind=kind)
        require(types == body.param_types, "", "the body takes {p}, not {t}", p=body.param_types, t=types)
        results = body.result_types
        return results[0] if len(results) == 1 else Results(results)

    @staticmethod
    def evaluate(*arrays: np.ndarray, body: Function, kind: str) -> Any:
        results = interpret.run(body, arrays)
        return results[0] if len(results) == 1 else tuple(results)

    @staticmethod
    def cost(*types: Type, out: Type, body: Function, kind: str) -> tuple[float, float]:
        """Operands are read and results written once; every op of the body costs one operation an element."""
        moved = sum(t.nbytes for t in (*types, *body.result_types) if isinstance(t, TensorType))
        work = sum(o.tensor.size for o in body.ops if isinstance(o.type, TensorType) and o.operands)
        return float(work), float(moved)

    examples = lambda: [
        (
            (TensorType(f32, (2, 3)),),
            {"body": region([TensorType(f32, (2, 3))], lambda x: x, "copy"), "kind": "loop"},
        )
    ]


def wrap(o: Op) -> Function:
    """A function of one op: parameters for its operands, and its results. An operand used twice is one parameter."""
    distinct = list(dict.fromkeys(o.operands))
    params = {x: parameter(i, x.type, x.loc) for i, x in enumerate(distinct)}
    inner = o.with_operands(params[x] for x in o.operands)
    results = inner.results()
    gets = results if isinstance(o.type, Results) else ()
    return Function(o.kind.name, params.values(), [*params.values(), inner, *gets], results, loc=o.loc)


def turns(o: Op) -> bool:
    """Whether `o` is a large transposition that moves the innermost axis: done in tiles, not by gathers."""
    if o.kind.full_name != "stablehlo.transpose" or typical(o.tensor.size) <= SMALL_TURN:
        return False
    shape = o.operands[0].shape
    last = max(d for d, n in enumerate(shape) if n != 1)
    return next(p for p in reversed(o.attrs["permutation"]) if shape[p] != 1) != last


class Operand:
    """An operand as an index-moving op sees it: `operand(index)` is an element, `type` the tensor's type."""

    __slots__ = ("elements", "op", "type")

    def __init__(self, elements: Elements, op: Op) -> None:
        self.elements = elements
        self.op = op
        self.type = op.tensor

    def __call__(self, index: Sequence[Index]) -> Elem:
        return self.elements(self.op, tuple(index))


class Elements:
    """Elements of the values of a function, made on demand: `elements(op, index)`.

    Elementwise and index-moving ops are composed; values in `sources` (parameters, reductions, what is kept in
    scratch) come from there. An element that several ops use is computed once.
    """

    def __init__(self, b: Builder, sources: Mapping[Op, Source]) -> None:
        self.b = b
        self.sources = sources
        self._known: dict[tuple[Op, Indices], Elem] = {}

    def __call__(self, o: Op, index: Indices) -> Elem:
        key = (o, index)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(o, index)
        return found

    def _make(self, o: Op, index: Indices) -> Elem:
        source = self.sources.get(o)
        if source is not None:
            return source(index)
        kind = o.kind
        if kind.scalar is not None:
            elems = [self(x, index if x.type.rank else ()) for x in o.operands]  # type: ignore[attr-defined]
            return kind.scalar(self.b, o.type, *elems, **o.attrs.own())
        if kind.element is not None:
            return kind.element(self.b, o.type, list(index), *[Operand(self, x) for x in o.operands], **o.attrs.own())
        if kind.full_name == "stablehlo.constant" and o.attrs["value"].is_splat:
            return constant_elem(self.b, o.dtype, o.attrs["value"].scalar)
        raise Unsupported("this op has no elements that a fused loop could compute", op=kind.full_name, loc=o.loc)


def contracts(o: Op) -> bool:
    """Whether `o` is a contraction that a kernel may compute together with what follows it."""
    if o.kind.full_name not in CONTRACTIONS or not isinstance(o.type, TensorType):
        return False
    types = (o.type, *(x.type for x in o.operands))
    known = all(isinstance(t, TensorType) and t.is_static for t in types)
    if o.kind.full_name == "stablehlo.convolution" and not known:
        return False
    return all(isinstance(t, TensorType) and t.size != -1 and not t.dtype.is_complex for t in types)


def composes(o: Op, *, small: bool = False) -> bool:
    """Whether `Elements` can make elements of `o` out of elements of its operands; with `small`, of any constant."""
    if not isinstance(o.type, TensorType) or o.kind.effect:
        return False
    if o.kind.scalar is not None or o.kind.element is not None:
        return o.kind.full_name != "stablehlo.map" or composes_region(o.attrs["body"])
    return o.kind.full_name == "stablehlo.constant" and (small or o.attrs["value"].is_splat)


def composes_region(body: Function) -> bool:
    """Whether kernels can compute the region `body` for elements in registers: rank-0 values in and out, and ops that
    `Elements` composes, on no more than REGION elements each."""
    if any(not isinstance(v.type, TensorType) or v.type.rank for v in (*body.params, *body.results)):
        return False
    return all(o.kind is PARAMETER or (composes(o, small=True) and o.tensor.size <= REGION) for o in body.ops)


def apply_region(b: Builder, body: Function, args: Sequence[Elem]) -> tuple[Elem, ...]:
    """The results of a region of rank-0 values (`composes_region`) for elements; each lane for itself."""
    sources: dict[Op, Source] = {p: lambda _, e=e: e for p, e in zip(body.params, args, strict=True)}
    elements = Elements(b, sources)
    for o in body.ops:
        if o.kind is PARAMETER:
            continue
        if not composes(o, small=True):
            raise Unsupported("kernels cannot compute this op in a region", op=o.kind.full_name, loc=o.loc)
        if o.name == "constant" and not o.attrs["value"].is_splat:
            sources[o] = partial(_looked_up, b, o.attrs["value"].data)
        elif o.tensor.rank == 0:  # in order, however deep the region is
            elements(o, ())
    return tuple(elements(r, ()) for r in body.results)


def _looked_up(b: Builder, data: np.ndarray, at: Indices) -> Elem:
    """An element of a small constant array: a selection where the index is known only at run time."""
    from hilo.loop.arith import select

    dtype, place = from_numpy(data.dtype), linear(at, data.shape)
    if place.value is not None:
        return constant_elem(b, dtype, data.flat[max(0, min(place.value, data.size - 1))])
    number = node(b, place)
    out = constant_elem(b, dtype, data.flat[-1])
    for k in range(data.size - 1):
        out = select(b, Elem(i1, b.cmp("eq", number, k)), constant_elem(b, dtype, data.flat[k]), out)
    return out


def constant_elem(b: Builder, dtype: DType, value: Any) -> Elem:
    """The element `value` (a numpy scalar of `dtype`)."""
    t = held_type(dtype)
    if dtype.is_complex:
        return Elem(dtype, b.const(float(value.real), t), b.const(float(value.imag), t))
    return Elem(dtype, b.const(float(value) if dtype.is_float else int(value), t))
