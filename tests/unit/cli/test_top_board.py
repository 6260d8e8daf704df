"""What `lorapick top` knows: frames laid one over another are what a whole frame says."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.cli.top_board import Board
from lorapick.live.frames import Frames
from lorapick.live.publish import AlertRow, DecisionRow
from lorapick.model.picks import Belief
from lorapick.model.signals import AdapterSignals, FleetSignals, SignalPoint, Signals
from lorapick.model.tiers import Source, Tier
from lorapick.testing.published import ValuesPublished, small_fleet

PODS = ("pod-02", "pod-05", "pod-07")
NAMES = ("legal", "code", "acme/x@1")

beliefs = st.lists(
    st.builds(
        Belief,
        pod=st.sampled_from(PODS),
        adapter=st.sampled_from(NAMES),
        tier=st.sampled_from([Tier.CPU, Tier.LOADING, Tier.GPU_IDLE, Tier.GPU_SERVING]),
        since=st.sampled_from([1.0, 2.0]),
        source=st.just(Source.INFERRED),
    ),
    max_size=6,
    unique_by=lambda belief: (belief.pod, belief.adapter),
)
signals = st.lists(
    st.builds(
        AdapterSignals,
        adapter=st.sampled_from(NAMES),
        requests_per_second=st.sampled_from([0.5, 2.0]),
        share=st.just(0.5),
        first_seen=st.just(1.0),
    ),
    max_size=3,
    unique_by=lambda each: each.adapter,
)
looks = st.tuples(
    st.sets(st.sampled_from(PODS)),
    beliefs,
    signals,
    st.lists(st.sampled_from(["swap_rate", "latency"]), unique=True),
    st.booleans(),
)


def look_at(published: ValuesPublished, look: tuple, number: int) -> None:
    here, believed, adapters, alerts, decided = look
    everybody = small_fleet().fleet_now.pods
    pods = tuple(pod for pod in everybody if pod.name in here)
    now = 100.0 + number
    published.fleet_now = msgspec.structs.replace(published.fleet_now, now=now, pods=pods)
    published.beliefs = [belief for belief in believed if belief.pod in here]
    fleet = FleetSignals(requests_per_second=1.0, swaps_per_second=0.1)
    published.signals_now = Signals(now=now, fleet=fleet, adapters=tuple(adapters))
    published.alert_rows = [AlertRow(name=name, since=1.0) for name in alerts]
    published.points = [*published.points, SignalPoint(t=now, swaps_per_second=0.1, requests_per_second=1.0)]
    if decided:
        row = DecisionRow(request_id=f"r{number % 3}", t=now, model="legal", outcome="held")
        kept = [each for each in published.decision_rows if each.request_id != row.request_id]
        published.decision_rows = [row, *kept]


def known(board: Board) -> object:
    """Everything, with names in place of numbers."""
    cells = {
        pod: {(board.name(line.adapter), line.tier, line.since) for line in board.in_memory(pod)} for pod in board.pods
    }
    adapters = {board.name(number): line.requests_per_second for number, line in board.adapters.items()}
    return set(board.pods.values()), cells, adapters, board.points, board.decisions, board.alerts


@settings(max_examples=40)
@given(st.lists(looks, min_size=1, max_size=8))
def test_frames_laid_one_over_another_are_what_the_whole_says(course: list[tuple]) -> None:
    published = small_fleet()
    published.decision_rows = []
    feed, board = Frames(published), Board()
    for number, look in enumerate(course):
        look_at(published, look, number)
        assert board.lay(feed.advance())
        anew = Board()
        assert anew.lay(feed.whole())
        assert known(board) == known(anew)


def test_a_missing_frame_is_noticed() -> None:
    feed, board = Frames(small_fleet()), Board()
    first, second, third = feed.advance(), feed.advance(), feed.advance()
    assert not board.lay(second), "the whole one is missing"
    assert board.lay(first)
    assert not board.lay(third)
    assert board.frame is first
    assert board.lay(feed.whole())


def test_a_number_without_a_name_is_shown_as_such() -> None:
    assert Board().name(7) == "#7"
