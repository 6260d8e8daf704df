"""How many requests are split, and pods that are named to prefill while their own counters stand still."""

from lorapick.core.signals.handovers import FEW, LOOKS, WINDOW, Handovers
from lorapick.model.pods import LoadedAdapter, PodReport

NAMED = FEW + 2


def idle(**fields):
    return PodReport(waiting=0, running=0, **fields)


def named(count=NAMED, *, name="legal"):
    handovers = Handovers()
    for number in range(count):
        handovers.named("p", name, tokens=1000, now=float(number))
    return handovers


def looked(handovers, *reports, begin=10.0):
    for number, report in enumerate(reports):
        handovers.scraped("p", report, since=begin + number)
    return handovers.unreached("p", now=begin + 10.0)


def test_dispatches_of_the_last_minutes_are_counted_by_word():
    handovers = Handovers()
    for word in ("split", "few_tokens", "few_tokens"):
        handovers.decided(word, now=1.0)
    assert handovers.lately(2.0) == {"split": 1, "few_tokens": 2}
    assert handovers.lately(2.0 + 2 * WINDOW) == {}


def test_adapters_count_for_as_long():
    handovers = named(1)
    handovers.named("p", None, tokens=10, now=0.0)
    assert (handovers.active(1.0), handovers.active(2.0 + WINDOW)) == (1, 0)


def test_counters_that_stand_still_say_that_nothing_came():
    pages = [idle(prompt_tokens=500)] * (LOOKS + 1)  # the first page only says where it stands
    handovers = named(0)
    handovers.named("p", "legal", tokens=1000, now=0.0)
    handovers.scraped("p", pages[0], since=0.5)
    for number in range(NAMED):
        handovers.named("p", "legal", tokens=1000, now=1.0 + number)
    assert looked(handovers, *pages[:2]) == 0, "too early to say"
    assert looked(handovers, *pages[:LOOKS], begin=20.0) == NAMED
    assert handovers.unreached("p", now=30.0 + 2 * WINDOW) == 0, "long ago"
    handovers.gone("p")
    assert handovers.unreached("p", now=30.0) == 0


def test_counters_that_move_say_that_something_did():
    reports = [idle(prompt_tokens=2000 * number) for number in range(LOOKS + 2)]
    assert looked(named(), *reports) == 0


def test_a_touch_or_two_moves_them_too_little():
    handovers = Handovers()
    handovers.named("p", "legal", tokens=1000, now=0.0)
    handovers.scraped("p", idle(prompt_tokens=100), since=0.5)
    for number in range(NAMED):
        handovers.named("p", "legal", tokens=1000, now=1.0 + number)
    assert looked(handovers, *[idle(prompt_tokens=101 + number) for number in range(LOOKS)]) == NAMED


def test_a_pod_that_is_busy_or_began_anew_is_not_silent():
    busy = PodReport(waiting=0, running=1, prompt_tokens=7)
    assert looked(named(), *[idle(prompt_tokens=7)], *[busy] * 2 * LOOKS) == 0
    handovers = named()
    looked(handovers, *[idle(prompt_tokens=500)] * LOOKS)
    assert looked(handovers, idle(prompt_tokens=0), begin=40.0) == 0


def test_without_the_counter_the_pods_own_residency_tells():
    others, here = (LoadedAdapter(name="code", on_gpu=True),), (LoadedAdapter(name="legal", on_gpu=True),)
    assert looked(named(), *[idle(loaded=others)] * LOOKS) == NAMED
    assert looked(named(), *[idle(loaded=here)] * LOOKS) == 0
    assert looked(named(), *[idle()] * LOOKS) == 0, "a page that tells neither"
    assert looked(named(name=None), *[idle(loaded=())] * LOOKS) == 0, "the base model leaves no trace there"


def test_few_times_say_nothing():
    assert looked(named(FEW - 1), *[idle(loaded=())] * LOOKS) == 0
