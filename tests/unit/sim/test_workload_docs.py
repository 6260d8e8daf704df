"""The examples of docs/workloads.md run."""

import re
from pathlib import Path

from lorapick.sim.arrivals import Arrival

PAGE = Path(__file__).parents[3] / "docs" / "workloads.md"


def test_the_examples_run():
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        assert isinstance(names.pop("first"), Arrival)
