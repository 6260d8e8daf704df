"""Pins, events, declarations and aliases through the admin API, on a real driver; and what the views show of them."""

import json

import pytest
from admin_kit import Site, done, refused

from lorapick.live.changes.wishes import pinned
from lorapick.model import events
from lorapick.model.adapters import Adapter, AffinityGroup, Alias, AliasTarget, PinSpec, Trigger
from lorapick.model.placement import AdapterFacts
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import plain_pod
from lorapick.testing.site import ADAPTERS


class TestPins:
    async def test_a_pin_is_told_with_its_pods_and_shown_until_it_is_there(self):
        site = Site()
        found = done(await site.post("legal", "pin", pods=["a", "b"]))
        assert (found.understood, found.pods) == ("keep legal resident on a, b", ("a", "b"))
        site.clock.now += 2.0
        (row,) = (await site.placement()).pins
        assert (row.adapter, row.pods, row.missing) == ("legal", ("a", "b"), {"a": 2.0, "b": 2.0})
        site.work()
        placement = await site.placement()
        assert placement.pins[0].missing == {}
        assert 2.0 <= placement.longest_pin_missing_s <= 3.0, "the pods answered within the second after"
        assert [(row.pod, row.why, row.tier) for row in placement.wants] == [
            ("a", "pin", "gpu_idle"), ("b", "pin", "gpu_idle"),
        ]  # fmt: skip

    async def test_what_does_not_fit_is_refused_with_the_arithmetic(self):
        site = Site(plain_pod("a", max_loras=1))
        done(await site.post("legal", "pin", replicas=1))
        found = refused(await site.post("medical", "pin", pods=["a"]), 409, "pin_refused")
        assert found.detail.startswith("medical cannot be pinned on a: legal would lose its place")
        assert "it has 1 slot for 2 pins: medical, legal" in found.detail
        assert [*site.driver.fleet.state.pins] == ["legal"]

    async def test_pins_that_leave_less_than_the_others_need_are_warned_of_with_the_arithmetic(self):
        site = Site(plain_pod("a", max_loras=1), plain_pod("b", max_loras=2))
        courses = site.driver.fleet.state.signals.courses
        for name in ("legal", "medical", "support"):
            courses.arrived(name, now=site.clock.now)
        assert done(await site.post("legal", "pin", pods=["b"])).notes == ()
        first, second = done(await site.post("legal", "pin", pods=["a", "b"])).notes[1:]
        assert first.startswith(
            "warning: pins take 2 of 3 slots, so 1 is left for the other 2 adapters asked for in the last 10 minutes "
            "(2 > 3 - 2 = 1)"
        )
        assert "unpin" in first
        assert second == "warning: no slot is left for others on a"

    async def test_the_same_pin_again_and_another_one(self):
        site = Site()
        done(await site.post("legal", "pin", replicas=1))
        assert done(await site.post("legal", "pin", replicas=1), 200).understood == "legal is pinned on 1 pod already"
        found = done(await site.post("legal", "pin", selector={"zone": "west"}, reserve=True))
        assert found.understood == "keep legal resident on all pods with zone=west, which take pins only"
        assert found.notes[0] == "was pinned on 1 pod before"
        assert done(await site.post("legal", "unpin")).understood == "legal is pinned no more"
        assert done(await site.post("legal", "unpin"), 200).understood == "legal is not pinned"

    def test_a_pin_in_words(self):
        assert pinned(PinSpec(replicas=2, prefill_replicas=1)) == "on 2 pods, and on 1 to prefill"
        assert pinned(PinSpec(prefill_replicas=3, reserve=True)) == "on 3 to prefill, which take pins only"

    async def test_pods_that_may_come(self):
        found = done(await Site().post("legal", "pin", selector={"tier": "gold"}))
        assert found.notes == ("no pod fits it now; it is loaded when one comes",)


TRIGGERS = (
    Trigger(event="tenant.login", preload="{tenant}", lasts=600.0),
    Trigger(event="document.uploaded", preload="medical", lasts=600.0),
    Trigger(event="document.uploaded", preload="{owner}", lasts=600.0),
)


class TestEvents:
    def site(self):
        return Site(settings=Settings(adapters=ADAPTERS, triggers=TRIGGERS))

    async def test_triggers_want_what_they_name(self):
        site = self.site()
        site.clock.now += 1.0
        answer = await site.ask("POST", "/v1/events", {"name": "tenant.login", "attributes": {"tenant": "legal"}})
        found = done(answer)
        assert found.understood == "tenant.login: load legal for a while"
        assert len(found.pods) == 1
        assert site.told[-1] == events.TriggerFired(
            t=101.0, id=found.event, name="tenant.login", attributes={"tenant": "legal"}
        )

    async def test_one_of_two_triggers(self):
        found = done(await self.site().ask("POST", "/v1/events", {"name": "document.uploaded"}))
        assert found.understood == "document.uploaded: load medical for a while"
        assert 'needs the attribute "owner"' in found.notes[0]

    @pytest.mark.parametrize(
        ("name", "attributes", "status", "reason"),
        [
            ("tenant.logim", {}, 404, "unknown_event"),
            ("tenant.login", {"tenant": "nobody"}, 404, "adapter_unknown"),
            ("tenant.login", {}, 422, "missing_attribute"),
            ("tenant.login", {"tenant": "a b"}, 422, "bad_name"),
        ],
    )
    async def test_what_loads_nothing_is_told_why(self, name, attributes, status, reason):
        answer = await self.site().ask("POST", "/v1/events", {"name": name, "attributes": attributes})
        assert refused(answer, status, reason).detail


class TestDeclaring:
    async def test_an_adapter_is_declared_registered_changed_and_retired(self):
        site = Site()
        found = done(await site.ask("PUT", "/v1/adapters/tax@1", {"source": "/adapters/tax", "pin": {"replicas": 1}}))
        assert found.understood == "declare tax@1, and keep it resident on 1 pod"
        assert "write it into the configuration too" in found.notes[0]
        for _ in range(3):
            site.work()
        shown = (await site.ask("GET", "/v1/adapters/tax@1")).json()["adapter"]
        assert (shown["source"], shown["pin"]["replicas"], [*shown["wanted"].values()]) == ("/adapters/tax", 1, ["pin"])
        body = {"name": "tax@1", "source": "/adapters/tax", "rank": 8}
        assert done(await site.ask("PUT", "/v1/adapters/tax@1", body)).understood == "change tax@1"
        assert done(await site.ask("PUT", "/v1/adapters/tax@1", body), 200)
        assert done(await site.ask("DELETE", "/v1/adapters/tax@1")).understood == "retire tax@1"
        assert done(await site.ask("DELETE", "/v1/adapters/tax@1"), 200).understood.startswith("tax@1 is retired")
        for _ in range(3):
            site.work()
        refused(await site.ask("DELETE", "/v1/adapters/tax@1"), 404, "adapter_unknown")
        assert site.kinds()[0] == "AdapterDeclared"
        assert [kind for kind in site.kinds() if kind.startswith("Adapter")] == [
            "AdapterDeclared", "AdapterChanged", "AdapterRetired",
        ]  # fmt: skip

    async def test_other_weights_need_another_name(self):
        site = Site()
        found = refused(await site.ask("PUT", "/v1/adapters/legal", {"source": "/adapters/new"}), 409, "name_taken")
        assert "declare the new ones as legal@REVISION and move an alias" in found.detail
        done(await site.ask("PUT", "/v1/adapters/legal", {"source": "/adapters/legal", "sha256": "0" * 64}))

    async def test_what_its_files_told_is_no_change(self):
        site = Site()
        done(await site.ask("PUT", "/v1/adapters/tax", {"source": "/adapters/tax"}))
        site.say(events.AdapterChecked, adapter="tax", facts=AdapterFacts(rank=32))
        done(await site.ask("PUT", "/v1/adapters/tax", {"source": "/adapters/tax"}), 200)
        site.say(events.AdapterChecked, adapter="tax", problem="other weights", facts=AdapterFacts(rank=32))
        shown = (await site.ask("GET", "/v1/adapters/tax")).json()["adapter"]
        assert (shown["problem"], shown["facts"]["rank"], shown["rank"]) == ("other weights", 32, 32)
        assert "other weights" in refused(await site.post("tax", "load"), 409, "unfit").detail

    @pytest.mark.parametrize("name", ["base", "law"])
    async def test_names_that_mean_something_else(self, name):
        site = Site(settings=Settings(adapters=ADAPTERS, aliases=(alias("law", legal=1),)))
        refused(await site.ask("PUT", f"/v1/adapters/{name}", {"source": "/x"}), 409, "name_taken")

    async def test_a_pin_that_does_not_fit_declares_nothing(self):
        site = Site()
        body = {"source": "/x", "pin": {"replicas": 3}}
        found = refused(await site.ask("PUT", "/v1/adapters/tax", body), 409, "pin_refused")
        assert "it is to be on 3 pods" in found.detail
        assert site.kinds() == []

    async def test_it_says_what_the_configuration_would_say(self):
        site = Site()
        body = {"source": 7, "rnk": 3, "sha256": "12", "pin": {"replicas": 0}}
        found = refused(await site.ask("PUT", "/v1/adapters/a,b", body), 400, "body_invalid")
        assert {each.field: each.message for each in found.errors} == {
            "name": "must not contain a comma",
            "source": "must be text",
            "rnk": "unknown key",
            "sha256": "must be a SHA-256 in 64 hexadecimal digits",
            "pin.replicas": "must be a whole number of at least 1 and at most 100000",
        }
        assert next(each.remedy for each in found.errors if each.field == "rnk") == 'did you mean "rank"?'

    async def test_one_that_an_alias_leads_to_stays(self):
        site = Site(settings=Settings(adapters=ADAPTERS, aliases=(alias("law", legal=1),)))
        found = refused(await site.ask("DELETE", "/v1/adapters/legal"), 409, "in_use")
        assert found.detail == "the alias law leads to legal; move or clear the alias first"
        found = refused(await site.ask("POST", "/v1/adapters/law/load"), 404, "adapter_unknown")
        assert found.detail == "'law' is an alias; name an adapter that it leads to: legal"


def alias(name, **weights):
    return Alias(name=name, to=tuple(AliasTarget(adapter=each, weight=weight) for each, weight in weights.items()))


class TestAliases:
    async def test_one_that_moves(self):
        site = Site()
        body = {"to": [{"adapter": "legal", "weight": 9}, {"adapter": "medical"}]}
        found = done(await site.ask("PUT", "/v1/aliases/law", body))
        assert found.understood == "alias law is new: legal 0.9, medical 0.1"
        assert done(await site.ask("PUT", "/v1/aliases/law", body), 200).understood == "alias law: nothing changes"
        found = done(await site.ask("PUT", "/v1/aliases/law", {"to": [{"adapter": "medical"}]}))
        assert found.understood == "alias law: legal 0.9 -> 0, medical 0.1 -> 1; at least 0.9 of the sessions move"
        shown = (await site.ask("GET", "/v1/aliases")).json()
        assert shown == {"aliases": [{"name": "law", "to": [{"adapter": "medical", "weight": 1}]}]}
        assert done(await site.ask("DELETE", "/v1/aliases/law")).understood == "alias law is gone"
        refused(await site.ask("DELETE", "/v1/aliases/law"), 404, "alias_unknown")
        assert site.kinds() == ["AliasSet", "AliasSet", "AliasCleared"]

    async def test_what_it_must_not_be(self):
        site = Site(plain_pod("a", max_lora_rank=8))
        found = refused(
            await site.ask("PUT", "/v1/aliases/medical", {"to": [{"adapter": "legall"}, {"adapter": "support"}]}),
            409,
            "alias_refused",
        )
        assert [each.message for each in found.errors] == [
            "medical is the name of an adapter; give the alias a name of its own",
            "nobody knows an adapter legall; declare it first",
            "no pod can serve support now; see why with `lorapick adapters show support`",
        ]
        assert found.nearest == ("legal",)
        refused(await site.ask("PUT", "/v1/aliases/law", {"to": []}), 400, "body_invalid")


class TestViews:
    async def test_groups(self):
        group = AffinityGroup(name="documents", first="legal", then=("medical",))
        site = Site(settings=Settings(adapters=ADAPTERS, groups=(group,)))
        assert (await site.ask("GET", "/v1/groups")).json() == {
            "learning": False,
            "groups": [
                {
                    "first": "legal",
                    "then": [
                        {"adapter": "medical", "source": "declared", "group": "documents", "support": None,
                         "confidence": None}
                    ],
                }
            ],
        }  # fmt: skip

    async def test_budgets_plan_and_scores(self):
        site = Site(settings=Settings(adapters=ADAPTERS, placement=PlacementSettings(forecast="blend")))
        done(await site.post("legal", "load", pods=["a"]))
        shown = await site.placement()
        assert (shown.budgets.pods_loading, shown.budgets.loads_last_minute) == (1, {"a": 1})
        assert [(row.pod, row.kind, row.adapter, row.why) for row in shown.commands] == [
            ("a", "load", "legal", "operator")
        ]
        assert shown.forecast.uses == "blend"
        assert (shown.plan.on, shown.plan.version) == (False, 0)

    async def test_forecasts_are_scored_on_what_happened(self):
        site = Site(settings=Settings(adapters=ADAPTERS, placement=PlacementSettings(forecast="last_hour")))
        for number in range(4):
            site.say(events.RequestArrived, request=Request(id=f"r{number}", model="legal"))
            site.driver.ended(f"r{number}", Outcome.SERVED, 200, None)
            site.work(300.0)
        scores = (await site.placement()).forecast.scores
        assert {score.model for score in scores} == {"last_hour", "seasonal", "blend"}
        assert all(score.requests > 0 and score.regret is not None for score in scores)

    async def test_looking_changes_nothing(self):
        site = Site()
        done(await site.post("legal", "pin", replicas=1))
        before = len(site.told)
        for path in ("/v1/placement", "/v1/groups", "/v1/aliases", "/v1/adapters", "/v1/adapters/legal"):
            assert (await site.ask("GET", path)).status_code == 200
        assert len(site.told) == before
        site.driver.fleet.check()


class TestPlans:
    @pytest.mark.parametrize("by_load", ["off", "auto"])
    async def test_a_plan_says_what_would_move_and_moves_nothing(self, by_load):
        settings = Settings(adapters=ADAPTERS, placement=PlacementSettings(replicas=by_load))
        site = Site(settings=settings)
        site.driver.on_problem = lambda _: None
        for number in range(40):
            site.clock.now += 0.25
            site.say(events.RequestArrived, request=Request(id=f"r{number}", model=("legal", "medical")[number % 2]))
            site.driver.ended(f"r{number}", Outcome.SERVED, 200, None)
        site.hear()
        done(await site.post("support", "pin", pods=["a"]))
        before = site.kinds(), [*site.given]
        answer = await site.ask("POST", "/v1/placement/plan", {"replicas": "auto", "solver": "rendezvous"})
        found = json.loads(answer.content)
        assert (answer.status_code, found["solver"], found["pods"], found["adapters"]) == (200, "rendezvous", 2, 2)
        assert {move["adapter"] for move in found["moves"]} == {"legal", "medical"}
        assert all(move["why"] for move in found["moves"])
        assert (site.kinds(), site.given) == before  # but for ticks: the solver takes its time
        site.driver.fleet.check()

    async def test_by_flow_it_has_costs(self):
        site = Site()
        site.say(events.RequestArrived, request=Request(id="r", model="legal"))
        found = (await site.ask("POST", "/v1/placement/plan", {})).json()
        assert found["solver"] == "flow"
        assert found["cost_s"] == pytest.approx(sum(found["costs"].values()))


async def test_the_last_pods_that_know_a_name_keep_it_when_nobody_could_give_it_back():
    site = Site(settings=Settings(adapters=(Adapter(name="bare", declared=True),)))
    found = refused(await site.post("bare", "unload"), 409, "in_use")
    assert found.detail == (
        "nobody knows a source of bare: it could be loaded neither on a, b again nor elsewhere; declare it with one"
    )
    done(await site.post("bare", "unload", pods=["a"]))
