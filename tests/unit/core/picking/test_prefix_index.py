"""Which pods hold a prompt's prefix, against a model that keeps plain lists."""

from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.picking.prefix_index import PrefixIndex


def test_shares_are_of_leading_blocks_only():
    index = PrefixIndex(blocks_per_pod=10)
    index.record(0, (1, 2, 3, 4))
    index.record(1, (1, 2))
    index.record(2, (3, 4))
    assert index.match((1, 2, 3, 4)) == {0: 1.0, 1: 0.5}
    assert index.match((1, 9, 3, 4)) == {0: 0.25, 1: 0.25}
    assert index.match((9, 2)) == index.match(()) == {}


def test_a_prefix_loses_its_tail_before_its_head():
    index = PrefixIndex(blocks_per_pod=4)
    index.record(0, (1, 2, 3))
    index.record(0, (7, 8, 9))
    assert index.match((1, 2, 3)) == {0: 1 / 3}
    assert index.match((7, 8, 9)) == {0: 1.0}


def test_a_prompt_longer_than_the_cache_keeps_its_head():
    index = PrefixIndex(blocks_per_pod=2)
    index.record(0, (1, 2, 3, 4))
    assert index.match((1, 2, 3, 4)) == {0: 0.5}


def test_using_a_prefix_keeps_it():
    index = PrefixIndex(blocks_per_pod=3)
    index.record(0, (1, 2))
    index.record(0, (5,))
    index.record(0, (1, 2))
    index.record(0, (6,))
    assert index.match((1, 2)) == {0: 1.0}
    assert index.match((5,)) == {}


def test_a_pods_own_bound_takes_effect_at_once_and_lasts_over_a_restart():
    index = PrefixIndex(blocks_per_pod=10)
    index.record(0, (1, 2, 3))
    index.bound(0, 1)
    assert index.match((1, 2, 3)) == {0: 1 / 3}
    index.clear(0)
    index.record(0, (1, 2, 3))
    assert index.match((1, 2, 3)) == {0: 1 / 3}
    index.forget(0)
    index.record(0, (1, 2, 3))
    assert index.match((1, 2, 3)) == {0: 1.0}


class Plain:
    """One list of blocks per pod, newest last."""

    def __init__(self, default):
        self.default, self.bounds, self.blocks = default, {}, {}

    def trim(self, row):
        blocks, bound = self.blocks.get(row, []), self.bounds.get(row, self.default)
        self.blocks[row] = blocks[len(blocks) - bound :] if len(blocks) > bound else blocks

    def record(self, row, blocks):
        mine = self.blocks.setdefault(row, [])
        for block in reversed(blocks):
            if block in mine:
                mine.remove(block)
            mine.append(block)
        self.trim(row)

    def match(self, blocks):
        shares = {}
        for row, mine in self.blocks.items():
            lead = next((depth for depth, block in enumerate(blocks) if block not in mine), len(blocks))
            if lead:
                shares[row] = lead / len(blocks)
        return shares


rows = st.integers(0, 3)
blocks = st.lists(st.integers(0, 9), max_size=5).map(tuple)
steps = st.one_of(
    st.tuples(st.just("record"), rows, blocks),
    st.tuples(st.just("record"), rows, blocks),
    st.tuples(st.just("remove"), rows, blocks),
    st.tuples(st.just("bound"), rows, st.integers(0, 5)),
    st.tuples(st.sampled_from(["clear", "forget"]), rows, st.none()),
)


@given(st.lists(steps, max_size=40), blocks, st.integers(1, 6))
def test_against_plain_lists(steps, asked, default):
    index, plain = PrefixIndex(blocks_per_pod=default), Plain(default)
    for verb, row, what in steps:
        match verb:
            case "record":
                index.record(row, what)
                plain.record(row, what)
            case "remove":
                index.remove(row, what)
                plain.blocks[row] = [block for block in plain.blocks.get(row, []) if block not in what]
            case "bound":
                index.bound(row, what)
                plain.bounds[row] = what
                plain.trim(row)
            case "clear" | "forget":
                getattr(index, verb)(row)
                plain.blocks.pop(row, None)
                if verb == "forget":
                    plain.bounds.pop(row, None)
        index.check()
        assert index.match(asked) == plain.match(asked)
