"""When the pods together count as saturated, and who is shed then."""

import pytest

from lorapick.core.admission import saturation
from lorapick.model.bands import SaturationSettings
from lorapick.model.settings import AdmissionSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

AT = SaturationSettings(queue=5.0, kv=0.8)


def fleet(*pages, thresholds=AT):
    """Pods with these queues and shares of KV in use; None: it has not reported."""
    settings = Settings(admission=AdmissionSettings(saturation=thresholds))
    names = [f"p{number}" for number in range(len(pages))]
    book = Playbook(pods=[plain_pod(name) for name in names], adapters=("legal",), settings=settings)
    for name, page in zip(names, pages, strict=True):
        if page is not None:
            book.report(name, waiting=page[0], kv_usage=page[1])
    return book


def level(book):
    return saturation.level(book.fleet.state.columns, AT, now=book.now)


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([(0, 0.0)], 0.0),
        ([(5, 0.0)], 1.0),
        ([(0, 0.8)], 1.0),
        ([(10, 0.0), (0, 0.0)], 1.0),
        ([(4, 0.4), (0, 0.2)], (0.8 + 0.25) / 2),
        ([], 1.0),
    ],
)
def test_it_is_the_mean_of_the_worse_of_queue_and_kv(pages, expected):
    assert level(fleet(*pages)) == pytest.approx(expected)


def test_a_pod_whose_report_is_too_old_counts_as_full():
    book = fleet((0, 0.0), (0, 0.0))
    assert level(book) == 0.0
    book.wait(60.0)
    book.report("p0", waiting=0, kv_usage=0.0)
    assert level(book) == 0.5


@pytest.mark.parametrize(("priority", "shed"), [(-1, True), (0, False), (5, False)])
def test_whose_priority_is_below_0_is_shed_though_a_pod_has_room(priority, shed):
    book = fleet((10, 0.0), (0, 0.0))
    told = book.arrive("legal", priority=priority)
    assert any("shed" in line for line in told) is shed, told


def test_below_saturation_and_without_thresholds_nobody_is():
    assert not any("shed" in line for line in fleet((4, 0.0), (0, 0.0)).arrive("legal", priority=-1))
    assert not any("shed" in line for line in fleet((10, 0.0), (0, 0.0), thresholds=None).arrive("legal", priority=-1))


def test_the_refusal_says_why():
    book = fleet((10, 0.0))
    book.arrive("legal", priority=-2)
    (refused,) = book.effects
    assert "-2" in refused.message and "2.00 of 1" in refused.message and refused.status == 429


@pytest.mark.parametrize(
    ("queues", "subset", "shed"),
    [
        ((30, 0), ("p1",), False),
        ((30, 0), ("p1:8000",), False),
        ((30, 0), ("p0",), True),
        ((6, 0), None, False),
        ((6, 0), ("p0:8000",), True),
        ((0, 0), (), True),
    ],
)
def test_only_pods_that_the_gateway_allows_are_asked(queues, subset, shed):
    told = fleet(*((queue, 0.0) for queue in queues)).arrive("legal", priority=-1, subset=subset)
    assert any("shed" in line for line in told) is shed, told
