"""Filters of profiles: who remains a candidate."""

import pytest

from lorapick.model.pods import GpuSource, Role
from lorapick.testing.playbook import plain_pod
from lorapick.testing.profiles import book_with, profile, scores, spec


def kept(book, model="legal", **fields):
    return "".join(pod for pod, score in scores(book, model, **fields).items() if score is not None)


def pods(**labels):
    """Pods by name, each with one label `k`."""
    return [
        plain_pod(name, max_queue=100, labels={} if value is None else {"k": value}) for name, value in labels.items()
    ]


def book(*filters, of="abc"):
    return book_with(profile("queue-scorer", filters=filters), pods=of)


def test_labels():
    matches = spec("label-selector-filter", requirements=[["k", "In", ["x"]], ["k", "Exists", []]])
    assert kept(book(matches, of=pods(a="x", b="y", c=None))) == "a"
    assert kept(book(spec("label-selector-filter", requirements=()), of=pods(a="x", b=None))) == "ab"
    assert (
        kept(book(spec("by-label", label="k", values=("x", "y"), without=False), of=pods(a="x", b="z", c=None))) == "a"
    )
    assert kept(book(spec("by-label", label="k", values=("x",), without=True), of=pods(a="x", b="z", c=None))) == "ac"


def test_roles():
    fleet = [
        plain_pod("a", max_queue=100),
        plain_pod("b", labels={"llm-d.ai/role": "decode"}, role=Role.DECODE, max_queue=100),
        plain_pod("c", labels={"llm-d.ai/role": "prefill-decode"}, max_queue=100),
        plain_pod("d", labels={"llm-d.ai/role": "encode-prefill"}, max_queue=100),
        plain_pod("e", role=Role.DECODE, max_queue=100),
    ]
    assert kept(book("decode-filter", of=fleet)) == "abce"
    assert kept(book("prefill-filter", of=fleet)) == "cd"
    assert kept(book("encode-filter", of=fleet)) == "d"


def test_the_filters_after_one_that_leaves_nobody_are_not_asked():
    nobody = spec("by-label", label="k", values=(), without=False)
    fleet = book(nobody, spec("utilization-detector", queue=5, kv=0.8, headroom=0.0))
    assert fleet.arrive("legal", id="asked") == ["asked refused: 503 no_pod"]
    assert {verdict.reason for verdict in fleet.explain("asked").verdicts} == {"filtered"}


def test_prefix_affinity():
    sticky = spec(
        "prefix-cache-affinity-filter", threshold=0.8, explore=0.0, most_penalty_ms=1000.0, tokens_per_second=1000.0
    )
    fleet = book(sticky)
    assert kept(fleet, blocks=(9, 8, 7)) == "abc"
    for pod in "ab":
        fleet.arrive("legal", id="before", blocks=(1, 2, 3, 4), subset=(pod,))
        fleet.end("before")
    assert kept(fleet, blocks=(1, 2, 3, 4)) == "ab"
    assert kept(fleet, blocks=(1, 2, 3, 9)) == "abc", "three quarters are less than 0.8"
    # 400 tokens more there than elsewhere take 400 · 2.5 / 1000 s: as long as may be; 404 take longer.
    fleet.arrive("legal", id="x", prompt_tokens=400, subset=("a",))
    fleet.arrive("legal", id="y", prompt_tokens=400, subset=("b",))
    assert kept(fleet, blocks=(1, 2, 3, 4)) == "ab"
    fleet.arrive("legal", id="z", prompt_tokens=4, subset=("a",))
    assert kept(fleet, blocks=(1, 2, 3, 4)) == "ab", "the least busy of those counts"
    fleet.arrive("legal", id="w", prompt_tokens=4, subset=("b",))
    assert kept(fleet, blocks=(1, 2, 3, 4)) == "abc"


def test_prefix_affinity_explores_by_chance():
    fleet = book(
        spec("prefix-cache-affinity-filter", threshold=0.8, explore=0.5, most_penalty_ms=0.0, tokens_per_second=1.0)
    )
    fleet.arrive("legal", id="before", blocks=(1, 2), subset=("a",))
    found = set()
    for number in range(20):
        fleet.arrive("legal", id=f"asked{number}", blocks=(1, 2))
        found.add(sum(verdict.score is not None for verdict in fleet.explain(f"asked{number}").verdicts))
        fleet.end(f"asked{number}")
    assert found == {1, 3}


def test_context_length():
    fleet = book(spec("context-length-aware", label="k"), of=pods(a="0-100", b="100-200", c=None, d="?"))
    assert kept(fleet, prompt_tokens=100) == "abc"
    assert kept(fleet, prompt_tokens=150) == "bc"
    assert kept(fleet, prompt_bytes=804) == "c"
    assert kept(fleet) == "ac", "nobody knows how long it is"


def test_utilization_detector():
    fleet = book(spec("utilization-detector", queue=5, kv=0.8, headroom=0.2))
    fleet.report("a", waiting=5, kv_usage=0.5)
    fleet.report("b", waiting=6, kv_usage=0.5)
    fleet.report("c", waiting=0, kv_usage=0.96)
    assert kept(fleet) == "a"
    fleet.report("a", waiting=6)
    assert kept(fleet) == "abc"


@pytest.mark.parametrize(("mode", "left"), [("requests", "bc"), ("tokens", "ac"), ("hybrid", "c")])
def test_concurrency_detector(mode, left):
    fleet = book(spec("concurrency-detector", mode=mode, requests=2, tokens=1000, headroom=0.0))
    for pod, tokens, count in (("a", 1, 2), ("b", 400, 1)):
        for number in range(count):
            fleet.arrive("legal", id=f"{pod}{number}", prompt_tokens=tokens, subset=(pod,))
    assert kept(fleet) == left


def test_no_pod_is_left_by_the_concurrency_detector():
    fleet = book(spec("concurrency-detector", mode="requests", requests=1, tokens=1, headroom=0.5), of="a")
    fleet.arrive("legal")
    assert fleet.arrive("legal") == ["r2 refused: 503 no_pod"]


def test_utilization_filter():
    conditions = [
        ["active-requests", 0],
        ["running-requests", 2],
        ["waiting-queue", 1.5],
        ["kv-cache-utilization", 0.5],
    ]
    fleet = book(spec("utilization-filter", conditions=conditions, fall_back=False), of="abcdef")
    fleet.report("b", running=3)
    fleet.report("c", waiting=2)
    fleet.report("d", kv_usage=0.51)
    fleet.arrive("legal", id="there", subset=("e",))
    fleet.report("f", running=2, waiting=1, kv_usage=0.5)
    assert kept(fleet) == "af"
    strict = [["kv-cache-utilization", 0.0]]
    for fall_back, answer in ((True, ["asked -> a (disk)"]), (False, ["asked refused: 503 no_pod"])):
        alone = book(spec("utilization-filter", conditions=strict, fall_back=fall_back), of="a")
        alone.report("a", kv_usage=0.1)
        assert alone.arrive("legal", id="asked") == answer


def test_session():
    fleet = book("session-affinity-filter")
    fleet.arrive("legal", id="first", session="s", subset=("b",))
    assert kept(fleet, session="s") == "b"
    assert kept(fleet, session="t") == "abc"
    fleet.drain("b")
    assert kept(fleet, session="s") == "ac"


def test_near_without_a_peer_keeps_all():
    assert kept(book(spec("topology-affinity-filter", least="host", places={}))) == "abc"


def test_addresses_of_conformance_tests():
    fleet = book("header-based-testing-filter")
    assert kept(fleet) == ""
    addresses = {pod.name: pod.address for pod in fleet.fleet.state.columns.pods}
    only_ip = addresses["a"].rpartition(":")[0]
    assert kept(fleet, headers={"test-epp-endpoint-selection": f"{only_ip}, {addresses['c']}"}) == "ac"
    assert kept(fleet, headers={"test-epp-endpoint-selection": "256.256.256.256"}) == ""


def test_the_pod_that_a_token_names_counts_before_the_one_remembered():
    fleet = book("session-affinity-filter")
    fleet.arrive("legal", id="first", session="s")
    fleet.end("first")
    remembered = kept(fleet, session="s")
    assert len(remembered) == 1
    other = "a" if remembered != "a" else "b"
    assert kept(fleet, session="s", session_pod=other) == other
    assert kept(fleet, session="s", session_pod="gone") == other, "which served it meanwhile"
    assert kept(fleet, session_pod="gone") == "abc"


@pytest.mark.parametrize(
    ("compare", "value", "passes", "kept_pods"),
    [("LessThanOrEqual", 0.6, True, "abc"), ("LessThan", 0.6, False, "a"), ("GreaterThan", 0.2, False, "b")],
)
def test_gpu_utilization(compare, value, passes, kept_pods):
    threshold = {"compare": compare, "value": value, "passes": passes, "fall_back": False}
    fleet = book(spec("endpoint-attribute-filter", **threshold))
    for pod, figure in (("a", 0.2), ("b", 0.6)):
        fleet.report(pod, gpu_utilization=figure, gpu_source=GpuSource.DCGM)
    assert kept(fleet) == kept_pods


def test_gpu_utilization_that_nobody_has():
    nobody = {"compare": "LessThan", "value": 0.0, "passes": False}
    assert kept(book(spec("endpoint-attribute-filter", fall_back=False, **nobody))) == ""
    assert kept(book(spec("endpoint-attribute-filter", fall_back=True, **nobody))) == "abc"


def test_an_attribute_is_a_metric_that_a_page_had_and_keeps_its_last_value():
    threshold = {"compare": "LessThan", "value": 5.0, "passes": False, "fall_back": False, "attribute": "Swapped"}
    fleet = book(spec("endpoint-attribute-filter", **threshold))
    fleet.report("a", attributes=(("Swapped", 4.0), ("Other", 9.0)))
    fleet.report("b", attributes=(("Swapped", 6.0),))
    fleet.report("c", attributes=(("Other", 1.0),))
    assert kept(fleet) == "a"
    fleet.report("a", attributes=(("Other", 2.0),))
    fleet.report("b", attributes=(("Swapped", 0.0),))
    assert kept(fleet) == "ab"
    with_missing = book(spec("endpoint-attribute-filter", **{**threshold, "passes": True}))
    assert kept(with_missing) == "abc"
