"""`lorapick serve` with pods from an API server, as a process of its own."""

import asyncio
import contextlib
import json
import sys

import aiohttp
import pytest
import yaml

from lorapick.testing.apiserver import ApiServer

pytestmark = pytest.mark.e2e
POOL = {
    "metadata": {"name": "llama"},
    "spec": {"selector": {"matchLabels": {"app": "vllm"}}, "targetPorts": [{"number": 8000}]},
}


def pod(name: str, ip: str) -> dict:
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name, "labels": {"app": "vllm"}}, "status": {"podIP": ip, "conditions": ready}}


@contextlib.asynccontextmanager
async def serving(folder, server: ApiServer):
    """A picker's ready line and its process; ended by SIGTERM."""
    document = {
        "discovery": {"kubernetes": {"pool": "llama", "server": server.url, "leader": {"retry": "200ms"}}},
        "server": {"extproc": f"unix:{folder}/e.sock"} | {each: f"127.0.0.1:{free_port()}" for each in PLACES},
    }
    (folder / "lorapick.yaml").write_text(yaml.safe_dump(document))
    async with started(folder, "--config", str(folder / "lorapick.yaml")) as ready:
        yield ready


@contextlib.asynccontextmanager
async def started(folder, *arguments: str):
    command = [sys.executable, "-m", "lorapick.cli.main", "serve", *arguments, "--json"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=folder
    )
    try:
        async with asyncio.timeout(30):
            line = await process.stdout.readline()
        assert line, (await process.stderr.read()).decode()
        yield json.loads(line)
    finally:
        process.terminate()
        async with asyncio.timeout(30):
            await process.communicate()
    assert process.returncode == 0


PLACES = ("health", "metrics", "admin")


def free_port() -> int:
    from lorapick.live.addresses import free_ports

    return free_ports(1)[0]


async def get(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.text()


async def seen(url: str, *, wanted: str) -> None:
    async with asyncio.timeout(30):
        while wanted not in await get(url):  # noqa: ASYNC110 - another process has it
            await asyncio.sleep(0.05)


async def test_pods_come_from_the_api_server_and_the_lead_is_given_back(tmp_path):
    async with ApiServer().running() as server:
        await server.put("inferencepools", POOL)
        await server.put("pods", pod("a", "127.0.0.2"))
        adapter = {"metadata": {"name": "sql"}, "spec": {"source": "/adapters/sql", "replicas": 1}}
        await server.put("loraadapters", adapter)
        async with serving(tmp_path, server) as ready:
            fleet, metrics = f"http://{ready['admin']}/v1/fleet", f"http://{ready['metrics']}/metrics"
            await seen(fleet, wanted="a-rank-0")
            await seen(metrics, wanted='lorapick_kubernetes_up{kind="pods"} 1.0')
            await seen(metrics, wanted="lorapick_leader 1.0")
            await server.put("pods", pod("b", "127.0.0.3"))
            await seen(fleet, wanted="b-rank-0")
            await seen(f"http://{ready['admin']}/v1/adapters", wanted='"sql"')
            async with asyncio.timeout(30):
                while "status" not in server.get("loraadapters", "sql"):  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.05)
        assert server.get("leases", "lorapick-llama")["spec"]["holderIdentity"] == ""
        assert not [path for _, path in server.requests if "secrets" in path]


EPP = """apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- {type: queue-scorer}
- {type: lora-affinity-scorer}
schedulingProfiles:
- {name: default, plugins: [{pluginRef: queue-scorer}, {pluginRef: lora-affinity-scorer, weight: 2}]}
"""


def kubeconfig(server: ApiServer) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "other"}}],
            "clusters": [{"name": "c", "cluster": {"server": server.url}}],
            "users": [{"name": "u", "user": {}}],
        }
    )


@pytest.mark.parametrize("given", ["file", "text", "none"])
async def test_the_arguments_of_llm_ds_picker_serve_a_pool(tmp_path, given):
    (tmp_path / "epp.yaml").write_text(EPP)
    extproc, health, metrics, admin = (str(free_port()) for _ in range(4))
    config = {"file": ["--config-file", "epp.yaml"], "text": ["--config-text", EPP], "none": []}[given]
    async with ApiServer().running() as server:
        (tmp_path / "kube.yaml").write_text(kubeconfig(server))
        await server.put("inferencepools", POOL)
        await server.put("pods", pod("a", "127.0.0.2"))
        arguments = [
            "--pool-name", "llama", "--pool-namespace", "default", "--pool-group=inference.networking.k8s.io", "-v=2",
            "--grpc-port", extproc, "--grpc-health-port", health, "--metrics-port", metrics, f"--admin-port={admin}",
            "--secure-serving=false", "--metrics-endpoint-auth=false", "--kubeconfig", str(tmp_path / "kube.yaml"),
        ]  # fmt: skip
        async with started(tmp_path, *arguments, *config) as ready:
            assert ready["extproc"].endswith(f":{extproc}") and ready["health"].endswith(f":{health}")
            await seen(f"http://127.0.0.1:{admin}/v1/fleet", wanted="a-rank-0")
            policy = "weighted" if given == "none" else "endpoint-picker-config"
            await seen(f"http://127.0.0.1:{metrics}/metrics", wanted='lorapick_kubernetes_up{kind="pods"} 1.0')
            await seen(f"http://127.0.0.1:{metrics}/metrics", wanted=f'lorapick_info{{policy="{policy}"')
