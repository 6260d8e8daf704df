"""Who may change anything through the admin API, and who may only look."""

import base64

import pytest
from admin_kit import Site, done, refused

from lorapick.live.admin_token import token_from
from lorapick.live.tls.door import Door
from lorapick.live.tls.tokens import TokenError

RIGHT = {"authorization": "Bearer s3cret"}
CHANGES = [
    ("POST", "/v1/adapters/legal/load"), ("POST", "/v1/events"), ("POST", "/v1/placement/plan"),
    ("PUT", "/v1/aliases/law"), ("DELETE", "/v1/adapters/legal"), ("PATCH", "/v1/fleet"), ("POST", "/v1/nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path"), [each for each in CHANGES if not each[1].endswith("plan")])
@pytest.mark.parametrize("bind_host", ["127.0.0.1", "localhost", "::1", "127.0.0.9"])
async def test_on_loopback_nobody_is_asked_for_a_token_that_does_not_exist(method, path, bind_host):
    async with Site().client(bind_host=bind_host) as client:
        assert (await client.request(method, path, json={})).status_code not in (401, 403)


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize("bind_host", ["0.0.0.0", "::", "10.0.0.7", "picker.internal"])
async def test_elsewhere_nobody_changes_anything_without_a_token(method, path, bind_host):
    site = Site()
    async with site.client(bind_host=bind_host) as client:
        found = refused(await client.request(method, path, json={}, headers=RIGHT), 403, "changes_refused")
        assert "set server.admin_token to the name of an environment variable" in found.detail
        assert (await client.get("/v1/fleet")).status_code == 200
    assert site.kinds() == []


@pytest.mark.parametrize("bind_host", ["127.0.0.1", "0.0.0.0"])
async def test_with_a_token_it_is_asked_for_everywhere(bind_host):
    site = Site()
    async with site.client(bind_host=bind_host, token="s3cret") as client:
        for method, path in CHANGES:
            answer = await client.request(method, path, json={})
            assert refused(answer, 401, "token_required").detail.startswith("changes need a token")
            assert answer.headers["www-authenticate"] == 'Bearer realm="lorapick"'
        assert site.kinds() == []
        done(await client.post("/v1/adapters/legal/load", json={}, headers=RIGHT))
        assert (await client.get("/v1/placement", headers=RIGHT)).status_code == 200


@pytest.mark.parametrize(
    "given", ["Bearer s3cre", "Bearer s3crets", "Bearer", "Basic s3cret", "s3cret", "Bearer s\u00e9cret", "Bearer \xff"]
)
async def test_another_token_is_refused(given):
    async with Site().client(token="s3cret") as client:
        headers = {b"authorization": given.encode("latin-1")}
        refused(await client.post("/v1/adapters/legal/load", headers=headers), 401, "token_required")


async def test_foreign_pages_are_refused_before_anybody_is_asked_for_a_token():
    async with Site().client(token="s3cret") as client:
        headers = RIGHT | {"origin": "https://elsewhere.example"}
        refused(await client.post("/v1/adapters/legal/load", headers=headers), 403, "origin_refused")


def test_the_token_comes_from_the_environment():
    assert token_from(None, {}) is None
    assert token_from("TOKEN", {"TOKEN": " s3cret\n"}) == "s3cret"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, "the environment variable TOKEN is not set, or is empty"),
        ({"TOKEN": " "}, "the environment variable TOKEN is not set, or is empty"),
        ({"TOKEN": "a b"}, "has blanks or letters beyond ASCII"),
        ({"TOKEN": "sécret"}, "has blanks or letters beyond ASCII"),
    ],
)
def test_a_token_that_is_none(environment, words):
    with pytest.raises(TokenError, match=f"server.admin_token: .*{words}"):
        token_from("TOKEN", environment)


@pytest.mark.parametrize("bind_host", ["0.0.0.0", "10.0.0.7"])
async def test_beyond_loopback_the_token_is_asked_for_to_look_too(bind_host):
    site = Site()
    async with site.client(bind_host=bind_host, token="s3cret") as client:
        host = {"host": "10.0.0.7:9091"}
        answer = await client.get("/v1/fleet", headers=host)
        assert refused(answer, 401, "token_required").detail.startswith("calls need a token")
        assert answer.headers["www-authenticate"] == 'Bearer realm="lorapick", Basic realm="lorapick"'
        assert (await client.get("/v1/fleet", headers=host | RIGHT)).status_code == 200
        assert (await client.get("/healthz", headers=host)).status_code == 200


async def test_a_browser_may_look_with_the_token_as_its_password_but_change_nothing():
    async with Site().client(bind_host="10.0.0.7", token="s3cret") as client:
        told = {"authorization": "Basic " + base64.b64encode(b"me:s3cret").decode(), "host": "10.0.0.7:9091"}
        assert (await client.get("/v1/fleet", headers=told)).status_code == 200
        refused(await client.post("/v1/adapters/legal/load", headers=told), 401, "token_required")
        wrong = told | {"authorization": "Basic " + base64.b64encode(b"s3cret:").decode()}
        refused(await client.get("/v1/fleet", headers=wrong), 401, "token_required")


async def test_who_showed_a_certificate_may_look_and_change():
    async with Site().client(bind_host="10.0.0.7", door=Door(certificate=True)) as client:
        host = {"host": "10.0.0.7:9091"}
        assert (await client.get("/v1/fleet", headers=host)).status_code == 200
        done(await client.post("/v1/adapters/legal/load", json={}, headers=host))
