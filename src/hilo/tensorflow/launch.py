"""Traced functions on hilo: a plan for each set of shapes, made at the first call. Imports names, program, graphs, api.

Nothing is copied. Arguments are read where TensorFlow keeps them, a variable's value too, since TensorFlow's read takes
a reference. Its new value is handed back as a tensor over hilo's memory, to which assigning keeps a reference: so
variables that a function updates live in hilo's memory between calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

from hilo.errors import Error
from hilo.ir.types import TensorType
from hilo.runtime.executable import Executable
from hilo.tensorflow import graphs
from hilo.tensorflow.names import context, ops, pywrap, resource_variable_ops, tf
from hilo.tensorflow.program import CPU, Traced, compiler_ir, trace

_fast: Final = pywrap.TFE_Py_FastPathExecute
_from_dlpack: Final = pywrap.TFE_FromDlpackCapsule
_make_tensor: Final = ops.EagerTensor


class Launcher:
    """Calls of one traced function with flat tensors: `AtomicFunction.call_flat`, on hilo."""

    def __init__(self, atomic: Any, graph: Any, inside_compiled: Callable[[], bool]) -> None:
        self._atomic = weakref.ref(atomic)  # whose attribute this is
        self._theirs = type(atomic).call_flat
        self._inside_compiled = inside_compiled
        self._context = atomic._bound_context
        self.plans: dict[Any, Plan] = {}
        self._constants: tuple[int, ...] = ()
        self._lock = Lock()
        self._resources = {i: _held(t) for i, t in enumerate(graph.inputs) if t.dtype == tf.resource}
        self._open = tuple(i for i, t in enumerate(graph.inputs)
                           if t.dtype != tf.resource and not t.shape.is_fully_defined())  # fmt: skip

    def __call__(self, *args: Any) -> Any:
        if not self._context.executing_eagerly():
            atomic = self._atomic()
            return self._theirs(atomic, *args) if self._inside_compiled() else graphs.call(atomic, args)
        return self.run(args)

    def run(self, args: Sequence[Any]) -> list[Any] | None:
        """Results of a call with eager tensors. Raises `Error` for what cannot be compiled."""
        key = self._key(args) if self._open or self._constants else ()
        plan = self.plans.get(key)
        if plan is None:
            plan = self._planned(args)
        return plan(args)

    def _key(self, args: Sequence[Any]) -> Any:
        shapes = tuple(args[i]._shape_tuple() for i in self._open)
        return shapes, tuple(args[i]._numpy().tobytes() for i in self._constants)

    def _planned(self, args: Sequence[Any]) -> Plan:
        with self._lock:
            traced = self.trace(args)
            more = set(traced.constants) - set(self._constants)
            if more:  # from now on a part of every key
                self._constants = tuple(sorted({*self._constants, *more}))
                self.plans.clear()
            key = self._key(args) if self._open or self._constants else ()
            plan = self.plans.get(key)
            if plan is None:
                plan = self.plans[key] = Plan(traced, args)
            return plan

    def trace(self, args: Sequence[Any]) -> Traced:
        """The program for eager arguments."""
        atomic = self._atomic()
        if atomic is None:
            raise Error("the function is gone: it lives as long as what it was made from")
        if not all(self._resources.values()):
            compiler_ir(atomic.name, args, "stablehlo")  # TensorFlow says which op it is that takes such a thing
            raise Error(f"{atomic.name.decode()}: only variables are resources that a compiled function can use")
        variables = [_value_type(a, self._resources[i]) if i in self._resources else None for i, a in enumerate(args)]
        return trace(atomic.name, args, len(atomic.function_type.flat_outputs), variables)


def _held(handle: Any) -> int:
    """The dtype, as TensorFlow's number, of the variable behind an input; 0 for another resource."""
    data = resource_variable_ops.get_eager_safe_handle_data(handle)
    return data.shape_and_type[0].dtype if data.is_set and len(data.shape_and_type) == 1 else 0


def _value_type(handle: Any, dtype: int) -> tuple[Any, tuple[int, ...]]:
    """Dtype and shape of a variable's value."""
    (value,) = _fast(context.context(), "_ReadVariablesOp", None, [handle], "dtypes", (dtype,))
    return value.dtype, value._shape_tuple()


class Plan:
    """A compiled function for arguments of certain shapes: `plan(args)`."""

    def __init__(self, traced: Traced, args: Sequence[Any]) -> None:
        from hilo.api import compile as compile_program

        self.traced = traced
        self.executable: Executable = compile_program(traced.program)
        if len(self.executable.result_types) != traced.outputs + len(traced.assigned):
            raise Error(f"the program has {len(self.executable.result_types)} results, of which {traced.outputs} are "
                        f"outputs and {len(traced.assigned)} values of variables")  # fmt: skip
        self._context = context.context()
        resources = [i for i in traced.parameters if args[i].dtype == tf.resource]
        self._tensors = tuple(i for i in traced.parameters if i not in resources)
        self._variables = tuple(resources)
        numpy_types = [t.dtype.np for t in self.executable.arg_types if isinstance(t, TensorType)]
        results = [t.dtype.np for t in self.executable.result_types if isinstance(t, TensorType)]
        self._dtypes = tuple(tf.as_dtype(numpy_types[traced.parameters.index(i)]).as_datatype_enum for i in resources)
        order = {i: n for n, i in enumerate((*self._tensors, *self._variables))}
        self._order = tuple(order[i] for i in traced.parameters)
        self._plain = all(t.kind in "biufc" and t.isbuiltin == 1 for t in results)  # DLPack of numpy has these
        self._assigned = tuple(zip(range(traced.outputs, len(self.executable.result_types)), traced.assigned))

    def __call__(self, args: Sequence[Any]) -> list[Any] | None:
        ctx = self._context
        arrays = [args[i]._numpy() for i in self._tensors]
        if self._variables:
            values = _fast(ctx, "_ReadVariablesOp", None, [args[i] for i in self._variables], "dtypes", self._dtypes)
            arrays += [v._numpy() for v in values]
        results = self.executable(*[arrays[i] for i in self._order])
        if self._plain:
            handle = ctx._handle
            tensors = [_from_dlpack(r.__dlpack__(), handle) for r in results]
        else:
            tensors = [_make_tensor(r, CPU, tf.as_dtype(r.dtype).as_datatype_enum) for r in results]
        for r, i in self._assigned:
            _fast(ctx, "AssignVariableOp", None, args[i], tensors[r], "validate_shape", False)
        return tensors[: self.traced.outputs] or None
