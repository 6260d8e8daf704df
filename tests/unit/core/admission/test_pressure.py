"""Pressure tiers: where each begins, and where it ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.core.admission.pressure import Pressure, tier_of
from lorapick.model.settings import PressureSettings, Settings
from lorapick.testing.playbook import Playbook

BOUNDS = PressureSettings()


@pytest.mark.parametrize(
    ("pressure", "tier"),
    [
        (0.0, Pressure.NONE),
        (0.849, Pressure.NONE),
        (0.85, Pressure.SOFT),
        (0.9, Pressure.HARD),
        (1.0, Pressure.CRITICAL),
    ],
)
def test_where_each_tier_begins(pressure, tier):
    assert tier_of(pressure, Pressure.NONE, bounds=BOUNDS) is tier


@pytest.mark.parametrize(
    ("pressure", "before", "after"),
    [
        (0.84, Pressure.SOFT, Pressure.SOFT),
        (0.82, Pressure.SOFT, Pressure.NONE),
        (0.94, Pressure.CRITICAL, Pressure.CRITICAL),
        (0.92, Pressure.CRITICAL, Pressure.HARD),
        (0.84, Pressure.CRITICAL, Pressure.SOFT),
        (0.0, Pressure.CRITICAL, Pressure.NONE),
    ],
)
def test_a_tier_is_left_below_where_it_begins(pressure, before, after):
    assert tier_of(pressure, before, bounds=BOUNDS) is after


@given(st.floats(0, 1), st.sampled_from(Pressure), st.floats(0, 0.1))
def test_the_tier_is_never_below_what_the_pressure_reaches(pressure, before, hysteresis):
    bounds = PressureSettings(hysteresis=hysteresis)
    now = tier_of(pressure, before, bounds=bounds)
    assert tier_of(pressure, Pressure.NONE, bounds=bounds) <= now <= max(before, now)
    assert tier_of(pressure, now, bounds=bounds) is now, "the same report again changes nothing"
    if hysteresis == 0.0:
        assert now is tier_of(pressure, Pressure.NONE, bounds=bounds)


def test_a_pod_at_the_edge_does_not_flap():
    settings = Settings(pressure=PressureSettings(hysteresis=0.05))
    book = Playbook(pods=["a"], adapters=["legal"], settings=settings)
    book.report("a", memory_pressure=0.86)
    assert book.arrive("legal") == ["r1 waits for a place until 30"]
    assert book.report("a", memory_pressure=0.83) == []
    assert book.report("a", memory_pressure=0.79) == [
        "note pressure pod=a tier=none before=soft pressure=0.79",
        "r1 -> a (disk)",
    ]
