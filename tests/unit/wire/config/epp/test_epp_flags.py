"""Flags of llm-d's endpoint picker: the same meaning, or refused by name; none is passed over."""

import pytest

from lorapick.model.settings import KubernetesSettings, LeaderSettings, Settings
from lorapick.wire.config.epp.flags import READERS, FlagError, read_flags

UPSTREAM = """pool-name pool-namespace pool-group endpoint-selector endpoint-target-ports disable-endpoint-subset-filter
grpc-port grpc-health-port metrics-port ha-enable-leader-election drain-timeout grpc-max-recv-msg-size
grpc-max-send-msg-size refresh-metrics-interval refresh-prometheus-metrics-interval metrics-staleness-threshold
total-queued-requests-metric total-running-requests-metric kv-cache-usage-percentage-metric lora-info-metric
cache-info-metric tracing health-checking enable-pprof cert-path enable-cert-reload enable-grpc-stream-metrics
secure-serving metrics-endpoint-auth metrics-client-ca-file metrics-cert-dir config-file config-text
allow-experimental-plugins v zap-log-level zap-encoder zap-devel zap-stacktrace-level zap-time-encoding kubeconfig"""


def settings(*arguments: str, **environment: str) -> Settings:
    return read_flags(arguments, environment).settings


def refused(*arguments: str, **environment: str) -> str:
    with pytest.raises(FlagError) as said:
        read_flags(arguments, environment)
    return str(said.value)


def test_every_flag_of_llm_d_is_known():
    assert {*READERS} == {*UPSTREAM.split(), "admin-port"}


def test_arguments_as_its_chart_gives_them():
    flags = read_flags(
        [
            "--pool-name", "llama", "--pool-namespace", "models", "--pool-group", "inference.networking.k8s.io",
            "--zap-encoder", "json", "--config-file", "/config/default-plugins.yaml", "--tracing=false", "-v=4",
            "--grpc-port=9102", "--grpc-health-port", "9103", "--metrics-port=9190", "--metrics-endpoint-auth=false",
        ],
        {},
    )  # fmt: skip
    assert (flags.config_file, flags.config_text, flags.log_level) == ("/config/default-plugins.yaml", None, "debug")
    cluster = flags.settings.discovery.kubernetes
    assert cluster == KubernetesSettings(pool="llama", namespace="models", leader=LeaderSettings(enabled=False))
    server = flags.settings.server
    assert (server.extproc, server.health, server.metrics) == ("0.0.0.0:9102", "0.0.0.0:9103", "0.0.0.0:9190")
    assert server.admin == Settings().server.admin, "nothing of llm-d's is there: it stays on loopback"


def test_by_default_it_listens_where_llm_d_does_and_by_tls():
    found = settings("--pool-name=p")
    assert (found.server.extproc, found.server.health, found.server.metrics) == (
        "0.0.0.0:9002", "0.0.0.0:9003", "0.0.0.0:9090",
    )  # fmt: skip
    assert (found.server.body, found.tls.extproc.enabled) == ("full_duplex_streamed", True)
    assert settings("--pool-name=p", "--secure-serving=false").tls.extproc.enabled is False
    tls = settings("--pool-name=p", "--cert-path=/certs/").tls
    assert (tls.certificate, tls.key, tls.extproc.enabled) == ("/certs/tls.crt", "/certs/tls.key", True)


def test_pods_by_labels_without_an_inference_pool():
    cluster = settings(
        "--endpoint-selector=app=vllm,tier==gold", "--endpoint-target-ports=8000,8001"
    ).discovery.kubernetes
    assert cluster is not None
    assert (cluster.pool, cluster.selector, cluster.target_ports) == (
        None,
        {"app": "vllm", "tier": "gold"},
        (8000, 8001),
    )


def test_times_and_the_lead():
    found = settings("--pool-name=p", "--refresh-metrics-interval=200ms", "--drain-timeout=1m")
    assert (found.scrape.interval, found.server.drain_timeout) == (0.2, 60.0)
    cluster = settings("--pool-name=p", "--ha-enable-leader-election").discovery.kubernetes
    assert cluster is not None and cluster.leader.enabled


def test_the_environment_stands_in_for_flags_that_are_not_given():
    cluster = settings(LORAPICK_POOL_NAME="p", NAMESPACE="chart").discovery.kubernetes
    assert cluster is not None and (cluster.pool, cluster.namespace) == ("p", "chart")
    cluster = settings(
        "--pool-name=q", "--pool-namespace=n", LORAPICK_POOL_NAME="p", NAMESPACE="chart"
    ).discovery.kubernetes
    assert cluster is not None and (cluster.pool, cluster.namespace) == ("q", "n")
    assert refused(LORAPICK_GRPC_PORT="x").startswith("LORAPICK_GRPC_PORT must be a port in 1-65535")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--pool-nam=p"], '--pool-nam is unknown; did you mean "pool-name"'),
        (["llama"], "'llama' is no flag"),
        (["--pool-name"], "--pool-name needs a value"),
        (["--pool-name=Llama"], "--pool-name must be a name of lower-case letters"),
        (["--pool-group=x.k8s.io"], "--pool-group must be inference.networking.k8s.io"),
        (["--grpc-port=0"], "--grpc-port must be a port in 1-65535 (found '0')"),
        (["--secure-serving=yes"], "--secure-serving must be true or false"),
        (["--pool-name=p", "--endpoint-selector=a=b"], "one of them"),
        (["--endpoint-selector=a=b"], "needs --endpoint-target-ports"),
        (["--endpoint-selector=a in (b)", "--endpoint-target-ports=1"], "has no sets"),
        (["--endpoint-target-ports=1"], "belongs to --endpoint-selector"),
        (["--config-file=a", "--config-text=b"], "one of them"),
        (["--refresh-metrics-interval=5"], "must be a duration"),
        (["--refresh-metrics-interval=1ms"], "at least 50ms"),
        (["--tracing"], "--tracing must be false here: write tracing"),
        (["--metrics-endpoint-auth=true"], "asks the API server about nobody's token"),
        (["--disable-endpoint-subset-filter"], "the gateway's subset hint always counts"),
        (["--lora-info-metric=x"], "--lora-info-metric is not supported"),
        (["--metrics-cert-dir=/c"], "docs/tls.md"),
        (["-v=high"], "must be a number"),
    ],
)
def test_what_cannot_be_is_said_by_name(arguments, said):
    assert said in refused(*arguments)
