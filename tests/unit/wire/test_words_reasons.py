"""A sentence for each reason."""

import msgspec
import pytest

from lorapick.model.reasons import Reason
from lorapick.testing.published import worked_example
from lorapick.wire.api import PrefillVerdictDocument
from lorapick.wire.words import explained
from lorapick.wire.words_reasons import KEPT_OUT, of_pod, of_request


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_words_for_a_pod_and_for_a_request(reason: Reason) -> None:
    assert KEPT_OUT[reason]
    assert of_request(reason)
    lost = [msgspec.structs.replace(each, won=False, reason=reason) for each in worked_example().verdicts]
    for outcome in ("held", "rejected"):
        fields = {"outcome": outcome, "reason": reason, "verdicts": tuple(lost), "told": "no. Really."}
        said = explained(msgspec.structs.replace(worked_example(), **fields)).words
        assert f"({reason})" in said[0]
        assert any(sentence.startswith("Not pod-02, pod-05, pod-07: ") for sentence in said)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"silent": True, "paused": True}, "the pod does not answer"),
        ({"paused": True}, "prefills failed there one after the other, so it is left alone for a while"),
        ({}, "the adapter failed to load a short while ago, there or on several pods"),
    ],
)
def test_an_open_circuit_says_which(fields: dict[str, bool], why: str) -> None:
    assert of_pod(PrefillVerdictDocument(pod="p", reason=Reason.CIRCUIT_OPEN, **fields)) == why
