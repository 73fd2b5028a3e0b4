"""Functions of CHLO in portable artifacts: programs of StableHLO that are as precise as the functions are here."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from support import edges

import hilo
from hilo.formats import bytecode
from hilo.formats.bytecode.chlo import _function, without_chlo
from hilo.formats.mlir_text import parse
from hilo.ir.dtypes import dtype, f64, from_numpy
from hilo.ir.interpret import evaluate, run
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType
from hilo.testing import compare

UNARY = ["erf", "erfc", "erf_inv", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "bessel_i1e"]
GAMMA = ("lgamma", "digamma")  # whose error near zeros at negative x is an absolute one
COMPLEX = ["sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh"]
REFERENCE = {"erf": mpmath.erf, "erfc": mpmath.erfc, "asin": mpmath.asin, "acosh": mpmath.acosh, "sinh": mpmath.sinh,
             "atanh": mpmath.atanh, "lgamma": mpmath.loggamma, "digamma": mpmath.digamma,
             "erf_inv": mpmath.erfinv}  # fmt: skip


def values(name: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    d = dtype(name)
    x = rng.standard_normal(300) * np.exp(rng.standard_normal(300) * 3)
    if d.is_complex:
        x = x + 1j * rng.standard_normal(300) * np.exp(rng.standard_normal(300) * 2)
    with np.errstate(all="ignore"):
        return np.concatenate([x.astype(d.np), np.resize(np.asarray(edges(d, seed)), 200)])


def both(name: str, *xs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(what the program of StableHLO gives, what the op means)"""
    t = [TensorType(from_numpy(x.dtype), x.shape) for x in xs]
    o = lookup(f"chlo.{name}")(*map(parameter, range(len(xs)), t))
    f = _function(o, "f")
    assert all(x.kind.dialect in ("stablehlo", "hilo") for x in f.ops)
    return run(f, xs)[0], evaluate(o, xs)


@pytest.mark.parametrize("d", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("name", [*UNARY, *GAMMA, "zeta", "polygamma", "next_after"])
def test_real_functions(name: str, d: str) -> None:
    xs = [values(d, 1)]
    if name in ("zeta", "polygamma", "next_after"):
        xs = [np.abs(xs[0]) if name != "polygamma" else np.resize(np.arange(9), xs[0].shape).astype(xs[0].dtype),
              np.abs(values(d, 2)) if name != "next_after" else values(d, 2)]  # fmt: skip
    elif name in GAMMA:
        xs = [np.abs(xs[0])]
    got, want = both(name, *xs)
    ok = compare.close(got, want, 4)
    assert ok.all(), compare.difference(got, want, ok)


@pytest.mark.parametrize("d", ["c64", "c128"])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions(name: str, d: str) -> None:
    got, want = both(name, values(d, 3))
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want.real), np.abs(want.imag))
        unit = np.where(np.isfinite(size), np.spacing(size), 0.0)
    ok = compare.close(got, want, 4, 4 * unit)
    assert ok.all(), compare.difference(got, want, ok)


@pytest.mark.parametrize("name", REFERENCE)
def test_against_more_digits(name: str) -> None:
    rng = np.random.default_rng(5)
    low, high = {"acosh": (1, 50), "erfc": (-3, 20), "sinh": (-20, 20), "lgamma": (0.01, 60), "digamma": (2, 60)}.get(
        name, (-1, 1)
    )
    x = rng.uniform(low, high, 60)
    got, _ = both(name, x)
    with mpmath.workdps(50):
        want = np.array([float(mpmath.re(REFERENCE[name](mpmath.mpf(float(v))))) for v in x])
    assert compare.ulp_distance(got, want).max() <= 3


def program(*names: str) -> Module:
    t = TensorType(f64, (3,))
    x = parameter(0, t)
    ops: list[Op] = [x]
    for name in names:
        ops.append(lookup(f"chlo.{name}")(ops[-1]))
    return Module({"main": Function("main", [x], ops, [ops[-1]])})


def test_one_function_for_each_type_as_a_composite() -> None:
    m = program("erf", "erf", "sinh", "square")
    new = without_chlo(m)
    assert sorted(new.functions) == ["chlo.erf.impl", "chlo.sinh.impl", "main"]
    assert [o.kind.name for o in new["main"].ops[1:]] == ["composite", "composite", "composite", "multiply"]
    x = np.array([0.1, -2.0, 0.5])
    back = bytecode.parse(bytecode.write(m))
    np.testing.assert_allclose(hilo.interpret(back, x)[0], hilo.interpret(m, x)[0], rtol=1e-14)


def test_versions_without_composites_have_calls() -> None:
    m = program("lgamma")
    new = without_chlo(m, (0, 18, 0))
    assert new["main"].ops[1].kind.full_name == "func.call"
    assert new["chlo.lgamma.impl"].visibility == "private"
    bytecode.write(m, "0.18.0")


def test_composites_of_chlo_are_compiled_as_its_ops() -> None:
    """They come back as what they were: shorter, and as precise."""
    from hilo.passes.inline import inline

    m = program("erf", "acosh")
    back = bytecode.parse(bytecode.write(m))
    assert [o.kind.full_name for o in inline(back).ops[1:]] == ["chlo.erf", "chlo.acosh"]
    other = parse("""func.func @f(%x: tensor<3xf64>) -> tensor<3xf64> {
      %0 = stablehlo.negate %x : tensor<3xf64>
      return %0 : tensor<3xf64>
    }
    func.func @main(%x: tensor<3xf64>) -> tensor<3xf64> {
      %0 = stablehlo.composite "chlo.mine" %x {decomposition = @f} : (tensor<3xf64>) -> tensor<3xf64>
      return %0 : tensor<3xf64>
    }""")
    assert inline(other).ops[1].kind.name == "negate"


@pytest.mark.parametrize("types", ["tensor<?xf32> -> tensor<?xf32>",
                                   "tensor<2xf32> -> tensor<?xf32, #stablehlo.bounds<2>>"])  # fmt: skip
def test_a_size_that_is_not_known_is_refused(types: str) -> None:
    operand, result = types.split(" -> ")
    text = f"func.func @main(%x: {operand}) -> {result} {{\n  %0 = chlo.erf %x : {types}\n  return %0 : {result}\n}}"
    with pytest.raises(hilo.Error, match=r"2:8: chlo.erf: this op is not part of StableHLO"):
        bytecode.write(parse(text))
