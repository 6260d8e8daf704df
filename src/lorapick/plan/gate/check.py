"""The gate: predict before and after, judge, look for what would pass.

In: today's plan, the plan of the rollout, rules, times, faults of adapters. Out: a `Verdict`. Pure.
Not here: reading anything (see `cli.check`), printing (see `gate.formats`).
"""

from collections.abc import Sequence

from lorapick.plan.gate.changes import changes
from lorapick.plan.gate.rules import Base, hopeless, judge, worst
from lorapick.plan.gate.values import Finding, Level, Plan, Rules, Verdict
from lorapick.plan.prediction.predict import predict
from lorapick.plan.prediction.values import Costs, Prediction


def check(
    after: Plan,
    *,
    today: Plan | None,
    rules: Rules,
    costs: Costs | None = None,
    assumed: bool = False,
    faults: Sequence[Finding] = (),
) -> Verdict:
    """Judge a rollout.

    Args:
        after: the fleet once it is out.
        today: the fleet as it is; None: nobody said.
        rules: bounds.
        costs: times.
        assumed: whether nobody measured the latency among them.
        faults: of single adapters.

    Raises:
        ValueError: as `predict`.
    """
    costs = costs or Costs()
    before = None if today is None or not today.demand else predict(today.fleet, today.demand, costs=costs)
    prediction = predict(after.fleet, after.demand, costs=costs)
    base = Base(p95=costs.latency_p95, assumed=assumed)
    findings = judge(prediction, today=before, rules=rules, base=base)
    mendable = worst(findings) is Level.FAIL and not hopeless(base, rules)

    def judged(plan: Plan) -> tuple[Prediction, tuple[Finding, ...]]:
        found = predict(plan.fleet, plan.demand, costs=costs)
        return found, judge(found, today=before, rules=rules, base=base)

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
        changes=changes(after, judged, new=added) if mendable else (),
    )
