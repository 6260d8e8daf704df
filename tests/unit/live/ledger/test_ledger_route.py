"""`GET /v1/ledger`."""

from pathlib import Path

import msgspec
import pytest
from live_ledger_kit import OFFSET, request, write
from starlette.testclient import TestClient

from lorapick.live.admin import admin_app
from lorapick.live.ledger.answers import LedgerAnswer
from lorapick.testing.published import small_fleet

WINDOW = {"from": str(OFFSET + 50.0), "to": str(OFFSET + 200.0)}


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    """A picker with a ledger of two requests."""
    write(tmp_path / "ledger.sqlite", [request(1, 99.0), request(2, 98.0, pod="b")])
    published = small_fleet()
    published.ledger_file = tmp_path / "ledger.sqlite"
    return TestClient(admin_app(published), base_url="http://127.0.0.1")


def test_a_report(client: TestClient) -> None:
    answer = client.get("/v1/ledger", params=WINDOW)
    assert answer.status_code == 200
    report = msgspec.json.decode(answer.content, type=LedgerAnswer).report
    assert report is not None
    assert (report.window.served, report.window.p95) == (2, 1.0)


def test_rows(client: TestClient) -> None:
    for view, count in (("requests", 1), ("loads", 0), ("evictions", 0)):
        answer = client.get("/v1/ledger", params=WINDOW | {"view": view, "limit": "1"})
        assert len(answer.json()[view]) == count
    (row,) = client.get("/v1/ledger", params=WINDOW | {"view": "requests", "pod": "b"}).json()["requests"]
    assert row["id"] == "r2"
    for outcome, count in (("rejected", 0), ("served", 2)):
        found = client.get("/v1/ledger", params=WINDOW | {"view": "requests", "outcome": outcome}).json()["requests"]
        assert len(found) == count


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"from": "14:00"}, "no date and no zone"),
        ({"from": "2026-01-01T00:00"}, "has no zone"),
        ({"from": "nan"}, "is no time"),
        ({"from": "5", "to": "4"}, "must be before"),
        ({"view": "all"}, "is none of"),
        ({"limit": "0"}, "limit"),
        ({"adaptor": "x"}, "is no parameter"),
        ({"view": "requests", "outcome": "refused"}, "is none of served, failed, rejected, abandoned"),
        ({"view": "loads", "outcome": "failed"}, "outcome goes with view=requests"),
    ],
)
def test_questions_that_are_none(client: TestClient, parameters: dict[str, str], told: str) -> None:
    answer = client.get("/v1/ledger", params=parameters)
    assert (answer.status_code, answer.json()["reason"]) == (400, "parameter_invalid")
    assert told in answer.json()["detail"]


def test_a_file_that_cannot_be_read(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").unlink()
    answer = client.get("/v1/ledger", params=WINDOW)
    assert answer.status_code == 503
    assert "no ledger at" in answer.json()["detail"]


def test_a_picker_without_a_ledger() -> None:
    answer = TestClient(admin_app(small_fleet()), base_url="http://127.0.0.1").get("/v1/ledger")
    assert (answer.status_code, answer.json()["reason"]) == (501, "not_implemented")
    assert "ledger.path" in answer.json()["detail"]
