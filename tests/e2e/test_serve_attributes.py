"""`lorapick serve` as a process: metrics that an `EndpointPickerConfig` names reach the picker's reports."""

import asyncio
import contextlib
import json
import sys

import pytest
from aiohttp import web

from lorapick.live.addresses import free_ports
from lorapick.live.processes import becomes_true

pytestmark = pytest.mark.e2e
EPP = """
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- type: core-metrics-extractor
  parameters: {engineConfigs: [{name: vllm, customMetrics: [{attributeKey: Depth, metricSpec: 'depth{tier=gold}'}]}]}
- type: endpoint-attribute-scorer
  parameters: {attributeKey: Depth, algorithm: {type: linear_lower_is_better}}
"""
PAGE = 'vllm:num_requests_running 0\nvllm:num_requests_waiting 0\ndepth{tier="silver"} 3\ndepth{tier="gold"} 7\n'


async def test_a_metric_that_the_file_names_is_in_reports(tmp_path):
    async def page(_):
        return web.Response(text=PAGE)

    app = web.Application()
    app.router.add_get("/metrics", page)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    pod = {"name": "a", "address": f"127.0.0.1:{runner.addresses[0][1]}"}
    (tmp_path / "epp.yaml").write_text(EPP)
    config = {"discovery": {"pods": [pod]}, "picking": {"endpoint_picker_config": "epp.yaml"}}
    ports = zip(("health", "metrics", "admin"), free_ports(3), strict=True)
    listening = {"extproc": "unix:e.sock"} | {name: f"127.0.0.1:{port}" for name, port in ports}
    (tmp_path / "lorapick.yaml").write_text(json.dumps({**config, "server": listening}))
    log = tmp_path / "events.jsonl"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lorapick.cli.main", "serve", "--config", "lorapick.yaml", "--event-log", str(log)),
        cwd=tmp_path,
        stdout=asyncio.subprocess.DEVNULL,
    )

    async def reported():
        return log.exists() and '"attributes":[["Depth",7.0]]' in log.read_text()

    try:
        assert await becomes_true(reported, within=30.0), log.read_text() if log.exists() else "no log"
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
        await runner.cleanup()
