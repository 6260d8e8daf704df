"""Options: good ones are taken, bad ones named with value, limit and remedy."""

from math import inf, nan

import pytest

from lorapick.live.podserver.options import (
    OptionsError,
    PodServerOptions,
    adapter_spec,
    numbered_adapters,
)
from lorapick.model.pods import PodLimits
from lorapick.pod.values import PodConfig


def test_a_count_gives_names_that_sort() -> None:
    names = [adapter.name for adapter in numbered_adapters(12)]
    assert names == sorted(names)
    assert names[0] == "adapter-000" and names[-1] == "adapter-011"


@pytest.mark.parametrize("count", [-1, 100_001])
def test_a_count_out_of_bounds_is_refused(count: int) -> None:
    with pytest.raises(OptionsError, match="100000"):
        numbered_adapters(count)


def test_a_size_follows_from_the_rank_unless_given() -> None:
    assert adapter_spec("a").size == 65_536_000
    assert adapter_spec("a", rank=64).size == 4 * 65_536_000
    assert adapter_spec("a", rank=64, size=7).size == 7


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"speed": 0.0}, "speed is 0.0"),
        ({"speed": inf}, "speed is inf; it must be 0.001 to 10000"),
        ({"speed": nan}, "speed is nan"),
        ({"drain_timeout": nan}, "drain_timeout is nan s; it must be 0 or more and at most 86400"),
        ({"drain_timeout": inf}, "drain_timeout is inf"),
        ({"metrics_lag": inf}, "metrics_lag is inf"),
        ({"port": 70_000}, "port is 70000"),
        ({"name": ""}, "name is empty"),
        ({"base_model": ""}, "base_model is empty"),
        ({"metrics_lag": -1.0}, "metrics_lag is -1.0"),
        ({"config": PodConfig(limits=PodLimits(max_loras=0))}, "max_loras is 0"),
        (
            {"config": PodConfig(limits=PodLimits(max_loras=5, max_cpu_loras=4))},
            "max_cpu_loras is 4, below max_loras 5",
        ),
        ({"adapters": (adapter_spec("a,b"),)}, "comma"),
        ({"adapters": (adapter_spec("base"),)}, "base model's name"),
        ({"adapters": (adapter_spec("a"),), "catalogue": (adapter_spec("a"),)}, "listed twice"),
        ({"adapters": (adapter_spec("a", rank=0),)}, "rank 0"),
        ({"adapters": (adapter_spec(""),)}, "empty name"),
    ],
)
def test_bad_options_are_named(changes: dict, part: str) -> None:
    with pytest.raises(OptionsError, match=part):
        PodServerOptions(**changes)
