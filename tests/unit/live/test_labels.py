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
    labels.promote(known=40)
    assert [labels.of(name) for name in names] == names


def test_busiest_come_first_and_equals_by_name() -> None:
    labels = AdapterLabels(3)
    labels.of("x"), labels.of("y")
    for name, times in (("rare", 1), ("b", ENOUGH), ("a", ENOUGH)):
        for _ in range(times):
            labels.of(name)
    labels.promote(known=5)
    assert [labels.of(name) for name in ("a", "b", "rare")] == ["a", OTHER, OTHER]


def test_looking_at_a_label_counts_nothing() -> None:
    labels = AdapterLabels(2)
    labels.of("a")
    for _ in range(ENOUGH):
        assert [labels.known(None), labels.known("a"), labels.known("b")] == [BASE, "a", OTHER]
    labels.promote(known=9)
    assert labels.known("b") == OTHER
    assert labels.room == 1


@given(
    limit=st.integers(1, 6),
    story=st.lists(st.one_of(st.none(), st.sampled_from("abcdefghij")), max_size=400),
    scrapes=st.sets(st.integers(0, 400), max_size=20),
)
def test_labels_are_few_and_never_change(limit: int, story: list[str | None], scrapes: set[int]) -> None:
    labels = AdapterLabels(limit)
    given_out: dict[str, str] = {}
    seen = Counter[str]()
    for at, adapter in enumerate(story):
        if at in scrapes:
            labels.promote(known=10)
        label = labels.of(adapter)
        seen[label] += 1
        if adapter is not None:
            assert label in (adapter, OTHER)
            if given_out.get(adapter) == adapter:
                assert label == adapter
            given_out[adapter] = label
    assert len(set(seen) - {BASE, OTHER}) <= limit
    assert seen.total() == len(story)
