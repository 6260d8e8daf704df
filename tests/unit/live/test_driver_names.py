"""Near names that the driver gives for questions that are no events."""

from lorapick.live.driver import Driver
from lorapick.model import events
from lorapick.model.adapters import Adapter
from lorapick.model.settings import Settings
from lorapick.testing.playbook import plain_pod


async def test_near_names_are_those_of_the_models_list_and_no_event() -> None:
    settings = Settings(adapters=(Adapter(name="legal-v1", declared=True),))
    driver = Driver(settings, seed=0)
    driver.submit(lambda t, i: events.PodAppeared(t=t, id=i, pod=plain_pod("a")))
    version = driver.fleet.state.columns.version
    assert driver.near_names("legal-v2") == ["legal-v1"]
    assert driver.near_names("bas") == ["base"]
    assert driver.near_names("quite different") == []
    assert driver.fleet.state.columns.version == version
