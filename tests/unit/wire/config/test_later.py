"""Keys that change nothing yet are found where they stand, and only those are on the list."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.core.picking.policies import POLICIES
from lorapick.wire.config import Later, later_keys, one_per_key, parse_settings
from lorapick.wire.config.later import LATER

ROOT = Path(__file__).parents[4]
ALL = """
discovery: {pods: []}
adapters:
  list:
    - &b {name: b, rank: 8, size: 1MB}
    - {<<: *b, name: c}
budgets: {loads_per_pod_per_minute: 1, scrape_core_share: 0.1}
"""


def found(text: str) -> tuple[Later, ...]:
    return later_keys(text, file="l.yaml")


def test_every_key_of_the_list_is_one_of_the_file_and_found_in_its_line() -> None:
    parse_settings(ALL, file="l.yaml", policies=tuple(POLICIES))
    later = found(ALL)
    assert {each.key for each in later} == {*LATER}
    places = {each.field: (each.line, each.column) for each in later}
    assert places["adapters.list[0].size"] == places["adapters.list[1].size"] == (5, 29)
    assert [each.line for each in later] == sorted(each.line for each in later)
    assert len(later) == len(LATER) + 1


def test_keys_that_are_acted_on_are_not_among_them() -> None:
    text = """
discovery: {pods: []}
adapters: {list: [{name: a, rank: 8, pin: {pods: [p]}}]}
admission: {max_wait: 4s, slot_budget: false, fairness: least_attained, patience: 3s, probation: {slots_share: 0.2}}
objectives: [{name: batch, priority: -1}]
slo: {ttft_p95: 1s}
alerts: {swap_rate: 0.4, residency: 4m, sustained: 1m}
budgets: {pods_loading_share: 0.5, loads_at_once: 2}
pressure: {soft: 0.8, hysteresis: 0.05}
"""
    assert found(text) == ()
    assert one_per_key(()) == ()


def test_one_line_for_each_key() -> None:
    lines = one_per_key(found(ALL))
    assert len(lines) == len(LATER)
    assert any(line.startswith("l.yaml:5:29: adapters.list[0].size: ") for line in lines)


@settings(max_examples=30)
@given(st.recursive(st.text("ab[]{}:, \n", max_size=6), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_a_file_of_another_shape_has_none(shape: object) -> None:
    """What is wrong with it is for `parse_settings` to say."""
    assert found(f"adapters: {shape!r}\nbudgets: {shape!r}\n") == ()


READ_AS = {
    "adapters.list[].size": r"adapter\.size\b",
}
"""How code would read a key, where it would not be `.<last word>`."""


@pytest.mark.parametrize("key", LATER)
def test_no_decision_reads_what_is_on_the_list(key: str) -> None:
    """When this fails, the part is being built: take its key off the list, and off the pages that name it."""
    pattern = READ_AS.get(key, rf"\.{key.rpartition('.')[2]}\b")
    core = [*(ROOT / "src/lorapick/core").rglob("*.py")]
    assert core
    assert [path.name for path in core if re.search(pattern, path.read_text())] == []


def test_the_page_names_every_key() -> None:
    page = (ROOT / "docs/configuration.md").read_text()
    listed = re.findall(
        r"^\| `([^`]+)` \| (.+) \|$", page.split("## Parsed, not yet acted on")[1].split("\n## ")[0], re.MULTILINE
    )
    assert dict(listed) == LATER
