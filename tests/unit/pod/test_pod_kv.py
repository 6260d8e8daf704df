"""KV memory: usage in closed form, prefix hits, eviction order."""

import pytest

from lorapick.pod.kv import KvPool


def test_usage_after_any_number_of_steps_is_the_sum_over_requests():
    pool = KvPool(100, 4)
    for tokens in (1, 4, 5, 11):
        pool.join([], tokens, 0)
    for steps in range(40):
        used = sum(-(-(tokens + steps) // 4) for tokens in (1, 4, 5, 11))
        assert pool.used(steps) == used
        assert used <= pool.at_most(steps) <= used + 4
    pool.leave([], 5)
    assert pool.used(3) == 1 + 2 + 4


@pytest.mark.parametrize("most", [1, 5, 12, 13, 14, 50])
def test_memory_lasts_until_the_step_that_needs_one_block_too_many(most):
    pool = KvPool(8, 4)
    for start in (4, 4):  # 1 block each; 4 blocks each up to 16 tokens, so 13 steps
        pool.join([], start, 0)
    assert pool.lasts(0, most) == min(most, 13)


def test_shared_blocks_count_once_and_stay_until_the_last_has_left():
    pool = KvPool(10, 4)
    assert pool.join([1, 2], 9, 0) == 0
    assert pool.find([1, 2, 3], 0) == (2, 2)
    assert pool.join([1, 2, 3], 12, 0) == 2
    assert pool.used(0) == 3 + 1
    pool.leave([1, 2], 9)
    assert (pool.used(0), list(pool.idle)) == (3, [])
    pool.leave([1, 2, 3], 12)
    assert (pool.used(0), list(pool.idle)) == (0, [3, 2, 1])
    assert pool.find([1, 2, 9], 0) == (0, 2)


def test_the_end_of_the_least_recently_freed_prompt_is_evicted_first():
    pool = KvPool(6, 4)
    for keys in ([1, 2], [8, 9]):
        pool.join(keys, 8, 0)
    pool.leave([1, 2], 8)
    pool.leave([8, 9], 8)
    pool.join([], 16, 0)  # takes the two free blocks and two cached ones
    pool.trim(0)
    assert list(pool.idle) == [9, 8]
    pool.trim(1)
    assert list(pool.idle) == [8]


def test_a_request_joins_only_if_its_own_blocks_are_free():
    pool = KvPool(4, 4)
    pool.join([1, 2], 8, 0)
    assert pool.lack([], 8, 0) == 0
    assert pool.join([], 9, 0) == -1
    assert pool.used(0) == 2
    assert pool.join([1, 2, 3, 4], 16, 0) == 2
    assert pool.used(0) == 4


def test_ids_that_are_not_chained_do_no_harm():
    pool = KvPool(10, 4)
    pool.join([1, 2], 8, 0)
    pool.join([7, 2], 8, 0)
    pool.leave([7, 2], 8)
    pool.leave([1, 2], 8)
    assert pool.used(0) == 0
    assert len(pool.idle) == 3
    pool.idle.evict(4)
    assert len(pool.idle) == 0
