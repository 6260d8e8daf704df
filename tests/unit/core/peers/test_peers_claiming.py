"""Who asks before a load, who waits, and who does not."""

from peers_kit import answer, claims, picker

from lorapick.model import events
from lorapick.model.effects import ClaimLoad, Hold
from lorapick.model.pods import Role
from lorapick.model.reasons import Reason
from lorapick.model.settings import PickingSettings
from lorapick.testing.playbook import Playbook, plain_pod


def test_a_crowd_waits_for_one_answer_and_for_one_load():
    book = picker()
    book.arrive("legal")
    asked, held = book.effects
    assert isinstance(asked, ClaimLoad) and (asked.adapter, asked.pod, asked.claim) == ("legal", "a", 1)
    assert isinstance(held, Hold) and (held.reason, held.until) == (Reason.HELD_FOR_CLAIM, 0.05)
    book.arrive("legal")
    assert claims(book) == []
    assert answer(book, 1) == ["r1 -> a (disk) else b", "r2 -> a (loading) else b"]


def test_who_is_denied_follows_the_owner():
    book = picker()
    book.arrive("legal")
    assert answer(book, 1, granted=False, owner="two", pod="b") == ["r1 -> b (loading) else a"]
    assert book.arrive("legal") == ["r2 -> b (loading) else a"]
    assert book.fleet.state.tally.loads == 0


def test_what_some_pod_has_is_not_claimed_nor_are_requests_without_an_adapter():
    book = picker()
    book.arrive("base")
    assert claims(book) == []
    book.arrive("legal")
    answer(book, 1)
    book.wait(1.0)
    assert book.arrive("legal") == ["r3 -> b (gpu_serving) else a"]
    assert claims(book) == []


def test_the_pod_that_was_claimed_is_used_though_another_is_better_by_now():
    book = picker()
    book.arrive("legal")
    book.report("a", gpu_utilization=0.9)
    book.report("b", gpu_utilization=0.0)
    assert answer(book, 1) == ["r1 -> a (disk) else b"]


def test_others_are_told_when_it_must_be_another_pod():
    book = picker()
    book.arrive("legal")
    book.drain("a")
    assert answer(book, 1) == ["r1 -> b (disk)", "ClaimLoad"]
    (told,) = claims(book)
    assert (told.claim, told.pod) == (1, "b")
    assert answer(book, 1, pod="b") == []


def test_policies_that_do_not_follow_loads_do_not_ask():
    book = picker(picking=PickingSettings(policy="round-robin"))
    book.arrive("legal")
    assert claims(book) == []


def test_each_side_of_a_pair_is_claimed_by_itself():
    pods = [plain_pod("p", role=Role.PREFILL), plain_pod("d", role=Role.DECODE)]
    book = picker(pods=pods)
    for pod in ("p", "d"):
        book.report(pod)
    book.arrive("legal", prompt_tokens=4000)
    asked = claims(book)
    assert [(each.side.value, each.pod) for each in asked] == [("decode", "d"), ("prefill", "p")]
    assert answer(book, 1, pod="d") == []
    told = answer(book, 2, side=asked[1].side, pod="p")
    assert told[0].startswith("r1 -> d"), told


def test_without_peers_nobody_asks():
    book = Playbook(pods=["a"], adapters=["legal"])
    assert book.arrive("legal") == ["r1 -> a (disk)"]
    assert book.fleet.next_wakeup() is not None or not book.fleet.state.peers.on
    assert book.apply(events.PeersReached, up=False, why="x") == []
