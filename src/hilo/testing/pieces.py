"""What an op is made of, and what it lacks: behind the registry's test and the ops' pages. Imports ops, kernels,
plan."""

from __future__ import annotations

from typing import Final

from hilo.ir.op import OpDef
from hilo.ir.registry import REGISTRY
from hilo.ops.weight import WORK

# Ops that never reach a kernel, or that no one lowers alone, and what becomes of them.
OTHERWISE: Final[dict[str, str]] = {
    "hilo.parameter": "an argument's buffer",
    "func.call": "inlined (passes/inline.py)",
    "stablehlo.async_done": "the value that its future holds (passes/futures.py)",
    "stablehlo.async_start": "inlined as the operation in its body (passes/futures.py)",
    "sdy.manual_computation": "inlined (passes/inline.py)",
    "sdy.named_computation": "inlined (passes/inline.py)",
    "stablehlo.composite": "inlined as its decomposition (passes/inline.py)",
    "stablehlo.uniform_dequantize": "plain ops on integers and floats (passes/quantized.py)",
    "stablehlo.uniform_quantize": "plain ops on integers and floats (passes/quantized.py)",
    "stablehlo.custom_call": "a step of the plan that calls its target (plan/build.py); markers vanish",
}
# Made and used by the compiler alone, so that programs, and what shards them, never hold one.
INTERNAL: Final = ("hilo.parameter", "hilo.get", "hilo.fusion")
# Ops whose results are sums, or other combinations, of many elements.
COMBINING: Final = ("reduce", "scatter", "dot", "dot_general", "convolution", "reduce_window",
                    "select_and_scatter", "dynamic_conv", "ragged_dot")  # fmt: skip


def all_ops() -> list[OpDef]:
    """Every op of the registry, by name; with those that the compiler makes."""
    return [REGISTRY[name] for name in sorted(REGISTRY)]


def lowerings(d: OpDef) -> list[str]:
    """The ways in which this op becomes native code, in words; the plan's come first."""
    from hilo.kernels import STRATEGIES
    from hilo.plan.build import HANDLERS

    ways = []
    if d.full_name in HANDLERS:
        ways.append("the plan, without a kernel of its own (plan/build.py)")
    if d.full_name in STRATEGIES:
        module, function = STRATEGIES[d.full_name].removeprefix("hilo.").split(":")
        ways.append(f"the kernel strategy `{function}` of {module.replace('.', '/')}.py")
    if d.scalar is not None:
        ways.append("element by element (`scalar`), in fused loops")
    if d.element is not None:
        ways.append("by its indices (`element`), in fused loops")
    if d.expand is not None:
        ways.append("expanded into simpler ops (`expand`)")
    if d.full_name in OTHERWISE:
        ways.append(OTHERWISE[d.full_name])
    return ways


def missing(d: OpDef) -> list[str]:
    """The pieces that `d` lacks, each with what is wanted; empty for a complete op."""
    internal = d.full_name in INTERNAL
    known_to_all = d.full_name in ("hilo.parameter", "hilo.get")
    wants_cost = d.name in (*COMBINING, "fusion") or (d.scalar is not None and WORK.get(d.name, 0.0) > 1.0)
    lacks = {
        "infer": d.infer is None,
        "evaluate": d.evaluate is None and not known_to_all,
        "lowering: scalar, element, expand, a kernel strategy or a handler of the plan": not lowerings(d),
        "sharding": d.sharding is None and not internal,
        "cost: the default of one operation an element is wrong for it": d.cost is None and wants_cost,
        "examples": not d.examples and not known_to_all,
        "docstring": not d.doc.strip(),
        "source: `Spec: name.` in the docstring": d.dialect == "stablehlo" and bool(d.doc) and "Spec:" not in d.doc,
    }  # fmt: skip
    return [piece for piece, lacking in lacks.items() if lacking]
