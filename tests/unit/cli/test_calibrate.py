"""`lorapick calibrate`."""

import json

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.plan.calibration.coefficients import read_coefficients
from lorapick.plan.calibration.report import BEGIN, END
from lorapick.plan.datafiles import data_path

RUNS = data_path("calibration/vllm085_h100_multi_lora_runs_half.csv")
QUICK = ("--only", "8/16 r16", "--seconds", 30, "--workers", 1)


def run(*arguments):
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(program(["calibrate"]), ["calibrate", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def small(tmp_path):
    """Each fifth line of the table that comes with the project."""
    head, *lines = RUNS.read_text().splitlines(keepends=True)
    path = tmp_path / "runs.csv"
    path.write_text(head + "".join(lines[::5]) + lines[1])
    return path


def test_errors_per_run_and_the_aims(small):
    code, out, err = run(small, *QUICK)
    assert (code, err) == (0, "")
    assert "8/16 r16" in out and "aims, on groups that the fit had not seen" in out
    assert "mean TPOT error" in out


def test_a_table_that_comes_with_lorapick_by_its_name():
    name = "calibration/vllm085_h100_multi_lora_runs_half.csv"
    assert run(name, *QUICK, "--json") == run(RUNS, *QUICK, "--json")


def test_runs_whose_queue_grows_are_not_compared_when_they_are_cut_short(small):
    _, out, _ = run(small, "--only", "1.6_0.8_0.4", "--seconds", 2, "--workers", 1)
    assert "runs were not played long enough to be compared" in out.replace("\n", " ")


def test_the_same_as_json_twice(small):
    code, out, _ = run(small, *QUICK, "--json")
    document = json.loads(out)
    assert code == 0 and out == run(small, *QUICK, "--json")[1] != run(small, *QUICK, "--seed", 2, "--json")[1]
    assert all("8/16 r16" in each["name"] and each["played_seconds"] == 30 for each in document["runs"])
    assert {len(document["folds"]), len(document["score"]["aims"])} == {4, 6}


def test_coefficients_and_figures_are_written(tmp_path):
    page, coefficients = tmp_path / "page.md", tmp_path / "fit.yaml"
    page.write_text(f"# Words\n{BEGIN}\n{END}\nend\n")
    code, *_ = run(RUNS, *QUICK, "--write", coefficients, "--report", page)
    assert code == 0
    assert read_coefficients(coefficients) == read_coefficients()
    text = page.read_text()
    assert text.startswith("# Words") and text.endswith("end\n") and "### Every run" in text


def test_a_report_needs_a_place_for_its_figures(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("words")
    code, out, err = run(RUNS, *QUICK, "--report", page)
    assert (code, out) == (2, "")
    assert err.startswith(f"lorapick calibrate: --report {page}: the page needs one line {BEGIN}")
    assert page.read_text() == "words"


def test_where_it_cannot_write(tmp_path):
    code, _, err = run(RUNS, *QUICK, "--write", tmp_path / "none" / "fit.yaml")
    assert code == 2 and "--write" in err and "cannot be written: No such file or directory" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--seconds", 0.5), "--seconds 0.5 is too short; 1 is the least"),
        (("--seconds", "nan"), "--seconds nan is too short"),
        (
            ("--only", "9/9"),
            "--only '9/9' is in no run's name; a name is like 'llama-3.1-8b-instruct 0.1_0.05_0.025 8/",
        ),
        (("--slot-costs", "none.csv"), "none.csv cannot be read: No such file or directory"),
        (("--slot-costs", RUNS), "line 1: column max_lora_rank is missing; needed are model, max_loras"),
    ],
)
def test_wrong_flags(arguments, words):
    code, out, err = run(RUNS, *arguments)
    assert (code, out) == (2, "")
    assert words in err


def test_wrong_files(tmp_path, small):
    bad = tmp_path / "bad.csv"
    bad.write_text(small.read_text().replace(",16,", ",sixteen,", 1))
    code, out, err = run(bad)
    assert (code, out) == (2, "")
    assert err.startswith(f"lorapick calibrate: {bad}, line 2, column ") and "'sixteen' is not a number above 0" in err
    bad.write_text("\n".join(small.read_text().splitlines()[:4]))
    assert "two groups are needed" in run(bad)[2]
    assert "cannot be read: No such file or directory" in run(tmp_path / "none.csv")[2]
