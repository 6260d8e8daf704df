"""The scenarios that come with the package, and those of users.

In: a name or a path. Out: a `Scenario`. Not here: what the keys mean (see `sim.scenario_text`).
"""

from collections.abc import Mapping
from functools import partial
from importlib.resources import files
from pathlib import Path

from lorapick.core.picking.policies import POLICIES
from lorapick.plan.datafiles import open_named
from lorapick.sim.scenario import Scenario
from lorapick.sim.scenario_text import parse_scenario
from lorapick.wire.config.document import nearest_word

SUFFIX = ".yaml"


class UnknownScenario(ValueError):  # noqa: N818 - named after what was wrong with the call
    """Neither the name of a scenario nor a file."""


def scenario_names() -> tuple[str, ...]:
    """Names of the scenarios that come with the package, sorted."""
    found = (each.name for each in files(__package__).joinpath("scenarios").iterdir())
    return tuple(sorted(name.removesuffix(SUFFIX) for name in found if name.endswith(SUFFIX)))


def load_scenario(name: str, *, overrides: Mapping[str, str] | None = None) -> Scenario:
    """A scenario by its name, or from a file; `overrides` are values for some of its keys.

    Raises:
        UnknownScenario: it is neither.
        ConfigError: the file has problems.
    """
    if name in scenario_names():
        file = files(__package__).joinpath("scenarios", name + SUFFIX)
        return _parsed(file.read_bytes(), f"{name}{SUFFIX}", overrides=overrides)
    path = Path(name)
    if path.is_file():
        return _parsed(path.read_bytes(), name, overrides=overrides, beside=name)
    hint = nearest_word(name, scenario_names())
    raise UnknownScenario(f"{name!r} is neither a scenario nor a file; {hint or 'see `lorapick scenarios`'}")


def _parsed(content: bytes, file: str, *, overrides: Mapping[str, str] | None, beside: str | None = None) -> Scenario:
    opener = partial(open_named, beside=beside)
    return parse_scenario(content, file=file, policies=POLICIES, overrides=overrides, open_lines=opener)
