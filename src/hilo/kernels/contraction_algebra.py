"""What a contraction is, by algebra: batch, M, N and K dims with the strides of each operand. Imports ir."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from hilo.errors import Unsupported
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.record import record, replace


@record(frozen=True)
class Dim:
    """A loop of `size` turns; what one turn adds, in elements, to the positions in A and B (0: it does not matter)."""

    size: int
    a: int
    b: int


@record(frozen=True)
class Contraction:
    """C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n].

    Each of `batch`, `m`, `n`, `k` is a list of dims, outermost first, none of size 1, adjacent ones merged where both
    operands allow. C is dense in the order batch, m, n.
    """

    lhs: TensorType
    rhs: TensorType
    out: TensorType
    batch: tuple[Dim, ...]
    m: tuple[Dim, ...]
    n: tuple[Dim, ...]
    k: tuple[Dim, ...]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Batch, M, N, K as numbers."""
        bt, m, n, k = (prod(d.size for d in dims) for dims in (self.batch, self.m, self.n, self.k))
        return bt, m, n, k

    def block(self, m: tuple[Dim, ...]) -> Contraction:
        """The part of one batch with the rows `m`."""
        c = Contraction(self.lhs, self.rhs, self.out, (), m, self.n, self.k)
        return replace(c, out=TensorType(self.out.dtype, c.sizes[1:3]))

    def swapped(self) -> Contraction:
        """The transposed product: B takes A's place. The result is C with M and N exchanged."""

        def turn(dims: tuple[Dim, ...]) -> tuple[Dim, ...]:
            return tuple(Dim(d.size, d.b, d.a) for d in dims)

        return Contraction(self.rhs, self.lhs, self.out, turn(self.batch), turn(self.n), turn(self.m), turn(self.k))


def classify(op: Op) -> Contraction:
    """The contraction that a `dot_general` or `dot` op is. Raises `Unsupported` for other kinds."""
    lhs, rhs = (o.tensor for o in op.operands)
    if op.kind.full_name == "stablehlo.dot_general":
        names = (
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        )
        xb, yb, xc, yc = (op.attrs[n] for n in names)
    elif op.kind.full_name == "stablehlo.dot":
        xb, yb, xc, yc = (), (), (lhs.rank - 1,), (0,)
    else:
        raise Unsupported("there is no contraction kernel for this op yet", op=op.kind.full_name, loc=op.loc)
    sa, sb = strides(lhs.shape), strides(rhs.shape)
    batch = [Dim(lhs.shape[i], sa[i], sb[j]) for i, j in zip(xb, yb, strict=True)]
    k = [Dim(lhs.shape[i], sa[i], sb[j]) for i, j in zip(xc, yc, strict=True)]
    m = [Dim(lhs.shape[i], sa[i], 0) for i in range(lhs.rank) if i not in (*xb, *xc)]
    n = [Dim(rhs.shape[j], 0, sb[j]) for j in range(rhs.rank) if j not in (*yb, *yc)]
    k.sort(key=lambda d: (-d.a, -d.b))  # the order of summation is free: take the one in which A lies in memory
    return Contraction(lhs, rhs, op.tensor, merge(batch), merge(m), merge(n), merge(k))


def strides(shape: Sequence[int]) -> list[int]:
    """Row-major strides, in elements."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * shape[i + 1]
    return out


def merge(dims: Iterable[Dim]) -> tuple[Dim, ...]:
    """Drop dims of size 1, join neighbours that are walked as one by both operands."""
    out: list[Dim] = []
    for d in dims:
        if d.size == 1:
            continue
        if out and out[-1].a == d.a * d.size and out[-1].b == d.b * d.size:
            out[-1] = Dim(out[-1].size * d.size, d.a, d.b)
        else:
            out.append(d)
    return tuple(out)


def one_stride(dims: Sequence[Dim], operand: str) -> int | None:
    """The stride with which `operand` ("a" or "b") walks all of `dims` as one loop, or None if it cannot."""
    stride: int | None = 0
    size = 1
    for d in reversed(dims):
        step = getattr(d, operand)
        if size == 1:
            stride = step
        elif step != stride * size:  # type: ignore[operator]
            return None
        size *= d.size
    return stride
