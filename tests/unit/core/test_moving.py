"""Slots on fallbacks, for requests whose pod is lost before it had them."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lorapick.model.effects import RESERVATION_MOVED, Note, Touch
from lorapick.model.events import By, LoadSucceeded, Touched
from lorapick.model.picks import What
from lorapick.model.pods import Role, SilentWhy
from lorapick.model.requests import Outcome
from lorapick.model.settings import Settings
from lorapick.model.tiers import Source, Tier
from lorapick.testing.playbook import Playbook, plain_pod

LONG = {"prompt_tokens": 2000, "stream": True}
LOSSES = {
    "gone": lambda book, pod: book.gone(pod),
    "refused": lambda book, pod: book.silent(pod, SilentWhy.REFUSED),
    "restarted": lambda book, pod: book.change(replace(plain_pod(pod, role=Role.DECODE), address="elsewhere:1")),
}


def book_of(*roles: str, adapters: tuple[str, ...] = ("legal", "code", "sql"), max_loras: int = 2) -> Playbook:
    pods = [
        plain_pod(f"{role[0]}{place}", role=Role(role), max_loras=max_loras)
        for place, role in enumerate(roles, start=1)
    ]
    return Playbook(pods=pods, adapters=adapters, settings=Settings())


def in_host_memory(book: Playbook, model: str = "legal") -> None:
    """Pods that decode have an adapter in host memory, so that fallbacks to them come before the pod that prefills."""
    state = book.fleet.state
    for row, pod in state.columns.live():
        if pod.role is Role.DECODE:
            state.residency.left(row, model, tier=Tier.CPU, now=book.now, source=Source.REPORTED)


def split(book: Playbook, model: str = "legal") -> tuple[str, list[str]]:
    """A request that p1 prefills: who is to decode it, and who comes next."""
    in_host_memory(book, model)
    book.arrive(model, **LONG)
    sent = book.effects[0]
    return sent.target.pod, [target.pod for target in sent.fallbacks]


def reserved(book: Playbook, pod: str) -> list[str]:
    state = book.fleet.state
    return [*state.residency.home(state.columns.row_of[pod]).reserved]


def moved(book: Playbook) -> dict[str, int]:
    return {word: count for word, count in book.fleet.state.tally.reservations_moved.items() if count}


@pytest.mark.parametrize("why", LOSSES)
def test_the_first_fallback_keeps_a_slot(why):
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    LOSSES[why](book, first)
    assert reserved(book, second) == ["legal"] and book.in_flight(second) == 1
    assert [effect.pod for effect in book.effects if isinstance(effect, Touch)] == [second]
    (note,) = (each for each in book.effects if isinstance(each, Note) and each.kind == RESERVATION_MOVED)
    assert note.facts == {"pod": first, "to": second, "why": why, "request": "r1", "adapter": "legal"}
    came = book.explain("r1").came
    assert [(each.what, each.pod, each.why) for each in came] == [(What.MOVED, second, why)]
    assert moved(book) == {"moved": 1}


@pytest.mark.parametrize("why", LOSSES)
def test_the_answer_of_the_fallback_makes_the_slot_its_own(why):
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    LOSSES[why](book, first)
    book.fallback("r1", second)
    assert reserved(book, second) == ["legal"] and book.in_flight(second) == 1
    book.prefilled("r1")
    book.start("r1")
    assert reserved(book, second) == ["legal"], "its engine may not have given it a seat"
    book.body("r1")
    assert reserved(book, second) == [] and book.tier(second, "legal") == "gpu_serving"
    book.end("r1", status=200)
    assert book.in_flight(second) == 0
    assert book.fleet.state.tally.late_loads == 0


def test_a_load_begins_at_once_and_not_when_the_request_comes():
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    assert book.tier(second, "legal") == "cpu"
    book.gone(first)
    assert book.tier(second, "legal") == "loading"


@pytest.mark.parametrize("why", LOSSES)
def test_an_answer_of_the_pod_itself_gives_the_slot_up(why):
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    LOSSES[why](book, first)
    book.start("r1")
    assert reserved(book, second) == [] and book.in_flight(second) == 0
    book.end("r1")


@pytest.mark.parametrize("outcome", [Outcome.ABANDONED, Outcome.FAILED, Outcome.SERVED])
@pytest.mark.parametrize("why", LOSSES)
def test_an_end_gives_the_slot_up(why, outcome):
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    LOSSES[why](book, first)
    book.end("r1", outcome)
    assert reserved(book, second) == [] and book.in_flight(second) == 0


def test_another_pod_serves_than_the_one_that_kept_a_slot():
    book = book_of("prefill", "decode", "decode", "decode")
    first, (second, third, *_) = split(book)
    book.gone(first)
    book.fallback("r1", third)
    assert reserved(book, second) == [] and reserved(book, third) == ["legal"]


def test_when_the_fallback_is_lost_too_the_next_one_keeps_a_slot():
    book = book_of("prefill", "decode", "decode", "decode")
    first, (second, third, *_) = split(book)
    book.gone(first)
    book.gone(second)
    assert reserved(book, third) == ["legal"]
    assert moved(book) == {"moved": 2}


def test_the_pod_that_prefills_is_the_last_to_keep_a_slot():
    book = book_of("prefill", "decode")
    first, others = split(book)
    assert others == ["p1"]
    book.gone(first)
    assert reserved(book, "p1") == ["legal"] and book.in_flight("p1") == 2
    book.fallback("r1", "p1")
    assert reserved(book, "p1") == ["legal"] and book.in_flight("p1") == 1
    book.start("r1")
    book.body("r1")
    assert reserved(book, "p1") == [] and book.in_flight("p1") == 1


def test_before_cold_pods_comes_the_one_that_prefills():
    """It has the adapter and the KV; another one that decodes and has the adapter too comes first."""
    book = book_of("prefill", "decode", "decode", "decode")
    book.arrive("legal", **LONG)
    first, others = book.effects[0].target.pod, [target.pod for target in book.effects[0].fallbacks]
    assert others[0] == "p1" and sorted([first, *others[1:]]) == ["d2", "d3", "d4"]
    assert book.explain("r1").fallbacks == tuple(others)
    book.gone(first)
    assert reserved(book, "p1") == ["legal"] and book.tier(others[1], "legal") == "disk"
    state = book.fleet.state
    row = state.columns.row_of[others[2]]
    state.residency.left(row, "legal", tier=Tier.CPU, now=book.now, source=Source.REPORTED)
    book.arrive("legal", **LONG)
    assert [target.pod for target in book.effects[0].fallbacks] == ["p1", others[1]]
    assert book.effects[0].target.pod == others[2]


def test_the_base_model_falls_back_to_pods_that_decode_first():
    book = book_of("prefill", "decode", "decode")
    book.arrive("base", **LONG)
    assert [target.pod[0] for target in book.effects[0].fallbacks] == ["d", "p"]


def test_where_it_was_kept_it_was_never_free():
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    book.gone(first)
    book.apply(Touched, pod=second, adapter="legal")
    assert book.tier(second, "legal") == "gpu_serving"
    book.fallback("r1", second)
    assert book.fleet.state.flights["r1"].tier is Tier.GPU_SERVING


def test_nothing_is_loaded_where_memory_is_short():
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    book.report(second, memory_pressure=0.92)
    book.gone(first)
    assert reserved(book, second) == ["legal"]
    assert book.tier(second, "legal") == "cpu"
    assert not any(isinstance(effect, Touch) for effect in book.effects)


def test_where_nobody_is_left_that_is_said():
    book = book_of("prefill", "decode")
    first, _ = split(book)
    book.silent("p1", SilentWhy.REFUSED)
    book.gone(first)
    assert moved(book) == {"nobody": 1}
    assert book.explain("r1").came[-1].why == "gone; no fallback is left"


def test_no_slot_that_others_need_is_taken():
    book = book_of("prefill", "decode", "decode", adapters=("legal", "code", "sql", "law"))
    first, (second, _) = split(book)
    for name in ("code", "sql"):
        book.apply(LoadSucceeded, pod=second, adapter=name, by=By.CONTROLLER)
        assert book.arrive(name, subset=(f"{second}:8000",))[0].endswith(f"{second} (gpu_idle)")
    book.gone(first)
    assert moved(book) == {"no_room": 1}
    assert reserved(book, second) == []
    assert book.explain("r1").came[-1].what is What.NOT_MOVED


def test_a_pod_that_answers_again_needs_no_other_slot():
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    book.silent(first, SilentWhy.REFUSED)
    assert reserved(book, second) == ["legal"]
    book.silent(first, SilentWhy.REFUSED)
    assert moved(book) == {"moved": 1}
    book.report(first)
    assert reserved(book, second) == [] and reserved(book, first) == ["legal"]
    assert moved(book) == {"moved": 1, "back": 1}


def test_a_request_whose_answer_has_begun_is_not_moved():
    book = book_of("prefill", "decode", "decode")
    first, (second, _) = split(book)
    book.start("r1")
    book.gone(first)
    assert moved(book) == {} and reserved(book, second) == []


def test_a_request_that_could_not_connect_tells_of_the_others_there():
    book = book_of("prefill", "decode", "decode", max_loras=4)
    first, (second, _) = split(book)
    book.arrive("legal", **LONG)
    assert book.effects[0].target.pod == first
    book.fallback("r1", second)
    assert moved(book) == {"moved": 1}
    assert book.in_flight(second) == 2


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ("arrive", "gone", "refused", "restarted", "report", "appear", "fallback", "prefilled", "start", "end")
        ),
        st.integers(0, 7),
    ),
    max_size=40,
)


@given(STEPS)
def test_reservations_are_conserved_whatever_happens(steps):
    """The playbook checks after each event that every slot that is kept is some request's; at the end none is kept."""
    book = book_of("prefill", "decode", "decode", "decode", max_loras=2)
    names, starts = ["d2", "d3", "d4", "p1"], Counter()
    for number, (step, which) in enumerate(steps):
        flights = [*book.fleet.state.flights]
        pod = names[which % 4]
        book.now += 0.05
        if step == "arrive":
            book.arrive(("legal", "code", "sql")[which % 3], id=f"q{number}", **LONG)
        elif step in LOSSES and pod in book.fleet.state.columns.row_of:
            if step == "restarted":
                starts[pod] += 1
                role = Role.PREFILL if pod == "p1" else Role.DECODE
                book.change(plain_pod(pod, role=role, max_loras=2, address=f"{pod}:{9000 + starts[pod]}"))
            else:
                LOSSES[step](book, pod)
        elif step == "appear":
            book.appear(plain_pod(pod, role=Role.PREFILL if pod == "p1" else Role.DECODE, max_loras=2))
        elif step == "report":
            book.report(pod)
        elif flights:
            each = flights[which % len(flights)]
            if book.fleet.state.flights[each].pod is None:
                continue  # it waits at the picker
            if step == "fallback":
                book.fallback(each, pod)
            elif step == "prefilled":
                book.prefilled(each, ok=which % 2 == 0)
            elif step == "start":
                book.start(each, status=200 if which % 3 else 503)
            elif step == "end":
                book.end(each, (Outcome.SERVED, Outcome.FAILED, Outcome.ABANDONED)[which % 3])
    for each in [*book.fleet.state.flights]:
        book.end(each, Outcome.ABANDONED)
    for home in book.fleet.state.residency.homes():
        assert home.reserved == {} and not any(cell.in_flight or cell.reserved for cell in home.cells.values())
    assert all(load.in_flight == 0 for load in book.fleet.state.loads.values())
