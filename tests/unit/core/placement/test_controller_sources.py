"""What comes of plans by load, groups, weekends and names that pods do not know, through `Fleet.apply`."""

import pytest
from placement_kit import ask, declare, fleet, loaded, pin, placement, tick, told

from lorapick.core.forecast.history import BIN
from lorapick.core.placement.solving import solve
from lorapick.model import events
from lorapick.model.adapters import Adapter, AffinityGroup, Schedule
from lorapick.model.effects import Load, Note, Solve
from lorapick.model.placement import DemandBin
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.playbook import plain_pod

AUTO = PlacementSettings(replicas="auto")
HOUR = 3600.0
FRIDAY = 1_760_054_400.0
"""2025-10-10 00:00 UTC; a multiple of a bin."""
SATURDAY, MONDAY = FRIDAY + 36 * HOUR, FRIDAY + 84 * HOUR
DAYS = pytest.mark.parametrize(("day", "brought"), [(SATURDAY, False), (MONDAY, True)], ids=["saturday", "monday"])
LEISURE = Adapter(name="x", declared=True, weekend="deprioritize")


def loads(book, since=-1):
    """What answers from one on tell pods to load, and why."""
    every = (each for answer in book.answers[since:] for each in answer)
    return [(each.pod, each.adapters[0], each.why) for each in every if isinstance(each, Load)]


def later(book, seconds=1.0):
    """The loads of a tick, with their reasons."""
    since = len(book.answers)
    tick(book, seconds)
    return loads(book, since)


def problems(book, since=0):
    """What solvers were asked."""
    return [each.problem for answer in book.answers[since:] for each in answer if isinstance(each, Solve)]


def said(book, kind):
    """All notes of one kind."""
    return [each for answer in book.answers for each in answer if isinstance(each, Note) and each.kind == kind]


def planned(book, plan, version=None):
    """A solver's answer, to what it was asked last."""
    version = version if version is not None else placement(book).asked_version
    book.apply(events.PlacementComputed, plan=plan, version=version)
    return loads(book)


def solved(book, seconds):
    """The solver is asked after so long, and answers; the loads of both."""
    since = len(book.answers)
    tick(book, seconds)
    problem = problems(book, since)[-1]
    planned(book, dict(solve(problem).placed), problem.version)
    return loads(book, since)


def at(book, wall):
    """The time of day is told, and the controller looks."""
    since = len(book.answers)
    book.now += 1.0
    book.apply(events.Ticked, wall=wall)
    tick(book)
    return loads(book, since)


def run(book, model, *, count, pod="a", **fields):
    """Requests that stay in flight on a pod."""
    for number in range(count):
        request_id = f"{model}{number}"
        book.arrive(model, id=request_id, subset=(f"{pod}:8000",), **fields)
        book.start(request_id)


# -- placement by load


def uneven(settings):
    book = fleet("a", "b", settings=settings)
    for name in ("x", "y"):
        run(book, name, count=10)
    return book


def test_a_copy_goes_to_the_idle_pod_when_that_pays_and_then_what_the_solver_says():
    book = uneven(Settings(placement=AUTO))
    tick(book, 31.0)
    assert later(book) == [("b", "y", "rebalance")]
    assert [each.facts["to"] for each in said(book, "rebalance")] == ["b"]
    loaded(book, "b", "y")
    assert planned(book, {"x": ("b",)}) == [("b", "x", "demand")]


def test_nobody_is_placed_by_load_unless_asked_to():
    book = uneven(Settings())
    tick(book, 31.0)
    assert later(book) == [] == problems(book)


def test_what_moves_is_not_planned_where_it_comes_from():
    book = uneven(Settings(placement=AUTO))
    planned(book, {"x": ("a",), "y": ("a",)})
    tick(book, 31.0)
    assert later(book) == [("b", "y", "rebalance")]
    assert placement(book).wanted == {0: {"x": "demand"}, 1: {"y": "rebalance"}}


def test_a_plan_for_whom_nobody_asks_any_more_is_dropped_at_the_next_solve():
    book = fleet("a", "b", settings=Settings(placement=AUTO))
    book.use("x", "a")
    tick(book, 31.0)
    planned(book, {"x": ("b",)})
    assert "x" in placement(book).plan
    loaded(book, "b", "x")
    book.now += 2 * HOUR
    for _ in range(10):
        book.use("y", "a")
    solved(book, 31.0)  # less than asked for before, but not for long enough
    for _ in range(10):
        book.use("y", "a")
    solved(book, 150.0)
    assert [each.adapter for each in problems(book)[-1].adapters] == ["y"]
    assert [*placement(book).plan] == ["y"]
    book.apply(events.Evicted, pod="b", adapter="x", tier=0)
    assert later(book) == []


def test_a_plan_is_dropped_when_nobody_asks_for_anything_any_more():
    book = fleet("a", "b", settings=Settings(placement=AUTO))
    book.use("x", "a")
    tick(book, 31.0)
    planned(book, {"x": ("b",)})
    loaded(book, "b", "x")
    for _ in range(2):  # fewer are wanted, and a while later are
        tick(book, 2 * HOUR)
    asked = len(problems(book))
    book.apply(events.Evicted, pod="b", adapter="x", tier=0)
    assert later(book, 31.0) == [] == later(book)
    assert len(problems(book)) == asked


def test_an_older_answer_of_a_solver_or_one_that_nobody_asked_for_counts_for_nothing():
    book = fleet("a", "b", settings=Settings(placement=AUTO))
    for _ in range(2):
        book.use("x", "a")
        tick(book, 31.0)
    older, newer = [each.version for each in problems(book)][-2:]
    assert older < newer
    planned(book, {"x": ("a",)}, newer)
    assert planned(book, {"y": ("b",)}, older) == [] == planned(book, {"z": ("b",)}, newer + 1)
    assert later(book) == []


# -- groups


def test_a_solver_is_told_who_follows_whom():
    group = AffinityGroup(name="chain", first="x", then=("y",))
    book = fleet("a", "b", settings=Settings(placement=AUTO, groups=(group,)))
    for name in ("x", "y", "z"):
        book.use(name, "a")
    tick(book, 31.0)
    follows = {each.adapter: each.follows for each in problems(book)[-1].adapters}
    assert follows == {"x": None, "y": "x", "z": None}


@pytest.mark.parametrize(
    ("learn", "times", "found"),
    [(True, 25, [("a", "y", "group")]), (True, 15, []), (False, 25, [])],
    ids=["seen_often", "seen_seldom", "not_learning"],
)
def test_who_often_comes_next_in_a_session_is_loaded_when_the_first_is_called(learn, times, found):
    book = fleet("a", learn_groups=learn)
    for number in range(times):
        for name in ("x", "y"):
            book.now += 1.0
            book.report("a")
            request_id = f"{name}{number}"
            book.arrive(name, id=request_id, session="one")
            book.start(request_id)
            book.end(request_id)
    tick(book, 120.0)  # nobody is called any more
    book.apply(events.Evicted, pod="a", adapter="y", tier=0)
    assert later(book) == []
    since = len(book.answers)
    book.arrive("x", id="now", session="another")
    tick(book)
    assert loads(book, since) == found


# -- weekends


@DAYS
def test_who_counts_for_less_at_weekends_is_not_forecast_then(day, brought):
    book = fleet("a", adapters=[LEISURE], forecast="last_hour")
    bins = tuple(DemandBin(start=day - BIN * back, adapter="x", count=300) for back in range(1, 13))
    book.apply(events.DemandRecalled, bins=bins)
    assert at(book, day + 1.0) == ([("a", "x", "forecast")] if brought else [])


@DAYS
def test_nor_brought_to_a_pod_that_warms_up(day, brought):
    book = fleet("a", adapters=[LEISURE], warm_up=30.0)
    at(book, day)
    for _ in range(3):
        book.use("x", "a")
    book.appear("b")
    since = len(book.answers)
    book.report("b")
    tick(book)
    assert loads(book, since) == ([("b", "x", "warm_up")] if brought else [])


@DAYS
def test_nor_placed_by_load(day, brought):
    book = fleet("a", adapters=[LEISURE, "y"], settings=Settings(placement=AUTO))
    at(book, day)
    for name in ("x", "y"):
        book.use(name, "a")
        book.apply(events.Evicted, pod="a", adapter=name, tier=0)
    found = solved(book, 31.0)
    for pod, name, _ in found:
        loaded(book, pod, name)
    found += later(book)
    assert sorted(found) == [("a", name, "demand") for name in (("x", "y") if brought else ("y",))]


@DAYS
def test_nor_brought_as_a_follower(day, brought):
    group = AffinityGroup(name="chain", first="y", then=("x",))
    book = fleet("a", adapters=[LEISURE, "y"], settings=Settings(groups=(group,)))
    book.use("y", "a")
    tick(book, 120.0)
    book.apply(events.Evicted, pod="a", adapter="x", tier=0)
    at(book, day)
    since = len(book.answers)
    book.use("y", "a")
    tick(book)
    assert loads(book, since) == ([("a", "x", "group")] if brought else [])


def test_an_operators_word_counts_at_weekends_too():
    book = fleet("a", adapters=[LEISURE])
    at(book, SATURDAY)
    assert ask(book, "x", "a") == [("Load", "a", "x")]


# -- who goes next


def crowded(*, busy=False, asked=False):
    """A pod of two slots with x, which a plan wants there, and y, used after it; z is to come."""
    book = fleet(plain_pod("a", max_loras=2), settings=Settings(placement=AUTO))
    for name in ("x", "y"):
        book.use(name, "a")
    tick(book, 900.0)
    if asked:
        for _ in range(5):
            book.use("y", "a")
    if busy:
        run(book, "y", count=1)
    planned(book, {"x": ("a",), "z": ("a",)})
    return book


def test_what_is_wanted_and_would_go_next_is_touched_so_that_another_goes_instead():
    book = crowded()
    assert told(book) == [("Touch", "a", "x")]
    book.apply(events.Touched, pod="a", adapter="x")
    assert (told(book) or tick(book)) == [("Load", "a", "z")]
    assert book.tier("a", "x") == "gpu_idle"


@pytest.mark.parametrize("other", [{"busy": True}, {"asked": True}], ids=["in_use", "asked_for"])
def test_nothing_is_touched_when_nobody_else_there_may_go(other):
    book = crowded(**other)
    assert [*told(book), *tick(book)] == []


def scheduled():
    schedule = Schedule(adapters=("x",), cron="0 0 * * *", timezone="UTC", lasts=HOUR)
    book = fleet(plain_pod("a", max_loras=2), settings=Settings(schedules=(schedule,)))
    assert at(book, FRIDAY) == [("a", "x", "schedule")]
    return book


def by_plan():
    book = fleet(plain_pod("a", max_loras=2), settings=Settings(placement=AUTO))
    assert planned(book, {"x": ("a",)}) == [("a", "x", "demand")]
    return book


@pytest.mark.parametrize(
    ("there", "touched"), [(scheduled, [("Touch", "a", "x")]), (by_plan, [])], ids=["schedule", "plan"]
)
def test_what_a_schedule_wants_is_touched_when_others_load_and_what_a_plan_wants_is_not(there, touched):
    book = there()
    loaded(book, "a", "x")
    since = len(book.answers)
    book.use("y", "a")
    found = [each for answer in book.answers[since:] for each in answer if type(each).__name__ == "Touch"]
    assert [("Touch", each.pod, each.adapter) for each in found] + tick(book) == touched


def test_what_a_schedule_wants_is_not_touched_where_nobody_loads():
    book = fleet(plain_pod("a", max_loras=2), settings=Settings(schedules=(
        Schedule(adapters=("x",), cron="0 0 * * *", timezone="UTC", lasts=HOUR),
    )))  # fmt: skip
    book.use("y", "a")
    assert at(book, FRIDAY) == [("a", "x", "schedule")]
    loaded(book, "a", "x")
    assert tick(book, 120.0) == []
    book.use("y", "a")
    assert tick(book) == []
    assert placement(book).wanted == {0: {"x": "schedule"}}


# -- names that pods do not know


def last_copies(*pods):
    """A pod of two slots, both with the only copy of what is asked for."""
    book = fleet(plain_pod("a", max_loras=2), *pods)
    for _ in range(10):
        for name in ("x", "y"):
            book.use(name, "a")
    book.report("a", registered=("x", "y"))
    return book


def test_a_name_that_no_pod_knows_is_told_although_a_last_copy_goes_for_it():
    book = last_copies()
    assert declare(book, "new", source="/new") == [("Register", "a", "new")]


def test_a_name_that_another_pod_knows_is_not_told_at_the_cost_of_a_last_copy():
    book = last_copies("b")
    book.report("b", registered=("x", "y", "new"))
    assert declare(book, "new", source="/new") == [] == tick(book)


@pytest.mark.parametrize("both", [True, False], ids=["both_pinned", "the_other_in_use"])
def test_no_name_is_told_at_the_cost_of_a_pin(both):
    book = fleet(plain_pod("a", max_loras=2))
    for name in ("x", "y") if both else ("x",):
        pin(book, name, pods=("a",))
        loaded(book, "a", name)
    if not both:
        run(book, "y", count=1)
    book.report("a", registered=("x", "y"))
    found = [*declare(book, "new", source="/new"), *tick(book)]
    assert [each for each in found if each[0] != "Touch"] == []
    book.apply(events.PinCleared, adapter="x")
    assert ("Register", "a", "new") in [*told(book), *tick(book), *tick(book)]
