"""Load, preload, unload and move through the admin API, on a real driver."""

import pytest
from admin_kit import Site, done, refused

from lorapick.model import events
from lorapick.model.pods import Engine, Role
from lorapick.model.requests import Request
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import plain_pod
from lorapick.testing.site import SETTINGS


def given(site):
    return [(type(command).__name__, command.pod) for command in site.given]


class TestLoading:
    async def test_a_load_goes_to_the_named_pod_at_once(self):
        site = Site()
        found = done(await site.post("legal", "load", pods=["b"]))
        assert (found.understood, found.pods, found.resident) == ("load legal on b, once", ("b",), ())
        assert given(site) == [("Load", "b")]
        assert site.told[-1] == events.LoadAsked(t=100.0, id=found.event, adapter="legal", pods=("b",))

    async def test_the_same_again_changes_nothing_before_and_after_it_is_there(self):
        site = Site()
        done(await site.post("acme/code@7", "load", replicas=2))
        found = done(await site.post("acme/code@7", "load", replicas=2), 200)
        assert found.understood == "acme/code@7 is being loaded on 2 pods, as was asked for 0 s ago"
        site.work()
        site.work()
        found = done(await site.post("acme/code@7", "load", replicas=2), 200)
        assert (found.understood, found.resident) == ("acme/code@7 is loaded on 2 pods already", ("a", "b"))
        assert site.kinds() == ["LoadAsked"]
        assert (await site.placement()).orders == ()

    async def test_a_body_may_be_left_out(self):
        site = Site()
        async with site.client() as client:
            answer = await client.post("/v1/adapters/legal/load")
        assert done(answer).understood == "load legal on 1 pod, once"

    async def test_a_selector_narrows_and_what_cannot_be_had_is_told(self):
        site = Site()
        found = done(await site.post("legal", "load", replicas=2, selector={"zone": "west"}))
        assert found.understood == "load legal on 2 pods with zone=west, once"
        assert (found.pods, found.notes) == (("a",), ("2 pods were asked for; 1 can hold it now",))

    async def test_a_new_order_takes_the_place_of_the_one_before(self):
        site = Site()
        first = done(await site.post("legal", "load", pods=["a"]))
        found = done(await site.post("legal", "load", pods=["b"]))
        assert found.notes[0] == f"takes the place of the order before, load {first.event}"

    async def test_what_the_guard_says_is_told(self):
        site = Site(heard=False)
        assert done(await site.post("legal", "load", pods=["a"])).notes == ("waits for pod a: away",)
        (refusal,) = (await site.placement()).refusals
        assert (refusal.pod, refusal.adapter, refusal.reason, refusal.why) == ("a", "legal", "away", "operator")

    async def test_a_preload_is_kept_and_extended(self):
        site = Site()
        found = done(await site.post("legal", "preload", replicas=1, selector={"zone": "east"}, for_="30m"))
        assert found.understood == "load legal on 1 pod with zone=east, and keep it for 1800 s"
        site.work(60.0)
        (order,) = (await site.placement()).orders
        assert (order.once, order.ends_in_s) == (False, 1740.0)
        done(await site.post("legal", "preload", replicas=1, selector={"zone": "east"}, for_="1800s"))
        (order,) = (await site.placement()).orders
        assert (order.ends_in_s, order.age_s) == (1800.0, 0.0)

    async def test_copies_on_one_side_are_none_on_the_other(self):
        decoding = [plain_pod(name, role=Role.DECODE) for name in ("a", "b")]
        prefilling = [plain_pod(name, role=Role.PREFILL) for name in ("c", "d")]
        site = Site(*decoding, *prefilling)
        done(await site.post("legal", "load", pods=["a", "b"]))
        site.work()
        site.work()
        found = done(await site.post("legal", "load", replicas=2))
        assert (found.understood, found.notes) == ("load legal on 2 pods, once", ())
        site.work()
        site.work()
        found = done(await site.post("legal", "load", replicas=2), 200)
        assert found.resident == ("a", "b", "c", "d")

    async def test_too_few_on_one_side_are_told(self):
        pods = [plain_pod("a", role=Role.DECODE), *(plain_pod(name, role=Role.PREFILL) for name in ("c", "d"))]
        found = done(await Site(*pods).post("legal", "load", replicas=2))
        assert found.notes == ("2 pods of those that decode were asked for; 1 can hold it now",)
        assert done(await Site(*pods).post("legal", "preload", replicas=1, for_="5m")).notes == ()


class TestUnloading:
    async def test_it_goes_once_nobody_uses_it(self):
        site = Site()
        done(await site.post("legal", "load", pods=["a"]))
        site.work()
        site.say(events.RequestArrived, request=Request(id="r", model="legal"))
        found = done(await site.post("legal", "unload", pods=["a"]))
        assert found.understood == "unload legal on a"
        assert found.notes == (
            "a unloads it when 1 requests for it have ended",
            "vLLM forgets the name only: the weights leave its memory when others need the place",
        )
        assert given(site) == []
        assert [(row.pod, row.adapter) for row in (await site.placement()).unloads] == [("a", "legal")]

    async def test_what_nobody_knows_needs_no_unload(self):
        site = Site()
        done(await site.post("legal", "unload"))
        site.work()
        site.work()
        assert done(await site.post("legal", "unload"), 200).understood == "nothing knows legal on all pods"

    async def test_a_pinned_one_would_come_back(self):
        site = Site()
        done(await site.post("legal", "pin", pods=["a"]))
        found = refused(await site.post("legal", "unload"), 409, "pinned")
        assert found.detail == "legal is pinned on a, so it would come back; unpin it first"
        done(await site.post("legal", "unload", pods=["b"]))


class TestMoving:
    async def test_there_first_then_away_from_here(self):
        site = Site()
        done(await site.post("legal", "load", pods=["a"]))
        site.work()
        found = done(await site.post("legal", "move", from_="a", to="b"))
        assert found.understood == "load legal on b, then unload it on a"
        assert given(site) == [("Load", "b")]
        (order,) = (await site.placement()).orders
        assert (order.pods, order.leaves) == (("b",), "a")
        site.work()
        assert given(site) == [("Unload", "a")]
        site.work()
        again = done(await site.post("legal", "move", from_="a", to="b"), 200)
        assert again.understood == "legal is on b, and not on a"

    async def test_from_where_it_is_not(self):
        site = Site()
        done(await site.post("legal", "unload"))
        site.work()
        site.work()
        found = refused(await site.post("legal", "move", from_="a", to="b"), 409, "not_there")
        assert found.detail == "legal is not on a, so it cannot leave it; it is in a slot of no pod"


class TestRefusals:
    @pytest.mark.parametrize(
        ("verb", "body"),
        [("load", {}), ("preload", {"for": "1m"}), ("unload", {}), ("pin", {"replicas": 1}), ("unpin", {}),
         ("move", {"from": "a", "to": "b"})],
    )  # fmt: skip
    async def test_a_stranger_is_told_whom_it_looks_like(self, verb, body):
        site = Site()
        found = refused(await site.ask("POST", f"/v1/adapters/legall/{verb}", body), 404, "adapter_unknown")
        assert found.nearest == ("legal",)
        assert site.kinds() == []

    @pytest.mark.parametrize(
        ("verb", "body"),
        [("load", {"pods": ["a1"]}), ("unload", {"pods": ["a1"]}), ("pin", {"pods": ["a", "a1"]}),
         ("move", {"from": "a1", "to": "b"}), ("move", {"from": "a", "to": "a1"})],
    )  # fmt: skip
    async def test_so_is_an_unknown_pod(self, verb, body):
        found = refused(await Site().ask("POST", f"/v1/adapters/legal/{verb}", body), 404, "pod_unknown")
        assert found.detail.startswith("no pod 'a1' among 2")

    @pytest.mark.parametrize(
        ("pod", "words"),
        [
            ({"max_lora_rank": 8}, "pod a: legal has rank 16; a takes 8 at most"),
            ({"base_model": "other"}, "pod a: legal is for the base model base; a serves other"),
            ({"engine": Engine.LORAX}, "pod a: lorax cannot be told to load over HTTP"),
        ],
    )
    async def test_where_it_can_never_be_is_told_at_once(self, pod, words):
        site = Site(plain_pod("a", **pod), plain_pod("b"))
        assert words in refused(await site.post("legal", "load", pods=["a"]), 409, "unfit").detail
        done(await site.post("legal", "load"))

    async def test_a_selector_that_nobody_has(self):
        found = refused(await Site().post("legal", "load", selector={"zone": "north"}), 409, "unfit")
        assert found.detail == "no pod has the labels zone=north; GET /v1/fleet lists the pods"

    async def test_where_placement_is_off(self):
        settings = Settings(adapters=SETTINGS.adapters, placement=PlacementSettings(enabled=False))
        site = Site(settings=settings)
        found = refused(await site.post("legal", "load"), 409, "placement_off")
        assert "placement.enabled is false" in found.detail
        assert done(await site.post("legal", "pin", replicas=1)).notes[0].startswith("placement.enabled is false")
