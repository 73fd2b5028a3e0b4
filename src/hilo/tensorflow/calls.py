"""Signatures of SavedModels as compiled code. Imports names, converter, restored, api.

Two ways lead to a program. The converter's (`converter.py`) is one for all sizes, but it knows no state and not every
op; the bridge's, of the traced function (`restored.py`), is for known sizes, and takes variables as arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.module import Module
from hilo.runtime.executable import Executable
from hilo.tensorflow.converter import Converter, names_of
from hilo.tensorflow.restored import Variable

if TYPE_CHECKING:
    from hilo.tensorflow.saved_model import Signature

LISTS: Final = "TensorList"  # ops that the converter does not know, and says so on stderr
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Plan:
    """A compiled program and how it is called.

    arguments  for each of its arguments, the name of an input, or a variable
    outputs    the names of the first results, and their numbers, as the signature has them
    assigned   the variables whose new values the others are
    """

    executable: Executable
    arguments: tuple[str | Variable, ...]
    outputs: tuple[tuple[str, int], ...]
    assigned: tuple[Variable, ...] = ()

    def __call__(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        results = self.executable(*[arrays[a] if isinstance(a, str) else a.value for a in self.arguments])
        for variable, value in zip(self.assigned, results[len(self.outputs) :]):
            variable.value = value
        return {name: results[i] for name, i in self.outputs}


class Programs:
    """The programs of a signature."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        model = signature.model
        self._converter = Converter(model.path, signature.name, model.tags)

    @cached_property
    def converts(self) -> bool:
        """Whether the converter is worth a try."""
        s = self.signature
        return not s.model.changes and not any(op.startswith(LISTS) for op in s.ops)

    def open(self) -> Module | None:
        """The program for all sizes that are open, or None."""
        if not self.converts:
            return None
        try:
            return self._converter.open()
        except Error:
            return None

    def module(self, shapes: Shapes | None) -> Module:
        """A program with variables as constants."""
        s = self.signature
        made = self.open() if shapes is None else None
        if made is not None:
            return made
        shapes = s.shapes({}) if shapes is None else shapes
        if self.converts:
            try:
                return self._converter.sized(shapes)
            except Error:  # the bridge knows more, and says more
                pass
        if s.model.changes:
            raise Error(f"the model of signature {s.name!r} changes variables: call it, or compile()")
        from hilo.passes.arguments import bind

        zeros = {name: np.zeros(shape, s.inputs[name].dtype.as_numpy_dtype) for name, shape in shapes.items()}
        traced, inputs = s.model.restored.trace(s.name, zeros)
        given = [inputs[i] for i in traced.parameters]
        values = {i: g.value if isinstance(g, Variable) else g for i, g in enumerate(given) if not isinstance(g, str)}
        main = bind(traced.module["main"], values) if values else traced.module["main"]
        return traced.module.replace({**traced.module.functions, "main": main})

    def converted(self, module: Module, **how: Any) -> Plan:
        from hilo.api import compile as compile_program

        arguments, outputs = names_of(module["main"])
        order = tuple((name, outputs.index(name)) for name in self.signature.outputs)
        return Plan(compile_program(module, **how), tuple(arguments), order)

    def sized(self, arrays: Mapping[str, np.ndarray], constants: bool, **how: Any) -> tuple[Plan, tuple[str, ...]]:
        """A plan for inputs of such shapes, and the inputs whose values are in it."""
        if constants and self.converts:
            try:
                module = self._converter.sized({name: a.shape for name, a in arrays.items()})
                return self.converted(module, **how), ()
            except Error:
                pass
        return self._bridged(arrays, constants, **how)

    def _bridged(self, arrays: Mapping[str, np.ndarray], constants: bool, **how: Any) -> tuple[Plan, tuple[str, ...]]:
        from hilo.api import compile as compile_program

        s = self.signature
        traced, inputs = s.model.restored.trace(s.name, arrays)
        bound: dict[int, np.ndarray] = {}
        arguments: list[str | Variable] = []
        for number, i in enumerate(traced.parameters):
            given = inputs[i]
            if isinstance(given, np.ndarray):
                bound[number] = given
            elif isinstance(given, Variable) and constants and not given.assigned:
                bound[number] = given.value
            else:
                arguments.append(given)
        executable = compile_program(traced.module, constants=bound or None, **how)
        order = tuple((name, i) for i, name in enumerate(s.outputs))
        assigned = tuple(v for i in traced.assigned if isinstance(v := inputs[i], Variable))
        valued = tuple(n for i in traced.constants if isinstance(n := inputs[i], str))
        return Plan(executable, tuple(arguments), order, assigned), valued


class Compiled:
    """A signature as compiled code: `compiled(name=array, ...)` gives a dictionary of arrays.

    May be called from several threads at once; calls that change variables wait for each other.
    """

    def __init__(self, signature: Signature, constants: bool, shapes: Shapes | None, how: Mapping[str, Any]) -> None:
        self.signature = signature
        self._constants = constants
        self._shapes = shapes
        self._how = dict(how)
        self._programs = Programs(signature)
        self._valued: tuple[str, ...] = ()  # inputs whose values are in programs
        self._plans: dict[Any, Plan] = {}
        if shapes is not None or not any(v.is_open for v in signature.inputs.values()):
            self._open = None
            shapes = signature.shapes({}) if shapes is None else shapes
            self._plan({n: np.zeros(s, signature.inputs[n].dtype.as_numpy_dtype) for n, s in shapes.items()})
        else:
            self._open = self._made_open()

    @property
    def executables(self) -> list[Executable]:
        """What has been compiled so far."""
        plans = [*([self._open] if self._open else ()), *self._plans.values()]
        return [p.executable for p in plans]

    def _made_open(self) -> Plan | None:
        module = self._programs.open() if self._constants else None
        if module is None:
            return None
        try:
            return self._programs.converted(module, **self._how)
        except Error:  # sizes that the compiler needs to know
            return None

    def __call__(self, **arrays: Any) -> dict[str, np.ndarray]:
        """Run it. Raises `Error` for inputs that there are not, and those of another dtype or shape."""
        s = self.signature
        given = s.arrays(arrays)
        if self._shapes is not None:
            for name, a in given.items():
                if a.shape != self._shapes[name]:
                    raise Error(f"input {name} of signature {s.name!r} was compiled for shape {self._shapes[name]}, "
                                f"not {a.shape}")  # fmt: skip
        plan = self._open or self._plan(given)
        if not s.model.changes:
            return plan(given)
        with s.model.lock:
            return plan(given)

    def _plan(self, given: Mapping[str, np.ndarray]) -> Plan:
        plan = self._plans.get(self._key(given))
        if plan is None:
            with self.signature.model.lock:
                plan = self._plans.get(self._key(given))
                if plan is None:
                    plan, valued = self._programs.sized(given, self._constants, **self._how)
                    if set(valued) - set(self._valued):  # from now on a part of every key
                        self._valued = tuple(sorted({*self._valued, *valued}))
                        self._plans.clear()
                    self._plans[self._key(given)] = plan
        return plan

    def _key(self, given: Mapping[str, np.ndarray]) -> Any:
        return tuple(a.shape for a in given.values()), tuple(given[n].tobytes() for n in self._valued)

    def __repr__(self) -> str:
        return f"<Compiled {self.signature!r}: {len(self.executables)} programs>"
