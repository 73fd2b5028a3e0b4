"""Tuples, tokens, the optimization barrier, and where a program runs. Imports ir."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import f32, i32, u32
from hilo.ir.process import current
from hilo.ir.registry import op
from hilo.ir.types import TOKEN, TensorType, TupleType, Type
from hilo.loop.builder import I32, Builder
from hilo.loop.element import Elem
from hilo.ops.checks import one_or_results, one_or_tuple
from hilo.ops.elements import Indices
from hilo.ops.sharding import passed_through, unsharded


@op("tuple")
class tuple_:
    """Values of any types as one value. Spec: tuple."""

    @staticmethod
    def infer(*types: Type) -> Type:
        return TupleType(types)

    @staticmethod
    def evaluate(*values: Any) -> Any:
        return values

    sharding = unsharded
    examples = [((TensorType(f32, (2,)), TensorType(i32)), {}), ((), {})]


@op("get_tuple_element")
class get_tuple_element:
    """Element `index` of a tuple. Spec: get_tuple_element."""

    @staticmethod
    def infer(source: Type, *, index: int) -> Type:
        if not isinstance(source, TupleType):
            require(False, "I1", "{t} is not a tuple", t=source)
        assert isinstance(source, TupleType)
        require(0 <= index < len(source), "C1", "index {i} is out of range for {t}", i=index, t=source)
        return source[index]

    @staticmethod
    def evaluate(source: Any, *, index: int) -> Any:
        return source[index]

    sharding = unsharded
    examples = [((TupleType([TensorType(f32, (2,)), TensorType(i32)]),), {"index": 1})]


@op("optimization_barrier")
class optimization_barrier:
    """The operands, as they are; no optimization looks or moves through it. Spec: optimization_barrier."""

    @staticmethod
    def infer(*types: Type) -> Type:
        return one_or_results(types)

    @staticmethod
    def evaluate(*values: Any) -> Any:
        return one_or_tuple(values)

    sharding = passed_through
    examples = [((TensorType(f32, (2,)),), {}), ((TensorType(f32, (2,)), TensorType(i32)), {}), ((), {})]


@op("after_all")
class after_all:
    """A token that comes after all operands, which are tokens. Spec: after_all."""

    @staticmethod
    def infer(*types: Type) -> Type:
        require(all(t is TOKEN for t in types), "I1", "operands must be tokens, not {t}", t=types)
        return TOKEN

    @staticmethod
    def evaluate(*tokens: None) -> None:
        return None

    sharding = unsharded
    examples = [((TOKEN, TOKEN), {}), ((), {})]


@op("create_token")
class create_token:
    """A fresh token. Spec: after_all (an older form of it, without operands)."""

    @staticmethod
    def infer() -> Type:
        return TOKEN

    @staticmethod
    def evaluate() -> None:
        return None

    sharding = unsharded
    examples = [((), {})]


@op("partition_id")
class partition_id:
    """The number of the partition that runs the program; one process alone is partition 0. Spec: partition_id."""

    @staticmethod
    def infer() -> Type:
        return TensorType(u32)

    @staticmethod
    def evaluate() -> np.ndarray:
        me = current()
        return np.asarray(0 if me is None else me.partition, np.uint32)

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices) -> Elem:
        return Elem(u32, b.const(0, I32))

    sharding = unsharded
    examples = [((), {})]


@op("replica_id")
class replica_id:
    """The number of the replica that runs the program; one process alone is replica 0. Spec: replica_id."""

    @staticmethod
    def infer() -> Type:
        return TensorType(u32)

    @staticmethod
    def evaluate() -> np.ndarray:
        me = current()
        return np.asarray(0 if me is None else me.replica, np.uint32)

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices) -> Elem:
        return Elem(u32, b.const(0, I32))

    sharding = unsharded
    examples = [((), {})]
