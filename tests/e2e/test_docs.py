"""Every page's copy-paste examples are run as they stand: commands in code blocks that begin with `$ `.

Ports of a running `lorapick up` (8080, 9090, 9091) are exchanged for those of a stack that the test starts; files that
an example names are those of `examples/`. Commands that start a whole installation have tests of their own, named here.
"""

import asyncio
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import pytest_asyncio

from lorapick.live.stack_options import LEDGER
from lorapick.testing.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]
ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
ELSEWHERE = {
    "lorapick up": ("tests/e2e/test_envoy_up.py", ['"lorapick.cli.main"', '"up"']),
    "lorapick demo": ("tests/e2e/test_demo_command.py", ['"lorapick.cli.main"', '"demo"']),
    "lorapick pod": ("tests/e2e/test_pod_server.py", ['"lorapick.cli.main"', '"pod"']),
    "lorapick serve": ("src/lorapick/live/stack_options.py", ['"serve"', '"--event-log"']),
    "lorapick explain req-1": ("tests/unit/cli/test_explain.py", ['lines("req-1"']),
    "python -m bench.forecast_models": ("tests/unit/test_forecast_bench.py", ['"bench.forecast_models"', '"--days"']),
    "make test-k8s": ("Makefile", ["test-k8s: setup", "-m k8s e2e/k8s"]),
    "make test-ray": ("Makefile", ["test-ray:", "cd e2e/ray"]),
    "make e2e-vllm": ("Makefile", ["e2e-vllm: setup", "-m vllm e2e/vllm"]),
    "make": (".ci/run", ["make test"]),
}
"""Commands that are run elsewhere: by how they begin, where, and words of the call there."""
NO_EXAMPLE = {"architecture", "interfaces", "status", "benchmarks"}
"""Pages that describe no capability."""


def commands(page: Path) -> list[str]:
    """Commands of a page, with their continuation lines."""
    found = []
    for block in re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        joined = block.replace("\\\n", " ")
        found += [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]
    return found


def elsewhere(command: str) -> str | None:
    """The file that runs this command; None: this test does."""
    return next((file for start, (file, _) in ELSEWHERE.items() if command.startswith(start)), None)


# Those of the README run with `make test`, the others with `make test-system`: they take a minute and a half.
EXAMPLES = [
    pytest.param(command, id=f"{page.stem}-{number}", marks=() if page.stem == "README" else pytest.mark.twin)
    for page in PAGES
    for number, command in enumerate(commands(page))
    if elsewhere(command) is None
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack():
    async with Stack(pods=2, adapters=40, event_log=True) as running:
        yield running


def localised(command: str, stack: Stack) -> str:
    """The command with this stack's ports and this environment's `lorapick`."""
    ports = {"8080": stack.endpoint, "9091": stack.admin, "9090": stack.metrics.removesuffix("/metrics")}
    for port, url in ports.items():
        command = command.replace(f"127.0.0.1:{port}", url.removeprefix("http://"))
    command = command.replace("localhost:8001", stack.pods[0].address)
    command = command.replace("127.0.0.1:8002", stack.pods[1].address)
    command = command.replace("run/lorapick-0.events.jsonl", str(stack.pickers[0].event_log))
    command = command.replace("run/ledger.sqlite", str(stack.pickers[0].configuration.with_name(LEDGER)))
    command = command.replace(".venv/bin/python ", f"{sys.executable} ")
    return re.sub(r"^(\.venv/bin/)?lorapick ", f"{ROOT}/.venv/bin/lorapick ", command)


@pytest.mark.parametrize("command", EXAMPLES)
async def test_example(command, stack, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shell = await asyncio.create_subprocess_shell(
        localised(command, stack),
        cwd=tmp_path,
        env={**os.environ, "LORAPICK_ADMIN": stack.admin},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(shell.communicate(), timeout=60)
    assert shell.returncode == 0, f"{command}\n{err.decode()}"
    assert out.strip(), f"{command} printed nothing"


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem not in NO_EXAMPLE], ids=lambda page: page.stem)
async def test_each_capability_has_an_example(page):
    assert commands(page), f"{page.name} has no command to paste (a code block with lines that begin with `$ `)"


async def test_examples_run_elsewhere_are_run_there():
    for start, (file, words) in ELSEWHERE.items():
        text = (ROOT / file).read_text()
        for word in words:
            assert word in text, f"{file} does not run {start!r}: it has no {word}"


async def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, *(ROOT / "docs/adr").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"
