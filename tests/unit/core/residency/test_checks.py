"""Each check of the residency table can fail."""

import pytest

from lorapick.core.residency.checks import check
from lorapick.model import events
from lorapick.testing.playbook import Playbook


@pytest.fixture
def residency():
    """One pod that serves one adapter and loads another."""
    book = Playbook(pods=["a"], adapters=["legal", "code"])
    book.arrive("legal")
    book.start("r1")
    book.apply(events.LoadStarted, pod="a", adapters=("code",), by=events.By.CONTROLLER)
    return book.fleet.state.residency


def test_all_is_well(residency):
    check(residency)


def test_loads_under_way(residency):
    residency._loads._cells.clear()
    with pytest.raises(AssertionError, match=r"cells say \[\('code', 0\)\] load, the list says \[\]"):
        check(residency)


def test_when_the_next_one_ends(residency):
    residency._loads.next_due = 99.0
    with pytest.raises(AssertionError, match=r"a load ends at 0.7, nobody looks before 99.0"):
        check(residency)


def test_loads_of_a_pod(residency):
    residency.home(0).loading = 7
    with pytest.raises(AssertionError, match="a: counts 7 loads, cells say 1"):
        check(residency)


def test_pods_that_load(residency):
    residency.rows_loading = 7
    with pytest.raises(AssertionError, match="counts 7 pods that load, cells say 1"):
        check(residency)


def test_adapters_in_use(residency):
    residency.home(0).in_use["nobody"] = None
    with pytest.raises(AssertionError, match=r"a: \['code', 'legal', 'nobody'\] are in use, cells say"):
        check(residency)


def test_names(residency):
    residency.registry._accepting["legal"] += 1
    with pytest.raises(AssertionError, match="counts differ"):
        check(residency)
