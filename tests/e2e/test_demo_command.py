"""`lorapick demo` as a person runs it: two policies, real Envoys, fresh pods, one report."""

import asyncio
import sys

import msgspec
import pytest

from lorapick.wire.report import DemoReport

pytestmark = pytest.mark.e2e


async def test_two_policies_under_the_same_traffic() -> None:
    sizes = ("--pods", "2", "--slots", "3", "--adapters", "6", "--requests", "80", "--rate", "40")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "lorapick.cli.main",
        "demo",
        *sizes,
        "--json",
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, errors = await asyncio.wait_for(process.communicate(), 100)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    report = msgspec.json.decode(out, type=DemoReport)
    weighted, robin = report.results
    assert (weighted.policy, robin.policy) == ("weighted", "round-robin")
    for result in report.results:
        assert (result.requests, result.answered, result.errors) == (80, 80, {})
        assert result.ttft is not None
        assert result.latency is not None
        assert 0 < result.ttft.p50 <= result.latency.p50
    # Six adapters fit into two pods' six slots, so after the first loads affinity has nothing to swap.
    assert 6 <= weighted.swaps < robin.swaps
    assert (weighted.hit_ratio or 0) > (robin.hit_ratio or 0)
