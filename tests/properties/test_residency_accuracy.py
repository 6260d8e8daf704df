"""How often the tier that a decision relied on was right: `-s` prints the table of docs/residency.md.

24 adapters for 2 × 4 slots; over half of the requests do not find theirs on the GPU; a fifth of the scrapes is lost;
loads are commanded, pods restart, clients leave. Counted are decisions on adapters whose tier there had changed since
the last decision on them.
"""

from dataclasses import replace

import pytest
from residency_course import Course, Run, Score

from lorapick.pod.values import SwapMode

INLINE = Course(requests=5000)
SHORT = replace(INLINE, requests=1200)


def play(label: str, course: Course, *, seed: int = 1) -> Score:
    """Play, print a row of the table, and see that the play was one that counts."""
    score = Run(course, seed=seed).play()
    print(
        f"| {label} | {score.changed} | {score.accuracy:.1%} | {score.ran_accuracy:.1%} | {score.miss_share:.0%} |"
        f" {', '.join(f'{what}: {count}' for what, count in score.wrong.most_common(3))} |"
    )
    assert course.adapters >= 2 * course.slots * course.pods
    assert score.miss_share >= 0.2
    assert score.changed >= course.requests * (1 - course.bypass) / 2
    return score


def test_inline_pods_that_report_nothing_and_get_all_traffic_from_us() -> None:
    score = play("inline, nothing reported, all traffic ours", INLINE)
    assert score.accuracy >= 0.99
    assert score.ran_accuracy >= 0.985


def test_pods_that_report() -> None:
    score = play("the same, pods report (`lora_adapter_loaded`)", replace(SHORT, reports=True))
    print(f"| right after a report, every adapter | {score.compared} | {score.compared_right / score.compared:.1%} |")
    print(f"| decisions on reported tiers | {score.reported} | {score.reported_right / score.reported:.1%} |")
    assert score.compared_right == score.compared > 5000
    assert score.reported_right / score.reported >= 0.98
    assert score.accuracy >= 0.975


def test_pods_that_publish_kv_events() -> None:
    score = play("the same, KV events", replace(SHORT, kv_events=True))
    assert score.accuracy >= 0.985


@pytest.mark.parametrize(
    ("label", "least", "course"),
    [
        ("a tenth of the traffic bypasses us, no record of use", 0.85, replace(SHORT, bypass=0.1, activity=False)),
        ("the same, record of use (`lora_requests_info`)", 0.90, replace(SHORT, bypass=0.1)),
        ("the same, KV events too", 0.94, replace(SHORT, bypass=0.1, kv_events=True)),
        ("inline, engines that evict by `window`, and the picker knows it", 0.95, replace(SHORT, eviction="window")),
        ("the same, `fifo`", 0.97, replace(SHORT, eviction="fifo")),
        ("drain mode, all traffic ours", 0.80, replace(SHORT, mode=SwapMode.DRAIN, rate=4.0)),
        ("inline at twice the load, all traffic ours", 0.94, replace(SHORT, rate=12.0)),
    ],
    ids=["bypass", "bypass-record", "bypass-kv-events", "window", "fifo", "drain", "overload"],
)
def test_what_is_known_of_harder_cases(label: str, least: float, course: Course) -> None:
    assert play(label, course).accuracy >= least
