"""`lorapick explain` against a real admin API with values that stand still."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli.explain import register
from lorapick.model.disaggregation import SplitCosts
from lorapick.model.picks import Explanation, PrefillVerdict
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Tier
from lorapick.testing.published import ValuesPublished, small_fleet, worked_example
from lorapick.testing.served import served
from lorapick.wire.api import ExplanationDocument

PAIR = SplitCosts(prefill=0.12, transfer=0.01, decode=0.05, alone=0.4)


def on_side(pod: str, queue: float | None, *, reason: Reason | None = None, **fields: Any) -> PrefillVerdict:
    parts = {"queue": queue, "load": 0.0, "prompt": 0.2, "transfer": 0.002, "besides": 0.0} if queue is not None else {}
    return PrefillVerdict(pod=pod, reason=reason, **{"chosen": False, "tier": Tier.CPU, **parts, **fields})


SIDE = (
    on_side("pod-09", 0.01, chosen=True),
    on_side("pod-10", 0.5, reason=Reason.OUTSCORED),
    on_side("pod-11", None, reason=Reason.CIRCUIT_OPEN, tier=Tier.DISK, paused=True),
)


@pytest.fixture(scope="module")
def published() -> ValuesPublished:
    fleet = small_fleet()
    winner, loser, filtered = worked_example().verdicts
    others = tuple(msgspec.structs.replace(loser, pod=f"pod-{n}") for n in range(100, 130))
    cases: dict[str, Explanation] = {
        "crowd": msgspec.structs.replace(worked_example("crowd"), verdicts=(winner, *others, filtered)),
        "refused": msgspec.structs.replace(
            worked_example("refused"), outcome="rejected", reason=Reason.QUEUE_FULL, verdicts=(filtered,), fallbacks=()
        ),
        "split": msgspec.structs.replace(worked_example("split"), prefill="pod-09", prefill_tier=Tier.CPU, pair=PAIR),
        "alone": msgspec.structs.replace(worked_example("alone"), pair=PAIR),
        "sides": msgspec.structs.replace(worked_example("sides"), prefill="pod-09", pair=PAIR, prefill_side=SIDE),
        "base": msgspec.structs.replace(worked_example("base"), adapter=None, degraded=True),
        "rounds": msgspec.structs.replace(
            worked_example("rounds"),
            policy="round-robin",
            weights={},
            verdicts=(msgspec.structs.replace(winner, score=None, terms=None),),
        ),
        "no gpu": msgspec.structs.replace(
            worked_example("no gpu"),
            verdicts=(msgspec.structs.replace(winner, terms=msgspec.structs.replace(winner.terms, gpu=None)),),
        ),
    }
    fleet.explanations.update(cases)
    return fleet


@pytest.fixture(scope="module")
def admin(published: ValuesPublished) -> Iterator[str]:
    with served(published) as url:
        yield url


def run(*arguments: str) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, arguments)


def lines(*arguments: str) -> list[str]:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return [" ".join(line.split()) for line in result.stdout.splitlines() if line.strip()]


def test_worked_example_in_full(admin: str) -> None:
    assert lines("req-1", "--admin", admin) == [
        "req-1: legal went to pod-02",
        "The request for legal (which stood for legal-assistant-v2) went to pod-02.",
        "pod-02 was chosen (score 0.796).",
        (
            "pod-02 had the adapter in a GPU slot, in use for 79 s "
            "(inferred from what was sent there; its scrape named it 0.4 s"
        ),
        "before).",
        "Not pod-05: the score was lower there.",
        "Not pod-07: as many requests wait there as may (max_queue).",
        "If pod-02 could not be reached, the gateway would go on to pod-05.",
        "policy weighted · adapter legal-assistant-v2",
        "pod-02 won with 0.79625",
        "adapter 1.000 × 0.50 = 0.50000 gpu_serving, inferred, scrape 0.4 s before",
        "kv 0.600 × 0.20 = 0.12000",
        "queue 0.625 × 0.15 = 0.09375 depth 3 of 8",
        "gpu 0.550 × 0.15 = 0.08250 GPU figure from pod",
        "pod score adapter kv queue gpu why not",
        "pod-05 0.28200 0.00000 0.00000 0.15000 0.13200 outscored: queue 0 of 8; disk, reported; GPU figure from",
        "running/max_num_seqs",
        "pod-07 - - - - - queue_full: queue 8 of 8",
    ]


def test_without_an_id_the_last_decision_that_was_kept(admin: str) -> None:
    assert lines("--admin", admin)[0] == "req-2: legal went to pod-02"


def test_the_last_that_was_refused(admin: str, published: ValuesPublished, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("--refused", "--admin", admin)
    assert (said.exit_code, "`lorapick ledger requests --outcome rejected`" in said.stderr) == (2, True)
    row = published.decisions(1)[0]
    refused = msgspec.structs.replace(
        row, request_id="refused", outcome="rejected", reason=Reason.QUEUE_FULL, explained=True
    )
    monkeypatch.setattr(published, "decision_rows", [row, refused, *published.decision_rows])
    assert lines("--refused", "--admin", admin)[0] == "refused: legal was rejected (queue_full)"
    assert run("req-1", "--refused", "--admin", admin).exit_code == 2


def test_address_without_a_scheme(admin: str) -> None:
    assert lines("req-1", "--admin", admin.removeprefix("http://"))[0].startswith("req-1")


def test_many_losers_are_counted_and_all_shows_them(admin: str) -> None:
    short = lines("crowd", "--admin", admin)
    assert short[-1] == "and 11 more: 10 outscored, 1 queue_full; --all shows them"
    everything = lines("crowd", "--admin", admin, "--all")
    assert everything[-1] == "pod-07 - - - - - queue_full: queue 8 of 8"
    assert sum(line.startswith("pod-1") for line in everything) == 30


def test_rejection_has_no_winner(admin: str) -> None:
    shown = lines("refused", "--admin", admin)
    assert shown[0] == "refused: legal was rejected (queue_full)"
    assert not [line for line in shown if " won " in line]


def test_both_ways_of_a_pair_in_figures(admin: str) -> None:
    told = lines("split", "--admin", admin)
    figures = [
        "prefill 0.1200 s pod-09",
        "KV transfer 0.0100 s",
        "decode 0.0500 s pod-02",
        "together 0.1800 s taken",
        "alone 0.4000 s all on pod-02",
    ]
    at = told.index(figures[0])
    assert told[at : at + len(figures)] == figures
    assert "alone 0.4000 s all on pod-02, taken" in lines("alone", "--admin", admin)


def test_the_side_that_prefills_in_figures(admin: str) -> None:
    said = lines("sides", "--admin", admin)
    start = next(place for place, line in enumerate(said) if line.split()[:3] == ["to", "prefill", "for"])
    assert [" ".join(line.split()) for line in said[start : start + 4]] == [
        "to prefill for pod-02 queue load prompt transfer besides counted why not",
        "pod-09 0.0100 0.0000 0.2000 0.0020 0.0000 0.2120 taken: cpu",
        "pod-10 0.5000 0.0000 0.2000 0.0020 0.0000 0.7020 outscored: cpu",
        "pod-11 - - - - - - circuit_open: disk; prefills failed there",
    ]


def test_base_model_on_old_reports(admin: str) -> None:
    shown = lines("base", "--admin", admin)
    assert "policy weighted · base model" in shown
    assert "The decision was taken in need: all reports were too old, or scoring had failed." in shown


def test_policy_without_terms(admin: str) -> None:
    assert lines("rounds", "--admin", admin)[-1] == "pod-02 won without a score"


def test_unknown_value_is_said_and_what_it_brought_too(admin: str) -> None:
    assert "gpu unknown × 0.15 = 0.08250 GPU figure from pod" in lines("no gpu", "--admin", admin)


def test_json_is_the_document(admin: str) -> None:
    result = run("req-1", "--admin", admin, "--json")
    document = msgspec.json.decode(result.stdout, type=ExplanationDocument)
    assert (document.request_id, document.verdicts[0].pod) == ("req-1", "pod-02")


def test_unknown_id_names_the_nearest(admin: str) -> None:
    result = run("req-11", "--admin", admin)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no decision on 'req-11'" in result.stderr
    assert "nearest: req-1" in result.stderr


def test_ids_are_quoted(admin: str) -> None:
    assert "no decision on '../fleet?x=1'" in run("../fleet?x=1", "--admin", admin).stderr


def test_nobody_there() -> None:
    result = run("--admin", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "connection refused" in result.stderr
    assert "lorapick up" in result.stderr


@pytest.mark.parametrize("url", ["https://", "http://", "http://host:port", "ftp://x"])
def test_address_that_is_none(url: str) -> None:
    result = run("--admin", url)
    assert result.exit_code == 2
    assert "give one like http://127.0.0.1:9091" in result.stderr


def test_picker_that_has_decided_nothing(
    published: ValuesPublished, admin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "decision_rows", ())
    result = run("--admin", admin)
    assert result.exit_code == 2
    assert "send it a request" in result.stderr
