"""Bodies of changes: JSON in, values or words out (over HTTP and with anything in them: test_admin_changes)."""

import inspect

import msgspec
import pytest

from lorapick.model.adapters import Adapter, PinSpec
from lorapick.wire import admin_bodies as bodies
from lorapick.wire.config import ConfigError


def problems(content, reader, **more):
    with pytest.raises(ConfigError) as error:
        bodies.read_body(content, reader, **more)
    return [(each.field, each.message) for each in error.value.problems]


def test_values():
    assert bodies.read_body(b"", bodies.load) == bodies.LoadBody()
    assert bodies.read_body(b'{"for": "9h30m", "replicas": 2}', bodies.preload).lasts == 34_200.0
    assert bodies.read_body(b'{"from": "a", "to": "b"}', bodies.move) == bodies.MoveBody(source="a", target="b")
    assert bodies.read_body(b'{"pods": ["a"], "reserve": true}', bodies.pin) == PinSpec(pods=("a",), reserve=True)
    found = bodies.read_body(b'{"name": "e", "attributes": {"tenant": "x y", "page": 7}}', bodies.event)
    assert found.attributes == {"tenant": "x y", "page": "7"}


def test_the_path_names_what_the_body_is_of():
    assert bodies.read_body(b'{"rank": 8}', bodies.adapter, name="a@1") == Adapter(name="a@1", rank=8, declared=True)
    assert problems(b'{"name": "b"}', bodies.adapter, name="a") == [("name", "must be the path's, 'a'")]
    assert problems(b"{}", bodies.adapter, name="a b") == [("name", "must not contain blanks")]


def test_words_beyond_ascii_and_yamls_own_stay_words():
    for word in ("ü\u4e2d\U0001f600", "no", "~", "1:30", "<<", "=", "2026-01-01", "*a", "&a", "!!int 3", "# x", "%"):
        content = msgspec.json.encode({"name": "e", "attributes": {"k": word}})
        assert bodies.read_body(content, bodies.event).attributes == {"k": word}


def test_too_many_attributes():
    content = msgspec.json.encode({"name": "e", "attributes": {str(number): "x" for number in range(65)}})
    assert problems(content, bodies.event) == [("attributes", "has 65 attributes; at most 64 are taken")]


@pytest.mark.parametrize(
    ("kind", "reader", "keys"),
    [
        (bodies.LoadBody, bodies.load, {}),
        (bodies.PreloadText, bodies.preload, {"for"}),
        (bodies.UnloadBody, bodies.unload, {}),
        (bodies.MoveBody, bodies.move, {"from", "to"}),
        (bodies.NoBody, bodies.nothing, {}),
        (bodies.EventBody, bodies.event, {"name"}),
        (bodies.PlanBody, bodies.plan, {}),
        (bodies.AdapterBody, bodies.adapter, {}),
        (bodies.AliasBody, bodies.alias, {"to"}),
        (PinSpec, bodies.pin, {}),
    ],
)
def test_what_describes_a_body_has_the_keys_that_are_read(kind, reader, keys):
    known = inspect.getclosurevars(reader).nonlocals["readers"]
    assert set(kind.__struct_encode_fields__) == set(known)
    assert {each.encode_name for each in msgspec.structs.fields(kind) if each.required} == set(keys)
