"""Scorers of profiles, each alone with weight 1: llm-d's own tables and formulas."""

import pytest

from lorapick.core.picking.epp.labels import Span
from lorapick.core.picking.epp.scorers import fit
from lorapick.model.pods import GpuSource
from lorapick.model.profiles import PluginSpec
from lorapick.testing.playbook import plain_pod
from lorapick.testing.profiles import book_with, profile, scores, spec


def book(scorer, of="abc"):
    return book_with(profile(scorer), pods=of)


def test_queue_and_running_requests():
    for scorer, figure in (("queue-scorer", "waiting"), ("running-requests-size-scorer", "running")):
        fleet = book(scorer)
        assert scores(fleet) == {"a": 1.0, "b": 1.0, "c": 1.0}
        for pod, count in (("a", 3), ("b", 0), ("c", 10)):
            fleet.report(pod, **{figure: count})
        assert scores(fleet) == pytest.approx({"a": 0.7, "b": 1.0, "c": 0.0})


def test_kv_cache():
    fleet = book("kv-cache-utilization-scorer", of="ab")
    fleet.report("a", kv_usage=0.25)
    assert scores(fleet) == {"a": 0.75, "b": 1.0}


TARGET = "active-model-1"


@pytest.mark.parametrize(
    ("running", "waiting", "max_loras", "score"),
    [
        ([TARGET], [], 5, 1.0),
        (["m2"], [TARGET], 2, 0.6),
        (["m2"], ["m3"], 2, 0.0),
        ([], [], 0, 0.0),
        (["m2"], [TARGET], 5, 0.8),
        (["m2"], [], 2, 0.8),
        (["m3"], [TARGET], 2, 0.6),
        (["m4", "m5"], [], 2, 0.0),
    ],
)
def test_lora_affinity_is_the_published_table(running, waiting, max_loras, score):
    fleet = book_with(profile("lora-affinity-scorer"), pods="a", adapters=[TARGET, "m2", "m3", "m4", "m5"])
    fleet.report(
        "a",
        in_flight_adapters=(*running, *waiting),
        running_adapters=tuple(running),
        waiting_adapters=tuple(waiting),
        max_loras=max_loras,
    )
    assert scores(fleet, TARGET) == {"a": score}


@pytest.mark.parametrize(("waiting", "score"), [(0, 0.5), (2, 0.4), (10, 0.0), (99, 0.0)])
def test_load_aware(waiting, score):
    fleet = book(spec("load-aware-scorer", threshold=10), of="a")
    fleet.report("a", waiting=waiting)
    assert scores(fleet) == {"a": score}


def test_prefixes():
    fleet = book("prefix-cache-scorer", of="ab")
    fleet.arrive("legal", id="before", blocks=(1, 2, 3), subset=("a",))
    assert scores(fleet, blocks=(1, 2, 3, 4)) == {"a": 0.75, "b": 0.0}
    assert scores(fleet) == {"a": 0.0, "b": 0.0}
    assert scores(fleet, "foo", blocks=(7, 8, 9, 4)) == {"a": 0.0, "b": 0.0}


def test_prefixes_by_their_length():
    parameters = {"weight": 0.5, "scale_tokens": 96.0}
    fleet = book(PluginSpec(type="prefix-cache-scorer", name="p", parameters=parameters), of="ab")
    fleet.arrive("legal", id="before", blocks=(1, 2, 3), subset=("a",))
    # Three blocks are 48 tokens, half of the scale.
    assert scores(fleet, blocks=(1, 2, 3, 4)) == {"a": pytest.approx(0.5 * 0.25 + 0.5 * 0.75), "b": 0.0}


def test_active_requests():
    fleet = book(spec("active-request-scorer", idle=1, most=0.5))
    for pod, count in (("a", 1), ("b", 2), ("c", 4)):
        for number in range(count):
            fleet.arrive("legal", id=f"{pod}{number}", subset=(pod,))
    assert scores(fleet) == {"a": 1.0, "b": 0.25, "c": 0.0}


def test_tokens_in_flight():
    fleet = book(spec("token-load-scorer", threshold=1000.0), of="ab")
    fleet.arrive("legal", prompt_tokens=100, subset=("a",))
    fleet.arrive("legal", prompt_bytes=80, subset=("a",))
    assert scores(fleet) == {"a": pytest.approx(1.0 - 2.5 * 120 / 1000), "b": 1.0}
    fleet.arrive("legal", id="more", prompt_tokens=9000, subset=("b",))
    assert scores(fleet)["b"] == 0.0
    fleet.end("more")
    assert scores(fleet)["b"] == 1.0


def test_session():
    fleet = book("session-affinity-scorer", of="ab")
    fleet.arrive("legal", session="s", subset=("b",))
    assert scores(fleet, session="s") == {"a": 0.0, "b": 1.0}
    assert scores(fleet) == {"a": 0.0, "b": 0.0}


def test_no_hit_lru():
    fleet = book("no-hit-lru-scorer")
    assert fleet.arrive("legal", id="one") == ["one -> a (disk) else b, c"]
    assert [fleet.verdict("one", pod).score for pod in "abc"] == [1.0, 0.5, 0.0]
    fleet.arrive("legal", id="two")
    assert [fleet.verdict("two", pod).score for pod in "abc"] == [0.0, 1.0, 0.5]
    fleet.arrive("legal", id="three", blocks=(1, 2))
    assert [fleet.verdict("three", pod).score for pod in "abc"] == [0.5, 0.0, 1.0]
    fleet.arrive("legal", id="four")
    assert [fleet.verdict("four", pod).score for pod in "abc"] == [1.0, 0.5, 0.0]
    fleet.arrive("legal", id="warm", blocks=(1, 2))
    assert [fleet.verdict("warm", pod).score for pod in "abc"] == [0.5] * 3
    fleet.gone("b")
    assert fleet.arrive("legal", id="five")[0].startswith("five -> c")
    alone = book("no-hit-lru-scorer", of="a")
    assert scores(alone) == scores(alone) == {"a": 1.0}


def test_context_length():
    labels = {"a": "0-2048", "b": "2048-8192", "c": None, "d": "?"}
    fleet = book(
        spec("context-length-aware", label="k"),
        of=[plain_pod(name, max_queue=9, labels={"k": text} if text else {}) for name, text in labels.items()],
    )
    found = scores(fleet, prompt_tokens=1000)
    assert found["c"] == 0.5 and found["d"] == 0.0
    assert found["a"] == fit(1000, Span(0, 2048)) == 0.3 + 0.7 * (0.7 / 1.2048 + 0.3 * 1048 / 2048)
    assert found["b"] == fit(1000, Span(2048, 8192)) == 0.3 / 2.048


def test_fit():
    assert fit(7, Span(7, 7)) == 1.0
    assert fit(3048, Span(0, 2048)) == 0.15
    assert fit(8192, Span(0, 8192)) > 0.3 > fit(8193, Span(0, 8192))


def test_near_without_a_peer():
    assert scores(book(spec("topology-affinity-scorer", places={}), of="ab")) == {"a": 0.0, "b": 0.0}


def test_a_label_that_a_header_asks_for():
    pods = [
        plain_pod(name, max_queue=100, labels=labels)
        for name, labels in (("a", {"k": "x"}), ("b", {"k": "y"}), ("c", {}))
    ]
    fleet = book(spec("header-label-affinity-scorer", header="x-tenant", label="k"), of=pods)
    assert scores(fleet, headers={"x-tenant": "x"}) == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert scores(fleet, headers={"x-tenant": "z"}) == scores(fleet) == {"a": 0.0, "b": 0.0, "c": 0.0}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"lower": True, "least": 0.0, "most": 1.0}, {"a": 0.8, "b": 0.4, "c": 0.0}),
        ({"lower": False, "least": 0.0, "most": 0.5}, {"a": 0.4, "b": 1.0, "c": 0.0}),
        ({"lower": True, "least": None, "most": None}, {"a": 1.0, "b": 0.0, "c": 0.0}),
    ],
)
def test_gpu_utilization_between_bounds(arguments, found):
    """A pod without an exporter scores 0 whatever is better, as with llm-d."""
    fleet = book(spec("endpoint-attribute-scorer", **arguments))
    for pod, figure in (("a", 0.2), ("b", 0.6)):
        fleet.report(pod, gpu_utilization=figure, gpu_source=GpuSource.DCGM)
    assert scores(fleet) == pytest.approx(found)
    if arguments["least"] is None:
        fleet.report("b", gpu_utilization=0.2, gpu_source=GpuSource.DCGM)
        assert scores(fleet) == {"a": 1.0, "b": 1.0, "c": 0.0}


def test_an_attribute_between_the_candidates_own():
    fleet = book(spec("endpoint-attribute-scorer", lower=True, least=None, most=None, attribute="Swapped"))
    for pod, figure in (("a", 2.0), ("b", 6.0)):
        fleet.report(pod, attributes=(("Swapped", figure),), gpu_utilization=0.5, gpu_source=GpuSource.DCGM)
    assert scores(fleet) == {"a": 1.0, "b": 0.0, "c": 0.0}
