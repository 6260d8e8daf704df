"""The section `disaggregation`."""

import pytest

from lorapick.core.picking.policies import POLICIES
from lorapick.model.disaggregation import Choice, Decide, DisaggregationSettings, LinkSpeeds
from lorapick.wire.config.problems import ConfigError
from lorapick.wire.config.settings import parse_settings

PODS = "discovery: {pods: [{name: a, address: '127.0.0.1:8000'}]}\n"


def read(text):
    return parse_settings(PODS + text, file="f.yaml", policies=POLICIES).disaggregation


def test_nothing_said_is_the_documented():
    assert read("") == DisaggregationSettings()


def test_everything_can_be_said():
    text = """
disaggregation:
  decide: cost
  choice: independent
  uncached_tokens: 512
  kv_bytes_per_token: 320 KiB
  links: {same_node: 400 GB, same_zone: 12.5 GB, elsewhere: 1 GB}
  link_latency: 5ms
  node_label: node
"""
    assert read(text) == DisaggregationSettings(
        decide=Decide.COST,
        choice=Choice.INDEPENDENT,
        uncached_tokens=512,
        kv_bytes_per_token=327_680,
        links=LinkSpeeds(same_node=4e11, same_zone=1.25e10, elsewhere=1e9),
        link_latency=0.005,
        node_label="node",
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("decide: sometimes", "disaggregation.decide"),
        ("choice: both", "disaggregation.choice"),
        ("uncached_tokens: 0", "disaggregation.uncached_tokens"),
        ("links: {same_node: 0}", "disaggregation.links.same_node"),
        ("links: {moon: 1 GB}", "moon"),
        ("link_latency: -1s", "disaggregation.link_latency"),
        ("threshold: 3", "threshold"),
    ],
)
def test_what_is_wrong_is_named(text, told):
    with pytest.raises(ConfigError, match=told):
        read(f"disaggregation: {{{text}}}\n")
