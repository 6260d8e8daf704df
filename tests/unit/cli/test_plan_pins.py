"""`lorapick plan pins`: small logs in three formats, forms of answer, the configuration's section, bad input."""

import json
from pathlib import Path

import duckdb
import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli import plan_pins
from lorapick.cli.config import examine

FORMATS = ("csv", "jsonl", "parquet")
FLEET = ("--pods", "2", "--slots", "3")
CONFIG = """
base_model: base
discovery: {file: pods.yaml}
defaults: {max_loras: 4}
adapters:
  list:
    - {name: tenant-1, rank: 8}
picking: {policy: weighted}
"""
PODS = """
- {name: pod-1, address: "127.0.0.1:8001"}
- {name: pod-2, address: "127.0.0.1:8002"}
"""


def ran(*arguments: str | Path) -> Result:
    app = typer.Typer(pretty_exceptions_enable=False)
    plan_pins.register(app)
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(each) for each in arguments])


def written(folder: Path, form: str) -> Path:
    """Sixty requests in six seconds: half of them for tenant-1, some for the base model."""
    names = ["tenant-1", "tenant-2", "tenant-1", "tenant-3", "tenant-1", "base"]
    rows = [(1_770_000_000 + 0.1 * n, names[n % 6], 20, 4) for n in range(60)]
    values = ", ".join(f"({at}, '{name}', {prompt}, {output})" for at, name, prompt, output in rows)
    file = folder / f"requests.{form}"
    kind = {"csv": "CSV, HEADER", "jsonl": "JSON", "parquet": "PARQUET"}[form]
    with duckdb.connect() as connection:
        table = f"(VALUES {values}) AS t(time, adapter, prompt_tokens, output_tokens)"
        connection.execute(f"COPY (SELECT * FROM {table}) TO '{file}' (FORMAT {kind})")
    return file


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("logs"), "csv")


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_gives_figures_with_formulas_a_page_and_a_section(form: str, tmp_path: Path) -> None:
    page, section = tmp_path / "pins.html", tmp_path / "pins.yaml"
    file = written(tmp_path, form)
    result = ran(file, *FLEET, "--base", "base", "--json", "--html", page, "--snippet", section)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    figures = {each["name"]: each["value"] for each in found["figures"]}
    assert (figures["requests"], figures["pins"], figures["adapters for 60 %"]) == (50, 2, 1)
    assert all(each["formula"] and each["source"] for each in (*found["figures"], *found["assumptions"]))
    assert found["tables"] and found["charts"] and found["snippet"] == section.read_text()
    assert "<svg" in page.read_text()


def test_text_ends_with_the_section_and_shows_its_work(log: Path) -> None:
    short, full = ran(log, *FLEET, "--base", "base"), ran(log, *FLEET, "--base", "base", "--show-work")
    assert (short.exit_code, full.exit_code) == (0, 0)
    assert short.stdout.rstrip().endswith("% of requests") and 'name: "tenant-1"' in short.stdout
    assert "formula" in full.stdout and "formula" not in short.stdout


def test_the_section_makes_a_good_configuration(log: Path, tmp_path: Path) -> None:
    config, section = tmp_path / "lorapick.yaml", tmp_path / "pins.yaml"
    config.write_text(CONFIG)
    (tmp_path / "pods.yaml").write_text(PODS)
    result = ran(log, "--config", config, "--snippet", section, "--json")
    assert result.exit_code == 0, result.output
    head, _, tail = CONFIG.partition("adapters:")
    config.write_text(f"{head}{section.read_text()}{tail[tail.index('picking') :]}")
    checked = examine(config)
    assert (checked.adapters, checked.pods) == (2, 2)
    assert 'pods: ["pod-' in section.read_text() and "rank: 8" in section.read_text()


def test_nothing_to_pin_writes_no_file(log: Path, tmp_path: Path) -> None:
    section = tmp_path / "pins.yaml"
    result = ran(log, "--pods", "2", "--slots", "1", "--snippet", section)
    assert result.exit_code == 0 and "no pins" in result.stdout and not section.exists()


def test_damaged_lines_and_files_are_told_in_every_form(tmp_path: Path) -> None:
    file, page = written(tmp_path, "csv"), tmp_path / "pins.html"
    with file.open("a") as lines:
        lines.write('1770000001,tenant-1,2,3,4,"\nx,tenant-1,2,3\n')
    (tmp_path / "b.parquet").write_bytes(b"PAR1 no more")
    arguments = (file, tmp_path / "b.parquet", *FLEET, "--base", "base", "--skip-damaged")
    text, document = ran(*arguments), ran(*arguments, "--json", "--html", page)
    assert (text.exit_code, document.exit_code) == (0, 0), text.output
    for told in (" ".join(text.stdout.split()), document.stdout, page.read_text()):
        assert "b.parquet" in told and "Left out" in told and "--skip-damaged" in told


def test_rates_are_written_for_the_gate(log: Path, tmp_path: Path) -> None:
    today = tmp_path / "today.txt"
    assert ran(log, *FLEET, "--base", "base", "--today", today).exit_code == 0
    head, first, *_ = today.read_text().splitlines()
    name, rate = first.split()
    assert head.startswith("# requests per second") and name == "tenant-1"
    assert float(rate) == pytest.approx(30 / 5.8, rel=0.01)


def test_the_base_model_of_a_configuration_is_none_of_the_adapters(log: Path, tmp_path: Path) -> None:
    config = tmp_path / "lorapick.yaml"
    config.write_text(CONFIG)
    (tmp_path / "pods.yaml").write_text(PODS)
    renamed = tmp_path / "models.csv"
    renamed.write_text(log.read_text().replace("time,adapter", "time,model"))
    known, unknown = ran(renamed, "--config", config), ran(renamed, *FLEET)
    assert "10 requests for the base model" in known.stdout and "--base" not in known.stdout
    assert "name the base model with --base" in " ".join(unknown.stdout.split())


def test_what_a_warehouse_counted_is_read_instead_of_logs(tmp_path: Path) -> None:
    assert "adapters" in ran("--sql").stdout
    result = ran("--counted", tmp_path, *FLEET)
    assert result.exit_code == 2 and "adapters.csv" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*FLEET,), "name request logs"),
        (("no-such.csv", *FLEET), "no such file"),
        (("LOG",), "--config, or --pods and --slots"),
        (("LOG", "--pods", "2"), "--config, or --pods and --slots"),
        (("LOG", "--config", "x.yaml", "--pods", "2"), "--config names pods"),
        (("LOG", "--config", "no-such.yaml"), "no-such.yaml"),
        (("LOG", "--pods", "0", "--slots", "2"), "--pods 0"),
        (("LOG", "--pods", "2", "--slots", "0"), "--slots 0"),
        (("LOG", "--pods", "1", "--slots", "5000"), "leave no memory"),
        (("LOG", *FLEET, "--cover", "101%"), "--cover"),
        (("LOG", *FLEET, "--cover", "much"), "--cover"),
        (("LOG", *FLEET, "--cover", "nan"), "--cover"),
        (("LOG", *FLEET, "--service", "3"), "--service"),
        (("LOG", *FLEET, "--service", "0s"), "--service"),
        (("LOG", *FLEET, "--target", "-1"), "--target"),
        (("LOG", *FLEET, "--memory", "much"), "--memory"),
        (("LOG", *FLEET, "--policy-now", "best"), "round-robin"),
        (("LOG", *FLEET, "--hardware", "abacus"), "h100-llama8b"),
        (("LOG", *FLEET, "--output", "0"), "--output 0"),
        (("LOG", *FLEET, "--adapter-column", "tennant"), "tennant"),
        (("LOG", *FLEET, "--counted", "x"), "give one of both"),
        (("LOG", *FLEET, "--days", "0"), "days"),
        (("LOG", *FLEET, "--html", "/no/such/folder/page.html"), "/no/such/folder"),
    ],
)
def test_bad_input_is_told_with_exit_code_2(arguments: tuple[str, ...], words: str, log: Path) -> None:
    result = ran(*(log if each == "LOG" else each for each in arguments))
    assert result.exit_code == 2 and words in result.stderr, result.output
    assert result.stderr.startswith("lorapick plan pins: ") and "Traceback" not in result.stderr
