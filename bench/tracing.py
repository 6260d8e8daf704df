"""What tracing costs the picker: CPU time per request, off, for a tenth of the requests, for all.

    python -m bench.tracing [--requests 3000] [--rounds 7]

The events are those of a minute's traffic whose callers send no trace. `loop_us` is what a request's events take in the
picker's loop, deciding included; `cpu_us` is the whole process, the thread that sends spans to a receiver included.
Rounds of all ways follow each other, so that they meet the same machine; figures are medians over rounds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

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


def round_of(book: Playbook, events: list, sample: float | None, port: int) -> tuple[float, float, int]:
    """Seconds in the loop, seconds of CPU, spans sent."""
    fleet = Fleet(book.settings, seed=0)
    spans = tracing = None
    if sample is not None:
        # So many wait at once only here, where a minute's requests come within a second.
        settings = TracingSettings(enabled=True, endpoint=f"http://127.0.0.1:{port}/v1/traces")
        spans = Spans(otlp(settings), most=100_000)
        tracing = Tracing(spans, sample=sample, changes=lambda: fleet.changes, clock=time.monotonic)
    cpu, began = time.process_time(), time.thread_time()
    for event in events:
        effects = fleet.apply(event, event.t)
        if tracing is not None:
            tracing.observe(event, effects)
    loop = time.thread_time() - began
    if spans is not None:
        spans.close()
    return loop, time.process_time() - cpu, 0 if spans is None else spans.sent


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
        found: dict[str, list[tuple[float, float, int]]] = {way: [] for way in WAYS}
        for _ in range(options.rounds):
            for way, sample in WAYS.items():
                found[way].append(round_of(book, events, sample, port))
    finally:
        receiver.kill()
        receiver.wait()
    figures = {
        way: {
            "loop_us": round(1e6 * statistics.median(loop for loop, _, _ in rounds) / options.requests, 1),
            "cpu_us": round(1e6 * statistics.median(cpu for _, cpu, _ in rounds) / options.requests, 1),
            "spans_per_request": round(statistics.median(sent for *_, sent in rounds) / options.requests, 2),
        }
        for way, rounds in found.items()
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
