"""Careful looks into objects that may be anything."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from objects_kit import JSON

from lorapick.wire.kubernetes.objects import (
    ObjectError,
    age_order,
    annotations_of,
    expect,
    labels_of,
    look,
    moment,
    name_of,
    rfc3339,
)


@settings(max_examples=30)
@given(JSON, st.lists(st.text(max_size=4), max_size=4))
def test_a_look_finds_something_or_nothing(value, path):
    look(value, *path)


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(["metadata", "spec"]), JSON))
def test_metadata_of_anything(item):
    assert all(isinstance(text, str) for text in [*labels_of(item).values(), *annotations_of(item)])
    age_order(item)
    with contextlib.suppress(ObjectError):
        assert name_of(item)


def test_errors_say_where_and_what():
    with pytest.raises(ObjectError, match=r"spec\.priority: must be a whole number \(found True\)"):
        expect(True, int, field="spec.priority", what="a whole number")
    long = ObjectError("f", "m", found="x" * 200)
    assert len(str(long)) < 100


@settings(max_examples=30)
@given(st.floats(min_value=0, max_value=4e9))
def test_times_are_written_and_read(unix):
    assert moment(rfc3339(unix)) == pytest.approx(unix, abs=1)
    assert moment(rfc3339(unix, micro=True)) == pytest.approx(unix, abs=1e-5)
    assert rfc3339(unix, micro=True)[-8] == "." or rfc3339(unix, micro=True).endswith("000000Z")


@pytest.mark.parametrize("text", ["", "yesterday", None, 7, "2026-13-01T00:00:00Z"])
def test_what_is_no_time(text):
    assert moment(text) is None


def test_the_oldest_comes_first():
    def item(name, created):
        return {"metadata": {"name": name, "creationTimestamp": created}}

    items = [item("a", "2026-01-02T00:00:00Z"), item("b", "2026-01-01T00:00:00Z"), item("c", "2026-01-01T00:00:00Z")]
    assert [each["metadata"]["name"] for each in sorted(items, key=age_order)] == ["b", "c", "a"]
