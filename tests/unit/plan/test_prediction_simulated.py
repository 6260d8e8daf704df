"""The prediction beside the simulator, on one small fleet; `python -m bench.prediction` does it on many."""

import pytest
from bench.prediction import Case, Way, rows

pytestmark = pytest.mark.twin  # plays for too long for `make test`

SMALL = tuple(
    (Case(30, 4, 4, 0.9, 8.0), way)
    for way in (*map(Way, ("weighted", "cost", "rendezvous", "chwbl", "round-robin")), Way("cost", "window"))
)
POINTS = 2.0


def test_a_short_run_hits_as_predicted():
    found = rows(SMALL, seconds=480, workers=1)
    assert [row for row in found if abs(row.points) > POINTS] == []
    assert [row for row in found if abs(row.rate) > 0.15 or abs(row.residency) > 0.15] == []
    assert {row.known for row in found} == {2.0, 2.5}
