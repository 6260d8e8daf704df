"""Where the status page's files are.

In: nothing. Out: a directory with `index.html`, to be served as `/` with its files below `/static`.
Not here: the server (a command hands the directory to the admin API), or data: the page reads `/v1/stream` and
`/v1/decisions/{id}` of whoever serves it.
"""

from pathlib import Path


def static_directory() -> Path:
    """The page's files: no build step, no framework, nothing loaded from elsewhere."""
    return Path(__file__).parent / "static"
