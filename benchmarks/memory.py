"""`python -m benchmarks memory`: bytes of temporaries of one call, hilo's plan beside XLA's buffer assignment.

What XLA's library calls allocate while they run (sort, fft, threads' packing) is in no report of XLA's; such rows are
marked, since hilo's figure holds all that a call needs. The table says also how low the order of the steps could go.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

from dataclasses import dataclass

import click

from benchmarks.modules import Case, cases

#: Rows whose work XLA gives to a library that allocates its own scratch.
HIDDEN = {"sort": "the library's sort allocates its own", "fft": "the library's FFT allocates its own"}


@dataclass(frozen=True)
class Memory:
    """Bytes of one call: hilo's arena, the least that the order of its steps needs, and XLA's temporaries."""

    name: str
    hilo: int
    least: int
    xla: int | None

    @property
    def hidden(self) -> str:
        """Why XLA's figure is not all, or nothing."""
        return next((why for kind, why in HIDDEN.items() if self.name.startswith(kind)), "")

    @property
    def is_more(self) -> bool:
        """Whether hilo takes more than XLA says it does, where XLA's figure is all."""
        return self.xla is not None and self.hilo > self.xla and not self.hidden

    def row(self) -> str:
        xla = "" if self.xla is None else f"{self.xla:,}"
        note = "more" if self.is_more else self.hidden
        return f"| {self.name} | {self.hilo:,} | {self.least:,} | {xla} | {note} |"


def xla_temporaries(case: Case) -> int:
    """Bytes of temporaries that XLA's CPU compiler reports for a module's text."""
    import jax
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        code = mlir.module_to_bytecode(ir.Module.parse(case.text))
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    executable = device.client.compile_and_load(code, xla_client.DeviceList((device,)), options)
    return executable.get_compiled_memory_stats().temp_size_in_bytes


def measure(case: Case, xla: bool) -> Memory:
    """The figures of one module; nothing is run."""
    import hilo
    from hilo.backend.target import Target
    from hilo.options import Options
    from hilo.passes.arguments import given_away
    from hilo.pipeline import optimize, plan
    from hilo.plan.report import memory_report

    module = hilo.parse(case.text)
    donated = given_away(module["main"])
    function = optimize(module, "main", Options.from_env(), donated=donated)
    report = memory_report(plan(function, Target.host(), donated))
    return Memory(case.name, report.temporaries, report.least, xla_temporaries(case) if xla else None)


@click.command("memory")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: all]")
@click.option("--xla/--no-xla", default=True, show_default=True)
def memory(names: str, xla: bool) -> None:
    """Bytes of temporaries, beside XLA's."""
    print("| module | hilo | least of this order | XLA | |\n|---|---|---|---|---|")
    more = []
    for case in cases(filter(None, names.split(","))):
        m = measure(case, xla)
        print(m.row(), flush=True)
        more += [m.name] if m.is_more else []
    print(f"\nmore than XLA: {', '.join(more) or 'none'}")
