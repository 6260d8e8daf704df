"""What is believed of one adapter on one pod."""

from lorapick.core.residency.cells import Cell, PodResidency
from lorapick.model.tiers import Source, Tier
from lorapick.testing.playbook import plain_pod


def test_a_new_cell_is_on_disk_by_inference():
    cell = Cell(3.0)
    assert (cell.tier, cell.source, cell.since, cell.evidence) == (Tier.DISK, Source.INFERRED, 3.0, None)


def test_which_reports_are_older_than_a_belief():
    cell = Cell(3.0)
    assert [cell.changed_after(since) for since in (2.9, 3.0, 3.1)] == [True, False, False]
    cell.tier = Tier.LOADING
    assert [cell.changed_after(since) for since in (2.9, 3.0, 3.1)] == [True, True, False]


def test_a_pod_makes_cells_on_first_use():
    home = PodResidency(0, plain_pod("pod", max_loras=3, max_cpu_loras=1), now=5.0)
    assert home.cells == {}
    assert home.cell("a") is home.cell("a")
    assert home.cell("a").since == 5.0, "on disk since the pod began"
    assert (home.shadow.gpu_slots, home.shadow.cpu_slots) == (3, 3)


def test_adapters_in_use_are_those_with_requests_and_those_that_load():
    home = PodResidency(0, plain_pod("pod", max_loras=1), now=5.0)
    cells = {name: home.cell(name) for name in ("mine", "loads", "anothers", "idle")}
    cells["mine"].in_flight = 1
    cells["loads"].tier = Tier.LOADING
    cells["anothers"].active = True
    for name, cell in cells.items():
        home.count_use(name, cell)
        assert cell.in_use == (name != "idle") == (name in home.in_use)
    assert [*home.in_use] == ["mine", "loads", "anothers"]


def test_too_many_in_use_are_excused_until_they_fit_again():
    home = PodResidency(0, plain_pod("pod", max_loras=1), now=5.0)
    for name in ("a", "b"):
        home.cell(name).in_flight = 1
        home.count_use(name, home.cell(name))
    assert not home.excused
    home.excuse()
    assert home.excused
    home.cell("a").in_flight = 0
    home.count_use("a", home.cell("a"))
    assert not home.excused
    home.excuse()
    assert not home.excused
