"""`lorapick check` of a running picker's fleet: what a configuration knows, its admin API tells too."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli.check import register
from lorapick.cli.check_fleet import Fleet, fleet_at, fleet_of
from lorapick.cli.loading import Loaded, load
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.published import PublishedViews
from lorapick.testing.peft_files import write_adapter
from lorapick.testing.published import small_fleet
from lorapick.testing.served import served
from lorapick.testing.site import Site

THURSDAY = Path(__file__).parents[3] / "examples" / "thursday"
TODAY = ("--today", str(THURSDAY / "today.txt"), "--rate", "4")
MANY_THINGS = """
base_model: acme/large
defaults: {max_loras: 4, max_lora_rank: 16}
discovery:
  pods:
    - {name: a, address: "10.0.0.1:8000", labels: {tier: gold}}
    - {name: b, address: "10.0.0.2:8000", engine: sglang, zone: west, max_queue: 4}
    - {name: c, address: "10.0.0.3:8000", base_model: acme/other, max_lora_rank: 64, max_num_seqs: 32}
adapters:
  list:
    - {name: legal, source: /adapters/legal, rank: 16}
    - {name: medical, source: /adapters/medical, rank: 32, base_model: acme/other}
    - {name: support, source: /adapters/support, pin: {selector: {tier: gold}}}
aliases: [{name: law, to: [{adapter: legal}]}]
picking: {policy: round-robin}
alerts: {swap_rate: 0.3, hit_ratio: 0.7, residency: 2m, active_per_slot: 0.5}
slo: {latency_p95: 2s}
"""


def run(*arguments: str) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [*arguments])


async def _site(loaded: Loaded) -> Site:
    """In a loop, since a driver sets itself timers; here nothing ever happens."""
    return Site(*loaded.pods, settings=loaded.settings)


@contextmanager
def picker(config: Path) -> Iterator[str]:
    """One that runs with this configuration, and has heard of its pods."""
    site = asyncio.run(_site(load(config)))
    with served(PublishedViews(site.driver), operations=DriverOperations(site.driver)) as url:
        yield url


@pytest.fixture(scope="module")
def thursday() -> Iterator[str]:
    with picker(THURSDAY / "fleet.yaml") as url:
        yield url


@pytest.mark.parametrize(
    "rollout", [(), (str(THURSDAY / "ab-test.yaml"),), (str(THURSDAY / "ab-test.yaml"), "--slots", "8")]
)
@pytest.mark.parametrize("form", ["json", "text"])
def test_thursday_is_judged_alike(thursday: str, rollout: tuple[str, ...], form: str) -> None:
    by_file, by_picker = (
        run(*rollout, *where, *TODAY, "--format", form)
        for where in (("--config", str(THURSDAY / "fleet.yaml")), ("--admin", thursday))
    )
    assert (by_picker.exit_code, by_picker.output) == (by_file.exit_code, by_file.output)


def known(fleet: Fleet) -> dict[str, object]:
    """What a verdict rests on."""
    return {
        "rules": fleet.rules,
        "policy": fleet.shape.policy,
        "pods": [
            (pod.name, pod.engine, pod.zone, pod.labels, pod.base_model, pod.limits.max_loras, pod.limits.max_lora_rank,
             pod.limits.max_num_seqs, pod.limits.max_queue)
            for pod in fleet.shape.pods
        ],
        "adapters": [(each.name, each.rank, each.base_model, each.pin) for each in fleet.adapters],
        "aliases": fleet.aliases,
        "limits": fleet.limits_known,
    }  # fmt: skip


def test_everything_that_a_configuration_says_is_told(tmp_path: Path) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(MANY_THINGS)
    (tmp_path / "list.json").write_text(
        json.dumps(
            [{"name": name} for name in ("legal", "medical", "law", "acme/other")] + [{"name": "x", "rank": 128}]
        )
    )
    with picker(config) as url:
        assert known(fleet_at(url)) == known(fleet_of(config))
        by_picker, by_file = (
            run(str(tmp_path / "list.json"), *where, "--rate", "2", "--format", "json")
            for where in (("--admin", url), ("--config", str(config)))
        )
    assert (by_picker.exit_code, json.loads(by_picker.output)) == (1, json.loads(by_file.output))
    faults = [
        (each["rule"], each["level"], each["adapter"])
        for each in json.loads(by_file.output)["findings"]
        if each["adapter"] is not None
    ]
    assert faults == [
        ("name", "fail", "law"), ("name", "fail", "acme/other"), ("base_model", "warn", "medical"),
        ("rank", "warn", "medical"), ("rank", "fail", "x"),
    ]  # fmt: skip


def test_an_adapters_base_model_is_compared(thursday: str, tmp_path: Path) -> None:
    write_adapter(tmp_path / "a" / "legal", base_model_name_or_path="Qwen/Qwen3-8B")
    result = run(str(tmp_path / "a"), "--admin", thursday, *TODAY)
    assert result.exit_code == 1
    assert "fail base_model: legal was trained on Qwen/Qwen3-8B; the pods serve meta-llama/" in result.output


def test_names_of_today_that_the_picker_does_not_know(tmp_path: Path) -> None:
    config, today = tmp_path / "fleet.yaml", tmp_path / "today.txt"
    config.write_text(MANY_THINGS)
    today.write_text("legal 1\nmedcal 1\n")
    with picker(config) as url:
        result = run("--admin", url, "--today", str(today))
        silenced = run("--admin", url, "--today", str(today), "--undeclared-ok")
    assert (
        f"warn today: {today} lists medcal, and the picker at {url} does not know it (did you mean medical?); declare "
        "it there, or let such names be with --undeclared-ok\n"
    ) in result.output
    assert "medcal" not in silenced.output


def test_a_picker_without_traffic(thursday: str, tmp_path: Path) -> None:
    result = run("--admin", thursday)
    assert result.exit_code == 2
    assert f"the picker at {thursday} had no requests in the last 10 minutes" in result.output
    config = tmp_path / "fleet.yaml"
    config.write_text(MANY_THINGS)
    with picker(config) as url:
        assert run("--admin", url, "--rate", "2").exit_code == run("--config", str(config), "--rate", "2").exit_code


def test_a_picker_that_tells_no_limits(tmp_path: Path) -> None:
    """One of an older version: what it does not tell is not compared."""
    file = tmp_path / "list.json"
    file.write_text(json.dumps([{"name": "x", "rank": 4096, "base_model": "acme/any", "rate": 1.0}]))
    with served(small_fleet()) as url:
        assert not fleet_at(url).limits_known
        result = run(str(file), "--admin", url)
    assert (result.exit_code, result.output.partition(":")[0]) == (0, "passes")
