"""Times that are likely to be wrong are named."""

import pytest

from lorapick.plan.logs.counting import count_logs
from lorapick.plan.logs.doubts import doubts, refuse_timeless
from lorapick.plan.logs.options import LogError, LogOptions

NOW, DAY = 1_780_000_000, 86_400


@pytest.mark.parametrize(
    ("wrong", "named"), [(NOW + 3650 * DAY, "2036-05-25"), (NOW, None), (99_999_999_999, "5138-11-16")]
)
def test_one_row_of_the_future_that_makes_all_others_old_is_named(tmp_path, wrong, named):
    log = tmp_path / "log.csv"
    log.write_text("".join(["adapter,time\n", *(f"a,{NOW - each}\n" for each in range(9)), f"a,{wrong}\n"]))
    said = " ".join(doubts(count_logs([str(log)])))
    assert (
        f"9 of 10 rows with a time are older than the days asked for, counted back from the newest, {named}" in said
    ) is (named is not None)
    assert (said == "") is (named is None)


@pytest.mark.parametrize(("timeless", "refused"), [(1, False), (2, False), (3, True)])
def test_logs_of_which_most_rows_have_no_time_are_refused(tmp_path, timeless, refused):
    log = tmp_path / "log.csv"
    log.write_text("".join(["adapter,when\n", f"a,{NOW}\n", f"b,{NOW + 1}\n", *["a,never\n"] * timeless]))
    summary = count_logs([str(log)], options=LogOptions(time="when"))
    if refused:
        with pytest.raises(LogError, match="3 of 5 rows have no time that can be read in the column 'when'"):
            refuse_timeless(summary)
    else:
        refuse_timeless(summary)
