"""How often the tier that a decision relied on was right: `-s` prints the tables of docs/residency.md.

24 adapters for 2 × 4 slots; over half of the requests do not find theirs on the GPU; a fifth of the scrapes is lost;
loads and unloads are commanded, pods restart, clients leave. Counted are decisions on adapters whose tier there had
changed since the last decision on them there.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from residency_course import Course, Run, Score

from lorapick.pod.values import SwapMode

INLINE = Course(requests=2500)
SHORT = replace(INLINE, requests=1200)
SEEDS = (1, 2, 3)


def play(label: str, course: Course, *, seed: int = 1) -> Score:
    """Play, print a row of the table, and see that the play was one that counts."""
    score = Run(course, seed=seed).play()
    print(row(label, [score]))
    assert course.adapters >= 2 * course.slots * course.pods
    assert score.miss_share >= 0.2
    assert score.changed >= course.requests * (1 - course.bypass) / 2
    assert score.unloads > 0
    return score


def row(label: str, scores: Sequence[Score]) -> str:
    """Figures of some plays together, and what was wrong in them."""
    served, wrong = sum(each.served for each in scores), sum((each.wrong for each in scores), Counter[str]())
    cells = (
        label,
        f"{sum(each.changed for each in scores):,}",
        f"{pooled(scores):.2%}",
        f"{sum(each.ran_right for each in scores) / sum(each.ran for each in scores):.2%}",
        f"{sum(each.misses for each in scores) / served:.0%}",
        ", ".join(f"{what}: {count}" for what, count in wrong.most_common(7)),
    )
    return f"| {' | '.join(cells)} |"


def pooled(scores: Sequence[Score]) -> float:
    """Share of all their `changed` that was right."""
    return sum(each.changed_right for each in scores) / sum(each.changed for each in scores)


def test_inline_pods_that_report_nothing_and_get_all_traffic_from_us() -> None:
    scores = [play(f"inline, nothing reported, all traffic ours, seed {seed}", INLINE, seed=seed) for seed in SEEDS]
    print(row(f"inline, {len(SEEDS)} seeds together", scores))
    assert pooled(scores) >= 0.985
    assert min(each.accuracy for each in scores) >= 0.975
    assert sum(each.ran_right for each in scores) / sum(each.ran for each in scores) >= 0.98


def test_the_picker_always_knows_who_accepts_a_name_that_it_unloaded_itself() -> None:
    """Unloads ten times as often as elsewhere; a pod that is sent a name it does not accept raises."""
    course = replace(SHORT, commands=0.5, restarts=0.0)
    score = play("many loads and unloads", course)
    print(f"| beliefs about unloaded names | {score.unregistered} | {score.unloads} unloads |")
    assert score.unloads >= 50
    assert score.unregistered_right == score.unregistered >= 30


def test_pods_that_report() -> None:
    score = play("inline, pods report (`lora_adapter_loaded`)", replace(SHORT, reports=True))
    print(f"| right after a report, every adapter | {score.compared:,} | {score.compared_right / score.compared:.1%} |")
    print(f"| decisions on reported tiers | {score.reported} | {score.reported_right / score.reported:.1%} |")
    assert score.compared_right == score.compared > 5000
    assert score.reported_right / score.reported >= 0.975
    assert score.accuracy >= 0.97


def test_pods_that_publish_kv_events() -> None:
    score = play("the same, KV events", replace(SHORT, kv_events=True))
    assert score.accuracy >= 0.985


@pytest.mark.parametrize(
    ("label", "least", "course"),
    [
        ("a tenth of the traffic bypasses us, no record of use", 0.85, replace(SHORT, bypass=0.1, activity=False)),
        ("the same, record of use (`lora_requests_info`)", 0.90, replace(SHORT, bypass=0.1)),
        ("the same, KV events too", 0.94, replace(SHORT, bypass=0.1, kv_events=True)),
        ("inline, engines that evict by `window`, and the picker knows it", 0.92, replace(SHORT, eviction="window")),
        ("the same, `fifo`", 0.94, replace(SHORT, eviction="fifo")),
        ("drain mode, all traffic ours", 0.80, replace(SHORT, mode=SwapMode.DRAIN, rate=4.0)),
        ("inline at twice the load, all traffic ours", 0.94, replace(SHORT, rate=12.0)),
    ],
    ids=["bypass", "bypass-record", "bypass-kv-events", "window", "fifo", "drain", "overload"],
)
def test_what_is_known_of_harder_cases(label: str, least: float, course: Course) -> None:
    assert play(label, course).accuracy >= least
