"""The load driver against a small server of the test's own."""

import asyncio
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import islice, pairwise

import msgspec
import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from lorapick.live.traffic import Limits, Mix, Record, body_of, drive, sample_traffic, schedule
from lorapick.live.web import serving

MIX = Mix(adapters=tuple(f"adapter-{n:03}" for n in range(40)))


class TestSchedule:
    def test_same_seed_same_everything(self) -> None:
        first = [*islice(schedule(MIX, rate=50, seed=7), 500)]
        assert first == [*islice(schedule(MIX, rate=50, seed=7), 500)]
        assert first != [*islice(schedule(MIX, rate=50, seed=8), 500)]

    def test_it_is_pinned_so_that_published_figures_can_be_repeated(self) -> None:
        seen = [
            (a.adapter, round(a.at, 6), a.prompt_tokens, a.output_tokens)
            for a in islice(schedule(MIX, rate=50, seed=1), 3)
        ]
        assert seen == [
            ("adapter-020", 0.002886, 80, 8),
            ("adapter-003", 0.031509, 161, 7),
            ("adapter-019", 0.032084, 174, 4),
        ]

    def test_rate_does_not_change_who_asks(self) -> None:
        slow, fast = ([a.adapter for a in islice(schedule(MIX, rate=rate, seed=3), 200)] for rate in (1, 1000))
        assert slow == fast

    def test_arrivals_are_poisson_at_the_rate(self) -> None:
        times = [arrival.at for arrival in islice(schedule(MIX, rate=50, seed=1), 20_000)]
        gaps = [b - a for a, b in pairwise(times)]
        assert statistics.mean(gaps) == pytest.approx(1 / 50, rel=0.03)
        assert statistics.stdev(gaps) == pytest.approx(1 / 50, rel=0.05)

    def test_popularity_is_zipf(self) -> None:
        counts = Counter(arrival.adapter for arrival in islice(schedule(MIX, rate=50, seed=1), 20_000))
        assert counts["adapter-000"] / counts["adapter-001"] == pytest.approx(2, rel=0.1)
        assert counts["adapter-000"] / counts["adapter-009"] == pytest.approx(10, rel=0.2)
        assert len(counts) == 40

    def test_zipf_0_is_uniform(self) -> None:
        even = msgspec.structs.replace(MIX, zipf=0.0)
        counts = Counter(arrival.adapter for arrival in islice(schedule(even, rate=50, seed=1), 40_000))
        assert min(counts.values()) > 800

    def test_sizes_stay_in_range_and_reach_both_ends(self) -> None:
        arrivals = [*islice(schedule(MIX, rate=50, seed=1), 5000)]
        assert {a.output_tokens for a in arrivals} == set(range(4, 13))
        assert (min(a.prompt_tokens for a in arrivals), max(a.prompt_tokens for a in arrivals)) == (64, 256)

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            ({"adapters": ()}, "at least one"),
            ({"prompt_tokens": (0, 4)}, "prompt_tokens: 0..4"),
            ({"output_tokens": (9, 4)}, "output_tokens: 9..4"),
            ({"stream_share": 1.5}, "stream_share: 1.5"),
        ],
    )
    def test_mix_that_makes_no_sense(self, wrong: dict, told: str) -> None:
        with pytest.raises(ValueError, match=told):
            Mix(**({"adapters": ("a",)} | wrong))

    def test_rate_that_makes_no_sense(self) -> None:
        with pytest.raises(ValueError, match="rate: 0"):
            next(schedule(MIX, rate=0, seed=1))


class TestBody:
    def test_prompt_has_its_size_and_no_common_start(self) -> None:
        arrivals = [*islice(schedule(MIX, rate=50, seed=1), 50)]
        bodies = [msgspec.json.decode(body_of(arrival)) for arrival in arrivals]
        assert [len(body["prompt"]) for body in bodies] == [4 * a.prompt_tokens for a in arrivals]
        assert len({body["prompt"][:8] for body in bodies}) == 50
        assert (bodies[0]["model"], bodies[0]["max_tokens"]) == (arrivals[0].adapter, arrivals[0].output_tokens)


Answer = Callable[[dict], Response]


@asynccontextmanager
async def server(answer: Answer) -> AsyncIterator[str]:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = msgspec.json.decode(await Request(scope, receive).body())
        await answer(body)(scope, receive, send)

    async with serving(app, "127.0.0.1:0", what="test", setting="none") as address:
        yield f"http://{address}"


def good(body: dict) -> Response:
    headers = {"x-lorapick-pod": "pod-0", "x-lorapick-tier": "gpu_idle"}
    if not body["stream"]:
        return Response(b"{}", headers=headers)
    return StreamingResponse(events(0.05, b"data: {}\n\n", b"data: [DONE]\n\n"), headers=headers)


async def events(gap: float, *parts: bytes) -> AsyncIterator[bytes]:
    for number, part in enumerate(parts):
        if number:
            await asyncio.sleep(gap)
        yield part


async def one(answer: Answer, *, stream: bool = True, patience: float = 10.0) -> Record:
    mix = Mix(adapters=("a",), stream_share=float(stream), limits=Limits(timeout=patience))
    async with server(answer) as endpoint:
        results = await drive(endpoint, mix, requests=1, rate=100, seed=1)
    return results.records[0]


class TestDrive:
    async def test_records_come_in_order_and_match_the_schedule(self) -> None:
        ended: list[Record] = []
        async with server(good) as endpoint:
            results = await drive(endpoint, MIX, requests=60, rate=300, seed=5, on_progress=ended.append)
        assert sorted(ended, key=lambda record: record.number) == [*results.records]
        assert [(r.number, r.adapter, r.at) for r in results.records] == [
            (a.number, a.adapter, a.at) for a in islice(schedule(MIX, rate=300, seed=5), 60)
        ]
        assert all(record.good for record in results.records)
        assert {(record.pod, record.tier) for record in results.records} == {("pod-0", "gpu_idle")}
        assert results.seconds >= results.records[-1].at

    async def test_first_byte_comes_before_the_end_of_a_stream(self) -> None:
        record = await one(good)
        assert record.ttft is not None
        assert 0 < record.ttft < record.latency

    async def test_whole_answer_has_no_first_byte_time(self) -> None:
        record = await one(good, stream=False)
        assert (record.good, record.ttft) == (True, None)

    async def test_refusal_keeps_its_status(self) -> None:
        record = await one(lambda _: Response(b"busy", 429, {"x-lorapick-pod": "pod-3"}))
        assert (record.status, record.error, record.pod, record.ttft) == (429, "status 429", "pod-3", None)
        assert not record.good

    async def test_stream_that_breaks_off_is_an_error(self) -> None:
        record = await one(lambda _: StreamingResponse(events(0, b"data: {}\n\n")))
        assert (record.status, record.error) == (200, "the stream ended early")
        assert record.ttft is not None

    async def test_silence_ends_at_the_timeout(self) -> None:
        record = await one(lambda _: StreamingResponse(events(5, b"data: {}\n\n", b"")), patience=0.1)
        assert (record.status, record.error) == (200, "TimeoutError")

    async def test_nobody_there(self) -> None:
        async with server(good) as endpoint:
            pass
        results = await drive(endpoint, MIX, requests=3, rate=1000, seed=1)
        assert [(r.status, r.good) for r in results.records] == [(None, False)] * 3
        assert "Connect" in str(results.records[0].error)

    async def test_in_flight_is_bounded_and_the_wait_counts(self) -> None:
        now, most = 0, 0

        async def counted(_: dict) -> AsyncIterator[bytes]:
            nonlocal now, most
            now, most = now + 1, max(most, now + 1)
            await asyncio.sleep(0.05)
            now -= 1
            yield b"data: [DONE]\n\n"

        async with server(lambda body: StreamingResponse(counted(body))) as endpoint:
            mix = Mix(adapters=("a",), limits=Limits(in_flight=2))
            results = await drive(endpoint, mix, requests=6, rate=10_000, seed=1)
        assert most == 2
        assert results.records[-1].latency > 0.12


async def test_sample_traffic_runs_until_it_is_stopped() -> None:
    seen = Counter[str]()
    stop = asyncio.Event()

    def answer(body: dict) -> Response:
        seen[body["model"]] += 1
        if seen.total() == 20:
            stop.set()
        return Response(b"{}", 500)

    async with server(answer) as endpoint:
        await asyncio.wait_for(sample_traffic(endpoint, ["a", "b"], rate=500, seed=1, stop=stop), 10)
    assert set(seen) == {"a", "b"}
