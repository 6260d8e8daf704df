"""Request headers and the gateway's subset hint."""

import pytest
from envoy.config.core.v3.base_pb2 import HeaderValue, Metadata
from google.protobuf.struct_pb2 import ListValue, Struct, Value
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.profiles import HttpNames
from lorapick.wire.extproc.headers import pod_of_token, read_headers, read_subset, token_of


def header(key: str, value: str) -> HeaderValue:
    return HeaderValue(key=key, raw_value=value.encode())


def test_nothing_is_unknown_not_zero() -> None:
    intake = read_headers([])
    assert (intake.method, intake.path, intake.strip) == ("", "", ())
    unknown = (intake.content_length, intake.request_id, intake.session, intake.fairness_id, intake.objective)
    assert unknown == (None,) * 5
    assert (intake.rewrite, intake.patience, intake.traceparent) == (None,) * 3


def test_value_is_read_when_raw_value_is_empty() -> None:
    assert read_headers([HeaderValue(key="x-request-id", value="r1")]).request_id == "r1"


def test_newer_names_win() -> None:
    pairs = [("fairness-id", "fairness_id"), ("objective", "objective")]
    for name, field in pairs:
        older, newer = header(f"x-gateway-inference-{name}", "old"), header(f"x-llm-d-inference-{name}", "new")
        for order in ([older, newer], [newer, older]):
            assert getattr(read_headers(order), field) == "new"
        assert getattr(read_headers([older]), field) == "old"
    both = [header("x-llm-d-model-name-rewrite", "new"), header("x-gateway-model-name-rewrite", "old")]
    assert read_headers(both).rewrite == "new"
    assert read_headers([header("x-session-id", "a"), header("x-session-token", "b")]).session == "b"


@pytest.mark.parametrize(
    ("text", "length"), [("0", 0), ("12", 12), ("-1", None), ("1e3", None), ("٣", None), ("9" * 30, None), ("", None)]
)
def test_content_length(text: str, length: int | None) -> None:
    assert read_headers([header("content-length", text)]).content_length == length


@given(st.lists(st.tuples(st.sampled_from(["content-length", "x-request-deadline-ms", ":path", "x-a"]), st.binary())))
def test_any_value_is_read(pairs: list[tuple[str, bytes]]) -> None:
    intake = read_headers([HeaderValue(key=key, raw_value=value) for key, value in pairs])
    assert intake.patience is None or 0 <= intake.patience < float("inf")


def hint(*values: Value) -> Metadata:
    fields = {"x-gateway-destination-endpoint-subset": Value(list_value=ListValue(values=values))}
    return Metadata(filter_metadata={"envoy.lb.subset_hint": Struct(fields=fields)})


@pytest.mark.parametrize(
    ("entry", "ip"),
    [
        ("10.0.0.1:8000", "10.0.0.1"),
        (" 10.0.0.1 ", "10.0.0.1"),
        ("[fd00::1]:8000", "[fd00::1]"),
        ("fd00::1", "fd00::1"),
    ],
)
def test_entries_are_ips(entry: str, ip: str) -> None:
    assert read_subset(hint(Value(string_value=entry)).filter_metadata) == (ip,)


def test_hints_that_say_nothing() -> None:
    assert read_subset(Metadata().filter_metadata) is None
    other = Metadata(filter_metadata={"envoy.lb.subset_hint": Struct(fields={"x": Value(string_value="y")})})
    assert read_subset(other.filter_metadata) is None


def test_an_empty_hint_allows_none() -> None:
    assert read_subset(hint().filter_metadata) == ()
    assert read_subset(hint(Value(number_value=1), Value(string_value="")).filter_metadata) == ()


def values(**headers: str) -> list[HeaderValue]:
    return [HeaderValue(key=name.replace("_", "-"), raw_value=value.encode()) for name, value in headers.items()]


def test_headers_that_profiles_read() -> None:
    names = HttpNames(keep=("x-tenant", "x-none"), session=("x-chat", "cookie:Chat"), fairness=("x-agent", "x-other"))
    found = read_headers(values(x_tenant="t", x_other="o", cookie="a=b; Chat=c1; x"), names)
    assert (found.kept, found.session, found.fairness_id, found.session_pod) == ({"x-tenant": "t"}, "c1", "o", None)
    found = read_headers(values(x_chat="h", x_session_id="s", x_agent="a", x_llm_d_inference_fairness_id="f"), names)
    assert (found.session, found.fairness_id) == ("h", "f")
    assert read_headers(values(x_session_id="s"), names).session == "s"
    assert read_headers(values(x_tenant="t", cookie="Chat=c1")).kept == {}


def test_a_token_names_a_pod_and_is_no_id_of_a_session() -> None:
    names, token = HttpNames(token="x-session-token"), token_of("a-rank-0", namespace="models")
    assert token == "bW9kZWxzL2EtcmFuay0w"
    found = read_headers(values(x_session_token=token), names)
    assert (found.session_pod, found.session) == ("a-rank-0", None)
    found = read_headers(values(x_session_token=token, x_session_id="s"), names)
    assert (found.session_pod, found.session) == ("a-rank-0", "s")
    found = read_headers(values(x_session_token="my-own-id"), names)
    assert (found.session_pod, found.session) == (None, "my-own-id")
    assert read_headers(values(x_session_token=token)).session == token, "without a profile that uses tokens"


@given(st.text(max_size=40), st.text(min_size=1, max_size=20))
def test_no_token_breaks_anything(text: str, pod: str) -> None:
    assert pod_of_token(text) is None or isinstance(pod_of_token(text), str)
    assert pod_of_token(token_of(pod, namespace="n")) == pod
