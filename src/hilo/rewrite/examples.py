"""Making instances of rules for the property test: parameters for variables, types for every element type. Imports
ir."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hilo.errors import Error
from hilo.ir.dtypes import DType, f32
from hilo.ir.module import Function, parameter, topological
from hilo.ir.op import PARAMETER, Op
from hilo.ir.types import TensorType
from hilo.rewrite.pattern import Const, Literal, Node, Pattern, Var, splat
from hilo.rewrite.rules import Rule, argument


def instances(rule: Rule, dtype: DType) -> Iterator[Op]:
    """Ops that `rule` might match, of element type `dtype`: from its example, or its pattern with example values
    filled in."""
    example = rule.example
    if callable(example):
        try:
            made: Any = example(dtype)
            yield from made
        except (Error, OverflowError, AssertionError):
            return  # this op or constant does not exist for this element type
        return
    for pattern in rule.patterns:
        for shape in ((5,),) if rule.example else ((5,), (), (2, 3)):
            try:
                yield _Instance(rule.example, TensorType(dtype, shape)).op(pattern)
            except (Error, AssertionError):
                continue


class _Instance:
    def __init__(self, values: dict[str, Any], default: TensorType) -> None:
        self.values = values
        self.default = default
        self.made: dict[str, Any] = {}

    def op(self, p: Pattern) -> Op:
        operands = [self.node(q) for q in p.operands or ()]
        attrs = {k: self.values.get(v.name) if isinstance(v, Var) else v for k, v in p.attrs.items()}
        return p.symbol(*operands, **{k: self.typed(v) for k, v in attrs.items()})

    def node(self, q: Node) -> Op:
        if isinstance(q, Pattern):
            return self.op(q)
        if isinstance(q, Const):
            return q.build(self.default)
        if isinstance(q, Literal):
            if q.var.name not in self.made:
                self.made[q.var.name] = splat(self.values.get(q.var.name, 2), self.default)
            return self.made[q.var.name]
        assert isinstance(q, Var)
        return self.var(q)

    def var(self, q: Var) -> Any:
        if q.name not in self.made:
            value = self.values.get(q.name, self.default)
            self.made[q.name] = argument(self.typed(value)) if isinstance(value, TensorType) else value
        found = self.made[q.name]
        if q.kinds and isinstance(found, Op):
            assert found.dtype.kind in q.kinds
        return found

    def typed(self, value: Any) -> Any:
        """Example types of f32 stand for the element type at hand."""
        if isinstance(value, TensorType) and value.dtype is f32:
            return value.with_dtype(self.default.dtype)
        return value


def function_of(roots: Iterable[Op], name: str = "main") -> Function:
    """The function that computes `roots`; the parameters they need become its parameters, in order of their numbers."""
    roots = list(roots)
    old = sorted((o for o in topological(roots) if o.kind is PARAMETER), key=lambda o: o.attrs["index"])
    new: dict[Op, Op] = {p: parameter(i, p.type) for i, p in enumerate(old)}
    params = list(new.values())
    ops = list(params)
    for o in topological(roots):
        if o not in new:
            new[o] = o.with_operands([new[x] for x in o.operands])
            ops.append(new[o])
    return Function(name, params, ops, [new[r] for r in roots])
