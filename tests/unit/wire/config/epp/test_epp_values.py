"""What a file comes to is plain values."""

import msgspec
from epp_kit import file

from lorapick.wire.config.epp import Kind, Part


def test_parts_are_json():
    parts = file("flow").parts
    assert msgspec.json.decode(msgspec.json.encode(parts), type=tuple[Part, ...]) == parts


def test_kinds_read_as_words():
    assert all(kind.value == kind.value.lower() for kind in Kind)
