"""Parameters of what does not pick pods."""

import pytest

from lorapick.wire.config.document import Refused, Report, parse_document
from lorapick.wire.config.epp.further import FURTHER

READ = {each.type: each.read for each in FURTHER}


@pytest.mark.parametrize(
    ("name", "written", "found"),
    [
        ("approx-prefix-cache-producer", "{autoTune: true, lruCapacityPerServer: 9}", {"blocks": 9}),
        ("core-metrics-extractor", "{defaultEngine: sglang}", {"engine": "sglang"}),
        ("topology-extractor", "{hostname: h, zone: z}", {"host": "h", "zone": "z"}),
        ("file-discovery", "{path: p, watchFile: false}", {"path": "p"}),
        ("token-producer", "{backend: vllm, vllm: {url: x}}", {}),
        ("static-usage-limit-policy", "{threshold: 1.0}", {"ceilings": None}),
        ("models-data-source", "{scheme: http}", {}),
    ],
)
def test_parameters(name, written, found):
    assert READ[name](parse_document(written, Report("f"))) == found


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("core-metrics-extractor", "{engineConfigs: [{name: x}]}"),
        ("core-metrics-extractor", "{engineLabelKey: x}"),
        ("session-id-producer", "{cookieName: c, headerName: h}"),
        ("openai-parser", "{a: 1}"),
        ("models-data-source", "[]"),
    ],
)
def test_what_has_no_counterpart(name, written):
    with pytest.raises(Refused):
        READ[name](parse_document(written, Report("f")))
