"""A request, prepared."""

import pytest

from lorapick.core.columns import REASONS
from lorapick.core.picking.query import host_of, prepare, wishes
from lorapick.core.placement import prompts
from lorapick.model.adapters import Adapter
from lorapick.model.reasons import Reason
from lorapick.model.requests import Request
from lorapick.testing.playbook import Playbook, plain_pod
from lorapick.wire.prefix import BLOCK_BYTES


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("10.0.0.1:8000", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("pod-3:80", "pod-3"),
        ("[fd00::1]:8000", "fd00::1"),
        ("[fd00::1]", "fd00::1"),
        ("[broken", "[broken"),
        ("", ""),
    ],
)
def test_host_of(address, host):
    assert host_of(address) == host


@pytest.mark.parametrize(
    ("fields", "hashed"),
    [
        ({"prompt_bytes": 28_384, "blocks": tuple(range(256))}, 16_384 / 28_384),
        ({"prompt_bytes": 28_384, "prompt_tokens": 5_000, "blocks": tuple(range(256))}, 16_384 / 28_384),
        ({"prompt_tokens": 3_000, "blocks": tuple(range(64))}, 1_024 / 3_000),
        ({"prompt_tokens": 100, "blocks": tuple(range(64))}, 1.0),
        ({"blocks": (1, 2)}, 1.0),
        ({"prompt_tokens": 0, "blocks": (1, 2)}, 1.0),
        ({"prompt_bytes": 28_384}, 1.0),
    ],
)
def test_a_share_of_the_blocks_is_none_of_the_prompt(fields, hashed):
    book = Playbook(pods=["a", "b"])
    query = prepare(Request(id="r", model="m", **fields), None, columns=book.fleet.state.columns, kv={0: 0.5})
    assert query.hashed == pytest.approx(hashed)
    assert query.uncached(0, 1000) == pytest.approx(1000 - 500 * hashed)
    assert query.uncached(1, 1000) == 1000


def test_blocks_are_as_long_as_where_they_are_hashed():
    assert BLOCK_BYTES == prompts.BLOCK_BYTES


def test_subsets_match_by_host_whatever_the_port():
    columns = Playbook(pods=[plain_pod("a", address="10.0.0.1:8000"), plain_pod("b", address="[fd00::1]:8000")])
    columns = columns.fleet.state.columns
    mask = wishes(Request(id="r", model="m", subset=("10.0.0.1:9",)), columns)
    assert [REASONS[code] for code in mask] == [None, Reason.NOT_IN_SUBSET]
    mask = wishes(Request(id="r", model="m", subset=("[fd00::1]",)), columns)
    assert [REASONS[code] for code in mask] == [Reason.NOT_IN_SUBSET, None]
    assert all(wishes(Request(id="r", model="m", subset=()), columns))


def test_a_selector_wants_every_label():
    columns = Playbook(
        pods=[plain_pod("a", labels={"zone": "west"}), plain_pod("b", labels={"zone": "west", "x": "1"})]
    )
    columns = columns.fleet.state.columns
    mask = wishes(Request(id="r", model="m", selector={"zone": "west", "x": "1"}), columns)
    assert [REASONS[code] for code in mask] == [Reason.LABEL_MISMATCH, None]


def test_prepare():
    columns = Playbook(pods=["a"]).fleet.state.columns
    base = prepare(Request(id="r", model="base"), None, columns=columns, kv={0: 0.5}, session_row=0)
    assert (base.adapter, base.codes, base.base, base.mask, base.kv, base.session_row) == (
        None,
        None,
        0,
        None,
        {0: 0.5},
        0,
    )
    other = prepare(Request(id="r", model="m"), Adapter(name="m", rank=16, base_model="gone"), columns=columns, kv={})
    assert (other.adapter, other.rank) == ("m", 16.0)
    assert other.base is not None and other.base not in columns.base, "no pod has that base model"
    assert other.codes is columns.adapters["m"]
    plain = prepare(Request(id="r", model="m"), Adapter(name="m"), columns=columns, kv={})
    assert (plain.base, plain.rank) == (None, 0.0)


def test_the_first_block_is_a_base_models_key():
    columns = Playbook(pods=["a"], adapters=["legal"]).fleet.state.columns

    def first(model, adapter, blocks):
        return prepare(Request(id="r", model=model, blocks=blocks), adapter, columns=columns, kv={}).first_block

    assert first("base", None, (7, 8)) == 7
    assert first("base", None, ()) is None
    assert first("legal", Adapter(name="legal"), (7, 8)) is None
