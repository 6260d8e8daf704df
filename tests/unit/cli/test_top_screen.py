"""The screen of `lorapick top`: it fits, it says everything without colour, and it obeys nobody's escape sequences."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from lorapick.cli.top_board import Board
from lorapick.cli.top_rows import ORDERS, adapter_lines, fit, pod_lines
from lorapick.cli.top_screen import View, screen, sparkline
from lorapick.live.frames import Frames
from lorapick.live.publish import AlertRow, DecisionRow, PodRow
from lorapick.model.picks import Belief
from lorapick.model.pods import Role
from lorapick.model.signals import AdapterSignals, FleetSignals, PodSignals, SignalPoint, Signals
from lorapick.model.tiers import Source, Tier
from lorapick.testing.published import ValuesPublished, small_fleet

ADMIN = "http://127.0.0.1:9091"


def thrashing() -> ValuesPublished:
    published = small_fleet()
    fleet = FleetSignals(
        requests_per_second=12.0, swaps_per_second=0.51, hit_ratio=0.6, believed_hit_ratio=0.7, latency_p95=3.2,
        useful_share=0.23, slots=12, slots_used=8, active_adapters=20, mean_residency=41.0, waiting=3,
        critical_queues=1,
    )  # fmt: skip
    pod = PodSignals(
        pod="pod-02", swaps_per_second=0.63, loads_per_second=0.7, evictions_per_second=0.5, useful_share=0.23,
        hit_ratio=0.5, mean_residency=41.0,
    )  # fmt: skip
    adapters = (
        AdapterSignals(adapter="legal-assistant-v2-of-a-tenant", requests_per_second=3.0, share=0.4, first_seen=1.0),
        AdapterSignals(
            adapter="acme/code@7", requests_per_second=1.0, share=0.1, evictions=12, loads=14, mean_residency=40.0,
            first_seen=1.0,
        ),
    )  # fmt: skip
    published.signals_now = Signals(now=100.0, fleet=fleet, pods=(pod,), adapters=adapters)
    published.alert_rows = [
        AlertRow(name="swap_rate", since=40.0, facts={"pod": "pod-02", "swaps_per_second": 0.63}),
        AlertRow(name="thrash", since=70.0, severity="page", facts={"p95_seconds": 3.2}),
    ]
    published.points = [
        SignalPoint(t=5.0 * i, swaps_per_second=i / 40, requests_per_second=1.0, latency_p95=i / 10) for i in range(20)
    ]
    return published


def board_of(published: ValuesPublished) -> Board:
    board = Board()
    assert board.lay(Frames(published).advance())
    return board


def shown(published: ValuesPublished, *, width: int = 80, height: int = 40, **view: object) -> list[str]:
    lines = screen(board_of(published), View(admin=ADMIN, **view), width=width, height=height)
    return [line.plain for line in lines]


def test_everything_is_there_in_eighty_columns() -> None:
    lines = shown(thrashing())
    assert lines[:10] == [
        "lorapick top  http://127.0.0.1:9091  weighted  up 100 s  2/3 pods ready",
        "thrash: 0.51 swaps/s per pod, adapters stay 41 s, 23 % of busy time is",
        "inference, P95 3.2 s",
        "req/s 12.0  P95 3.2 s  TTFT P95 -  swaps/s/pod 0.51  hits 60 % (believed 70 %)",
        "useful 23 %  adapters/slots 20/12  stays 41 s  loading 0  held 3  full queues 1",
        "15 min: swaps ▁▁▁▂▃▃▃▄▅▅▆▆▇▇██  P95 ▁▁▁▂▃▃▃▄▅▅▆▆▇▇██  useful                 ",
        "PAGE thrash for 30 s  /runbooks/thrash  p95_seconds=3.2",
        "WARN swap_rate for 60 s  /runbooks/swap_rate  pod=pod-02 swaps_per_second=0.63",
        "POD     QUEUE SWAP/s USEFUL  HITS  STAYS  SLOTS",
        "pod-07  stale: refused  ....",
    ]
    assert lines[10:] == [
        "pod-02    3/8   0.63    23%   50%    41s  LS.. L acme/code@7 0.1s S legal-assis…",
        "pod-05    0/8   0.00      -     -      -  .... H legal-assistant-v2 50s",
        "1-3 of 3 by trouble  S serving I idle L loading H host * pinned . free",
        "HOTTEST              req/s  hits    P95 | MOST EVICTED         out loads  stays",
        "legal-assistant-v2…   3.00     -      - | acme/code@7           12    14    40s",
        "acme/code@7           1.00     -      - | ",
        "LAST DECISIONS",
        "0.5 s  req-3            legal -> pod-02 (gpu_serving)",
        "0.8 s  req-2            acme/code@7 held (held_for_load)",
        "1 s    req-1            legal -> pod-02 (gpu_serving)",
        "q quit  p pause  s sort  a alerts  ↑↓ PgUp PgDn scroll",
    ]


def many_facts() -> ValuesPublished:
    published = thrashing()
    pods = ", ".join(f"pod-{number:02}" for number in range(30))
    facts = {"harm": "latency_p95", "pods": pods, "worst_swaps_per_second": 0.63}
    published.alert_rows = [
        AlertRow(name="thrash", since=70.0, severity="page", facts=facts),
        *(AlertRow(name=f"alert-{n}", since=40.0, facts={"number": n}) for n in range(6)),
    ]
    return published


def test_facts_of_an_alert_wrap_to_a_bound() -> None:
    lines = shown(many_facts())
    at = next(index for index, line in enumerate(lines) if line.startswith("PAGE thrash"))
    assert lines[at] == "PAGE thrash for 30 s  /runbooks/thrash  harm=latency_p95 pods=pod-00, pod-01,"
    assert lines[at + 1].startswith("  pod-02, pod-03, ")
    assert lines[at + 2].startswith("  pod-")
    assert lines[at + 2].endswith("…")
    assert lines[at + 3].startswith("WARN alert-0")
    wide = shown(many_facts(), width=400)
    assert any(line.startswith("PAGE thrash") and "worst_swaps_per_second=0.63" in line for line in wide)


def test_alerts_alone_have_all_their_facts() -> None:
    lines = shown(many_facts(), alerts=True)
    at = lines.index("PAGE thrash for 30 s  /runbooks/thrash")
    assert lines[at + 1] == "  harm: latency_p95"
    assert lines[at + 2].startswith("  pods: pod-00, ")
    assert " ".join(lines).count("pod-") == 30, "those of the fact, and no line of a pod"
    assert "  worst swaps per second: 0.63" in lines
    assert [line for line in lines if line.startswith("WARN")][-1].startswith("WARN alert-5")
    assert lines[-1] == "  number: 5"
    calm = thrashing()
    calm.alert_rows = []
    assert shown(calm, alerts=True)[-1] == "no alert stands"


@given(
    alerts=st.booleans(),
    width=st.integers(20, 250),
    height=st.integers(1, 80),
    order=st.sampled_from(ORDERS),
    first=st.integers(0, 10**9),
    keys=st.booleans(),
)
def test_it_fits_every_terminal(width: int, height: int, **view: object) -> None:
    lines = shown(many_facts(), width=width, height=height, **view)
    assert 1 <= len(lines) <= height
    assert all(cell_len(line) <= width for line in lines)


def test_a_large_fleet_is_scrolled_the_worst_first() -> None:
    published = thrashing()
    pods = tuple(
        PodRow(name=f"p{n:03}", address="a", ready=n != 150, queue_depth=n % 7, max_queue=8, slots=32)
        for n in range(200)
    )
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=pods)
    published.beliefs = [
        Belief(pod=pod.name, adapter=f"a{n:04}", tier=Tier.GPU_IDLE, since=float(n), source=Source.INFERRED)
        for number, pod in enumerate(pods)
        for n in range(number, number + 5)
    ]
    lines = shown(published, height=50)
    assert len(lines) == 50
    rows = [line for line in lines if line.startswith("p") and line[1:4].isdigit()]
    assert (rows[0][:4], rows[1][:4]) == ("p150", "p006")
    assert "I5 .27" in rows[1], "32 slots are counted, not drawn"
    view = View(admin=ADMIN, first=10**9)
    last = [line.plain for line in screen(board_of(published), view, width=80, height=50)]
    assert f"{view.first + 1}-200 of 200 by trouble" in " ".join(last)


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_shows_every_pod(order: str) -> None:
    lines = pod_lines(board_of(thrashing()), order=order, width=80, rows=slice(0, 9))
    assert sorted(line.plain[:6] for line in lines) == ["pod-02", "pod-05", "pod-07"]


def test_a_pod_that_does_not_do_both_says_its_part() -> None:
    published = small_fleet()
    first, *others = published.fleet_now.pods
    first = msgspec.structs.replace(first, role=Role.DECODE, reserved=2)
    published.fleet_now = msgspec.structs.replace(published.fleet_now, pods=(first, *others))
    lines = shown(published, width=120)
    assert [line for line in lines if "decode 2 kept" in line] == [line for line in lines if line.startswith("pod-02")]


def test_names_of_others_cannot_write_to_the_terminal() -> None:
    published = thrashing()
    evil = "\x1b[2J\x1b]0;x\x07夜"
    published.decision_rows = [DecisionRow(request_id=evil, t=99.0, model=evil, outcome="rejected")]
    published.beliefs = [Belief(pod="pod-02", adapter=evil, tier=Tier.CPU, since=0.0, source=Source.INFERRED)]
    published.alert_rows = [AlertRow(name="queues", since=1.0, facts={"pod": evil})]
    text = "\n".join(shown(published, width=200))
    assert "?[2J" in text and "夜" in text
    assert "\x1b" not in text and "\x07" not in text


def test_a_pause_trouble_and_many_alerts_are_said() -> None:
    published = thrashing()
    published.alert_rows = [AlertRow(name=f"alert-{n}", since=1.0) for n in range(7)]
    lines = shown(published, paused=True, trouble="no picker answers")
    assert lines[0].startswith("lorapick top  PAUSED  ")
    assert lines[3] == "NO NEWS, what follows is old: no picker answers"
    assert "and 3 more: alert-4, alert-5, alert-6" in lines
    before = screen(Board(), View(admin=ADMIN), width=80, height=24)
    assert [line.plain for line in before] == ["lorapick top: waiting for http://127.0.0.1:9091"]


def test_lines_over_time() -> None:
    assert sparkline([]) == ""
    assert sparkline([None, 0.0, 1.0, 2.0]) == " ▁▅█"
    assert sparkline([0.0, 0.0]) == "▁▁"
    assert len(sparkline([float(n) for n in range(720)])) == 16


def test_names_are_cut_with_an_ellipsis() -> None:
    assert [fit("legal", 8), fit("legal-v2", 4), fit("夜夜夜", 4)] == ["legal   ", "leg…", "夜 …"]


def test_adapters_in_a_wide_terminal_keep_their_names() -> None:
    (first, _) = adapter_lines(board_of(thrashing()), most=5, width=140)
    assert first.plain.startswith("legal-assistant-v2-of-a-tenant ")
