"""Documents of the admin API: tiers as words, contributions added up."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.picks import Belief, Terms
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.testing.published import WEIGHTS, worked_example
from lorapick.wire.api import ApiReason, ExplanationDocument, Problem, cell, contributions, explanation_document

SHARE = st.floats(0, 1)


@pytest.mark.parametrize("tier", Tier)
def test_cell_has_the_tier_as_a_word(tier: Tier) -> None:
    belief = Belief(pod="p", adapter="a", tier=tier, since=1.0, source=Source.REPORTED, in_flight=2, pinned=True)
    shown = cell(belief, now=3.5)
    assert (shown.tier, shown.source, shown.in_flight, shown.pinned) == (tier.word, Source.REPORTED, 2, True)
    assert (shown.age_s, shown.evidence, shown.evidence_age_s) == (2.5, None, None)


def test_cell_has_ages_that_are_never_negative() -> None:
    belief = Belief(
        pod="p",
        adapter="a",
        tier=Tier.CPU,
        since=5.0,
        source=Source.INFERRED,
        last_evidence=1.0,
        evidence=Evidence.LIST,
    )
    assert (cell(belief, now=4.0).age_s, cell(belief, now=4.0).evidence_age_s) == (0.0, 3.0)


def test_explanation_keeps_every_fact() -> None:
    explanation = worked_example()
    document = msgspec.to_builtins(explanation_document(explanation))
    plain = msgspec.to_builtins(explanation)
    plain["waited_s"] = plain.pop("waited")
    assert document.pop("words") == (), "see `wire.words`"
    for shown, verdict in zip(document["verdicts"], plain["verdicts"], strict=True):
        shown.pop("contributions")
        ages = (79.0, 0.4) if shown["won"] else (None, None)
        assert (shown.pop("age_s"), shown.pop("evidence_age_s")) == ages
        verdict["tier"] = None if verdict["tier"] is None else Tier(verdict["tier"]).word
    assert document == plain


def test_explanation_survives_json() -> None:
    document = explanation_document(worked_example())
    assert msgspec.json.decode(msgspec.json.encode(document), type=ExplanationDocument) == document


@given(st.builds(Terms, adapter=st.floats(0, 1.05), kv=SHARE, queue=SHARE, gpu=SHARE))
def test_contributions_add_up_to_the_score(terms: Terms) -> None:
    parts = contributions(terms, WEIGHTS, score=None)
    assert sum(part for part in parts.values() if part is not None) == pytest.approx(
        0.50 * terms.adapter + 0.20 * terms.kv + 0.15 * terms.queue + 0.15 * (terms.gpu or 0.0)
    )


def test_unknown_value_gets_what_the_score_holds_beyond_the_rest() -> None:
    terms = Terms(adapter=1.0, kv=0.0, queue=1.0, gpu=None)
    assert contributions(terms, WEIGHTS, score=0.725)["gpu"] == pytest.approx(0.075)
    assert contributions(terms, WEIGHTS, score=None)["gpu"] is None


def test_without_terms_or_weights_there_are_no_contributions() -> None:
    assert contributions(None, WEIGHTS, score=0.5) == {}
    assert contributions(Terms(adapter=1.0, kv=0.0, queue=1.0, gpu=None), {}, score=None) == {}


def test_one_word_means_one_thing_in_both_vocabularies() -> None:
    assert {reason.value for reason in ApiReason} & {reason.value for reason in Reason} == {
        "adapter_unknown",
        "body_invalid",
        "body_too_large",
    }


def test_problem_leaves_out_what_it_does_not_have() -> None:
    problem = Problem(type="urn:x", title="t", status=404, detail="d", reason=ApiReason.NOT_FOUND)
    assert "nearest" not in msgspec.to_builtins(problem)
