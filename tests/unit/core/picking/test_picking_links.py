"""Transfer of KV by how near two pods are."""

import pytest

from lorapick.core.picking.links import link_speed, transfer_seconds
from lorapick.model.disaggregation import DisaggregationSettings, LinkSpeeds
from lorapick.model.pods import Pod

SETTINGS = DisaggregationSettings(
    kv_bytes_per_token=100,
    links=LinkSpeeds(same_node=1e6, same_zone=1e5, elsewhere=1e4),
    link_latency=0.002,
    node_label="node",
)


def pod(name, *, node=None, zone=None):
    return Pod(name=name, address=f"{name}:1", zone=zone, labels={"node": node} if node is not None else {})


@pytest.mark.parametrize(
    ("one", "other", "speed"),
    [
        (pod("a", node="n1", zone="z"), pod("b", node="n1", zone="z"), 1e6),
        (pod("a", node="n1", zone="y"), pod("b", node="n1", zone="z"), 1e6),
        (pod("a", node="n1", zone="z"), pod("b", node="n2", zone="z"), 1e5),
        (pod("a", node="n1", zone="z"), pod("b", zone="z"), 1e5),
        (pod("a", node="n1", zone="y"), pod("b", node="n2", zone="z"), 1e4),
        (pod("a"), pod("b"), 1e4),
    ],
)
def test_the_nearest_link_that_both_are_on_carries_the_kv(one, other, speed):
    assert link_speed(one, other, settings=SETTINGS) == link_speed(other, one, settings=SETTINGS) == speed
    seconds = transfer_seconds(one, other, tokens=50, settings=SETTINGS)
    assert seconds == pytest.approx(0.002 + 50 * 100 / speed)


def test_nothing_to_send_takes_the_latency_and_a_pod_needs_no_link_to_itself():
    one, other = pod("a"), pod("b")
    assert transfer_seconds(one, other, tokens=0, settings=SETTINGS) == 0.002
    assert transfer_seconds(one, one, tokens=1000, settings=SETTINGS) == 0.0
