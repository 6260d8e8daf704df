from retention_kit import MINUTE, asked, batch, policy, steady


def test_a_ghost_with_50_000_counts_outlives_who_is_asked_for_today():
    lfu = policy("lfu")
    for request in range(50_000):
        lfu.used("ghost", request * 0.1)
    day = 86_400.0
    asked(lfu, steady("today", gap=12.0, begin=day, until=2 * day))
    assert lfu.worth("today", now=2 * day) == 7200
    assert lfu.least(["ghost", "today"], now=2 * day) == "today"


def test_a_new_adapter_has_no_counts_and_goes_first():
    lfu = policy("lfu")
    asked(lfu, steady("old", gap=60.0, until=10 * MINUTE))
    lfu.loaded("new", 10 * MINUTE)
    assert lfu.worth("new", now=10 * MINUTE) == 0
    assert lfu.least(["old", "new"], now=10 * MINUTE) == "new"


def test_each_load_begins_at_zero_so_it_goes_again_and_again():
    lfu = policy("lfu")
    asked(lfu, steady("old", gap=60.0, until=10 * MINUTE))
    for _ in range(3):
        lfu.loaded("new", 10 * MINUTE)
        lfu.used("new", 10 * MINUTE)
        assert lfu.least(["old", "new"], now=10 * MINUTE) == "new"
        lfu.removed("new", 10 * MINUTE)
    assert lfu.worth("new", now=10 * MINUTE) == 0


def test_a_batch_of_200_outweighs_ten_minutes_of_a_popular_adapter():
    lfu = policy("lfu")
    now = asked(lfu, [*steady("popular", gap=12.0, until=10 * MINUTE), *batch("rare", at=10 * MINUTE)])
    assert lfu.least(["popular", "rare"], now=now) == "popular"
