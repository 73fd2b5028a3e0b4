"""Exchange with the host and other processes: infeed, outfeed, send, recv. Imports ir, custom_calls.

The host's side are queues that the user owns (`ir.host`); native code calls Python for them. Processes of a grid send
to each other by pairs (source, target); without pairs, to whoever receives on the channel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from hilo.custom_calls import registry
from hilo.errors import Error, Unsupported, require
from hilo.ir import host
from hilo.ir.connection import queues
from hilo.ir.dtypes import f32
from hilo.ir.op import Op
from hilo.ir.process import Process, current
from hilo.ir.registry import op
from hilo.ir.types import TOKEN, Results, TensorType, Type, result_types
from hilo.ops.calls import custom_call
from hilo.ops.checks import one_or_results, one_or_tuple, tensors
from hilo.ops.collective_sends import check_pairs
from hilo.ops.groups import Channel, Groups, channel_id, pairs_of
from hilo.ops.sharding import unsharded

TO_HOST, FROM_HOST, DEVICE = 2, 3, 1  # types of channels, by their numbers


def _infeed(*, backend_config: str, results: Sequence[Type]) -> list[np.ndarray]:
    return queues().receive("stablehlo.infeed", ("infeed", backend_config), results)


def _outfeed(*arrays: np.ndarray, backend_config: str) -> None:
    queues().push(("outfeed", backend_config), arrays)


def _recv(*, backend_config: str, results: Sequence[Type]) -> list[np.ndarray]:
    host_side = queues()
    return host_side.receive("stablehlo.recv", host_side.incoming(int(backend_config)), results)


def _send(*arrays: np.ndarray, backend_config: str) -> None:
    host_side = queues()
    host_side.push(host_side.outgoing(int(backend_config)), arrays)


def _as_target(kind: str, function: Callable[..., Any]) -> None:
    """Make `function` what native code calls for the op `kind`; its errors name that op."""

    @wraps(function)
    def call(*arrays: np.ndarray, **keywords: Any) -> Any:
        try:
            return function(*arrays, **keywords)
        except Error as e:
            raise e.at(None, f"stablehlo.{kind}") from None

    registry.register(f"hilo.{kind}", call, builtin=True)


for _kind, _function in (("infeed", _infeed), ("outfeed", _outfeed), ("recv", _recv), ("send", _send)):
    _as_target(_kind, _function)


def _call(kind: str, config: str, operands: Sequence[Op], t: Type) -> Op:
    """What native code does: a call of one of the functions above."""
    return custom_call(*operands, call_target_name=f"hilo.{kind}", backend_config=config, has_side_effect=True, type=t)


def _no_process() -> Unsupported:
    return Unsupported("a process that runs alone has none to exchange data with: hilo.interpret_parallel simulates "
                       "several")  # fmt: skip


def _mail(me: Process, channel: Channel, pairs: Groups | None, receives: bool) -> Hashable | None:
    """Where a message to, or from, `me` lies; None if `me` has no part in it."""
    if not pairs:
        return channel_id(channel), None, None
    mine = [p for p in pairs_of(me, channel, pairs, "C4") if p[receives] == me.id]
    return (channel_id(channel), *mine[0]) if mine else None


def _process() -> Process:
    me = current()
    if me is None:
        raise _no_process()
    return me


class _Queue:
    """What the ops share: they stay where they are."""

    effect = True
    sharding = staticmethod(unsharded)


def _is_order(layout: Any) -> bool:
    return isinstance(layout, tuple) and all(isinstance(d, int) for d in layout)


def _tokens(types: tuple[Type, ...], what: str, rule: str) -> None:
    ok = bool(types) and types[-1] is TOKEN and all(isinstance(t, TensorType) for t in types[:-1])
    require(ok, rule, "{what} must be tensors and then a token, not {t}", what=what, t=types)


@op("infeed", typed=True)
class infeed(_Queue):
    """Tensors from the host, and a token. Operand: a token. `infeed_config` names the queue. Spec: infeed."""

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

    @staticmethod
    def evaluate(token: None, *, infeed_config: str, type: Type, **_: Any) -> Any:  # noqa: A002
        return one_or_tuple([*_infeed(backend_config=infeed_config, results=result_types(type)[:-1]), None])

    @staticmethod
    def expand(token: Op, *, infeed_config: str, type: Type, **_: Any) -> Op:  # noqa: A002
        return _call("infeed", infeed_config, [token], type)

    examples = [((TOKEN,), {"type": Results([TensorType(f32, (2,)), TOKEN])})]


@op("outfeed")
class outfeed(_Queue):
    """Tensors to the host. Operands: tensors, a token; result: a token. `outfeed_config` names the queue.

    Spec: outfeed.
    """

    attrs = {"outfeed_config": ""}

    @staticmethod
    def infer(*types: Type, outfeed_config: str) -> Type:
        _tokens(types, "operands", "I1")
        return TOKEN

    @staticmethod
    def evaluate(*values: Any, outfeed_config: str) -> None:
        _outfeed(*values[:-1], backend_config=outfeed_config)

    @staticmethod
    def expand(*values: Op, outfeed_config: str) -> Op:
        return _call("outfeed", outfeed_config, values, TOKEN)

    examples = [((TensorType(f32, (2,)), TOKEN), {})]


@op("send")
class send(_Queue):
    """Tensors to the host or to another process. Operands: tensors, a token; result: a token. Spec: send."""

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

    @staticmethod
    def evaluate(*values: Any, channel_handle: tuple[int, int], is_host_transfer: bool,
                 source_target_pairs: Groups | None) -> None:  # fmt: skip
        if is_host_transfer:
            _send(*values[:-1], backend_config=str(channel_handle[0]))
            return
        me = _process()
        key = _mail(me, channel_handle, source_target_pairs, receives=False)
        if key is not None:
            me.grid.mail.setdefault(key, []).append(values[:-1])

    @staticmethod
    def expand(*values: Op, channel_handle: tuple[int, int], is_host_transfer: bool, **_: Any) -> Op:
        if not is_host_transfer:
            raise _no_process()
        return _call("send", str(channel_handle[0]), values, TOKEN)

    examples = [((TensorType(f32, (2,)), TOKEN), {"channel_handle": (1, DEVICE), "source_target_pairs": ((0, 0),)})]


@op("recv", typed=True)
class recv(_Queue):
    """Tensors from the host or from another process, and a token. Operand: a token.

    A process that is no target of `source_target_pairs` gets zeros. Spec: recv.
    """

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

    @staticmethod
    def evaluate(token: None, *, channel_handle: tuple[int, int], is_host_transfer: bool,
                 source_target_pairs: Groups | None, type: Type) -> Any:  # noqa: A002  # fmt: skip
        types = result_types(type)
        if is_host_transfer:
            return one_or_tuple([*_recv(backend_config=str(channel_handle[0]), results=types[:-1]), None])
        me = _process()
        key = _mail(me, channel_handle, source_target_pairs, receives=True)
        if key is None:  # nobody sends to it, as in collective_permute
            return one_or_tuple([*(np.zeros(t.shape, t.dtype.np) for t in tensors(types[:-1])), None])
        mail = me.grid.mail
        me.wait(lambda: bool(mail.get(key)), lambda: f"in stablehlo.recv on channel {channel_handle[0]}")
        arrays = host.fitting(mail[key].pop(0), types[:-1], f"channel {channel_handle[0]}")
        return one_or_tuple([*arrays, None])

    @staticmethod
    def expand(token: Op, *, channel_handle: tuple[int, int], is_host_transfer: bool, type: Type,  # noqa: A002
               **_: Any) -> Op:  # fmt: skip
        if not is_host_transfer:
            raise _no_process()
        return _call("recv", str(channel_handle[0]), [token], type)

    examples = [((TOKEN,), {"channel_handle": (0, FROM_HOST), "is_host_transfer": True,
                            "type": Results([TensorType(f32, (2,)), TOKEN])})]  # fmt: skip
