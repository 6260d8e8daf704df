"""The page needs nothing else, and says what it shows."""

import re
from html.parser import HTMLParser

import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.sim.compare import compare
from lorapick.sim.page.page import page
from lorapick.sim.run import run
from lorapick.sim.scenario_text import parse_scenario

TEXT = """
name: small
title: A <small> one
source: none
assumes: ["less & more"]
fleet: {pods: 2, slots: 1, hardware: h100-llama70b-int4}
adapters: {count: 3}
arrivals: {rate: 5/s, tokens: {prompt: 50, output: 5}}
run: {from: "09:00", to: "09:01", warm_up: 10s}
periods: [{name: early, from: "09:00:20", to: "09:00:40"}]
expect:
  - {metric: p95_ms, policy: weighted, article: 220, note: "a note"}
  - {metric: hit_ratio, article: {early: "over 92 %"}}
  - {metric: swaps, policy: random, article: 5}
"""


class Tags(HTMLParser):
    """Checks that tags close, and collects what they refer to."""

    VOID = ("meta",)

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def made():
    scenario = parse_scenario(TEXT, file="s.yaml", policies=POLICIES)
    reports = [run(scenario, policy=policy, seed=seed) for policy in ("round-robin", "weighted") for seed in (1, 2)]
    return page(scenario, reports, compared=compare(reports))


def test_it_is_one_file_and_well_formed(made):
    tags = Tags()
    tags.feed(made)
    assert (tags.open, tags.links) == ([], [])
    assert "script" not in tags.seen
    assert "url(" not in made and "@import" not in made and "http" not in made
    assert tags.seen.count("svg") == 8


def test_text_is_escaped(made):
    assert "A &lt;small&gt; one" in made and "less &amp; more" in made


def test_figures_intervals_and_the_article(made):
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>|<[^>]+>", " ", made, flags=re.DOTALL)
    text = re.sub(r"\s+", " ", text)
    assert "extrapolated" in text and "seeds 1, 2" in text
    assert "95 % confidence interval over 2 seeds" in text
    assert re.search(r"latency p95 weighted all 220 ms [\d,.]+ ms .*a note", text)
    assert len(re.findall(r"hits (?:round-robin|weighted) early over 92 %", text)) == 2
    # What no policy that ran is expected to do stands nowhere.
    assert "random" not in text
    assert "Period: early" in text and "looked at every 1 s" in text


def test_times_are_those_of_the_day(made):
    assert ">09:00:30<" in made
