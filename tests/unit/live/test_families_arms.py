"""Families of a trial: those that docs/trying.md lists, and none without a trial."""

import re
from pathlib import Path

from lorapick.core.arms import Arms
from lorapick.live.families_arms import ArmFamilies
from lorapick.model.arms import Arm, Mode, ModeKind
from lorapick.model.picks import Pick
from lorapick.model.requests import Outcome, Request
from lorapick.model.settings import Settings
from lorapick.model.tiers import Tier

PAGE = Path(__file__).parents[3] / "docs" / "trying.md"


def trial() -> Arms:
    arms = Arms(Settings(mode=Mode(kind=ModeKind.OBSERVE)), seed=0)
    made = arms.begin(Request(id="r", model="x"))
    made.would = Pick(request_id="r", adapter="x", pod="p", score=1.0, tier=Tier.GPU_IDLE)
    arms.would_be(made.would, adapter=True)
    arms.first_byte(made, 0.2)
    arms.left(made, Outcome.SERVED, status=200, seconds=0.4)
    arms.placed(made, Tier.DISK, pod="q", took=0.7, served=True)
    return arms


def shown(arms: Arms | None) -> dict[str, float]:
    families = ArmFamilies()
    families.take(arms)
    samples = [sample for family in families.collect() for sample in family.samples]
    return {f"{each.name}{sorted(each.labels.items())}": each.value for each in samples}


def test_without_a_trial_there_are_none() -> None:
    assert shown(None) == shown(Arms(Settings(), seed=0)) == {}


def test_counts_of_both_arms() -> None:
    found = shown(trial())
    assert found["lorapick_enforced_ratio[]"] == 0.0
    assert found["lorapick_arm_requests_total[('arm', 'observed'), ('outcome', 'served')]"] == 1
    assert found["lorapick_arm_picks_total[('arm', 'observed'), ('tier', 'disk')]"] == 1
    assert found["lorapick_would_picks_total[('result', 'gpu_idle')]"] == 1
    assert (found["lorapick_would_hits_total[]"], found["lorapick_would_agreed_total[]"]) == (1, 0)
    assert found["lorapick_arm_latency_seconds_bucket[('arm', 'observed'), ('le', '0.4')]"] == 1
    assert found["lorapick_arm_latency_seconds_bucket[('arm', 'observed'), ('le', '0.2')]"] == 0
    assert {f"('arm', '{arm}')" for arm in Arm} <= {
        part for key in found for part in re.findall(r"\('arm', '\w+'\)", key)
    }


def test_the_page_about_trials_lists_them_all() -> None:
    families = ArmFamilies()
    families.take(trial())
    names = {f"{each.name}_total" if each.type == "counter" else each.name for each in families.collect()}
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `lorapick_")]
    assert {name for row in rows for name in re.findall(r"`(lorapick_\w+)`", row)} == names
