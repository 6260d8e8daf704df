"""Who was loaded first leaves, used or not."""

from lorapick.core.retention.fifo import Fifo
from lorapick.model.retention import RetentionFacts
from lorapick.model.settings import RetentionSettings


def fifo():
    return Fifo(RetentionSettings(), lambda _: RetentionFacts())


def test_use_does_not_keep_the_oldest():
    policy = fifo()
    policy.loaded("old", 1.0)
    policy.loaded("new", 2.0)
    for now in range(3, 100):
        policy.used("old", float(now))
    assert policy.least(["old", "new"], now=100.0) == "old"
    assert policy.worth("old", now=100.0) == 1.0


def test_a_load_begins_a_new_stay():
    policy = fifo()
    policy.loaded("old", 1.0)
    policy.loaded("new", 2.0)
    policy.removed("old", 3.0)
    policy.loaded("old", 4.0)
    assert policy.least(["old", "new"], now=5.0) == "new"
    assert policy.worth("never", now=5.0) == float("-inf")
