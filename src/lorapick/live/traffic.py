"""A seeded open-loop load: who asks for which adapter when, and what came back.

In: a mix, a rate, a seed, an endpoint. Out: one record for each request.
Not here: percentiles and tables (see `wire.report`), the choice of seeds (commands choose them).

Requests are due at Poisson times whatever the answers do, and latencies count from when a request was due: a slow
server cannot hide by slowing its clients down. The same seed gives the same adapters, times and sizes.
Raw HTTP, not an OpenAI client, since the load shares its machine with what it measures: aiohttp takes 1.5 to 2 ms
of one slow core for a streamed answer of nine chunks, a tenth of the core at 60 requests/s. (A client of our own on
httptools took half of that; not worth its code at such rates.)
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import accumulate, islice

import aiohttp
import msgspec

from lorapick.model.units import AdapterName, PodName, RequestId, Seconds, Tokens

POD_HEADER = "x-lorapick-pod"
TIER_HEADER = "x-lorapick-tier"
REQUEST_ID_HEADER = "x-request-id"
_WORD_BYTES = 4
_STREAM_END = b"data: [DONE]\n\n"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a client."""

    in_flight: int = 512
    """Requests at once; more than that wait, and the wait counts."""
    timeout: Seconds = 60.0
    """For one request, from when it is sent."""


_LIMITS = Limits()


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for. Ranges are inclusive and uniform."""

    adapters: tuple[AdapterName, ...]
    """Most popular first."""
    zipf: float = 1.0
    """Popularity of the n-th adapter is n to the power of -zipf; 0: all alike."""
    prompt_tokens: tuple[Tokens, Tokens] = (64, 256)
    output_tokens: tuple[Tokens, Tokens] = (4, 12)
    stream_share: float = 1.0
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if not self.adapters:
            raise ValueError("adapters: none given; a mix needs at least one")
        for name in ("prompt_tokens", "output_tokens"):
            low, high = getattr(self, name)
            if not 1 <= low <= high:
                raise ValueError(f"{name}: {low}..{high} is no range; give 1 <= low <= high")
        if not 0 <= self.stream_share <= 1:
            raise ValueError(f"stream_share: {self.stream_share} is no share; give 0 to 1")


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """One request that is due `at` seconds after the start."""

    number: int
    at: Seconds
    adapter: AdapterName
    prompt_tokens: Tokens
    output_tokens: Tokens
    stream: bool
    id: RequestId | None = None
    """Sent as `x-request-id`, so that chance falls as in another run; None: the gateway makes one."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one request."""

    number: int
    adapter: AdapterName
    at: Seconds
    """When it was due."""
    latency: Seconds
    """From when it was due to its end, however it ended."""
    ttft: Seconds | None = None
    """From when it was due to the first bytes of a streamed body; None: not streamed, or there were none."""
    status: int | None = None
    """None: no answer."""
    pod: PodName | None = None
    tier: str | None = None
    """The tier in which the pod found the adapter, by its own header."""
    error: str | None = None

    @property
    def good(self) -> bool:
        """Whether the whole answer came."""
        return self.status == 200 and self.error is None


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """All records in order of arrival, and the seconds from first due to last end."""

    records: tuple[Record, ...]
    seconds: Seconds


def schedule(mix: Mix, *, rate: float, seed: int) -> Iterator[Arrival]:
    """Endless arrivals at `rate` per second on average."""
    if not rate > 0:
        raise ValueError(f"rate: {rate} requests/s; give more than 0")
    draw = random.Random(seed)
    weights = [*accumulate((n + 1) ** -mix.zipf for n in range(len(mix.adapters)))]
    number, at = 0, 0.0
    while True:
        at += draw.expovariate(rate)
        yield Arrival(
            number=number,
            at=at,
            adapter=draw.choices(mix.adapters, cum_weights=weights)[0],
            prompt_tokens=draw.randint(*mix.prompt_tokens),
            output_tokens=draw.randint(*mix.output_tokens),
            stream=draw.random() < mix.stream_share,
        )
        number += 1


def body_of(arrival: Arrival, *, salt: str = "") -> bytes:
    """The completion request. No two prompts of a run share a first block, so prefix caches do not help."""
    first = f"{salt}{arrival.number:x} "
    text = first + "abc " * max(0, arrival.prompt_tokens - len(first) // _WORD_BYTES)
    body = {
        "model": arrival.adapter,
        "prompt": text[: arrival.prompt_tokens * _WORD_BYTES],
        "max_tokens": arrival.output_tokens,
        "ignore_eos": True,
        "temperature": 0,
        "stream": arrival.stream,
    }
    return msgspec.json.encode(body)


async def drive(
    endpoint: str,
    mix: Mix,
    *,
    requests: int,
    rate: float,
    seed: int,
    on_progress: Callable[[Record], None] = lambda _: None,
) -> Results:
    """Send `requests` requests to `endpoint` (`http://host:port`) and wait for all answers.

    `on_progress` is called as each ends. Ends at the latest one timeout after the last request was sent.
    """
    arrivals = islice(schedule(mix, rate=rate, seed=seed), requests)
    return await drive_arrivals(endpoint, arrivals, on_end=on_progress, limits=mix.limits)


async def sample_traffic(
    endpoint: str, adapters: Sequence[AdapterName], *, rate: float, seed: int, stop: asyncio.Event
) -> None:
    """Send requests until `stop` is set, and forget the answers. Errors are part of life and ignored."""
    mix = Mix(adapters=tuple(adapters), stream_share=0.5)
    arrivals = schedule(mix, rate=rate, seed=seed)
    async with asyncio.TaskGroup() as group:
        driving = group.create_task(
            drive_arrivals(endpoint, arrivals, on_end=lambda _: None, limits=mix.limits, keep=False)
        )
        await stop.wait()
        driving.cancel()


async def drive_arrivals(
    endpoint: str,
    arrivals: Iterable[Arrival],
    *,
    on_end: Callable[[Record], None] = lambda _: None,
    limits: Limits = _LIMITS,
    keep: bool = True,
) -> Results:
    """Send these requests when they are due, counted from now, and wait for all answers.

    `on_end` is called as each ends; without `keep` its record is then forgotten.
    """
    loop = asyncio.get_running_loop()
    records: list[Record] = []
    places = asyncio.Semaphore(limits.in_flight)
    async with _client(endpoint, limits) as client:
        start = loop.time()

        async def one(arrival: Arrival) -> None:
            try:
                record = await client.send(arrival, due=start + arrival.at)
            finally:
                places.release()
            if keep:
                records.append(record)
            on_end(record)

        async with asyncio.TaskGroup() as group:
            for arrival in arrivals:
                await asyncio.sleep(start + arrival.at - loop.time())
                await places.acquire()
                group.create_task(one(arrival))
        seconds = loop.time() - start
    records.sort(key=lambda record: record.number)
    return Results(records=tuple(records), seconds=seconds)


@asynccontextmanager
async def _client(endpoint: str, limits: Limits) -> AsyncIterator["_Client"]:
    connector = aiohttp.TCPConnector(limit=limits.in_flight)
    timeout = aiohttp.ClientTimeout(total=limits.timeout)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield _Client(session, endpoint.rstrip("/") + "/v1/completions")


class _Client:
    """Sends one request and measures it."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def send(self, arrival: Arrival, *, due: Seconds) -> Record:
        """Every way to fail becomes a record; only cancellation passes through."""
        loop = asyncio.get_running_loop()
        seen = _Seen()
        error = None
        try:
            await self._exchange(arrival, seen)
        except (aiohttp.ClientError, OSError, TimeoutError) as failure:
            error = f"{type(failure).__name__}: {failure}".removesuffix(": ")
        if error is None and seen.status != 200:
            error = f"status {seen.status}"
        if error is None and arrival.stream and seen.end != _STREAM_END:
            error = "the stream ended early"
        return Record(
            number=arrival.number,
            adapter=arrival.adapter,
            at=arrival.at,
            latency=loop.time() - due,
            ttft=seen.first_byte - due if seen.first_byte is not None and seen.status == 200 else None,
            status=seen.status,
            pod=seen.pod,
            tier=seen.tier,
            error=error,
        )

    async def _exchange(self, arrival: Arrival, seen: "_Seen") -> None:
        loop = asyncio.get_running_loop()
        headers = {"content-type": "application/json"}
        if arrival.id is not None:
            headers[REQUEST_ID_HEADER] = arrival.id
        async with self._session.post(self._url, data=body_of(arrival), headers=headers) as response:
            seen.status = response.status
            seen.pod = response.headers.get(POD_HEADER)
            seen.tier = response.headers.get(TIER_HEADER)
            async for data in response.content.iter_any():
                if arrival.stream and seen.first_byte is None:
                    seen.first_byte = loop.time()
                seen.end = (seen.end + data)[-len(_STREAM_END) :]


class _Seen:
    """What is known of an answer so far, so that a failure halfway keeps it."""

    status: int | None = None
    pod: PodName | None = None
    tier: str | None = None
    first_byte: Seconds | None = None
    end: bytes = b""
