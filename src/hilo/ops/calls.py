"""Calls: of functions of the module, of composites, and of code outside of the program. Imports ir."""

from __future__ import annotations

from typing import Any

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import f32
from hilo.ir.interpret import callee, run
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type
from hilo.ops.control import one_or_tuple


@op("call", dialect="func", typed=True)
class call:
    """Call the function named `callee` of the same module. Operands and results are its parameters and results.

    `type` is the result type (a `Results` unless there is exactly one). Inlining replaces it by the function's body.
    """

    @staticmethod
    def infer(*types: Type, callee: str, type: Type) -> Type:  # noqa: A002
        require(bool(callee), "", "a call needs the name of a function")
        return type

    @staticmethod
    def evaluate(*arrays: Any, callee: str, type: Type) -> Any:  # noqa: A002
        return _run_named(callee, arrays)


@op("composite", typed=True)
class composite:
    """An operation named `name` that is defined by the function `decomposition` of the module.

    It means what its decomposition does, and is inlined as that unless a target knows it by name. Spec: composite.
    """

    attrs = {"version": 0, "composite_attributes": None}

    @staticmethod
    def infer(*types: Type, name: str, decomposition: str, version: int, composite_attributes: Any, type: Type) -> Type:  # noqa: A002
        namespace, dot, short = name.partition(".")
        require(bool(namespace and dot and short), "C1", "the name {n!r} is not of the form namespace.name", n=name)
        require(bool(decomposition), "C2", "composite {n} has no decomposition", n=name)
        return type

    @staticmethod
    def evaluate(*arrays: Any, decomposition: str, **_: Any) -> Any:
        return _run_named(decomposition, arrays)


def _run_named(name: str, arrays: tuple[Any, ...]) -> Any:
    function = callee(name)
    types = function.param_types
    require(len(types) == len(arrays), "", "@{n} takes {a} arguments, not {b}", n=name, a=len(types), b=len(arrays))
    return one_or_tuple(run(function, arrays))


@op("custom_call", typed=True, effect=True)
class custom_call:
    """A call of `call_target_name`, code outside of the program that only the target platform knows.

    hilo keeps it (its effects may matter), but running it is an `Unsupported` error that names the target.
    Spec: custom_call.
    """

    attrs = {"has_side_effect": False, "backend_config": "", "api_version": 1, "called_computations": ()}

    @staticmethod
    def infer(*types: Type, call_target_name: str, type: Type, **_: Any) -> Type:  # noqa: A002
        require(bool(call_target_name), "I2", "a custom call needs a call_target_name")
        return type

    @staticmethod
    def evaluate(*arrays: Any, call_target_name: str, **_: Any) -> Any:
        raise Unsupported(
            f"hilo does not know the custom call target {call_target_name!r}; export the program without it"
        )

    examples = [((TensorType(f32, (2,)),), {"call_target_name": "somewhere.else", "type": Results([])})]
