"""Runbooks as pages: what an alert's link leads to.

In: a directory of Markdown files, each named after its alert. Out: routes that show them as HTML, and a list of all.
Not here: the texts (the command hands their directory over), who may call (see `live.guard`).
"""

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from lorapick.live.problems import nearest, problem
from lorapick.wire.api import ApiReason

STYLE = "runbook.css"
_NAME = re.compile(r"[a-z_]{1,64}")


class Files(NamedTuple):
    """What the admin API serves beside its answers."""

    page: Path
    """Directory with `index.html`."""
    runbooks: Path | None = None
    """Directory with a Markdown file for each alert."""


def runbook_routes(directory: Path | None) -> list[BaseRoute]:
    """A list of all runbooks, their style, and each by its name. None: there are none."""
    if directory is None:
        return []
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(directory.glob("*.md"))}
    markdown = MarkdownIt("js-default")
    pages = {name: _page(name, markdown.render(text)) for name, text in texts.items()}
    listed = _page(
        "runbooks", f"<h1>Runbooks</h1><ul>{''.join(_link(name, text) for name, text in texts.items())}</ul>"
    )

    async def index(_request: Request) -> Response:
        return HTMLResponse(listed)

    async def style(_request: Request) -> Response:
        return FileResponse(directory / STYLE, media_type="text/css", headers={"cache-control": "no-cache"})

    async def runbook(request: Request) -> Response:
        name = request.path_params["alert"]
        if _NAME.fullmatch(name) and name in pages:
            return HTMLResponse(pages[name])
        near = nearest(name, [*pages])
        detail = f"no alert is called {name[:64]!r}; GET /runbooks lists those that are"
        return problem(404, ApiReason.NOT_FOUND, detail=detail, near=near)

    return [
        Route("/runbooks", index),
        Route(f"/runbooks/{STYLE}", style),
        Route("/runbooks/{alert}", runbook),
    ]


def _link(name: str, text: str) -> str:
    title = text.partition("\n")[0].removeprefix("# ")
    return f'<li><a href="/runbooks/{name}">{escape(title)}</a></li>'


def _page(title: str, body: str) -> str:
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    style = f'<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/runbooks/{STYLE}">'
    where = '<nav><a href="/">status page</a> · <a href="/runbooks">all runbooks</a></nav>'
    return f'<!doctype html><html lang="en"><head>{head}{style}</head><body>{where}<main>{body}</main></body></html>'
