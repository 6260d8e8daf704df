import json

import pytest

from lorapick.live.envoy.clusters import endpoints
from lorapick.live.envoy.config import EnvoySettings, bootstrap
from lorapick.live.envoy.process import EnvoyError, validate
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.settings import AdmissionSettings, ServerSettings, Settings

BASE = {
    "listen": "127.0.0.1:8080",
    "extproc": ("unix:/run/picker.sock",),
    "endpoints_file": "/run/eds/pods.json",
    "admin": "unix:/run/admin.sock",
}


def find(tree, key):
    """All values under `key`, wherever they stand."""
    if isinstance(tree, dict):
        found = [tree[key]] if key in tree else []
        return found + [value for child in tree.values() for value in find(child, key)]
    if isinstance(tree, list):
        return [value for child in tree for value in find(child, key)]
    return []


@pytest.mark.parametrize("body", ["buffered", "full_duplex_streamed"])
@pytest.mark.parametrize("observe", ["headers", "bodies"])
@pytest.mark.parametrize("extproc", [("unix:/run/picker.sock",), ("127.0.0.1:9002", "127.0.0.1:9012")])
async def test_envoy_itself_accepts_every_combination(tmp_path, body, observe, extproc):
    settings = EnvoySettings(
        **{
            **BASE,
            "body": body,
            "observe": observe,
            "extproc": extproc,
            "endpoints_file": f"{tmp_path}/pods.json",
            "access_log": f"{tmp_path}/access.log",
        }
    )
    config = tmp_path / "envoy.json"
    config.write_text(json.dumps(bootstrap(settings)))
    (tmp_path / "pods.json").write_text(json.dumps(endpoints(["127.0.0.1:8000"])))
    await validate(config)


async def test_what_envoy_refuses_is_reported_in_its_words(tmp_path):
    config = tmp_path / "envoy.json"
    config.write_text('{"static_resources": {"listeners": [{"nom": "x"}]}}')
    with pytest.raises(EnvoyError, match="nom"):
        await validate(config)


@pytest.mark.parametrize(
    ("body", "observe", "answers", "trailers"),
    [
        ("buffered", "headers", "NONE", "SKIP"),
        ("buffered", "bodies", "STREAMED", "SKIP"),
        ("full_duplex_streamed", "headers", "NONE", "SEND"),
        ("full_duplex_streamed", "bodies", "FULL_DUPLEX_STREAMED", "SEND"),
    ],
)
def test_processing_modes(body, observe, answers, trailers):
    (mode,) = find(bootstrap(EnvoySettings(**BASE, body=body, observe=observe)), "processing_mode")
    assert mode == {
        "request_header_mode": "SEND",
        "request_body_mode": body.upper(),
        "request_trailer_mode": trailers,
        "response_header_mode": "SEND",
        "response_body_mode": answers,
        "response_trailer_mode": "SEND",
    }


def test_the_message_timeout_outlasts_the_longest_hold():
    settings = Settings(admission=AdmissionSettings(max_wait=120.0))
    envoy = EnvoySettings.of(settings, **{key: BASE[key] for key in ("extproc", "endpoints_file", "admin")})
    assert find(bootstrap(envoy), "message_timeout") == ["125.000s"]


def test_the_picker_sees_bodies_over_the_limit():
    settings = Settings(server=ServerSettings(max_body=5_000))
    envoy = EnvoySettings.of(settings, **{key: BASE[key] for key in ("extproc", "endpoints_file", "admin")})
    assert find(bootstrap(envoy), "per_connection_buffer_limit_bytes")[0] > 2 * 5_000


def test_a_lone_picker_is_not_retried_and_not_health_checked():
    lone = bootstrap(EnvoySettings(**BASE))
    assert find(find(lone, "grpc_service"), "retry_policy") == []
    assert "health_checks" not in lone["static_resources"]["clusters"][1]
    two = bootstrap(EnvoySettings(**{**BASE, "extproc": ("unix:/a", "unix:/b")}))
    assert len(find(find(two, "grpc_service"), "retry_policy")) == 1
    assert "health_checks" in two["static_resources"]["clusters"][1]


def test_only_requests_that_another_pod_prefills_are_retried_once_a_pod_has_them():
    split, whole = find(bootstrap(EnvoySettings(**BASE, retries=3)), "routes")[0][-2:]
    assert split["match"]["headers"] == [{"name": "x-prefiller-host-port", "present_match": True}]
    policies = [each["route"]["retry_policy"] for each in (split, whole)]
    assert [policy["retry_on"] for policy in policies] == [
        "connect-failure,refused-stream,reset",
        "connect-failure,refused-stream",
    ]
    assert [policy["num_retries"] for policy in policies] == [4, 3]


@pytest.mark.parametrize("passed", [False, True])
def test_encoders_are_clients_to_name_only_where_the_configuration_says_so(passed):
    settings = Settings(disaggregation=DisaggregationSettings(pass_encoders=passed))
    envoy = EnvoySettings.of(settings, **{key: BASE[key] for key in ("extproc", "endpoints_file", "admin")})
    removed = find(bootstrap(envoy), "remove")
    assert "x-prefiller-host-port" in removed
    assert ("x-encoder-hosts-ports" in removed) is not passed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"body": "streamed"}, "server.body is 'streamed'"),
        ({"observe": "all"}, "server.observe is 'all'"),
        ({"extproc": ()}, "no ext_proc address"),
    ],
)
def test_bad_settings_are_named(change, words):
    with pytest.raises(ValueError, match=words):
        EnvoySettings(**{**BASE, **change})
