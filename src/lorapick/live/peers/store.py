"""The store that pickers share: a client for Redis or Valkey, its keys and its scripts.

In: claims, marks as bytes, a lease. Out: who has claimed; marks of others as bytes. Every command has an end in time.
Not here: when to say what (see `live.peers.agent`), what messages mean (see `wire.peers`).

Keys begin with `lorapick:{FLEET}:`, in braces so that a cluster keeps them together. The store's own clock alone
decides when a claim or a lease ends; clocks of pickers are never compared.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lorapick.model.placement import Side
from lorapick.model.settings import PeersSettings
from lorapick.model.units import AdapterName, PodName, Seconds
from lorapick.wire.peers import Owner, read_owner, write_owner

if TYPE_CHECKING:
    from redis.asyncio import Redis

T = TypeVar("T")
ANSWERS_WITHIN: Seconds = 1.0
"""A store that takes longer is out of reach."""
_OURS = "string.sub(held, 1, string.len(ARGV[1]) + 1) == ARGV[1] .. '\\n'"
_CLAIM = f"""
local held = redis.call('GET', KEYS[1])
if held and not ({_OURS}) then return held end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return ARGV[2]
"""
"""Ours if nobody has it, or if it is ours already."""
_RENEW = f"""
local held = redis.call('GET', KEYS[1])
if held and {_OURS} then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
_RELEASE = f"""
local held = redis.call('GET', KEYS[1])
if held and {_OURS} then return redis.call('DEL', KEYS[1]) end
return 0
"""


class PeersError(Exception):
    """The store cannot be used by this process at all; the message says what to do."""


def connect(settings: PeersSettings, *, beside: Path, environment: Mapping[str, str] = os.environ) -> "Redis":
    """A client; nothing is sent yet.

    Raises:
        PeersError: the package is not installed, or the password is not in the environment.
    """
    try:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ImportError:
        raise PeersError("`peers` needs the package redis: pip install 'lorapick[peers]'") from None
    options: dict[str, Any] = {
        "username": settings.username,
        "password": _password(settings, environment),
        "socket_connect_timeout": ANSWERS_WITHIN,
        "socket_timeout": ANSWERS_WITHIN,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "max_connections": 16,
    }
    if settings.redis.startswith("rediss://"):
        files = {"ca_certs": settings.tls_ca, "certfile": settings.tls_certificate, "keyfile": settings.tls_key}
        options |= {f"ssl_{name}": str(beside / file) for name, file in files.items() if file is not None}
    return Redis.from_url(settings.redis, **options)


def _password(settings: PeersSettings, environment: Mapping[str, str]) -> str | None:
    if settings.password is None:
        return None
    found = environment.get(settings.password, "")
    if not found:
        name = settings.password
        raise PeersError(f"peers.password: the environment variable {name} is not set, or is empty; put it there")
    return found


class Store:
    """One fleet's part of a store."""

    def __init__(self, client: "Redis", *, fleet: str, me: str) -> None:
        """Speak as `me`, a name that no other process has."""
        self._client = client
        self._me = me
        self._prefix = f"lorapick:{{{fleet}}}:"
        self._claim = client.register_script(_CLAIM)
        self._renew = client.register_script(_RENEW)
        self._release = client.register_script(_RELEASE)

    async def ping(self) -> None:
        """Come back if the store answers, and takes what we say.

        Raises:
            redis.RedisError, OSError: it does not.
        """
        await _whole(self._client.ping())

    async def close(self) -> None:
        """Let go of all connections."""
        await self._client.aclose()

    # -- claims

    def _claim_key(self, adapter: AdapterName, side: Side) -> str:
        return f"{self._prefix}claim:{side.value}:{adapter}"

    async def claim(self, adapter: AdapterName, side: Side, *, pod: PodName, lasts: Seconds) -> Owner:
        """Claim a load, unless somebody else has; return who has it now."""
        ours = write_owner(Owner(self._me, pod))
        held = await _whole(self._claim(keys=[self._claim_key(adapter, side)], args=[self._me, ours, _ms(lasts)]))
        return read_owner(held.decode("utf-8", "replace"))

    async def renew(self, adapter: AdapterName, side: Side, *, lasts: Seconds) -> bool:
        """Let a claim of ours last for so long from now; False: it is not ours any more."""
        return bool(await _whole(self._renew(keys=[self._claim_key(adapter, side)], args=[self._me, _ms(lasts)])))

    async def release(self, adapter: AdapterName, side: Side) -> None:
        """Give a claim of ours back; no-op when it is not ours."""
        await _whole(self._release(keys=[self._claim_key(adapter, side)], args=[self._me]))

    # -- the lead

    async def lead(self, *, lasts: Seconds) -> str:
        """Become the leader, or stay it; return who leads."""
        key, ours = f"{self._prefix}leader", write_owner(Owner(self._me, ""))
        held = await _whole(self._claim(keys=[key], args=[self._me, ours, _ms(lasts)]))
        return read_owner(held.decode("utf-8", "replace")).peer

    async def follow(self) -> None:
        """Give the lead back, if it is ours."""
        await _whole(self._release(keys=[f"{self._prefix}leader"], args=[self._me]))

    # -- marks

    async def say(self, message: bytes, *, lasts: Seconds) -> None:
        """Leave a message for all, and tell those who listen. All messages end so long after the last."""
        pipe = self._client.pipeline(transaction=False)
        pipe.hset(f"{self._prefix}marks", self._me, message)
        pipe.pexpire(f"{self._prefix}marks", _ms(lasts))
        pipe.publish(f"{self._prefix}marks", message)
        await _whole(pipe.execute())

    async def said(self) -> dict[str, bytes]:
        """The last message of each picker."""
        found: Mapping[Any, Any] = await _whole(self._client.hgetall(f"{self._prefix}marks"))
        return {name.decode("utf-8", "replace"): message for name, message in found.items()}

    async def forget(self, *names: str) -> None:
        """Take messages away."""
        await _whole(self._client.hdel(f"{self._prefix}marks", *names))

    async def listen(self, *, within: Seconds) -> AsyncIterator[bytes]:
        """Messages as they come, our own among them.

        Raises:
            TimeoutError: none came for so long, so not even ours: the connection is dead.
        """
        async with self._client.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(f"{self._prefix}marks")
            quiet = 0.0
            while True:
                message = await _whole(channel.get_message(timeout=within / 4))
                if message is not None:
                    quiet = 0.0
                    yield message["data"]
                else:
                    quiet += within / 4
                    if quiet >= within:
                        raise TimeoutError(f"no word from the store for {within:g} s")


async def _whole(command: Awaitable[T]) -> T:
    """The answer; a cancellation that the client took for an error of the connection is one all the same."""
    task = asyncio.current_task()
    before = task.cancelling() if task is not None else 0  # a task group leaves one behind when a task of it failed
    try:
        return await command
    finally:
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError


def _ms(seconds: Seconds) -> int:
    return max(1, round(seconds * 1000))
