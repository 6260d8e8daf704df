"""The status page's files agree with each other and with the server's rules; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lorapick.dash.page import static_directory
from lorapick.live.admin import admin_app
from lorapick.model.tiers import Tier
from lorapick.testing.published import small_fleet

STATIC = static_directory()
HTML = (STATIC / "index.html").read_text()
CSS = (STATIC / "page.css").read_text()
JS = (STATIC / "page.js").read_text()


class Page(HTMLParser):
    """Collects ids, references, and what the server's content policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if "id" in found:
            self.ids.append(found["id"] or "")
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        self.inline += [f"{tag} {name}" for name, _ in attrs if name == "style" or name.startswith("on")]
        if tag == "style" or (tag == "script" and "src" not in found):
            self.inline.append(tag)


@pytest.fixture(scope="module")
def page() -> Page:
    parsed = Page()
    parsed.feed(HTML)
    return parsed


@pytest.fixture
def client() -> TestClient:
    return TestClient(admin_app(small_fleet(), static=STATIC), base_url="http://localhost:9091")


def test_every_reference_is_served_by_the_admin_port(page: Page, client: TestClient) -> None:
    for reference in page.references:
        assert client.get(reference).status_code == 200, reference
    assert client.get("/").text == HTML


def test_ids_are_unique_and_the_script_finds_all_it_asks_for(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r'\$\("([\w-]+)"\)', JS)) <= set(page.ids)


def test_nothing_comes_from_elsewhere() -> None:
    # The one address in there names the SVG language and is never fetched.
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+\.\w+[^\s\"')]*", HTML + CSS + JS))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert "@import" not in CSS
    assert "url(" not in CSS


def test_nothing_is_inline_that_the_content_policy_forbids(page: Page) -> None:
    assert page.inline == []
    assert 'setAttribute("style"' not in JS


def test_names_from_outside_are_only_set_as_text() -> None:
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", JS)


def test_every_tier_has_a_look() -> None:
    assert [tier.word for tier in Tier if f".chip.{tier.word}" not in CSS] == []


def test_both_colour_schemes_define_the_same_colours() -> None:
    light, dark = (
        set(re.findall(r"--([\w-]+):", block))
        for block in (CSS.split("}", 1)[0], CSS.split("prefers-color-scheme: dark", 1)[1].split("}", 1)[0])
    )
    assert dark == light
    assert len(light) > 20


def test_page_is_small() -> None:
    files = [path for path in Path(STATIC).iterdir() if path.is_file()]
    assert sorted(path.name for path in files) == ["icon.svg", "index.html", "page.css", "page.js"]
    assert sum(path.stat().st_size for path in files) < 60_000
