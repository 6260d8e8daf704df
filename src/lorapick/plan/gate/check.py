"""The gate: predict before and after, judge, look for what would pass.

In: today's plan, the plan of the rollout, rules, times, faults of adapters. Out: a `Verdict`. Pure.
Not here: reading anything (see `cli.check`), printing (see `gate.formats`).
"""

from collections.abc import Sequence

from lorapick.plan.gate.changes import changes
from lorapick.plan.gate.rules import judge, worst
from lorapick.plan.gate.values import Finding, Level, Plan, Rules, Verdict
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Prediction


def check(
    after: Plan, *, today: Plan | None, rules: Rules, costs: Costs | None = None, faults: Sequence[Finding] = ()
) -> Verdict:
    """Judge a rollout.

    Raises:
        ValueError: as `predict`.
    """
    costs = costs or Costs()
    before = None if today is None or not today.demand else predict(today.fleet, today.demand, costs=costs)
    prediction = predict(after.fleet, after.demand, costs=costs)
    findings = judge(prediction, today=before, rules=rules)

    def judged(plan: Plan) -> tuple[Prediction, tuple[Finding, ...]]:
        found = predict(plan.fleet, plan.demand, costs=costs)
        return found, judge(found, today=before, rules=rules)

    old = [each.adapter for each in today.demand] if today is not None else []
    new = [each.adapter for each in after.demand]
    added = tuple(name for name in new if name not in dict.fromkeys(old)) if today is not None else ()
    return Verdict(
        level=worst((*findings, *faults)),
        today=before,
        after=prediction,
        added=added,
        removed=tuple(name for name in old if name not in dict.fromkeys(new)),
        findings=(*findings, *faults),
        changes=changes(after, judged, new=added) if worst(findings) is Level.FAIL else (),
    )
