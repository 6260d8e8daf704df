"""llm-d's hermetic cases with pods and plugins, from the file to the decision: queue, KV cache, prefix, LoRA affinity.

Each pod is (waiting, KV use, adapters that run), `max_lora` 0, as in its integration tests; case numbers are its own.
"""

import pytest
from epp_kit import HEAD, file, parse

from lorapick.model.pods import Role
from lorapick.model.settings import Objective, Settings
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.wire.config.epp import with_endpoint_picker

TARGET = "sql-lora-1fdg2"
NAMES = (TARGET, "foo", "bar", "my-model-12345", "direct-model")


def pool(*pods, picker="lora", **fields):
    picker = file(picker) if isinstance(picker, str) else picker
    settings = with_endpoint_picker(Settings(**fields), picker)
    names = [f"192.168.1.{number}" for number in range(1, len(pods) + 1)]
    book = Playbook(pods=[plain_pod(name) for name in names], adapters=NAMES, settings=settings)
    for name, (waiting, usage, running) in zip(names, pods, strict=True):
        labels = {"in_flight_adapters": running, "running_adapters": running, "waiting_adapters": (), "max_loras": 0}
        book.report(name, waiting=waiting, kv_usage=usage, **labels)
    return book


def target(book, model=TARGET, **fields):
    book.arrive(model, id="test-request-id", **fields)
    return book.effects[0].target.address


def test_1_lower_queue_and_kv_cache():
    book = pool((3, 0.2, ()), (0, 0.1, ()), (10, 0.2, ()))
    assert target(book, "my-model-12345") == "192.168.1.2:8000"


def test_3_the_active_adapter_beats_kv_cache():
    book = pool((10, 0.2, ("foo", "bar")), (10, 0.4, ("foo", TARGET)), (10, 0.3, ("foo",)))
    assert target(book) == "192.168.1.2:8000"


def test_5_nobody_is_shed():
    book = pool((6, 0.2, ("foo", "bar", TARGET)), (0, 0.85, ("foo",)), (10, 0.9, ("foo",)))
    assert target(book) == "192.168.1.1:8000"


@pytest.mark.parametrize("priority", [2, 0, -1])
def test_7_sheddable_requests_too(priority):
    objectives = (Objective(name="sql-lora-sheddable", priority=priority),)
    book = pool((4, 0.2, ("foo", "bar", TARGET)), (4, 0.85, ("foo",)), (4, 0.85, ("foo", "bar")), objectives=objectives)
    assert target(book, priority=priority) == "192.168.1.1:8000"


def test_11_a_subset_in_spite_of_load():
    book = pool((0, 0.2, ("foo",)), (0, 0.1, (TARGET,)), (10, 0.2, ("foo",)))
    assert target(book, subset=("192.168.1.3",)) == "192.168.1.3:8000"
    book.arrive(TARGET, id="nobody", subset=())
    assert (book.effects[0].status, book.effects[0].reason) == (503, "no_pod")


def test_13_a_model_without_an_objective():
    assert target(pool((4, 0.2, ("foo", "bar", TARGET))), "direct-model") == "192.168.1.1:8000"


def test_all_pods_busy_beyond_any_bound():
    """llm-d sends on whatever waits there; so does this, without the gate `flowControl`."""
    book = pool((1000, 1.0, ()), (900, 1.0, ()))
    assert target(book) == "192.168.1.2:8000"
    waiting = pool((9, 0.5, ()), (9, 0.5, ()), picker="flow")
    assert waiting.arrive(TARGET) == ["r1 waits for a place until 90"]
    assert waiting.arrive(TARGET, priority=-1) == ["r2 refused: 429 shed"]
    assert waiting.report("192.168.1.2", waiting=0)[0].startswith("r1 -> 192.168.1.2")


def test_the_second_request_is_held_until_the_first_has_ended():
    """`maxConcurrency` 1: without flow control there is nowhere to wait, so the filter's answer is final."""
    text = HEAD + (
        "plugins:\n- {type: concurrency-detector, parameters: {maxConcurrency: 1}}\n- {type: queue-scorer}\n"
        "schedulingProfiles: [{name: d, plugins: [{pluginRef: concurrency-detector}, {pluginRef: queue-scorer}]}]"
    )
    book = pool((0, 0.0, ()), picker=parse(text))
    assert book.arrive(TARGET) == ["r1 -> 192.168.1.1 (disk)"]
    assert book.arrive(TARGET) == ["r2 refused: 503 no_pod"]
    book.end("r1")
    assert book.arrive(TARGET) == ["r3 -> 192.168.1.1 (disk)"]


def test_fallbacks_are_as_many_as_the_picker_says():
    text = HEAD + "plugins: [{type: queue-scorer}, {type: max-score-picker, parameters: {maxNumOfEndpoints: %d}}]"
    for endpoints, fallbacks in ((1, 0), (2, 1), (3, 2)):
        book = pool((0, 0.0, ()), (1, 0.0, ()), (2, 0.0, ()), picker=parse(text % endpoints))
        book.arrive(TARGET)
        assert [each.pod[-1] for each in book.effects[0].fallbacks] == ["2", "3"][:fallbacks]


def test_prefill_by_the_file():
    settings = with_endpoint_picker(Settings(), file("disaggregated"))
    pods = [
        plain_pod(f"{role}-{node}", labels={"llm-d.ai/role": role, "example.com/node": node}, role=Role(role))
        for role in ("prefill", "decode")
        for node in ("n1", "n2")
    ]
    book = Playbook(pods=pods, adapters=NAMES, settings=settings)
    book.report("decode-n1", waiting=3)
    went = book.arrive(TARGET, prompt_tokens=16)
    assert went == ["r1 -> decode-n2 (disk) after prefill-n2 else prefill-n2, decode-n1"]
    assert book.arrive(TARGET, prompt_tokens=15) == ["r2 -> decode-n2 (disk) else decode-n1"]
