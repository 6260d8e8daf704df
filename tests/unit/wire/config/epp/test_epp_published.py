"""Files of the shapes that llm-d publishes: each works, or is refused for what is missing.

`published` has them, in words of our own: the structure is that of its `deploy/config` and guides (May to September
2026).
"""

from pathlib import Path

import pytest
from epp_kit import parse

from lorapick.model.bands import Band, CeilingSettings, ChanceSettings, Ordering, Spread
from lorapick.model.pods import Engine
from lorapick.model.profiles import CustomMetric
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError
from lorapick.wire.config.epp import with_endpoint_picker

FILES = {path.stem: path for path in (Path(__file__).parent / "published").glob("*.yaml")}
REFUSED = {
    "burst-prefix-cache": ["has no window in which requests are gathered"],
    "encode-prefill-decode": ["has no choice of pods that encode", "deciders.encode: has no counterpart"],
    "multimodal-embeddings": ["has no index of which pod", "has no index of which pod"],
    "peer-discovery": ["lorapick's meet in a Redis or Valkey"],
    "predicted-latency": ["a latency predictor"] * 4,
    "program-gate": ["no such plugin type"],
}
"""Words of each problem, in the order of the file."""


@pytest.mark.parametrize("name", sorted({*FILES} - {*REFUSED}))
def test_it_works(name):
    picker = parse(FILES[name].read_text())
    assert with_endpoint_picker(Settings(), picker).picking.profiles == picker.profiles


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_for_what_is_missing(name):
    with pytest.raises(ConfigError) as said:
        parse(FILES[name].read_text())
    lines = str(said.value).splitlines()
    assert len(lines) == len(REFUSED[name])
    for line, words in zip(lines, REFUSED[name], strict=True):
        assert words in line


def test_what_some_of_them_come_to():
    settings = with_endpoint_picker(Settings(), parse(FILES["flow-control-deadlines"].read_text()))
    assert (settings.admission.ordering, settings.admission.max_queued) == (Ordering.SLO, 500)
    settings = with_endpoint_picker(Settings(), parse(FILES["flow-control-bands"].read_text()))
    assert settings.admission.bands == (Band(priority=10, max_queued=100), Band(priority=5), Band(max_queued=50))
    settings = with_endpoint_picker(Settings(), parse(FILES["flow-control-bytes"].read_text()))
    assert settings.admission.bands == (Band(priority=10, max_bytes=2**30),)
    settings = with_endpoint_picker(Settings(), parse(FILES["probabilistic-admitter"].read_text()))
    assert settings.admission.chance == ChanceSettings()
    settings = with_endpoint_picker(Settings(), parse(FILES["soft-reflective-ceiling"].read_text()))
    assert settings.admission.ceilings == CeilingSettings(spread=Spread.REFLECTED)
    settings = with_endpoint_picker(Settings(), parse(FILES["priority-holdback"].read_text()))
    assert settings.admission.ceilings == CeilingSettings(spread=Spread.VALUE, least=0.6, most=0.95)
    profiles = parse(FILES["custom-metrics"].read_text()).profiles
    labels = {"tier": "gold"}
    assert profiles.metrics == (
        CustomMetric(engine=Engine.VLLM, attribute="Swapped", family="vllm:num_requests_swapped", labels=labels),
    )
    assert profiles.decode.scorers[0].parameters["attribute"] == "Swapped"
    assert profiles.decode.filters[0].parameters["attribute"] == "Swapped"
    profiles = parse(FILES["passthrough-session-affinity"].read_text()).profiles
    assert profiles.names.token == "x-session-token"
    profiles = parse(FILES["stages-by-header"].read_text()).profiles
    assert (profiles.chosen_by, profiles.decode.name) == ("epp-profile", "decode")
    assert parse(FILES["program-aware"].read_text()).profiles.names.fairness[-1] == "x-program"
    assert parse(FILES["data-parallel"].read_text()).profiles.names.primary_port == 8000
    threshold = parse(FILES["gpu-utilization"].read_text()).profiles.decode.filters[1]
    assert threshold.parameters == {"compare": "LessThanOrEqual", "value": 0.9, "passes": True, "fall_back": True}
