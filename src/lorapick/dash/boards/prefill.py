"""Panels about prefill on other pods: empty lines at 0 where all pods do both.

In: nothing. Out: panels of one row. Not here: the other rows (see `dash.boards.rows`).
"""

from lorapick.dash.boards.panels import Ask, Drawn, Look, lines
from lorapick.dash.queries import Queries

ASK = Queries("$__rate_interval", 'pod=~"$pod"')
FAILED = 'lorapick_prefills_failed_total{pod=~"$pod"}'
_THIRD = Look(least=0.0, width=8)


def prefill() -> list[Drawn]:
    """Who is split, what failed of that, what is kept and queued for it."""
    return [
        lines(
            "Requests by who prefills",
            "split: another pod; alone: the one that decodes; nobody_prefills: none of the others could.",
            asks=(Ask("sum by (result) (rate(lorapick_splits_total[$__rate_interval])) or vector(0)", "{{result}}"),),
            look=_THIRD._replace(unit="ops"),
        ),
        lines(
            "Prefills that came to no good end",
            "failed: the pod that decodes did it; lost: its pod went; overdue: nobody said in time that it was over. "
            "late load: the adapter was not loaded during the prefill. By the pods chosen above.",
            asks=(
                Ask(f"sum by (why) (rate({FAILED}[$__rate_interval])) or vector(0)", "{{why}}"),
                Ask("sum(rate(lorapick_late_loads_total[$__rate_interval])) or vector(0)", "late load"),
            ),
            look=_THIRD._replace(unit="ops"),
        ),
        lines(
            "Kept slots and prompt tokens under way",
            "Slots kept on pods that decode; thousands of tokens that pods prefill for them.",
            asks=(
                Ask(f"{ASK.gauge('reserved_slots')} > 0 or vector(0)", "{{pod}} kept"),
                Ask(f"{ASK.gauge('prefill_tokens')} / 1000 > 0 or vector(0)", "{{pod}} tokens"),
            ),
            look=_THIRD,
        ),
    ]
