"""A signature's StableHLO from TensorFlow's converter of SavedModels: variables are constants in it, sizes may be open.
Imports names, open_sizes, random, formats.

The converter reads the folder itself, without making the model's objects. It does not know lists of tensors (Keras's
recurrent layers), and what a signature assigns would be lost in it: both go by `restored.py`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, Final

from hilo.errors import Error
from hilo.formats import parse
from hilo.formats.bytecode.container import open_file
from hilo.formats.bytecode.program import Program as Bytecode
from hilo.ir.module import Function, Module
from hilo.tensorflow.names import tf
from hilo.tensorflow.open_sizes import finished
from hilo.tensorflow.random import with_states

PATH: Final = "tf_saved_model.index_path"  # the attribute of parameters and results that has their names
WITHOUT_CONSTRAINTS: Final = "func.func(remove-shape-constraints)"
LOCATION: Final = re.compile(r"loc\(.*\): ")
LONGEST: Final = 400  # characters of what TensorFlow says


class Converter:
    """Programs of one signature."""

    def __init__(self, path: str, name: str, tags: Sequence[str]) -> None:
        self._path = path
        self._name = name
        self._tags = list(tags)

    def open(self) -> Module:
        """The program for all sizes that the signature leaves open. `Error` if there is none."""
        data = self._as_it_is
        try:
            return with_states(parse(data))
        except Error:
            return with_states(parse(finished(_text(data))))

    def sized(self, shapes: Mapping[str, Sequence[int]]) -> Module:
        """The program for these shapes of inputs."""
        names = _parameter_names(self._as_it_is)
        if sorted(names) != sorted(shapes):
            raise Error(f"the converter's program takes {names}, not {sorted(shapes)}")
        return with_states(parse(self._convert(":".join(",".join(map(str, shapes[name])) for name in names))))

    @cached_property
    def _as_it_is(self) -> bytes:
        return self._convert("")

    def _convert(self, shapes: str) -> bytes:
        converter: Any = import_module(
            "tensorflow.compiler.mlir.tensorflow_to_stablehlo.python.pywrap_tensorflow_to_stablehlo"
        )
        try:
            return converter.savedmodel_to_stablehlo(self._path, [self._name], self._tags, shapes)
        except (tf.errors.OpError, ValueError, RuntimeError) as e:
            raise Error(f"TensorFlow's converter: {_said(str(e))}") from e


def names_of(main: Function) -> tuple[list[str], list[str]]:
    """The names of parameters and results that the converter gave."""
    return _names(main.arg_attrs), _names(main.result_attrs)


def _names(attrs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [str(a.get(PATH, "")).removeprefix('["').removesuffix('"]') for a in attrs]


def _text(data: bytes) -> str:
    """A program as text. `Error` if TensorFlow's own tools cannot read it."""
    tools: Any = import_module("tensorflow.python._pywrap_mlir")
    try:
        return tools.ExperimentalRunPassPipeline(data, WITHOUT_CONSTRAINTS, False)
    except (tf.errors.OpError, ValueError, RuntimeError) as e:
        raise Error(f"TensorFlow's converter leaves what its own tools do not read: {_said(str(e))}") from e


def _said(message: str) -> str:
    """The error in what TensorFlow says, on one line."""
    message = LOCATION.sub("", message.partition("error: ")[2] or message)
    return " ".join(message.split())[:LONGEST]


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
