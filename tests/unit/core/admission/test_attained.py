"""What each fairness id has had lately: against sums that are made anew each time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.attained import HALF_LIFE, MOST, Attained
from lorapick.model.events import RequestEnded
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import AdmissionSettings, Fairness, Settings
from lorapick.testing.playbook import Playbook


def request(team, *, prompt=None, output=None):
    return Request(id="r", model="m", fairness_id=team, prompt_tokens=prompt, max_tokens=output)


def ended(*, prompt=None, output=None):
    outcome = Outcome.SERVED
    return RequestEnded(t=0.0, id=1, request_id="r", outcome=outcome, prompt_tokens=prompt, output_tokens=output)


def test_what_a_request_may_take_counts_until_its_end_tells():
    made = Attained()
    made.sent(request("a", prompt=100, output=50), now=1000.0)
    assert made.tokens("a", now=1000.0) == pytest.approx(150)
    made.ended(request("a", prompt=100, output=50), ended(prompt=120, output=10), sent=1000.0)
    assert made.tokens("a", now=1000.0) == pytest.approx(130)
    made.ended(request("a", prompt=100, output=50), ended(), sent=1000.0)
    assert made.tokens("a", now=1000.0) == pytest.approx(130), "nothing is known of that one"
    assert made.tokens("a", now=1000.0 + HALF_LIFE) == pytest.approx(65)
    assert made.of("stranger") == 0.0
    made.sent(request(None, output=7), now=1000.0)
    assert made.tokens("", now=1000.0) == pytest.approx(7)


def test_those_with_least_are_forgotten_when_there_are_too_many():
    made = Attained()
    for number in range(MOST + 10):
        made.sent(request(f"team-{number}", prompt=number + 1), now=1.0)
    assert len(made) <= MOST
    assert made.of("team-0") == 0.0 and made.of(f"team-{MOST}") > 0.0


def test_whoever_was_busy_long_ago_is_like_any_other():
    made = Attained()
    made.sent(request("old", prompt=10**6), now=0.0)
    made.sent(request("new", prompt=1), now=80 * HALF_LIFE)
    assert len(made) == 1 and made.of("old") == 0.0
    assert made.tokens("new", now=10**9) == pytest.approx(0.0)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 500), st.floats(0, 900), st.none() | st.integers(0, 500)))
)
def test_claims_are_the_faded_sums(steps):
    made, now, log = Attained(), 0.0, []
    for team, tokens, later, real in steps:
        now += later
        one = request(team, output=tokens)
        made.sent(one, now=now)
        if real is not None:
            made.ended(one, ended(output=real), sent=now)
        log.append((team, tokens if real is None else real, now))
    for team in "abc":
        due = sum(tokens * 2 ** ((at - now) / HALF_LIFE) for each, tokens, at in log if each == team)
        assert made.tokens(team, now=now) == pytest.approx(due, abs=1.0)


def test_requests_that_never_waited_count_in_the_fleet():
    fair = Settings(admission=AdmissionSettings(fairness=Fairness.LEAST_ATTAINED))
    book = Playbook(pods=["x"], adapters=["a"], settings=fair)
    book.arrive("a", fairness_id="team", prompt_tokens=100, max_tokens=20)
    attained = book.fleet.state.queues.attained
    assert attained.tokens("team", now=book.now) == pytest.approx(120)
    book.apply(RequestEnded, request_id="r1", outcome=Outcome.SERVED, prompt_tokens=100, output_tokens=5)
    assert attained.tokens("team", now=book.now) == pytest.approx(105)
    assert Playbook(pods=["x"]).fleet.state.queues.attained is None
