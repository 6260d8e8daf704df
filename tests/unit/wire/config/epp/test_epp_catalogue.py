"""The table of types, and the page that shows it."""

import re
from pathlib import Path

from lorapick.wire.config.epp import TYPES, Kind, Support

PAGE = Path(__file__).parents[5] / "docs" / "endpoint-picker-config.md"
_ROW = re.compile(r"^\| `([a-z0-9-]+)`(?: \(old\))? \| ([a-z, ]+) \| (\w+) \| (.*) \|$", re.MULTILINE)


def test_the_page_has_every_type_and_says_what_the_code_says():
    rows = {name: (kinds, support, words) for name, kinds, support, words in _ROW.findall(PAGE.read_text())}
    told = {
        name: (
            ", ".join(each.kinds),
            each.support.value,
            each.does + (f". Use {each.instead}" if each.support is Support.REFUSED else ""),
        )
        for name, each in TYPES.items()
    }
    assert rows == told


def test_every_kind_and_support_occurs():
    assert {kind for each in TYPES.values() for kind in each.kinds} == set(Kind)
    assert {each.support for each in TYPES.values()} == set(Support)


def test_types_of_lorapick_are_told_by_their_name():
    assert all(name.startswith("lorapick-") is (each.support is Support.OWN) for name, each in TYPES.items())
