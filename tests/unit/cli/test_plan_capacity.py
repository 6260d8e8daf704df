"""`lorapick plan capacity`: what it says, its exit codes, bad input."""

import json

import pytest
import typer
from typer.testing import CliRunner

from lorapick.cli import plan_capacity

SHORT = ("--prompt", "200", "--output", "4..12")
SMALL = ("--pods", "1..2", "--slots", "1,6", "--seeds", "1", "--seconds", "8", "--workers", "1")
QUICK = ("--p95", "500ms", *SMALL, *SHORT)
APP = typer.Typer(pretty_exceptions_enable=False)
APP.callback()(lambda: None)
plan_capacity.register(APP)


def ran(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(APP, ("capacity", *arguments))


@pytest.fixture
def demand(tmp_path):
    file = tmp_path / "demand.txt"
    file.write_text("legal 6\nmedical 4\nfinance 2\nsales 1\nops 1\n")
    return str(file)


def figures(result):
    found = json.loads(result.stdout)
    return {each["name"]: each["value"] for each in (*found["figures"], *found["assumptions"])} | {"all": found}


def test_finds_a_fleet_and_says_what_it_costs(demand, tmp_path):
    page = tmp_path / "capacity.html"
    result = ran(demand, *QUICK, "--spare", "2", "--gpu-hour", "3", "--json", "--html", str(page))
    told = figures(result)
    assert result.exit_code == 0, result.output
    pods = told["pods"]
    assert pods == 1 and told["slots of each"] == 6 and told["P95"] <= 0.5
    assert (told["an hour"], told["pods with spares"], told["an hour with spares"]) == (3.0, 3, 9.0)
    assert told["a month"] == pytest.approx(3 * 730)
    assert told["KV blocks of a pod"] == pytest.approx((307_600 - 6 * 753) / 16, rel=0.01)
    assert all(each["formula"] and each["source"] for each in told["all"]["figures"])
    least, tried = told["all"]["tables"]
    assert {"frontier", "cheapest"} <= set(least["head"]) and {"P95", "KV blocks", "keeps"} <= set(tried["head"])
    assert [row[-1] for row in least["rows"]].count("yes") == 1
    assert "<svg" in page.read_text()


def test_text_has_the_tables_and_with_show_work_the_formulas(demand):
    short, full = ran(demand, *QUICK), ran(demand, *QUICK, "--show-work")
    assert (short.exit_code, full.exit_code) == (0, 0)
    assert "points tried" in short.output and "KV blocks" in short.output and "formula" not in short.output
    assert "create_lora_weights" in full.output and "formula" in full.output


def test_token_counts_that_nobody_gave_are_assumed_aloud(demand):
    told, given = (figures(ran(demand, "--p95", "30s", *SMALL, *options, "--json")) for options in ((), SHORT))
    assert (told["prompt"], told["output"]) == (1155, 211)
    (note,) = [each for each in told["all"]["notes"] if "Tokens are assumed" in each]
    assert "prompts of 1,155 and answers of 211" in note and "(--prompt, --output)" in note
    sources = {each["name"]: each["source"] for each in told["all"]["assumptions"]}
    assert sources["prompt"].startswith("assumed: means of Azure")
    assert (given["prompt"], given["output"]) == (200, pytest.approx(8, abs=1))
    assert not [each for each in given["all"]["notes"] if "assumed" in each]


def test_what_was_drawn_is_called_so(demand):
    drawn = figures(ran(demand, *QUICK, "--json"))["all"]["figures"]
    (figure,) = [each for each in drawn if each["name"] == "requests per second, as drawn"]
    assert "a mean of 14" in figure["formula"] and figure["source"] == "arrivals of seed 1"


def test_nothing_suffices_is_exit_code_1_and_says_what_exceeds_what(demand):
    result = ran(demand, *QUICK[2:], "--p95", "50ms")
    assert result.exit_code == 1
    assert "Nothing suffices" in result.output and "exceeds the limit of 50 ms" in result.output
    assert "Spare pods" not in result.output, "there is nothing to have spares of"
    told = figures(ran(demand, *QUICK[2:], "--p95", "50ms", "--json"))
    assert (told["pods"], told["an hour"], told["P95"]) == (None, None, None)


def test_a_scenario_is_sized(tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(
        "{name: own, source: test, assumes: [none], fleet: {pods: 9, slots: 2}, adapters: {count: 4},"
        " policy: round-robin, run: {for: 8s, warm_up: 1s}, arrivals: {rate: 9/s, tokens: {prompt: 9, output: 9}}}"
    )
    result = ran(str(file), "--p95", "1s", "--pods", "2", "--slots", "4", "--seeds", "1", "--workers", "1", "--json")
    told = figures(result)
    assert result.exit_code == 0, result.output
    assert (told["pods"], told["slots of each"], told["policy"]) == (2, 4, "round-robin")
    assert told["scenario, 1"] == "none"


def test_slots_that_do_not_fit_are_left_out_and_said(demand):
    result = ran(demand, *QUICK, "--slots", "6,4000")
    assert result.exit_code == 0
    assert "4000 slots ×" in result.output and "at most" in result.output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--p95", "1"), "not a duration"),
        (("--p95", "0"), "above 0"),
        (("--p95", "nan"), "not a duration"),
        (("--pods", "5..2"), "--pods 5..2"),
        (("--pods", "0"), "--pods 0..0"),
        (("--pods", "two"), "range such as 2..16"),
        (("--pods", "1..5000"), "1024"),
        (("--slots", "0,4"), "--slots '0,4'"),
        (("--slots", "4,,8"), "--slots '4,,8'"),
        (("--slots", "4000"), "at most"),
        (("--policy", "best"), "--policy 'best'"),
        (("--lost", "200%"), "--lost"),
        (("--lost", "few"), "--lost 'few'"),
        (("--lost", "nan"), "--lost"),
        (("--rate", "-3"), "--rate -3"),
        (("--rate", "nan"), "--rate nan"),
        (("--prompt", "1.."), "--prompt"),
        (("--output", "0"), "tokens.output"),
        (("--hardware", "h200"), "h100-llama8b"),
        (("--model", "llama-9"), "near:"),
        (("--rank", "17"), "take 32"),
        (("--set", "fleet"), "KEY=VALUE"),
        (("--set", "fleet.pods=3"), "--pods"),
        (("--set", "fleet.mode=sideways"), "fleet.mode"),
        (("--seconds", "0"), "--seconds 0"),
        (("--seeds", "0"), "--seeds 0"),
        (("--spare", "-1"), "--spare -1"),
        (("--gpu-hour", "-1"), "--gpu-hour -1"),
        (("--workers", "0"), "--workers 0"),
        (("--html", "no/such/folder/page.html"), "--html"),
    ],
)
def test_bad_input_is_exit_code_2_with_what_would_be_right(demand, options, words):
    result = ran(demand, *QUICK, *options)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("lorapick plan capacity: ") and words in result.stderr
    assert result.stdout == ""


def test_a_rank_below_an_adapters_and_pins_without_room_are_refused(tmp_path):
    file = tmp_path / "demand.yaml"
    file.write_text("[{name: a, rate: 2, rank: 32, pin: {replicas: 3}}, {name: b, rate: 1}]")
    low = ran(str(file), *QUICK, "--rank", "16")
    assert low.exit_code == 2 and "has rank 32" in low.stderr
    crowded = ran(str(file), *QUICK)
    assert crowded.exit_code == 2 and "takes 3 pods" in crowded.stderr
