"""Pins: how they are written, who wins, what every value does to results, what a kernel's content is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.kernels import pins
from hilo.options import Options

DOT = """func.func @main(%a: tensor<{m}x{k}xf32>, %b: tensor<{b}xf32>) -> tensor<{m}x{n}xf32> {{
  %0 = "stablehlo.dot_general"(%a, %b) {{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1],
      rhs_contracting_dimensions = [{axis}]>{pin}}} : (tensor<{m}x{k}xf32>, tensor<{b}xf32>) -> tensor<{m}x{n}xf32>
  %1 = stablehlo.add %0, %0 : tensor<{m}x{n}xf32>
  return %1 : tensor<{m}x{n}xf32>
}}"""
ROWS = """func.func @main(%x: tensor<40x3000xf32>) -> (tensor<40xf32>, tensor<40x3000xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1]
      : (tensor<40x3000xf32>, tensor<f32>) -> tensor<40xf32>
  %t = stablehlo.tanh %x : tensor<40x3000xf32>
  return %s, %t : tensor<40xf32>, tensor<40x3000xf32>
}"""
ALL = """func.func @main(%x: tensor<700000xf32>) -> tensor<f32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<700000xf32>, tensor<f32>) -> tensor<f32>
  return %s : tensor<f32>
}"""
CONV = """func.func @main(%x: tensor<1x14x14x32xf32>, %w: tensor<3x3x32x48xf32>) -> tensor<1x14x14x48xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x14x14x32xf32>, tensor<3x3x32x48xf32>) -> tensor<1x14x14x48xf32>
  return %0 : tensor<1x14x14x48xf32>
}"""

ATTENTION = """func.func @main(%q: tensor<2x600x16xf32>, %k: tensor<2x600x16xf32>, %v: tensor<2x600x16xf32>)
    -> tensor<2x600x16xf32> {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2]
      : (tensor<2x600x16xf32>, tensor<2x600x16xf32>) -> tensor<2x600x600xf32>
  %e = stablehlo.exponential %s : tensor<2x600x600xf32>
  %t = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [2]
      : (tensor<2x600x600xf32>, tensor<f32>) -> tensor<2x600xf32>
  %b = stablehlo.broadcast_in_dim %t, dims = [0, 1] : (tensor<2x600xf32>) -> tensor<2x600x600xf32>
  %d = stablehlo.divide %e, %b : tensor<2x600x600xf32>
  %r = stablehlo.dot_general %d, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<2x600x600xf32>, tensor<2x600x16xf32>) -> tensor<2x600x16xf32>
  return %r : tensor<2x600x16xf32>
}"""


def dot(m: int, n: int, k: int, turned: bool = False, pin: str = "") -> str:
    b = f"{n}x{k}" if turned else f"{k}x{n}"
    return DOT.format(m=m, n=n, k=k, b=b, axis=int(turned), pin=f', hilo.pin = "{pin}"' if pin else "")


def choices(text: str, **options: object) -> dict[str, pins.Choice]:
    """All that the program's kernels asked."""
    f = hilo.compile(text, options=Options(profile=True, tuned=False, **options))  # type: ignore[arg-type]
    return {c.knob: c for t in f.profile() for c in t.choices}


PROGRAMS = {
    "packed": dot(100, 300, 500, turned=True),
    "in place": dot(50, 100, 300),
    "walk": dot(200, 260, 400),
    "streamed": dot(5, 2100, 700),
    "long k": dot(7, 9, 9000),
    "few": dot(3, 64, 500, turned=True),
    "one row": dot(1, 500, 300),
    "rows": ROWS,
    "chunks": ALL,
    "convolution": CONV,
    "attention": ATTENTION,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_value_gives_right_results_and_the_same_bits_where_it_is_said(name: str) -> None:
    text = PROGRAMS[name]
    rng = np.random.default_rng(0)
    f = hilo.compile(text, options=Options(tuned=False))
    args = [rng.standard_normal(t.shape).astype(np.float32) for t in f.arg_types]  # type: ignore[attr-defined]
    want = f(*args)
    asked = choices(text)
    assert asked
    for c in asked.values():
        assert c.how == ""
        assert c.value not in c.among
        for value in c.among[:: max(1, len(c.among) // 2)]:
            pin = f"{c.knob}={pins.shown(value)}"
            got = hilo.compile(text, options=Options(pin=pin, tuned=False))(*args)
            for g, w in zip(got, want, strict=True):
                if pins.KNOBS[pins.general(c.knob)].exact:
                    assert g.tobytes() == w.tobytes(), pin
                np.testing.assert_allclose(g, w, rtol=1e-4, atol=1e-4 * np.abs(w).max(), err_msg=pin)


def test_attention_may_be_off() -> None:
    args = [np.random.default_rng(k).standard_normal((2, 600, 16)).astype(np.float32) / 4 for k in range(3)]
    whole, parts = (hilo.compile(ATTENTION, options=Options(pin=p, profile=True)) for p in ("", "attention=off"))
    assert whole(*args)[0].tobytes() == parts(*args)[0].tobytes()
    assert [t.strategy for t in whole.profile()] == ["attention"]
    assert len(parts.profile()) == 3


def test_an_op_goes_before_the_module_and_both_before_what_was_tuned() -> None:
    text = dot(100, 300, 700)
    own = choices(text)["dot_general.tile"]
    one, two, three = (pins.shown(v) for v in own.among[:3])
    assert str(choices(text, pin=f"contraction.tile={one}")["dot_general.tile"]) == f"dot_general.tile={one} (pinned)"
    assert choices(text, pin=f"dot_general.tile={one},")["dot_general.tile"].value == own.among[0]
    assert choices(text, pin=f"convolution.tile={one}")["dot_general.tile"].value == own.value
    with pins.measured(lambda op: {"dot_general.tile": two}):
        assert choices(text)["dot_general.tile"].how == "tuned"
        assert choices(text, pin=f"dot_general.tile={one}")["dot_general.tile"].how == "pinned"
        got = choices(dot(100, 300, 700, pin=f"tile={three}"), pin=f"dot_general.tile={one}")["dot_general.tile"]
        assert pins.shown(got.value) == three


def test_what_was_tuned_and_does_not_fit_is_left_aside() -> None:
    text = dot(100, 300, 700)
    with pins.measured(lambda op: {"dot_general.tile": "9x9", "dot_general.kc": "100000"}):
        assert {c.how for c in choices(text).values()} == {""}


@pytest.mark.parametrize(
    ("pin", "message"),
    [
        ("dot_general.till=8x48", r"pin \(HILO_PIN\): there is no knob 'dot_general.till'; there are contraction.tile"),
        ("tile=8x48", "there is no knob 'tile'"),
        ("dot_general.tile", "'dot_general.tile' gives no value; dot_general.tile takes e.g. 8x48"),
        ("dot_general.kc=", "gives no value"),
        ("dot_general.tile=9x9", r"pin dot_general.tile=9x9: this kernel has no such choice; there are \d+x"),
        ("dot_general.kc=701", r"this kernel has no such choice; .*or a number from \d+ to 700"),
        ("dot_general.units=0", "or a number from 1 to 64"),
        ("dot_general.units=-1", "or a number from 1 to 64"),
        ("attention=maybe", "pin attention=maybe: it is on or off"),
    ],
)
def test_impossible_pins_are_errors_that_list_what_there_is(pin: str, message: str) -> None:
    with pytest.raises(Error, match=message):
        hilo.compile(dot(50, 300, 700), options=Options(pin=pin))


def test_impossible_pins_of_an_op_name_the_op() -> None:
    with pytest.raises(Error, match=r"hilo.pin of stablehlo.dot_general: there is no knob 'dot_general.till'; there"):
        hilo.compile(dot(50, 300, 700, pin="till=3"))
    with pytest.raises(Error, match=r":4:8: hilo.fusion: pin dot_general.tile=1x1: this kernel has no such choice"):
        hilo.compile(dot(50, 300, 700, pin="tile=1x1"))


def test_plain_code_and_c_know_no_pins() -> None:
    text = dot(50, 300, 700, pin="tile=14x32" if hilo_has_wide_vectors() else "tile=6x16")
    hilo.compile(text, options=Options(opt=0))
    assert "entry(" in hilo.compile(text).text("c")


def hilo_has_wide_vectors() -> bool:
    from hilo.backend.target import Target

    return Target.host().registers >= 32


def test_the_content_of_a_kernel_is_what_it_follows_from() -> None:
    def key(text: str) -> str:
        (step,) = hilo.compile(text, options=Options(profile=True, tuned=False)).profile()
        assert step.source is not None
        return pins.content(step.source)

    same = dot(50, 300, 700)
    assert key(same) == key(same) == key(dot(50, 300, 700, pin="units=2"))
    others = {key(dot(51, 300, 700)), key(dot(50, 300, 700, turned=True)), key(same.replace("add %0", "multiply %0"))}
    assert len(others | {key(same)}) == 4


def test_the_page_has_every_knob() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
    for name, k in pins.KNOBS.items():
        assert f"| `{name}` | {k.doc} | {k.values} | {'yes' if k.exact else 'no'} |\n" in page
    assert page.count("\n| `") == len(pins.KNOBS)
