"""A sample of StableHLO's public test data; `hilo conformance` runs all of it."""

from __future__ import annotations

import pytest

from hilo.testing import conformance
from hilo.testing.runners import RUNNERS

SAMPLES = {"interpreter": 5, "native": 50, "native-constants": 50, "native-threads": 100}  # every nth file


@pytest.mark.parametrize(("way", "stride"), SAMPLES.items())
def test_a_sample(way: str, stride: int, capsys: pytest.CaptureFixture[str]) -> None:
    if conformance.corpus() is None:
        pytest.skip("the conformance corpus is absent (HILO_SHARED does not lead to it): nothing was run")
    report = conformance.run(runners=[RUNNERS[way]], stride=stride)
    counts = report.counts()[way]
    with capsys.disabled():
        print(f"\nconformance, {way}: {report.files} files, {counts['pass']} passed, {counts['skip']} skipped", end="")
    assert report.ok, report.table()
    assert report.files > 1900 // stride
    assert counts["pass"] > 1300 // stride
