"""What plugins of profiles are told, and what it costs to tell them."""

from lorapick.core import facts
from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings
from lorapick.model.pods import Role
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.testing.profiles import book_with, profile, spec


def collected(book, request_id="r1"):
    state = book.fleet.state
    return facts.collect(state, state.flights[request_id], policy=state.policy)


def test_only_what_somebody_needs_is_collected():
    book = book_with(profile("queue-scorer"), pods="ab")
    book.arrive("legal", prompt_tokens=10, blocks=(1, 2))
    assert collected(book) == facts.Facts(prompt_tokens=10, blocks=2)
    assert book.fleet.state.cold == {}


def test_requests_and_tokens_of_both_legs():
    needy = profile(spec("token-load-scorer", threshold=1.0), spec("active-request-scorer", idle=0, most=1.0))
    pods = [plain_pod("d", role=Role.DECODE), plain_pod("p", role=Role.PREFILL)]
    split = DisaggregationSettings(decide=Decide.ALWAYS, choice=Choice.INDEPENDENT)
    book = book_with(needy, pods=pods, disaggregation=split)
    book.arrive("legal", prompt_tokens=10)
    assert collected(book).tokens_in_flight == {0: 25.0, 1: 25.0}
    assert collected(book).in_flight == {0: 1, 1: 1}
    book.prefilled("r1")
    assert collected(book).tokens_in_flight == {0: 25.0}


def test_cold_requests_are_noted_for_both_pods_and_forgotten_with_them():
    book = book_with(profile("no-hit-lru-scorer"), pods="abc")
    book.arrive("legal", subset=("b",))
    book.arrive("legal", subset=("a",), blocks=(1,))
    book.arrive("legal", subset=("a",), blocks=(1,))
    assert list(book.fleet.state.cold) == [1, 0]
    book.gone("b")
    assert list(book.fleet.state.cold) == [0]


def test_other_policies_need_none():
    book = Playbook(pods="ab", adapters=["legal"])
    book.arrive("legal")
    assert book.fleet.state.cold == {}
