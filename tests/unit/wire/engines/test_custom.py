"""Metrics that a configuration names, out of pages."""

import pytest

from lorapick.model.pods import Engine
from lorapick.model.profiles import CustomMetric
from lorapick.wire.engines import custom
from lorapick.wire.exposition import ExpositionError

PAGE = b"""# TYPE depth gauge
depth{tier="silver",model="m"} 7
depth{tier="gold",model="m"} 3
depth{tier="gold",model="n"} 9
# TYPE lost counter
lost_total 41
# TYPE odd gauge
odd NaN
# TYPE none gauge
"""


def metric(attribute, family, **labels):
    return CustomMetric(engine=Engine.VLLM, attribute=attribute, family=family, labels=labels)


@pytest.mark.parametrize(
    ("family", "labels", "expected"),
    [
        ("depth", {}, 7.0),
        ("depth", {"tier": "gold"}, 3.0),
        ("depth", {"tier": "gold", "model": "n"}, 9.0),
        ("depth", {"tier": "bronze"}, None),
        ("depth", {"zone": "z"}, None),
        ("lost_total", {}, 41.0),
        ("odd", {}, None),
        ("none", {}, None),
        ("missing", {}, None),
    ],
)
def test_the_first_series_with_the_labels_counts(family, labels, expected):
    found = custom.read(PAGE, [metric("a", family, **labels)])
    assert found == (() if expected is None else (("a", expected),))


def test_several_at_once_and_none():
    wanted = [metric("b", "lost_total"), metric("a", "depth"), metric("c", "missing")]
    assert custom.read(PAGE, wanted) == (("b", 41.0), ("a", 7.0))
    assert custom.read(b"no page at all {", []) == ()


def test_a_line_that_cannot_be_read():
    with pytest.raises(ExpositionError):
        custom.read(b"depth{ 7\n", [metric("a", "depth")])
