"""What only the doctor asks the core."""

from lorapick.live.insight import insight
from lorapick.model import events
from lorapick.model.pods import PodReport
from lorapick.testing.site import Site


async def test_sizes_drift_and_traffic_are_those_of_the_core():
    site = Site()
    site.say(events.PodReported, pod="b", report=PodReport(waiting=0, running=0, gpu_blocks=10, max_loras=8))
    site.driver.fleet.state.signals.traffic.arrived("legal", 50.0)
    found = insight(site.driver)
    assert (found.pods["b"].kv_blocks, found.pods["b"].block_tokens) == (10, None)
    assert len(found.pods["b"].drift) == 1
    assert found.pods["a"].drift == ()
    assert dict(found.traffic.bins[0].counts) == {"legal": 1}
    assert (found.pin_missing, dict(found.pin_problems)) == (None, {})
    assert found.loads == (), "no load was seen to end"


async def test_who_accepts_a_name_is_known_once_every_pod_was_asked():
    site = Site(heard=False)
    report = PodReport(waiting=0, running=0, registered=("legal",))
    site.say(events.PodReported, pod="a", report=report)
    assert insight(site.driver).known_to is None
    site.say(events.PodReported, pod="b", report=report)
    known = insight(site.driver).known_to
    assert known is not None
    assert (known["legal"], known["medical"]) == (2, 0)


async def test_a_page_that_lacks_its_cache_takes_nothing_back():
    site = Site()
    site.say(events.PodReported, pod="a", report=PodReport(waiting=0, running=0, gpu_blocks=10, block_size=16))
    site.say(events.PodReported, pod="a", report=PodReport(waiting=0, running=0))
    assert (insight(site.driver).pods["a"].kv_blocks, insight(site.driver).pods["a"].block_tokens) == (10, 16)
