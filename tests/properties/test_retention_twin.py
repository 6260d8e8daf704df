"""Each retention policy agrees with a second writing of itself, whatever happens in whatever order."""

import pytest
import retention_twin
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from retention_twin import Happened

from lorapick.core.retention.demand import cells_of
from lorapick.core.retention.policies import make_retention
from lorapick.model.retention import RetentionFacts
from lorapick.model.settings import RetentionSettings

NAMES = tuple("abcdef")
STEPS = [0.0, 0.004, 0.5, 1.0, 3.0, 9.99, 10.0, 30.0, 300.0, 1000.0, 100_000.0]

names = st.sampled_from(NAMES)
orders = st.lists(names, min_size=1, unique=True)
facts = st.builds(
    RetentionFacts,
    room=st.sampled_from([1.0, 1.0, 0.25, 65e6]),
    from_cpu=st.sampled_from([0.1, 0.008, 0.67]),
    pinned=st.booleans(),
)


class RetentionMachine(RuleBasedStateMachine):
    """Time, uses, loads and removals; now and then, all worths are compared."""

    policy: str

    @initialize(
        facts=st.tuples(*[facts] * len(NAMES)),
        window=st.sampled_from([60.0, 600.0]),
        weights=st.tuples(st.sampled_from([1.0, 0.0, 3.0]), st.sampled_from([1.0, 0.0, 50.0])),
    )
    def begin(self, facts, window, weights):
        self.settings = RetentionSettings(
            policy=self.policy, window=window, frequency_weight=weights[0], recency_weight=weights[1]
        )
        self.facts = dict(zip(NAMES, facts, strict=True))
        self.retention = make_retention(self.settings, self.facts.__getitem__)
        self.history = []
        self.now = 0.0

    @rule(step=st.sampled_from(STEPS))
    def wait(self, step):
        self.now += step

    @rule(adapter=names, kind=st.sampled_from(["used", "used", "touched", "loaded", "removed"]))
    def happen(self, adapter, kind):
        self.history.append(Happened(kind, adapter, self.now))
        getattr(self.retention, kind)(adapter, self.now)

    @rule(adapter=names, count=st.integers(2, 24), gap=st.sampled_from([0.0, 0.01, 1.0, 12.0]))
    def ask(self, adapter, count, gap):
        for _ in range(count):
            self.now += gap
            self.happen(adapter, "used")

    @rule(candidates=orders)
    def evict(self, candidates):
        found = self.retention.least(candidates, now=self.now)
        assert found in candidates
        ranks = {each: (self.worth(each), retention_twin.last_use(self.history, each)) for each in candidates}
        least = min(candidates, key=ranks.__getitem__)
        # Two ways to add the same numbers differ in the last digit: then either may be the least.
        assert found == least or self.close(ranks[found][0], ranks[least][0])

    @rule(candidates=orders, incoming=names)
    def admit(self, candidates, incoming):
        found = self.retention.victim(candidates, now=self.now, incoming=incoming)
        assert found in (None, self.retention.least(candidates, now=self.now))
        if found is None:
            assert self.policy == "cost"
            assert not self.facts[incoming].pinned
            assert all(self.worth(incoming) < self.worth(each) * (1 + 1e-9) + 1e-15 for each in candidates)
        elif self.policy == "cost" and not self.facts[incoming].pinned:
            assert self.worth(incoming) >= self.worth(found) * (1 - 1e-9) - 1e-15

    @rule()
    def compare(self):
        for each in NAMES:
            assert self.close(self.retention.worth(each, now=self.now), self.worth(each)), each

    def worth(self, adapter):
        twin = retention_twin.TWINS[self.policy]
        return twin(self.history, adapter, now=self.now, settings=self.settings, facts=self.facts[adapter])

    def close(self, one, other):
        return one == other or one == pytest.approx(other, rel=1e-9, abs=1e-15)


def machine(policy):
    kind = type(f"Retention_{policy}", (RetentionMachine,), {"policy": policy})
    case = kind.TestCase
    case.settings = hypothesis_settings(max_examples=25, stateful_step_count=30)
    return case


TestLru, TestLfu, TestWindow, TestCost = (machine(name) for name in ("lru", "lfu", "window", "cost"))


def test_these_names_share_no_cell():
    assert len({cell for name in NAMES for cell in cells_of(name)}) == 4 * len(NAMES)
