"""Pictures of the status page for the documentation, from the article's incident as simulated.

    python -m bench.screenshots [--scenario bench/screenshots.yaml] [--into docs/img]

Plays the scenario to its end (a minute of CPU), shows the simulated picker's own views on the page, and takes
pictures in a real Chromium (Debian packages chromium and chromium-driver). The same scenario gives the same figures.
"""

import argparse
import time
from pathlib import Path

from lorapick.live.published import PublishedViews
from lorapick.plan.scenario_files import load_scenario
from lorapick.sim.run import Options, run
from lorapick.sim.world import World
from lorapick.testing.browser import Keys, Page, chromium, served

MOST_BYTES = 300_000


class Simulated:
    """A world that stands still, as `live.published` wants to see a picker."""

    def __init__(self, world: World) -> None:
        self.fleet = world.fleet
        self._now = world.kernel.now
        self.started_at = time.time() - self._now

    def now(self) -> float:
        return self._now


def played(scenario: str) -> World:
    """The scenario's world at its end."""
    found: list[World] = []

    def prepare(world: World) -> None:
        world.fleet.state.journal.on = True
        found.append(world)

    run(load_scenario(scenario), options=Options(bounds=False, prepare=prepare))
    return found[0]


def scheme(page: Page, name: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": name}]
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def take(page: Page, file: Path) -> None:
    time.sleep(0.5)  # fonts and the bars' widths
    page.browser.save_screenshot(str(file))
    size = file.stat().st_size
    assert size < MOST_BYTES, f"{file} has {size} bytes, which is more than {MOST_BYTES}: make the window smaller"
    print(f"{file}: {size // 1000} kB")


def pictures(url: str, into: Path) -> None:
    with chromium(width=1300, height=1330) as browser:
        page = Page(browser)
        for name in ("light", "dark"):
            scheme(page, name)
            page.open(url)
            page.until(lambda: page.count(".alert.page ol li") or not page.count(".alert.page"))
            take(page, into / f"page-{name}.png")
        scheme(page, "light")
        browser.set_window_size(1100, 800)
        page.one(".slots .chip[data-adapter]").click()
        page.until(lambda: page.count("#card .places tbody tr"))
        time.sleep(0.5)
        take(page, into / "page-adapter.png")
        page.press(Keys.ESCAPE)
        page.run("document.querySelector('#decisions tr[data-request]').click()")
        page.until(lambda: page.count("#card .stack i"))
        take(page, into / "page-decision.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default=str(Path(__file__).with_suffix(".yaml")))
    parser.add_argument("--into", type=Path, default=Path("docs/img"))
    arguments = parser.parse_args()
    world = played(arguments.scenario)
    arguments.into.mkdir(parents=True, exist_ok=True)
    with served(PublishedViews(Simulated(world))) as url:
        pictures(url, arguments.into)


if __name__ == "__main__":
    main()
