"""The Dockerfile, which is not built here: there is no registry. It is linted, and what it names is there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
TEXT = DOCKERFILE.read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def copied() -> list[str]:
    """What the build stage takes from the repository."""
    lines = [line.split()[1:-1] for line in TEXT.splitlines() if line.startswith("COPY ") and "--from" not in line]
    return [name for line in lines for name in line]


def test_hadolint_has_nothing_to_say():
    done = subprocess.run([Path(sys.executable).with_name("hadolint"), DOCKERFILE], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_extras_that_are_installed_exist():
    (wanted,) = re.findall(r'"\.\[([a-z0-9,]+)\]"', TEXT)
    assert set(wanted.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "k8s" not in wanted, "only pickers outside a cluster need it"


def test_what_is_copied_exists_and_is_not_ignored():
    ignored = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().splitlines()
    for name in copied():
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name


def test_what_the_package_is_built_from_is_copied():
    """Hatchling reads the readme, the sources and what it shares."""
    assert {"pyproject.toml", "constraints.txt", PROJECT["readme"], "src", "data"} <= set(copied())


def test_it_runs_as_a_numbered_user_that_is_not_root():
    (user,) = re.findall(r"^USER (.+)$", TEXT, re.MULTILINE)
    assert all(int(number) > 0 for number in user.split(":"))


def test_both_stages_have_the_same_python_that_the_project_asks_for():
    images = re.findall(r"^FROM (\S+)", TEXT, re.MULTILINE)
    assert len(set(images)) == 1
    assert PROJECT["requires-python"] == f">={images[0].removeprefix('python:').split('-')[0]}"
