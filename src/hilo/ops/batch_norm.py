"""Batch normalization: inference, training, gradient. They expand to arithmetic and sums. Imports ir, ops."""

from __future__ import annotations

from typing import Any

from hilo.errors import require
from hilo.ir.dtypes import bf16, f32, f64
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type
from hilo.ops.checks import same_dim, same_shape, tensors
from hilo.ops.decompose import by_expansion, count, full, spread, total
from hilo.ops.elementwise_arith import add, divide, multiply, subtract
from hilo.ops.elementwise_math import sqrt
from hilo.ops.sharding import axis_names


def _checked(types: tuple[Type, ...], feature_index: int, rules: dict[int, str]) -> tuple[TensorType, ...]:
    """Tensors of one float type; the operands numbered in `rules` are vectors of one number per feature."""
    ts = tensors(types)
    x = ts[0]
    require(x.dtype.is_float, "I1", "takes float elements, not {x}", x=x)
    require(0 <= feature_index < x.rank, "C1", "feature_index {d} is not an axis of {x}", d=feature_index, x=x)
    require(all(t.dtype is x.dtype for t in ts), "C2", "operands have several element types: {ts}", ts=ts)
    features = x.shape[feature_index]
    for i, rule in rules.items():
        ok = ts[i].rank == 1 and same_dim(ts[i].shape[0], features)
        require(ok, rule, "operand {i} must be a vector of {n} elements, not {t}", i=i, n=features, t=ts[i])
    return ts


def _others(x: Op, feature_index: int) -> list[int]:
    return [d for d in range(x.tensor.rank) if d != feature_index]


def _normalized(x: Op, mean: Op, variance: Op, epsilon: float, feature_index: int) -> tuple[Op, Op, Op]:
    """x without its mean; the standard deviation, spread out; their quotient."""
    centered = subtract(x, spread(mean, x.shape, (feature_index,)))
    deviation = sqrt(add(spread(variance, x.shape, (feature_index,)), full(epsilon, x.dtype, x.shape)))
    return centered, deviation, divide(centered, deviation)


def _mean(x: Op, feature_index: int) -> Op:
    n = x.shape[feature_index]
    others = _others(x, feature_index)
    return divide(total(x, others), count(x, others, x.dtype, (n,)))


def _infer(x: Op, scale: Op, offset: Op, mean: Op, variance: Op, *, epsilon: float, feature_index: int) -> Op:
    normal = _normalized(x, mean, variance, epsilon, feature_index)[2]
    scaled = multiply(spread(scale, x.shape, (feature_index,)), normal)
    return add(scaled, spread(offset, x.shape, (feature_index,)))


def _train(x: Op, scale: Op, offset: Op, *, epsilon: float, feature_index: int) -> tuple[Op, ...]:
    mean = _mean(x, feature_index)
    centered = subtract(x, spread(mean, x.shape, (feature_index,)))
    variance = _mean(multiply(centered, centered), feature_index)
    return _infer(x, scale, offset, mean, variance, epsilon=epsilon, feature_index=feature_index), mean, variance


def _gradient(
    x: Op, scale: Op, mean: Op, variance: Op, grad: Op, *, epsilon: float, feature_index: int
) -> tuple[Op, ...]:
    others, shape, dims = _others(x, feature_index), x.shape, (feature_index,)
    centered, deviation, normal = _normalized(x, mean, variance, epsilon, feature_index)
    number = count(x, others, x.dtype, shape)
    grad_offset = total(grad, others)
    along = multiply(spread(total(multiply(grad, centered), others), shape, dims), centered)
    along = divide(along, add(spread(variance, shape, dims), full(epsilon, x.dtype, shape)))
    free = subtract(subtract(multiply(grad, number), spread(grad_offset, shape, dims)), along)
    grad_x = multiply(divide(divide(spread(scale, shape, dims), deviation), number), free)
    return grad_x, total(multiply(grad, normal), others), grad_offset


def _sharding(operands: str, results: str) -> Any:
    """The rule where "x" stands for a tensor like the first operand, "f" for a vector of features."""

    def sharding(*types: TensorType, out: Type, epsilon: float, feature_index: int) -> str:
        names = axis_names(types[0].rank)
        letters = {"x": names, "f": names[feature_index]}
        return ",".join(letters[c] for c in operands) + "->" + ",".join(letters[c] for c in results)

    return sharding


def _examples(operands: str) -> list[Any]:
    cases = [(f32, (2, 3, 4), 1), (f64, (5, 2), 1), (bf16, (3, 2, 2), 2), (f32, (0, 3), 1), (f32, (4,), 0)]
    return [(tuple(TensorType(d, s if c == "x" else (s[i],)) for c in operands), {"epsilon": 0.001, "feature_index": i})
            for d, s, i in cases]  # fmt: skip


@op("batch_norm_inference")
class batch_norm_inference:
    """`scale * (operand - mean) / sqrt(variance + epsilon) + offset`, each vector along the axis `feature_index`.

    Operands: operand, scale, offset, mean, variance. Each step rounds to the element type. Spec: batch_norm_inference.
    """

    @staticmethod
    def infer(*types: Type, epsilon: float, feature_index: int) -> Type:
        require(len(types) == 5, "I1", "takes 5 operands, not {n}", n=len(types))
        return _checked(types, feature_index, {1: "C3", 2: "C4", 3: "C5", 4: "C6"})[0]

    evaluate = staticmethod(by_expansion(_infer))
    expand = staticmethod(_infer)
    sharding = staticmethod(_sharding("xffff", "x"))
    examples = _examples("xffff")


@op("batch_norm_training")
class batch_norm_training:
    """batch_norm_inference with the operand's own mean and variance over all other axes, which are results too.

    Operands: operand, scale, offset. Results: output, batch_mean, batch_var. Spec: batch_norm_training.
    """

    @staticmethod
    def infer(*types: Type, epsilon: float, feature_index: int) -> Type:
        require(len(types) == 3, "I1", "takes 3 operands, not {n}", n=len(types))
        x, scale, _ = _checked(types, feature_index, {1: "C3", 2: "C4"})
        return Results([x, scale, scale])

    evaluate = staticmethod(by_expansion(_train))
    expand = staticmethod(_train)
    sharding = staticmethod(_sharding("xff", "xff"))
    examples = _examples("xff")


@op("batch_norm_grad")
class batch_norm_grad:
    """The gradients of batch_norm_training.

    Operands: operand, scale, mean, variance, grad_output. Results: grad_operand, grad_scale, grad_offset.
    Spec: batch_norm_grad.
    """

    @staticmethod
    def infer(*types: Type, epsilon: float, feature_index: int) -> Type:
        require(len(types) == 5, "I1", "takes 5 operands, not {n}", n=len(types))
        vectors = tensors(types[1:4])
        ok = all(t.rank == 1 and same_shape(t.shape, vectors[0].shape) for t in vectors)
        require(ok, "C4", "scale, mean and variance must be vectors of one size, not {v}", v=vectors)
        x, scale, _, _, grad = _checked(types, feature_index, {1: "C5"})
        require(same_shape(x.shape, grad.shape), "C3", "{x} and {g} have different shapes", x=x, g=grad)
        return Results([x, scale, scale])

    evaluate = staticmethod(by_expansion(_gradient))
    expand = staticmethod(_gradient)
    sharding = staticmethod(_sharding("xfffx", "xff"))
    examples = _examples("xfffx")
