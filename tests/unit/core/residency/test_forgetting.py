"""Names that nobody gives any more leave nothing behind."""

from lorapick.testing.playbook import Playbook


def test_tenants_that_left_are_forgotten_once_no_pod_holds_them():
    book = Playbook(pods=["a"])
    for day in range(30):
        names = tuple(f"tenant-{number}-day-{day}" for number in range(8))
        book.report("a", registered=names)
        for name in names:
            book.arrive(name, id=name)
            book.end(name)
        book.wait(1.0)
    book.report("a", registered=("last",))
    state = book.fleet.state
    held = {*state.residency.home(0).shadow.cpu}
    assert {*state.columns.adapters} <= {*held, "last"} and len(held) <= 16
    assert {*state.residency.home(0).cells} <= {*held, "last"}
    assert {*state.adapters} <= {*held, "last"}


def test_a_name_in_flight_is_kept_until_it_ended():
    book = Playbook(pods=["a"])
    book.report("a", registered=("old",))
    book.arrive("old")
    book.report("a", registered=("new",))
    assert "old" in book.fleet.state.columns.adapters
    book.end("r1")
