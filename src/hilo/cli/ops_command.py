"""`hilo ops`: the ops that programs may use, from the registry."""

from __future__ import annotations

import inspect
from difflib import get_close_matches

import click

from hilo.cli.common import write_text
from hilo.errors import Error


@click.command("ops")
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def command(name: str | None, output: str | None) -> None:
    """List the ops that programs may use, or show all there is to know of one.

    \b
    hilo ops
    hilo ops dot_general
    hilo ops chlo.erf
    """
    from hilo.cli.op_pages import page
    from hilo.testing.pieces import all_ops

    ops = {d.full_name: d for d in all_ops()}
    if name is None:
        lines = (f"{n:40}{inspect.cleandoc(d.doc).splitlines()[0]}" for n, d in ops.items() if d.dialect != "hilo")
        write_text("\n".join(lines), output)
        return
    full_names = (name, *(f"{dialect}.{name}" for dialect in ("stablehlo", "chlo", "func", "hilo")))
    found = next((ops[n] for n in full_names if n in ops), None)
    if found is None:
        near = get_close_matches(name, [*ops, *(n.split(".")[1] for n in ops)], 3)
        raise Error(f"no op {name!r}" + (f"; there is {', '.join(near)}" if near else "; `hilo ops` lists them"))
    write_text(page(found), output)
