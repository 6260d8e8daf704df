"""Runbooks: a Markdown page for each alert, named after it. What it means, how to see it, what to do, when not to."""

from pathlib import Path


def runbook_directory() -> Path:
    """Where they are."""
    return Path(__file__).parent


def first_steps(alert: str) -> str:
    """What an alert's page says to do first, as Markdown."""
    text = (runbook_directory() / f"{alert}.md").read_text(encoding="utf-8")
    _, _, after = text.partition("\n## First\n")
    return after.partition("\n## ")[0].strip()
