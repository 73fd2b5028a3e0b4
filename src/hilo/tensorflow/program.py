"""The StableHLO of a traced TensorFlow function, and what of its inputs and variables is the program's. Imports names,
formats, ir.

TensorFlow's own bridge makes the program, for one set of shapes. Inputs whose values it must know (a shape, an axis)
are constants in it and no parameters. Results are the function's outputs, then the new values of the
variables that it assigns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.formats import parse
from hilo.ir.module import Function, Module
from hilo.ir.types import TensorType
from hilo.tensorflow.names import context, tf
from hilo.tensorflow.random import with_states

CPU: Final = "/job:localhost/replica:0/task:0/device:CPU:0"
ALIAS: Final = re.compile(r"parameter_number = (\d+)[^}]*\}[^}]*output_index = array<i64(?:: (\d+))?>")
MAIN: Final = re.compile(r"func\.func (?:public )?@main\(.*")
DRAWS: Final = " stablehlo.rng "
PREFIX: Final = re.compile(r"^Detected unsupported operations when trying to compile graph \S+ on XLA_CPU_JIT: ")
REST: Final = re.compile(r" compatible with node *\)*$")
NODE: Final = re.compile(r"\{\{node ([^}]+)\}\}")
MOST_CHOICES: Final = 64
INNER: Final = re.compile(r"hilo/tensorflow/|site-packages/(tensorflow|keras)/")  # files that the user did not write
FILE: Final = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


@dataclass(frozen=True)
class Traced:
    """A program and how it is called.

    program     the program, as text where it is TensorFlow's as it stands: as such it is found in the cache
    parameters  numbers of the inputs that are its parameters, in order; a variable stands for its value
    constants   numbers of the inputs whose values are in the program
    outputs     how many results are the function's outputs
    assigned    for each result after these, the number of the input that is the variable
    """

    program: Module | str
    parameters: tuple[int, ...]
    constants: tuple[int, ...]
    outputs: int
    assigned: tuple[int, ...]

    @property
    def module(self) -> Module:
        """The program as a module."""
        return parse(self.program) if isinstance(self.program, str) else self.program


def compiler_ir(name: bytes, inputs: Sequence[Any], stage: str, captured: Sequence[Any] = ()) -> bytes:
    """TensorFlow's own IR of a function for these inputs: eager tensors, or all of them specifications and the captured
    ones tensors. `Error` for what it cannot compile."""
    try:
        return context.context().get_compiler_ir(CPU, None, name, list(inputs), list(captured), stage)
    except (tf.errors.OpError, ValueError, TypeError) as e:
        raise refusal(name, str(e)) from e


def refusal(name: bytes, said: str) -> Error:
    """The error for a function that the bridge refuses: the op, where it was made, and why."""
    node = NODE.search(said)
    frames = [f for f in FILE.findall(said) if not INNER.search(f[0])]
    reason = said.split("Failed getting HLO text: ")[-1].strip("'").split("\n")[0]
    reason = REST.sub(")", NODE.sub("", PREFIX.sub("", reason)))
    op = f"op {node.group(1)!r}" if node else "an op"
    place = f", made at {frames[-1][0]}:{frames[-1][1]} in {frames[-1][2]}" if frames else ""
    return Error(f"TensorFlow cannot compile {name.decode()}: {op}{place}: {reason}")


def trace(name: bytes, inputs: Sequence[Any], num_outputs: int, variables: Sequence[Any]) -> Traced:
    """The program of the function `name` for `inputs`.

    variables  for each input that is a resource, (dtype, shape) of its value; None for the others
    """
    text = compiler_ir(name, inputs, "stablehlo").decode()
    aliases = {int(r or 0): int(p) for p, r in ALIAS.findall(text.partition(" {\n")[0])}
    program: Module | str = text
    head = MAIN.search(text)
    if head is not None and head[0].count("%arg") == len(inputs):
        parameters = tuple(range(len(inputs)))
    else:
        program = parse(text)
        parameters = _parameters(name, inputs, variables, program["main"])
    if DRAWS in text:
        program = with_states(parse(text))
    constants = tuple(sorted(set(range(len(inputs))) - set(parameters)))
    assigned = tuple(parameters[aliases[r]] for r in sorted(aliases) if r >= num_outputs)
    return Traced(program, parameters, constants, num_outputs, assigned)


def _parameters(name: bytes, inputs: Sequence[Any], variables: Sequence[Any], main: Function) -> tuple[int, ...]:
    """The inputs that are the parameters of the program: all but some whose values were needed.

    They keep their order, so that types mostly tell which. Where two inputs could be meant, the one is a constant whose
    value, when it is changed, changes the program (or leaves none).
    """
    wanted = [v or (t.dtype, t._shape_tuple()) for v, t in zip(variables, inputs)]
    types = [(numpy_type(dtype), tuple(shape)) for dtype, shape in wanted]
    found = [(t.dtype.np, t.shape) for t in main.param_types if isinstance(t, TensorType)]
    choices = list(islice(_selections(types, found), MOST_CHOICES))
    if len(choices) > 1:
        sets = [frozenset(c) for c in choices]
        open_inputs = frozenset.union(*sets) - frozenset.intersection(*sets)
        text = compiler_ir(name, inputs, "stablehlo")
        fixed = {i for i in open_inputs if variables[i] is None and _matters(name, inputs, i, text)}
        choices = [c for c in choices if not fixed & set(c)] or choices
    if not choices:
        raise Error(f"{name.decode()}: the program's parameters {found} are none of the inputs {types}")
    return choices[0]


def _selections(types: Sequence[Any], found: Sequence[Any], first: int = 0) -> Iterator[tuple[int, ...]]:
    """The ways to take `found`, in order, from `types`, whose numbers begin with `first`."""
    if not found:
        yield ()
        return
    for i in range(len(types) - len(found) + 1):
        if types[i] == found[0]:
            for rest in _selections(types[i + 1 :], found[1:], first + i + 1):
                yield (first + i, *rest)


def _matters(name: bytes, inputs: Sequence[Any], i: int, text: bytes) -> bool:
    """Whether the program is another one for another value of input `i`."""
    other = inputs[i].numpy()
    other = ~other if other.dtype == bool else other + np.ones((), other.dtype)
    try:
        return compiler_ir(name, [*inputs[:i], tf.constant(other), *inputs[i + 1 :]], "stablehlo") != text
    except Error:
        return True


def numpy_type(dtype: Any) -> np.dtype:
    """The numpy type of the elements of a TensorFlow dtype."""
    return np.dtype(dtype.as_numpy_dtype)
