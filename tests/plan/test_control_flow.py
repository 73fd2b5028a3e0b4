"""Loops and branches in compiled programs: pointers that swap, values carried twice, captures, nesting, updates."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import hilo

I, V = "tensor<i32>", "tensor<4xf32>"


def loop(carried: str, types: list[str], body: str, results: str, limit: int = 3, captures: str = "") -> str:
    """A loop that runs `limit` times; %i counts, `carried` is `%a = %x, ...` with one type each."""
    names = ", ".join(["%i = %zero", carried]) if carried else "%i = %zero"
    all_types = ", ".join(["tensor<i32>", *types])
    return f"""
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %limit = stablehlo.constant dense<{limit}> : tensor<i32>
    %r:{1 + len(types)} = stablehlo.while({names}) : {all_types}
    cond {{
      %p = stablehlo.compare LT, %i, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      %next = stablehlo.add %i, %one : tensor<i32>
      {body}
      stablehlo.return %next{", " if results else ""}{results} : {all_types}
    }}
    """


def vectors(n: int, returns: str, text: str) -> str:
    params = ", ".join(f"%x{k}: {V}" for k in range(n))
    count = returns.count("%")
    types = ", ".join([V] * count)
    return f"func.func @main({params}) -> ({types}) {{{text}\nreturn {returns} : {types}\n}}"


PROGRAMS = {
    "swap": vectors(2, "%r#1, %r#2", loop("%a = %x0, %b = %x1", [V, V], "", "%b, %a")),
    "rotate": vectors(3, "%r#1, %r#2, %r#3", loop("%a = %x0, %b = %x1, %c = %x2", [V] * 3, "", "%b, %c, %a", 4)),
    "swap and change": vectors(
        2, "%r#1, %r#2", loop("%a = %x0, %b = %x1", [V, V], f"%s = stablehlo.add %a, %b : {V}", "%b, %s", 5)
    ),
    "carried twice": vectors(2, "%r#1, %r#2", loop("%a = %x0, %b = %x1", [V, V], "", "%b, %b")),
    "carried twice, changed": vectors(
        2, "%r#1, %r#2", loop("%a = %x0, %b = %x1", [V, V], f"%s = stablehlo.multiply %a, %b : {V}", "%s, %s", 4)
    ),
    "unchanged": vectors(
        2, "%r#1, %r#2", loop("%a = %x0, %b = %x1", [V, V], f"%s = stablehlo.add %a, %b : {V}", "%s, %b")
    ),
    "captured as next": vectors(2, "%r#1", loop("%a = %x0", [V], "", "%x1")),
    "same start": vectors(
        1, "%r#1, %r#2", loop("%a = %x0, %b = %x0", [V, V], f"%s = stablehlo.add %a, %b : {V}", "%s, %a")
    ),
    "no turn": vectors(1, "%r#1", loop("%a = %x0", [V], f"%s = stablehlo.add %a, %a : {V}", "%s", limit=0)),
    "read after the next value is made": vectors(
        1,
        "%r#1, %r#2",
        loop(
            "%a = %x0, %b = %x0",
            [V, V],
            f"%s = stablehlo.add %a, %a : {V}\n%t = stablehlo.multiply %a, %s : {V}",
            "%s, %t",
        ),
    ),
    "reversed in place": vectors(
        1, "%r#1", loop("%a = %x0", [V], f"%s = stablehlo.reverse %a, dims = [0] : {V}", "%s")
    ),
    "row from rolled row": vectors(
        1,
        "%r#1",
        loop(
            "%a = %x0",
            [V],
            f"""%h = stablehlo.slice %a [0:3] : ({V}) -> tensor<3xf32>
      %t = stablehlo.slice %a [3:4] : ({V}) -> tensor<1xf32>
      %s = stablehlo.concatenate %t, %h, dim = 0 : (tensor<1xf32>, tensor<3xf32>) -> {V}""",
            "%s",
        ),
    ),
    "update in place": vectors(
        1,
        "%r#1",
        loop(
            "%a = %x0",
            [V],
            f"""%u = stablehlo.dynamic_slice %a, %i, sizes = [1] : ({V}, {I}) -> tensor<1xf32>
      %d = stablehlo.add %u, %u : tensor<1xf32>
      %s = stablehlo.dynamic_update_slice %a, %d, %next : ({V}, tensor<1xf32>, {I}) -> {V}""",
            "%s",
        ),
    ),
    "swap, then a branch": vectors(
        2,
        "%q",
        loop("%a = %x0, %b = %x1", [V, V], "", "%b, %a")
        + f"""%p = stablehlo.compare GT, %r#0, %one, SIGNED : ({I}, {I}) -> tensor<i1>
    %q = "stablehlo.if"(%p) ({{
      stablehlo.return %r#1 : {V}
    }}, {{
      %n = stablehlo.negate %r#2 : {V}
      stablehlo.return %n : {V}
    }}) : (tensor<i1>) -> {V}""",
    ),
    "results are arguments": f"func.func @main(%x0: {V}) -> ({V}, {V}) {{ return %x0, %x0 : {V}, {V} }}",
    "a result twice": vectors(1, "%s, %s", f"%s = stablehlo.add %x0, %x0 : {V}"),
    "a result that is read": vectors(
        1, "%s, %t", f"%s = stablehlo.add %x0, %x0 : {V}\n%t = stablehlo.multiply %s, %s : {V}"
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_loops(name: str) -> None:
    rng = np.random.default_rng(0)
    module = hilo.parse(PROGRAMS[name])
    args = [rng.standard_normal(4).astype(np.float32) for _ in module["main"].params]
    kept = [a.copy() for a in args]
    want = hilo.interpret(module, *args)
    f = hilo.compile(module)
    for _ in range(2):
        got = f(*args)
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)
    for a, k in zip(args, kept, strict=True):
        np.testing.assert_array_equal(a, k)


def test_nested_loops_and_case() -> None:
    inner = loop("%b = %a", [V], f"%s = stablehlo.add %b, %x0 : {V}", "%s", limit=2)
    inner = inner.replace("%i", "%j").replace("%r:", "%w:").replace("%zero =", "%zero2 =").replace("%one =", "%one2 =")
    inner = (
        inner.replace("%limit", "%limit2")
        .replace("= %zero,", "= %zero2,")
        .replace("%next", "%next2")
        .replace("%one :", "%one2 :")
    )
    body = f"""{inner}
      %k = "stablehlo.case"(%i) ({{
        stablehlo.return %w#1 : {V}
      }}, {{
        %n = stablehlo.negate %w#1 : {V}
        stablehlo.return %n : {V}
      }}, {{
        %m = stablehlo.multiply %w#1, %a : {V}
        stablehlo.return %m : {V}
      }}) : ({I}) -> {V}"""
    text = vectors(1, "%r#1", loop("%a = %x0", [V], body, "%k", limit=5))
    module = hilo.parse(text)
    x = np.arange(4, dtype=np.float32) - 1.5
    np.testing.assert_array_equal(hilo.compile(module)(x)[0], hilo.interpret(module, x)[0])


def test_long_programs_are_cut_and_pointers_survive() -> None:
    chain = "\n".join(
        f"%c{k + 1} = stablehlo.dynamic_update_slice %c{k}, %u, %z : ({V}, tensor<1xf32>, {I}) -> {V}" if k % 2 else
        f"%c{k + 1} = stablehlo.reverse %c{k}, dims = [0] : {V}"
        for k in range(400)
    )  # fmt: skip
    text = vectors(
        2,
        "%c400, %r#1",
        f"%z = stablehlo.constant dense<1> : {I}\n%u = stablehlo.slice %x0 [2:3] : ({V}) -> tensor<1xf32>\n"
        f"%c0 = stablehlo.add %x0, %x1 : {V}\n"
        + loop("%a = %x0, %b = %x1", [V, V], "", "%b, %a")
        + chain,
    )
    module = hilo.parse(text)
    x, y = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    f = hilo.compile(module, options=hilo.Options(fuse=False))
    for g, w in zip(f(x, y), hilo.interpret(module, x, y), strict=True):
        np.testing.assert_array_equal(g, w)


def test_values_that_change_places_an_unknown_number_of_times() -> None:
    """No turn leaves them, one swaps them: the results' own places must not be where they start."""
    text = f"""func.func @main(%p: tensor<i1>, %x: {V}, %y: {V}) -> ({V}, {V}) {{
      %no = stablehlo.constant dense<false> : tensor<i1>
      %r:3 = stablehlo.while(%more = %p, %a = %x, %b = %y) : tensor<i1>, {V}, {V}
      cond {{ stablehlo.return %more : tensor<i1> }} do {{ stablehlo.return %no, %b, %a : tensor<i1>, {V}, {V} }}
      return %r#1, %r#2 : {V}, {V}
    }}"""
    x, y = np.float32([1, 2, 3, 4]), np.float32([5, 6, 7, 8])
    f = hilo.compile(text)
    for p, want in ((False, (x, y)), (True, (y, x))):
        for got, right in zip(f(np.array(p), x, y), want, strict=True):
            np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("options", [{}, {"fuse": False}, {"skip": ("simplify",)}])
def test_what_an_inner_loop_gives_is_carried_by_the_outer_one(options: dict[str, Any]) -> None:
    f = hilo.compile(
        """func.func @main(%n: tensor<i32>) -> tensor<i32> {
          %zero = stablehlo.constant dense<0> : tensor<i32>
          %one = stablehlo.constant dense<1> : tensor<i32>
          %r:2 = stablehlo.while(%i = %zero, %x = %zero) : tensor<i32>, tensor<i32>
          cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                 stablehlo.return %c : tensor<i1> }
          do { %j = stablehlo.add %i, %one : tensor<i32>
               %s = stablehlo.while(%k = %zero) : tensor<i32>
               cond { %c = stablehlo.compare LT, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
                      stablehlo.return %c : tensor<i1> }
               do { %l = stablehlo.add %k, %one : tensor<i32>
                    stablehlo.return %l : tensor<i32> }
               stablehlo.return %j, %s : tensor<i32>, tensor<i32> }
          return %r#1 : tensor<i32>
        }""",
        options=hilo.Options(**options),
    )
    assert [int(f(np.int32(n))[0]) for n in range(5)] == list(range(5))


ENDLESS = """
import os, threading, time
import numpy as np
import hilo

f = hilo.compile('''func.func @main(%n: tensor<i32>) -> tensor<i32> {
  %r = stablehlo.while(%i = %n) : tensor<i32>
  cond { %c = stablehlo.compare NE, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %d = stablehlo.not %c : tensor<i1>
    stablehlo.return %d : tensor<i1> }
  do { %j = stablehlo.add %i, %i : tensor<i32>
    stablehlo.return %j : tensor<i32> }
  return %r : tensor<i32> }''')
entered = threading.Event()
threading.Thread(target=lambda: (entered.set(), f(np.int32(1))), daemon=True).start()
entered.wait()
time.sleep(0.2)
print("other threads run", flush=True)
os._exit(0)
"""


def test_a_cheap_loop_that_never_ends_stops_no_other_thread() -> None:
    path = os.pathsep.join(sys.path)
    done = subprocess.run([sys.executable, "-c", ENDLESS], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": path})  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "other threads run\n"), done.stderr
