"""`lorapick scenarios`: the scenarios that come with the package.

In: nothing. Out: a table or JSON. Not here: playing them (see `cli.simulate`).
"""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from lorapick.plan.scenario_files import load_scenario, scenario_names
from lorapick.sim.scenario import Scenario


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("scenarios")(scenarios)


def scenarios(as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False) -> None:
    """List the scenarios, with what they assume."""
    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print(json.dumps([_facts(each) for each in found], indent=2))
        return
    table = Table()
    for column in ("name", "what", "source", "fleet", "adapters"):
        table.add_column(column)
    for each in found:
        fleet = f"{each.fleet.pods} pods x {each.fleet.limits.max_loras}"
        table.add_row(each.name, each.title, each.source, fleet, str(len(each.names())))
    console = Console()
    console.print(table)
    console.print("play one with `lorapick simulate NAME --compare`; assumptions: `lorapick scenarios --json`")


def _facts(scenario: Scenario) -> dict[str, object]:
    return {
        "name": scenario.name,
        "title": scenario.title,
        "source": scenario.source,
        "assumes": list(scenario.assumes),
        "pods": scenario.fleet.pods,
        "slots": scenario.fleet.limits.max_loras,
        "hardware": scenario.fleet.hardware,
        "adapters": len(scenario.names()),
        "seconds": scenario.run.length,
        "policies": list(scenario.policies),
    }
