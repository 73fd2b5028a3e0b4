"""SavedModels as programs: signatures, their inputs by name, shapes that they leave open. Imports names, formats, api.

TensorFlow's converter makes StableHLO of a signature, with the variables as constants, for shapes that are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path
from threading import Lock
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.formats import parse
from hilo.formats.bytecode.container import open_file
from hilo.formats.bytecode.program import Program as Bytecode
from hilo.ir.module import Function, Module
from hilo.record import record
from hilo.runtime.executable import Executable
from hilo.tensorflow.names import tf

FILE: Final = "saved_model.pb"
DEFAULT: Final = "serving_default"
PATH: Final = "tf_saved_model.index_path"
Shape = tuple[int | None, ...]


@record(frozen=True)
class Value:
    """What a signature takes or gives: a dtype of TensorFlow and a shape, in which None is a size left open."""

    dtype: Any
    shape: Shape

    def __str__(self) -> str:
        return "x".join([*("?" if n is None else str(n) for n in self.shape), self.dtype.name])


class Signature:
    """One signature of a SavedModel: `signature(name=array, ...)` gives a dictionary of arrays.

    A program is compiled for each set of shapes that it is called with, and kept.

    inputs, outputs  a `Value` for each name
    """

    def __init__(self, path: str, name: str, definition: Any, graph: Any) -> None:
        self.name = name
        self.inputs = _values(definition.inputs)
        self.outputs = _values(definition.outputs)
        self._path = path
        self._tags = list(graph.meta_info_def.tags)
        self._order: list[str] | None = None
        self._made: dict[tuple[Shape, ...], tuple[Executable, list[str], list[str]]] = {}
        self._lock = Lock()

    def module(self, shapes: Mapping[str, Sequence[int]] | None = None) -> Module:
        """The program for these shapes of inputs; those that the model itself gives may be left out.

        Parameters and results have the names of inputs and outputs in the attribute `tf_saved_model.index_path`.
        Raises `Error` for shapes that do not fit, or leave sizes open.
        """
        return self._converted(self._shapes(shapes or {}))

    def __call__(self, **arrays: Any) -> dict[str, np.ndarray]:
        """Run it. Raises `Error` for inputs that there are not, and those of another dtype or shape."""
        if missing := self.inputs.keys() ^ arrays.keys():
            raise Error(f"signature {self.name!r} takes {', '.join(self.inputs)}; {', '.join(sorted(missing))} "
                        f"{'is' if len(missing) == 1 else 'are'} not given, or not one of them")  # fmt: skip
        given = {name: np.asarray(a) for name, a in arrays.items()}
        shapes = self._shapes({name: a.shape for name, a in given.items()})
        key = tuple(shapes[name] for name in self.inputs)
        with self._lock:
            made = self._made.get(key)
            if made is None:
                made = self._made[key] = self._compiled(shapes)
        executable, inputs, outputs = made
        return dict(zip(outputs, executable(*[given[name] for name in inputs])))

    def _compiled(self, shapes: Mapping[str, Shape]) -> tuple[Executable, list[str], list[str]]:
        from hilo.api import compile as compile_program

        module = self._converted(shapes)
        return compile_program(module), *names_of(module["main"])

    def _shapes(self, given: Mapping[str, Sequence[int]]) -> dict[str, Shape]:
        if unknown := given.keys() - self.inputs.keys():
            raise Error(f"signature {self.name!r} has no input {', '.join(sorted(unknown))}; it takes "
                        f"{', '.join(self.inputs)}")  # fmt: skip
        shapes = {name: tuple(given.get(name, v.shape)) for name, v in self.inputs.items()}
        for name, shape in shapes.items():
            own = self.inputs[name].shape
            if len(own) != len(shape) or any(a is not None and a != b for a, b in zip(own, shape)):
                raise Error(f"input {name} of signature {self.name!r} is {self.inputs[name]}, not of shape {shape}")
            if None in shape:
                raise Error(f"signature {self.name!r} leaves sizes of {name} open ({self.inputs[name]}): say which, "
                            "with hilo.tensorflow.load(path).signatures[name].module({input: shape}), "
                            "or call the signature: it is compiled for the shapes that it gets")  # fmt: skip
        return shapes

    def _converted(self, shapes: Mapping[str, Shape]) -> Module:
        """The converter takes shapes in the order of parameters, which it alone knows: it is asked once."""
        if self._order is None:
            self._order = _parameter_names(self._convert("")) if len(shapes) > 1 else list(shapes)
            if sorted(self._order) != sorted(shapes):
                raise Error(f"signature {self.name!r} takes {', '.join(shapes)}, but its program {self._order}")
        return parse(self._convert(":".join(",".join(map(str, shapes[name])) for name in self._order)))

    def _convert(self, shapes: str) -> bytes:
        converter: Any = import_module(
            "tensorflow.compiler.mlir.tensorflow_to_stablehlo.python.pywrap_tensorflow_to_stablehlo"
        )
        try:
            return converter.savedmodel_to_stablehlo(self._path, [self.name], self._tags, shapes)
        except (tf.errors.OpError, ValueError, RuntimeError) as e:
            raise Error(f"TensorFlow cannot convert signature {self.name!r} of {self._path}: {e}") from e

    def __repr__(self) -> str:
        sides = (", ".join(f"{n}: {v}" for n, v in side.items()) for side in (self.inputs, self.outputs))
        return f"<Signature {self.name}({next(sides)}) -> ({next(sides)})>"


class SavedModel:
    """A SavedModel in a folder: `signatures` by name."""

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
        self.signatures: Final = {
            name: Signature(self.path, name, d, graph)
            for name, d in graph.signature_def.items()
            if name != "__saved_model_init_op"
        }

    def default(self) -> Signature:
        """`serving_default`, or the only signature. Raises `Error` if it is not clear which is meant."""
        if DEFAULT in self.signatures:
            return self.signatures[DEFAULT]
        if len(self.signatures) != 1:
            raise Error(f"{self.path} has no {DEFAULT!r} among its signatures ({', '.join(self.signatures) or 'none'})")
        return next(iter(self.signatures.values()))


def names_of(main: Function) -> tuple[list[str], list[str]]:
    """The names of parameters and results that the converter gave."""
    def names(attrs: Sequence[Any], count: int) -> list[str]:
        texts = [str(a.get(PATH, "")) for a in attrs] or [""] * count
        return [t[2:-2] if t.startswith('["') else str(i) for i, t in enumerate(t.strip("'") for t in texts)]

    return names(main.arg_attrs, len(main.params)), names(main.result_attrs, len(main.results))


class _Found(Exception):
    """The names of a program's parameters."""


class _Heads(Bytecode):
    """Looks at no more than the head of the entry function: with open sizes, its ops may be none of StableHLO's."""

    def function(self, head: Any) -> Any:
        own, _ = self.attributes.raw(head.key, self.r)
        attrs: Any = own.get("arg_attrs") or ()
        raise _Found([a[PATH][0] if a and PATH in a else "" for a in attrs])


def _parameter_names(data: bytes) -> list[str]:
    try:
        _Heads(open_file(data, "<SavedModel>")).module()
    except _Found as found:
        return found.args[0]
    return []


def _values(infos: Any) -> dict[str, Value]:
    def shape(info: Any) -> Shape:
        if info.tensor_shape.unknown_rank:
            raise Error("signatures with tensors of unknown rank are not supported")
        return tuple(None if d.size < 0 else d.size for d in info.tensor_shape.dim)

    return {name: Value(tf.as_dtype(info.dtype), shape(info)) for name, info in sorted(infos.items())}
