"""The admin API over HTTP, against published values that stand still."""

import asyncio
import re
from pathlib import Path

import aiohttp
import msgspec
import pytest
from starlette.testclient import TestClient

from lorapick.live.admin import admin_app, serve_admin
from lorapick.live.admin_changes import VIEWS
from lorapick.live.admin_views import Frame
from lorapick.live.publish import FleetSnapshot
from lorapick.live.web import BindError
from lorapick.model.signals import SignalPoint, Signals
from lorapick.testing.published import ValuesPublished, small_fleet
from lorapick.wire.api import ExplanationDocument, History, Problem


@pytest.fixture
def published() -> ValuesPublished:
    return small_fleet()


@pytest.fixture
def client(published: ValuesPublished, tmp_path: Path) -> TestClient:
    (tmp_path / "index.html").write_text("<title>page</title>")
    (tmp_path / "page.css").write_text("body {}")
    return TestClient(admin_app(published, static=tmp_path), base_url="http://127.0.0.1:9091")


def problem_of(response) -> Problem:
    assert response.headers["content-type"] == "application/problem+json"
    document = msgspec.json.decode(response.content, type=Problem)
    assert document.status == response.status_code
    return document


class TestReading:
    def test_fleet_is_the_snapshot(self, client: TestClient, published: ValuesPublished) -> None:
        response = client.get("/v1/fleet")
        assert response.status_code == 200
        assert msgspec.json.decode(response.content, type=FleetSnapshot) == published.fleet_now

    def test_unknown_is_null_and_not_zero(self, client: TestClient) -> None:
        silent = client.get("/v1/fleet").json()["pods"][2]
        assert (silent["queue_depth"], silent["slots_used"], silent["scrape_age_s"]) == (None, None, None)
        assert (silent["ready"], silent["reason"], silent["last_error"]) == (False, "stale", "refused")

    def test_residency_says_tiers_as_words(self, client: TestClient) -> None:
        answer = client.get("/v1/residency").json()
        assert [(cell["pod"], cell["adapter"], cell["tier"]) for cell in answer["cells"]] == [
            ("pod-02", "legal-assistant-v2", "gpu_serving"),
            ("pod-02", "acme/code@7", "loading"),
            ("pod-05", "legal-assistant-v2", "cpu"),
        ]
        assert (answer["now"], answer["total"]) == (100.0, 3)

    @pytest.mark.parametrize(
        ("query", "pods", "total"),
        [
            ("pod=pod-02", ["pod-02", "pod-02"], 2),
            ("adapter=legal-assistant-v2", ["pod-02", "pod-05"], 2),
            ("pod=pod-05&adapter=legal-assistant-v2", ["pod-05"], 1),
            ("limit=1", ["pod-02"], 3),
        ],
    )
    def test_residency_narrows(self, client: TestClient, query: str, pods: list[str], total: int) -> None:
        answer = client.get(f"/v1/residency?{query}").json()
        assert ([cell["pod"] for cell in answer["cells"]], answer["total"]) == (pods, total)

    @pytest.mark.parametrize(
        ("query", "reason", "near"),
        [
            ("pod=pod-20", "pod_unknown", "pod-02"),
            ("adapter=legal-assistant", "adapter_unknown", "legal-assistant-v2"),
        ],
    )
    def test_a_filter_that_fits_nothing_is_told(self, client: TestClient, query: str, reason: str, near: str) -> None:
        answer = client.get(f"/v1/residency?{query}")
        assert (answer.status_code, answer.json()["reason"]) == (404, reason)
        assert near in answer.json()["nearest"]

    def test_adapters(self, client: TestClient) -> None:
        rows = client.get("/v1/adapters").json()["adapters"]
        assert [(row["name"], row["requests"], row["rank"]) for row in rows] == [
            ("acme/code@7", 2, None),
            ("legal-assistant-v2", 8, 16),
        ]

    def test_one_adapter_whose_name_holds_a_slash(self, client: TestClient) -> None:
        answer = client.get("/v1/adapters/acme/code@7").json()
        assert answer["adapter"]["pods"] == {"loading": ["pod-02"]}
        assert [cell["tier"] for cell in answer["cells"]] == ["loading"]

    def test_decisions_newest_first_and_limited(self, client: TestClient) -> None:
        rows = client.get("/v1/decisions?limit=2").json()["decisions"]
        assert [(row["request_id"], row["outcome"]) for row in rows] == [("req-3", "dispatched"), ("req-2", "held")]

    def test_one_decision_shows_what_each_term_brought(self, client: TestClient) -> None:
        document = msgspec.json.decode(client.get("/v1/decisions/req-1").content, type=ExplanationDocument)
        winner, loser, filtered = document.verdicts
        assert (winner.pod, winner.score, winner.tier) == ("pod-02", 0.79625, "gpu_serving")
        assert winner.contributions == pytest.approx({"adapter": 0.5, "kv": 0.12, "queue": 0.09375, "gpu": 0.0825})
        assert (loser.reason, loser.gpu_source) == ("outscored", "running/max_num_seqs")
        assert (filtered.reason, filtered.score, filtered.contributions) == ("queue_full", None, {})

    def test_signals_and_their_lines(self, published: ValuesPublished, client: TestClient) -> None:
        point = SignalPoint(t=95.0, swaps_per_second=0.5, requests_per_second=2.0)
        published.points = [point]
        signals = msgspec.json.decode(client.get("/v1/signals").content, type=Signals)
        assert signals == published.signals()
        history = msgspec.json.decode(client.get("/v1/history").content, type=History)
        assert history == History(every=5.0, points=(point,))

    def test_an_unknown_id_hears_how_far_back_decisions_reach(self, client: TestClient) -> None:
        detail = problem_of(client.get("/v1/decisions/req-9")).detail
        assert "no decision on 'req-9' among the last 3, which reach back 1 s; the last 2000 are kept" in detail

    def test_alerts_and_health(self, client: TestClient) -> None:
        assert client.get("/v1/alerts").json() == {"alerts": []}
        health = client.get("/healthz").json()
        assert (health["status"], health["pods_ready"], health["pods"]) == ("ok", 2, 3)


class TestRefusing:
    def test_unknown_adapter_names_the_nearest(self, client: TestClient) -> None:
        document = problem_of(client.get("/v1/adapters/legal-asistant-v2"))
        assert (document.status, document.reason) == (404, "adapter_unknown")
        assert document.nearest == ("legal-assistant-v2",)
        assert "legal-asistant-v2" in document.detail

    def test_unknown_decision_names_the_nearest(self, client: TestClient) -> None:
        document = problem_of(client.get("/v1/decisions/req-9"))
        assert (document.status, document.reason) == (404, "decision_unknown")
        assert "req-1" in document.nearest

    def test_decision_that_was_not_kept_says_so(self, client: TestClient) -> None:
        document = problem_of(client.get("/v1/decisions/req-3"))
        assert (document.reason, document.nearest) == ("decision_not_kept", ("req-2", "req-1"))

    @pytest.mark.parametrize(
        "value", ["0", "-1", "1001", "ten", "", "1.5", "٣", "9" * 5000, "000000001" + "0" * 5000, "000000001000000"]
    )
    def test_limit_that_is_none(self, client: TestClient, value: str) -> None:
        document = problem_of(client.get("/v1/decisions", params={"limit": value}))
        assert (document.status, document.reason) == (400, "parameter_invalid")
        assert "from 1 to 1000" in document.detail
        assert len(document.detail) < 150

    def test_a_picker_that_keeps_no_ledger_says_so(self, client: TestClient) -> None:
        document = problem_of(client.get("/v1/ledger"))
        assert (document.status, document.reason) == (501, "not_implemented")

    def test_who_only_shows_a_picker_changes_nothing(self, client: TestClient) -> None:
        for path in ("/v1/adapters/acme/code@7/pin", "/v1/placement/plan"):
            assert problem_of(client.post(path, json={})).status == 501
        assert problem_of(client.get("/v1/placement")).status == 501

    def test_wrong_path_and_wrong_method(self, client: TestClient) -> None:
        assert problem_of(client.get("/v1/nothing")).reason == "not_found"
        wrong = client.post("/v1/fleet")
        assert problem_of(wrong).reason == "method_not_allowed"
        assert "GET" in wrong.headers["allow"]

    def test_broken_view_is_a_problem_too(self, published: ValuesPublished) -> None:
        published.fleet_now = None  # type: ignore[assignment]
        client = TestClient(admin_app(published), base_url="http://localhost", raise_server_exceptions=False)
        assert problem_of(client.get("/healthz")).reason == "internal"


class TestDoor:
    @pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9091", "localhost:9091", "LOCALHOST", "[::1]:9091"])
    def test_own_names_come_in(self, client: TestClient, host: str) -> None:
        assert client.get("/v1/fleet", headers={"host": host}).status_code == 200

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:9091", "127.0.0.1.evil.example", "10.0.0.1", ""])
    def test_rebound_names_do_not(self, client: TestClient, host: str) -> None:
        document = problem_of(client.get("/v1/fleet", headers={"host": host}))
        assert (document.status, document.reason) == (421, "host_refused")

    def test_foreign_pages_do_not(self, client: TestClient) -> None:
        document = problem_of(client.post("/v1/events", headers={"origin": "http://evil.example"}))
        assert (document.status, document.reason) == (403, "origin_refused")
        for origin in ("null", "http://[x", "", "http://"):
            assert problem_of(client.get("/v1/fleet", headers={"origin": origin})).status == 403

    def test_own_page_does(self, client: TestClient) -> None:
        assert client.get("/v1/fleet", headers={"origin": "http://localhost:9091"}).status_code == 200

    @pytest.mark.parametrize(("host", "status"), [("10.1.2.3:9091", 200), ("evil.example", 421)])
    def test_bound_to_all_addresses_takes_numbers_only(
        self, published: ValuesPublished, host: str, status: int
    ) -> None:
        client = TestClient(admin_app(published, bind_host="0.0.0.0"), base_url=f"http://{host}")
        assert client.get("/v1/fleet").status_code == status

    def test_answers_carry_safe_headers_and_no_cors(self, client: TestClient) -> None:
        headers = client.get("/v1/fleet", headers={"origin": "http://localhost"}).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert not [name for name in headers if name.startswith("access-control")]


class TestPage:
    def test_page_and_its_files(self, client: TestClient) -> None:
        assert "<title>page" in client.get("/").text
        assert client.get("/static/page.css").text == "body {}"

    def test_files_outside_are_not_served(self, client: TestClient) -> None:
        assert client.get("/static/..%2f..%2fetc/passwd").status_code == 404

    def test_without_a_page_there_is_none(self, published: ValuesPublished) -> None:
        client = TestClient(admin_app(published), base_url="http://localhost")
        assert problem_of(client.get("/")).status == 404


class TestOpenApi:
    def test_every_reference_resolves(self, client: TestClient) -> None:
        text = client.get("/openapi.json").text
        schemas = msgspec.json.decode(text)["components"]["schemas"]
        assert set(re.findall(r"#/components/schemas/(\w+)", text)) <= set(schemas)

    def test_every_get_route_is_in_it_and_answers(self, client: TestClient) -> None:
        paths = client.get("/openapi.json").json()["paths"]
        unanswered = ["/v1/ledger", *(view.path for view in VIEWS)]
        for path in [path for path, verbs in paths.items() if "get" in verbs and path != "/v1/stream"]:
            filled = path.replace("{name}", "legal-assistant-v2").replace("{id}", "req-1")
            assert client.get(filled).status_code == (501 if path in unanswered else 200), path


class TestServing:
    async def test_over_a_socket_and_port_in_use_is_named(self, published: ValuesPublished) -> None:
        async with serve_admin(published, bind="127.0.0.1:0") as address, aiohttp.ClientSession() as session:
            async with session.get(f"http://{address}/v1/fleet") as response:
                assert (await response.json())["version"] == 42
            port = address.rpartition(":")[2]
            with pytest.raises(BindError, match=rf"port {port} of {address} is in use.*server\.admin"):
                async with serve_admin(published, bind=address):
                    pass  # pragma: no cover

    async def test_stream_sends_frames_and_ends_when_the_server_stops(self, published: ValuesPublished) -> None:
        async with aiohttp.ClientSession() as session:
            async with serve_admin(published, bind="127.0.0.1:0") as address:
                response = await session.get(f"http://{address}/v1/stream")
                assert response.content_type == "text/event-stream"
                assert await response.content.readuntil(b"\n\n") == b"retry: 2000\n\n"
                first = (await response.content.readuntil(b"\n\n")).removeprefix(b"data: ")
                shown = msgspec.json.decode(first, type=Frame)
            rest = await asyncio.wait_for(response.content.read(), 5)
        assert (shown.whole, shown.totals) == (True, published.fleet_now.totals)
        assert (shown.pods_total, [*shown.cells], [*shown.host]) == (3, ["pod-02"], ["pod-05"])
        assert sorted(shown.names) == ["acme/code@7", "legal-assistant-v2"]
        assert rest.count(b"data: ") <= 3
