"""Commands that show and change what a running picker wants, against a real driver's admin API."""

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from lorapick.cli.main import program
from lorapick.live.admin import serve_admin
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.published import PublishedViews
from lorapick.live.tls.door import Door
from lorapick.model.adapters import AffinityGroup, Trigger
from lorapick.model.settings import Settings
from lorapick.testing.playbook import plain_pod
from lorapick.testing.site import ADAPTERS, Site

SETTINGS = Settings(
    adapters=ADAPTERS,
    triggers=(Trigger(event="tenant.login", preload="{tenant}", lasts=600.0),),
    groups=(AffinityGroup(name="documents", first="legal", then=("medical",)),),
)
TOKEN = "of this test".replace(" ", "-")


class Obedient(Site):
    """Pods that do at once what they are told, from the loop's next turn on."""

    obeys = True

    def perform(self, command: Any, /) -> None:
        super().perform(command)
        if self.obeys:
            asyncio.get_running_loop().call_soon(self.work, 0.1)


class Running:
    """A picker in a thread with a loop of its own, since commands block."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.up = threading.Event()
        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(self._serve()))
        self.thread.start()
        assert self.up.wait(10)

    async def _serve(self) -> None:
        self.stop = asyncio.Event()
        site = self.site = Obedient(plain_pod("a", max_loras=1), plain_pod("b", zone="west"), settings=SETTINGS)
        views, operations = PublishedViews(site.driver), DriverOperations(site.driver)
        door = Door(token=lambda: TOKEN)
        async with serve_admin(views, bind="127.0.0.1:0", operations=operations, door=door) as address:
            self.url = f"http://{address}"
            self.up.set()
            await self.stop.wait()

    def end(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(10)
        self.loop.close()


@pytest.fixture
def picker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    monkeypatch.setenv("LORAPICK_TOKEN", TOKEN)
    running = Running()
    monkeypatch.setenv("LORAPICK_ADMIN", running.url)
    yield running
    running.end()


def run(*words: str) -> Result:
    return CliRunner().invoke(program(words), [*words])


def lines(*words: str, code: int = 0) -> list[str]:
    result = run(*words)
    assert result.exit_code == code, result.output
    return (result.stdout if code == 0 else result.stderr).splitlines()


def test_a_pin_is_waited_for_shown_and_withdrawn(picker: Running) -> None:
    assert lines("adapters", "pin", "legal", "--pod", "b", "--wait", "5")[0] == "keep legal resident on b"
    (row,) = [line for line in lines("adapters", "list") if line.startswith("legal")]
    assert row.split() == ["legal", "16", "b", "b", "(pin)", "b", "0", "-"]
    assert "pin          b" in lines("adapters", "show", "legal")
    assert "b            gpu_idle, commanded, wanted: pin" in lines("adapters", "show", "legal")
    assert lines("adapters", "unpin", "legal") == [
        "legal is pinned no more", "  resident on b", "  it stays where it is until its slot is needed",
    ]  # fmt: skip
    assert lines("adapters", "unpin", "legal")[0] == "nothing to do: legal is not pinned"


def test_loads_and_moves(picker: Running) -> None:
    assert lines("adapters", "load", "acme/code@7", "--label", "zone=west", "--wait", "5")[:2] == [
        "load acme/code@7 on 1 pod with zone=west, once", "  wanted on b",
    ]  # fmt: skip
    assert lines("adapters", "move", "acme/code@7", "--from", "b", "--to", "a", "--wait", "5")[0].startswith("load")
    assert json.loads(run("adapters", "show", "acme/code@7", "--json").stdout)["adapter"]["pods"]["gpu_idle"][0] == "a"
    assert lines("adapters", "unload", "acme/code@7")[0] == "unload acme/code@7 on all pods"
    assert lines("adapters", "preload", "medical", "--wait", "5")[0] == (
        "load medical on 1 pod, and keep it for 1800 s"
    )


def test_waiting_ends_with_what_stands_in_the_way(picker: Running) -> None:
    picker.site.obeys = False
    words = lines("adapters", "pin", "legal", "--pod", "a", "--wait", "0.3", code=1)
    assert words == ["legal is not there after 0.3 s: not yet on a"]
    words = lines("adapters", "load", "medical", "--pod", "b", "--wait", "0.3", code=1)
    assert words == ["medical is not there after 0.3 s: not yet on b"]


def test_adapters_are_declared_and_retired(picker: Running) -> None:
    declared = lines("adapters", "declare", "tax@1", "--source", "/adapters/tax", "--rank", "8", "--pin-replicas", "1")
    assert declared[0] == "declare tax@1, and keep it resident on 1 pod"
    assert lines("adapters", "retire", "tax@1")[0] == "retire tax@1"


def test_events_and_aliases(picker: Running) -> None:
    assert lines("events", "fire", "tenant.login", "tenant=legal")[0] == "tenant.login: load legal for a while"
    assert lines("aliases", "list") == ["no aliases"]
    assert lines("aliases", "set", "law", "legal=9", "medical") == ["alias law is new: legal 0.9, medical 0.1"]
    assert lines("aliases", "list") == ["law: legal 0.9, medical 0.1"]
    assert json.loads(run("aliases", "list", "--json").stdout)["aliases"][0]["name"] == "law"
    assert lines("aliases", "clear", "law") == ["alias law is gone"]


def test_placement_says_what_is_wanted_and_what_stands_in_the_way(picker: Running) -> None:
    picker.site.obeys = False
    run("adapters", "pin", "legal", "--pod", "a")
    run("adapters", "load", "medical", "--pod", "a")
    run("adapters", "preload", "support", "--for", "1h")
    text = run("placement").stdout
    for words in (
        "pin legal: a; missing on a for 0.0 s",
        "a should hold legal (pin): loading",
        "a is told to load legal (pin), 0.0 s ago",
        "order load",
        "group legal -> medical (declared)",
        "budgets: 0 of 10 moves in the last minute",
        "by load: off, plan 0 of 0; forecast: off",
    ):
        assert words in text, text
    assert json.loads(run("placement", "--json").stdout)["pins"][0]["adapter"] == "legal"


def test_a_dry_run_asks_the_picker(picker: Running) -> None:
    assert lines("plan", "placement", "--dry-run", "--solver", "rendezvous") == ["0 loads, 0 drops, 0 stay"]
    assert json.loads(run("plan", "placement", "--dry-run", "--solver", "rendezvous", "--json").stdout)["pods"] == 2
    assert "give a file, or --dry-run" in lines("plan", "placement", code=2)[0]
    assert "give a file, or --dry-run" in lines("plan", "placement", "x.yaml", "--dry-run", code=2)[0]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("adapters", "pin", "legall", "--replicas", "1"), 2, "nearest: legal"),
        (("adapters", "pin", "legal"), 2, "a pin needs replicas, pods or selector"),
        (("adapters", "pin", "legal", "--replicas", "9"), 1, "it is to be on 9 pods, and 2 pods can take it"),
        (("adapters", "load", "legal", "--pod", "z"), 2, "no pod 'z' among 2"),
        (("adapters", "load", "legal", "--label", "zone"), 2, "--label 'zone' is no pair; write key=value"),
        (("adapters", "load", "legal", "--label", "a=1", "--label", "a=2"), 2, "--label 'a' is given twice"),
        (("adapters", "show", "nobody"), 2, "no adapter 'nobody' among 4"),
        (("adapters", "preload", "legal", "--for", "5"), 2, "for: not a duration"),
        (("events", "fire", "tenant.login"), 2, 'needs the attribute "tenant"'),
        (("events", "fire", "tenant.logon", "tenant=legal"), 2, "near ones: tenant.login"),
        (("aliases", "set", "law", "legal=x"), 2, "the weight 'x' is no whole number"),
        (("aliases", "set", "law", "nobody"), 1, "nobody knows an adapter nobody"),
        (("aliases", "clear", "law"), 2, "no alias 'law' among 0"),
    ],
)
def test_exit_codes(picker: Running, words: tuple[str, ...], code: int, said: str) -> None:
    (line,) = lines(*words, code=code)
    assert line.startswith(f"lorapick {words[0]} {words[1]}: ")
    assert said in line


def test_the_token_comes_from_the_environment(picker: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LORAPICK_TOKEN")
    (line,) = lines("adapters", "unpin", "legal", code=1)
    assert line.endswith("put the token in the environment variable LORAPICK_TOKEN")
    monkeypatch.setenv("LORAPICK_TOKEN", "another")
    assert "the token is another one" in lines("adapters", "unpin", "legal", code=1)[0]
    assert lines("aliases", "list") == ["no aliases"]


def test_nobody_answers() -> None:
    (line,) = lines("adapters", "pin", "legal", "--replicas", "1", "--url", "http://127.0.0.1:1", code=2)
    assert "no picker answers at http://127.0.0.1:1" in line
