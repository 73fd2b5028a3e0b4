"""Conformance reports as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from hilo.testing.conformance import Record, Report
from hilo.testing.junit import junit


def test_every_record_is_a_case() -> None:
    records = [
        Record("a.mlir", "native", ("stablehlo.add",), "pass"),
        Record("b.mlir", "native", ("stablehlo.add", "chlo.erf"), "fail", 'a <b> & "c"\x00'),
        Record("c.mlir", "native", (), "skip", "op x"),
        Record("a.mlir", "interpreter", (), "pass", "a remark"),
    ]
    root = ET.fromstring(junit(Report(records, 3)))
    assert root.tag == "testsuites"
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "1", "1")
    assert [s.get("name") for s in root] == ["native", "interpreter"]
    native = root[0]
    assert (native.get("tests"), native.get("failures"), native.get("skipped")) == ("3", "1", "1")
    assert [c.get("name") for c in native] == ["a.mlir", "b.mlir", "c.mlir"]
    failure = native[1].find("failure")
    assert failure is not None
    assert failure.get("message") == 'a <b> & "c"\ufffd'
    skipped = native[2].find("skipped")
    assert skipped is not None
    assert skipped.get("message") == "op x"
    assert native[0].find("failure") is None
    ops = native[1].find("properties/property")
    assert ops is not None
    assert ops.get("value") == "stablehlo.add chlo.erf"
    assert root[1][0].findtext("system-out") == "a remark"


def test_an_empty_report() -> None:
    root = ET.fromstring(junit(Report()))
    assert root.get("tests") == "0"
    assert len(root) == 0
