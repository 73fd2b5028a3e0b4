"""Every option of the compiler, with its environment variable, in one place. Imports only errors and record.

`Options()` are the defaults; `Options.from_env()` are the defaults changed by `HILO_*` variables; keyword arguments
win over both.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hilo.errors import Error
from hilo.record import Field, record, replace

#: Names for `fast_math`, and what each permits. Everything else stays strict IEEE.
FAST_MATH: Final[dict[str, str]] = {
    "bf16": "products of bf16 are summed in f32 by the machine's own instructions: subnormals count as 0",
    "finite": "inputs and results are taken to be finite: x * 0 is 0, x - x is 0",
    "functions": "inverse functions cancel: log(exp(x)) is x; sqrt(x) * sqrt(x) is x",
    "gather": "a product with a one-hot matrix becomes a gather",
    "online": "softmax of very long rows between products is normalized as its blocks come, not by the row's greatest",
    "reassociate": "sums and products of the program may be regrouped",
    "reciprocal": "x / c becomes x * (1 / c) for any constant c",
}


class Option(Field):
    """An option's default, its environment variable, and what it does."""

    __slots__ = ("doc", "variable")

    def __init__(self, default: Any, variable: str, doc: str) -> None:
        super().__init__(default, None, True, True)
        self.variable = variable
        self.doc = doc


def _option(default: Any, variable: str, doc: str) -> Any:
    return Option(default, variable, doc)


def options() -> dict[str, Option]:
    """All options by name, in order."""
    return Options.__record_fields__  # type: ignore[attr-defined]


@record(frozen=True)
class Options:
    """What `hilo.compile` may be told. Immutable and hashable; wrong values give one clear `Error`."""

    # ---- meaning of the program
    fast_math: frozenset[str] = _option(
        frozenset(),
        "HILO_FAST_MATH",
        "relaxations of strict IEEE, by name (see FAST_MATH); in the variable: names, or `all`",
    )
    # ---- machine
    target: str = _option(
        "host",
        "HILO_TARGET",
        "what to compile for: host, x86-avx512-vnni, x86-avx512, x86-avx2, x86-sse2, arm-neon, ... or scalar",
    )
    threads: int | None = _option(None, "HILO_THREADS", "threads to run with; unset: as many as the process may use")
    # ---- effort
    opt: int = _option(
        1, "HILO_OPT", "0 compiles quickly for slow code, as it stands: no rewriting, no fusion, no vectors; or 1"
    )
    codegen: str = _option(
        "auto",
        "HILO_CODEGEN",
        "who makes machine code: auto (hilo itself for x86-64 with AVX-512 whatever it can, LLVM the rest), or llvm",
    )
    pin: str = _option(
        "", "HILO_PIN", "choices of kernels, e.g. `dot_general.tile=8x48, rows.unroll=2` (docs/tuning.md)"
    )
    tuned: bool = _option(True, "HILO_TUNED", "0 leaves aside what `hilo tune` found on this machine")
    fold_elements: int = _option(65536, "HILO_FOLD_ELEMENTS", "the most elements that a folded constant may have")
    fuse: bool = _option(True, "HILO_FUSE", "0 keeps every op of its own: slow, for looking at values between ops")
    fusion_ops: int = _option(512, "HILO_FUSION_OPS", "the most ops in one fusion")
    fusion_duplicates: int = _option(
        32, "HILO_FUSION_DUPLICATES", "the most ops that one fusion may compute again to avoid a buffer"
    )
    pack_once: bool = _option(
        True, "HILO_PACK_ONCE", "0 packs weights in each call of a JAX program, rather than keeping them packed"
    )
    memory_limit: int | None = _option(
        None,
        "HILO_MEMORY_LIMIT",
        "the most bytes of temporaries; values are computed again late instead of being kept, with the same bits; "
        "unset: none",
    )
    # ---- cache
    cache: bool = _option(True, "HILO_CACHE", "0 neither reads nor writes the cache of compiled programs")
    cache_programs: bool = _option(
        True, "HILO_CACHE_PROGRAMS", "0 keeps no whole programs in the cache, only the code of their kernels"
    )
    cache_dir: str = _option("", "HILO_CACHE_DIR", "where the cache lies; unset: hilo in the user's cache directory")
    cache_explain: bool = _option(False, "HILO_CACHE_EXPLAIN", "1 says on stderr why the cache missed")
    # ---- looking inside
    verify: bool = _option(
        False, "HILO_VERIFY", "1 checks the program after each pass that changed it, names it, and checks the plan"
    )
    dump: str = _option("", "HILO_DUMP", "a directory: every state of the program is written there")
    print: tuple[str, ...] = _option((), "HILO_PRINT", "passes whose results are printed on stderr (names, or `all`)")
    stop: str = _option(
        "",
        "HILO_STOP",
        "after this pass, e.g. `cse`, or `cse#2` for its second run, only what native code needs still runs",
    )
    skip: tuple[str, ...] = _option(
        (), "HILO_SKIP", "passes to leave out, e.g. `fuse` or `simplify#2`; not inline, shapes, legalize, schedule"
    )
    time: bool = _option(False, "HILO_TIME", "1 prints a table of passes and their times on stderr")
    profile: bool = _option(
        False, "HILO_PROFILE", "1 makes programs that take the time of each step (`Executable.profile()`)"
    )

    def __post_init__(self) -> None:
        for name, option in options().items():
            value: Any = getattr(self, name)
            if name in ("fast_math", "print", "skip"):
                names = _names(value, f"{name} ({option.variable})")
                value = names if name != "fast_math" else frozenset(FAST_MATH if "all" in names else names)
                object.__setattr__(self, name, value)
            self._check(name, value, option.variable)

    def _check(self, name: str, value: Any, variable: str) -> None:
        if name == "fast_math":
            for unknown in sorted(value - set(FAST_MATH)):
                raise Error(f"fast_math ({variable}) knows no {unknown!r}; there are: {', '.join(FAST_MATH)}")
        elif name == "threads":
            if value is not None and (not _is_int(value) or value < 1):
                raise Error(f"threads ({variable}) must be a positive number, not {value!r}")
        elif name == "memory_limit":
            if value is not None and (not _is_int(value) or value < 0):
                raise Error(f"memory_limit ({variable}) must be a number of 0 or more, not {value!r}")
        elif isinstance(_DEFAULTS[name], bool):
            if not isinstance(value, bool):
                raise Error(f"{name} ({variable}) must be True or False, not {value!r}")
        elif isinstance(_DEFAULTS[name], int):
            if not _is_int(value) or value < 0:
                raise Error(f"{name} ({variable}) must be a number of 0 or more, not {value!r}")
        elif isinstance(_DEFAULTS[name], str) and not isinstance(value, str):
            raise Error(f"{name} ({variable}) must be text, not {value!r}")
        if name == "opt" and value not in (0, 1):
            raise Error(f"{name} ({variable}) must be 0 or 1, not {value!r}")
        if name == "codegen" and value not in ("auto", "llvm"):
            raise Error(f"{name} ({variable}) must be auto or llvm, not {value!r}")
        if name == "stop":
            _check_pass(self.stop, f"{name} ({variable})")
        elif name in ("skip", "print"):
            for one in self.skip if name == "skip" else self.print:
                _check_pass(one, f"{name} ({variable})")

    def replace(self, **changes: Any) -> Options:
        """These options with some changed; an unknown name is an `Error`."""
        _check_names(changes)
        return replace(self, **changes)

    @classmethod
    def from_env(cls, environ: Mapping[str, str] | None = None, **overrides: Any) -> Options:
        """The defaults, changed by the `HILO_*` variables of `environ` (the process's own if None), then by
        `overrides`."""
        _check_names(overrides)
        environ = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        for name, option in options().items():
            text = environ.get(option.variable, "").strip()
            if text and name not in overrides:
                values[name] = _read(name, text, option.variable)
        return cls(**values, **overrides)

    def code_key(self) -> tuple[Any, ...]:
        """The values that the compiled code depends on (for cache keys); where to look or print is not among them."""
        return (
            tuple(sorted(self.fast_math)),
            self.target,
            self.fold_elements,
            self.fuse,
            self.fusion_ops,
            self.fusion_duplicates,
            self.pack_once,
            self.stop,
            self.skip,
            self.profile,
            self.opt,
            self.codegen,
            self.pin,
            self.tuned,
            self.memory_limit,
        )


def _names(value: Any, what: str) -> tuple[str, ...]:
    """Names from a collection, or from text with commas or spaces between them; True stands for all, False for none."""
    if isinstance(value, bool):
        return ("all",) if value else ()
    names = value.replace(",", " ").split() if isinstance(value, str) else value
    if not isinstance(names, Iterable) or not all(isinstance(n, str) for n in names):
        raise Error(f"{what} must be names, not {value!r}")
    return tuple(names)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_names(given: Mapping[str, Any]) -> None:
    known = options()
    for name in given:
        if name not in known:
            raise Error(f"there is no option {name!r}; there are: {', '.join(sorted(known))}")


def _check_pass(text: str, what: str) -> None:
    name, _, number = text.partition("#")
    if text and (not name or ("#" in text and not (number.isdecimal() and int(number) > 0))):
        raise Error(f"{what} must name a pass, like cse or cse#2, not {text!r}")


def _read(name: str, text: str, variable: str) -> Any:
    """The value of a variable's text, by the type of the option's default."""
    default = _DEFAULTS[name]
    if isinstance(default, bool):
        value = {
            "1": True,
            "true": True,
            "yes": True,
            "on": True,
            "0": False,
            "false": False,
            "no": False,
            "off": False,
        }.get(text.lower())
        if value is None:
            raise Error(f"{variable} must be 0 or 1, not {text!r}")
        return value
    if isinstance(default, int) or name in ("threads", "memory_limit"):
        try:
            return int(text)
        except ValueError:
            raise Error(f"{variable} must be a number, not {text!r}") from None
    if name == "fast_math":
        return (
            frozenset()
            if text.lower() in ("0", "none")
            else frozenset(FAST_MATH)
            if text.lower() in ("1", "all")
            else text
        )
    return text


_DEFAULTS: Final[dict[str, Any]] = {name: option.default for name, option in options().items()}
DEFAULT: Final = Options()
