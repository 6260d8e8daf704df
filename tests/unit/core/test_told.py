"""Few of many notes alike are printed."""

from lorapick.core.told import EVERY, MOST, Told


def test_one_in_a_while_of_a_kind_and_pod():
    told = Told()
    assert told.take("k", "a", now=0.0) == 0
    assert told.take("k", "a", now=1.0) is None
    assert told.take("k", "b", now=1.0) == 0
    assert told.take("other", "a", now=1.0) == 0
    assert told.take("k", "a", now=EVERY - 0.1) is None
    assert told.take("k", "a", now=EVERY) == 2
    assert told.take("k", "a", now=2 * EVERY) == 0


def test_it_is_bounded_and_forgets_the_oldest():
    told = Told()
    for number in range(MOST + 10):
        told.take("k", f"p{number}", now=0.0)
    assert len(told) == MOST
    assert told.take("k", "p0", now=1.0) == 0
    assert told.take("k", f"p{MOST + 9}", now=1.0) is None
