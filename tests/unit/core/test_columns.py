"""Rows, growth, views and copies."""

import numpy as np
import pytest

from lorapick.core.columns import CODE, CODES, EMPTY, PINNED, REASONS, SOURCE_SHIFT, SOURCES, TIER_BITS, PodColumns
from lorapick.core.frozen import FrozenView
from lorapick.core.scraped import NEVER_SCRAPED
from lorapick.model.reasons import Reason
from lorapick.model.tiers import Source, Tier
from lorapick.testing.playbook import plain_pod


def test_codes_have_room_for_tier_pin_and_source():
    assert max(Tier) <= TIER_BITS < PINNED < 1 << SOURCE_SHIFT
    assert {*SOURCES} == {*Source}
    assert SOURCES[0] is Source.INFERRED, "what nobody spoke of is inferred"
    assert max(Tier) | PINNED | (len(SOURCES) - 1) << SOURCE_SHIFT < CODES <= 256


def test_reasons_and_codes_are_each_others_inverse():
    assert REASONS[0] is None
    assert all(REASONS[CODE[reason]] is reason for reason in Reason)


def test_rows_are_reused_lowest_first():
    columns = PodColumns()
    assert [columns.add(plain_pod(name)) for name in "abcd"] == [0, 1, 2, 3]
    columns.remove("c")
    columns.remove("a")
    assert (columns.gate[0], columns.gate[2]) == (EMPTY, EMPTY)
    assert [columns.add(plain_pod(name)) for name in "xyz"] == [0, 2, 4]
    assert [pod.name for _, pod in columns.live()] == ["x", "b", "y", "d", "z"]
    assert [target.pod for target in columns.targets] == ["x", "b", "y", "d", "z"]


def test_growing_keeps_numbers_and_codes():
    columns = PodColumns()
    columns.add(plain_pod("p0"))
    columns.queue[0] = 3.0
    columns.adapter_row("legal")[0] = int(Tier.CPU)
    before = columns.vectors()
    for index in range(1, 40):
        columns.add(plain_pod(f"p{index}"))
    assert columns.rows == 40
    assert (columns.queue[0], columns.adapters["legal"][0]) == (3.0, Tier.CPU)
    assert len(columns.adapter_row("legal")) >= 40
    assert before.queue[0] == 3.0, "a view of before stays what it was"
    assert len(columns.vectors().queue) == 40


def test_views_are_of_the_same_memory():
    columns = PodColumns()
    columns.add(plain_pod("a"))
    views = columns.vectors()
    columns.gpu[0] = 0.25
    columns.gate[0] = 7
    assert (views.gpu[0], views.gate[0]) == (0.25, 7)
    assert columns.vectors() is views
    assert views.queue.dtype == np.float64 and views.gate.dtype == np.uint8


def test_a_copy_does_not_change():
    columns = PodColumns()
    columns.add(plain_pod("a"))
    codes = columns.adapter_row("legal")
    codes[0] = int(Tier.GPU_IDLE)
    copy = FrozenView(columns, "legal", reads=())
    codes[0] = int(Tier.DISK)
    columns.queue[0] = 5.0
    columns.remove("a")
    assert (copy.codes[0], copy.queue[0], copy.pods[0].name) == (Tier.GPU_IDLE, 0.0, "a")
    assert FrozenView(columns, None, reads=()).codes is None
    assert FrozenView(columns, "never-heard-of", reads=()).codes is None
    with pytest.raises(TypeError, match="row by row"):
        copy.vectors()


def test_memory_of_a_pod_is_stated():
    columns = PodColumns()
    assert columns.bytes_per_pod(adapters=200) - columns.bytes_per_pod(adapters=0) == 200
    assert columns.bytes_per_pod(adapters=0) < 100


def test_members_are_the_same_object_until_a_pod_comes_or_goes():
    columns = PodColumns()
    for name in "abc":
        columns.add(plain_pod(name))
    before = columns.members
    columns.load[0] = 3.0
    columns.describe(0, plain_pod("a", max_queue=2))
    assert columns.members is before == ("a", "b", "c")
    columns.remove("b")
    assert columns.members == ("a", None, "c")
    columns.add(plain_pod("d"))
    assert columns.members == ("a", "d", "c")
    assert before == ("a", "b", "c")


def test_a_row_that_is_used_again_knows_nothing_of_its_last_pod():
    columns = PodColumns()
    columns.add(plain_pod("a"))
    columns.load[0] = 3.0
    columns.scraped[0] = NEVER_SCRAPED._replace(max_loras=4)
    columns.remove("a")
    assert columns.add(plain_pod("b")) == 0
    assert (columns.load[0], columns.scraped) == (0.0, [NEVER_SCRAPED])


def test_a_copy_has_what_its_policy_reads_and_no_more():
    columns = PodColumns()
    columns.add(plain_pod("a"))
    columns.load[0] = 3.0
    copy = FrozenView(columns, None, reads=("load", "scraped", "members"))
    columns.load[0] = 4.0
    columns.remove("a")
    assert (copy.load.tolist(), copy.scraped, copy.members) == ([3.0], [NEVER_SCRAPED], ("a",))
    assert not hasattr(FrozenView(columns, None, reads=()), "load")
