"""StableHLO's public test data as a test: find the corpus, run its files in several ways, compare, count by op.

A file's functions hand results and what is expected to checks; testing/checked.py makes programs of arguments of them.
What a file needs that hilo does not have (an op, an element type) is read from it and looked up in
the registry; names of files play no part.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.formats import mlir_text
from hilo.formats.mlir_text.names import CHECKS
from hilo.ir import dtypes
from hilo.ir.module import Module
from hilo.ir.registry import REGISTRY, lookup
from hilo.testing import arbiter, checked, compare, dynamic
from hilo.testing.checked import Check
from hilo.testing.runners import RUNNERS, Runner

ARCHIVE: Final = Path("conformance") / "stablehlo-dev.tar.xz"
ALONE: Final = "several processes, which only the interpreter simulates"
PARTS: Final = ("stablehlo/testdata/", "stablehlo/tests/")  # folders of the archive


def corpus() -> Path | None:
    """The archive of the corpus in the shared folder, or None.

    That is HILO_SHARED, by default `shared` beside the checkout (or, for an installed hilo, beside the current folder).
    """
    given = os.environ.get("HILO_SHARED")
    default = (Path(__file__).resolve().parents[4], Path.cwd().parent)
    folders = [Path(given)] if given else [beside / "shared" for beside in default]
    return next((f / ARCHIVE for f in folders if (f / ARCHIVE).is_file()), None)


def sources(path: Path | str | None = None) -> Iterator[tuple[str, str]]:
    """(name, text) of the programs at `path`: an archive of the corpus, a folder, a file; None is the corpus.

    Of an archive only testdata and tests are read. Raises `Error` if there is nothing at `path`.
    """
    place = Path(path) if path is not None else corpus()
    if place is None:
        raise Error(f"there is no conformance corpus: set HILO_SHARED to the folder that holds {ARCHIVE}")
    if place.is_dir():
        for file in sorted(place.rglob("*.mlir")):
            yield str(file.relative_to(place)), file.read_text("utf-8")
    elif not place.is_file():
        raise Error(f"there is no file or folder {place}")
    elif place.name.endswith((".tar.xz", ".txz")):
        yield from _archive(place)
    else:
        yield place.name, place.read_text("utf-8")


def _archive(place: Path) -> Iterator[tuple[str, str]]:
    try:
        with tarfile.open(place, "r:xz") as files:
            for item in files:
                part = next((p for p in PARTS if p in item.name), None)
                if item.isfile() and item.name.endswith(".mlir") and part is not None:
                    content = files.extractfile(item)
                    assert content is not None
                    yield item.name.partition(part)[2], io.TextIOWrapper(content, "utf-8").read()
    except (lzma.LZMAError, tarfile.TarError, EOFError) as e:
        raise Error(f"{place} is not a readable archive: {e}") from None


def pieces(text: str) -> list[str]:
    """The modules of a file: the parts between lines `// -----`."""
    parts = re.split(r"(?m)^// -----.*$", text)
    return [p for p in parts if re.sub(r"(?m)^\s*//.*$", "", p).strip()]


# ---- what a file needs
_OP: Final = re.compile(r'(?m)^\s*(?:%[^=\n]*=\s*)?"?((?:stablehlo|chlo|mhlo|check|interpreter)\.[a-z_0-9]+)')
_ELEMENT: Final = re.compile(r"tensor<((?:[0-9?]+x)*)((?:complex<\w+>)|!?[a-zA-Z][\w.]*)")
_TERMINATORS: Final = ("stablehlo.return", "mhlo.return", "chlo.return")


def ops_of(text: str) -> tuple[str, ...]:
    """Full names of the ops in a module's text, sorted; constants and custom calls of `check.*` do not count."""
    found = set(_OP.findall(text)) - {*_TERMINATORS, *CHECKS, "stablehlo.constant"}
    if not re.search(r"custom_call @(?!check\.)", text):
        found.discard("stablehlo.custom_call")
    return tuple(sorted(found))


def missing(text: str) -> str:
    """What of this module hilo does not have: an op or an element type; "" if it should run."""
    lookup("stablehlo.constant")
    for name in ops_of(text):
        if name.replace("mhlo.", "stablehlo.", 1) not in REGISTRY:
            return f"op {name}"
    for _, element in dict.fromkeys(_ELEMENT.findall(text)):
        if dtypes.from_mlir(element) is None and not element.startswith("!quant."):
            return f"type {element}"
    return ""


# ---- comparing
def verdict(check: Check, got: np.ndarray, truth: Callable[[], Any] = lambda: None) -> tuple[str, str]:
    """("pass", a remark), ("fail", one line that says how), or ("skip", why no result could pass) for a result.

    `truth` gives the result in f64 (or None), which decides where the expected value itself may be off (see arbiter).
    """
    want = check.want
    if got.dtype != want.dtype or got.shape != want.shape:
        return "fail", f"a result of {got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if check.kind in ("expect_eq", "expect_serialized_eq"):
        ok = compare.equal(got, want)
    elif check.kind == "expect_close":
        ok = compare.close(got, want, check.ulps, check.slack)
        if check.ulps >= compare.APART or check.least:
            far = compare.steps_apart(got, want)
            ok = (ok | (far <= check.ulps)) & (far >= check.least)
    elif check.kind in ("expect_almost_eq", "eq"):
        ok = compare.near(got, want, check.absolute)
    else:
        return "fail", f"unknown check {check.kind}"
    if ok.all():
        return "pass", ""
    exact = truth() if check.kind != "expect_eq" and got.dtype in (np.float32, np.complex64) else None
    if exact is not None:
        absolute = check.absolute if check.kind == "expect_almost_eq" else 0.0
        if (ok | arbiter.closer(got, want, exact, check.ulps, absolute)).all():
            return "pass", f"{int((~ok).sum())} expected values are further from the program in f64 than ours"
    if check.kind == "expect_eq" and (ok | compare.both_nan(got, want)).all():
        return "skip", "an expectation that can be met: expect_eq of NaN"
    return "fail", compare.difference(got, want, ok)


# ---- running
@dataclass(frozen=True)
class Record:
    """One module on one runner: `status` is "pass", "fail" or "skip" (with the reason: what hilo does not have)."""

    name: str
    runner: str
    ops: tuple[str, ...]
    status: str
    reason: str = ""


@dataclass
class Report:
    """The records of a run, and counts of them."""

    records: list[Record] = field(default_factory=list)
    files: int = 0

    @property
    def ok(self) -> bool:
        """Whether something ran, and nothing failed."""
        return any(r.status == "pass" for r in self.records) and all(r.status != "fail" for r in self.records)

    def counts(self) -> dict[str, Counter[str]]:
        """By runner: how many modules passed, failed, were skipped."""
        found: dict[str, Counter[str]] = {}
        for r in self.records:
            found.setdefault(r.runner, Counter())[r.status] += 1
        return found

    def by_op(self) -> dict[str, dict[str, Counter[str]]]:
        """By op, then by runner: the statuses of the modules that contain the op."""
        found: dict[str, dict[str, Counter[str]]] = {}
        for r in self.records:
            for name in r.ops:
                found.setdefault(name, {}).setdefault(r.runner, Counter())[r.status] += 1
        return dict(sorted(found.items()))

    def skipped(self) -> Counter[str]:
        """How many modules were skipped for each reason (on the first runner)."""
        first = self.records[0].runner if self.records else ""
        return Counter(r.reason for r in self.records if r.status == "skip" and r.runner == first)

    def failures(self) -> list[Record]:
        return [r for r in self.records if r.status == "fail"]

    def rows(self, by_op: bool = False) -> list[tuple[str, ...]]:
        """A table: a header, then for all modules (and for each op) what each runner passed of what it ran."""
        runners = list(self.counts())
        rows = [("", *runners), ("all", *(_score(self.counts()[r]) for r in runners))]
        if by_op:
            rows += [(name, *(_score(scores[r]) for r in runners)) for name, scores in self.by_op().items()]
        return rows

    def table(self, by_op: bool = False) -> str:
        """The rows as text, with what was skipped and why, and the failures."""
        rows = self.rows(by_op)
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows]
        lines += [f"skipped: {n} need {reason}" for reason, n in self.skipped().most_common()]
        lines += [f"note {r.name} ({r.runner}): {r.reason}" for r in self.records if r.status == "pass" and r.reason]
        lines += [f"FAIL {r.name} ({r.runner}): {r.reason}" for r in self.failures()]
        return "\n".join([f"{self.files} files", *lines])

    def __str__(self) -> str:
        return self.table()


def _score(c: Counter[str]) -> str:
    ran = c["pass"] + c["fail"]
    return f"{c['pass']}/{ran}" + (f" ({c['skip']} skipped)" if c["skip"] else "")


def run(
    path: Path | str | None = None,
    *,
    runners: Mapping[str, Runner] | Iterable[Runner] | None = None,
    limit: int | None = None,
    stride: int = 1,
    on_file: Callable[[str], Any] | None = None,
) -> Report:
    """Run the programs at `path` (None: the corpus) on the runners (None: all).

    Every `stride`-th file, at most `limit` of them. `on_file` is called with the name of each file that is done.
    Failures are recorded, never raised; `Error` is raised if there is no corpus.
    """
    chosen = RUNNERS if runners is None else runners
    ways = list(chosen.values() if isinstance(chosen, Mapping) else chosen)
    report = Report()
    for number, (name, text) in enumerate(sources(path)):
        if number % stride:
            continue
        if limit is not None and report.files >= limit:
            break
        parts = pieces(text)
        for k, part in enumerate(parts):
            report.records.extend(run_module(f"{name}#{k}" if len(parts) > 1 else name, part, ways))
        report.files += 1
        if on_file is not None:
            on_file(name)
    if not report.files:
        raise Error(f"there are no .mlir files in {path or corpus()}")
    return report


def run_module(name: str, text: str, ways: Iterable[Runner]) -> list[Record]:
    """One module on several runners: each of its functions that checks something."""
    ways = list(ways)
    ops = ops_of(text)
    if reason := missing(text):
        return [Record(name, w.name, ops, "skip", reason) for w in ways]
    try:
        module = mlir_text.parse(text)
        as_ops = "custom_call @check." not in text
        programs = [(f, *checked.with_arguments(module, f, ops=as_ops)) for f in checked.entries(module)]
    except Error as e:
        return [Record(name, w.name, ops, "fail", str(e)) for w in ways]
    if not programs and dynamic.is_dynamic(module):
        found = dynamic.outcomes(module, ways)
        return [Record(name, w.name, ops, *found[w.name]) for w in ways]
    if not programs:
        return [Record(name, w.name, ops, *_unchecked(w, module)) for w in ways]
    return [
        Record(name if len(programs) == 1 else f"{name}@{f}", w.name, ops,
               *_outcome(w, module, f, program, inputs, checks))
        for f, program, inputs, checks in programs
        for w in ways
    ]  # fmt: skip


def _unchecked(way: Runner, module: Module) -> tuple[str, str]:
    """A program without checks: the interpreter runs one that it alone can run, which must not fail."""
    main = module.functions.get("main")
    if main is None or main.params or not any(o.kind.dialect == "interpreter" for o in main.ops):
        return "skip", "a check: it has none"
    if way.name != "interpreter":
        return "skip", ALONE
    try:
        way.run(module, [])
    except Error as e:
        return "fail", str(e)
    except Exception as e:  # a defect of hilo: the report must show it and go on
        return "fail", f"{type(e).__name__}: {e}"
    return "pass", ""


def _outcome(
    way: Runner, module: Module, entry: str, program: Module, inputs: list[np.ndarray], checks: list[Check]
) -> tuple[str, str]:
    if way.name != "interpreter" and any(o.kind.name == "run_parallel" for o in program["main"].ops):
        return "skip", ALONE
    try:
        if way.constants:
            results = way.run(checked.with_constants(module, program, entry), [])
        else:
            results = way.run(program, inputs)
    except Error as e:
        return "fail", str(e)
    except Exception as e:  # a defect of hilo: the report must show it and go on
        return "fail", f"{type(e).__name__}: {e}"
    exact = cache(lambda: arbiter.in_f64(program, inputs) or [None] * len(checks))
    found = [
        verdict(check, np.asarray(got), lambda k=k: exact()[k])
        for k, (check, got) in enumerate(zip(checks, results, strict=True))
    ]
    return min(found, key=lambda f: (f[0] != "fail", f[0] != "skip", not f[1]))
