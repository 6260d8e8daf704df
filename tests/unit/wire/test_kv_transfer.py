"""Headers and bodies of a handover of KV: what is understood, and what is refused with words."""

import json
from ipaddress import ip_address

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from lorapick.wire.kv_transfer import (
    ASK_FOR_PREFILL,
    OUTPUT_LIMITS,
    KvOffer,
    KvTransferError,
    KvTransferParams,
    decode_step,
    prefill_step,
    read_address,
    read_fields,
    read_model,
    read_offer,
    read_params,
    read_prefill_answer,
    read_prefiller,
    read_reason,
)

JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False, allow_infinity=False) | some.text(),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = some.sampled_from(
    ["model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "kv_transfer_params"]
)
BODIES = some.dictionaries(NAMES | some.text(max_size=6), JSON, max_size=8)
PULLED = {
    "do_remote_prefill": True,
    "do_remote_decode": False,
    "remote_block_ids": [[4, 5]],
    "remote_engine_id": "an-engine",
    "remote_request_id": "cmpl-1",
    "remote_host": "10.0.0.7",
    "remote_port": 8000,
    "tp_size": 1,
}
OFFER = KvOffer(engine_id="e", request_id="r", base_model="base", adapter="legal", tokens=20)


def refusal(read, value):
    """The words with which `value` is refused; None: it is understood."""
    try:
        read(value)
    except KvTransferError as error:
        return str(error)
    return None


# -- addresses


@given(some.ip_addresses(), some.integers(1, 65_535))
def test_an_address_is_an_ip_and_a_port(ip, port):
    text = f"[{ip}]:{port}" if ip.version == 6 else f"{ip}:{port}"
    assert read_address(text) == text


@given(some.text(max_size=30))
@example("[10.0.0.7]:80")
@example("::1:80")
@example("[fe80::1%eth0]:80")
@example("10.0.0.7:８０")
@example("10.0.0.7:080000")
@example("10.0.0.7:65536")
@example("10.0.0.7:")
@example("user@10.0.0.7:80")
@example("10.0.0.7:80/path")
@example("localhost:80")
@example("2130706433:80")
def test_anything_else_is_refused_or_is_an_address(text):
    why = refusal(read_address, text)
    if why is not None:
        assert "send ip:port" in why
        return
    address = read_address(text)
    host, _, port = address.rpartition(":")
    assert ip_address(host.strip("[]")) and 0 < int(port) < 65_536
    assert read_address(address) == address


@pytest.mark.parametrize(
    ("lines", "address"),
    [
        ([], None),
        ([""], None),
        ([" , 10.0.0.8:1"], None),
        (["10.0.0.7:8000"], "10.0.0.7:8000"),
        (["http://10.0.0.7:8000"], "10.0.0.7:8000"),
        ([" 10.0.0.7:8000 ,10.0.0.8:1"], "10.0.0.7:8000"),
        (["10.0.0.7:8000", "10.0.0.8:1"], "10.0.0.7:8000"),
        (["[2001:db8::7]:8000"], "[2001:db8::7]:8000"),
        (["10.0.0.7:08000"], "10.0.0.7:8000"),
    ],
)
def test_the_first_prefiller_counts(lines, address):
    assert read_prefiller(lines) == address


# -- parameters


def test_parameters_are_those_of_vllm():
    params = read_params(PULLED | {"transfer_mode": "pull", "anything": [1]})
    assert params is not None and params.is_complete
    assert params.source == "10.0.0.7:8000"
    assert params.remote_block_ids == [[4, 5]]
    assert read_params(PULLED | {"remote_host": "2001:db8::7"}).source == "[2001:db8::7]:8000"
    assert read_params(PULLED | {"remote_block_ids": [4, 5]}).is_complete
    assert read_params(None) is None


def test_the_request_for_a_prefill_is_one():
    params = read_params(dict(ASK_FOR_PREFILL))
    assert params == KvTransferParams(do_remote_decode=True)
    assert params.source is None and not params.is_complete


@pytest.mark.parametrize("missing", ["remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host"])
def test_parameters_that_lack_something_are_incomplete(missing):
    assert not read_params(PULLED | {missing: None}).is_complete


@pytest.mark.parametrize("host", ["pod-7", "10.0.0", "10.0.0.7@10.0.0.8", "", "10.0.0.7/x"])
def test_a_host_that_is_no_address_is_refused(host):
    with pytest.raises(KvTransferError, match="send ip:port"):
        read_params(PULLED | {"remote_host": host}).source  # noqa: B018 - a property that refuses


@given(JSON)
@example({"do_remote_decode": True, "do_remote_prefill": True})
@example([])
@example({"remote_port": 2**70})
def test_any_value_is_understood_or_refused(value):
    why = refusal(read_params, value)
    if why is not None:
        assert why.startswith("kv_transfer_params: ")
        return
    params = read_params(value)
    assert params is None or not (params.do_remote_decode and params.do_remote_prefill)


# -- bodies


@given(BODIES, some.sampled_from(sorted(OUTPUT_LIMITS)))
def test_the_first_step_wants_one_token_and_keeps_the_rest(body, path):
    fields = read_fields(json.dumps(body).encode())
    assert fields is not None
    sent = json.loads(prefill_step(fields, path))
    changed = {"stream", "stream_options", "min_tokens", "kv_transfer_params", *OUTPUT_LIMITS[path]}
    assert sent["stream"] is False
    assert sent["kv_transfer_params"] == ASK_FOR_PREFILL
    assert {sent[limit] for limit in OUTPUT_LIMITS[path]} == {1}
    assert "stream_options" not in sent and "min_tokens" not in sent
    assert {k: v for k, v in sent.items() if k not in changed} == {k: v for k, v in body.items() if k not in changed}


@given(BODIES)
def test_the_second_step_is_the_clients_own_request(body):
    fields = read_fields(json.dumps(body).encode())
    sent = json.loads(decode_step(fields, msgspec.Raw(json.dumps(PULLED).encode())))
    assert sent == body | {"kv_transfer_params": PULLED}


def test_fields_go_on_byte_by_byte():
    body = b'{"prompt": "\\u00e9",  "seed": 123456789012345678901234567890, "t": 1.0e0, "tools": [{"b":1, "a":2}]}'
    fields = read_fields(body)
    assert fields is not None
    sent = decode_step(fields, msgspec.Raw(b"{}"))
    for part in (b'"\\u00e9"', b"123456789012345678901234567890", b"1.0e0", b'[{"b":1, "a":2}]'):
        assert part in sent
        assert part in prefill_step(fields, "/v1/completions")


@given(some.binary(max_size=40))
@example(b"[" * 100_000)
@example(b'{"a": ' * 100_000)
@example(b'{"\xff": 1}')
@example(b"[]")
@example(b"")
def test_any_bytes_are_fields_or_none(body):
    fields = read_fields(body)
    assert fields is None or isinstance(json.loads(prefill_step(fields, "/v1/completions")), dict)


@pytest.mark.parametrize(
    ("body", "model"), [(b'{"model": "legal"}', "legal"), (b"{}", ""), (b'{"model": 7}', ""), (b'{"model": null}', "")]
)
def test_the_model_of_a_request(body, model):
    assert read_model(read_fields(body)) == model


# -- answers


def test_the_answer_of_a_prefill():
    body = {"id": "x", "kv_transfer_params": PULLED, "usage": {"prompt_tokens_details": {"cached_tokens": 16}}}
    answer = read_prefill_answer(json.dumps(body).encode())
    assert json.loads(bytes(answer.params)) == PULLED
    assert answer.cached_tokens == 16
    body["usage"] = {"input_tokens_details": {"cached_tokens": 32}}
    assert read_prefill_answer(json.dumps(body).encode()).cached_tokens == 32


@pytest.mark.parametrize("params", [None, {}, {"do_remote_prefill": False}, {"do_remote_decode": True}])
def test_an_answer_without_kv(params):
    answer = read_prefill_answer(json.dumps({"kv_transfer_params": params, "usage": None}).encode())
    assert answer.params is None and answer.cached_tokens == 0
    assert read_prefill_answer(b"{}").params is None


@given(some.binary(max_size=40) | JSON.map(lambda value: json.dumps({"kv_transfer_params": value}).encode()))
@example(b'{"usage": {"prompt_tokens_details": {"cached_tokens": "many"}}}')
@example(b'{"kv_transfer_params": ' + b"[" * 100_000)
def test_any_answer_is_understood_or_refused(body):
    if refusal(read_prefill_answer, body) is not None:
        return
    answer = read_prefill_answer(body)
    assert answer.params is None or json.loads(bytes(answer.params))["do_remote_prefill"] is True


@given(some.binary(max_size=40))
@example(msgspec.json.encode(OFFER))
def test_any_offer_is_understood_or_refused(body):
    why = refusal(read_offer, body)
    assert read_offer(body) == OFFER if why is None else "cannot be read" in why


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"adapter": "medical"}, "computed under adapter 'legal' and the request asks for adapter 'medical'"),
        ({"adapter": None}, "asks for no adapter"),
        ({"base_model": "other"}, "by the base model 'base' and this pod runs 'other'"),
        ({"tokens": 21}, "of 20 tokens and the prompt has 21"),
    ],
)
def test_kv_of_something_else_is_useless(other, words):
    fits = {"base_model": "base", "adapter": "legal", "tokens": 20}
    assert OFFER.mismatch(**fits) is None
    assert words in OFFER.mismatch(**fits | other)


@pytest.mark.parametrize(
    ("value", "reason"), [("no_kv", "no_kv"), ("", None), ("  ", None), ("a\nb\x1b[31m", "a?b?[31m")]
)
def test_reasons_of_pods(value, reason):
    assert read_reason(value) == reason


@given(some.text(max_size=500))
def test_whatever_a_pod_says_is_short_and_printable(value):
    reason = read_reason(value)
    assert reason is None or (0 < len(reason) <= 64 and reason.isascii() and reason.isprintable())
