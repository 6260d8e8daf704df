"""A request as the picker sees it, and how one ends."""

from enum import StrEnum
from typing import Any

import msgspec

from lorapick.model.units import BlockId, Bytes, PodName, RequestId, Seconds, Tokens


class Request(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a decision may know of a request. Texts never enter the core: prompts come as block ids."""

    id: RequestId
    model: str
    """The name the client asked for: an adapter, an alias or a base model."""
    prompt_bytes: Bytes | None = None
    body_bytes: Bytes | None = None
    """Size of the whole body; None: nobody measured."""
    prompt_tokens: Tokens | None = None
    """None unless someone counted them."""
    blocks: tuple[BlockId, ...] = ()
    """Chained prefix blocks, first block first."""
    max_tokens: Tokens | None = None
    stream: bool = False
    priority: int = 0
    fairness_id: str | None = None
    tenant: str | None = None
    session: str | None = None
    """Session key (header or the body's `user`): among equal holders the same pod as last time."""
    session_pod: PodName | None = None
    """Who served the session last, as the client was told; None: nobody told it. Only with profiles that use it."""
    headers: dict[str, str] = {}
    """Those that profiles read (`Profiles.names`), by name in lower case."""
    deadline: Seconds | None = None
    """On the driver's clock; None: only the configured wait bound."""
    first_token_by: Seconds | None = None
    """When its first token is wanted, on the driver's clock; None: it does not say."""
    subset: tuple[str, ...] | None = None
    """Addresses the gateway allows (`ip` or `ip:port`); None: all. Empty: none."""
    selector: dict[str, str] = {}
    """Pod labels this request needs."""
    traceparent: str | None = None


class Outcome(StrEnum):
    """How a request left us; these and in flight add up to arrivals."""

    __hash__ = str.__hash__
    """An enum's own hash is a call of Python code, and outcomes are counted for every request."""

    SERVED = "served"
    FAILED = "failed"
    REJECTED = "rejected"
    ABANDONED = "abandoned"


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """How a pod is asked for an adapter, where the adapter's name in `model` is not enough (see `wire.asking`)."""

    model: str
    """What stands in the body's `model`."""
    beside_fields: str | None = None
    """What may stand there in the APIs that read `fields` (see `wire.asking.READS_FIELDS`), so that answers name the
    adapter; None: the same."""
    fields: dict[str, Any] = {}
    """JSON values of further top-level fields; they count before what the client wrote there."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where one request went or may go."""

    pod: PodName
    address: str
