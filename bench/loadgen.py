"""A lean HTTP/1.1 load generator on raw asyncio protocols: closed loop for saturation, open loop for latency.

    python -m bench.loadgen HOST:PORT closed CONNECTIONS SECONDS
    python -m bench.loadgen HOST:PORT open RATE SECONDS [SEED]

Prints one JSON line. Open loop measures from the scheduled arrival, so that a slow server cannot hide its queue.
"""

import asyncio
import json
import random
import sys
import time
from collections import Counter, deque

import uvloop

ADAPTERS = 6
PROMPT = "The quick brown fox jumps over the lazy dog. " * 8


def request(number: int) -> bytes:
    """A chat completion of about 500 bytes for one of six adapters."""
    body = json.dumps(
        {"model": f"ad{number % ADAPTERS}", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 16}
    ).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


REQUESTS = [request(number) for number in range(ADAPTERS)]


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request at a time."""

    def __init__(self, load: "Load") -> None:
        self._load = load
        self._buffer = bytearray()
        self._sent = 0.0
        self.number = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._load.idle(self)

    def send(self, since: float) -> None:
        self._sent = since
        self.number += 1
        self._transport.write(REQUESTS[self.number % ADAPTERS])

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(buffer[:end]).lower()
        at = head.find(b"content-length: ")
        if at < 0 and b"transfer-encoding: chunked" in head:
            if not buffer.endswith(b"\r\n0\r\n\r\n"):
                return
            buffer.clear()  # one request at a time, so nothing follows
        else:
            length = int(head[at + 16 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(buffer) < end + 4 + length:
                return
            del buffer[: end + 4 + length]
        self._load.done(int(head[9:12]), time.perf_counter() - self._sent)
        self._load.idle(self)

    def connection_lost(self, error: Exception | None) -> None:
        del error
        self._load.errors += not self._load.over


class Load:
    """Counts and latencies of one run."""

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.errors = 0
        self.over = False
        self._idle: deque[Connection] = deque()
        self._waiting: deque[float] = deque()
        self.closed = False

    def idle(self, connection: Connection) -> None:
        if self.over:
            return
        if self.closed:
            connection.send(time.perf_counter())
        elif self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._idle.append(connection)

    def arrive(self, since: float) -> None:
        if self._idle:
            self._idle.popleft().send(since)
        else:
            self._waiting.append(since)

    def done(self, status: int, latency: float) -> None:
        self.statuses[status] += 1
        self.latencies.append(latency)


def quantile(values: list[float], share: float) -> float:
    """Milliseconds below which `share` of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1e3 if ordered else float("nan")


async def connect(load: Load, address: str, count: int) -> None:
    host, port = address.split(":")
    loop = asyncio.get_running_loop()
    for _ in range(count):
        await loop.create_connection(lambda: Connection(load), host, int(port))


async def closed(address: str, connections: int, seconds: float) -> dict[str, object]:
    """Saturation: every connection sends again as soon as it is answered; the first second does not count."""
    load = Load()
    load.closed = True
    await connect(load, address, connections)
    await asyncio.sleep(1.0)
    load.latencies.clear()
    load.statuses.clear()
    start = time.perf_counter()
    await asyncio.sleep(seconds)
    took = time.perf_counter() - start
    load.over = True
    return summary(load, took)


async def open_loop(address: str, rate: float, seconds: float, seed: int) -> dict[str, object]:
    """A Poisson stream at a fixed rate."""
    load = Load()
    await connect(load, address, 64)
    draw = random.Random(seed)
    start = due = time.perf_counter()
    arrived = 0
    while due - start < seconds:
        due += draw.expovariate(rate)
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        load.arrive(due)
        arrived += 1
    took = time.perf_counter() - start
    await asyncio.sleep(0.5)
    load.over = True
    load.errors += arrived - len(load.latencies)  # who has no answer by now is lost
    return summary(load, took)


def summary(load: Load, took: float) -> dict[str, object]:
    return {
        "rps": len(load.latencies) / took,
        "p50_ms": quantile(load.latencies, 0.50),
        "p99_ms": quantile(load.latencies, 0.99),
        "requests": len(load.latencies),
        "not_200": sum(count for status, count in load.statuses.items() if status != 200),
        "errors": load.errors,
    }


def main() -> None:
    address, kind, *numbers = sys.argv[1:]
    if kind == "closed":
        result = uvloop.run(closed(address, int(numbers[0]), float(numbers[1])))
    else:
        seed = int(numbers[2]) if len(numbers) > 2 else 0
        result = uvloop.run(open_loop(address, float(numbers[0]), float(numbers[1]), seed))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
