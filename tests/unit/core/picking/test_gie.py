"""llm-d's endpoint picker: its own unit and integration cases, and what it cannot see."""

import pytest

from lorapick.model.settings import PickingSettings, PressureSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

TARGET = "active-model-1"
NAMES = [TARGET, *(f"m{number}" for number in range(2, 6)), "foo", "bar"]


NO_PRESSURE = PressureSettings(soft=1.1, hard=1.1, critical=1.1)
"""Our filters hold for every policy; these cases have pods that they would take out."""


def book_of(pods, policy="gie-lora", seed=0):
    settings = Settings(picking=PickingSettings(policy=policy), pressure=NO_PRESSURE)
    return Playbook(pods=[plain_pod(pod, max_queue=100) for pod in pods], adapters=NAMES, settings=settings, seed=seed)


def labels(running, waiting, max_loras):
    """A page whose two labels name these adapters."""
    running, waiting = tuple(running), tuple(waiting)
    return {
        "in_flight_adapters": tuple(dict.fromkeys([*running, *waiting])),
        "running_adapters": running,
        "waiting_adapters": waiting,
        "max_loras": max_loras,
    }


def scores(book, pods, model=TARGET, **fields):
    """Score of each pod for one more request, which ends at once."""
    book.arrive(model, id="asked", **fields)
    told = [book.verdict("asked", pod).score for pod in pods]
    book.end("asked")
    return told


# -- its unit tests: one pod's LoRA score; queue and KV cache are empty everywhere and bring 1 each


@pytest.mark.parametrize(
    ("running", "waiting", "max_loras", "lora"),
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
def test_its_unit_table(running, waiting, max_loras, lora):
    book = book_of("a")
    book.report("a", **labels(running, waiting, max_loras))
    assert scores(book, "a") == [2.0 + lora]


def test_its_unit_table_side_by_side():
    book = book_of("abcde")
    pages = [([TARGET], [], 5), (["m2"], [TARGET], 5), (["m2"], [], 2), (["m3"], [TARGET], 2), (["m4", "m5"], [], 2)]
    for pod, page in zip("abcde", pages, strict=True):
        book.report(pod, **labels(*page))
    assert scores(book, "abcde") == [3.0, 2.8, 2.8, 2.6, 2.0]


# -- its integration tests: (waiting, KV use, adapters that run) of each pod, `max_lora` 0


def pool(*pods, policy="gie-lora"):
    names = "abc"[: len(pods)]
    book = book_of(names, policy)
    for name, (waiting, usage, running) in zip(names, pods, strict=True):
        book.report(name, waiting=waiting, kv_usage=usage, **labels(running, [], 0))
    return book


def test_lower_queue_and_kv_use_win():
    book = pool((3, 0.2, []), (0, 0.1, []), (10, 0.2, []))
    assert scores(book, "abc") == pytest.approx([0.7 + 0.8, 1.0 + 0.9, 0.0 + 0.8])


def test_the_adapter_beats_kv_use():
    book = pool((10, 0.2, ["foo", "bar"]), (10, 0.4, ["foo", TARGET]), (10, 0.3, ["foo"]))
    assert scores(book, "abc") == pytest.approx([1.0 + 0.8, 1.0 + 0.6 + 1.0, 1.0 + 0.7])


def test_a_busy_holder_beats_an_idle_pod_with_a_full_cache():
    book = pool((6, 0.2, ["foo", "bar", TARGET]), (0, 0.85, ["foo"]), (10, 0.9, ["foo"]))
    assert scores(book, "abc") == pytest.approx([0.4 + 0.8 + 1.0, 1.0 + 0.15, 0.0 + 0.1])


def test_its_built_in_default_weighs_prefixes_and_no_adapters():
    book = pool((6, 0.2, ["foo", "bar", TARGET]), (0, 0.85, ["foo"]), (10, 0.9, ["foo"]), policy="gie-default")
    assert scores(book, "abc") == pytest.approx([2 * (0.4 + 0.8), 2 * (1.0 + 0.15), 2 * 0.1])
    book.arrive(TARGET, id="before", blocks=(1, 2, 3), subset=("c",))
    assert scores(book, "abc", blocks=(1, 2, 3, 4)) == pytest.approx([2.4, 2.3, 0.2 + 3 * 0.75])


def test_prefixes_are_its_own_record():
    book = book_of("ab")
    book.arrive(TARGET, id="before", blocks=(1, 2), subset=("b",))
    assert scores(book, "ab", blocks=(1, 2, 3, 4)) == [2.0, 2.5]


def test_queues_are_compared_among_candidates_only():
    book = pool((2, 0.0, []), (4, 0.0, []), (90, 0.0, []))
    book.drain("c")
    assert scores(book, "ab") == [2.0, 1.0]


# -- what it cannot see


def test_its_own_dispatches_between_two_pages():
    book = book_of("abc")
    book.report("a", waiting=1)
    book.report("b", waiting=2)
    book.report("c", waiting=3)
    assert {book.arrive(TARGET)[0].split(" (")[0].split()[-1] for _ in range(5)} == {"a"}
    book.report("a", waiting=4)
    assert book.arrive(TARGET) == ["r6 -> b (disk) else c, a"]


def test_a_resident_idle_adapter():
    """All three tie although one pod has the adapter in a slot: the draw decides, and the load is in vain."""
    went = set()
    for seed in range(20):
        book = book_of("abc", seed=seed)
        for pod in "abc":
            book.use("foo", pod)
        book.use(TARGET, "a")
        for pod in "abc":
            book.report(pod, in_flight_adapters=(), max_loras=4)
        assert (book.tier("a", TARGET), book.tier("b", TARGET)) == ("gpu_idle", "disk")
        book.arrive(TARGET)
        went.add(book.effects[0].target.pod)
    assert went == {"a", "b", "c"}


def test_that_a_fresh_pod_is_empty():
    """Before its first adapter a page has no series, so no `max_lora`: the same score as a full pod."""
    book = book_of("ab")
    book.report("a", **labels(["m2", "m3"], [], 4))
    book.report("b", waiting=0, running=0)
    assert scores(book, "ab") == [2.8, 2.0]
    assert book.free("b") == 4


def test_slots_that_only_residency_metrics_name():
    book = book_of("a")
    book.report("a", loaded=(), max_loras=4)
    assert scores(book, "a") == [2.0]


def test_that_vllm_puts_each_name_under_both_labels():
    """Two adapters in four slots count as four."""
    book = book_of("a")
    book.report("a", in_flight_adapters=("m2", "m3"), max_loras=4)
    assert scores(book, "a") == [2.0]
    book.report("a", in_flight_adapters=("m2",), max_loras=4)
    assert scores(book, "a") == [2.8]


def test_that_the_page_it_remembers_is_of_a_process_that_is_gone():
    book = book_of("a")
    book.report("a", kv_usage=0.5, process_start=100.0, **labels([TARGET], [], 4))
    assert scores(book, "a") == [2.5]
    book.report("a", process_start=200.0)
    assert scores(book, "a") == [2.5]
    book.gone("a")
    book.appear("a")
    assert scores(book, "a") == [2.0]


def test_that_the_base_model_is_no_adapter():
    book = book_of("ab")
    book.report("a", **labels(["m2"], [], 4))
    book.report("b", **labels(["m2", "m3", "m4", "m5"], [], 4))
    assert scores(book, "ab", model="base") == [2.8, 2.0]


def test_figures_that_cannot_be_true_are_not_taken():
    book = book_of("ab")
    book.report("a", waiting=-3, kv_usage=7.0)
    book.report("b", waiting=2, kv_usage=0.5)
    assert scores(book, "ab") == [2.0, 0.5]
