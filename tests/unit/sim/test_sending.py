"""Requests that one pod prefills and another decodes, worked out by hand; and what is lost on the way.

Steps take 10 ms, a prompt token 1 ms, an adapter from disk into a free slot 90 ms; KV takes 1 ms and 1 ms per token.
"""

import msgspec
import pytest
from sim_helpers import ask, config, world

from lorapick.live.podserver.handover_counts import Prefilled, Pulled
from lorapick.model.disaggregation import DisaggregationSettings, LinkSpeeds
from lorapick.model.effects import Dispatch
from lorapick.model.events import PrefillEnded
from lorapick.model.picks import Pick
from lorapick.model.pods import Role
from lorapick.model.requests import Outcome, Target
from lorapick.pod.values import SwapMode
from lorapick.sim.conservation import check
from lorapick.sim.deadlock import Deadlock
from lorapick.sim.sending import ERROR, UNKNOWN, UNREACHABLE
from lorapick.sim.tally import Tally
from lorapick.sim.world import World

LINKS = LinkSpeeds(same_node=1e6, same_zone=1e6, elsewhere=1e5)
SPLIT = DisaggregationSettings(kv_bytes_per_token=100, links=LINKS, link_latency=0.001)


class Watch(Tally):
    """A tally that also remembers when each request ended, and how."""

    def __init__(self) -> None:
        super().__init__(start=0.0, window=100.0)
        self.ends: dict[str, tuple[Outcome, float]] = {}

    def ended(self, request_id: str, outcome: Outcome, *, now: float) -> None:
        super().ended(request_id, outcome, now=now)
        self.ends[request_id] = (outcome, round(now, 9))

    @property
    def handed_over(self):
        """What became of all that two pods were chosen for."""
        return {str(what): count for window in self.windows for what, count in window.handed.items()}


class Pairs(World):
    """A world in which the answer to every arrival is made by hand: pod-1 prefills, pod-2 decodes."""

    fallbacks: tuple[str, ...] = ()

    def _hear(self, event):
        if type(event).__name__ == "RequestArrived":
            self.kernel.at(event.t, self._by_hand, argument=event.request.id, priority=4)
        super()._hear(event)

    def _by_hand(self, request_id):
        def target(name):
            return Target(pod=name, address=name)

        adapter = self.open[request_id].adapter
        pick = Pick(request_id=request_id, adapter=adapter, pod="pod-2", score=0.0, tier=None)
        dispatch = Dispatch(
            cause=0,
            request_id=request_id,
            target=target("pod-2"),
            fallbacks=tuple(target(name) for name in self.fallbacks),
            pick=pick,
            prefill=target("pod-1"),
        )
        self._sending.dispatch(dispatch)


def pair(*, pods=2, fallbacks=(), pod=None, zone=None, tells_starts=False):
    """A world of pods of which the first prefills, and its tally. The core holds everything, and is not asked."""
    watch = Watch()
    made, _ = world(
        tally=watch,
        pods=pods,
        pod=pod or config(slots=2, mode=SwapMode.INLINE, prefill=0.001),
        tells_starts=tells_starts,
    )
    roles = [Role.PREFILL, *[Role.DECODE] * (pods - 1)]
    setup = made.setup._replace(
        settings=msgspec.structs.replace(made.setup.settings, disaggregation=SPLIT),
        pods=[
            (msgspec.structs.replace(each, role=role, zone=zone), own)
            for (each, own), role in zip(made.setup.pods, roles, strict=True)
        ],
    )
    found = Pairs(setup, observer=watch, seed=7)
    found.check_every = None
    found.fallbacks = fallbacks
    # What the core itself would send stays where it is.
    found._actions[Dispatch] = lambda _: None
    return found, watch


def heard(made):
    """Names of events that the core hears, with their times in ms."""
    found = []
    made.heard = lambda event, _: found.append((round(event.t * 1e3, 6), type(event).__name__))
    return found


def test_one_pod_computes_the_prompt_the_kv_goes_over_and_the_other_answers():
    made, watch = pair()
    events = heard(made)
    made.run([ask(0.0, "x", prompt=40)])
    # 90 of load, 40 of prefill, a step; 1 + 40 of transfer; 90 of load on the other pod, ten steps.
    assert watch.ends == {"x@0": (Outcome.SERVED, 0.09 + 0.04 + 0.01 + 0.041 + 0.09 + 0.1)}
    assert (181.0, "PrefillEnded") in events
    window = watch.windows[0]
    assert (window.loads, window.misses, window.prefill_misses, window.served) == (2, 1, 1, 1)
    assert window.ttft.total == pytest.approx(0.281)
    assert window.tpot.total == pytest.approx(0.01)
    assert window.transfer.total == pytest.approx(0.041)
    assert watch.handed_over == {"begun": 1, "fetched": 1}
    assert made.pods["pod-1"].engine.stats(made.kernel.now).kv_usage == 0.0
    check(made, watch)


def test_a_zone_of_both_is_nearer_and_what_is_cached_is_not_sent():
    made, watch = pair(zone="z")
    blocks = (1, 2)
    arrivals = [
        msgspec.structs.replace(ask(t, None, name=f"r{t:g}", prompt=40, output=1), blocks=blocks) for t in (0.0, 1.0)
    ]
    made.run(arrivals)
    # 1 ms and 0.1 for each of 40 tokens; then 8 tokens, as 32 are there from before.
    assert watch.windows[0].transfer.total == pytest.approx(0.001 + 0.004 + 0.001 + 0.0008)
    assert watch.ends["r0"] == (Outcome.SERVED, pytest.approx(0.05 + 0.005 + 0.01))
    assert watch.ends["r1"] == (Outcome.SERVED, pytest.approx(1.0 + 0.008 + 0.01 + 0.0018 + 0.01))


def test_a_prefill_does_not_hold_up_the_answers_of_the_other_pod():
    made, watch = pair()
    made.run([ask(0.0, None, name="first", prompt=10, output=100), ask(0.5, None, name="second", prompt=300, output=1)])
    # 20 ms to the end of its prefill, 11 for the KV, 100 steps; 300 ms of another one's prompt cost it nothing.
    assert watch.ends["first"] == (Outcome.SERVED, 0.02 + 0.011 + 1.0)
    assert watch.ends["second"][0] is Outcome.SERVED


def test_answers_are_told_of_from_the_pod_that_decodes():
    made, _ = pair(tells_starts=True)
    events = heard(made)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert [
        each for each in events if each[1] in ("PrefillEnded", "ResponseStarted", "BodyStarted", "RequestEnded")
    ] == [
        (91, "PrefillEnded"),
        (91, "ResponseStarted"),
        (101, "BodyStarted"),
        (191, "RequestEnded"),
    ]


# -- what is lost


def dies(made, name, t):
    made.kernel.at(t, lambda _: made.restart_pod(name, down=10.0), priority=3)


@pytest.mark.parametrize("when", ["during the prefill", "during the handover"])
def test_without_the_pod_that_prefills_the_other_one_does_it_all(when):
    made, watch = pair()
    events, said = heard(made), []
    hear = made.heard
    made.heard = lambda event, effects: (said.append(event), hear(event, effects))
    died = 0.02 if when == "during the prefill" else 0.07
    dies(made, "pod-1", died)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(died + 0.04 + 0.1))}
    assert watch.handed_over == {"begun": 1, "alone": 1}
    assert [name for _, name in events].count("PrefillEnded") == 1  # told once, well or badly
    assert [event.why for event in said if isinstance(event, PrefillEnded)] == [Prefilled.UNREACHABLE]


def test_a_pod_that_is_not_there_prefills_nothing():
    made, watch = pair()
    made.pods["pod-1"].alive = False
    made.run([ask(0.0, None, name="r", prompt=40)], until=1.0)
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(0.14))}
    assert watch.handed_over == {"begun": 1, "alone": 1}


def test_a_pod_that_fails_a_prefill_or_refuses_it_prefills_nothing():
    made, watch = pair()
    made.pods["pod-1"].engine.unregister("x")
    broken = [(each.pod, each.engine.config) for each in made.pods.values()]
    made.run([ask(0.0, "x", prompt=40)])
    assert watch.ends == {"x@0": (Outcome.SERVED, pytest.approx(0.09 + 0.04 + 0.1))}
    setup = made.setup._replace(
        pods=[
            (broken[0][0], msgspec.structs.replace(broken[0][1], load_failure_share=1.0)),
            broken[1],
        ],
        draws=lambda _: lambda: 0.0,
    )
    failing = Pairs(setup, observer=(again := Watch()), seed=1)
    failing.check_every = None
    failing._actions[Dispatch] = lambda _: None
    failing.run([ask(0.0, "x", prompt=40)])
    assert again.ends["x@0"] == (Outcome.SERVED, pytest.approx(0.02 + 0.09 + 0.04 + 0.1))
    assert again.handed_over == {"begun": 1, "alone": 1}


def test_kv_that_is_given_up_before_it_has_come_is_computed_again():
    short = msgspec.structs.replace(config(slots=2, mode=SwapMode.INLINE, prefill=0.001), kv_hold=0.02)
    made, watch = pair(pod=short)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(0.05 + 0.02 + 0.04 + 0.1))}
    assert watch.handed_over == {"begun": 1, "alone": 1}


@pytest.mark.parametrize(("died", "arrives"), [(0.02, 0.091), (0.07, 0.07 + 0.041)])
def test_without_the_pod_that_decodes_a_fallback_takes_the_kv(died, arrives):
    made, watch = pair(pods=3, fallbacks=("pod-3",))
    events = heard(made)
    dies(made, "pod-2", died)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(arrives + 0.1))}
    assert watch.handed_over == {"begun": 1, "moved": 1, "fetched": 1}
    assert (died * 1e3, "RequestDispatched") in events


@pytest.mark.parametrize(("died", "arrives"), [(0.02, 0.05), (0.07, 0.07)])
def test_without_a_fallback_the_pod_that_prefilled_decodes(died, arrives):
    made, watch = pair()
    dies(made, "pod-2", died)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(arrives + 0.1))}
    assert watch.handed_over == {"begun": 1, "at_prefill": 1, "fetched": 1}


def test_when_both_are_lost_the_request_fails():
    made, watch = pair()
    dies(made, "pod-2", 0.02)
    dies(made, "pod-1", 0.03)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert watch.ends == {"r": (Outcome.FAILED, 0.03)}


def test_a_pod_that_dies_while_it_decodes_fails_what_it_has():
    made, watch = pair(pods=3, fallbacks=("pod-3",))
    dies(made, "pod-2", 0.15)
    made.run([ask(0.0, None, name="r", prompt=40)])
    assert watch.ends == {"r": (Outcome.FAILED, 0.15)}
    assert watch.handed_over == {"begun": 1, "fetched": 1}


def test_a_fallback_at_the_begin_is_prefilled_for_too():
    made, watch = pair(pods=3, fallbacks=("pod-3",))
    made.pods["pod-2"].alive = False
    made.run([ask(0.0, None, name="r", prompt=40)], until=1.0)
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(0.191))}
    assert watch.handed_over == {"begun": 1, "fetched": 1}


def test_a_fallback_that_prefills_does_both():
    made, watch = pair(fallbacks=("pod-1",))
    made.pods["pod-2"].alive = False
    made.run([ask(0.0, None, name="r", prompt=40)], until=1.0)
    assert watch.ends == {"r": (Outcome.SERVED, pytest.approx(0.14))}


def test_a_handover_that_never_ends_is_a_deadlock():
    made, _ = pair()
    made.pods["pod-1"].engine.submit = lambda *_: None  # a broken stub: takes everything, does nothing
    with pytest.raises(Deadlock, match="r "):
        made.run([ask(0.0, None, name="r", prompt=40)])
    late, _ = pair()
    late.pods["pod-1"].engine.submit = lambda *_: None
    with pytest.raises(Deadlock, match="neither held"):
        late.run([ask(0.0, None, name="r", prompt=40)], until=0.4)


def test_who_is_on_the_way_at_the_end_is_in_flight():
    for until in (0.03, 0.07, 0.12):
        made, watch = pair()
        made.run([ask(0.0, None, name="r", prompt=40)], until=until)
        assert watch.in_flight(0.0, 100.0) == 1


def test_why_a_pod_prefills_itself_is_said_in_the_words_of_sidecars():
    assert (UNREACHABLE, ERROR, UNKNOWN) == (Prefilled.UNREACHABLE, Prefilled.ERROR, Pulled.UNKNOWN)
