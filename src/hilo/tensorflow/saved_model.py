"""SavedModels: signatures, which are called with arrays by name, and give programs. Imports names, converter, restored,
calls.

What a folder holds is read from its description alone; TensorFlow makes programs when they are wanted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.ir.module import Module
from hilo.record import record
from hilo.tensorflow.names import tf

if TYPE_CHECKING:
    from hilo.tensorflow.calls import Compiled
    from hilo.tensorflow.restored import Restored, Variables

FILE: Final = "saved_model.pb"
DEFAULT: Final = "serving_default"
WRITES: Final = re.compile(r"Assign|Resource(Scatter|(Sparse)?Apply|StridedSlice)|Rng(ReadAnd)?Skip|Stateful[^P]")
Shape = tuple[int | None, ...]


@record(frozen=True)
class Value:
    """What a signature takes or gives.

    dtype  of TensorFlow
    shape  in which None is a size left open; None if not even the rank is known
    kind   "tensor", or what else it is ("composite_tensor": a ragged one; "coo_sparse")
    """

    dtype: Any
    shape: Shape | None
    kind: str = "tensor"

    @property
    def is_open(self) -> bool:
        return self.shape is None or None in self.shape

    def fits(self, shape: Sequence[int]) -> bool:
        own = self.shape
        return own is None or (len(own) == len(shape) and all(a in (None, b) for a, b in zip(own, shape)))

    def __str__(self) -> str:
        if self.kind != "tensor":
            return self.kind
        return "x".join([*("?" if n is None else str(n) for n in self.shape or ()), self.dtype.name])


class Signature:
    """One signature of a SavedModel: `signature(name=array, ...)` gives a dictionary of arrays.

    inputs, outputs  a `Value` for each name
    """

    def __init__(self, model: SavedModel, name: str, definition: Any, ops: frozenset[str]) -> None:
        self.model = model
        self.name = name
        self.inputs = _values(definition.inputs)
        self.outputs = _values(definition.outputs)
        self.ops = ops  # the names of all that it runs
        self._compiled: Compiled | None = None

    def __call__(self, **arrays: Any) -> dict[str, np.ndarray]:
        """Run it, as `compile()` has it. Raises `Error` for inputs that there are not, and those of another dtype or
        shape."""
        if self._compiled is None:
            with self.model.lock:
                self._compiled = self._compiled or self.compile()
        return self._compiled(**arrays)

    def compile(self, *, constants: bool = True, shapes: Mapping[str, Sequence[int]] | None = None,
                **how: Any) -> Compiled:  # fmt: skip
        """The signature as compiled code, called as it is.

        constants  variables that no signature changes are constants of the program; False: each call takes the values
                   that `model.variables` has
        shapes     {input: shape}: for these shapes only. Otherwise one program is for all sizes left open, if there is
                   one, or one is made for each set of shapes
        how        as of `hilo.compile`: threads, target, options
        """
        from hilo.tensorflow.calls import Compiled

        self.check()
        return Compiled(self, constants, self.shapes(shapes) if shapes is not None else None, how)

    def module(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Module:
        """The program, with variables as constants, for these shapes; sizes that are not said stay open.

        Parameters and results have the names of inputs and outputs in the attribute `tf_saved_model.index_path`.
        Raises `Error` for shapes that do not fit, for what TensorFlow cannot convert, and where variables are changed.
        """
        from hilo.tensorflow.calls import Programs

        self.check()
        return Programs(self).module(None if shapes is None else self.shapes(shapes))

    def check(self) -> None:
        """`Error` for what no program can take or give."""
        for what, values in (("input", self.inputs), ("output", self.outputs)):
            for name, v in values.items():
                if v.kind != "tensor":
                    raise Unsupported(f"{what} {name} of signature {self.name!r} is no dense tensor but {v.kind}: "
                                      "only dense ones can be compiled")  # fmt: skip
                if v.dtype == tf.string or v.dtype.is_numpy_compatible is False:
                    raise Unsupported(f"{what} {name} of signature {self.name!r} is of {v.dtype.name}s, which cannot "
                                      "be compiled")  # fmt: skip

    def shapes(self, given: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """A shape for each input. `Error` if one does not fit, or is still open."""
        if unknown := given.keys() - self.inputs.keys():
            raise Error(f"signature {self.name!r} has no input {', '.join(sorted(unknown))}; it takes "
                        f"{', '.join(self.inputs) or 'nothing'}")  # fmt: skip
        made: dict[str, tuple[int, ...]] = {}
        for name, v in self.inputs.items():
            shape: Any = given.get(name, v.shape)
            if shape is None or None in shape:
                raise Error(f"signature {self.name!r} leaves sizes of {name} open ({v}): say which, with "
                            f"shapes={{{name!r}: ...}}")  # fmt: skip
            if not v.fits(shape):
                raise Error(f"input {name} of signature {self.name!r} is {v}, not of shape {tuple(shape)}")
            made[name] = tuple(int(n) for n in shape)
        return made

    def arrays(self, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The inputs of a call as arrays. Numbers and lists take the dtype; nothing else is cast."""
        if wrong := self.inputs.keys() ^ given.keys():
            missing = sorted(self.inputs.keys() - given.keys())
            more = f"; {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not given" if missing else ""
            extra = sorted(wrong - set(missing))
            more += f"; it has no {', '.join(extra)}" if extra else ""
            raise Error(f"signature {self.name!r} takes {', '.join(self.inputs) or 'nothing'}{more}")
        made: dict[str, np.ndarray] = {}
        for name, v in self.inputs.items():
            x, dtype = given[name], np.dtype(v.dtype.as_numpy_dtype)
            try:
                a = np.asarray(x, dtype) if isinstance(x, int | float | list | tuple) else np.asarray(x)
            except (TypeError, ValueError, OverflowError) as e:
                raise Error(f"input {name} of signature {self.name!r} is no array of {v.dtype.name}: {e}") from None
            if a.dtype != dtype or not v.fits(a.shape):
                shown = "x".join([*map(str, a.shape), str(a.dtype)])
                raise Error(f"input {name} of signature {self.name!r} is {v}, not {shown}")
            made[name] = a
        return made

    def __repr__(self) -> str:
        sides = (", ".join(f"{n}: {v}" for n, v in side.items()) for side in (self.inputs, self.outputs))
        return f"<Signature {self.name}({next(sides)}) -> ({next(sides)})>"


class SavedModel:
    """A SavedModel in a folder: `signatures` by name. Calling it calls the default one."""

    def __init__(self, path: str | PathLike[str], tag: str = "serve") -> None:
        self.path = fspath(path)
        proto: Any = import_module("tensorflow.core.protobuf.saved_model_pb2").SavedModel()
        try:
            proto.ParseFromString((Path(self.path) / FILE).read_bytes())
        except OSError as e:
            raise Error(f"{self.path} is no SavedModel: {e.strerror or e}") from None
        except Exception as e:  # protobuf's DecodeError
            raise Error(f"{self.path}: {FILE} is damaged: {e}") from None
        graph = next((g for g in proto.meta_graphs if tag in g.meta_info_def.tags), None)
        if graph is None:
            raise Error(f"{self.path} has no graph for {tag!r}")
        self.tags = list(graph.meta_info_def.tags)
        self.lock = RLock()
        self.signatures: Final = {
            name: Signature(self, name, d, _ops(graph.graph_def, d.outputs.values()))
            for name, d in sorted(graph.signature_def.items())
            if name != "__saved_model_init_op"
        }

    @property
    def changes(self) -> bool:
        """Whether a signature changes variables: then they have values that last from call to call."""
        return any(WRITES.match(op) for s in self.signatures.values() for op in s.ops)

    @cached_property
    def restored(self) -> Restored:
        """The model's objects, as TensorFlow makes them again."""
        from hilo.tensorflow.restored import Restored

        with self.lock:
            return Restored(self.path, self.tags)

    @property
    def variables(self) -> Variables:
        """The variables that signatures use, by name: their values, which may be set."""
        return self.restored.variables

    def default(self) -> Signature:
        """`serving_default`, or the only signature. Raises `Error` if it is not clear which is meant."""
        if DEFAULT in self.signatures:
            return self.signatures[DEFAULT]
        if len(self.signatures) != 1:
            raise Error(f"{self.path} has no {DEFAULT!r} among its signatures ({', '.join(self.signatures) or 'none'})")
        return next(iter(self.signatures.values()))

    def __getitem__(self, name: str) -> Signature:
        """A signature. `Error` if there is none of that name."""
        if name not in self.signatures:
            raise Error(f"{self.path} has no signature {name!r}; there are {', '.join(self.signatures) or 'none'}")
        return self.signatures[name]

    def __call__(self, **arrays: Any) -> dict[str, np.ndarray]:
        return self.default()(**arrays)

    def compile(self, signature: str | None = None, **how: Any) -> Compiled:
        """`Signature.compile` of a signature, or the default one."""
        return (self.default() if signature is None else self[signature]).compile(**how)

    def module(self, entry: str = "main") -> Module:
        """The program of the signature `entry`, whose name its function has; "main" is the default one."""
        if entry == "main" and entry not in self.signatures:
            return self.default().module()
        made = self[entry].module()
        functions = {n: f for n, f in made.functions.items() if n != "main"}
        return made.replace({entry: made["main"].replace(name=entry), **functions})

    def __repr__(self) -> str:
        return f"<SavedModel {self.path}: {', '.join(self.signatures) or 'no signatures'}>"


def _ops(graph: Any, outputs: Iterable[Any]) -> frozenset[str]:
    """The ops that these outputs need, also in functions."""
    nodes = {n.name: n for n in graph.node}
    functions = {f.signature.name: f for f in graph.library.function}
    found: set[str] = set()
    seen: set[str] = set()
    todo = [nodes[name] for v in outputs if (name := v.name.split(":")[0]) in nodes]
    while todo:
        node = todo.pop()
        found.add(node.op)
        names = [i.lstrip("^").split(":")[0] for i in node.input]
        todo += [nodes[n] for n in names if n in nodes and not (n in seen or seen.add(n))]
        called = [node.op, *(f.name for a in node.attr.values() for f in (a.func, *a.list.func))]
        for name in called:
            if name in functions and not (f"function {name}" in seen or seen.add(f"function {name}")):
                todo += functions[name].node_def
    return frozenset(found)


def _values(infos: Any) -> dict[str, Value]:
    def shape(info: Any) -> Shape | None:
        if info.tensor_shape.unknown_rank:
            return None
        return tuple(None if d.size < 0 else d.size for d in info.tensor_shape.dim)

    def kind(info: Any) -> str:
        encoding = info.WhichOneof("encoding")
        return "tensor" if encoding in (None, "name") else encoding

    return {name: Value(tf.as_dtype(info.dtype), shape(info), kind(info)) for name, info in sorted(infos.items())}
