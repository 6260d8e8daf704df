"""How a picker is let in by the API server."""

import shutil

import pytest

from lorapick.live.kubernetes.access import TokenFile, find_access
from lorapick.live.kubernetes.client import ApiError, Client
from lorapick.model.settings import KubernetesSettings
from lorapick.testing.apiserver import ApiServer
from lorapick.wire.config import ConfigError

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: first
clusters:
- {{name: c, cluster: {{server: "{url}"}}}}
users:
- {{name: u, user: {{token: secret}}}}
contexts:
- {{name: first, context: {{cluster: c, user: u, namespace: serving}}}}
- {{name: second, context: {{cluster: c, user: u}}}}
"""


async def test_a_token_is_read_again_when_it_may_be_another(tmp_path):
    now = [0.0]
    path = tmp_path / "token"
    path.write_text("one\n")
    token = TokenFile(path, clock=lambda: now[0])
    assert await token.headers() == {"Authorization": "Bearer one"}
    path.write_text("two")
    assert await token.headers() == {"Authorization": "Bearer one"}
    now[0] = 61.0
    assert await token.headers() == {"Authorization": "Bearer two"}
    path.unlink()
    now[0] = 200.0
    assert await token.headers() == {"Authorization": "Bearer two"}


async def test_a_server_without_credentials(tmp_path):
    found = await find_access(KubernetesSettings(pool="p", server="http://127.0.0.1:8001"), beside=tmp_path)
    assert (found.url, found.namespace, await found.headers()) == ("http://127.0.0.1:8001", "default", {})


async def test_outside_a_cluster_without_a_kubeconfig(tmp_path):
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST is not set"):
        await find_access(KubernetesSettings(pool="p"), beside=tmp_path, environment={})
    with pytest.raises(ConfigError, match="service account's files cannot be read"):
        await find_access(
            KubernetesSettings(pool="p"),
            beside=tmp_path,
            environment={"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
            service_account=tmp_path,
        )


async def test_in_a_cluster(tmp_path):
    import certifi  # some certificate that is one

    shutil.copy(certifi.where(), tmp_path / "ca.crt")
    (tmp_path / "token").write_text("t")
    (tmp_path / "namespace").write_text("serving\n")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    found = await find_access(
        KubernetesSettings(pool="p"), beside=tmp_path, environment=environment, service_account=tmp_path
    )
    assert (found.url, found.namespace) == ("https://[fd00::1]:6443", "serving")
    assert found.tls is not None
    assert await found.headers() == {"Authorization": "Bearer t"}


async def test_a_kubeconfig_and_its_contexts(tmp_path):
    async with ApiServer().running() as server:
        (tmp_path / "kube.yaml").write_text(KUBECONFIG.format(url=server.url))
        found = await find_access(KubernetesSettings(pool="p", kubeconfig="kube.yaml"), beside=tmp_path)
        assert (found.url, found.namespace) == (server.url, "serving")
        assert await found.headers() == {"Authorization": "Bearer secret"}
        second = KubernetesSettings(pool="p", kubeconfig="kube.yaml", context="second")
        assert (await find_access(second, beside=tmp_path)).namespace == "default"
        async with Client(found) as client:
            assert await client.list("/api/v1/namespaces/serving/pods", params={}) == ([], "99")
            with pytest.raises(ApiError, match="404: pods x not found"):
                await client.request("GET", "/api/v1/namespaces/serving/pods/x")


@pytest.mark.parametrize("content", ["", "a: [", "apiVersion: v1\nkind: Config\n", KUBECONFIG.format(url="http://x")])
async def test_a_kubeconfig_that_cannot_be_used(tmp_path, content):
    (tmp_path / "kube.yaml").write_text(content)
    wanted = KubernetesSettings(pool="p", kubeconfig="kube.yaml", context="third")
    with pytest.raises(ConfigError, match="cannot be used"):
        await find_access(wanted, beside=tmp_path)
    with pytest.raises(ConfigError, match="cannot be used"):
        await find_access(KubernetesSettings(pool="p", kubeconfig="none.yaml"), beside=tmp_path)


async def test_pages_are_one_list():
    async with ApiServer().running() as server:
        for number in range(1203):
            await server.put("pods", {"metadata": {"name": f"p{number}"}})
        from lorapick.live.kubernetes.access import Access

        async with Client(Access(server.url, namespace="default")) as client:
            items, version = await client.list("/api/v1/namespaces/default/pods", params={})
            assert len(items) == 1203
            assert version == items[-1]["metadata"]["resourceVersion"]
        assert len(server.requests) == 3
