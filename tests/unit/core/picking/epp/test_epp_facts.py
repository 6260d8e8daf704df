"""Facts of a decision that nobody collected."""

from lorapick.core.picking.epp.facts import NO_FACTS
from lorapick.core.picking.query import Query


def test_a_query_has_none_until_somebody_collects_them():
    facts = Query("r", None).facts
    assert facts is NO_FACTS
    assert (facts.peer, facts.prompt_tokens, dict(facts.in_flight), facts.cold) == (-1, 0, {}, ())
