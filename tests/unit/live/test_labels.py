"""Which adapters get a label of their own."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lorapick.live.labels import BASE, ENOUGH, OTHER, AdapterLabels


def test_base_model_takes_no_label() -> None:
    labels = AdapterLabels(1)
    assert [labels.of(None), labels.of("a"), labels.of("b")] == [BASE, "a", OTHER]


def test_small_fleet_names_all_at_the_next_scrape() -> None:
    labels = AdapterLabels(50)
    names = [f"a{n}" for n in range(40)]
    for name in names:
        labels.of(name)
    labels.look(40, now=0.0)
    assert [labels.of(name) for name in names] == names


def test_busiest_come_first_and_equals_by_name() -> None:
    labels = AdapterLabels(3)
    labels.of("x"), labels.of("y")
    for name, times in (("rare", 1), ("b", ENOUGH), ("a", ENOUGH)):
        for _ in range(times):
            labels.of(name)
    labels.look(5, now=0.0)
    assert [labels.of(name) for name in ("a", "b", "rare")] == ["a", OTHER, OTHER]


def test_looking_at_a_label_counts_nothing() -> None:
    labels = AdapterLabels(2)
    labels.of("a")
    for _ in range(ENOUGH):
        assert [labels.known(None), labels.known("a"), labels.known("b")] == [BASE, "a", OTHER]
    labels.look(9, now=0.0)
    assert labels.known("b") == OTHER
    assert labels.room == 1


def asked(labels: AdapterLabels, names: list[str], *, minutes: range, each: int = 5) -> list[str]:
    """So many requests a minute for each of them, with a look after each minute; names that lost their label."""
    lost = []
    for minute in minutes:
        for name in names * each:
            labels.of(name)
        lost += labels.look(60, now=60.0 * minute)
    return lost


def test_labels_follow_traffic_after_a_while() -> None:
    labels = AdapterLabels(50)
    tenants, experiments = [f"t{n:02}" for n in range(40)], [f"x{n:02}" for n in range(20)]
    assert asked(labels, tenants, minutes=range(60)) == []
    lost = asked(labels, experiments + tenants[:30], minutes=range(60, 75))
    assert lost == [], "those who stopped are not weak for long enough yet"
    assert {labels.known(name) for name in experiments} == {*experiments[:10], OTHER}
    lost = asked(labels, experiments + tenants[:30], minutes=range(75, 90))
    assert lost == tenants[30:]
    assert [labels.known(name) for name in experiments + tenants[:30]] == experiments + tenants[:30]
    assert {labels.still(name) for name in tenants[30:]} == {OTHER}
    assert (labels.still(BASE), labels.still(OTHER), labels.still("x00"), labels.room) == (BASE, OTHER, "x00", 0)


def test_neither_a_burst_nor_slightly_more_traffic_takes_a_label() -> None:
    labels = AdapterLabels(2)
    asked(labels, ["a", "b"], minutes=range(60), each=10)
    assert asked(labels, ["a", "b", "c"], minutes=range(60, 63), each=10) == []
    for _ in range(500):
        labels.of("c")
    assert asked(labels, ["a", "b"], minutes=range(63, 64), each=10) == [], "a burst"
    assert asked(labels, ["a", "b"], minutes=range(64, 180), each=10) == [], "it is over"
    assert asked(labels, ["a", "b", "c"], minutes=range(180, 300), each=10) == [], "as much as they have"


@given(
    limit=st.integers(1, 6),
    story=st.lists(st.one_of(st.none(), st.sampled_from("abcdefghij")), max_size=400),
    scrapes=st.sets(st.integers(0, 400), max_size=20),
)
def test_labels_are_few_and_change_only_at_looks(limit: int, story: list[str | None], scrapes: set[int]) -> None:
    labels = AdapterLabels(limit)
    given_out: dict[str, str] = {}
    seen = Counter[str]()
    for at, adapter in enumerate(story):
        if at in scrapes:
            lost = labels.look(10, now=400.0 * at)
            assert labels.room >= 0
            assert {labels.known(name) for name in lost} <= {OTHER}
            given_out = {name: label for name, label in given_out.items() if name not in lost}
        label = labels.of(adapter)
        seen[label] += 1
        if adapter is not None:
            assert label in (adapter, OTHER)
            if given_out.get(adapter) == adapter:
                assert label == adapter
            given_out[adapter] = label
        assert len({labels.known(name) for name in "abcdefghij"} - {OTHER}) <= limit
    assert seen.total() == len(story)
