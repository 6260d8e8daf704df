"""What lists of models and settings add to a report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.model.pods import LoadedAdapter, PodReport
from lorapick.wire.engines.listing import EngineSettings, with_lists
from lorapick.wire.models_list import ModelsList


def models(*names: str) -> ModelsList:
    return ModelsList(base_models=("base",), registered=names)


def test_a_list_of_names_is_no_list_of_memory() -> None:
    report = with_lists(PodReport(waiting=1), models("a"), settings=None, in_memory=False, known=None)
    assert report == PodReport(waiting=1, registered=("a",), base_models=("base",))


def test_a_list_of_memory_tells_who_is_loaded_and_pinned() -> None:
    settings = EngineSettings(max_loras=7, max_cpu_loras=16, pinned=("b", "gone"))
    report = with_lists(PodReport(), models("a", "b"), settings=settings, in_memory=True, known=None)
    assert report.loaded == (
        LoadedAdapter(name="a", on_gpu=None),
        LoadedAdapter(name="b", on_gpu=None, pinned=True),
    )
    assert (report.max_loras, report.max_cpu_loras, report.registered) == (7, 16, ("a", "b"))
    assert with_lists(PodReport(max_loras=3), models(), settings=settings, in_memory=True, known=None).max_loras == 3


@pytest.mark.parametrize(
    ("most", "registered"),
    [(2, ("b", "c", "a")), (3, ("b", "c")), (None, ("b", "c"))],
    ids=["full: a was evicted", "room left: a was unloaded", "no limit known"],
)
def test_who_is_missing_from_a_full_list_is_served_all_the_same(most: int | None, registered: tuple[str, ...]) -> None:
    settings = EngineSettings(max_cpu_loras=most)
    report = with_lists(PodReport(), models("b", "c"), settings=settings, in_memory=True, known=models("a", "b"))
    assert report.registered == registered


@given(st.lists(st.text(max_size=4)), st.lists(st.text(max_size=4)), st.none() | st.integers(1, 5))
def test_what_is_listed_is_accepted(now: list[str], before: list[str], most: int | None) -> None:
    settings = EngineSettings(max_cpu_loras=most)
    report = with_lists(PodReport(), models(*now), settings=settings, in_memory=True, known=models(*before))
    assert report.registered is not None
    assert {*now} <= {*report.registered} <= {*now, *before}
