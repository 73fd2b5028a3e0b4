"""The table of pretty forms: from an op's name to the function that reads it, and to the one that writes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Final

from hilo.formats.mlir_text import forms
from hilo.formats.mlir_text.names import CHECKS, MHLO_FUNCTIONS
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.ir.op import Op
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import Printer

    Parse = Callable[[Parser, str], Syntax]
    Print = Callable[[Printer, Op], str | None]


# Files of forms that not every program has.
checks, convolution, generic, shardy, special, structured = (
    Later(f"hilo.formats.mlir_text.{file}")
    for file in ("checks", "convolution", "generic", "shardy", "special", "structured")
)
_MARKS: Final = ("sharding_constraint", "reshard", "data_flow_edge", "propagation_barrier", "sharding_group")
_COMPUTATIONS: Final = ("manual_computation", "named_computation")
_SPECIAL: Final[dict[str, tuple[Parse, Print]]] = {
    "compare": (special.parse_compare, special.print_compare),
    "composite": (special.parse_composite, special.print_composite),
    "constant": (special.parse_constant, special.print_constant),
    "convolution": (convolution.parse_convolution, convolution.print_convolution),
    "custom_call": (special.parse_custom_call, special.print_custom_call),
    "dot_general": (special.parse_dot_general, special.print_dot_general),
    "get_tuple_element": (special.parse_get_tuple_element, special.print_get_tuple_element),
    "optimization_barrier": (special.parse_optimization_barrier, special.print_optimization_barrier),
    "reduce": (structured.parse_reduce, structured.print_reduce),
    "reduce_precision": (forms.exponent_mantissa, forms.print_exponent_mantissa),
    "slice": (special.parse_slice, special.print_slice),
    "while": (structured.parse_while, structured.print_while),
}
PRETTY: Final[dict[str, Parse]] = {
    **{f"{d}.{name}": f.parse for d in ("stablehlo", "mhlo") for name, f in forms.STABLEHLO_FORMS.items()},
    **{f"{d}.{name}": parse for d in ("stablehlo", "mhlo") for name, (parse, _) in _SPECIAL.items()},
    **{f"chlo.{name}": f.parse for name, f in forms.CHLO_FORMS.items()},
    **{f"interpreter.{name}": f.parse for name, f in forms.INTERPRETER_FORMS.items()},
    **{f"sdy.{name}": shardy.parse_mark for name in _MARKS},
    **{f"sdy.{name}": shardy.parse_computation for name in _COMPUTATIONS},
    **{f"mhlo.{name}": forms.UNARY_FORM.parse for name in MHLO_FUNCTIONS},
    **{f"mhlo.{name}": f.parse for name, f in forms.MHLO_FORMS.items()},
    "mhlo.topk": special.parse_topk,
    "arith.constant": special.parse_arith_constant,
    "chlo.constant": special.parse_constant,
    "chlo.scan": structured.parse_scan,
    "chlo.top_k": special.parse_top_k,
    "func.call": special.parse_call,
    **dict.fromkeys(CHECKS, checks.parse_check),
}


@cache
def printers() -> dict[str, Print]:
    """By an op's name the function that writes it; most programs are never written."""
    return {
        **{f"stablehlo.{name}": f.print for name, f in forms.STABLEHLO_FORMS.items()},
        **{f"stablehlo.{name}": write for name, (_, write) in _SPECIAL.items()},
        **{f"chlo.{name}": f.print for name, f in forms.CHLO_FORMS.items()},
        **{f"interpreter.{name}": f.print for name, f in forms.INTERPRETER_FORMS.items()},
        **{f"sdy.{name}": shardy.print_mark for name in _MARKS},
        **{f"sdy.{name}": shardy.print_computation for name in _COMPUTATIONS},
        **{f"mhlo.{name}": f.print for name, f in forms.MHLO_FORMS.items()},
        "mhlo.topk": special.print_topk,
        "chlo.constant": special.print_constant,
        "chlo.scan": structured.print_scan,
        "chlo.top_k": special.print_top_k,
        "func.call": special.print_call,
    }


def read_generic(p: Parser, name: str) -> Syntax:
    """Any op in the generic form."""
    return checks.parse_generic_check(p, name) if name in CHECKS else generic.parse_generic(p, name)
