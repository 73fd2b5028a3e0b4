"""What is said of a program's memory: totals, pictures, who is alive at the worst moment, what shares."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np

import hilo

N = 4096
T = f"tensor<{N}xf32>"
SORT = """stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1> }) {dimension = 0 : i64}"""
TEXT = f"""func.func @main(%x: {T} {{tf.aliasing_output = 0 : i32}}) -> ({T}, {T}) {{
    %0 = "stablehlo.sort"(%x) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %p = {SORT} : ({T}) -> {T}
    %1 = stablehlo.reverse %0, dims = [0] : {T}
    %2 = "stablehlo.sort"(%1) ({{ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %p = {SORT} : ({T}) -> {T}
    %3 = stablehlo.add %2, %0 : {T}
    return %3, %2 : {T}, {T} }}"""


def test_the_report_says_who_is_alive_and_what_shares() -> None:
    f = hilo.compile(TEXT)
    report = f.memory()
    assert report.aliases == ((0, 0),)
    assert 0 < report.least <= report.temporaries
    text = f.text("memory")
    assert "result 0 is written over argument 0" in text
    assert "alive at step" in text
    assert f"{report.temporaries:,} bytes" in text
    x = np.random.default_rng(0).standard_normal(N).astype(np.float32)
    np.testing.assert_array_equal(f(x)[1], np.sort(x))


def test_the_picture_is_an_image_with_a_box_for_every_place() -> None:
    f = hilo.compile(TEXT)
    picture = ET.fromstring(f.text("memory.svg"))
    titles = [t.text or "" for t in picture.iter("{http://www.w3.org/2000/svg}title")]
    program = f.memory().program
    assert program is not None
    own = [b for b in program.buffers if b.shares is None and b.first >= 0]
    assert len([t for t in titles if "bytes, steps" in t]) == len(own) > 0


def test_before_they_share_memory_every_temporary_has_its_own() -> None:
    f = hilo.compile(TEXT)
    program = f.memory().program
    assert program is not None
    temporaries = [b for b in program.buffers if b.first >= 0]
    picture = ET.fromstring(f.text("memory_before.svg"))
    boxes = [r for r in picture.iter("{http://www.w3.org/2000/svg}rect") if len(r)]
    assert len(boxes) == len(temporaries)
    spans = sorted((float(r.get("y", "")), float(r.get("height", ""))) for r in boxes)
    for (top, height), (below, _) in pairwise(spans):
        assert top + height <= below + 0.2  # one above the other


def test_programs_without_temporaries_have_a_report() -> None:
    f = hilo.compile(f"func.func @main(%x: {T}) -> {T} {{ %0 = stablehlo.add %x, %x : {T}\n return %0 : {T} }}")
    assert "temporaries               0 bytes" in f.text("memory")
    ET.fromstring(f.text("memory.svg"))


def test_long_programs_and_run_time_sizes_have_pictures() -> None:
    lines = [f'%{i + 1} = stablehlo.reverse %{i}, dims = [0] : {T}' for i in range(300)]
    body = "\n".join(lines)
    f = hilo.compile(f"func.func @main(%0: {T}) -> {T} {{ {body}\n return %300 : {T} }}",
                     options=hilo.Options(skip=("simplify",), fuse=False))  # fmt: skip
    assert max(map(len, f.text("memory").splitlines())) < 140
    ET.fromstring(f.text("memory.svg"))
    g = hilo.compile("""func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
        %0 = stablehlo.reverse %x, dims = [0] : tensor<?xf32>
        %1 = stablehlo.cosine %0 : tensor<?xf32>
        %2 = stablehlo.concatenate %1, %x, %1, dim = 0 : (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
        return %2 : tensor<?xf32> }""")
    assert "temporaries" in g.text("memory")
    ET.fromstring(g.text("memory.svg"))
