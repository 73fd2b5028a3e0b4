"""Calls: of functions of the module, of composites, and of code outside of the program. Imports ir."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import f32, i32
from hilo.ir.module import Function
from hilo.ir.op import Attrs
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, TupleType, Type, compatible, result_types
from hilo.later import Later
from hilo.ops.checks import one_or_tuple
from hilo.ops.sharding import unsharded

if TYPE_CHECKING:
    from hilo.custom_calls import site
    from hilo.ir import interpret
else:
    site = Later("hilo.custom_calls.site")
    interpret = Later("hilo.ir.interpret")

_NAME: Final = re.compile(r"[a-zA-Z][\w$]*(\.[\w$]+)+")


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

    sharding = unsharded
    examples = [
        ((TensorType(f32, (3,)),), {"callee": "f", "type": TensorType(f32, (3,))}),
        (
            (TensorType(f32), TensorType(i32, (2,))),
            {"callee": "g", "type": Results([TensorType(f32), TensorType(i32, (2,))])},
        ),
    ]


@op("composite", typed=True)
class composite:
    """An operation named `name` that is defined by the function `decomposition` of the module.

    It means what its decomposition does, and is inlined as that unless a target knows it by name. Spec: composite.
    """

    attrs = {"version": 0, "composite_attributes": None}

    @staticmethod
    def infer(
        *types: Type, name: str, decomposition: str, version: int, composite_attributes: Any, type: Type,  # noqa: A002
        composite_regions: Sequence[Function] = (),
    ) -> Type:  # fmt: skip
        require(_NAME.fullmatch(name), "C1", "the name {n!r} is not of the form namespace.name", n=name)
        require(bool(decomposition), "C2", "composite {n} has no decomposition", n=name)
        return type

    @staticmethod
    def evaluate(*arrays: Any, decomposition: str, **_: Any) -> Any:
        return _run_named(decomposition, arrays)

    sharding = unsharded
    examples = [
        ((TensorType(f32, (3,)),), {"name": "my.f", "decomposition": "f", "type": TensorType(f32, (3,))}),
        (
            (TensorType(f32), TensorType(i32, (2,))),
            {"name": "my.g", "decomposition": "g", "type": Results([TensorType(f32), TensorType(i32, (2,))])},
        ),
    ]


def _run_named(name: str, arrays: tuple[Any, ...]) -> Any:
    function = interpret.callee(name)
    types = function.param_types
    require(len(types) == len(arrays), "", "@{n} takes {a} arguments, not {b}", n=name, a=len(types), b=len(arrays))
    return one_or_tuple(interpret.run(function, arrays))


def _check_alias(types: Sequence[Type], result: Type, alias: Attrs) -> None:
    """An output, or a part of it, shares memory with (a part of) an operand (I7)."""
    require(isinstance(alias, Attrs), "I7", "{a} is not an output_operand_alias", a=alias)
    i = alias["operand_index"]
    require(0 <= i < len(types), "I7", "an output is the alias of operand {i}, of {n}", i=i, n=len(types))
    a, b = _part(result, alias["output_tuple_indices"]), _part(types[i], alias["operand_tuple_indices"])
    require(compatible(a, b), "I7", "an output of type {a} is the alias of a {b}", a=a, b=b)


def _part(t: Type, path: Sequence[int]) -> Type:
    for i in path:
        ok = isinstance(t, (TupleType, Results)) and 0 <= i < len(t)
        require(ok, "I7", "there is no part {i} of {t} to be an alias", i=i, t=t)
        t = t[i]  # type: ignore[index]
    return t


def _check_layouts(what: str, types: Sequence[Type], layouts: Sequence[tuple[int, ...]]) -> None:
    """One layout for each value: a permutation of a tensor's axes, nothing for a token; tuples have none."""
    require(len(layouts) == len(types), "", "{n} {w} layouts for {m} {w}s", w=what, n=len(layouts), m=len(types))
    for i, (t, layout) in enumerate(zip(types, layouts, strict=True)):
        require(not isinstance(t, TupleType), "", "{w} {i} is a tuple, which can have no layout", w=what, i=i)
        axes = range(t.rank) if isinstance(t, TensorType) else ()
        require(sorted(layout) == list(axes), "", "layout {l} of {w} {i} must be a permutation of the {n} axes of {t}",
                l=layout, w=what, i=i, n=len(axes), t=t)  # fmt: skip


def _value(t: Type, arrays: list[Any]) -> Any:
    """The results of a call as the value of its op."""
    if isinstance(t, Results):
        return tuple(site.nested(x, arrays) for x in t.types)
    return site.nested(t, arrays)


def _same(arrays: tuple[Any, ...], t: Type) -> Any:
    """What a marker gives: its operands."""
    types = result_types(t)
    if not types:
        return ()
    if len(types) != len(arrays) or any(
        isinstance(x, TensorType) and (a.shape != x.shape or a.dtype != x.dtype.np) for a, x in zip(arrays, types)
    ):
        raise Unsupported("the operands and results of this marker differ: the program is for several devices")
    return tuple(arrays) if isinstance(t, Results) else arrays[0]


@op("custom_call", typed=True, effect=True)
class custom_call:
    """A call of `call_target_name`, code outside of the program that only the target platform knows.

    Targets are registered with `hilo.register_custom_call`; an unknown one is an `Unsupported` error that lists them.
    Markers (`Sharding`, `annotate_device_placement` ...) are their operand; `shape_assertion` checks that its first
    operand is true. The target does not get operands that only say what shapes the results have.
    Operands and results have the logical shapes, whatever layouts the call asks for.
    Spec: custom_call.
    """

    dotted = True

    attrs = {
        "has_side_effect": False,
        "backend_config": "",
        "api_version": 1,
        "called_computations": (),
        "output_operand_aliases": (),
    }

    @staticmethod
    def infer(
        *types: Type,
        call_target_name: str,
        api_version: int,
        backend_config: Any,
        output_operand_aliases: Any,
        type: Type,  # noqa: A002
        operand_layouts: Sequence[tuple[int, ...]] | None = None,
        result_layouts: Sequence[tuple[int, ...]] | None = None,
        **_: Any,
    ) -> Type:
        require(bool(call_target_name), "I2", "a custom call needs a call_target_name")
        if backend_config:
            from hilo.custom_calls.site import TYPED_FFI

            typed = api_version == TYPED_FFI
            want = "a dictionary" if typed else "a string"
            ok = isinstance(backend_config, str) != typed
            require(ok, "I4", "with api_version {v}, backend_config must be {w}", v=api_version, w=want)
        for alias in output_operand_aliases or ():
            _check_alias(types, type, alias)
        given = operand_layouts is not None, result_layouts is not None
        require(all(given) or not any(given), "", "layouts are given for the operands alone or for the results alone")
        if operand_layouts is not None and result_layouts is not None:
            _check_layouts("operand", types, operand_layouts)
            results = type.types if isinstance(type, TupleType) else result_types(type)
            _check_layouts("result", results, result_layouts)
        return type

    @staticmethod
    def evaluate(*arrays: Any, call_target_name: str, type: Type,  # noqa: A002
                 **attrs: Any) -> Any:  # fmt: skip
        from hilo.custom_calls import registry
        from hilo.custom_calls.markers import is_marker
        from hilo.custom_calls.shape_operands import shape_operands, without_shape_operands
        from hilo.custom_calls.signature import value_type

        if is_marker(call_target_name):
            return _same(arrays, type)
        target = registry.find(call_target_name)
        if shape_operands(attrs):
            kept, rest = without_shape_operands(attrs, len(arrays))
            arrays, attrs = tuple(arrays[i] for i in kept), dict(rest)
        here = site.call_site(call_target_name, attrs, list(map(value_type, arrays)), type)
        return _value(type, registry.call(target, here, site.flat(arrays)))

    sharding = unsharded
    examples = [((TensorType(f32, (2,)),), {"call_target_name": "somewhere.else", "type": Results([])})]
