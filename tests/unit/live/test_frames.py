"""Frames laid over one another say what one whole frame says."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.live import frames
from lorapick.live.admin_views import CellLine, Frame
from lorapick.live.frames import MAX_ADAPTERS, MAX_DECISIONS, MAX_PODS, Frames
from lorapick.live.publish import AlertRow, DecisionRow, PodRow
from lorapick.model.picks import Belief
from lorapick.model.pods import Role
from lorapick.model.settings import AlertSettings, SloSettings
from lorapick.model.signals import AdapterSignals, FleetSignals, SignalPoint, Signals
from lorapick.model.tiers import Source, Tier
from lorapick.testing.published import ValuesPublished, small_fleet
from lorapick.testing.thrashing import ThrashingFleet


class Watcher:
    """Does what the page does with frames, and no more."""

    def __init__(self) -> None:
        self.seq = 0
        self.forget()

    def forget(self) -> None:
        self.names: list[str] = []
        self.pods: dict[str, Any] = {}
        self.cells: dict[str, Any] = {}
        self.host: dict[str, Any] = {}
        self.total = 0
        self.adapters: dict[str, Any] = {}
        self.points: list[Any] = []
        self.alerts: Any = None

    def take(self, frame: Frame) -> None:
        if frame.whole:
            self.forget()
        else:
            assert frame.seq == self.seq + 1
        self.seq = frame.seq
        self.names += frame.names
        for name in frame.pods_gone:
            del self.pods[name]
            self.cells.pop(name, None)
            self.host.pop(name, None)
        self.pods |= {pod.name: pod for pod in frame.pods}
        self.cells |= {pod: self.read(cells) for pod, cells in frame.cells.items()}
        self.host |= {pod: self.read(cells) for pod, cells in frame.host.items()}
        self.total = self.total if frame.adapters_total is None else frame.adapters_total
        for place in frame.adapters_gone:
            del self.adapters[self.names[place]]
        self.adapters |= {self.names[line.adapter]: msgspec.structs.astuple(line)[1:] for line in frame.adapters}
        self.points = [*self.points, *frame.points][-720:]
        self.alerts = self.alerts if frame.alerts is None else frame.alerts

    def read(self, cells: Sequence[CellLine]) -> set[Any]:
        return {(self.names[cell.adapter], *msgspec.structs.astuple(cell)[1:]) for cell in cells}

    def known(self) -> tuple[Any, ...]:
        memory = [{pod: cells for pod, cells in each.items() if cells} for each in (self.cells, self.host)]
        return (self.pods, memory, self.adapters, self.total, self.points, self.alerts)


def belief(pod: str, adapter: str, tier: Tier = Tier.GPU_IDLE) -> Belief:
    return Belief(pod=pod, adapter=adapter, tier=tier, since=1.0, source=Source.INFERRED)


def pod(name: str, *, queue: float = 0.0) -> PodRow:
    return PodRow(name=name, address="a", ready=True, max_queue=8, slots=4, queue_depth=queue)


def signals(*adapters: AdapterSignals) -> Signals:
    fleet = FleetSignals(requests_per_second=1.0, swaps_per_second=0.0)
    return Signals(now=1.0, fleet=fleet, adapters=adapters)


def asked(name: str, *, per_second: float = 1.0, evictions: int = 0) -> AdapterSignals:
    return AdapterSignals(adapter=name, requests_per_second=per_second, share=0.1, evictions=evictions, first_seen=0.0)


def large() -> ValuesPublished:
    published = small_fleet()
    pods = tuple(pod(f"p{i:04}") for i in range(MAX_PODS + 50))
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=pods)
    published.beliefs = [belief(each.name, "a", Tier.CPU) for each in pods]
    published.signals_now = signals(*(asked(f"a{i:05}", per_second=float(i)) for i in range(MAX_ADAPTERS + 9)))
    published.decision_rows = [
        DecisionRow(request_id=str(i), t=0.0, model="m", outcome="dispatched") for i in range(99)
    ]
    return published


def test_frame_keeps_its_bounds() -> None:
    shown = Frames(large()).advance()
    assert (len(shown.pods), shown.pods_total, len(shown.host)) == (MAX_PODS, MAX_PODS + 50, MAX_PODS)
    assert (len(shown.adapters), shown.adapters_total) == (MAX_ADAPTERS, MAX_ADAPTERS + 9)
    assert shown.names[shown.adapters[0].adapter] == f"a{MAX_ADAPTERS + 8:05}"
    assert len(shown.decisions) == MAX_DECISIONS


def test_frame_leaves_out_what_is_only_on_disk() -> None:
    published = small_fleet()
    published.beliefs = [belief("pod-02", tier.word, tier) for tier in Tier]
    shown = Frames(published).advance()
    told = {shown.names[cell.adapter]: cell.tier for cell in (*shown.cells["pod-02"], *shown.host["pod-02"])}
    assert told == {tier.word: int(tier) for tier in Tier if tier >= Tier.CPU}


def test_host_memory_is_looked_at_seldom() -> None:
    published = small_fleet()
    look = Frames(published)
    assert list(look.advance().host) == ["pod-05"]
    published.beliefs = [belief("pod-02", "cold", Tier.CPU), belief("pod-02", "hot")]
    told = [look.advance() for _ in range(frames.SELDOM)]
    assert [list(frame.cells) for frame in told] == [["pod-02"], [], [], [], []]
    assert [list(frame.host) for frame in told] == [[], ["pod-02", "pod-05"], [], [], []]


def test_roles_and_kept_slots_are_told() -> None:
    published = small_fleet()
    row = msgspec.structs.replace(pod("d"), role=Role.DECODE, reserved=1, prefill_tokens=7)
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=(row,))
    (line,) = Frames(published).advance().pods
    assert (line.role, line.reserved, line.prefill_tokens) == (Role.DECODE, 1, 7)


def test_whole_frames_say_where_alerts_begin_and_what_was_promised() -> None:
    published = small_fleet()
    bounds, slo = AlertSettings(swap_rate=0.3), SloSettings(latency_p95=2.0)
    published.fleet_now = msgspec.structs.replace(published.fleet_now, bounds=bounds, slo=slo)
    look = Frames(published)
    first, second, whole = look.advance(), look.advance(), look.whole()
    assert [(frame.bounds, frame.slo) for frame in (first, second, whole)] == [
        (bounds, slo),
        (None, None),
        (bounds, slo),
    ]


def test_who_comes_after_a_while_is_told_nothing_old() -> None:
    published = small_fleet()
    look = Frames(published)
    look.advance()
    published.signals_now = Signals(now=1.0, fleet=FleetSignals(requests_per_second=7.0, swaps_per_second=0.0))
    published.beliefs = [belief("pod-02", "cold", Tier.CPU)]
    assert look.advance().fleet.requests_per_second == 0.0, "signals are looked at by turns"
    later = msgspec.structs.replace(published.fleet_now, now=published.fleet_now.now + frames.GAP + 1.0)
    published.fleet_now = later
    after = look.advance()
    assert (after.whole, after.fleet.requests_per_second, list(after.host)) == (False, 7.0, ["pod-02", "pod-05"])


def test_nothing_new_is_nothing_said() -> None:
    look = Frames(small_fleet())
    look.advance()
    second = look.advance()
    assert (second.whole, second.pods, second.cells, second.names, second.decisions) == (False, (), {}, (), ())
    assert (second.adapters, second.points, second.alerts) == ((), (), None)
    assert len(msgspec.json.encode(second)) < 2500


def test_only_the_pod_that_differs_is_told() -> None:
    published = small_fleet()
    look = Frames(published)
    look.advance()
    published.beliefs = [*published.beliefs, belief("pod-05", "new")]
    first, *rest = published.fleet_now.pods
    changed = (msgspec.structs.replace(first, in_flight=7), *rest)
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=changed)
    second = look.advance()
    assert [line.name for line in second.pods] == ["pod-02"]
    assert list(second.cells) == ["pod-05"]
    assert second.names == ("new",)


def test_a_scrape_that_is_just_a_little_older_is_nothing_new() -> None:
    published = small_fleet()
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=(pod("p"),))
    look = Frames(published)
    ages = []
    for age in (None, 0.2, 1.9, 2.9, 3.4, 7.0):
        row = msgspec.structs.replace(pod("p"), scrape_age_s=age)
        published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=(row,))
        ages.append([line.scraped_s for line in look.advance().pods])
    assert ages == [[None], [0], [], [], [3], [7]]


def test_points_come_once() -> None:
    published = small_fleet()
    published.points = [SignalPoint(t=5.0 * i, swaps_per_second=0.1, requests_per_second=1.0) for i in range(4)]
    look = Frames(published)
    assert len(look.advance().points) == 4
    published.points = [*published.points[1:], SignalPoint(t=20.0, swaps_per_second=0.2, requests_per_second=1.0)]
    assert [point.t for point in look.advance().points] == [20.0]
    assert [point.t for point in look.whole().points] == [5.0, 10.0, 15.0, 20.0]
    assert look.advance().points == ()


def test_adapters_are_looked_at_seldom() -> None:
    published = small_fleet()
    published.signals_now = signals(asked("a"), asked("b", evictions=3))
    look = Frames(published)
    assert len(look.advance().adapters) == 2
    published.signals_now = signals(asked("b", evictions=4))
    told = [look.advance() for _ in range(frames.SELDOM)]
    assert [len(frame.adapters) for frame in told] == [0, 0, 0, 0, 1]
    assert len(told[-1].adapters_gone) == 1


def test_too_many_names_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_NAMES", 10)
    published = small_fleet()
    look, watcher = Frames(published), Watcher()
    wholes = []
    for turn in range(20):
        published.beliefs = [belief("pod-02", f"adapter-{turn}-{i}") for i in range(3)]
        frame = look.advance()
        watcher.take(frame)
        wholes.append(frame.whole)
    assert sum(wholes) > 3
    assert len(watcher.names) <= 13
    assert {name for name, *_ in watcher.cells["pod-02"]} == {f"adapter-19-{i}" for i in range(3)}


def test_whole_before_any_look_is_refused() -> None:
    with pytest.raises(ValueError, match="advance"):
        Frames(small_fleet()).whole()


def test_a_fleet_that_thrashes_is_followed() -> None:
    published = ThrashingFleet(pods=30, slots=4, adapters=100)
    look, watcher = Frames(published), Watcher()
    for _ in range(12):
        watcher.take(look.advance())
        late = Watcher()
        late.take(look.whole())
        assert late.known() == watcher.known()
        published.go_on(1.0)


FEW = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def fleets(draw: st.DrawFn) -> ValuesPublished:
    names = draw(st.lists(FEW, unique=True))
    cells = draw(st.dictionaries(st.tuples(FEW, FEW), st.sampled_from([*Tier])))
    adapters = draw(st.lists(FEW, unique=True))
    return ValuesPublished(
        fleet_now=msgspec.structs.replace(
            small_fleet().fleet_now, pods=tuple(pod(name, queue=draw(st.sampled_from([0.0, 1.0]))) for name in names)
        ),
        beliefs=[belief(where, who, tier) for (where, who), tier in cells.items()],
        signals_now=signals(*(asked(name, evictions=draw(st.integers(0, 2))) for name in sorted(adapters))),
        alert_rows=[AlertRow(name=name, since=0.0) for name in draw(st.lists(FEW, unique=True))],
    )


@settings(max_examples=30)
@given(st.lists(fleets(), min_size=1, max_size=8))
def test_whoever_follows_knows_what_who_comes_now_is_told(course: list[ValuesPublished]) -> None:
    published = small_fleet()
    look, watcher = Frames(published), Watcher()
    for fleet in course:
        published.__dict__.update(fleet.__dict__)
        watcher.take(msgspec.json.decode(msgspec.json.encode(look.advance()), type=Frame))
        late = Watcher()
        late.take(msgspec.json.decode(msgspec.json.encode(look.whole()), type=Frame))
        assert late.known() == watcher.known()
        assert list(watcher.pods) == [row.name for row in fleet.fleet_now.pods] or set(watcher.pods) == {
            row.name for row in fleet.fleet_now.pods
        }
