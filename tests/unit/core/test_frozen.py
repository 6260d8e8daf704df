"""What one decision read, kept."""

import pytest

from lorapick.core.frozen import FrozenView
from lorapick.model.pods import Role
from lorapick.testing.playbook import Playbook, plain_pod


def test_a_copy_does_not_follow():
    book = Playbook(pods=[plain_pod("a", role=Role.DECODE), plain_pod("b")], adapters=["legal"])
    columns = book.fleet.state.columns
    view = FrozenView(columns, "legal", reads=("load",))
    book.arrive("legal")
    assert [*view.load] == [0.0, 0.0] != [*columns.load[:2]]
    assert [*view.decode_only] == [1, 0]
    assert view.room == [1.0, 1.0]
    assert view.idle == [1.0, 1.0]


def test_it_is_read_row_by_row():
    columns = Playbook(pods=["a"]).fleet.state.columns
    with pytest.raises(TypeError, match="row by row"):
        FrozenView(columns, None, reads=()).vectors()
