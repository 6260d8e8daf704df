"""`lorapick residency` against a real admin API with values that stand still."""

import json
from collections.abc import Iterator

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli.residency import _span, register
from lorapick.model.picks import Belief
from lorapick.model.tiers import Evidence, Source, Tier
from lorapick.testing.published import small_fleet
from lorapick.testing.served import served

BELIEFS = (
    Belief(
        pod="pod-02", adapter="acme/code@7", tier=Tier.LOADING, since=99.9, source=Source.COMMANDED, last_evidence=99.5,
        evidence=Evidence.COMMAND,
    ),
    Belief(
        pod="pod-02", adapter="legal-assistant-v2", tier=Tier.GPU_SERVING, since=20.0, source=Source.INFERRED,
        in_flight=2, pinned=True, last_evidence=88.0, evidence=Evidence.KV_EVENT,
    ),
    Belief(
        pod="pod-05", adapter="legal-assistant-v2", tier=Tier.CPU, since=-400.0, source=Source.REPORTED,
        last_evidence=99.0, evidence=Evidence.LIST,
    ),
    Belief(pod="pod-05", adapter="acme/code@7", tier=Tier.DISK, since=0.0, source=Source.INFERRED),
)  # fmt: skip


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    published = small_fleet()
    published.beliefs = BELIEFS
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


def test_what_is_in_memory_in_words(admin: str) -> None:
    assert lines("--admin", admin) == [
        "pod adapter tier for source in flight last evidence",
        "pod-02 acme/code@7 loading 0.1 s commanded - agreed to a command 0.5 s ago",
        "pod-02 legal-assistant-v2 (pinned) gpu_serving 80 s inferred 2 stored KV blocks 12 s ago",
        "pod-05 legal-assistant-v2 cpu 8 min reported - in the pod's list 1.0 s ago",
        "and 1 only on disk, or not registered; --all shows them",
    ]


def test_filters(admin: str) -> None:
    assert lines("--pod", "pod-05", "--all", "--admin", admin)[2:] == ["pod-05 acme/code@7 disk 100 s inferred - none"]
    assert [line.split()[0] for line in lines("--adapter", "acme/code@7", "--admin", admin)[1:]] == ["pod-02", "pod-05"]


def test_json_is_the_answer_of_the_api(admin: str) -> None:
    document = json.loads(run("--json", "--adapter", "acme/code@7", "--pod", "pod-02", "--admin", admin).stdout)
    assert document["cells"] == [
        {
            "pod": "pod-02", "adapter": "acme/code@7", "tier": "loading", "since": 99.9, "source": "commanded",
            "in_flight": 0, "pinned": False, "last_evidence": 99.5, "evidence": "command", "age_s": 0.1,
            "evidence_age_s": 0.5, "side": None,
        }
    ]  # fmt: skip


@pytest.mark.parametrize("flags", [("--pod", "pod-2"), ("--adapter", "legal")])
def test_unknown_names_are_refused_with_near_ones(admin: str, flags: tuple[str, str]) -> None:
    result = run(*flags, "--admin", admin)
    assert result.exit_code == 2
    assert "lorapick residency: no " in result.stderr


def test_without_a_picker() -> None:
    result = run("--admin", "http://127.0.0.1:9")
    assert result.exit_code == 2 and "`lorapick serve --config FILE`" in result.stderr


def test_an_empty_fleet_says_so() -> None:
    from io import StringIO

    from rich.console import Console

    from lorapick.cli.residency import show
    from lorapick.live.admin_views import Residency

    out = StringIO()
    show(Residency(now=1.0, total=3, cells=()), Console(file=out, width=120), every=False)
    assert " ".join(out.getvalue().split()) == (
        "nothing is believed to be in any pod's memory and 3 more that the picker did not send; "
        "--pod or --adapter asks for fewer"
    )


def test_ages_keep_two_of_their_unit() -> None:
    spans = [_span(age) for age in (0.0, 9.94, 9.96, 119.0, 120.0, 7199.0, 7200.0, 172_800.0, None)]
    assert spans == ["0.0 s", "9.9 s", "10 s", "119 s", "2 min", "120 min", "2 h", "2 d", "?"]


def test_values_are_plain() -> None:
    assert msgspec.to_builtins(BELIEFS[0])["evidence"] == "command"
