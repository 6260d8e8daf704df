"""What every test needs."""

import asyncio
from itertools import groupby

import hypothesis
import pytest

from lorapick.sim.world import World

# pytest-asyncio asks for "the loop before mine", which makes one that nobody closes: a ResourceWarning at the end
# of the run. Saying that there is none keeps it from being made.
asyncio.set_event_loop(None)

# No timed assertions: a slow machine must not fail a property.
hypothesis.settings.register_profile("lorapick", deadline=None)
hypothesis.settings.load_profile("lorapick")

# Whoever plays a scenario checks all invariants on the way, whether or not the test asks for it.
World.check_every = 50

LONGEST = ("tests/unit/plan/test_scenario_files.py",)
"""Files to begin with: none of them may be the last one that a single worker is busy with."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the files that start processes out among the others: they wait while another worker computes."""
    files = [list(file) for _, file in groupby(items, key=lambda item: item.path)]
    waiting = [file for file in files if "/tests/e2e/" in file[0].path.as_posix()]
    busy = [file for file in files if "/tests/e2e/" not in file[0].path.as_posix()]
    busy.sort(key=lambda file: not file[0].path.as_posix().endswith(LONGEST))
    # In the first half, so that the end is made of small files and workers end together.
    apart = max(1, len(busy) // 2 // max(1, len(waiting)))
    dealt = [
        file for number, each in enumerate(waiting) for file in (each, *busy[number * apart : (number + 1) * apart])
    ]
    dealt += busy[len(waiting) * apart :]
    items[:] = [item for file in dealt for item in file]
