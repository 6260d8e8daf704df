"""The pipelines of docs/check.md: they are YAML, and their commands do in a repository what the page says of them."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

ROOT = Path(__file__).parents[2]
THURSDAY = ROOT / "examples/thursday"
pytestmark = [pytest.mark.e2e, pytest.mark.twin]
INSTALL = "pip install lorapick"


def pipelines() -> list[dict[str, Any]]:
    page = (ROOT / "docs/check.md").read_text()
    return [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)]


def shell(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """As a runner does it: it stops at the first command that fails."""
    path = f"{ROOT / '.venv/bin'}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, **variables},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A clone, on a branch that lists 20 adapters more than main does."""
    main, clone = tmp_path / "main", tmp_path / "clone"
    main.mkdir()
    for name in ("fleet.yaml", "pods.yaml"):
        shutil.copy(THURSDAY / name, main / name)
    shutil.copy(THURSDAY / "today.txt", main / "adapters.txt")
    commit = "git add . && git -c user.name=t -c user.email=t@example.org commit -qm list"
    made = shell(f"git init -q -b main && {commit} && git clone -q . {clone}", main)
    assert made.returncode == 0, made.stderr
    with (clone / "adapters.txt").open("a") as more:
        more.writelines(f"experiment-{number}\n" for number in range(20))
    made = shell(f"git checkout -q -b more && {commit}", clone)
    assert made.returncode == 0, made.stderr
    return clone


def test_github_actions(repository: Path):
    steps = pipelines()[0]["jobs"]["check"]["steps"]
    runs = [step["run"] for step in steps if "run" in step]
    assert runs[0] == INSTALL
    result = shell("\n".join(runs[1:]), repository, GITHUB_BASE_REF="main")
    assert result.returncode == 1, result.stderr
    assert result.stdout.startswith("::") and "::error title=lorapick check%3A hit_ratio::" in result.stdout
    assert (repository / "check.html").stat().st_size > 0


def test_gitlab(repository: Path):
    job = pipelines()[1]["adapters"]
    assert job["before_script"] == [INSTALL]
    result = shell("\n".join(job["script"]), repository, CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main")
    assert result.returncode == 1, result.stderr
    suite = ElementTree.fromstring((repository / job["artifacts"]["reports"]["junit"]).read_text())
    assert int(suite.attrib["failures"]) >= 1
    assert all((repository / path).is_file() for path in job["artifacts"]["paths"])
