"""What the event log costs the picker: time per event, writing to a file included.

    python -m bench.eventlog [--requests 3000] [--rounds 7]

The events are those of a minute's traffic: requests with ten prefix blocks and trace headers, their answers and ends,
scrapes. `record_us` is the mean of the best round, flushes included; `apply_us` what the core took for the same events
in that round; `median_us` the best median of each kind.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from itertools import chain
from pathlib import Path
from random import Random
from typing import NamedTuple

from lorapick.core.fleet import Fleet
from lorapick.live.eventlog import EventLog
from lorapick.model import events
from lorapick.model.pods import PodReport
from lorapick.model.requests import Outcome, Request
from lorapick.testing.playbook import Playbook, plain_pod

ADAPTERS = tuple(f"adapter-{number:03d}" for number in range(40))
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def traffic(requests: int) -> Playbook:
    """Events and their effects."""
    chance = Random(1)
    book = Playbook(pods=[plain_pod(f"pod-{number}") for number in range(8)], adapters=ADAPTERS)
    for number in range(requests):
        book.now += 0.02
        name = f"3f0c2a9e-{number:04x}-4b1e-9e1c-0123456789ab"
        blocks = tuple(chance.getrandbits(64) for _ in range(10))
        asked = {"prompt_bytes": 640, "max_tokens": 8, "stream": True, "blocks": blocks, "traceparent": TRACE}
        book.apply(events.RequestArrived, request=Request(id=name, model=chance.choice(ADAPTERS), **asked))
        book.apply(events.ResponseStarted, request_id=name, status=200)
        book.apply(events.RequestEnded, request_id=name, outcome=Outcome.SERVED, status=200)
        if number % 6 == 0:
            report = PodReport(waiting=0, running=1, kv_usage=0.1, gpu_utilization=0.3, in_flight_adapters=ADAPTERS[:2])
            book.apply(events.PodReported, pod=f"pod-{number // 6 % 8}", report=report, since=book.now)
    return book


class Spent(NamedTuple):
    """Seconds of one round."""

    applying: float
    """Mean of the core's."""
    recording: dict[str, list[float]]
    """Each event's, by kind."""

    @property
    def mean(self) -> float:
        return statistics.mean(chain.from_iterable(self.recording.values()))


def spent_on(book: Playbook, path: Path) -> Spent:
    """Time each event's recording while another fleet lives through them: right after each decision."""
    fleet = Fleet(book.settings, seed=0)
    applying = []
    recording = defaultdict(list)
    with EventLog(path, settings=book.settings, seed=0) as log:
        for event in book.events:
            began = time.perf_counter()
            effects = fleet.apply(event, event.t)
            decided = time.perf_counter()
            log.record(event, effects)
            recording[type(event).__name__].append(time.perf_counter() - decided)
            applying.append(decided - began)
    return Spent(statistics.mean(applying), recording)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    book = traffic(options.requests)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "events.jsonl"
        rounds = [spent_on(book, path) for _ in range(options.rounds)]
        size = path.stat().st_size / len(book.events)
    best = min(rounds, key=lambda spent: spent.mean)
    kinds = {kind: min(statistics.median(spent.recording[kind]) for spent in rounds) for kind in best.recording}
    figures = {
        "record_us": best.mean * 1e6,
        "apply_us": best.applying * 1e6,
        "share_of_core": best.mean / best.applying,
        "median_us": {kind: seconds * 1e6 for kind, seconds in kinds.items()},
        "bytes_per_event": size,
        "bytes_per_request": size * len(book.events) / options.requests,
        "events": len(book.events),
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
