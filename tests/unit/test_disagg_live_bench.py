"""Which lost requests `bench.disagg_live` lays to pods that were killed; its plays are tests/e2e/test_pairs_live.py."""

import pytest
from bench.disagg_live import Kill, Lost, Outcome

KILLS = [Kill(pod="pod-7", at=10.0, there=2), Kill(pod="pod-9", at=20.0, there=1)]
BEGUN, SILENT = Lost("pod-7", 9.0, 11.0), Lost("", 9.5, 10.5)


@pytest.mark.parametrize(
    ("losses", "elsewhere"),
    [
        ([], 0),
        ([BEGUN, SILENT], 0),
        ([BEGUN, SILENT, Lost("pod-9", 19.0, 21.0)], 0),
        ([BEGUN, SILENT, Lost("", 9.0, 12.0)], 1),  # more than were there
        ([Lost("pod-8", 9.0, 11.0)], 1),  # another pod
        ([Lost("pod-7", 10.5, 12.0)], 1),  # it began when the pod was away
        ([Lost("pod-7", 8.0, 9.0)], 1),  # it ended before
        ([Lost("", 9.0, 21.0)] * 4, 1),  # each kill counts once
    ],
)
def test_a_kill_may_cost_what_was_in_flight_there(losses, elsewhere):
    assert Outcome(name="killed", kills=KILLS, losses=losses).elsewhere == elsewhere
