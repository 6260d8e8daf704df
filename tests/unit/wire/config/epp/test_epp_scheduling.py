"""Parameters of filters and scorers."""

import pytest

from lorapick.wire.config.document import Report, parse_document
from lorapick.wire.config.epp.scheduling import SCHEDULING

READ = {each.type: each.read for each in SCHEDULING}


@pytest.mark.parametrize(
    ("name", "written", "found"),
    [
        ("load-aware-scorer", "{}", {"threshold": 128}),
        ("load-aware-scorer", "{threshold: 7}", {"threshold": 7}),
        ("active-request-scorer", "{requestTimeout: 2m, maxBusyScore: 0.5}", {"idle": 0, "most": 0.5}),
        ("token-load-scorer", "{nonTextTokenWeight: 1.0}", {"threshold": 4_194_304}),
        ("prefix-cache-scorer", "{matchLengthWeight: 0.3}", {"weight": 0.3, "scale_tokens": 8192.0}),
        ("topology-affinity-filter", "{minAffinity: zone}", {"least": "zone", "places": {}}),
        ("no-hit-lru-scorer", "{prefixPluginType: x, lruSize: 2048}", {}),
        ("context-length-aware", "{label: l}", {"label": "l", "filters": False}),
        ("lora-affinity-scorer", "{}", {}),
    ],
)
def test_parameters_become_arguments(name, written, found):
    assert READ[name](parse_document(written, Report("f"))) == found
