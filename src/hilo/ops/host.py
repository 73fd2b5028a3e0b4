"""Exchange with the host and other processes: infeed, outfeed, send, recv. They verify; nothing runs them.

Imports ir.
"""

from __future__ import annotations

from typing import Any, NoReturn

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import f32
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import TOKEN, Results, TensorType, Type, result_types
from hilo.ops.collectives import Groups, check_pairs
from hilo.ops.control import one_or_results
from hilo.ops.sharding import unsharded

TO_HOST, FROM_HOST, DEVICE = 2, 3, 1  # types of channels, by their numbers


def _no_queue(*_: Any, **__: Any) -> NoReturn:
    raise Unsupported("there is no queue to exchange data with the host or other processes")


class _Queue:
    """What the ops share: they stay where they are, and cannot run."""

    effect = True
    evaluate = staticmethod(_no_queue)
    sharding = staticmethod(unsharded)

    @staticmethod
    def expand(*_: Op, **__: Any) -> Op:
        _no_queue()


def _is_order(layout: Any) -> bool:
    return isinstance(layout, tuple) and all(isinstance(d, int) for d in layout)


def _tokens(types: tuple[Type, ...], what: str, rule: str) -> None:
    ok = bool(types) and types[-1] is TOKEN and all(isinstance(t, TensorType) for t in types[:-1])
    require(ok, rule, "{what} must be tensors and then a token, not {t}", what=what, t=types)


@op("infeed", typed=True)
class infeed(_Queue):
    """Tensors from the host, and a token. Operand: a token. Spec: infeed."""

    attrs = {"infeed_config": "", "layout": None}

    @staticmethod
    def infer(token: Type, *, infeed_config: str, layout: Any, type: Type) -> Type:  # noqa: A002
        require(token is TOKEN, "I1", "the operand must be a token, not {t}", t=token)
        outs = result_types(type)
        require(len(outs) > 0, "C1", "there must be a result")
        require(all(isinstance(t, TensorType) for t in outs[:-1]), "C2", "results {t} must be tensors", t=outs)
        require(outs[-1] is TOKEN, "C3", "the last result must be a token, not {t}", t=outs[-1])
        ok = not layout or (isinstance(layout, tuple) and len(layout) == len(outs) - 1 and all(map(_is_order, layout)))
        require(ok, "", "layout {l} must have a list of integers for each of {n} tensors", l=layout, n=len(outs) - 1)
        return type

    examples = [((TOKEN,), {"type": Results([TensorType(f32, (2,)), TOKEN])})]


@op("outfeed")
class outfeed(_Queue):
    """Tensors to the host. Operands: tensors, a token; result: a token. Spec: outfeed."""

    attrs = {"outfeed_config": ""}

    @staticmethod
    def infer(*types: Type, outfeed_config: str) -> Type:
        _tokens(types, "operands", "I1")
        return TOKEN

    examples = [((TensorType(f32, (2,)), TOKEN), {})]


@op("send")
class send(_Queue):
    """Tensors to the host or to other processes. Operands: tensors, a token; result: a token. Spec: send."""

    attrs = {"is_host_transfer": False, "source_target_pairs": None}

    @staticmethod
    def infer(*types: Type, channel_handle: tuple[int, int], is_host_transfer: bool,
              source_target_pairs: Groups | None) -> Type:  # fmt: skip
        _tokens(types, "operands", "I1")
        check_pairs(source_target_pairs or (), ("C1", "C2", "C3", "C4"), "I6")
        want = TO_HOST if is_host_transfer else DEVICE
        ok = channel_handle[1] == want
        require(ok, "C5", "a channel of type {t}, but it must be {w}", t=channel_handle[1], w=want)
        return TOKEN

    examples = [((TensorType(f32, (2,)), TOKEN), {"channel_handle": (1, DEVICE), "source_target_pairs": ((0, 0),)})]


@op("recv", typed=True)
class recv(_Queue):
    """Tensors from the host or from other processes, and a token. Operand: a token. Spec: recv."""

    attrs = {"is_host_transfer": False, "source_target_pairs": None}

    @staticmethod
    def infer(token: Type, *, channel_handle: tuple[int, int], is_host_transfer: bool,
              source_target_pairs: Groups | None, type: Type) -> Type:  # noqa: A002  # fmt: skip
        require(token is TOKEN, "I1", "the operand must be a token, not {t}", t=token)
        check_pairs(source_target_pairs or (), ("C1", "C2", "C3", "C4"), "I5")
        want = FROM_HOST if is_host_transfer else DEVICE
        ok = channel_handle[1] == want
        require(ok, "C5", "a channel of type {t}, but it must be {w}", t=channel_handle[1], w=want)
        _tokens(result_types(type), "results", "C6")
        return one_or_results(result_types(type))

    examples = [((TOKEN,), {"channel_handle": (0, FROM_HOST), "is_host_transfer": True,
                            "type": Results([TensorType(f32, (2,)), TOKEN])})]  # fmt: skip
