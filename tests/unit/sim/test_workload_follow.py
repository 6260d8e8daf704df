"""Pipelines."""

import pytest

from lorapick.sim.arrivals import Arrival
from lorapick.sim.workload.follow import Followers
from lorapick.sim.workload.spec import After, FixedLength, Flow, Follow, Poisson, Sizes, UniformLength, Workload
from lorapick.sim.workload.stream import adapter_names, arrivals

SIZES = Sizes(UniformLength(8, 512), FixedLength(7))
FLOW = Flow(name="f", adapters=("a", "x", None), process=Poisson(20.0), sizes=SIZES, tenant="t", priority=1)


def arrival(number, t, adapter="a"):
    return Arrival(t=t, id=f"f-{number}", adapter=adapter, prompt_tokens=100, output_tokens=9, session="s")


def test_followers_of_an_arrival_are_part_of_the_stream():
    follow = Follow(first="a", then="b", probability=0.4, after=After.ARRIVAL, delay=(1.0, 3.0))
    found = list(arrivals(Workload(flows=(FLOW,), follows=(follow,), until=500.0), seed=1))
    plain = list(arrivals(Workload(flows=(FLOW,), until=500.0), seed=1))
    assert [each for each in found if each.adapter != "b"] == plain
    assert [each.t for each in found] == sorted(each.t for each in found)
    first = {each.id: each for each in plain}
    followers = [each for each in found if each.adapter == "b"]
    assert len(followers) / sum(each.adapter == "a" for each in plain) == pytest.approx(0.4, abs=0.03)
    for each in followers:
        parent = first[each.id.removesuffix(".0")]
        assert parent.adapter == "a"
        assert 1.0 <= each.t - parent.t <= 3.0
        assert (each.prompt_tokens, each.output_tokens) == (parent.prompt_tokens, parent.output_tokens)
        assert (each.tenant, each.priority) == ("t", 1)
    delays = [each.t - first[each.id.removesuffix(".0")].t for each in followers]
    assert sum(delays) / len(delays) == pytest.approx(2.0, rel=0.03)


def test_followers_have_followers():
    follows = (
        Follow(first="a", then="b", after=After.ARRIVAL, delay=(1.0, 1.0)),
        Follow(first="b", then="c", after=After.ARRIVAL, delay=(0.0, 0.0)),
        Follow(first="b", then="d", after=After.ARRIVAL, delay=(2.0, 2.0), sizes=SIZES),
    )
    found = list(Followers(follows, seed=1).along([arrival(1, 0.0), arrival(2, 1.5, adapter="y")]))
    assert [(each.id, each.t, each.adapter) for each in found] == [
        ("f-1", 0.0, "a"),
        ("f-1.0", 1.0, "b"),
        ("f-1.0.1", 1.0, "c"),
        ("f-2", 1.5, "y"),
        ("f-1.0.2", 3.0, "d"),
    ]
    assert found[-1].output_tokens == 7
    assert found[-1].session == "s"


def test_followers_of_an_end_come_when_it_is_told():
    follows = (
        Follow(first="a", then="b", delay=(1.0, 2.0)),
        Follow(first="b", then="c", after=After.ARRIVAL, delay=(5.0, 5.0)),
    )
    followers = Followers(follows, seed=1)
    assert list(followers.along([arrival(1, 0.0)])) == [arrival(1, 0.0)]
    brought, third = followers.after_end(arrival(1, 0.0), 10.0)
    assert (brought.adapter, third.adapter) == ("b", "c")
    assert 11.0 <= brought.t <= 12.0
    assert third.t == brought.t + 5.0
    assert followers.after_end(third, 20.0) == []
    assert followers.after_end(arrival(3, 0.0, adapter=None), 20.0) == []


def test_what_follows_does_not_depend_on_the_order_of_ends():
    followers = Followers([Follow(first="a", then="b", probability=0.5, delay=(0.0, 9.0), sizes=SIZES)], seed=1)
    requests = [arrival(number, 0.0) for number in range(50)]
    told = {each.id: followers.after_end(each, 1.0) for each in requests}
    assert told == {each.id: followers.after_end(each, 1.0) for each in reversed(requests)}
    assert 10 < sum(map(len, told.values())) < 40


def test_the_end_of_the_run_and_the_count_hold_for_followers():
    follow = Follow(first="a", then="b", after=After.ARRIVAL, delay=(5.0, 5.0))
    found = list(arrivals(Workload(flows=(FLOW,), follows=(follow,), until=20.0), seed=1))
    assert max(each.t for each in found) < 20.0
    assert len(list(arrivals(Workload(flows=(FLOW,), follows=(follow,), count=100), seed=1))) == 100
    assert Followers([Follow(first="a", then="b")], seed=1, until=20.0).after_end(arrival(1, 0.0), 20.0) == []


def test_followers_are_among_the_adapters():
    workload = Workload(flows=(FLOW,), follows=(Follow(first="a", then="b"),))
    assert adapter_names(workload) == ("a", "x", "b")
