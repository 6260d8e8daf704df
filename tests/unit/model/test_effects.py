"""Effects and the values inside them, as JSON."""

import msgspec

from lorapick.model.effects import AnyEffect
from lorapick.testing.playbook import Playbook


def test_effects_are_written_and_read_back():
    book = Playbook(pods=["a", "b"], adapters=["legal"])
    seen = []
    for told in (lambda: book.arrive("legal"), lambda: book.arrive("nobody"), lambda: book.start("r1")):
        told()
        seen += book.effects
    assert len({type(effect) for effect in seen}) == 3
    for effect in seen:
        assert msgspec.json.decode(msgspec.json.encode(effect), type=AnyEffect) == effect


def test_the_tag_is_the_name_of_the_effect():
    assert all(kind.__struct_config__.tag == kind.__name__ for kind in AnyEffect.__args__)
    assert all(kind.__struct_config__.frozen for kind in AnyEffect.__args__)
