import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import program

EXAMPLE = Path(__file__).parents[3] / "examples" / "placement.yaml"
PAGE = Path(__file__).parents[3] / "docs" / "placement-solver.md"
COMMAND = "$ lorapick plan placement examples/placement.yaml\n"


def run(*arguments: object) -> tuple[int, str, str]:
    words = ["plan", "placement", *map(str, arguments)]
    result = CliRunner().invoke(program(words), words)
    return result.exit_code, result.stdout, result.stderr


def test_the_page_shows_what_the_command_says() -> None:
    code, out, err = run(EXAMPLE)
    assert (code, err) == (0, "")
    assert f"{COMMAND}{out}" in PAGE.read_text()


def test_copies_that_stay_are_shown_when_asked_for() -> None:
    assert "  keep  code       pod-b  has it\n" in run(EXAMPLE, "--all")[1]
    assert "keep" not in run(EXAMPLE)[1]


def test_by_hashing_nothing_has_a_cost() -> None:
    _, out, _ = run(EXAMPLE, "--solver", "rendezvous")
    assert out.startswith("2 loads, 1 drops, 5 stay\n") and "costs" not in out


def test_who_finds_no_slot_is_named(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("{pods: [{pod: p, slots: 1}], adapters: [{adapter: a, replicas: 1}, {adapter: b, replicas: 2}]}")
    assert "\n  no slot for 2 of b\n" in run(file)[1]


def test_json_has_all(tmp_path: Path) -> None:
    found = json.loads(run(EXAMPLE, "--json")[1])
    assert found["solver"] == "flow"
    assert found["placed"]["code"] == ["pod-b"]
    assert {"adapter", "pod", "action", "why", "source"} == set(found["moves"][0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{pods: [], adapters: [", "did not find expected node"),
        ("{pods: []}", "missing required field `adapters`"),
        ("{pods: [{pod: p, slot: 1}], adapters: []}", "pods[0] has slot; there are pod, slots,"),
        ("{pods: [{pod: p, slots: many}], adapters: []}", "pods[0]: Expected `int`, got `str` - at `$.slots`"),
        ("{pods: [], adapters: [{adapter: a}]}", "adapters[0]: Object missing required field `replicas`"),
        ("{pods: [{pod: p, slots: 1}, {pod: p, slots: 1}], adapters: []}", "p is there more than once"),
    ],
)
def test_what_is_wrong_in_the_file_is_said(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text(content)
    code, _, err = run(file)
    assert code == 2
    assert err.startswith(f"lorapick plan placement: {file}: ") and words in err


def test_a_missing_file_and_an_unknown_solver(tmp_path: Path) -> None:
    assert run(tmp_path / "none.yaml")[0] == 2
    assert run(EXAMPLE, "--solver", "magic")[2].endswith("--solver magic: there are flow and rendezvous\n")
