"""Runbooks behind the links of alerts, as a browser gets them."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lorapick.dash.rules import alert_words
from lorapick.dash.runbooks import runbook_directory
from lorapick.live.admin import admin_app
from lorapick.live.runbook_pages import Files
from lorapick.testing.published import ValuesPublished, small_fleet


def client_of(static: Files | Path | None, published: ValuesPublished | None = None) -> TestClient:
    return TestClient(admin_app(published or small_fleet(), static=static), base_url="http://127.0.0.1:9091")


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    (tmp_path / "index.html").write_text("the page")
    return client_of(Files(tmp_path, runbook_directory()))


def test_every_alert_has_a_page(client):
    for alert in alert_words():
        answer = client.get(f"/runbooks/{alert}")
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/html")
        assert "<h1>" in answer.text
        assert "When to ignore it" in answer.text
        assert "<pre><code" in answer.text


def test_they_are_listed_and_styled_from_here_alone(client):
    listed = client.get("/runbooks")
    assert all(f'href="/runbooks/{alert}"' in listed.text for alert in alert_words())
    style = client.get("/runbooks/runbook.css")
    assert style.headers["content-type"].startswith("text/css")
    assert "http" not in style.text
    assert "style=" not in client.get("/runbooks/thrash").text  # the server's policy forbids inline styles
    assert "default-src 'self'" in listed.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["trash", "..%2Frunbooks", "THRASH", "<b>", "a" * 500])
def test_an_unknown_name_is_told_so(client, name):
    answer = client.get(f"/runbooks/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "<b>" not in answer.text or answer.json()["detail"]


def test_a_near_name_is_suggested(client):
    assert client.get("/runbooks/trash").json()["nearest"] == ["thrash"]


def test_markup_in_a_runbook_stays_text(tmp_path):
    (tmp_path / "index.html").write_text("the page")
    (tmp_path / "odd.md").write_text("# Odd <script>\n<script>alert(1)</script>\n")
    client = client_of(Files(tmp_path, tmp_path))
    assert "<script>" not in client.get("/runbooks/odd").text
    assert "<script>" not in client.get("/runbooks").text


def test_a_page_alone_has_no_runbooks(tmp_path):
    (tmp_path / "index.html").write_text("the page")
    client = client_of(tmp_path)
    assert client.get("/").text == "the page"
    assert client.get("/runbooks/thrash").status_code == 404
