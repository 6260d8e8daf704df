"""How changes are taken over HTTP: bodies whatever they hold, the log, and the document that describes the routes."""

import json
import logging

import pytest
from admin_kit import Site, done, refused
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.routing import Route

from lorapick.live.admin import admin_app
from lorapick.live.admin_changes import CHANGES, PLAN, VIEWS
from lorapick.live.driver_operations import DriverOperations
from lorapick.live.guard import Guard
from lorapick.live.openapi import document
from lorapick.live.published import PublishedViews
from lorapick.wire.admin_bodies import MOST_BYTES

LOAD = "/v1/adapters/legal/load"


async def sent(site, content, *, path=LOAD, method="POST", **headers):
    named = {"content-type": "application/json"} | {name.replace("_", "-"): value for name, value in headers.items()}
    async with site.client() as client:
        return await client.request(method, path, content=content, headers=named)


class TestBodies:
    @pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "text/yaml", ""])
    async def test_only_json(self, media):
        found = refused(await sent(Site(), b"{}", content_type=media), 415, "not_json")
        assert "send content-type: application/json" in found.detail

    async def test_json_with_a_charset(self):
        done(await sent(Site(), b"{}", content_type="Application/JSON; charset=utf-8"))

    async def test_a_body_is_limited_whether_it_says_its_size_or_not(self):
        large = json.dumps({"selector": {"zone": "x" * MOST_BYTES}}).encode()

        async def pieces():
            yield large[:1000]
            yield large[1000:]

        for content in (large, pieces()):
            refused(await sent(Site(), content), 413, "body_too_large")

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"{", "not JSON"),
            (b"replicas: 2", "not JSON"),
            (b"[]", "must be a JSON object"),
            (b"null", "must be a JSON object"),
            (b"[" * 30_000, "nested too deep"),
            (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested"),
            (b"\xff", "not JSON"),
            (b'{"replicas": "2"}', "replicas: must be a whole number of at least 1"),
            (b'{"replicas": 2.5}', "replicas: must be a whole number"),
            (b'{"replicas": null}', "replicas: has no value"),
            (b'{"replica": 2}', 'replica: unknown key (found "replica"); did you mean "replicas"?'),
            (b'{"pods": ["a"], "replicas": 1}', "pods: are named, so replicas and selector have no meaning"),
            (b'{"pods": []}', "pods: must have at least 1 item"),
            (b'{"pods": ["a", "a"]}', "stands twice"),
            (b'{"selector": {"zone": ["west"]}}', "selector.zone: must be text"),
        ],
    )
    async def test_what_is_wrong_is_said(self, content, words):
        site = Site()
        found = refused(await sent(site, content), 400, "body_invalid")
        assert words in found.detail
        assert found.errors
        assert site.kinds() == []

    @pytest.mark.parametrize(
        ("path", "body", "words"),
        [
            ("move", {"from": "a"}, 'the key "to" is missing'),
            ("move", {"from": "a", "to": "a"}, "to: is the pod that it is to leave"),
            ("preload", {}, 'the key "for" is missing'),
            ("preload", {"for": "5"}, "for: not a duration"),
            ("pin", {}, "a pin needs replicas, pods or selector"),
            ("unpin", {"replicas": 2}, "replicas: unknown key"),
        ],
    )
    async def test_of_other_changes_too(self, path, body, words):
        answer = await sent(Site(), json.dumps(body), path=f"/v1/adapters/legal/{path}")
        assert words in refused(answer, 400, "body_invalid").detail

    async def test_the_name_stands_in_the_path(self):
        body = {"name": "laws", "to": [{"adapter": "legal"}]}
        answer = await sent(Site(), json.dumps(body), path="/v1/aliases/law", method="PUT")
        assert refused(answer, 400, "body_invalid").detail == "name: must be the path's, 'law'; leave it out"


WORDS = st.sampled_from(
    ["pods", "replicas", "selector", "for", "from", "to", "name", "attributes", "source", "rank", "pin", "solver",
     "adapter", "weight", "a", "b", "legal", "30m", "zone", "west", "auto", "\u2028", "<<", "=", "\ud7ff\U0001f600"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4), max_leaves=8
)
PLACES = [(change.method, change.path.replace("{name}", "legal")) for change in CHANGES if change.body is not None]


@given(place=st.sampled_from(PLACES), body=st.dictionaries(WORDS, VALUES, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
async def test_no_json_is_a_fault_of_ours(place, body):
    site = Site()
    method, path = place
    answer = await sent(site, json.dumps(body), path=path, method=method)
    assert answer.status_code in (200, 202, 400, 404, 409, 422), answer.text
    site.driver.fleet.check()


@given(place=st.sampled_from(PLACES), content=st.binary(max_size=64) | st.text(max_size=64).map(str.encode))
@settings(max_examples=40, deadline=None)
async def test_nor_are_bytes(place, content):
    method, path = place
    answer = await sent(Site(), content, path=path, method=method)
    assert answer.status_code in (200, 202, 400, 404, 409, 422), answer.text


class TestLog:
    async def test_every_change_and_every_refusal_is_logged_with_who_asked(self, caplog):
        caplog.set_level(logging.INFO, "lorapick.live.admin_changes")
        site = Site()
        done(await site.post("legal", "pin", replicas=1))
        done(await site.post("legal", "pin", replicas=1), 200)
        refused(await site.post("legall", "pin", replicas=1), 404, "adapter_unknown")
        lines = [record.getMessage() for record in caplog.records]
        assert lines[:2] == [
            "admin: POST /v1/adapters/legal/pin from 127.0.0.1: keep legal resident on 1 pod",
            "admin: POST /v1/adapters/legal/pin from 127.0.0.1: nothing to do",
        ]
        assert lines[2].startswith("admin: POST /v1/adapters/legall/pin from 127.0.0.1: refused (adapter_unknown)")

    async def test_a_path_cannot_write_lines_of_its_own(self, caplog):
        caplog.set_level(logging.INFO, "lorapick.live.admin_changes")
        await Site().ask("POST", "/v1/adapters/x%0Aadmin:%20POST/load", {})
        assert all("\n" not in record.getMessage() for record in caplog.records)


def routes() -> set[tuple[str, str]]:
    site = Site()
    app = admin_app(PublishedViews(site.driver), operations=DriverOperations(site.driver))
    assert isinstance(app, Guard)
    inner = app._app
    assert isinstance(inner, Starlette)
    return {
        (method.lower(), route.path.replace(":path}", "}"))
        for route in inner.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }


class TestDocument:
    async def test_it_has_every_route_and_no_other(self):
        described = {(method, path) for path, verbs in document()["paths"].items() for method in verbs}
        assert described == routes()

    def test_every_change_needs_a_token_or_none_and_has_its_body_and_both_answers(self):
        paths = document()["paths"]
        for change in CHANGES:
            verb = paths[change.path][change.method.lower()]
            assert verb["security"] == [{"token": []}, {}]
            assert [*verb["responses"]] == ["200", "202", "default"]
            assert ("requestBody" in verb) is (change.body is not None)
        assert document()["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
        assert paths[PLAN]["post"]["security"]

    def test_looking_needs_none(self):
        for view in VIEWS:
            assert "security" not in document()["paths"][view.path]["get"]

    def test_bodies_are_described_as_they_are_read(self):
        schemas = document()["components"]["schemas"]
        assert schemas["MoveBody"]["required"] == ["from", "to"]
        assert schemas["PreloadText"]["properties"]["for"]["type"] == "string"
        assert schemas["PinSpec"]["additionalProperties"] is False
