"""The registry of custom calls: names of targets, and what code is behind them. Imports ir and siblings.

Targets that hilo brings are registered by the modules that `BUILTIN` names, when a target is looked up for the first
time. A registration replaces an earlier one; compiled programs keep what they were compiled with.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from threading import RLock
from typing import Any, Final

import numpy as np

from hilo.custom_calls.site import CallSite
from hilo.errors import Error, Unsupported
from hilo.ir.types import TensorType
from hilo.record import record

# Modules whose import registers targets (`register(..., builtin=True)`).
BUILTIN: Final[list[str]] = [
    f"hilo.custom_calls.{m}"
    for m in ("assertion", "lapack", "lapack_older", "decompositions", "topk", "mhlo", "dynamic")
]
CONVENTIONS: Final = ("python", "c", "llvm", "xla", "xla-ffi")
_KEYWORDS: Final = ("results", "attributes", "backend_config", "call", "out")


@record(frozen=True, eq=False)
class Target:
    """What is behind a name. `convention` says how it is called.

    function  what was registered;  keywords: which a Python function takes
    addresses  of native code, by XLA's execution stages: there is one, the last, but for "xla-ffi"
    symbol    the name of native code in objects; "": it has none
    text      of "llvm": the module that defines `symbol`
    user_data  of "xla-ffi": the address that handlers get who ask for user data of the execution; 0: there is none
    invoke    calls native code for the interpreter: (target, site, operands) -> results
    keep      what must live as long as the code
    """

    name: str
    convention: str
    function: Any
    keywords: tuple[str, ...] = ()
    builtin: bool = False
    addresses: tuple[int, int, int, int] = (0, 0, 0, 0)
    symbol: str = ""
    text: str = ""
    user_data: int = 0
    invoke: Callable[[Target, CallSite, Sequence[np.ndarray]], list[np.ndarray]] | None = None
    keep: Any = None


_TARGETS: dict[str, Target] = {}
# More registries, of frameworks: asked in order for a name that the user did not register here, before hilo's targets.
SOURCES: Final[list[Callable[[str], Target | None]]] = []
_LOCK = RLock()
_loaded = 0  # modules of BUILTIN


def register(name: str, function: Any = None, *, builtin: bool = False) -> Any:
    """Make the Python `function` the code that `stablehlo.custom_call @name` runs. Without `function`: a decorator.

    `function(*operands, results=..., attributes=..., backend_config=..., call=..., out=...)` gets read-only arrays and
    those of the keywords that it has parameters for: the results' types, the typed dictionary, the text of the
    configuration, the whole `CallSite`, and arrays for the results, which it may fill and then return None.
    It returns an array, or a sequence of arrays if there are several results, of exactly the results' types, which is
    checked. `builtin`: a target that hilo brings; it never replaces what the user registered.

    Raises `Error` for a name or function that cannot be one.
    """
    if function is None:
        return lambda f: register(name, f, builtin=builtin)
    add(Target(name, "python", *_python(name, function), builtin))
    return function


def add(target: Target) -> None:
    """Add a target, or replace that of its name. Raises `Error` if the name cannot be one."""
    name = target.name
    if not isinstance(name, str) or not name:
        raise Error(f"the name of a custom call target is a string that is not empty, not {name!r}")
    with _LOCK:
        old = _TARGETS.get(name)
        if not target.builtin or old is None or old.builtin:
            _TARGETS[name] = target


def unregister(name: str) -> None:
    """Forget the target `name`, if there is one."""
    with _LOCK:
        _TARGETS.pop(name, None)


def _python(name: str, function: Any) -> tuple[Callable[..., Any], tuple[str, ...]]:
    if not callable(function):
        raise Error(f"custom call target {name!r}: {function!r:.80} cannot be called")
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # built-in functions: arrays are all they get
        return function, ()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function, _KEYWORDS
    return function, tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in _KEYWORDS)


def registered() -> list[str]:
    """The names of the targets that the user registered, sorted."""
    return sorted(t.name for t in list(_TARGETS.values()) if not t.builtin)


def known() -> list[str]:
    """The names of all targets, sorted."""
    _load()
    return sorted(_TARGETS)


def find(name: str) -> Target:
    """The target `name`. Raises `Unsupported` that lists those there are."""
    target = _TARGETS.get(name)
    if target is None or target.builtin:
        for source in SOURCES:
            if (found := source(name)) is not None:
                return found
    if target is None:
        _load()
        target = _TARGETS.get(name)
    if target is None:
        raise Unsupported(unknown(name))
    return target


def unknown(name: str) -> str:
    """What to say of a target that there is not."""
    from difflib import get_close_matches

    names = known()
    near = get_close_matches(name, names, 3)
    hint = f" (is {' or '.join(repr(n) for n in near)} meant?)" if near else ""
    names.sort(key=lambda n: (n not in near, _TARGETS[n].builtin))  # the user's own before hilo's
    shown = ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    return (
        f"hilo knows no custom call target {name!r}{hint}; there are: {shown or 'none'}. "
        f"hilo.register_custom_call({name!r}, function) adds it"
    )


def _load() -> None:
    global _loaded
    with _LOCK:
        while _loaded < len(BUILTIN):
            _loaded += 1
            import_module(BUILTIN[_loaded - 1])


def call(target: Target, site: CallSite, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a target of any convention on dense arrays; its results, checked where it could be wrong."""
    if target.invoke is not None:
        return target.invoke(target, site, operands)
    return call_python(target, site, list(map(_read_only, operands)))


def _read_only(a: np.ndarray) -> np.ndarray:
    """A view that a Python function cannot write through: the array may be the caller's own."""
    view = a.view()
    view.flags.writeable = False
    return view


def call_python(
    target: Target, site: CallSite, operands: Sequence[np.ndarray], places: Sequence[np.ndarray] | None = None
) -> list[np.ndarray]:
    """Call a Python target; its results as a list of arrays, checked. `places` are arrays for them, which a function
    that takes `out` may fill. What the function raises comes out as `Error` that it caused, an `Error` as it is."""
    keywords = _keywords(target, site, places) if target.keywords else {}
    try:
        out = target.function(*operands, **keywords)
    except Error:
        raise
    except Exception as e:
        text = f"{type(e).__name__}: {e}" if str(e) else type(e).__name__
        raise Error(f"custom call target {target.name!r} failed: {text}") from e
    return check_results(target.name, site, keywords.get("out") if out is None else out)


def _keywords(target: Target, site: CallSite, places: Sequence[np.ndarray] | None) -> dict[str, Any]:
    if "out" in target.keywords and places is None:
        places = [np.empty(t.shape, t.dtype.np) for t in site.results]
    given = {"results": site.results, "attributes": site.attributes, "backend_config": site.backend_config,
             "call": site, "out": tuple(places or ())}  # fmt: skip
    return {k: given[k] for k in target.keywords}


def check_results(name: str, site: CallSite, out: Any) -> list[np.ndarray]:
    """What a Python function returned, as arrays of exactly the types of the results."""
    want = site.results
    if len(want) == 1 and out is not None and not isinstance(out, tuple | list):
        out = (out,)
    out = () if out is None else out
    if not isinstance(out, tuple | list) or len(out) != len(want):
        n = f"{len(out)} results" if isinstance(out, tuple | list) else f"a {type(out).__name__}"
        raise Error(f"custom call target {name!r} returned {n}, but {len(want)} are wanted")
    arrays = []
    for i, (value, t) in enumerate(zip(out, want, strict=True)):
        try:
            a = np.asarray(value)
        except Exception as e:
            raise Error(f"custom call target {name!r}: result {i} is no array: {e}") from e
        if a.dtype != t.dtype.np or (a.shape != t.shape and not _fits(a.shape, t)):
            raise Error(f"custom call target {name!r}: result {i} is {a.dtype}{list(a.shape)}, but {t} is wanted")
        arrays.append(a)
    return arrays


def _fits(shape: tuple[int, ...], t: TensorType) -> bool:
    """Whether an array's shape is that of a type with sizes that are not known."""
    return len(shape) == t.rank and all(n == m for n, m in zip(shape, t.shape) if isinstance(m, int))
