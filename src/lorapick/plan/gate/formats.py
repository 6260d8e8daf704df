"""A verdict for other programs: JSON, GitHub's workflow commands, JUnit's XML.

In: a `Verdict`. Out: text. Not here: text for people (see `cli.check_text`).
"""

import re
from typing import Any
from xml.etree import ElementTree

import msgspec

from lorapick.plan.gate.values import Change, Finding, Level, Verdict

_COMMANDS = {Level.FAIL: "error", Level.WARN: "warning"}
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Everything as plain values; changes without the whole fleet that they would make."""
    found: dict[str, Any] = msgspec.to_builtins(verdict)
    for change in found["changes"]:
        del change["plan"]
    cheapest = verdict.cheapest
    return {**found, "cheapest": None if cheapest is None else cheapest.kind}


def to_github(verdict: Verdict) -> str:
    """Workflow commands: annotations of a run in GitHub Actions.

    Percent signs and line ends are escaped as `@actions/core` does; nobody's adapter name becomes a command.
    """
    lines = [
        f"::{_COMMANDS[each.level]} title={_property('lorapick check: ' + each.rule)}::{_data(each.message)}"
        for each in verdict.findings
        if each.level in _COMMANDS
    ]
    lines += [f"::notice title=lorapick check::{_data(remedy(each))}" for each in verdict.changes if each.passes]
    return "\n".join(lines)


def to_junit(verdict: Verdict) -> str:
    """One test case for each rule; what warns passes, and says so in its output."""
    failures = sum(each.level is Level.FAIL for each in verdict.findings)
    attributes = {"name": "lorapick check", "tests": str(len(verdict.findings)), "failures": str(failures)}
    suite = ElementTree.Element("testsuite", attributes)
    for each in verdict.findings:
        suite.append(_case(each, verdict))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def remedy(change: Change) -> str:
    """A change and what it would lead to, in one line."""
    after = change.prediction
    told = "passes" if change.level is Level.OK else "passes with a warning" if change.passes else "still fails"
    hits = "" if after.hit_ratio is None else f"{after.hit_ratio:.1%} hits, "
    return (
        f"{change.words}: {told} ({hits}{after.swap_rate:.3f} swaps/s/pod, {after.active} active / {after.slots} slots)"
    )


def _case(finding: Finding, verdict: Verdict) -> ElementTree.Element:
    name = finding.rule if finding.adapter is None else f"{finding.rule} {finding.adapter}"
    case = ElementTree.Element("testcase", {"classname": "lorapick.check", "name": _xml(name)})
    if finding.level is Level.FAIL:
        failure = ElementTree.SubElement(case, "failure", {"message": _xml(finding.message)})
        if finding.adapter is None:
            failure.text = _xml("\n".join(remedy(each) for each in verdict.changes))
    elif finding.level is Level.WARN:
        ElementTree.SubElement(case, "system-out").text = _xml(f"warning: {finding.message}")
    return case


def _xml(text: str) -> str:
    return _NOT_XML.sub("?", text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
