"""A verdict for other programs: JSON, GitHub's workflow commands, JUnit's XML; and lines that all of them share.

In: a `Verdict`, or why there is none. Out: text. Not here: text for people (see `cli.check_text`).
"""

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import msgspec

from lorapick.plan.gate.values import Change, Finding, Level, Plan, Verdict
from lorapick.plan.prediction.values import Prediction
from lorapick.plan.work import Report, shown

WORDS = {Level.OK: "passes", Level.WARN: "passes with warnings", Level.FAIL: "fails"}
_COMMANDS = {Level.FAIL: "error", Level.WARN: "warning"}
NOTHING = "nothing that was tried would pass"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_json(verdict: Verdict) -> dict[str, Any]:
    """Everything as plain values; changes without the whole fleet that they would make."""
    found: dict[str, Any] = msgspec.to_builtins(verdict)
    for change in found["changes"]:
        del change["plan"]
    kinds = {"cheapest": verdict.cheapest, "closest": verdict.closest}
    return {**found, **{name: None if change is None else change.kind for name, change in kinds.items()}}


def to_github(verdict: Verdict, work: Report | None = None) -> str:
    """Workflow commands: annotations of a run in GitHub Actions, and its work as a group of the log, folded.

    Percent signs and line ends are escaped as `@actions/core` does; nobody's adapter name becomes a command.
    """
    lines = [
        f"::{_COMMANDS[each.level]} title={_property('lorapick check: ' + each.rule)}::{_data(each.message)}"
        for each in verdict.findings
        if each.level in _COMMANDS
    ]
    told = [remedy(each) for each in verdict.changes if each.passes]
    if verdict.closest is not None:
        told = [f"{NOTHING}; closest: {remedy(verdict.closest)}"]
    lines += [f"::notice title=lorapick check::{_data(each)}" for each in (*told, *reliability(verdict))]
    if work is not None:
        lines += ["::group::how lorapick check reckons", *map(_line, work_lines(work)), "::endgroup::"]
    return "\n".join(lines)


def work_lines(work: Report) -> Iterator[str]:
    """Figures with formula and source, a line each, where there is no room for tables."""
    for title, figures, sign in (("assumed", work.assumptions, ","), ("figures", work.figures, " =")):
        yield f"{title}:"
        for each in figures:
            yield f"{each.name}: {shown(each.value, each.unit)}{sign} {each.formula} [{each.source}]"


def to_junit(verdict: Verdict, work: Report | None = None) -> str:
    """One test case for each rule; what warns passes, and says so in its output. The suite's output has the work."""
    failures = sum(each.level is Level.FAIL for each in verdict.findings)
    attributes = {"name": "lorapick check", "tests": str(len(verdict.findings)), "failures": str(failures)}
    suite = ElementTree.Element("testsuite", attributes)
    for each in verdict.findings:
        suite.append(_case(each, verdict))
    told = [*reliability(verdict), *(() if work is None else work_lines(work))]
    ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(told))
    return _document(suite)


def error_json(message: str) -> str:
    """Why nothing was judged, as JSON."""
    return json.dumps({"error": message}, indent=2)


def error_github(message: str) -> str:
    """Why nothing was judged, as an annotation."""
    return f"::error title=lorapick check::{_data(message)}"


def error_junit(message: str) -> str:
    """Why nothing was judged: one test case, with an error and no failure."""
    counts = {"tests": "1", "failures": "0", "errors": "1"}
    suite = ElementTree.Element("testsuite", {"name": "lorapick check", **counts})
    case = ElementTree.SubElement(suite, "testcase", {"classname": "lorapick.check", "name": "input"})
    ElementTree.SubElement(case, "error", {"message": _xml(message)})
    return _document(suite)


def basis(plan: Plan) -> str:
    """What the figures of a plan hold for."""
    ways = ", ".join(dict.fromkeys(pod.eviction for pod in plan.fleet.pods))
    return f"predicted for a steady state: Poisson arrivals at fixed rates, pods that evict by {ways}"


def reliability(verdict: Verdict) -> tuple[str, ...]:
    """How far hits may be off, and why that is more than usual; of today too where it is another matter."""
    told = [_off(each) for each in (verdict.today, verdict.after) if each is not None]
    if len(dict.fromkeys(told)) == 1:
        return (told[0],)
    return tuple(f"{when}: {each}" for when, each in zip(("today", "then"), told, strict=True))


def _off(of: Prediction) -> str:
    why = "" if of.note is None else f": {of.note}"
    return f"hits may be off by {of.error_points:g} points, as far as such fleets were simulated{why}"


def headline(verdict: Verdict) -> str:
    """The verdict in a line."""
    parts = [f"{WORDS[verdict.level]}: {verdict.after.active} active adapters on {verdict.after.slots} slots"]
    if verdict.today is not None:
        parts.append(f"{len(verdict.added)} added, {len(verdict.removed)} removed")
    return ", ".join(parts)


def remedy(change: Change) -> str:
    """A change and what it would lead to, in one line."""
    after = change.prediction
    told = "passes" if change.level is Level.OK else "passes with a warning" if change.passes else "still fails"
    hits = "" if after.hit_ratio is None else f"{after.hit_ratio:.1%} hits{_unlike(change)}, "
    return (
        f"{change.words}: {told} ({hits}{after.swap_rate:.3f} swaps/s/pod, {after.active} active / {after.slots} slots)"
    )


def _unlike(change: Change) -> str:
    """Of hits that may be on the other side of their bound."""
    return f" ± {change.prediction.error_points:g} points" if change.unsure else ""


def _case(finding: Finding, verdict: Verdict) -> ElementTree.Element:
    name = finding.rule if finding.adapter is None else f"{finding.rule} {finding.adapter}"
    case = ElementTree.Element("testcase", {"classname": "lorapick.check", "name": _xml(name)})
    if finding.level is Level.FAIL:
        failure = ElementTree.SubElement(case, "failure", {"message": _xml(finding.message)})
        if finding.adapter is None:
            first = [f"{NOTHING}:"] if verdict.closest is not None else []
            failure.text = _xml("\n".join([*first, *(remedy(each) for each in verdict.changes)]))
    elif finding.level is Level.WARN:
        ElementTree.SubElement(case, "system-out").text = _xml(f"warning: {finding.message}")
    return case


def _document(suite: ElementTree.Element) -> str:
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")


def _xml(text: str) -> str:
    return _NOT_XML.sub("?", text)


def _line(text: str) -> str:
    """A plain line of a log: no command, whatever it begins with."""
    return f"  {' '.join(text.splitlines())}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
