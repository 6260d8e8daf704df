"""Who waits, or is refused by chance, though some pod would take it."""

import pytest

from lorapick.model.bands import Ceiling, CeilingSettings, ChanceSettings, Ordering, SaturationSettings, Spread
from lorapick.model.effects import Reject
from lorapick.model.reasons import Reason
from lorapick.model.settings import AdmissionSettings, Objective, PickingSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

STEPS = CeilingSettings(spread=Spread.RANK, least=0.4, most=1.0)


def fleet(*queues, objectives=(10, 0), policy="weighted", **admission):
    """Pods with these queues, of which 5 make one full."""
    settings = Settings(
        objectives=tuple(Objective(name=f"o{each}", priority=each) for each in objectives),
        admission=AdmissionSettings(**admission),
        picking=PickingSettings(policy=policy),
    )
    names = [f"p{number}" for number in range(len(queues))]
    book = Playbook(
        pods=[plain_pod(name, max_num_seqs=1000, max_queue=1000) for name in names],
        adapters=("legal",),
        settings=settings,
    )
    for name, waiting in zip(names, queues, strict=True):
        book.report(name, waiting=waiting)
    return book


def went(told):
    return any(" -> " in line for line in told)


# -- ceilings


@pytest.mark.parametrize(("queue", "low", "high"), [(1, True, True), (2, False, True), (4, False, True)])
def test_the_lower_priority_waits_from_its_ceiling_on_and_the_higher_goes_on(queue, low, high):
    book = fleet(queue, ceilings=STEPS)
    assert went(book.arrive("legal", priority=10)) is high
    assert went(book.arrive("legal", priority=0)) is low


def test_who_waits_goes_when_a_page_says_that_the_pods_have_room():
    book = fleet(3, ceilings=STEPS)
    assert book.arrive("base", id="q") == ["q waits for a place until 30"]
    assert [wait.because for wait in book.explain("q").course] == [Reason.HELD_BACK]
    assert book.report("p0", waiting=2) == []
    assert book.report("p0", waiting=1) == ["q -> p0 (base)"]


def test_it_waits_no_longer_than_it_may_and_is_told_why():
    book = fleet(3, ceilings=STEPS, max_wait=2.0)
    book.arrive("base", id="q")
    assert book.wait(2.0) == ["q refused: 503 deadline"]
    (refused,) = [each for answer in book.answers for each in answer if isinstance(each, Reject)]
    assert refused.message == (
        "it has waited for 2 s, and still the pods are at 0.60 of 1, and requests of priority 0 are sent only below "
        "0.40 (admission.ceilings)"
    )


def test_below_0_nobody_waits_for_a_ceiling_either():
    book = fleet(3, objectives=(0, -1), ceilings=STEPS)
    assert book.arrive("base", priority=-1, id="q") == ["q refused: 429 shed"]
    assert "admission.ceilings" in book.effects[0].message


def test_alone_its_ceiling_is_the_highest_and_1_holds_nobody_back():
    assert went(fleet(30, objectives=(), ceilings=STEPS).arrive("base"))
    lower = CeilingSettings(spread=Spread.RANK, least=0.1, most=0.9)
    assert not went(fleet(5, objectives=(), ceilings=lower).arrive("base"))


def test_the_detectors_thresholds_say_how_busy_pods_are():
    twice = SaturationSettings(queue=10.0, kv=0.8)
    assert went(fleet(3, ceilings=STEPS, saturation=twice).arrive("base"))
    assert not went(fleet(4, ceilings=STEPS, saturation=twice).arrive("base"))


def test_of_policies_that_refuse_at_once_nobody_is_held_back():
    assert went(fleet(4, ceilings=STEPS, policy="round-robin").arrive("base"))


def test_whom_no_pod_will_take_hears_that():
    book = fleet(4, ceilings=STEPS)
    book.drain("p0")
    assert book.arrive("base", id="q") == ["q refused: 503 no_pod"]


def test_a_reflected_ceiling_lets_some_through_and_none_when_all_is_full():
    reflected = CeilingSettings(spread=Spread.REFLECTED)
    book = fleet(4, ceilings=reflected)
    assert all(went(book.arrive("base", priority=10)) for _ in range(3))
    told = [book.arrive("base", id=f"q{number}", fairness_id=f"f{number}") for number in range(4)]
    assert [went(each) for each in told] == [False, False, False, True], "one of four at 0.8"
    full = fleet(5, ceilings=reflected)
    assert not any(went(full.arrive("base")) for _ in range(20))
    assert went(full.arrive("base", priority=10))


def test_listed_ceilings_and_ordering_are_kept():
    listed = CeilingSettings(spread=Spread.LISTED, listed=(Ceiling(priority=0, most=0.5),))
    assert not went(fleet(3, objectives=(), ceilings=listed, ordering=Ordering.SLO).arrive("base"))
    assert went(fleet(2, objectives=(), ceilings=listed).arrive("base"))


@pytest.mark.parametrize(("priority", "turns"), [(0, 0), (10, 1)])
def test_no_slot_is_cleared_for_who_is_held_back(priority, turns):
    settings = Settings(
        admission=AdmissionSettings(patience=1.0, ceilings=STEPS), objectives=(Objective(name="o", priority=10),)
    )
    book = Playbook(pods=[plain_pod("a", max_loras=1)], adapters=("legal", "code"), settings=settings)
    book.arrive("legal", id="r", priority=10)
    book.start("r")
    book.report("a", running=1, waiting=4)
    assert not went(book.arrive("code", id="q", priority=priority))
    book.wait(2.0)
    book.report("a", running=1, waiting=4)
    assert book.fleet.state.tally.turns == turns


# -- by what is in flight

ALL = CeilingSettings(spread=Spread.SAME, full=True)


def test_everybody_waits_while_pods_together_have_as_many_as_they_may():
    book = fleet(0, 0, saturation=SaturationSettings(requests=2), ceilings=ALL)
    assert all(went(book.arrive("base", id=f"r{number}")) for number in range(4))
    assert book.arrive("base", id="q", priority=10) == ["q waits for a place until 30"]
    assert book.arrive("base", priority=-1, id="low") == ["low refused: 429 shed"]
    assert went(book.end("r2", status=200))
    assert not went(fleet(0, saturation=SaturationSettings(requests=1), ceilings=ALL).arrive("base", subset=()))


def test_a_ceiling_below_counts_as_well():
    book = fleet(0, saturation=SaturationSettings(requests=10), ceilings=STEPS)
    assert [went(book.arrive("base")) for _ in range(5)] == [True] * 4 + [False]
    assert [went(book.arrive("base", priority=10)) for _ in range(7)] == [True] * 7, "1 does not count here"


@pytest.mark.parametrize(
    ("limits", "fit"),
    [({"tokens": 1000}, 4), ({"tokens": 1000, "requests": 2}, 2), ({"tokens": 250, "requests": 9}, 1)],
)
def test_tokens_count_with_what_is_expected_of_answers_and_the_larger_ratio(limits, fit):
    book = fleet(0, saturation=SaturationSettings(**limits), ceilings=ALL)
    told = [went(book.arrive("base", prompt_tokens=100)) for _ in range(6)]
    assert told == [True] * fit + [False] * (6 - fit), "a prompt of 100 tokens counts for 250"


def test_without_a_ceiling_only_priorities_below_0_are_shed():
    book = fleet(0, saturation=SaturationSettings(requests=1))
    assert went(book.arrive("base", id="r"))
    assert went(book.arrive("base"))
    assert not went(book.arrive("base", priority=-1))


# -- by chance


def refused(book, *, priority=-1, count=400):
    """Share of so many requests that is refused."""
    told = [book.arrive("base", priority=priority) for _ in range(count)]
    return sum(any("shed" in line for line in each) for each in told) / count


@pytest.mark.parametrize(
    ("queues", "power", "factor", "expected"),
    [((0,), 1.0, 1.0, 0.0), ((2, 3), 1.0, 1.0, 0.5), ((2, 3), 2.0, 1.0, 0.25), ((2,), 1.0, 300.0, 1.0)],
)
def test_the_busier_the_more_likely(queues, power, factor, expected):
    book = fleet(*queues, chance=ChanceSettings(power=power, factor=factor))
    assert refused(book) == pytest.approx(expected, abs=0.06)
    assert refused(book, priority=0, count=20) == 0.0


def test_chance_goes_by_thresholds_of_its_own_and_says_so():
    book = fleet(2, chance=ChanceSettings(queue=2.0))
    book.arrive("base", priority=-3)
    (told,) = book.effects
    assert (told.status, told.reason) == (429, Reason.SHED)
    assert told.message == (
        "its priority is -3, below 0 (objectives), and the pods are at 1.00 of 1, where 100% of such requests are "
        "refused (admission.chance)"
    )


def test_chance_looks_at_pods_that_the_gateway_allows():
    book = fleet(5, 0, chance=ChanceSettings())
    assert went(book.arrive("base", priority=-1, subset=("p1",)))
    assert not went(book.arrive("base", priority=-1, subset=("p0",)))
