import inspect
from math import inf, nan
from pathlib import Path

import msgspec
import pytest

from lorapick.cli.up import up
from lorapick.cli.up_options import EMULATED_MODEL, UpError, plan_of, read_pods
from lorapick.core.doctor.shapes import SHAPES, shape_of
from lorapick.core.picking.policies import POLICIES
from lorapick.live.stack_options import emulated_pods
from lorapick.model.pods import Role
from lorapick.model.settings import Settings
from lorapick.wire.config import parse_settings, verbatim
from lorapick.wire.config.problems import ConfigError


def plan(**changes):
    flags = {name: parameter.default for name, parameter in inspect.signature(up).parameters.items()}
    return plan_of(flags | changes)


def test_without_flags_eight_pods_are_emulated_at_the_documented_addresses():
    made = plan()
    assert (made.options.pods, len(made.options.adapter_names), made.options.policy) == (8, 40, "weighted")
    assert (made.options.endpoint, made.options.admin) == ("127.0.0.1:8080", "127.0.0.1:9091")
    assert (made.options.metrics, made.options.health) == ("127.0.0.1:9090", "127.0.0.1:9003")
    assert made.options.body == "buffered"
    assert made.options.restart_pods == 1.0
    assert made.rate == 4.0
    assert [address for address, _ in made.listens] == [
        "127.0.0.1:8080",
        "127.0.0.1:9091",
        "127.0.0.1:9090",
        "127.0.0.1:9003",
    ]


def test_fixed_pod_ports_must_be_free_too():
    made = plan(pods=2, pod_port=8101)
    assert made.listens[-2:] == (
        ("127.0.0.1:8101", "choose another --pod-port"),
        ("127.0.0.1:8102", "choose another --pod-port"),
    )


def test_event_logs_are_kept_when_asked_for(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text("discovery: {pods: [{name: a, address: '127.0.0.1:8001'}]}\n")
    assert [plan(config=config, event_log=True).options.event_log for config in (None, path)] == [True, True]
    assert not plan().options.event_log


def test_no_traffic():
    assert plan(traffic=False).rate is None
    assert plan(adapters=0).rate is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pods": 0}, "--pods is 0; it must be 1 or more"),
        ({"pods": 2, "prefill": 2}, "--prefill is 2; it must be 0 to 1: some pod must decode"),
        ({"pickers": 0}, "--pickers is 0"),
        ({"adapters": -1}, "--adapters is -1"),
        ({"mode": "quick"}, "--mode is 'quick'; it must be one of drain, inline"),
        ({"policy": "best"}, "--policy is 'best'; it must be one of weighted"),
        ({"body": "streamed"}, "--body is 'streamed'"),
        ({"port": 0}, "--port is 0; ports go from 1 to 65535"),
        ({"admin_port": 70_000}, "--admin-port is 70000"),
        ({"pod_port": 65_530}, "8 pods need ports up to 65537"),
        ({"rate": 0.0}, "--rate is 0; it must be above 0"),
        ({"rate": nan}, "--rate is nan"),
        ({"speed": nan}, "--speed is nan; it must be above 0: 0.001 to 10000"),
        ({"speed": inf}, "--speed is inf"),
        ({"seed": -1}, "--seed is -1; it must be 0 to 2147483647"),
        ({"adapters": 100_000_000}, "--adapters is 100000000; it must be 0 to 10000"),
        ({"admin_port": 8080}, "two parts would listen on 127.0.0.1:8080; choose another --admin-port"),
        ({"pod_port": 8079}, "two parts would listen on 127.0.0.1:8080; choose another --pod-port"),
    ],
)
def test_flags_that_cannot_be_are_named(change, words):
    with pytest.raises(UpError, match=words):
        plan(**change)


CONFIG = """
discovery: {pods: [{name: a, address: "127.0.0.1:8001", max_loras: 2}]}
defaults: {max_loras: 8}
adapters: {list: [{name: legal, rank: 16}]}
admission: {max_wait: 90s}
picking: {policy: round-robin, fallbacks: 1}
server: {endpoint: "127.0.0.1:8180", max_body: 2MB, body: full_duplex_streamed}
"""


def test_a_configuration_is_taken_over_and_flags_win(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text(CONFIG)
    made = plan(config=path, port=9999)
    options = made.options
    assert (options.endpoint, options.body, options.policy) == (
        "127.0.0.1:9999",
        "full_duplex_streamed",
        "round-robin",
    )
    assert (options.longest_hold, options.max_body) == (90.0, 2_000_000)
    (pod,) = options.external
    assert (pod.name, pod.limits.max_loras, pod.limits.max_cpu_loras) == ("a", 2, 16)
    assert "discovery" not in options.configuration
    assert options.configuration["picking"] == {"policy": "round-robin", "fallbacks": 1}
    assert made.rate is None
    assert plan(config=path, policy="weighted").options.configuration["picking"] == {
        "policy": "weighted",
        "fallbacks": 1,
    }


def test_keys_that_change_nothing_are_told_once_each(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text(CONFIG.replace("{name: legal, rank: 16}", "{name: a, size: 1MB}, {name: b, size: 2MB}"))
    (line,) = plan(config=path).later
    assert line.startswith(f"{path}:4:29: adapters.list[0].size: loads are expected to take load_times")
    assert line.endswith("(and 1 more of this key)")
    assert plan().later == ()


def test_relative_paths_start_at_the_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    adapter = Path("fleet/peft/legal/adapter_config.json")
    adapter.parent.mkdir(parents=True)
    adapter.write_text('{"r": 16}')
    Path("fleet/pods.yaml").write_text('[{name: a, address: "127.0.0.1:8001"}]')
    Path("fleet/lorapick.yaml").write_text(
        "discovery: {file: pods.yaml}\ndefaults: {max_loras: 6}\nadapters: {catalogue: peft}"
    )
    made = plan(config=Path("fleet/lorapick.yaml"))
    assert made.traffic_adapters == ("legal",)
    assert made.pods_file == Path("fleet/pods.yaml")
    assert made.options.external[0].limits.max_loras == 6
    assert made.options.configuration["discovery"] == {"file": str(tmp_path / "fleet/pods.yaml")}
    assert made.options.configuration["adapters"] == {"catalogue": str(tmp_path / "fleet/peft")}


def test_weights_and_history_stay_where_the_configuration_has_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fleet/adapters").mkdir(parents=True)
    Path("fleet/pods.yaml").write_text('[{name: a, address: "127.0.0.1:8001"}]')
    Path("fleet/lorapick.yaml").write_text(
        """
discovery: {file: pods.yaml}
adapters:
  list:
    - {name: beside, source: adapters/beside}
    - {name: on-pods, source: /mnt/on-pods}
    - {name: hub, source: org/hub}
    - {name: cached, source: "hf-cache:org/cached"}
    - {name: nowhere}
placement:
  history: state/demand.sqlite
  store: store
  sources: [adapters, /mnt, org, "hf-cache:org"]
  tick: 2s
"""
    )
    made = plan(config=Path("fleet/lorapick.yaml")).options.configuration
    here = tmp_path / "fleet"
    assert [each.get("source") for each in made["adapters"]["list"]] == [
        f"{here}/adapters/beside",
        "/mnt/on-pods",
        "org/hub",
        "hf-cache:org/cached",
        None,
    ]
    assert (made["placement"]["history"], made["placement"]["store"]) == (
        f"{here}/state/demand.sqlite",
        f"{here}/store",
    )
    assert made["placement"]["sources"] == [f"{here}/adapters", "/mnt", "org", "hf-cache:org"]


def test_certificates_and_tokens_stay_where_the_configuration_has_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("fleet").mkdir()
    Path("fleet/pods.yaml").write_text('[{name: a, address: "127.0.0.1:8001"}]')
    Path("fleet/lorapick.yaml").write_text(
        """
discovery: {file: pods.yaml}
server: {extproc: "0.0.0.0:9002", metrics_token_file: token}
tls:
  folder: certs
  extproc: {enabled: true}
  metrics: {enabled: true}
  admin: {client_ca: ca.crt}
"""
    )
    made = plan(config=Path("fleet/lorapick.yaml")).options.configuration
    here = tmp_path / "fleet"
    assert made["tls"] == {
        "folder": f"{here}/certs",
        "metrics": {"enabled": True},
        "admin": {"client_ca": f"{here}/ca.crt"},
    }
    assert made["server"]["metrics_token_file"] == f"{here}/token"


def test_the_emulated_fleet_has_a_pin_and_a_trigger_to_see():
    options = plan(adapters=5, pods=1).options
    assert options.configuration["adapters"]["list"][-1] == {"name": "adapter-004", "pin": {"replicas": 1}}
    assert [each["name"] for each in options.configuration["adapters"]["list"]] == [*options.adapter_names]
    assert options.configuration["triggers"] == [{"event": "document.uploaded", "preload": "adapter-003", "for": "10m"}]
    assert [*plan(adapters=2).options.configuration] == ["slo"]


def test_users_of_the_emulated_fleet_were_promised_something():
    def promised(**flags):
        configuration = plan(adapters=1, **flags).options.configuration
        return parse_settings(msgspec.json.encode(configuration), file="up", policies=POLICIES).slo.latency_p95

    assert promised() == 2.0
    assert promised(speed=0.1) == 20.0, "slow pods are no broken promise"
    assert promised(speed=1000.0) == 0.002


def test_slots_make_room_in_host_memory_too():
    few, many = plan(slots=1).options.limits, plan(slots=32).options.limits
    assert (few.max_loras, few.max_cpu_loras) == (1, 16)
    assert (many.max_loras, many.max_cpu_loras) == (32, 32)
    assert plan().options.limits.max_loras == 4
    for slots, words in ((0, "--slots is 0; it must be 1 or more"), (1001, "--slots is 1001; it must be 0 to 1000")):
        with pytest.raises(UpError, match=words):
            plan(slots=slots)


def test_a_wrong_file_is_told_by_place(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text("picking: {policy: best}\n")
    with pytest.raises(ConfigError, match=r"lorapick\.yaml:1:19: picking\.policy"):
        plan(config=path)
    pods = tmp_path / "pods.yaml"
    pods.write_text("[{name: a}]")
    with pytest.raises(ConfigError, match=r"pods\.yaml:1"):
        read_pods(pods, Settings())
    pods.write_text("[]")
    assert read_pods(pods, Settings()) == ()


def test_label_text_that_looks_like_a_number_stays_as_it_is(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text(
        "discovery: {pods: [{name: a, address: '127.0.0.1:1'}]}\n"
        "adapters: {list: [{name: x, revision: 1.10, pin: {selector: {generation: 010}}}]}\n"
    )
    made = plan(config=path)
    text = verbatim.write({**made.options.configuration, "discovery": {"file": "pods.yaml"}})
    (adapter,) = parse_settings(text, file="up", policies=POLICIES).adapters
    assert (adapter.revision, adapter.pin.selector) == ("1.10", {"generation": "010"})


def test_all_that_a_configuration_names_is_checked_before_anything_starts(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text("discovery: {file: pods.yaml}\nadapters: {catalogue: peft}\n")
    with pytest.raises(ConfigError) as caught:
        plan(config=path)
    assert str(caught.value).splitlines() == [
        f"{path}: adapters.catalogue: {tmp_path / 'peft'} is no directory; name one that holds PEFT adapter folders",
        f"{tmp_path / 'pods.yaml'}: cannot be read: No such file or directory",
    ]
    path.write_text("discovery: {pods: []}\n")
    with pytest.raises(UpError, match=r"lorapick\.yaml has no pods; add at least one"):
        plan(config=path)
    path.unlink()
    with pytest.raises(ConfigError, match=r"lorapick\.yaml: cannot be read: No such file"):
        plan(config=path)


def test_what_does_not_exist_yet_is_refused_by_place(tmp_path):
    path = tmp_path / "lorapick.yaml"
    path.write_text("tenants: {}\n")
    with pytest.raises(ConfigError, match=r"lorapick\.yaml:1:[0-9]+: tenants: "):
        plan(config=path)


def test_emulated_pods_have_the_name_of_the_model_that_they_are_calibrated_to():
    pods = emulated_pods(plan().options)
    assert {pod.base_model for pod in pods} == {EMULATED_MODEL}
    assert shape_of(EMULATED_MODEL) == SHAPES["llama-3.1-8b"], "so the doctor can say what a slot costs"


def test_some_of_the_emulated_pods_prefill():
    assert [pod.role for pod in emulated_pods(plan(pods=3, prefill=2).options)] == [
        Role.PREFILL,
        Role.PREFILL,
        Role.DECODE,
    ]


def test_envoy_is_told_what_the_configuration_says_of_fallbacks_and_encoders(tmp_path):
    path = tmp_path / "lorapick.yaml"
    pods = 'discovery: {pods: [{name: a, address: "10.0.0.1:80", role: prefill}]}'
    path.write_text(f"{pods}\npicking: {{fallbacks: 4}}\ndisaggregation: {{pass_encoders: true}}\n")
    made = plan(config=path)
    assert (made.options.fallbacks, made.options.pass_encoders) == (4, True)
    (line,) = made.useless_roles
    assert "prefill and none of this model decodes" in line
