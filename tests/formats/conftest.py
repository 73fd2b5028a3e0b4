# ruff: noqa: E501  (programs are quoted as they are printed)
"""Definitions for the ops of the specification that have none yet, so that the syntax of all of them is tested."""

from __future__ import annotations

from typing import Any

import pytest

from hilo.formats.mlir_text.names import CHLO, STABLEHLO
from hilo.ir import registry
from hilo.ir.op import OpDef
from hilo.ir.types import Type


def _declared(*types: Type, type: Type, **attrs: Any) -> Type:  # noqa: A002
    return type


@pytest.fixture
def every_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every op of the specification has a definition: its own, or one that takes anything and gives the declared type."""
    registry.lookup("stablehlo.constant")
    for dialect, names in (("stablehlo", STABLEHLO), ("chlo", CHLO)):
        for name in names:
            if f"{dialect}.{name}" not in registry.REGISTRY:
                made = OpDef(name, infer=_declared, typed=True, dialect=dialect)
                monkeypatch.setitem(registry.REGISTRY, made.full_name, made)
