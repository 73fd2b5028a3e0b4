"""A sample of StableHLO's public test data on the interpreter; `hilo conformance` runs all of it, native code too."""

from __future__ import annotations

import pytest

from hilo.testing import conformance
from hilo.testing.runners import RUNNERS

STRIDE = 5  # every fifth file of the corpus


def test_interpreter_on_a_sample(capsys: pytest.CaptureFixture[str]) -> None:
    if conformance.corpus() is None:
        pytest.skip("the conformance corpus is absent (HILO_SHARED does not lead to it): nothing was run")
    report = conformance.run(runners=[RUNNERS["interpreter"]], stride=STRIDE)
    with capsys.disabled():
        counts = report.counts()["interpreter"]
        print(f"\nconformance: {report.files} files, {counts['pass']} passed, {counts['skip']} skipped", end="")
    assert report.ok, report.table()
    assert report.files > 350
    assert counts["pass"] > 250
