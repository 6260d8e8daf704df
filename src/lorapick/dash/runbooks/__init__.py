"""Runbooks: a Markdown page for each alert, named after it. What it means, how to see it, what to do, when not to."""

from pathlib import Path


def runbook_directory() -> Path:
    """Where they are."""
    return Path(__file__).parent
