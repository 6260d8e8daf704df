"""Who leaves a pod's adapter memory while some adapters are reserved."""

from lorapick.live.podserver.reservations import Reservations
from lorapick.model.tiers import Tier


def least(reservations, *candidates):
    return reservations.least(candidates, now=0.0)


def test_reserved_ones_leave_last():
    reservations = Reservations()
    assert least(reservations, "a", "b") == "a"
    with reservations.reserved("a"):
        assert least(reservations, "a", "b") == "b"
        with reservations.reserved("a"):
            pass
        assert least(reservations, "a", "b") == "b"
        assert reservations.worth("a", now=0.0) > reservations.worth("b", now=0.0)
    assert least(reservations, "a", "b") == "a"
    assert reservations.broken == 0


def test_where_all_are_reserved_the_least_recently_used_leaves_and_is_counted():
    reservations = Reservations()
    with reservations.reserved("a"), reservations.reserved("b"):
        assert least(reservations, "b", "a") == "b"
        assert reservations.victim(["b", "a"], now=0.0, incoming="c") is None
        assert reservations.victim(["b", "c"], now=0.0, incoming="d") == "c"
    assert reservations.broken == 1


def test_who_leaves_a_slot_while_somebody_waits_for_it_is_counted():
    reservations = Reservations()
    reservations.evicted("a", leaves_for=Tier.CPU)
    with reservations.reserved("a") as wait:
        reservations.evicted("b", leaves_for=Tier.CPU)
        assert reservations.left == 0
        reservations.evicted("a", leaves_for=Tier.CPU)
        reservations.evicted("a", leaves_for=Tier.DISK)  # it had no slot then
        assert reservations.left == 1
        reservations.seated(wait)
        reservations.seated(wait)
        reservations.evicted("a", leaves_for=Tier.CPU)  # it ran, and has ended
    with reservations.reserved("a"):
        reservations.evicted("a", leaves_for=Tier.CPU)
    assert reservations.left == 2
