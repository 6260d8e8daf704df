"""LoraAdapters become adapters, pins, groups and schedules; what came of them becomes status and Events."""

import asyncio

import pytest
from cluster_kit import POOL, Picker, adapter, pod, running, settings, until

from lorapick.live.kubernetes import cluster, statuses, wishes
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, AliasTarget, PinSpec
from lorapick.model.events import By, LoadSucceeded, PinCleared
from lorapick.testing.apiserver import ApiServer


@pytest.fixture
async def server(monkeypatch):
    monkeypatch.setattr(cluster, "STATUS_EVERY", 0.05)
    monkeypatch.setattr(cluster, "PASS_EVERY", 0.05)
    async with ApiServer().running() as found:
        found.kinds.add("inferencemodelrewrites.llm-d.ai")
        await found.put("inferencepools", POOL)
        for number in range(2):
            await found.put("pods", pod(f"p{number}", f"10.0.0.{number + 1}"))
        yield found


def condition(server, name: str, kind: str) -> tuple[str, str]:
    listed = server.get("loraadapters", name).get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"]) for each in listed if each["type"] == kind), ("", ""))


async def test_an_adapter_is_declared_pinned_and_taken_back(server):
    await server.put("loraadapters", adapter("sql", replicas=2, baseModel="llama", rank=16))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "sql" in picker.state.pins)
        found = picker.state.adapters["sql"]
        assert (found.source, found.base_model, found.rank) == ("/adapters/sql", "llama", 16)
        assert picker.state.pins["sql"] == PinSpec(replicas=2)
        await server.merge("loraadapters", "sql", patch={"spec": {"replicas": 1}})
        await until(lambda: picker.state.pins["sql"] == PinSpec(replicas=1))
        await server.merge("loraadapters", "sql", patch={"spec": {"replicas": 0}})
        await until(lambda: "sql" not in picker.state.pins)
        await server.delete("loraadapters", "sql")
        await until(lambda: "sql" not in picker.state.adapters)


async def test_status_says_what_is_so(server):
    await server.put("loraadapters", adapter("sql", replicas=1))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: condition(server, "sql", "Placed") == ("False", "Waiting"))
        assert condition(server, "sql", "Accepted") == ("True", "Accepted")
        status = server.get("loraadapters", "sql")["status"]
        assert (status["replicas"], status["desiredReplicas"], status["observedGeneration"]) == (0, 1, 1)
        await until(lambda: picker.pods)
        state = picker.state
        state.residency.registry.add(state.columns.row_of["p0-rank-0"], "sql")
        picker.driver.submit(
            lambda t, i: LoadSucceeded(t=t, id=i, pod="p0-rank-0", adapter="sql", by=By.CONTROLLER, seconds=0.1)
        )
        await until(lambda: condition(server, "sql", "Placed") == ("True", "Loaded"))
        status = server.get("loraadapters", "sql")["status"]
        assert (status["replicas"], status["pods"]) == (1, ["p0-rank-0"])
        assert condition(server, "sql", "Degraded") == ("False", "AsExpected")
        await until(lambda: [each["reason"] for each in server.all("events")] == ["Waiting", "Loaded"])
        assert server.all("events")[0]["involvedObject"]["name"] == "sql"
        before = len(server.requests)
        await asyncio.sleep(0.3)
        assert not [method for method, _ in server.requests[before:] if method == "PATCH"]


async def test_what_cannot_be_read_says_so_in_its_status(server):
    await server.put("loraadapters", adapter("bad", replicas=-1, nonsense=True))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: condition(server, "bad", "Accepted") == ("False", "Invalid"))
        message = server.get("loraadapters", "bad")["status"]["conditions"][0]["message"]
        assert "replicas: must be a whole number" in message
        assert "nonsense: unknown key" in message
        assert "bad" not in picker.state.adapters
        await until(lambda: [each["type"] for each in server.all("events")] == ["Warning", "Warning"])


async def test_a_change_that_cannot_be_read_leaves_what_was(server):
    await server.put("loraadapters", adapter("sql", replicas=1))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "sql" in picker.state.pins)
        await server.merge("loraadapters", "sql", patch={"spec": {"rank": "sixteen"}})
        await until(lambda: condition(server, "sql", "Degraded") == ("True", "Invalid"))
        assert picker.state.pins["sql"] == PinSpec(replicas=1)
        await server.merge("loraadapters", "sql", patch={"spec": {"rank": 16}})
        await until(lambda: condition(server, "sql", "Degraded") == ("False", "AsExpected"))


async def test_a_pin_that_does_not_fit_is_told_and_fits_when_pods_come(server):
    await server.put("loraadapters", adapter("sql", replicas=7))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.report() and condition(server, "sql", "Degraded") == ("True", "PinDoesNotFit"))
        assert condition(server, "sql", "Accepted") == ("True", "Accepted")
        for number in range(2, 7):
            await server.put("pods", pod(f"p{number}", f"10.0.0.{number + 1}"))
        await until(lambda: picker.report() and condition(server, "sql", "Degraded") == ("False", "AsExpected"))


async def test_of_two_objects_for_one_adapter_the_older_counts(server):
    await server.put("loraadapters", adapter("first", adapterName="shared"))
    await server.put("loraadapters", adapter("a-later", adapterName="shared"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: condition(server, "a-later", "Accepted") == ("False", "NameTaken"))
        assert picker.state.adapters["shared"].source == "/adapters/first"
        await until(picker.report)
        await server.delete("loraadapters", "first")
        await until(lambda: condition(server, "a-later", "Accepted") == ("True", "Accepted"))


async def test_groups_and_schedules_come_and_go_and_nothing_else_changes(server):
    schedule = {"cron": "0 8 * * mon-fri", "timezone": "UTC", "for": "1h"}
    base = settings(
        aliases=(Alias(name="kept", to=(AliasTarget(adapter="x"),)),), adapters=(Adapter(name="x", declared=True),)
    )
    async with running(Picker(server, base)) as picker:
        await until(lambda: picker.pods)
        moved = Alias(name="kept", to=(AliasTarget(adapter="y"),))
        picker.driver.fleet.state.aliases["kept"] = moved
        await server.put("loraadapters", adapter("sql", then=["chart"], schedules=[schedule]))
        await until(lambda: picker.state.settings.groups)
        assert picker.state.settings.groups == (AffinityGroup(name="sql", first="sql", then=("chart",)),)
        (found,) = picker.state.settings.schedules
        assert (found.adapters, found.lasts) == (("sql",), 3600.0)
        assert picker.state.aliases == {"kept": moved}
        await server.delete("loraadapters", "sql")
        await until(lambda: not picker.state.settings.groups)
        assert picker.state.settings.schedules == ()
        assert "x" in picker.state.adapters


async def test_what_somebody_else_took_away_comes_back(server):
    await server.put("loraadapters", adapter("sql", replicas=1))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "sql" in picker.state.pins)
        picker.driver.submit(lambda t, i: PinCleared(t=t, id=i, adapter="sql"))
        assert "sql" not in picker.state.pins
        await until(lambda: "sql" in picker.state.pins)


async def test_what_the_configuration_says_under_the_same_name_is_said_again(server):
    base = settings(
        adapters=(Adapter(name="sql", source="/old", declared=True), Adapter(name="x", declared=True)),
        aliases=(Alias(name="q", to=(AliasTarget(adapter="x"),)),),
    )
    rule = {"matches": [{"model": {"value": "q"}}], "targets": [{"modelRewrite": "sql"}]}
    async with running(Picker(server, base)) as picker:
        await until(picker.report)
        await server.put("loraadapters", adapter("sql"))
        await server.put("inferencemodelrewrites.llm-d.ai", {"metadata": {"name": "r"}, "spec": {"rules": [rule]}})
        await until(lambda: picker.state.adapters["sql"].source == "/adapters/sql")
        await until(lambda: picker.state.aliases["q"].to[0].adapter == "sql")
        await server.delete("inferencemodelrewrites.llm-d.ai", "r")
        await server.delete("loraadapters", "sql")
        await until(lambda: picker.state.aliases["q"].to[0].adapter == "x")
        await until(lambda: picker.state.adapters["sql"].source == "/old")


async def test_a_restart_loses_nothing(server):
    await server.put("loraadapters", adapter("sql", replicas=2))
    for name in ("one", "two"):
        async with running(Picker(server, settings(), name=name)) as picker:
            await until(lambda: picker.state.pins.get("sql") == PinSpec(replicas=2))
            await until(lambda: len(picker.pods) == 2)


async def test_many_adapters_are_declared_in_pieces(server, monkeypatch):
    monkeypatch.setattr(wishes, "SPENT_AT_ONCE", 0.0)
    for number in range(5):
        await server.put("loraadapters", adapter(f"a{number}"))
    monkeypatch.setattr(cluster, "PASS_EVERY", 3600.0)
    async with running(Picker(server, settings())) as picker:
        await until(lambda: len(picker.state.adapters) == 5)


def test_events_have_a_budget():
    budget = statuses.Budget(2, 60.0)
    assert [budget.take(0.0), budget.take(1.0), budget.take(2.0)] == [True, True, False]
    assert budget.take(60.5)


async def test_who_may_not_look_at_adapters_is_told_and_serves(server, caplog):
    server.refuse["loraadapters"] = 403
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "must allow get, list and watch" in caplog.text and picker.pods)
