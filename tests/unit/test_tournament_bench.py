"""The tournament's cells, seeds and verdicts; playing it takes an hour."""

import pytest
from bench.tournament.cells import LOADS, MODES, cells, scenario
from bench.tournament.judge import Place, served_all, verdict
from bench.tournament.page import every_figure, verdicts
from bench.tournament.play import Figures, Task
from bench.tournament.rates import known
from bench.tournament.seeds import REPORTING, SEARCH, TUNING, seeds
from bench.tournament.store import Store


def figures(p95, lost=0.0):
    return Figures(
        p50_ms=1.0, p95_ms=p95, p99_ms=p95, ttft_p50_ms=1.0, ttft_p95_ms=p95, ttft_p99_ms=p95, goodput=1.0, loads=1,
        over_bound=None, unfairness=None, lost=lost,
    )  # fmt: skip


def test_no_seed_is_for_tuning_and_for_reporting():
    assert not set(TUNING) & set(REPORTING) and SEARCH not in (*TUNING, *REPORTING)
    assert [*seeds(3, tuning=True)] != [*seeds(3, tuning=False)]
    with pytest.raises(ValueError, match="0 seeds: there are 1 to 99"):
        seeds(0, tuning=True)


def test_every_fresh_cell_has_a_rate_and_is_a_scenario():
    rates = known()
    for cell in cells(loads=LOADS[:1]):
        if cell.load is not None:
            assert rates[cell.traffic.name][cell.mode].rate > 0
    wanted = [cell for cell in cells(loads=LOADS[:1]) if cell.traffic.name in ("ranks", "flash", "servegen")]
    assert {cell.mode for cell in wanted} == {*MODES}
    for cell in wanted:
        assert scenario(cell, rate=5.0).fleet.pods >= 4


@pytest.mark.parametrize(
    ("ours", "theirs", "place"),
    [
        ((100, 100, 100), (110, 110, 110), Place.FIRST),
        ((101, 101, 101), (100, 100, 100), Place.TIED),
        ((104, 104, 104), (100, 100, 100), Place.BEHIND),
        ((90, 104, 118), (88, 100, 112), Place.TIED),
    ],
)
def test_a_tie_is_two_percent_or_intervals_that_overlap(ours, theirs, place):
    played = {"cost": [figures(each) for each in ours], "weighted": [figures(each) for each in theirs]}
    found = verdict(played, policy="cost", name="p95_ms")
    assert found is not None and (found.place, found.peer) == (place, "weighted")


def test_who_leaves_requests_unserved_is_nobodys_best_peer():
    played = {"cost": [figures(100.0)], "random": [figures(50.0, lost=0.01)], "weighted": [figures(120.0)]}
    assert not served_all(played["random"])
    found = verdict(played, policy="cost", name="p95_ms")
    assert found is not None and found.peer == "weighted"
    assert verdict(played, policy="random", name="p95_ms") is None


def test_pages_have_every_cell():
    cell = next(cells())
    played = {cell: {"cost": [figures(110.0)] * 3, "weighted": [figures(100.0)] * 3}}
    shown = [*verdicts(played), *every_figure(played)]
    assert any(line.startswith(f"| {cell.name} | 110 | weighted | 100 | 1.100 |") for line in shown)
    assert f"## {cell.name}" in shown


def test_a_tournament_goes_on_with_what_was_played(tmp_path, monkeypatch):
    """Runs are kept by task and code; a line that was cut off is played again, foreign code too unless it is kept."""
    cell = next(cells(loads=LOADS[:1]))
    one, other = (Task(cell=cell, rate=1.0, limit=None, policy="cost", seed=seed) for seed in (1, 2))
    path = tmp_path / "runs.jsonl"
    store = Store(path)
    store.add([one], [figures(100.0)])
    assert store.get(one) == figures(100.0) and store.get(other) is None
    path.write_bytes(path.read_bytes() + path.read_bytes()[:40])
    assert Store(path).get(one) == figures(100.0)
    monkeypatch.setattr("bench.tournament.store.code", lambda: "changed")
    assert Store(path).get(one) is None
    assert Store(path, keeps=("cost",)).get(one) == figures(100.0)
    assert Store(None).get(one) is None
