"""The status page's files agree with each other and with the server's rules; nothing is loaded from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from lorapick.dash.page import static_directory
from lorapick.dash.runbooks import runbook_directory
from lorapick.live.admin import admin_app
from lorapick.live.admin_views import AdapterLine, CellLine, PointLine
from lorapick.live.runbook_pages import Files
from lorapick.live.verdict import FleetHealth
from lorapick.model.alerts import Alert
from lorapick.model.tiers import Tier
from lorapick.testing.published import small_fleet

STATIC = static_directory()
HTML = (STATIC / "index.html").read_text()
CSS = (STATIC / "page.css").read_text()
SCRIPTS = {path.name: path.read_text() for path in sorted(STATIC.glob("*.js"))}
JS = "\n".join(SCRIPTS.values())


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


def test_ids_are_unique_and_the_scripts_find_all_they_ask_for(page: Page) -> None:
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r'\$\("([\w-]+)"\)', JS)) <= set(page.ids)


def test_scripts_load_each_other_and_nothing_else() -> None:
    loaded = {name for text in SCRIPTS.values() for name in re.findall(r'from "\./([\w.]+)"', text)}
    by_page = {reference.removeprefix("/static/") for reference in re.findall(r'src="([^"]+\.js)"', HTML)}
    assert loaded | by_page == set(SCRIPTS)
    assert len(re.findall(r"\bfrom \"|\bimport\(", JS)) == len(
        re.findall(r'^import \{.*\} from "\./\w+\.js";$', JS, re.MULTILINE)
    )


def test_what_is_imported_is_exported() -> None:
    for text in SCRIPTS.values():
        for names, file in re.findall(r'import \{ ([^}]+) \} from "\./([\w.]+)"', text):
            exported = set(re.findall(r"export (?:const|function|async function|class) (\$|\w+)", SCRIPTS[file]))
            assert {name.strip() for name in names.split(",")} <= exported, file
            rest = re.sub(r"^import .*$", "", text, flags=re.MULTILINE)
            assert [name for name in names.split(", ") if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", rest)] == []


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


def test_scripts_know_the_codes_of_tiers() -> None:
    known = re.search(r"TIERS = \[(.*?)\]", SCRIPTS["model.js"])
    assert known is not None
    assert [word.strip('" ') for word in known[1].split(",")] == [tier.word for tier in Tier]


def test_lists_are_read_in_the_order_in_which_they_are_written() -> None:
    read = re.findall(r"\(?\[(\w+(?:, \w+)+)\]\)? (?:=>|of|\{)", SCRIPTS["model.js"])
    for line, fields in ((CellLine, 6), (AdapterLine, 9), (PointLine, 8)):
        assert len(line.__struct_fields__) == fields
        assert fields in [len(names.split(",")) for names in read], line


def test_every_verdict_has_a_tone() -> None:
    tones = re.search(r"TONES = \{(.*)\}", SCRIPTS["alerts.js"])
    assert tones is not None
    assert set(re.findall(r"(\w+): \[", tones[1])) == {str(each) for each in FleetHealth}


def test_every_colour_that_is_used_has_a_light_and_a_dark_form() -> None:
    defined = dict(re.findall(r"--([\w-]+): (light-dark\(#\w{6}, #\w{6}\))", CSS))
    assert len(defined) > 20
    assert set(re.findall(r"var\(--([\w-]+)", CSS)) - set(defined) == {"c", "columns"}
    assert not re.search(r"#[0-9a-f]{3,6}\b", re.sub(r"light-dark\([^)]*\)", "", CSS))


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_what_is_behind_it(scheme: int) -> None:
    colours = {
        name: (one, two)[scheme] for name, one, two in re.findall(r"--([\w-]+): light-dark\((.*?), (.*?)\)", CSS)
    }
    inks = [("ink", "card"), ("muted", "card"), ("serving-ink", "serving"), ("idle-ink", "idle"), ("cpu-ink", "card")]
    inks += [("loading-ink", "loading"), ("loading-ink", "loading-2"), ("good", "good-soft"), ("warn", "warn-soft")]
    inks += [
        ("bad", "bad-soft"),
        ("bad", "card"),
        ("warn", "card"),
        ("good", "card"),
        ("muted", "bg"),
        ("adapter", "card"),
    ]
    for ink, ground in inks:
        dim, bright = sorted((luminance(colours[ink]), luminance(colours[ground])))
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, (ink, ground)


def test_tiers_differ_without_colour() -> None:
    marks = re.search(r"MARKS = \{(.*?)\}", SCRIPTS["model.js"])
    assert marks is not None
    letters = re.findall(r'"(.)"', marks[1])
    assert len(letters) == len(set(letters)) == 5


@pytest.mark.parametrize("alert", [*Alert])
def test_page_finds_the_first_steps_in_each_runbook(alert: Alert) -> None:
    app = admin_app(small_fleet(), static=Files(STATIC, runbook_directory()))
    text = TestClient(app, base_url="http://localhost:9091").get(f"/runbooks/{alert}").text
    steps = re.search(r"<h2>First</h2>\s*<[ou]l>(.*?)</[ou]l>", text, re.DOTALL)
    assert steps is not None
    assert "<li>" in steps[1]


def test_page_is_small() -> None:
    files = [path for path in Path(STATIC).iterdir() if path.is_file()]
    assert {path.suffix for path in files} == {".css", ".html", ".js", ".svg"}
    assert sum(path.stat().st_size for path in files) < 80_000
    assert max(len(text.splitlines()) for text in SCRIPTS.values()) < 250
