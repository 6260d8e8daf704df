from retention_kit import MINUTE, asked, batch, policy, steady


def test_the_oldest_leaves():
    lru = policy("lru")
    asked(lru, [(1.0, "a"), (2.0, "b"), (3.0, "c"), (4.0, "a")])
    assert lru.least(["a", "b", "c"], now=5.0) == "b"
    lru.touched("b", 5.0)
    assert lru.least(["a", "b", "c"], now=5.0) == "c"


def test_after_a_batch_for_a_rare_adapter_the_popular_one_leaves():
    lru = policy("lru")
    now = asked(lru, [*steady("popular", gap=12.0, until=10 * MINUTE), *batch("rare", at=10 * MINUTE)])
    assert lru.least(["popular", "rare"], now=now + 9.0) == "popular"


def test_whoever_was_removed_is_the_oldest_again():
    lru = policy("lru")
    asked(lru, [(1.0, "a"), (2.0, "b")])
    lru.removed("b", 3.0)
    assert lru.least(["a", "b"], now=4.0) == "b"
