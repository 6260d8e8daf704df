"""What is injected."""

from epp_kit import file, scorers
from msgspec.structs import replace

from lorapick.model.bands import SaturationSettings
from lorapick.model.settings import Settings
from lorapick.wire.config.epp import with_endpoint_picker


def test_the_built_in_default():
    picker = file("default")
    assert scorers(picker.profiles.decode) == {
        "queue-scorer": 2.0,
        "kv-cache-utilization-scorer": 2.0,
        "prefix-cache-scorer": 3.0,
    }
    assert picker.profiles.decode.picker.type == "max-score-picker"
    assert picker.profiles.prefill is None and not picker.profiles.waits
    injected = [part.what for part in picker.parts if not part.field]
    assert injected == [
        "max-score-picker",
        "single-profile-handler",
        "utilization-detector",
        "fcfs-ordering-policy",
        "global-strict-fairness-policy",
        "static-usage-limit-policy",
        "openai-parser",
        "anthropic-parser",
        "vllmhttp-parser",
        "passthrough-parser",
        "approx-prefix-cache-producer",
        "inflight-load-producer",
    ]
    admission = with_endpoint_picker(Settings(), picker).admission
    assert admission == replace(Settings().admission, saturation=SaturationSettings(queue=5.0, kv=0.8))
