"""Whose turn it is at one pod."""

from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from lorapick.live.control.line import MOST_WAITING, Line, Waiting
from lorapick.model.effects import Load, Register, Touch, Unload


def load(*adapters):
    return Waiting(Load(cause=1, pod="a", adapters=adapters, why="pin"))


def touch(adapter):
    return Waiting(Touch(cause=1, pod="a", adapter=adapter))


def order(*waiting):
    line = Line()
    for one in waiting:
        assert line.add(one) is None
    return [waiting.index(line.take()) for _ in waiting]


def test_first_come_first_served_but_for_touches():
    assert order(load("x"), load("y"), load("z")) == [0, 1, 2]
    assert order(load("x"), load("y"), touch("z")) == [2, 0, 1]
    assert order(touch("x"), load("y")) == [0, 1]


def test_a_touch_waits_for_what_concerns_its_adapter():
    assert order(load("x", "z"), load("y"), touch("z")) == [0, 2, 1]
    assert order(load("x"), touch("z"), touch("z")) == [1, 0, 2]


def test_one_touch_goes_ahead_at_a_time():
    assert order(load("x"), load("y"), touch("1"), touch("2"), touch("3")) == [2, 0, 3, 1, 4]


def test_another_command_goes_between_two_touches():
    far, near, touches = load("far"), load("near"), [touch("1"), touch("2")]
    far.ready = False
    line = Line()
    for one in (far, near, touches[0]):
        line.add(one)
    assert line.take() is touches[0]
    line.add(touches[1])
    far.ready = True
    assert [line.take() for _ in range(3)] == [far, touches[1], near]  # the second time that `near` lets a touch pass


def test_who_is_not_ready_lets_others_pass_but_not_those_about_the_same_adapter():
    far, same, other, last = load("far", "more"), load("x", "far"), load("y"), load("x")
    far.ready = False
    line = Line()
    for one in (far, same, other, last, touch("more")):
        line.add(one)
    assert line.take() is other and line.take() is None and len(line) == 4
    far.ready = True
    assert line.take() is far


def test_a_full_line_pushes_out_who_waits_longest():
    line, all_of_them = Line(), [load(str(number)) for number in range(MOST_WAITING + 2)]
    assert [line.add(one) for one in all_of_them] == [None] * MOST_WAITING + all_of_them[:2]
    assert [*line] == all_of_them[2:] and len(line) == MOST_WAITING


def test_who_leaves_is_not_there_any_more():
    line, one = Line(), load("x")
    line.add(one)
    assert line.drop(one) and not line.drop(one) and line.take() is None


commands = st.builds(
    lambda kind, name, more, ready: Waiting(
        {
            "load": Load(cause=1, pod="a", adapters=(name, *more), why="pin"),
            "unload": Unload(cause=1, pod="a", adapter=name, why="pin"),
            "register": Register(cause=1, pod="a", adapter=name),
            "touch": Touch(cause=1, pod="a", adapter=name),
        }[kind],
        ready=ready,
    ),
    st.sampled_from(["load", "unload", "register", "touch", "touch"]),
    st.sampled_from("abcd"),
    st.lists(st.sampled_from("abcd"), max_size=2),
    st.sampled_from([True, True, True, False]),
)


@given(st.lists(st.one_of(st.none(), commands), max_size=80))
def test_nobody_is_lost_or_overtaken_by_what_concerns_the_same_adapter(steps):
    line, waiting, went_ahead = Line(), deque(), False
    for one in [*steps, "all are ready", *[None] * len(steps)]:
        if isinstance(one, str):
            for each in waiting:
                each.ready = True
            continue
        if one is not None:
            pushed = line.add(one)
            waiting.append(one)
            assert pushed is (waiting.popleft() if len(waiting) > MOST_WAITING else None)
            continue
        taken = line.take()
        if taken is None:
            went_ahead = False
            assert not any(may_go(waiting, number) for number in range(len(waiting)))
            continue
        number = waiting.index(taken)
        assert may_go(waiting, number)
        before = next((each for each in range(number) if may_go(waiting, each)), None)
        if before is not None:
            assert isinstance(taken.command, Touch) and not went_ahead  # never two touches in a row
        went_ahead = before is not None
        del waiting[number]
    assert not waiting and len(line) == 0


def may_go(waiting, number):
    """Whether it is ready, and nobody before it has to do with the same adapter."""
    one = waiting[number]
    return one.ready and not any({*waiting[each].left} & {*one.left} for each in range(number))
