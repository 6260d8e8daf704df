"""Answers of the core in the words of the pods' engines."""

import logging

import pytest

from lorapick.live.wordings import Wordings
from lorapick.model.effects import Dispatch, Reject
from lorapick.model.picks import Pick
from lorapick.model.pods import Engine, Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Target
from lorapick.wire.asking import wording

PODS = {
    name: Pod(name=name, address=f"10.0.0.{number}:8000", engine=engine, base_model=base)
    for number, (name, engine, base) in enumerate(
        [
            ("v1", Engine.VLLM, "base"), ("v2", Engine.VLLM, "base"), ("s1", Engine.SGLANG, "base"),
            ("s2", Engine.SGLANG, "base"), ("s3", Engine.SGLANG, "other"), ("t1", Engine.TRTLLM, "base"),
            ("t2", Engine.TRTLLM, "base"),
        ]
    )
}  # fmt: skip


def dispatch(*names, adapter="ad"):
    targets = [Target(pod=name, address=f"{name}:1") for name in names]
    pick = Pick(request_id="r", adapter=adapter, pod=names[0], score=1.0, tier=None)
    return Dispatch(cause=1, request_id="r", target=targets[0], fallbacks=tuple(targets[1:]), pick=pick)


@pytest.fixture
def wordings():
    made = Wordings(PODS.get)
    made.path_of = {"ad": "/w/ad"}.get
    return made


def test_a_fleet_of_vllm_and_requests_for_base_models_are_left_alone(wordings):
    for answer in (dispatch("v1", "v2"), dispatch("s1", "t1", adapter=None)):
        assert wordings.worded(answer) is answer


@pytest.mark.parametrize(
    ("names", "kept"),
    [
        (("v1", "s1", "v2", "t1"), ("v2",)),
        (("s1", "v1", "s2", "s3"), ("s2",)),
        (("t1", "v1", "t2", "gone"), ("t2",)),
    ],
)
def test_only_fallbacks_that_are_asked_in_the_same_words_stay(wordings, names, kept):
    found = wordings.worded(dispatch(*names))
    assert tuple(target.pod for target in found.fallbacks) == kept
    assert found.target.pod == names[0]
    assert found.wording == wording(PODS[names[0]], "ad", source="/w/ad")


def test_who_cannot_be_asked_is_named_and_said_once(wordings, caplog):
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        found = wordings.worded(dispatch("t1", "v1", adapter="new"))
        assert isinstance(found, Reject)
        assert (found.status, found.reason, found.request_id) == (503, Reason.ADAPTER_UNREGISTERED, "r")
        assert "t1 cannot be asked for new" in found.message and "give it a `source`" in found.message
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("pod", "statuses"), [("v1", [404]), ("s1", [400, 404]), ("t1", [404]), ("gone", [404])])
def test_how_each_says_that_it_does_not_serve_an_adapter(wordings, pod, statuses):
    assert [status for status in (None, 200, 400, 404, 500) if wordings.may_be_unknown(pod, status)] == statuses


def test_a_fallback_that_cannot_be_asked_is_left_out(wordings):
    assert wordings.worded(dispatch("v1", "t1", "v2", adapter="new")).fallbacks == dispatch("v1", "v2").fallbacks
