"""`lorapick plan swap|slots|fleet|bill|merged`: options, forms of answer, bad input."""

import json

import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from lorapick.cli import plan_bill, plan_fleet, plan_merged, plan_slots, plan_swap

NAMES = ("swap", "slots", "fleet", "bill", "merged")


def application():
    app = typer.Typer(pretty_exceptions_enable=False)
    for module in (plan_swap, plan_slots, plan_fleet, plan_bill, plan_merged):
        module.register(app)
    return app


APP = application()


def ran(*arguments):
    return CliRunner(env={"COLUMNS": "200"}).invoke(APP, arguments)


@pytest.mark.parametrize("name", NAMES)
def test_says_figures_and_with_show_work_formulas_and_sources(name):
    short, full = ran(name), ran(name, "--show-work")
    assert (short.exit_code, full.exit_code) == (0, 0)
    assert "--show-work" in short.output and "formula" in full.output and "article, section" in full.output


@pytest.mark.parametrize("name", NAMES)
def test_json_has_a_formula_and_a_source_for_every_number(name):
    found = json.loads(ran(name, "--json").stdout)
    assert all(each["formula"] and each["source"] for each in found["figures"])
    assert all(each["source"] for each in found["assumptions"])


@pytest.mark.parametrize("name", NAMES)
def test_help_has_every_default(name):
    assert "section" in ran(name, "--help").output


def test_page_is_written(tmp_path):
    page = tmp_path / "fleet.html"
    result = ran("fleet", "--html", str(page))
    assert result.exit_code == 0 and "$275,940" in result.output and "<svg" in page.read_text()
    assert ran("fleet", "--html", str(tmp_path / "no" / "where.html")).exit_code == 2


def test_given_numbers_leave_the_articles_out():
    found = json.loads(ran("bill", "--before", "50%", "--penalty", "400ms", "--json").stdout)
    figures = {each["name"]: each for each in found["figures"]}
    assert figures["before: GPU seconds a day"]["value"] == pytest.approx(10_000)
    assert figures["before: GPU seconds a day"]["article"] is None
    assert [each["source"] for each in found["assumptions"] if each["name"] in ("before", "penalty")] == ["given"] * 2


def test_another_model_and_budget():
    found = json.loads(ran("slots", "--model", "qwen2.5-7b", "--hbm", "64GB", "--max-rank", "32", "--json").stdout)
    figures = {each["name"]: each["value"] for each in found["figures"]}
    assert figures["reserved per slot"] == 161_480_704


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bill", "--before", "120%"], "at most 1"),
        (["bill", "--price", "-1"], "price -1: give a number from 0"),
        (["bill", "--price", "nan"], "not a finite number"),
        (["bill", "--price", "dear"], "--price 'dear': not a number"),
        (["fleet", "--adapters", "1.5"], "give a whole number"),
        (["fleet", "--adapters", "0"], "above 0"),
        (["swap", "--drain", "5"], "not a duration"),
        (["swap", "--host", "fast"], "not a size"),
        (["slots", "--base", "140GB"], "exceed hbm 80 GB by 95 GB"),
        (["slots", "--model", "lama-3.1-70b"], "near: llama-3.1-70b"),
        (["slots", "--max-rank", "20"], "take 32"),
        (["merged", "--bandwidth", "0B/s"], "above 0"),
        (("swap", "--nvme", "7GB"), "--nvme '7GB': not a bandwidth; write bytes per second, such as \"7GB/s\""),
    ],
)
def test_bad_input_is_explained(arguments, words):
    result = ran(*arguments)
    assert result.exit_code == 2 and words in result.stderr and "Traceback" not in result.output


TEXTS = st.one_of(st.text(max_size=8), st.from_regex(r"[0-9]{1,20}(\.[0-9]{1,3})?(e[0-9]{1,3})?(%|ms|s|GB|B)?"))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("swap", ("adapter", "nvme", "drain", "long-queue", "most-per-queued")),
        ("slots", ("hbm", "kv", "adapter", "slots", "sequence", "block", "extra-tokens", "held")),
        ("fleet", ("adapters", "rate", "single", "mixed", "per-spare", "spares", "price")),
        ("bill", ("requests", "penalty", "after", "skew", "pins", "slots")),
        ("merged", ("weights", "bandwidth", "passes", "most-overhead", "rate", "adapters")),
    ],
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_any_text_is_answered_or_refused(name, options, data):
    option, text = data.draw(st.sampled_from(options)), data.draw(TEXTS)
    assert ran(name, f"--{option}={text}", "--json").exit_code in (0, 2)
