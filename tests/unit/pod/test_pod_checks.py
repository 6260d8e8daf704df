"""Configurations that describe no pod."""

import msgspec
import pytest

from lorapick.model.pods import PodLimits
from lorapick.pod.engine import PodEngine
from lorapick.pod.errors import BadPodConfig
from lorapick.pod.values import Memory, MergePolicy, Merging, PodConfig, StepCosts, SwapCosts, SwapMode


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"limits": PodLimits(max_loras=0)}, "max_loras is 0"),
        ({"limits": PodLimits(max_loras=8, max_cpu_loras=4)}, "max_cpu_loras is 4 and max_loras 8"),
        ({"kv_blocks": 0}, "kv_blocks is 0"),
        ({"step": StepCosts(a=0, b=0)}, "a step must take time"),
        ({"step": StepCosts(scan=-1)}, "must not be negative"),
        ({"step": StepCosts(rank_slope=1.5)}, "rank_slope in"),
        ({"prefill_per_token": -1.0}, "must not be negative"),
        ({"swap": SwapCosts(disk_bandwidth=0)}, "bandwidths"),
        ({"load_failure_share": 2.0}, "must be in"),
        ({"load_failure_share": 0.5}, "hand in `draw`"),
        ({"kv_bytes_per_token": 0}, "kv_bytes_per_token is 0"),
        ({"memory": Memory.UNIFIED, "limits": PodLimits(max_cpu_loras=0)}, "max_cpu_loras is 0"),
        ({"memory": Memory.UNIFIED, "mode": SwapMode.DRAIN}, "need mode `inline`"),
        ({"merging": MergePolicy(mode=Merging.ALWAYS), "mode": SwapMode.DRAIN}, "need mode `inline`"),
        ({"merging": MergePolicy(share=2.0)}, "share must be in"),
        ({"merging": MergePolicy(seconds=-1.0)}, "must not be negative"),
    ],
)
def test_a_configuration_that_describes_no_pod_is_refused(changes, words):
    with pytest.raises(BadPodConfig, match=words):
        PodEngine(msgspec.structs.replace(PodConfig(), **changes), now=0.0)


def test_unified_memory_needs_no_slots():
    limits = PodLimits(max_loras=8, max_cpu_loras=4)
    PodEngine(PodConfig(memory=Memory.UNIFIED, limits=limits), now=0.0)
