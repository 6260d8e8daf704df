"""Tracing is there when asked for, costs nothing when not, and says what it lacks."""

import asyncio
import sys

import pytest

from lorapick.live.tracing_setup import NoExporterError, traced
from lorapick.live.transport_counts import TransportCounts
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import TracingSettings
from lorapick.testing.site import Site
from lorapick.wire.traceparent import write

ENABLED = TracingSettings(enabled=True, endpoint="http://127.0.0.1:1/v1/traces", sample=1.0)


async def test_off_follows_nobody_and_imports_nothing() -> None:
    site = Site()
    before = [*site.driver.observers]
    assert traced(TracingSettings(), site.driver, counts=TransportCounts()) is None
    assert site.driver.observers == before
    look = "print(sorted(name for name in sys.modules if 'opentelemetry' in name))"
    code = f"import sys, lorapick.live.tracing_setup; {look}"
    ended = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    out, _ = await ended.communicate()
    assert (ended.returncode, out.decode().strip()) == (0, "[]")


async def test_on_follows_the_drivers_requests_and_counts_what_is_lost() -> None:
    site, counts = Site(), TransportCounts()
    made = traced(ENABLED, site.driver, counts=counts)
    assert made is not None
    site.driver.ask(Request(id="q", model="legal", traceparent=write(7, 8)))
    header = made.tracing.header("q")
    assert header is not None and header.startswith(f"00-{7:032x}-")
    site.driver.ended("q", Outcome.SERVED, 200, None)
    await made.close()
    assert counts.faults()["spans_lost"] == made.spans.lost == 3


async def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lorapick.live.tracing_export", "opentelemetry.sdk.resources"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoExporterError, match=r"pip install 'lorapick\[otlp\]'"):
        traced(ENABLED, Site().driver, counts=TransportCounts())
