"""A picker follows its cluster: pods, drains, faults, names at run time."""

import asyncio
import logging

import pytest
from cluster_kit import POOL, Picker, adapter, pod, running, settings, until

from lorapick.model.adapters import Alias, AliasTarget
from lorapick.model.events import PodAppeared, PodDraining, PodGone
from lorapick.testing.apiserver import ApiServer


@pytest.fixture
async def server():
    async with ApiServer().running() as found:
        found.kinds |= {"inferenceobjectives.llm-d.ai", "inferencemodelrewrites.llm-d.ai"}
        yield found


async def test_the_pools_pods_get_requests_as_they_come_and_go(server):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    await server.put("pods", pod("other", "10.0.0.9", app="db"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        assert picker.pods == {"a-rank-0": False}
        assert picker.driver.any_endpoint() == "10.0.0.1:8000"
        await server.put("pods", pod("b", "10.0.0.2", ready=False))
        await server.put("pods", pod("c", "10.0.0.3"))
        await until(lambda: "c-rank-0" in picker.pods)
        assert "b-rank-0" not in picker.pods
        await server.put("pods", pod("b", "10.0.0.2"))
        await until(lambda: "b-rank-0" in picker.pods)
        await server.put("pods", pod("b", "10.0.0.2", ready=False))
        await until(lambda: "b-rank-0" not in picker.pods)
        await server.put("pods", pod("d", "10.0.0.4"))
        await until(lambda: "d-rank-0" in picker.pods)
        await server.put("pods", pod("d", "10.0.0.4", app="other"))
        await until(lambda: "d-rank-0" not in picker.pods)
        await server.delete("pods", "a")
        await until(lambda: "a-rank-0" not in picker.pods)
        assert picker.pods == {"c-rank-0": False}


async def test_a_pod_that_is_deleted_drains_until_it_is_gone(server):
    await server.put("inferencepools", POOL)
    for number in range(2):
        await server.put("pods", pod(f"p{number}", f"10.0.0.{number + 1}"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: len(picker.pods) == 2)
        await server.begin_delete("p0", grace=600)
        await until(lambda: picker.pods["p0-rank-0"])
        assert {picker.driver.any_endpoint() for _ in range(4)} == {"10.0.0.2:8000"}
        await server.delete("pods", "p0")
        await until(lambda: len(picker.pods) == 1)
        kinds = [type(each) for each in picker.events if isinstance(each, PodAppeared | PodDraining | PodGone)]
        assert kinds == [PodAppeared, PodAppeared, PodDraining, PodGone]


async def test_a_grace_period_that_is_over_ends_a_pod_that_nobody_removes(server):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        await server.begin_delete("a", grace=-3600)
        await until(lambda: not picker.pods)


async def test_a_pod_of_the_same_name_elsewhere_is_another_process(server, caplog):
    await server.put("inferencepools", {**POOL, "spec": {**POOL["spec"], "appProtocol": "kubernetes.io/h2c"}})
    await server.put("pods", pod("vllm-0", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        assert "over HTTP/1.1" in caplog.text
        await server.delete("pods", "vllm-0")
        await server.put("pods", pod("vllm-0", "10.0.0.2", uid="another"))
        await until(lambda: picker.driver.any_endpoint() == "10.0.0.2:8000")
        assert picker.pods == {"vllm-0-rank-0": False}


async def test_two_pods_of_one_address_are_one_endpoint(server):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("old", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        await server.begin_delete("old", grace=600)
        await server.put("pods", pod("new", "10.0.0.1"))
        await until(lambda: picker.pods == {"new-rank-0": False})


async def test_many_pods_come_in_pages(server):
    await server.put("inferencepools", POOL)
    for number in range(600):
        await server.put("pods", pod(f"p{number}", f"10.0.{number // 250}.{number % 250 + 1}"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: len(picker.pods) == 600)
        assert len([path for _, path in server.requests if "/pods?" in path and "limit=500" in path]) == 2


async def test_one_endpoint_for_each_port(server):
    await server.put(
        "inferencepools", {**POOL, "spec": {**POOL["spec"], "targetPorts": [{"number": 8000}, {"number": 8001}]}}
    )
    await server.put("pods", pod("a", "10.0.0.1", annotations={"llm-d.ai/active-ports": "8001"}))
    await server.put("pods", pod("b", "fd00::2"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: len(picker.pods) == 3)
        found = {each.name: each.address for _, each in picker.state.columns.live()}
        assert found == {
            "a-rank-1": "10.0.0.1:8001",
            "b-rank-0": "[fd00::2]:8000",
            "b-rank-1": "[fd00::2]:8001",
        }


async def test_selectors_of_the_configuration_need_no_pool(server):
    await server.put("pods", pod("a", "10.0.0.1"))
    wanted = {"pool": None, "selector": {"app": "vllm"}, "target_ports": (8080,)}
    async with running(Picker(server, settings(cluster=wanted))) as picker:
        await until(lambda: picker.pods)
        assert picker.driver.any_endpoint() == "10.0.0.1:8080"
    assert not any("inferencepools" in path for _, path in server.requests)


async def test_a_pool_that_comes_late_changes_and_goes(server, caplog):
    await server.put("pods", pod("a", "10.0.0.1"))
    await server.put("pods", pod("b", "10.0.0.2", app="sglang"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "there is no such InferencePool" in caplog.text)
        assert picker.pods == {}
        await server.put("inferencepools", POOL)
        await until(lambda: picker.pods == {"a-rank-0": False})
        other = {**POOL, "spec": {**POOL["spec"], "selector": {"matchLabels": {"app": "sglang"}}}}
        await server.put("inferencepools", other)
        await until(lambda: picker.pods == {"b-rank-0": False})
        await server.put("inferencepools", {**other, "spec": {**other["spec"], "targetPorts": []}})
        await until(lambda: "must have 1 to 8 ports" in caplog.text)
        assert picker.pods == {"b-rank-0": False}
        assert picker.metric("lorapick_kubernetes_malformed_total", kind="inferencepools") == 1
        await server.delete("inferencepools", "llama")
        await until(lambda: picker.pods == {})


async def test_while_the_api_server_is_away_the_last_known_stay_and_it_says_so(server, caplog):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        assert picker.metric("lorapick_kubernetes_up", kind="pods") == 1
        await server.stop()
        await until(lambda: picker.metric("lorapick_kubernetes_up", kind="pods") == 0)
        assert picker.pods == {"a-rank-0": False}
        assert "pods: the last 1 known stay" in caplog.text
        assert "cannot be reached" in picker.cluster.problems["pods"]
        await server.start()
        await server.put("pods", pod("b", "10.0.0.2"))
        await until(lambda: len(picker.pods) == 2)
        await until(lambda: not picker.cluster.problems)
        assert picker.metric("lorapick_kubernetes_up", kind="pods") == 1
        assert not [each for each in picker.events if isinstance(each, PodGone)]


async def test_a_watch_that_breaks_goes_on_from_where_it_was(server):
    await server.put("inferencepools", POOL)
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.metric("lorapick_kubernetes_lists_total", kind="pods"))
        for number in range(3):
            await server.disconnect()
            await server.put("pods", pod(f"p{number}", f"10.0.0.{number + 1}"))
        await until(lambda: len(picker.pods) == 3)
        assert picker.metric("lorapick_kubernetes_lists_total", kind="pods") == 1


async def test_a_watch_that_is_too_old_lists_anew(server, caplog):
    caplog.set_level(logging.INFO)
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        await server.stop()
        await server.put("pods", pod("b", "10.0.0.2"))
        await server.delete("pods", "a")
        await server.compact()
        await server.start()
        await until(lambda: picker.pods == {"b-rank-0": False})
        assert picker.metric("lorapick_kubernetes_relists_total", kind="pods") == 1


async def test_who_may_not_look_says_what_is_missing(server, caplog):
    server.refuse["pods"] = 403
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "must allow get, list and watch" in caplog.text)
        server.refuse.clear()
        await until(lambda: picker.pods)


async def test_objectives_and_rewrites_take_effect_at_run_time(server, caplog):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    for name in ("one", "two"):
        await server.put("loraadapters", adapter(name))
    priority = {"metadata": {"name": "batch"}, "spec": {"priority": -5, "poolRef": {"name": "llama"}}}
    await server.put("inferenceobjectives.llm-d.ai", priority)
    other = {"metadata": {"name": "vip"}, "spec": {"priority": 9, "poolRef": {"name": "another"}}}
    await server.put("inferenceobjectives.llm-d.ai", other)
    rule = {
        "matches": [{"model": {"value": "sql"}}],
        "targets": [{"modelRewrite": "one", "weight": 90}, {"modelRewrite": "two", "weight": 10}],
    }
    rewrite = {"metadata": {"name": "sql"}, "spec": {"poolRef": {"name": "llama"}, "rules": [rule]}}
    await server.put("inferencemodelrewrites.llm-d.ai", rewrite)
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.priorities == {"batch": -5})
        await until(lambda: "sql" in picker.state.aliases)
        assert picker.state.aliases["sql"].to == (
            AliasTarget(adapter="one", weight=90),
            AliasTarget(adapter="two", weight=10),
        )
        await server.put("inferenceobjectives.llm-d.ai", {**priority, "spec": {"priority": "high"}})
        await until(lambda: "what it said before stays" in caplog.text)
        assert picker.priorities == {"batch": -5}
        await server.delete("inferenceobjectives.llm-d.ai", "batch")
        await until(lambda: picker.priorities == {})
        await server.delete("inferencemodelrewrites.llm-d.ai", "sql")
        await until(lambda: not picker.state.aliases)


async def test_a_rewrite_waits_for_its_adapter(server, caplog):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    rule = {"matches": [{"model": {"value": "sql"}}], "targets": [{"modelRewrite": "late"}]}
    await server.put("inferencemodelrewrites.llm-d.ai", {"metadata": {"name": "r"}, "spec": {"rules": [rule]}})
    async with running(Picker(server, settings())) as picker:
        await until(lambda: "nobody knows an adapter late" in caplog.text)
        await server.put("loraadapters", adapter("late"))
        await until(lambda: picker.state.aliases == {"sql": Alias(name="sql", to=(AliasTarget(adapter="late"),))})


async def test_malformed_pods_are_told_and_keep_what_they_had(server, caplog):
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1", annotations={"lorapick.dev/max-loras": "7"}))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        await server.put("pods", pod("a", "10.0.0.1", annotations={"lorapick.dev/max-loras": "many"}))
        await until(lambda: "lorapick.dev/max-loras: must be a whole number" in caplog.text)
        (found,) = [each for _, each in picker.state.columns.live()]
        assert found.limits.max_loras == 7
        assert picker.metric("lorapick_kubernetes_malformed_total", kind="pods") == 1


async def test_kinds_that_are_not_installed_are_no_problem(server):
    server.kinds -= {"loraadapters", "inferenceobjectives.llm-d.ai"}
    await server.put("inferencepools", POOL)
    await server.put("pods", pod("a", "10.0.0.1"))
    async with running(Picker(server, settings())) as picker:
        await until(lambda: picker.pods)
        await asyncio.sleep(0.1)
        assert picker.cluster.problems == {}
        assert picker.metric("lorapick_kubernetes_up", kind="loraadapters.lorapick.dev") == 1
