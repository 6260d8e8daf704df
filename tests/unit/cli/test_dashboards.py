"""`lorapick dashboards export`: what it writes, what it leaves alone."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from lorapick.cli import dashboards
from lorapick.cli.main import COMMANDS, program
from lorapick.dash.runbooks import runbook_directory

CONFIG = """
discovery:
  pods: [{name: a, address: "10.0.0.1:8000"}, {name: b, address: "10.0.0.2:8000"}, {name: c, address: "10.0.0.3:8000"}]
slo: {latency_p95: 2s}
server: {admin: "127.0.0.1:9191", metrics: "127.0.0.1:9190"}
"""


def run(*arguments: str):
    return CliRunner().invoke(program(arguments), arguments)


def export(directory: Path, *more: str):
    return run("dashboards", "export", str(directory), *more)


def test_it_writes_everything_and_says_what_to_do(tmp_path):
    answer = export(tmp_path / "out")
    assert answer.exit_code == 0
    for word in (
        "rules.yaml",
        "dashboard.json",
        "keda.yaml",
        "hpa.yaml",
        "runbooks/",
        "promtool check rules",
        "no `slo`",
    ):
        assert word in answer.stdout
    assert (tmp_path / "out/runbooks/thrash.md").read_text().startswith("# Thrash")


def test_numbers_and_addresses_are_the_configurations(tmp_path):
    config = tmp_path / "lorapick.yaml"
    config.write_text(CONFIG)
    answer = export(tmp_path / "out", "--config", str(config), "--deployment", "llama")
    assert answer.exit_code == 0, answer.stderr
    assert "no `slo`" not in answer.stdout
    assert "127.0.0.1:9190" in answer.stdout
    alerts = yaml.safe_load((tmp_path / "out/rules.yaml").read_text())["groups"][1]["rules"]
    latency = next(rule for rule in alerts if rule["alert"] == "LorapickLatency")
    assert latency["expr"].endswith("> 2")
    assert latency["annotations"]["runbook_url"] == "http://127.0.0.1:9191/runbooks/latency"
    scaled = yaml.safe_load((tmp_path / "out/keda.yaml").read_text())
    assert scaled["spec"]["minReplicaCount"] == 3
    assert scaled["spec"]["scaleTargetRef"] == {"name": "llama"}


def test_links_that_open_on_the_pickers_machine_alone_are_warned_of(tmp_path):
    config = tmp_path / "lorapick.yaml"
    config.write_text(CONFIG)
    answer = export(tmp_path / "out", "--config", str(config))
    assert "warning: runbook links in rules.yaml lead to http://127.0.0.1:9191/runbooks: a loopback" in answer.stderr
    assert "warning" not in export(tmp_path / "out", "--runbooks", "https://wiki/runbooks").stderr
    config.write_text(CONFIG.replace("127.0.0.1:9191", "10.0.0.9:9191"))
    assert "warning" not in export(tmp_path / "out", "--config", str(config)).stderr


def test_who_is_told_that_there_is_no_picker_needs_none_to_read_on(tmp_path):
    export(tmp_path / "out")
    alerts = yaml.safe_load((tmp_path / "out/rules.yaml").read_text())["groups"][1]["rules"]
    steps = {alert["labels"]["alert"]: alert["annotations"].get("first_steps", "") for alert in alerts}
    assert "1. Does it run?" in steps["picker_absent"]
    assert "`lorapick serve --config FILE`" in steps["picker_absent"]
    assert "lorapick up" not in steps["picker_absent"]
    page = (tmp_path / "out/runbooks/picker_absent.md").read_text()
    assert "lorapick doctor" not in page, "there is nobody to ask"


def test_runbooks_may_be_elsewhere(tmp_path):
    assert export(tmp_path, "--runbooks", "https://wiki.example.com/lora/").exit_code == 0
    assert "runbook_url: https://wiki.example.com/lora/thrash\n" in (tmp_path / "rules.yaml").read_text()


def test_its_own_files_are_written_again(tmp_path):
    assert export(tmp_path).exit_code == 0
    before = (tmp_path / "rules.yaml").read_text()
    assert export(tmp_path, "--runbooks", "https://wiki.example.com").exit_code == 0
    assert (tmp_path / "rules.yaml").read_text() != before


@pytest.mark.parametrize("edit", ["groups: []\n", "# mine\n"])
def test_foreign_and_edited_files_stay_and_nothing_is_written(tmp_path, edit):
    export(tmp_path)
    rules, keda = tmp_path / "rules.yaml", tmp_path / "keda.yaml"
    rules.write_text(edit if edit.startswith("groups") else rules.read_text() + edit)
    keda.unlink()
    answer = export(tmp_path)
    assert answer.exit_code == 2
    assert "rules.yaml" in answer.stderr and "--force" in answer.stderr
    assert edit in rules.read_text()
    assert not keda.exists()
    assert export(tmp_path, "--force").exit_code == 0
    assert edit not in rules.read_text() and keda.exists()


def everything(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize("name", ["runbooks", "rules.yaml", "hpa.yaml", "runbooks/thrash.md"])
@pytest.mark.parametrize("kind", ["other kind", "dangling link", "link"])
def test_all_or_nothing_is_written_whatever_is_in_the_way(tmp_path, name, kind, force):
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    place = out / name
    place.parent.mkdir(parents=True)
    if kind != "other kind":
        place.symlink_to(elsewhere)
        if kind == "link":
            elsewhere.mkdir() if name == "runbooks" else elsewhere.write_text("mine")
    elif name == "runbooks":
        place.write_text("mine")
    else:
        place.mkdir()
    before = everything(tmp_path)
    answer = export(out, *force)
    assert answer.exit_code == 2
    assert f"in the way: {place}" in answer.stderr and "Nothing was written" in answer.stderr
    assert everything(tmp_path) == before
    assert not elsewhere.is_file() or elsewhere.read_text() == "mine"


def test_a_directory_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    out = tmp_path / "out"
    export(out)
    (out / "keda.yaml").unlink()
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    mkdir = out / "runbooks"
    for path in mkdir.iterdir():
        before.pop(path)
        path.unlink()
    mkdir.rmdir()
    texts = {"rules.yaml": "x", "keda.yaml": "y", f"runbooks/{'n' * 250}": "too long a name for a file"}
    with pytest.raises(OSError, match="too long"):
        dashboards._write(out, texts, force=True)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert not mkdir.exists()


def test_files_may_be_read_by_others(tmp_path):
    export(tmp_path)
    assert (tmp_path / "rules.yaml").stat().st_mode & 0o777 == 0o644
    assert not [name for name in everything(tmp_path) if name.startswith(".")]


def test_bad_input_is_refused_in_words(tmp_path):
    missing = export(tmp_path, "--config", str(tmp_path / "no.yaml"))
    assert missing.exit_code == 2 and "no.yaml" in missing.stderr
    (tmp_path / "file").write_text("x")
    no_directory = export(tmp_path / "file")
    assert no_directory.exit_code == 2 and "file" in no_directory.stderr
    (tmp_path / "taken/rules.yaml").mkdir(parents=True)
    assert export(tmp_path / "taken").exit_code == 2


def test_commands_in_runbooks_exist_with_their_options():
    pages = runbook_directory().glob("*.md")
    lines = {line for page in pages for line in page.read_text().splitlines() if line.startswith("$ lorapick ")}
    assert lines
    for line in sorted(lines):
        arguments = line.split()[2:]
        assert arguments[0] in COMMANDS, line
        answer = run(*arguments, "--help")
        assert answer.exit_code == 0, f"{line}: {answer.output}"
