"""What changed, in words: who came when, whose traffic they took."""

from pictures_kit import findings, healthy

from lorapick.core.doctor.findings import Urgency
from lorapick.model.shifts import Shift, ShiftKind, ShiftPair

NEW = tuple(f"{number:04x}" for number in range(20))
PAIRS = tuple(
    ShiftPair(old=f"a{number:02}", new=name, before=2.0, old_now=1.6, new_now=0.4) for number, name in enumerate(NEW)
)


def shift(kind, **fields):
    return Shift(kind=kind, since=9_000.0, new=NEW, **{"share": 0.18, "lost": 0.178, "evidence": 120.4, **fields})


def test_a_split_names_both_sides_the_time_and_the_pairs():
    split = shift(ShiftKind.SPLIT, pairs=PAIRS, taken=0.21)
    found = findings(healthy(shifts=(split,)))["split"]
    assert found.what == (
        "since 12:30 UTC 20 adapters that nobody asked for before (0000, 0001, 0002, 0003 and 16 more) take 18 % of "
        "the traffic; 20 others lost as much: this looks like a split of those (an A/B test, or a rollout under way)"
    )
    assert found.arithmetic[:3] == (
        "gained 18 %, lost 18 % of all requests; of these the new ones have 21 % now",
        "evidence 120 nats against chance and new traffic on top; 6 are asked for",
        "a00 2/s before: now 1.6/s, and 0000 0.4/s",
    )
    assert found.arithmetic[-1] == "and 10 pairs more"
    assert (found.urgency, found.adapters) == (Urgency.WARN, NEW)


def test_a_replacement_is_no_test():
    found = findings(healthy(shifts=(shift(ShiftKind.REPLACED, pairs=PAIRS[:1], taken=1.0),)))["replaced"]
    assert found.urgency is Urgency.INFO
    assert "they replaced a00: a rollout, or new names for the same" in found.what
    assert "A/B" not in found.what


def test_new_traffic_is_no_split():
    found = findings(healthy(shifts=(shift(ShiftKind.ADDED),)))["added"]
    assert (found.urgency, "on top of the others" in found.what) == (Urgency.INFO, True)


def test_what_is_not_known_yet_is_said():
    one = Shift(kind=ShiftKind.UNCLEAR, since=9_000.0, new=("x",), share=0.02)
    found = findings(healthy(shifts=(one,)))["new_adapters"]
    assert found.what.startswith(
        "since 12:30 UTC 1 adapter that nobody asked for before (x) takes 2 % of the traffic; whether"
    )


def test_without_a_wall_clock_it_was_so_long_ago():
    found = findings(healthy(wall=None, shifts=(shift(ShiftKind.ADDED),)))["added"]
    assert found.what.startswith("since 17 min ago")
