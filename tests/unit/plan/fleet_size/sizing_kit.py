"""A demand that is played in an instant."""

from lorapick.plan.fleet_size.demand import Unsaid, read_demand
from lorapick.plan.fleet_size.memory import memory
from lorapick.plan.fleet_size.search import Span
from lorapick.plan.fleet_size.size import Sizing
from lorapick.plan.fleet_size.trial import Limits

LIST = "".join(f"adapter-{number} {rate}\n" for number, rate in enumerate((6, 4, 2, 1, 1, 1), start=1))


def sizing(folder, *, p95=0.5, pods=(1, 3), slots=(1, 2, 6), seeds=1, **changes):
    """What is asked, for 8 simulated seconds of six adapters."""
    file = folder / "demand.txt"
    file.write_text(LIST)
    scenario = read_demand(str(file), Unsaid(seconds=8.0, prompt="200", output="[4, 12]"), limit=p95)
    values = {
        "scenario": scenario,
        "policy": "weighted",
        "pods": Span(*pods),
        "slots": slots,
        "seeds": seeds,
        "limits": Limits(p95=p95),
        "memory": memory("h100-llama8b", rank=16),
    }
    return Sizing(**{**values, **changes})
