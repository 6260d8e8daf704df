"""What a picker that only reads pages remembers of them."""

from lorapick.core.scraped import NEVER_SCRAPED
from lorapick.model.pods import PodReport


def after(*reports):
    pod = NEVER_SCRAPED
    for report in reports:
        pod = pod.after(PodReport(**report))
    return pod


def test_before_the_first_page_everything_is_nothing():
    assert after() == after({}) == (0.0, 0.0, frozenset(), frozenset(), 0, 0.0, {})


def test_both_labels_are_one_list_unless_the_page_tells_them_apart():
    page = {"in_flight_adapters": ("a", "b"), "max_loras": 4}
    assert after(page)[2:5] == ({"a", "b"}, {"a", "b"}, 4)
    apart = {**page, "running_adapters": ("a",), "waiting_adapters": ("b",)}
    assert after(page, apart)[2:5] == ({"a"}, {"b"}, 4)
    assert after(apart, {"in_flight_adapters": ()})[2:5] == (frozenset(), frozenset(), 4)


def test_what_a_page_lacks_keeps_its_last_value():
    first = {"waiting": 3, "kv_usage": 0.5, "in_flight_adapters": ("a",), "max_loras": 4}
    assert after(first, {}) == after(first)
    assert after(first, {"waiting": 1}) == after({**first, "waiting": 1})


def test_slots_count_only_with_the_series_that_names_adapters():
    assert after({"max_loras": 4}).max_loras == 0


def test_figures_that_cannot_be_true():
    assert after({"running": -2}).running == 0.0
    assert after({"running": 3}, {}).running == 3.0
    assert after({"waiting": -2, "kv_usage": 0.5}, {"kv_usage": 1.5}, {"kv_usage": float("nan")})[:2] == (0.0, 0.5)
