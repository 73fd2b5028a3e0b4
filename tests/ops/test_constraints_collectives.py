"""Each numbered constraint of collectives, exchange with the host and older ops is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import DROP, Base, check_case, combine, each_case, region

_GLOBAL = {"use_global_device_ids": "unit"}
_CHANNEL = "#stablehlo.channel_handle<handle = {}, type = {}>"
_COMPUTATION = [region("a: f32, b: f32", ""), region("a: f32", "a: f32"), region("a: f32, b: f64", "a: f32"),
                region("a: 2xf32, b: 2xf32", "a: 2xf32"), combine("i32"), combine("f16"),
                region("a: f32, b: f32", "a: f32, b: f32")]  # fmt: skip


def _groups(unique: str, numbers: str, label: str) -> list[tuple[str, dict[Any, Any]]]:
    """What is wrong with replica groups of one row of two."""
    wrong = [(unique, [[0, 0]]), (numbers, [[0, -2]]), (numbers, [[0, 2]]), (label, "dense<[0, 1]> : tensor<2xi64>"),
             (label, "dense<0> : tensor<1x1x1xi64>"), (label, "dense<0> : tensor<i64>")]  # fmt: skip
    return [(rule, {"replica_groups": g}) for rule, g in wrong]


def _channel(rule: str) -> list[tuple[str, dict[Any, Any]]]:
    return [(rule, _GLOBAL), (rule, {**_GLOBAL, "channel_handle": _CHANNEL.format(0, 1)})]


def _computation(rule: str) -> list[tuple[str, dict[Any, Any]]]:
    return [(rule, {"computation": c}) for c in _COMPUTATION]


_PAIRS: list[tuple[str, dict[Any, Any]]] = [
    ("C1", {"source_target_pairs": [[0, 1, 2]]}), ("C2", {"source_target_pairs": [[0, 1], [0, 2]]}),
    ("C3", {"source_target_pairs": [[0, 1], [2, 1]]}), ("C4", {"source_target_pairs": [[0, -1]]}),
]  # fmt: skip
TOKEN = "!stablehlo.token"


def _future(*types: str) -> str:
    return f"!stablehlo.future<{', '.join(f'tensor<{t}>' for t in types)}>"


def _starts(op: str, takes: str = "a: 4xf32", gives: str = "r: 4xf32", types: str = "4xf32 -> 4xf32",
            **attrs: str) -> str:  # fmt: skip
    """A body of one op in the generic form, on the values that it takes."""
    operands = ", ".join(f"%{p.split(':')[0].strip()}" for p in takes.split(","))
    sides = [", ".join(f"tensor<{t.strip()}>" for t in side.split(",")) for side in types.split("->")]
    given = ", ".join(f"{k} = {v}" for k, v in attrs.items())
    return region(takes, gives, f'%r = "stablehlo.{op}"({operands}) {{{given}}} : ({sides[0]}) -> {sides[1]}')


_PERMUTE = {"source_target_pairs": "dense<[[0, 1]]> : tensor<1x2xi64>"}
_BODY = _starts("collective_permute", **_PERMUTE)
_TWO = region("a: 4xf32", "s: 4xf32", "".join(
    f'%{r} = "stablehlo.collective_permute"(%{a}) {{source_target_pairs = dense<0> : tensor<1x2xi64>}} '
    f": (tensor<4xf32>) -> tensor<4xf32>\n" for a, r in ("ar", "rs")
))  # fmt: skip
_PAIR = region("a: 4xf32", "r#0: 4xf32, r#1: 4xf32", (
    '%r:2 = "stablehlo.all_gather"(%a, %a) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>} '
    ": (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)"
))  # fmt: skip
BASES: list[Base] = [
    Base("stablehlo.all_reduce", ["4xf32"], {"replica_groups": [[0, 1]]}, "4xf32", {"computation": combine()}, [
        *_groups("C1", "C3", "I2"), *_channel("C4"), *_computation("C5"), ("C6", {"result": "5xf32"}),
        ("C7", {"result": "4xf64"}), ("C6", {"results": ["4xf32", "4xf32"]}),
    ]),
    Base("stablehlo.all_gather", ["4x2xf32"], {"all_gather_dim": 1, "replica_groups": [[0, 1]]}, "4x4xf32", cases=[
        ("C1", {"all_gather_dim": 2}), ("C1", {"all_gather_dim": -1}), *_groups("C2", "C4", "I3"), *_channel("C5"),
        ("C6", {"result": "4x5xf32"}), ("C6", {"result": "4x4xf64"}), ("C6", {"result": "8x2xf32"}),
        ("C6", {"results": ["4x4xf32", "4x4xf32"]}),
    ]),
    Base("stablehlo.all_to_all", ["4x6xf32"], {
        "split_dimension": 1, "concat_dimension": 0, "split_count": 2, "replica_groups": [[0, 1]],
    }, "8x3xf32", cases=[
        ("C1", {"split_dimension": 2}), ("C1", {"split_dimension": -1}), ("C2", {0: "4x5xf32"}),
        ("C3", {"concat_dimension": 2}), ("C4", {"split_count": 0}), *_groups("C5", "C7", "I5"),
        ("C8", {"split_count": 3}), ("C8", {"replica_groups": "dense<> : tensor<0x2xi64>"}),
        ("C9", {"result": "4x6xf32"}), ("C9", {"result": "8x3xf64"}),
    ]),
    Base("stablehlo.reduce_scatter", ["4x6xf32"], {"scatter_dimension": 1, "replica_groups": [[0, 1]]}, "4x3xf32",
         {"computation": combine()}, [
        ("C1", {0: "4x5xf32"}), ("C2", {"scatter_dimension": 2}), ("C2", {"scatter_dimension": -1}),
        *_groups("C3", "C5", "I3"), *_channel("C6"), *_computation("C7"), ("C8", {"result": "4x4xf32"}),
        ("C8", {"result": "2x3xf32"}), ("C8", {"result": "3xf32"}), ("C9", {"result": "4x3xf64"}),
    ]),
    Base("stablehlo.collective_permute", ["4xf32"], {"source_target_pairs": [[0, 1], [1, 0]]}, "4xf32", cases=[
        *_PAIRS, ("C5", {"result": "5xf32"}), ("C5", {"result": "4xf64"}),
        ("I2", {"source_target_pairs": "dense<[0, 1]> : tensor<2xi64>"}),
    ]),
    Base("stablehlo.collective_broadcast", ["4xf32"], {"replica_groups": [[0, 1]]}, "4xf32", cases=[
        ("C1", {"replica_groups": [[1, 1]]}), ("C2", {"replica_groups": [[0, -1]]}),
        ("C3", {"result": "5xf32"}), ("C3", {"result": "4xf64"}), ("C4", {"has_dynamic_root": "unit"}),
        ("C5", {"results": ["4xf32", "4xf32"]}),
    ]),
    Base("stablehlo.collective_broadcast", ["4xf32", "1xi32"], {
        "replica_groups": [[0, 1]], "has_dynamic_root": "unit",
    }, "4xf32", cases=[("C4", {1: "2xi32"}), ("C4", {1: "1xi64"}), ("C4", {1: "i32"})]),
    Base("stablehlo.collective_reduce", ["4xf32"], {"replica_groups": [[0, 1]]}, "4xf32", {"computation": combine()}, [
        *[c for c in _groups("C1", "C2", "I2") if c[1]["replica_groups"] != [[0, 2]]], *_channel("I3"),
        ("", {"replica_groups": [[0, 2]]}), ("", {"replica_groups": [[0, -1]]}),
        ("C2", {**_GLOBAL, "channel_handle": _CHANNEL.format(1, 0), "replica_groups": "dense<> : tensor<0x2xi64>"}),
        ("C3", {"result": "5xf32"}), ("C3", {"result": "4xf64"}),
        ("C3", {"results": ["4xf32", "4xf32"]}), ("C3", {"has_dynamic_root": "unit"}), ("I1", {0: DROP}),
        *_computation("C4"),
    ]),
    Base("stablehlo.collective_reduce", ["4xf32", "2xf32", "2xi32"], {
        "replica_groups": [[0, 1]], "has_dynamic_root": "unit",
    }, ["4xf32", "2xf32"], {"computation": combine()}, [
        ("C3", {2: "3xi32"}), ("C3", {2: "2xi64"}), ("C3", {2: "i32"}), ("C3", {0: DROP, 1: DROP}),
    ]),
    Base("stablehlo.async_start", ["4xf32"], {}, _future("4xf32"), {"body": _BODY}, [
        ("C1", {"body": _TWO}), ("C1", {"body": region("a: 4xf32", "a: 4xf32")}),
        ("C2", {"body": _starts("negate")}),
        ("C3", {0: "5xf32"}), ("C3", {0: "4xf64"}), ("C3", {1: "4xf32"}), ("C3", {0: DROP}), ("I1", {0: TOKEN}),
        ("C4", {"body": _PAIR}), ("C4", {"body": _BODY.replace("(%r)", "(%a)")}),
        ("C4", {"result": _future("5xf32")}), ("C4", {"result": _future("4xf64")}), ("C4", {"result": "4xf32"}),
        ("C4", {"result": _future("4xf32", "4xf32")}), ("C4", {"results": [_future("4xf32")] * 2}),
    ]),
    Base("stablehlo.async_done", [_future("4xf32")], {}, "4xf32", cases=[
        ("I1", {0: "4xf32"}), ("I1", {0: TOKEN}), ("C1", {0: _future("4xf32", "4xf32")}), ("C1", {"result": "5xf32"}),
        ("C1", {"result": "4xf64"}), ("C1", {"results": ["4xf32", "4xf32"]}),
    ]),
    Base("stablehlo.cross-replica-sum", ["4xf32"], {"replica_groups": [[0, 1]]}, "4xf32", cases=[
        ("C1", {"replica_groups": [[1, 1]]}), ("C3", {"replica_groups": [[0, -2]]}), ("C6", {"result": "5xf32"}),
        ("C7", {"result": "4xf64"}),
    ]),
    Base("stablehlo.infeed", [TOKEN], {}, ["4xf32", TOKEN], cases=[
        ("C1", {"results": [""]}), ("C2", {"results": [TOKEN, TOKEN]}), ("C3", {"results": ["4xf32", "4xf32"]}),
    ]),
    Base("stablehlo.send", ["4xf32", TOKEN], {"channel_handle": _CHANNEL.format(1, 1)}, TOKEN, cases=[
        *_PAIRS, ("C5", {"channel_handle": _CHANNEL.format(1, 2)}), ("C5", {"is_host_transfer": True}),
    ]),
    Base("stablehlo.recv", [TOKEN], {"channel_handle": _CHANNEL.format(1, 1)}, ["4xf32", TOKEN], cases=[
        *_PAIRS, ("C5", {"channel_handle": _CHANNEL.format(1, 3)}), ("C5", {"is_host_transfer": True}),
        ("C6", {"results": ["4xf32"]}), ("C6", {"results": [TOKEN, TOKEN]}),
    ]),
    Base("stablehlo.rng", ["f32", "f32", "2xi64"], {"rng_distribution": "#stablehlo<rng_distribution NORMAL>"},
         "2x3xf32", cases=[
        ("C1", {1: "f64"}), ("C1", {"result": "2x3xf64"}), ("C2", {0: "i32", 1: "i32", "result": "2x3xi32"}),
        ("C3", {2: "3xi64"}),
    ]),
    Base("stablehlo.einsum", ["2x3xf32", "3x4xf32"], {"einsum_config": '"ab,bc->ac"'}, "2x4xf32", cases=[
        ("C1", {"einsum_config": '"ab->ab"'}), ("C1", {"einsum_config": '"ab,bc"'}),
        ("C2", {"einsum_config": '"abc,bc->ac"'}), ("C3", {"einsum_config": '"aa,bc->ac"'}), ("C4", {1: "4x4xf32"}),
        ("C5", {"einsum_config": '"ab,bc->az"'}), ("C5", {"result": "4x2xf32"}), ("C6", {1: "3x4xf64"}),
        ("C6", {"result": "2x4xf16"}),
    ]),
    Base("stablehlo.broadcast", ["3xf32"], {"broadcast_sizes": [2]}, "2x3xf32", cases=[
        ("C1", {"broadcast_sizes": [-2]}),
    ]),
    Base("stablehlo.torch_index_select", ["2x3x4xf32", "2x5xi32"], {"dim": 1, "batch_dims": 1}, "2x5x4xf32", cases=[
        ("C1", {"dim": 3}), ("C2", {"batch_dims": 2}), ("C3", {1: "3x5xi32"}), ("I2", {1: "2x5xf32"}),
    ]),
    Base("stablehlo.unary_einsum", ["2x3xf32"], {"einsum_config": '"ab->b"'}, "3xf32", cases=[
        ("C1", {"einsum_config": '"ab"'}), ("C2", {"einsum_config": '"a->a"'}), ("C3", {"einsum_config": '"aa->a"'}),
        ("C5", {"einsum_config": '"ab->c"'}), ("C1", {"result": "2xf32"}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "rule", "changes"), each_case(BASES))
def test_constraints(base: Base, rule: str, changes: dict[Any, Any]):
    check_case(base, rule, changes)
