from pathlib import Path

import msgspec
import pytest

from lorapick.core.picking.links import link_speed
from lorapick.core.picking.policies import POLICIES
from lorapick.live.podserver.adapters_file import read_adapters
from lorapick.live.podserver.options import HandoverOptions
from lorapick.live.stack_options import (
    PickerPlace,
    StackOptions,
    adapters_document,
    configuration,
    emulated_pods,
    picker_command,
    pod_command,
    pods_document,
)
from lorapick.model.disaggregation import DisaggregationSettings
from lorapick.model.pods import Pod, PodLimits, Role
from lorapick.wire.config.document import Report, parse_document
from lorapick.wire.config.pods import PodDefaults, pods
from lorapick.wire.config.settings import parse_settings

PLACE = PickerPlace(
    extproc="unix:/run/extproc-0.sock",
    health="127.0.0.1:9003",
    metrics="127.0.0.1:9090",
    admin="127.0.0.1:9091",
    configuration=Path("/run/lorapick-0.yaml"),
)


def settings_of(options):
    document = configuration(options, PLACE, pods_file=Path("/run/pods.yaml"))
    return parse_settings(msgspec.yaml.encode(document), file="lorapick.yaml", policies=POLICIES)


def test_the_generated_configuration_says_what_was_asked():
    settings = settings_of(
        StackOptions(adapters=("a", "b"), policy="round-robin", seed=7, limits=PodLimits(max_loras=2))
    )
    assert [adapter.name for adapter in settings.adapters] == ["a", "b"]
    assert all(adapter.declared for adapter in settings.adapters)
    assert (settings.picking.policy, settings.seed, settings.defaults.max_loras) == ("round-robin", 7, 2)
    assert settings.discovery.file == "/run/pods.yaml"
    assert settings.server.extproc == "unix:/run/extproc-0.sock"
    assert settings.server.admin == "127.0.0.1:9091"


def test_a_configuration_is_laid_over_but_never_over_the_places():
    above = {"picking": {"fallbacks": 1}, "server": {"admin": "127.0.0.1:1", "max_body": "1MB"}}
    settings = settings_of(StackOptions(policy="round-robin", configuration=above))
    assert (settings.picking.policy, settings.picking.fallbacks) == ("round-robin", 1)
    assert (settings.server.max_body, settings.server.admin) == (1_000_000, "127.0.0.1:9091")


def test_a_picker_is_told_where_envoys_counts_are():
    place = msgspec.structs.replace(PLACE, envoy_admin="unix:/run/envoy-admin.sock")
    document = configuration(StackOptions(), place, pods_file=Path("/run/pods.yaml"))
    assert document["server"]["envoy_admin"] == "unix:/run/envoy-admin.sock"
    assert settings_of(StackOptions()).server.envoy_admin is None


def test_pods_survive_their_file():
    wanted = (
        Pod(name="a", address="127.0.0.1:8001", zone="west", labels={"tier": "gold"}, limits=PodLimits(max_loras=2)),
        Pod(name="b", address="127.0.0.1:8002", base_model="llama", dcgm_url="http://127.0.0.1:9400/metrics"),
    )
    text = msgspec.yaml.encode(pods_document(wanted))
    other_defaults = PodDefaults(base_model="other", limits=PodLimits(max_loras=9, max_cpu_loras=99))
    assert pods(other_defaults)(parse_document(text, Report("pods.yaml"))) == wanted


def test_adapters_survive_their_file():
    text = msgspec.yaml.encode(adapters_document(StackOptions(adapters=3)))
    assert [adapter.name for adapter in read_adapters(text, file="adapters.yaml")] == [
        "adapter-000",
        "adapter-001",
        "adapter-002",
    ]


def test_emulated_pods_follow_each_other_or_take_free_ports():
    assert [pod.address for pod in emulated_pods(StackOptions(pods=2, pod_port=8101))] == [
        "127.0.0.1:8101",
        "127.0.0.1:8102",
    ]
    free = emulated_pods(StackOptions(pods=3))
    assert [pod.name for pod in free] == ["pod-0", "pod-1", "pod-2"]
    assert len({pod.address for pod in free}) == 3
    assert emulated_pods(StackOptions(external=free)) == ()


def test_commands():
    options = StackOptions(mode="drain", pod_arguments=("--report-loaded",))
    line = pod_command(Pod(name="p", address="127.0.0.1:8001"), options, adapters_file=Path("/run/adapters.yaml"))
    text = " ".join(line)
    assert " pod --name p --host 127.0.0.1 --port 8001 " in text
    assert "--adapters /run/adapters.yaml" in text
    assert "--mode drain" in text
    assert line[-1] == "--report-loaded"
    assert picker_command(options, PLACE)[-3:] == ("serve", "--config", "/run/lorapick-0.yaml")
    recording = picker_command(StackOptions(event_log=True), PLACE)
    assert recording[-2:] == ("--event-log", "/run/lorapick-0.events.jsonl")


@pytest.mark.parametrize("change", [{"pods": 0}, {"pickers": 0}, {"concurrency": 0}])
def test_counts_that_cannot_be(change):
    with pytest.raises(ValueError, match="must be 1 or more"):
        StackOptions(**change)


def test_each_picker_has_a_history_of_its_own():
    options = StackOptions(pickers=2, configuration={"placement": {"history": "/state/demand.sqlite"}})
    names = [
        configuration(options, msgspec.structs.replace(PLACE, number=number), pods_file=Path("/run/pods.yaml"))[
            "placement"
        ]["history"]
        for number in (0, 1)
    ]
    assert names == ["/state/demand.sqlite", "/state/demand.sqlite.1"]


def test_pods_of_two_sides_count_as_linked_as_fast_as_they_are():
    first, *_, last = emulated_pods(StackOptions(pods=3, prefill=1))
    speed = link_speed(first, last, settings=DisaggregationSettings())
    assert speed == HandoverOptions().kv_bandwidth
    assert {pod.zone for pod in emulated_pods(StackOptions(pods=3))} == {None}


def test_adapters_are_for_the_base_model_of_the_emulated_pods():
    options = StackOptions(adapters=("a",), base_model="llama-3.1-8b")
    settings = settings_of(options)
    assert {adapter.base_model for adapter in settings.adapters} <= {None, "llama-3.1-8b"}
    assert settings.base_model == "llama-3.1-8b"
    assert {pod.base_model for pod in emulated_pods(options)} == {settings.base_model}


def test_pods_that_prefill_are_told_so_and_named_first():
    options = StackOptions(pods=3, prefill=1)
    found = emulated_pods(options)
    assert [pod.role for pod in found] == [Role.PREFILL, Role.DECODE, Role.DECODE]
    command = pod_command(found[0], options, adapters_file=Path("/a"))
    assert command[command.index("--role") + 1] == "prefill"
    whole = StackOptions(pods=1)
    assert "--role" not in pod_command(emulated_pods(whole)[0], whole, adapters_file=Path("/a"))
    with pytest.raises(ValueError, match="at least one must decode"):
        StackOptions(pods=2, prefill=2)
