"""The real Prometheus scrapes the real picker, with the shipped rules: what is shown arrives, and an alert fires."""

import asyncio
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_kit import Server, prometheus, promtool

from lorapick.dash.rules import Thresholds, rules_document
from lorapick.model.pods import PodLimits
from lorapick.model.settings import AlertSettings
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]
ADAPTERS = 3
SWAP_RATE = 0.05
"""Per second of a minute: three swaps are enough."""
SOON = 1.0
"""Seconds between two scrapes, and for which a rule must hold: a test has no two minutes."""


def write_rules(directory: Path) -> None:
    thresholds = Thresholds(AlertSettings(swap_rate=SWAP_RATE, sustained=SOON))
    document = rules_document(thresholds, runbooks="http://127.0.0.1:9091/runbooks")
    (directory / "rules.yaml").write_text(yaml.safe_dump(document))
    answer = promtool("check", "rules", "rules.yaml", cwd=directory)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def scraping(target: str) -> str:
    """What Prometheus is told."""
    return yaml.safe_dump(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [{"job_name": "lorapick", "static_configs": [{"targets": [urlsplit(target).netloc]}]}],
        }
    )


def rules_of(server: Server) -> dict[str, dict[str, Any]]:
    """Every rule that is loaded, by name."""
    return {rule["name"]: rule for group in server.groups() for rule in group["rules"]}


def until_state(server: Server, alert: str, state: str) -> None:
    """Wait until an alert is in a state."""
    found = ""
    for _ in range(600):
        found = rules_of(server).get(alert, {}).get("state", "")
        if found == state:
            return
        time.sleep(0.1)
    raise AssertionError(f"{alert} is {found!r} and not {state!r}")


def until_scraped(server: Server) -> None:
    """Wait until the picker has answered and the rules were evaluated."""
    for _ in range(600):
        up = server.query('up{job="lorapick"}', time.time())
        if up and up[0]["value"][1] == "1" and all(rule["health"] == "ok" for rule in rules_of(server).values()):
            return
        time.sleep(0.1)
    raise AssertionError(f"the picker is not scraped, or rules fail: {rules_of(server)}")


def until_ingested(server: Server, url: str) -> None:
    """Wait until everything that the picker's page has is in Prometheus, by sample name."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        families = [*text_string_to_metric_families(answer.read().decode())]
    shown = {sample.name for family in families for sample in family.samples if sample.name.startswith("lorapick_")}
    assert len(shown) > 50, "the page shows the picker"
    missing = shown
    for _ in range(100):
        found = server.query('count by (__name__) ({__name__=~"lorapick_.+"})', time.time())
        missing = shown - {each["metric"]["__name__"] for each in found}
        if not missing:
            return
        time.sleep(0.1)
    raise AssertionError(f"not ingested: {sorted(missing)}")


async def swap(endpoint: str, adapters: tuple[str, ...]) -> None:
    """Ask for one adapter after the other: on one slot each is a swap."""
    async with aiohttp.ClientSession() as client:
        for name in adapters:
            body = {"model": name, "prompt": "hello", "max_tokens": 2}
            async with client.post(f"{endpoint}/v1/completions", json=body) as answer:
                assert answer.status == 200, await answer.text()


async def test_prometheus_scrapes_the_picker_and_an_alert_fires_when_traffic_makes_it(tmp_path):
    write_rules(tmp_path)
    limits = PodLimits(max_loras=1, max_cpu_loras=ADAPTERS)
    async with Stack(pods=1, adapters=ADAPTERS, limits=limits, observe="bodies") as stack:
        names = tuple(f"adapter-{number:03d}" for number in range(ADAPTERS))
        with prometheus(tmp_path, config=scraping(stack.metrics)) as server:
            await asyncio.to_thread(until_scraped, server)
            for alert in ("LorapickSwapRate", "LorapickActiveAdapters"):
                await asyncio.to_thread(until_state, server, alert, "inactive")
            for _ in range(4):
                await swap(stack.endpoint, names)
                await asyncio.sleep(SOON)  # a rate needs two scrapes between which something happened
            for alert in ("LorapickSwapRate", "LorapickActiveAdapters"):
                await asyncio.to_thread(until_state, server, alert, "firing")
            firing = rules_of(server)["LorapickSwapRate"]["alerts"]
            assert {each["labels"]["pod"] for each in firing} == {"pod-0"}
            assert rules_of(server)["LorapickPickerAbsent"]["state"] == "inactive"
            await asyncio.to_thread(until_ingested, server, stack.metrics)
