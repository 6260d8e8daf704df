"""Decisions in plain sentences."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.disaggregation import SplitCosts
from lorapick.model.picks import Came, Explanation, PrefillVerdict, Waited, What
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.testing.published import worked_example
from lorapick.wire.words import CHOSEN, MOST_NAMES, explained, span

PLACE = "a place on a pod that can serve it"
ASKED = "The request for legal (which stood for legal-assistant-v2)"


def words(**fields: object) -> list[str]:
    return [*explained(msgspec.structs.replace(worked_example(), **fields)).words]


def verdicts(explanation: Explanation, **of_winner: object) -> tuple[object, ...]:
    winner, *losers = explanation.verdicts
    return (msgspec.structs.replace(winner, **of_winner), *losers)


def test_the_worked_example_in_words() -> None:
    assert words(chosen_by="score") == [
        f"{ASKED} went to pod-02.",
        (
            "pod-02 scored best with 0.796, the next one, pod-05, had 0.282; having the adapter nearer at hand "
            "made most of the difference."
        ),
        (
            "pod-02 had the adapter in a GPU slot, in use for 79 s (inferred from what was sent there; its scrape "
            "named it 0.4 s before)."
        ),
        "Not pod-05: the score was lower there.",
        "Not pod-07: as many requests wait there as may (max_queue).",
        "If pod-02 could not be reached, the gateway would go on to pod-05.",
    ]


PAIR = SplitCosts(prefill=0.12, transfer=0.01, decode=0.05, alone=0.4)


def test_a_pair_is_told_with_what_both_ways_were_expected_to_take() -> None:
    said = words(prefill="pod-09", prefill_tier=Tier.CPU, pair=PAIR)
    assert (
        "To be prefilled by pod-09 (expected 0.12 s), which had the adapter in host memory and had to load it into a "
        "slot, KV in 0.01 s, decoded by pod-02 (expected 0.05 s: the whole answer, what a load there outlasts the "
        "prefill by, and what others wait); together 0.18 s; pod-02 alone, the prefill included, was expected to take "
        "0.4 s." in said
    )
    assert said[-1] == (
        "If pod-02 could not be reached, or was lost before its answer began, the gateway would go on to pod-05."
    )


@pytest.mark.parametrize(
    ("what", "pod", "why", "lead", "told"),
    [
        (
            What.PREFILLED,
            "pod-09",
            None,
            "Prefilled",
            "After 0.5 s the prefill on pod-09 had gone well (expected 0.13 s).",
        ),
        (
            What.FAILED,
            "pod-09",
            "kv_mismatch",
            "Was to be prefilled",
            "After 0.5 s pod-02 said that the prefill on pod-09 had failed (kv_mismatch); it did the prefill itself.",
        ),
        (
            What.FAILED,
            "pod-09",
            None,
            "Was to be prefilled",
            "After 0.5 s pod-02 said that the prefill on pod-09 had failed; it did the prefill itself.",
        ),
        (
            What.LOST,
            "pod-09",
            None,
            "Was to be prefilled",
            "After 0.5 s pod-09 was lost in the middle of the prefill; pod-02 does the prefill itself.",
        ),
        (
            What.OVERDUE,
            "pod-09",
            None,
            "Sent to be prefilled",
            "After 0.5 s nobody had said that the prefill was over (expected 0.13 s), so it counts as over on pod-09.",
        ),
        (
            What.OVER,
            "pod-09",
            "status 503",
            "Sent to be prefilled",
            (
                "After 0.5 s an answer came (status 503; prefill and KV were expected in 0.13 s, the whole in 0.18 s); "
                "pod-02's sidecar, if it has one, does not say how it went."
            ),
        ),
        (
            What.LEFT,
            "pod-09",
            None,
            "Was to be prefilled",
            "After 0.5 s the request ended, before its prefill was known to be over.",
        ),
        (
            What.MOVED,
            "pod-05",
            "gone",
            "To be prefilled",
            "After 0.5 s pod-02 was lost (gone); pod-05 keeps a slot for it, as the gateway goes on to there.",
        ),
        (
            What.NOT_MOVED,
            None,
            "gone; no fallback is left",
            "To be prefilled",
            "After 0.5 s pod-02 was lost (gone; no fallback is left); no other pod keeps a slot for it.",
        ),
        (
            What.SERVED_BY,
            "pod-05",
            None,
            "To be prefilled",
            "After 0.5 s the gateway said that pod-05 serves it.",
        ),
    ],
)
def test_what_came_of_a_prefill_is_told(what: What, pod: str | None, why: str | None, lead: str, told: str) -> None:
    t = worked_example().t
    said = words(prefill="pod-09", pair=PAIR, came=(Came(t=t + 0.5, what=what, pod=pod, why=why),))
    assert told in said
    assert [line for line in said if line.startswith(f"{lead} by pod-09 (expected 0.12 s)")]


def test_whoever_serves_is_whoever_prefills_after_a_failure() -> None:
    t = worked_example().t
    moved = Came(t=t + 0.5, what=What.SERVED_BY, pod="pod-05")
    failed = Came(t=t + 0.5, what=What.FAILED, pod="pod-09", why="no_kv")
    said = words(prefill="pod-09", pair=PAIR, came=(moved, failed))
    assert "After 0.5 s pod-05 said that the prefill on pod-09 had failed (no_kv); it did the prefill itself." in said


def test_who_could_not_prefill_is_told_with_its_own_reason() -> None:
    def side(pod: str, reason: Reason | None, **fields: Any) -> PrefillVerdict:
        return PrefillVerdict(pod=pod, chosen=False, reason=reason, tier=Tier.DISK, **fields)

    said = words(
        unsplit="nobody_prefills",
        prefill_side=(side("p1", Reason.QUEUE_FULL), side("p2", Reason.CIRCUIT_OPEN, paused=True), side("p3", None)),
    )
    assert "pod-02 prefills by itself, since no other pod could." in said
    assert "Not p1 to prefill: as many requests wait there as may (max_queue)." in said
    assert "Not p2 to prefill: prefills failed there one after the other, so it is left alone for a while." in said
    assert not [line for line in said if "p3" in line]


def test_too_few_tokens_are_told_with_their_number_and_the_limit() -> None:
    said = words(unsplit="few_tokens", uncached_tokens=130.9, least_uncached_tokens=256)
    assert (
        "pod-02 prefills by itself, since some 130 tokens of the prompt were not cached there, and another pod "
        "prefills from 256 on (disaggregation.uncached_tokens)." in said
    )


@pytest.mark.parametrize(
    ("silent", "why"),
    [
        (True, "the pod does not answer"),
        (False, "the adapter failed to load a short while ago, there or on several pods"),
    ],
)
def test_a_pod_that_is_silent_and_one_that_failed_to_load_are_told_apart(silent: bool, why: str) -> None:
    winner, other, *rest = worked_example().verdicts
    lost = msgspec.structs.replace(other, reason=Reason.CIRCUIT_OPEN, score=None, silent=silent)
    assert f"Not {other.pod}: {why}." in words(verdicts=(winner, lost, *rest))


@pytest.mark.parametrize("only", [True, False])
def test_a_dead_pod_has_one_sentence(only: bool) -> None:
    winner, other, *rest = worked_example().verdicts
    lost = msgspec.structs.replace(other, reason=Reason.CIRCUIT_OPEN, score=None, silent=True)
    prefills = PrefillVerdict(
        pod=other.pod, chosen=False, reason=Reason.CIRCUIT_OPEN, tier=Tier.DISK, silent=True, only=only
    )
    said = words(verdicts=(winner, lost, *rest), prefill_side=(prefills,))
    (line,) = [line for line in said if line.startswith(f"Not {other.pod}")]
    assert line == f"Not {other.pod}{' to prefill' if only else ''}: the pod does not answer."


def test_a_pair_that_was_not_taken() -> None:
    assert (
        "pod-02 prefills by itself: alone it was expected to take 0.4 s, with the best pod to prefill 0.18 s."
        in words(pair=PAIR)
    )


def test_what_counts_besides_is_said_where_it_decided() -> None:
    pair = SplitCosts(prefill=0.12, transfer=0.01, decode=0.05, alone=0.4, besides=0.7)
    assert (
        "pod-02 prefills by itself: alone it was expected to take 0.4 s, with the best pod to prefill 0.18 s "
        "(counted as 0.88 s, with loads that nobody waits for)." in words(pair=pair)
    )


def test_pods_that_were_chosen_by_themselves() -> None:
    assert "To be prefilled by pod-09; both were chosen by themselves." in words(prefill="pod-09")


def test_a_request_that_nobody_could_split_has_no_word_of_it() -> None:
    assert not [sentence for sentence in words() if "refill" in sentence]


@pytest.mark.parametrize("chosen", [*CHOSEN, None])
@pytest.mark.parametrize("weights", [{}, {"adapter": 0.5}])
def test_whatever_chose_the_winner_has_words(chosen: str | None, weights: dict[str, float]) -> None:
    said = words(chosen_by=chosen, weights=weights)[1]
    assert said.startswith("pod-02 ")
    assert ("policy weighted" in said) is (not weights)


def test_a_wait_that_ended_well() -> None:
    course = (
        Waited(t=97.0, reason=Reason.HELD_FOR_LOAD, follows="pod-05", until=98.4),
        Waited(t=98.4, reason=Reason.HELD_FOR_SLOT, because=Reason.QUEUE_FULL, until=127.0),
    )
    said = words(waited=2.0, course=course)
    assert (
        "It had waited at the picker for 2 s: for the load of legal-assistant-v2 on pod-05, for 1.4 s at most, "
        f"then for {PLACE} (as many requests wait there as may), for 29 s at most; then it was sent."
    ) in said
    overdue = (msgspec.structs.replace(course[0], until=99.0),)
    assert "then it was sent, since its time there was up." in " ".join(words(waited=2.0, course=overdue))
    many = words(waited=2.0, course=course, course_left_out=4)
    assert "at most, then 4 more times, then for a place" in " ".join(many)
    assert "It had waited at the picker for 2 s." in words(waited=2.0)


def test_a_wait_that_goes_on() -> None:
    course = (
        Waited(t=97.0, reason=Reason.HELD_FOR_SLOT),
        Waited(t=98.0, reason=Reason.HELD_FOR_LOAD, follows="pod-05"),
    )
    said = words(outcome="held", reason=Reason.HELD_FOR_LOAD, verdicts=worked_example().verdicts[1:], course=course)
    assert said[:3] == [
        (
            f"{ASKED} waits at the picker (held_for_load): the adapter is "
            "being loaded already, and one load serves all who wait for it."
        ),
        "It waits for the load of legal-assistant-v2 on pod-05.",
        "Before, it waited for a place on a pod that can serve it.",
    ]


def test_a_refusal_says_what_the_client_was_told() -> None:
    lost = worked_example().verdicts[2:]
    said = words(outcome="rejected", reason=Reason.QUEUE_FULL, verdicts=lost, fallbacks=(), told="try later.")
    assert said == [
        (
            f"{ASKED} was refused with 429 (queue_full): of all pods the "
            "nearest to serving it did not, since as many requests wait there as may (max_queue)."
        ),
        "Not pod-07: as many requests wait there as may (max_queue).",
        "The client was told: try later.",
    ]


def test_many_pods_are_counted_and_the_base_model_has_no_place() -> None:
    winner, loser, _ = worked_example().verdicts
    others = tuple(msgspec.structs.replace(loser, pod=f"pod-{n}") for n in range(10, 20))
    said = words(adapter=None, model="base", verdicts=(winner, *others), degraded=True)
    assert said[0] == "The request for base (the base model) went to pod-02."
    assert f"Not pod-10, pod-11, pod-12 and {10 - MOST_NAMES} more: the score was lower there." in said
    assert not [sentence for sentence in said if "GPU slot" in sentence]
    assert "The decision was taken in need: all reports were too old, or scoring had failed." in said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0 s"),
        (0.42, "0.42 s"),
        (9.94, "9.9 s"),
        (59.9, "60 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (7260, "2 h 1 min"),
        (200_000, "2 d"),
    ],
)
def test_spans(seconds: float, said: str) -> None:
    assert span(seconds) == said


@given(
    tier=st.sampled_from(Tier),
    source=st.none() | st.sampled_from(Source),
    evidence=st.none() | st.sampled_from(Evidence),
    since=st.none() | st.floats(0, 200),
    last_evidence=st.none() | st.floats(0, 200),
    chosen_by=st.none() | st.sampled_from([*CHOSEN]),
    outcome=st.sampled_from(["dispatched", "held", "rejected"]),
)
def test_whatever_is_known_there_are_words(chosen_by: str, outcome: str, **of_winner: object) -> None:
    said = words(chosen_by=chosen_by, outcome=outcome, verdicts=verdicts(worked_example(), **of_winner))
    assert len(said) >= 3
    assert all(sentence[0].isalpha() and sentence.endswith(".") and "None" not in sentence for sentence in said)
