"""Handing KV from a pod that prefills to one that decodes: headers and bodies of the exchange as values.

In: values of the prefiller's header, bodies of requests and answers. Out: an address, the bodies of both steps, what
an answer says of its KV; `KvTransferError`, with words for the client, for what makes no sense.
Not here: HTTP, which addresses are allowed, when KV is held or let go (see `live.podserver`).

The two steps are those of llm-d's routing sidecar (`pkg/sidecar/proxy`, connector `nixlv2`); the names in
`kv_transfer_params` are those of vLLM's NixlConnector, which pulls. Only an emulated pod has a `KvOffer`: it stands for
the handshake of NIXL, and says which adapter computed the KV, which `kv_transfer_params` do not.
"""

import re
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

import msgspec

from lorapick.model.units import AdapterName, Tokens

PREFILLER = "x-prefiller-host-port"
"""Where to prefill: `ip:port`. Several are separated by commas, and the first one counts."""
ENCODERS = "x-encoder-hosts-ports"
"""Where images are encoded; goes on as it came."""
PREFILLED_BY = "x-lorapick-prefiller"
"""Header of an answer: the pod that prefilled, by address from a pod, by name to clients."""
LOCAL_PREFILL = "x-lorapick-local-prefill"
"""Header of an answer: why the pod that decodes prefilled though another was named."""
PARAMS = "kv_transfer_params"

OUTPUT_LIMITS: Mapping[str, tuple[str, ...]] = {
    "/v1/completions": ("max_tokens",),
    "/v1/chat/completions": ("max_tokens", "max_completion_tokens"),
    "/v1/responses": ("max_output_tokens",),
}
"""Paths whose requests may be prefilled elsewhere, and the fields that limit their answers."""

_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_HIGHEST_PORT = 65_535
_SHOWN = 200
"""Characters of a client's text that an error repeats."""
_LONGEST_REASON = 64
"""Characters of a pod's reason that are kept: it goes to logs, traces and explanations."""

Fields = dict[str, msgspec.Raw]


class KvTransferError(ValueError):
    """A header or a body of the exchange says what cannot be; the text is for the client."""


def read_reason(value: str) -> str | None:
    """Why a pod prefilled by itself, from its header: at most 64 printable ASCII characters. None: it says nothing.

    The pod may be anybody's, so nothing it says can break a log line or grow without bound.
    """
    shown = "".join(each if each.isascii() and each.isprintable() else "?" for each in value[:_LONGEST_REASON]).strip()
    return shown or None


class KvTransferParams(msgspec.Struct, kw_only=True, frozen=True):
    """`kv_transfer_params` of vLLM's NixlConnector. Fields that are not here are ignored.

    A request with `do_remote_decode` is to be prefilled only; its answer has `do_remote_prefill` and all of `remote_*`,
    with which the request for the decode is sent.
    """

    do_remote_decode: bool = False
    do_remote_prefill: bool = False
    remote_block_ids: list[int | list[int]] | None = None
    """KV blocks on the pod that prefilled; newer vLLM groups them by kind of cache."""
    remote_engine_id: str | None = None
    remote_request_id: str | None = None
    remote_host: str | None = None
    remote_port: int | None = None
    tp_size: int = 1
    remote_num_tokens: Tokens | None = None
    """Tokens whose KV is there."""
    transfer_mode: str = "pull"

    @property
    def source(self) -> str | None:
        """`ip:port` of the pod that has the KV; None: not said.

        Raises:
            KvTransferError: the host is no IP address, or the port none that can be connected to.
        """
        if self.remote_host is None or self.remote_port is None:
            return None
        host = f"[{self.remote_host}]" if ":" in self.remote_host else self.remote_host
        return read_address(f"{host}:{self.remote_port}")

    @property
    def is_complete(self) -> bool:
        """Whether KV can be pulled by these; vLLM computes the prompt itself otherwise."""
        needed = (self.remote_block_ids, self.remote_engine_id, self.remote_request_id)
        return all(needed) and self.remote_host is not None and self.remote_port is not None


ASK_FOR_PREFILL: Mapping[str, object] = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
"""What the sidecar asks the prefiller with."""


class KvOffer(msgspec.Struct, kw_only=True, frozen=True):
    """KV that an emulated pod holds for another one to pull."""

    engine_id: str
    request_id: str
    base_model: str
    adapter: AdapterName | None
    """Which adapter computed it; None: the base model alone."""
    tokens: Tokens

    def mismatch(self, *, base_model: str, adapter: AdapterName | None, tokens: Tokens) -> str | None:
        """Why this KV is useless for a request; None: it fits."""
        if base_model != self.base_model:
            return f"its KV was computed by the base model {self.base_model!r} and this pod runs {base_model!r}"
        if adapter != self.adapter:
            return f"its KV was computed under {_under(self.adapter)} and the request asks for {_under(adapter)}"
        if tokens != self.tokens:
            return f"its KV is of {self.tokens} tokens and the prompt has {tokens}"
        return None


class PrefillAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """What the decode step takes from the prefiller's answer."""

    params: msgspec.Raw | None
    """`kv_transfer_params` as they came; None: the answer has none, or none that say where KV is."""
    cached_tokens: Tokens
    """Prompt tokens that the prefiller had cached; the client is told this number."""


def read_prefiller(values: Sequence[str]) -> str | None:
    """The prefiller that a request's headers name, as `ip:port`; None: they name none.

    `values` are those of the header's lines. As llm-d's sidecar does it: a single line is split at commas, the first
    one counts, and a leading `http://` is let go.

    Raises:
        KvTransferError: it is not `ip:port`.
    """
    if len(values) == 1:
        values = values[0].split(",")
    first = values[0].strip() if values else ""
    return read_address(first.removeprefix("http://")) if first else None


def read_address(text: str) -> str:
    """`ip:port` in its usual form; IPv6 addresses stand in brackets.

    Names of hosts are refused: who may be connected to is decided before a name server is asked.

    Raises:
        KvTransferError: it is something else.
    """
    host, separator, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        ip = ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        ip = None
    good = ip is not None and (ip.version == 6) is bracketed and "%" not in host
    if not (separator and good and _PORT.fullmatch(port) and 0 < int(port) <= _HIGHEST_PORT):
        remedy = "send ip:port, such as 10.0.0.7:8000 or [2001:db8::7]:8000"
        raise KvTransferError(f"{text[:_SHOWN]!r} is not the address of a pod: {remedy}")
    return f"[{ip}]:{int(port)}" if bracketed else f"{ip}:{int(port)}"


def read_params(given: object) -> KvTransferParams | None:
    """`kv_transfer_params` of a decoded body; None: there are none.

    Raises:
        KvTransferError: fields have other types than vLLM's, or contradict each other.
    """
    if given is None:
        return None
    try:
        params = msgspec.convert(given, KvTransferParams)
    except msgspec.ValidationError as error:
        raise KvTransferError(f"{PARAMS}: {error}") from None
    if params.do_remote_decode and params.do_remote_prefill:
        raise KvTransferError(f"{PARAMS}: do_remote_decode and do_remote_prefill exclude each other: send one of them")
    return params


def read_fields(body: bytes) -> Fields | None:
    """A request's body as its top-level fields, each as it came; None: it is no JSON object."""
    try:
        return msgspec.json.decode(body, type=Fields)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def read_model(fields: Fields) -> str:
    """The model that a request asks for; empty: it names none, or something that is no name."""
    try:
        return msgspec.json.decode(fields.get("model", b""), type=str)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""


def prefill_step(fields: Fields, path: str) -> bytes:
    """The body for the prefiller: one token, not streamed, and KV that stays."""
    changed: dict[str, object] = {
        name: value for name, value in fields.items() if name not in ("stream_options", "min_tokens")
    }
    changed["stream"] = False
    changed.update(dict.fromkeys(OUTPUT_LIMITS[path], 1))
    changed[PARAMS] = ASK_FOR_PREFILL
    return msgspec.json.encode(changed)


def decode_step(fields: Fields, params: msgspec.Raw) -> bytes:
    """The body for the pod that decodes: the client's own, and where its KV is."""
    return msgspec.json.encode({**fields, PARAMS: params})


def read_prefill_answer(body: bytes) -> PrefillAnswer:
    """What the prefiller answered with status 200.

    Raises:
        KvTransferError: it is no JSON object, or its fields have other types than vLLM's.
    """
    try:
        answer = msgspec.json.decode(body, type=_Answer)
        raw = answer.kv_transfer_params
        params = None if raw == _NONE else read_params(msgspec.json.decode(raw))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise KvTransferError(f"the prefiller's answer cannot be read: {error}") from None
    has_kv = params is not None and params.do_remote_prefill
    return PrefillAnswer(params=raw if has_kv else None, cached_tokens=_cached_tokens(answer.usage))


def read_offer(body: bytes) -> KvOffer:
    """What a pod says of the KV that it holds.

    Raises:
        KvTransferError: the answer is something else.
    """
    try:
        return msgspec.json.decode(body, type=KvOffer)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise KvTransferError(f"what the pod says of its KV cannot be read: {error}") from None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens_details: _Details | None = None
    input_tokens_details: _Details | None = None
    """Of the Responses API."""


_NONE = msgspec.Raw()


class _Answer(msgspec.Struct):
    kv_transfer_params: msgspec.Raw = _NONE
    usage: _Usage | None = None


def _cached_tokens(usage: _Usage | None) -> Tokens:
    """Details are left out when nothing was cached (vLLM)."""
    details = usage and (usage.prompt_tokens_details or usage.input_tokens_details)
    return (details.cached_tokens or 0) if details else 0


def _under(adapter: AdapterName | None) -> str:
    return "no adapter" if adapter is None else f"adapter {adapter!r}"
