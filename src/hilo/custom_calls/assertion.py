"""`shape_assertion`: what exporters of programs with run-time sizes check of them. Imports ir.

Where sizes are known only when a program is called, passes/shapes.py makes guards of these calls; elsewhere they run.
"""

from __future__ import annotations

import numpy as np

from hilo.custom_calls.registry import register
from hilo.custom_calls.site import CallSite
from hilo.errors import Error


@register("shape_assertion", builtin=True)
def shape_assertion(holds: np.ndarray, *values: np.ndarray, call: CallSite) -> None:
    """Fails with `error_message`, in which {0}, {1} ... stand for `values`, unless `holds` is true."""
    if holds.all():
        return
    text = str(call.more.get("error_message") or call.more.get(".error_message") or "a shape assertion does not hold")
    for i, v in enumerate(values):
        text = text.replace(f"{{{i}}}", str(v))
    raise Error(text)
