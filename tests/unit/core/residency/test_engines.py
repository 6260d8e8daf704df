"""Each engine's caches, seen through beliefs."""

import pytest

from lorapick.core.residency.engines import CACHES
from lorapick.model import events
from lorapick.model.pods import Engine, LoadedAdapter
from lorapick.testing.playbook import Playbook, plain_pod


def pod_of(engine):
    """A pod with one slot and room for three in host memory, and four adapters."""
    from msgspec.structs import replace

    pod = replace(plain_pod("pod", max_loras=1, max_cpu_loras=3), engine=engine)
    return Playbook(pods=[pod], adapters=["a", "b", "c", "d"])


@pytest.mark.parametrize(
    ("engine", "evicted", "unloaded"),
    [
        (Engine.VLLM, "cpu", "gpu_idle"),
        (Engine.SGLANG, "cpu", "disk"),
        (Engine.TRTLLM, "cpu", "gpu_idle"),
        (Engine.TRITON, "cpu", "gpu_idle"),
        (Engine.LORAX, "disk", "disk"),
    ],
)
def test_what_leaves_the_gpu_and_what_is_unloaded(engine, evicted, unloaded):
    book = pod_of(engine)
    book.use("a", "pod")
    book.use("b", "pod")
    assert (book.tier("pod", "a"), book.tier("pod", "b")) == (evicted, "gpu_idle")
    book.apply(events.Unloaded, pod="pod", adapter="b")
    assert book.tier("pod", "b") == "unregistered"
    book.report("pod", registered=("a", "b"))
    assert book.tier("pod", "b") == unloaded


def test_every_engine_has_its_facts():
    assert [*CACHES] == [*Engine]


def test_a_list_without_levels_is_exact_for_host_memory_and_silent_about_the_gpu():
    book = pod_of(Engine.SGLANG)
    book.use("a", "pod")
    book.use("b", "pod")
    book.wait(1.0)
    book.report("pod", loaded=tuple(LoadedAdapter(name=name, on_gpu=None) for name in ("b", "c")))
    assert [book.tier("pod", name) for name in "abcd"] == ["disk", "gpu_idle", "cpu", "disk"]
    sources = {belief.adapter: belief.source.value for belief in book.fleet.state.residency.beliefs()}
    assert sources == {"a": "reported", "b": "inferred", "c": "reported"}


def test_what_the_engine_pins_is_never_its_victim():
    book = pod_of(Engine.SGLANG)
    book.use("a", "pod")
    book.wait(1.0)
    book.report("pod", loaded=(LoadedAdapter(name="a", on_gpu=None, pinned=True),))
    book.arrive("b", id="b")
    assert (book.tier("pod", "a"), book.tier("pod", "b")) == ("gpu_idle", "loading")
    book.wait(1.0)
    book.report("pod", loaded=(LoadedAdapter(name="a", on_gpu=None),), max_loras=2, max_cpu_loras=2)
    book.start("b")
    assert (book.tier("pod", "a"), book.tier("pod", "b")) == ("gpu_idle", "gpu_serving")
