"""The command `hilo`. Each command is one file, loaded when it is used; they use the public face and, to look inside,
pipeline. A user's mistake ends in one line on stderr and exit status 2."""

from __future__ import annotations

import errno
import importlib
import sys
import warnings
from typing import Any, NoReturn

import click

from hilo import __version__
from hilo.errors import Error

COMMANDS = {
    "run": "Run a program on arrays, natively or in the interpreter.",
    "compile": "Compile a program; show its IR, LLVM IR or assembly at any phase.",
    "opt": "Optimize a program and print it.",
    "reduce": "Shrink a program that fails; name the pass that makes it fail.",
    "fuzz": "Change valid programs; look for crashes, hangs and wrong errors.",
    "translate": "Read a program and write it in another form.",
    "ops": "List the ops of programs, or show all there is to know of one.",
    "conformance": "Run the conformance corpus on interpreter and native code.",
    "demo": "Train a small model on real data.",
    "bench": "Time a program's calls, its compilation and its kernels.",
    "tune": "Search for better choices of kernels on this machine; keep them.",
}


class _Group(click.Group):
    """Loads a command's module when the command is used, so that `hilo --help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"hilo.cli.{cmd_name}_command").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as e:
            near = [c for c in COMMANDS if args and c.startswith(args[0][:2])]
            if near:
                raise click.UsageError(f"{e.message} Did you mean {' or '.join(near)}?", ctx) from None
            raise

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                warnings.simplefilter("default", RuntimeWarning)
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except Error as e:
            _fail(str(e))
        except click.UsageError as e:
            where = e.ctx.command_path if e.ctx is not None else "hilo"
            _fail(f"{e.format_message()} (see {where} --help)")
        except click.ClickException as e:
            _fail(e.format_message())
        except OSError as e:  # click itself deals with a pipe that nobody reads
            if e.errno == errno.EPIPE:
                raise
            _fail(f"{e.filename or 'input or output'}: {e.strerror or e}")
        except MemoryError:
            _fail("there is not enough memory")


def _fail(message: str) -> NoReturn:
    """One line, whatever the message holds, and exit status 2."""
    click.echo("hilo: " + " ".join(message.splitlines()), err=True)
    sys.exit(2)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"hilo: {message}", err=True)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hilo")
def main() -> None:
    """hilo: an open ML compiler. StableHLO in, fast native code out.

    \b
    hilo demo mnist                      train a model through compiled StableHLO
    hilo run model.mlir --random 0       run a program on random arrays
    hilo compile model.mlir --emit llvm  look inside
    """
