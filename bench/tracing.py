"""What tracing costs the picker: CPU time per request, off, for a tenth of the requests, for all.

    python -m bench.tracing [--requests 3000] [--rounds 7]

The events are those of a minute's traffic whose callers send no trace. `deciding_us` is what the core takes for all
events of a request, `tracing_us` what following them adds to the picker's loop, `sending_us` what the thread that sends
spans takes beside it. Rounds of all ways follow each other, so that they meet the same machine; figures are medians
over rounds, in microseconds of CPU time per request.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from bench.eventlog import traffic
from lorapick.core.fleet import Fleet
from lorapick.live.tracing import Tracing
from lorapick.live.tracing_export import Spans, otlp
from lorapick.model.settings import TracingSettings
from lorapick.testing.playbook import Playbook

WAYS: dict[str, float | None] = {"off": None, "sampled_0.1": 0.1, "all": 1.0}
RECEIVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Take(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200); self.send_header("content-length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Take)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def without_traces(book: Playbook) -> list:
    """The events, from callers that say nothing of traces."""
    events = []
    for event in book.events:
        request = getattr(event, "request", None)
        if request is not None:
            fields = {name: getattr(request, name) for name in request.__struct_fields__}
            event = type(event)(t=event.t, id=event.id, request=type(request)(**{**fields, "traceparent": None}))
        events.append(event)
    return events


class Round(NamedTuple):
    """Seconds of CPU of one round."""

    deciding: float
    tracing: float
    """In the picker's loop."""
    sending: float
    """In the thread that sends."""
    spans: int


def round_of(book: Playbook, events: list, sample: float | None, port: int) -> Round:
    """Let a fleet live through the events."""
    fleet = Fleet(book.settings, seed=0)
    # So many wait at once only here, where a minute's requests come within a second.
    spans = Spans(otlp(TracingSettings(endpoint=f"http://127.0.0.1:{port}/v1/traces")), most=100_000)
    tracing = Tracing(spans, sample=sample or 0.0, changes=lambda: fleet.changes, clock=time.monotonic)
    deciding = following = 0.0
    whole, loop = time.process_time(), time.thread_time()
    for event in events:
        began = time.thread_time()
        effects = fleet.apply(event, event.t)
        decided = time.thread_time()
        if sample is not None:
            tracing.observe(event, effects)
        deciding += decided - began
        following += time.thread_time() - decided
    spans.close()
    sending = (time.process_time() - whole) - (time.thread_time() - loop)
    return Round(deciding, following, sending, spans.sent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=3000)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    book = traffic(options.requests)
    events = without_traces(book)
    receiver = subprocess.Popen([sys.executable, "-c", RECEIVER], stdout=subprocess.PIPE, text=True)
    try:
        port = int(receiver.stdout.readline())
        found: dict[str, list[Round]] = {way: [] for way in WAYS}
        for _ in range(options.rounds):
            for way, sample in WAYS.items():
                found[way].append(round_of(book, events, sample, port))
    finally:
        receiver.kill()
        receiver.wait()
    each = {
        way: {
            field: statistics.median(getattr(one, field) for one in rounds) / options.requests
            for field in Round._fields
        }
        for way, rounds in found.items()
    }
    nothing = each["off"]["tracing"]  # reading the clock
    figures = {
        way: {
            "deciding_us": round(1e6 * of["deciding"], 1),
            "tracing_us": round(1e6 * (of["tracing"] - nothing), 1),
            "tracing_share": round((of["tracing"] - nothing) / of["deciding"], 3),
            "sending_us": round(1e6 * of["sending"], 1),
            "spans_per_request": round(of["spans"], 2),
        }
        for way, of in each.items()
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
