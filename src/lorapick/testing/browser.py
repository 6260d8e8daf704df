"""A real Chromium, and the status page of some published views, served from a thread of its own.

In: published views, selectors, keys. Out: what somebody would see. Not here: any view of the page's own (see `dash`).
Needs the Debian packages chromium and chromium-driver, and Selenium of the extra `dev`.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from lorapick.dash.page import static_directory
from lorapick.dash.runbooks import runbook_directory
from lorapick.live.admin import serve_admin
from lorapick.live.publish import Published
from lorapick.live.runbook_pages import Files

CHROMIUM, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
"""Of the Debian packages chromium and chromium-driver."""
WITHIN = 15.0
"""Seconds for what a page does at once."""


@contextmanager
def chromium(*, width: int = 1440, height: int = 1000) -> Iterator[Chrome]:
    """A browser without a window; ended with the block."""
    options = Options()
    options.binary_location = CHROMIUM
    # Root has no sandbox, and a container's /dev/shm is small.
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(DRIVER))
    try:
        yield browser
    finally:
        browser.quit()


@contextmanager
def served(published: Published, *, each_second: Callable[[], None] = lambda: None) -> Iterator[str]:
    """Serve the page; gives its URL. `each_second` may change what is published."""
    loop = asyncio.new_event_loop()
    address: asyncio.Future[str] = asyncio.Future(loop=loop)
    ready, over = threading.Event(), asyncio.Event()

    async def serve() -> None:
        files = Files(static_directory(), runbook_directory())
        async with serve_admin(published, bind="127.0.0.1:0", static=files) as where:
            address.set_result(where)
            ready.set()
            turn = 0
            while not over.is_set():
                await asyncio.sleep(0.1)
                turn += 1
                if turn % 10 == 0:
                    each_second()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield f"http://{address.result()}/"
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(20)
        loop.close()


class Page:
    """The status page as somebody sees it."""

    def __init__(self, browser: Chrome) -> None:
        self.browser = browser

    def open(self, url: str) -> None:
        """Load it and wait for the first frame."""
        self.browser.get(url)
        self.until(lambda: self.text("#link") == "live")

    def one(self, selector: str) -> WebElement:
        """The first element of a selector."""
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        """All of them."""
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *values: Any) -> Any:
        """The value of a script's `return`."""
        return self.browser.execute_script(script, *values)

    def text(self, selector: str) -> str:
        """Text of the first element, also while it is out of sight; frames may exchange elements at any time."""
        return str(self.run("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def texts(self, selector: str) -> list[str]:
        """Texts of all."""
        script = "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent)"
        return list(self.run(script, selector))

    def count(self, selector: str) -> int:
        """How many there are in the document."""
        return int(self.run("return document.querySelectorAll(arguments[0]).length", selector))

    def until(self, true: Callable[[], Any], *, within: float = WITHIN) -> Any:
        """Wait until something is true; gives it."""
        end = time.monotonic() + within
        while True:
            found = true()
            if found:
                return found
            assert time.monotonic() < end, f"not within {within} s"
            time.sleep(0.05)

    def press(self, *keys: str) -> None:
        """Keys for whatever has the focus."""
        for key in keys:
            self.browser.switch_to.active_element.send_keys(key)

    def focus(self) -> str:
        """Label, text or id of what has the focus."""
        script = "const at = document.activeElement; return at.ariaLabel || at.textContent.trim() || at.id"
        return str(self.run(script))

    def complaints(self) -> list[str]:
        """What the browser's console has of errors and forbidden things."""
        entries: list[dict[str, str]] = self.browser.execute("getLog", {"type": "browser"})["value"]
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]


__all__ = ["Keys", "Page", "chromium", "served"]
