"""Who waits goes when a pod has room again, oldest first."""

from msgspec.structs import replace

from lorapick.core.releasing import release_waiting
from lorapick.testing.playbook import Playbook, plain_pod


def full() -> Playbook:
    """One pod with one slot, in use; two wait."""
    one = plain_pod("p1")
    book = Playbook(pods=(replace(one, limits=replace(one.limits, max_loras=1)),), adapters=("a", "b", "c"))
    book.arrive("a", stream=True)
    book.arrive("b", stream=True)
    book.arrive("c", stream=True)
    return book


def sent(lines: list[str]) -> list[str]:
    return [line.split()[0] for line in lines if line[:1] == "r" and "waits" not in line]


def test_one_after_the_other_as_slots_fall_free():
    book = full()
    assert sent(book.end("r1", status=200)) == ["r2"]
    assert sent(book.end("r2", status=200)) == ["r3"]


def test_nobody_goes_to_a_pod_that_is_gone():
    book = full()
    book.gone("p1")
    assert release_waiting(book.fleet.state, 0, now=book.now, cause=1) == []
    assert [*book.fleet.state.flights] == ["r1"], "the others were told that there is no pod"
