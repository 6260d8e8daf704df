"""Near names: one slip is found among many names, and a flood of wrong names costs little."""

import pytest

from lorapick.core.near_names import AMONG, BURST, KEPT, LONGEST, MANY, MOST_KEPT, RATE, NearNames


class Known:
    """Names, and how often somebody wanted them all."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked = 0

    def __call__(self) -> tuple[str, ...]:
        self.asked += 1
        return self.names


@pytest.mark.parametrize(
    "wrong", ["team-1234-asistant", "taem-1234-assistant", "team-1234-assistant2", "Team-1234-assistant"]
)
def test_one_slip_is_found_among_many_names(wrong: str) -> None:
    known = Known(*(f"team-{n:04d}-assistant" for n in range(40 * AMONG)))
    assert NearNames().of(wrong, known, now=0.0)[0] == "team-1234-assistant"


def test_at_most_three_and_never_the_name_itself() -> None:
    near = NearNames().of("legal-v1", Known(*(f"legal-v{n}" for n in range(9))), now=0.0)
    assert len(near) == 3 and "legal-v1" not in near
    assert NearNames().of("quite different", Known("legal"), now=0.0) == []


def test_the_same_wrong_name_is_answered_from_memory_for_a_while() -> None:
    near, known = NearNames(), Known("legal")
    for step in range(100):
        assert near.of("lega", known, now=step * KEPT / 100) == ["legal"]
    assert known.asked == 1
    known.names = ("legal", "legacy")
    assert near.of("lega", known, now=KEPT) == ["legal", "legacy"]
    assert known.asked == 2


def test_different_wrong_names_are_looked_at_within_a_bound_of_work() -> None:
    near, known = NearNames(), Known("legal")
    found = [bool(near.of(f"lega{n}", known, now=0.0)) for n in range(3 * BURST)]
    assert found == [True] * BURST + [False] * (2 * BURST)
    assert near.of("lega0", known, now=0.0) == ["legal"], "what is known costs nothing"
    assert near.of("legax", known, now=1.0 / RATE) == ["legal"]
    assert near.of("legay", known, now=1.0 / RATE) == []
    seconds = 10
    before = known.asked
    for n in range(100 * seconds):
        near.of(f"{n}", known, now=1.0 + n / 100)
    assert known.asked - before <= seconds * RATE + BURST


def test_memory_is_bounded() -> None:
    near, known = NearNames(), Known("legal")
    for n in range(MOST_KEPT + 1):
        near.of(f"legal{n}", known, now=n * 0.01 * KEPT)
    asked = known.asked
    near.of(f"legal{MOST_KEPT}", known, now=MOST_KEPT * 0.01 * KEPT)
    assert (known.asked, len(near._found)) == (asked, MOST_KEPT)


def test_a_name_of_any_length_is_no_slip_of_the_pen() -> None:
    known = Known("legal")
    assert NearNames().of("l" * (LONGEST + 1), known, now=0.0) == []
    assert known.asked == 0


@pytest.mark.parametrize(
    "wrong", ["team-01234-asistant", "taem-01234-assistant", "team-01234-assistant2", "Team-01234-assistant"]
)
def test_one_slip_is_found_among_very_many_names_by_both_ends(wrong: str) -> None:
    known = Known(*(f"team-{n:05d}-assistant" for n in range(10 * MANY)))
    assert NearNames().of(wrong, known, now=0.0)[0] == "team-01234-assistant"


def test_of_very_many_names_only_whole_ones_are_given_and_never_the_name_itself() -> None:
    known = Known("adapter-9\nadapter-99", "adapter-9", *(f"adapter-{n:06d}" for n in range(2 * MANY)), "adapter-9")
    near = NearNames().of("adapter-9", known, now=0.0)
    assert near and "adapter-9" not in near
    assert all(name in known.names for name in near)
    for name in ("?", "", "\n", "adapter-000001\n\nadapter-000002"):
        assert NearNames().of(name, known, now=0.0) == []
    assert NearNames().of("a", Known(*(f"a\n{n}" for n in range(2 * MANY))), now=0.0) == []
