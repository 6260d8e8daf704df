"""`lorapick simulate` and `lorapick scenarios`, as a person uses them."""

import json

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.plan.scenario_files import scenario_names

QUICK = ["--set", "run={for: 12s, warm_up: 2s}"]


def lorapick(*arguments):
    return CliRunner().invoke(program(arguments), arguments, env={"COLUMNS": "200"})


def test_scenarios_are_listed():
    shown = lorapick("scenarios")
    assert shown.exit_code == 0
    assert all(name in shown.output for name in scenario_names())
    facts = {each["name"]: each for each in json.loads(lorapick("scenarios", "--json").output)}
    assert facts["war-story"]["pods"] == 8
    assert any("50 requests per second" in line for line in facts["war-story"]["assumes"])


def test_a_run_prints_figures_and_the_article():
    shown = lorapick("simulate", "code-4", *QUICK, "-p", "round-robin", "-p", "weighted")
    assert shown.exit_code == 0, shown.output
    assert "6 pods x 2 slots, h100-llama8b; seed 1" in shown.output
    for words in (
        "latency p95",
        "swap share",
        "mean residency",
        "beside the article",
        "45.0 %",
        "fewest loads possible",
    ):
        assert words in shown.output


PINS = ["--set", "run={for: 30s, warm_up: 10s, window: 5s}", "--set", "phases=[]", "--set", "expect=[]"]
PERIODS = ["--set", "periods=[{name: early, from: 10s, to: 20s}, {name: late, from: 20s, to: 30s}]"]


def test_what_pods_were_told_is_said_and_figures_by_period_and_by_adapters():
    shown = lorapick("simulate", "pins", *PINS, *PERIODS, "--set", "run.warm_up=1s", "--set", "arrivals.rate=6/s")
    assert shown.exit_code == 0, shown.output
    assert "loads commanded, weighted, seed 1: pin " in shown.output
    assert "pins missing, weighted, seed 1: for " in shown.output
    lines = shown.output.splitlines()
    for head, rows in (("period", ("early", "late")), ("requests for", ("popular", "others"))):
        (at,) = [number for number, line in enumerate(lines) if line.startswith(f"┃ {head} ")]
        assert [line.split()[1] for line in lines[at + 2 : at + 4]] == [*rows]


def test_figures_of_both_sides_are_said_where_pods_have_roles():
    arguments = ["simulate", "disagg", "--set", "run={for: 3s, warm_up: 1s, window: 1s}"]
    shown = lorapick(*arguments)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    (at,) = [number for number, line in enumerate(lines) if line.startswith("┃ pods that ┃ pods ┃ loads ┃")]
    assert [line.split()[1:4:2] for line in lines[at + 2 : at + 4]] == [["prefill", "6"], ["decode", "6"]]
    assert "pods that" in lorapick(*arguments, "--grid", "--workers", "1").output
    assert "pods that" not in lorapick(*arguments, "--set", "fleet.roles={}").output


def test_a_family_shows_them_for_each_point():
    shown = lorapick("simulate", "pins", *PINS, *PERIODS, "--set", "arrivals.rate=6/s", "--grid", "--workers", "1")
    assert shown.exit_code == 0, shown.output
    rows = [line.split("│")[1:3] for line in shown.output.splitlines() if line.startswith("│ ")]
    found = [(point.strip(), name.strip()) for point, name in rows]
    for name in ("early", "late", "popular", "others"):
        assert ("false", name) in found and ("true", name) in found
    assert "pins missing, enabled true, weighted, seed 1: for " in shown.output


def test_where_nobody_commands_nothing_is_said_of_it():
    shown = lorapick("simulate", "code-4", *QUICK)
    for words in ("commanded", "touches", "pins missing", "first TTFT"):
        assert words not in shown.output


def test_ten_policies_fit_a_terminal_of_eighty_columns():
    arguments = ("simulate", "code-4", *QUICK, "--compare", "--seeds", "2", "--workers", "1")
    shown = CliRunner().invoke(program(arguments), arguments, env={"COLUMNS": "80"})
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = [line for line in lines if line.startswith("│ power-of-two") and "beside" not in line][:1]
    assert row.count("│") >= 5
    # A number of loads says little without the fewest that were possible.
    heads = " ".join(lines[: lines.index(row)])
    assert "loads" in heads and "fewest" in heads
    text = shown.stdout.replace("\n", " ")
    assert "pods are scraped every 1 s, but every 50 ms under gie-default, gie-lora" in text
    assert "…" not in shown.stdout
    assert "all figures: a wider terminal" in shown.stdout


def test_a_trace_that_breaks_off_is_told(tmp_path):
    (tmp_path / "trace.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,10,5\nrubbish\n")
    (tmp_path / "own.yaml").write_text(
        "name: own\nsource: me\nassumes: [x]\nfleet: {pods: 1, slots: 1}\nadapters: {count: 2}\n"
        "arrivals: {trace: {file: trace.csv}}\nrun: {for: 1m}\n"
    )
    shown = lorapick("simulate", str(tmp_path / "own.yaml"))
    assert (shown.exit_code, "trace.csv:3" in shown.stderr) == (2, True), shown.output


def test_json_is_json_and_holds_everything():
    shown = lorapick("simulate", "code-4", *QUICK, "--seeds", "2", "--workers", "1", "--json")
    document = json.loads(shown.stdout)
    assert [report["seed"] for report in document["reports"]] == [1, 2]
    assert document["scenario"]["name"] == "code-4"
    assert document["expect"][0]["article"] == 0.45
    assert document["scrape_intervals"] == {"weighted": 1.0}
    row = next(each for each in document["comparison"]["rows"] if each["metric"] == "p95_ms")
    assert row["value"]["half_width"] > 0


def test_a_page_is_written(tmp_path):
    path = tmp_path / "page.html"
    shown = lorapick("simulate", "code-4", *QUICK, "--html", str(path))
    assert f"page: {path}" in shown.output.replace("\n", "")
    assert path.read_text().startswith("<!doctype html>")


def test_compare_takes_the_scenarios_policies_and_five_seeds():
    shown = lorapick(
        "simulate", "code-4", *QUICK, "--set", "policies=[weighted, random]", "--compare", "--workers", "1", "--json"
    )
    compared = json.loads(shown.stdout)["comparison"]
    assert (compared["policies"], compared["seeds"]) == (["weighted", "random"], [1, 2, 3, 4, 5])


def test_a_family_is_a_row_per_point():
    grid = ("--set", "grid={fleet.slots: [1, 4, 4000]}", "--grid", "--workers", "1")
    shown = lorapick("simulate", "code-4", *QUICK, *grid)
    assert shown.exit_code == 0, shown.output
    assert "cannot be" in shown.output
    # What cannot be is an answer too.
    assert (
        "fleet.slots=4000: 4000 slots of rank 64 leave no memory for KV on h100-llama8b; at most 107 do" in shown.output
    )
    document = json.loads(lorapick("simulate", "code-4", *QUICK, *grid, "--json").stdout)
    assert [each["point"]["fleet.slots"] for each in document] == ["1", "4", "4000"]
    assert [each["why_not"] is None for each in document] == [True, True, False]
    assert document[2]["comparison"] is None


def test_a_suite_is_a_grid_with_a_name():
    arguments = ("simulate", "s-lora", "--suite", "a10g-alpha-S2", "--until", "61s", "--workers", "1")
    shown = lorapick(*arguments)
    assert shown.exit_code == 0, shown.output
    # What takes one value only is said once, above the table.
    for words in ("adapters.count=200", "adapters.rank=[64, 32, 16, 8]", "arrivals.rate=2/s", "run={for: 300s}"):
        assert words in shown.output
    assert shown.output.count("{power: 0.3}") == 2
    # The article says the same of every point, so it is said once.
    assert shown.output.count("better memory utilization per node") == 1
    assert len(json.loads(lorapick(*arguments, "--json").stdout)) == 8


def test_a_family_shows_what_the_article_says_of_each_point():
    said = "[{metric: loads, retention: lru, article: bad}, {metric: loads, retention: lfu, article: worse}]"
    grid = "grid={fleet.retention: [lru, lfu, cost]}"
    shown = lorapick("simulate", "code-4", *QUICK, "--set", f"expect={said}", "--set", grid, "--grid", "--workers", "1")
    assert shown.exit_code == 0, shown.output
    rows = [line for line in shown.output.splitlines() if "bad" in line or "worse" in line]
    assert ["lru" in rows[0], "lfu" in rows[1], len(rows)] == [True, True, 2]
    assert "fewest as served" in " ".join(shown.output.split())
    document = json.loads(
        lorapick("simulate", "code-4", *QUICK, "--set", grid, "--grid", "--json", "--workers", "1").stdout
    )
    assert all(each["bounds"][0]["service_order"] >= 0 for each in document)


def test_capacity_is_a_rate_and_a_ratio():
    small = ("--set", "fleet.pods=1", "--set", "arrivals.rate=3/s", "--set", "run={for: 5s}")
    arguments = ("simulate", "code-4", *small, "--capacity", "-p", "round-robin", "-p", "weighted", "--workers", "1")
    shown = lorapick(*arguments, "--set", "latency_limit=600ms")
    assert "highest rate with P95 of at most 0.6 s" in shown.output
    assert "to round-robin" in shown.output
    found = json.loads(lorapick(*arguments, "--json").stdout)
    assert [each["policy"] for each in found["capacities"]] == ["round-robin", "weighted"]
    assert (found["without_swaps"], found["expect"]) == ([], [])


def test_capacity_stands_beside_the_articles_throughput():
    small = ("--set", "fleet.pods=1", "--set", "arrivals.rate=3/s", "--set", "run={for: 5s}")
    expect = (
        "--set",
        "expect=[{capacity: gain, policy: weighted, article: 0.5}, {capacity: share, article: 10 to 20 %}]",
    )
    best = ("--set", "without_swaps={fleet.slots: 4}")
    arguments = ("simulate", "code-4", *small, *expect, *best, "--capacity", "-p", "round-robin", "-p", "weighted")
    shown = lorapick(*arguments, "--workers", "1")
    assert shown.exit_code == 0, shown.output
    for words in ("least-loaded, nothing to swap", "to no swaps", "throughput gained over round-robin", "50.0 %"):
        assert words in shown.output
    assert shown.output.count("10 to 20 %") == 2


def test_where_the_article_says_nothing_that_is_said():
    shown = lorapick("simulate", "code-4", *QUICK, "--set", "expect=[]")
    assert "beside the article: it gives no figure for this" in shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("warstory",), 'did you mean "war-story"?'),
        (("code-4", "-p", "best"), "--policy is 'best'; it must be one of weighted"),
        (("code-4", "--seeds", "0"), "--seeds is 0; it must be between 1 and 1000"),
        (("code-4", "--workers", "0"), "--workers is 0"),
        (("code-4", "--until", "soon"), "--until is 'soon': not a duration"),
        (("code-4", "--until", "2h"), "--until is 2h; it must be more than the warm-up of 120s and at most 1200s"),
        (("code-4", "--set", "fleet.slots"), "--set is 'fleet.slots'; it must be KEY=VALUE"),
        (("code-4", "--set", "fleet.slots=x"), "fleet.slots: must be a whole number"),
        (("code-4", "--grid"), "--grid: code-4 is no family"),
        (("war-story", "--capacity"), "--capacity: war-story has no latency_limit"),
        (("code-4", "--grid", "--capacity"), "--grid and --capacity cannot go together"),
        (("s-lora", "--grid", "--suite", "a10g-cv-S1"), "--grid and --suite cannot go together"),
        (("s-lora", "--suite", "a10g"), "--suite: s-lora has no suite 'a10g'; they are a10g-num-adapter-S1, "),
        (("code-4", "--suite", "a10g"), "--suite: code-4 has no suite 'a10g'; it has none"),
        (("code-4", "--capacity", "--html", "x.html"), "--html shows runs"),
        (("code-4", *QUICK, "--html", "/nowhere/x.html"), "--html /nowhere/x.html: cannot be written"),
    ],
)
def test_bad_input_says_what_would_be_right(arguments, message):
    shown = lorapick("simulate", *arguments)
    assert shown.exit_code == 2
    assert message in shown.stderr
