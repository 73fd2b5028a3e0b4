"""A conformance report as JUnit XML, which continuous integration reads. Imports testing.conformance.

One suite for each runner, one case for each module: skipped ones carry the reason, failed ones how they differ.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from hilo.testing.conformance import Record, Report

_INVALID = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # what XML 1.0 cannot hold


def junit(report: Report) -> bytes:
    """The report as a document in UTF-8."""
    suites: dict[str, list[Record]] = {}
    for r in report.records:
        suites.setdefault(r.runner, []).append(r)
    root = ET.Element("testsuites", {"name": "hilo conformance", **_counts(report.records)})
    for runner, records in suites.items():
        suite = ET.SubElement(root, "testsuite", {"name": runner, **_counts(records)})
        for r in records:
            _case(suite, r)
    ET.indent(root)
    return ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"


def _counts(records: list[Record]) -> dict[str, str]:
    status = [r.status for r in records]
    return {"tests": str(len(status)), "failures": str(status.count("fail")), "errors": "0",
            "skipped": str(status.count("skip"))}  # fmt: skip


def _case(suite: ET.Element, r: Record) -> None:
    case = ET.SubElement(suite, "testcase", {"classname": f"hilo.{r.runner}", "name": _text(r.name)})
    if r.ops:
        properties = ET.SubElement(case, "properties")
        ET.SubElement(properties, "property", {"name": "ops", "value": " ".join(r.ops)})
    if r.status == "skip":
        ET.SubElement(case, "skipped", {"message": _text(r.reason)})
    elif r.status == "fail":
        ET.SubElement(case, "failure", {"message": _text(r.reason)}).text = _text(r.reason)
    elif r.reason:
        ET.SubElement(case, "system-out").text = _text(r.reason)


def _text(text: str) -> str:
    return _INVALID.sub("\ufffd", text)
