"""`lorapick check`: inputs, formats, exit codes; against a real admin API where a picker is asked."""

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli.check import register
from lorapick.model.signals import AdapterSignals, FleetSignals, Signals
from lorapick.testing.peft_files import write_adapter
from lorapick.testing.published import small_fleet
from lorapick.testing.served import served

EXAMPLES = Path(__file__).parents[3] / "examples"
THURSDAY = EXAMPLES / "thursday"
FLEET = ("--config", str(THURSDAY / "fleet.yaml"))
TODAY = (*FLEET, "--today", str(THURSDAY / "today.txt"), "--rate", "4")
AB_TEST = str(THURSDAY / "ab-test.yaml")
PINS = [word for number in range(1, 11) for word in ("--pin", f"tenant-{number:02d}-v2")]


def run(*arguments: str) -> Result:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, [*arguments])


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    """Three pods with four slots, and traffic for two adapters."""
    rates = {"legal": 3.0, "medical": 1.0, "gone": 0.0}
    published = small_fleet()
    published.signals_now = Signals(
        now=100.0,
        fleet=FleetSignals(requests_per_second=4.0, swaps_per_second=0.0),
        adapters=tuple(
            AdapterSignals(adapter=name, requests_per_second=rate, share=0.1) for name, rate in rates.items()
        ),
    )
    with served(published) as url:
        yield url


# -- the article's Thursday


def test_before_warns():
    result = run(*TODAY)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("passes with warnings: 40 active adapters on 32 slots")
    assert "40/32 = 1.25" in result.output


def test_after_fails_and_says_what_would_help():
    result = run(AB_TEST, *TODAY)
    assert result.exit_code == 1
    assert result.output.startswith("fails: 60 active adapters on 32 slots, 20 added, 0 removed")
    assert "→ 5 slots per pod instead of 4: passes" in result.output
    assert (
        "8 slots per pod instead of 4, which is one for everybody: passes with a warning (100.0% hits" in result.output
    )
    assert "pin tenant-01-v2, tenant-02-v2, tenant-03-v2 and 7 more: still fails (74" in result.output
    assert "watch mean residency (5 min warns, 1 min pages), swaps per second and pod (0.5)" in result.output


def test_fixed_passes_with_a_warning():
    result = run(AB_TEST, *TODAY, "--slots", "8", *PINS)
    assert result.exit_code == 0
    assert result.output.startswith("passes with warnings: 60 active adapters on 64 slots")
    warnings = [line for line in result.output.splitlines() if line.startswith("warn")]
    assert len(warnings) == 1
    assert warnings[0].startswith("warn active_adapters: 60 active adapters on 64 slots are 0.94 per slot")


def test_today_keeps_a_promise_that_it_keeps_today(tmp_path):
    """The article's P95 has swaps in it already: 400 ms may not fail before anything is rolled out."""
    file = tmp_path / "fleet.yaml"
    text = (THURSDAY / "fleet.yaml").read_text().replace("pods.yaml", str(THURSDAY / "pods.yaml"))
    file.write_text(f"{text}slo: {{latency_p95: 400ms}}\n")
    fleet = ("--config", str(file), *TODAY[2:])
    for measured in ([], ["--latency-p95", "0.22"]):
        result = run(*fleet, *measured)
        assert result.exit_code == 0, result.output
        assert "0.22 s today, " in result.output
        assert ("that rests on an assumed latency" in result.output) is (not measured)
    assert "0.22 s today, given, are 0.11 s (median 0.055 s) without swaps; 0.17" in result.output
    assert run(AB_TEST, *fleet, "--latency-p95", "0.39").exit_code == 1
    assert run(AB_TEST, *fleet, "--latency-p95", "0.22", "--swap", "0.35").exit_code == 2


# -- formats


def test_json():
    result = run(AB_TEST, *TODAY, "--format", "json")
    found = json.loads(result.output)
    assert (result.exit_code, found["level"], found["cheapest"]) == (1, "fail", "slots")
    assert found["after"]["active"] == 60
    assert [each["kind"] for each in found["changes"]] == ["slots", "slots_for_all", "pods", "fewer", "pins"]
    assert {each["rule"] for each in found["findings"] if each["level"] == "fail"} == {"hit_ratio", "than_today"}


def test_json_has_a_flag_of_its_own():
    assert run(AB_TEST, *TODAY, "--json").output == run(AB_TEST, *TODAY, "--format", "json").output
    assert run(*TODAY, "--json", "--format", "junit").exit_code == 2


def test_junit():
    suite = ElementTree.fromstring(run(AB_TEST, *TODAY, "--format", "junit").output.encode())
    assert (suite.get("tests"), suite.get("failures")) == ("5", "2")
    assert [case.get("name") for case in suite if case.find("failure") is not None] == ["hit_ratio", "than_today"]


def test_github():
    lines = run(AB_TEST, *TODAY, "--format", "github").output.splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        "::warning", "::error", "::warning", "::warning", "::error", *["::notice"] * 5,
    ]  # fmt: skip
    assert "%25 of requests find" in lines[1] and "%" not in lines[1].replace("%25", "").replace("%3A", "")


def test_bad_input_is_said_in_each_form():
    def told(form: str) -> str:
        result = run("none.txt", *TODAY, "--format", form)
        assert result.exit_code == 2
        assert result.stderr.startswith("lorapick check: none.txt: ")
        return result.stdout

    assert json.loads(told("json"))["error"].startswith("none.txt: there is no such file")
    assert told("github").startswith("::error title=lorapick check::none.txt: there is no such file")
    suite = ElementTree.fromstring(told("junit"))
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("1", "0", "1")
    error = suite.find("testcase/error")
    assert error is not None and error.attrib["message"].startswith("none.txt: ")
    assert told("text") == ""


def test_names_are_no_commands(tmp_path):
    file = tmp_path / "list.json"
    file.write_text(json.dumps([{"name": "x\n::error::y", "rate": 1.0}]))
    lines = run(str(file), *FLEET, "--format", "github").output.splitlines()
    assert [line for line in lines if line.startswith("::error::")] == []
    assert ElementTree.fromstring(run(str(file), *FLEET, "--format", "junit").output.encode()).get("failures") == "1"


def small_pods(tmp_path: Path, *, policy: str) -> tuple[str, ...]:
    """Thursday's adapters on pods with two slots, of a policy that is harder to predict there."""
    file = tmp_path / "fleet.yaml"
    pods = ", ".join(f'{{name: p{number}, address: "127.0.0.1:{number + 80}"}}' for number in range(8))
    file.write_text(f"{{picking: {{policy: {policy}}}, defaults: {{max_loras: 2}}, discovery: {{pods: [{pods}]}}}}")
    return ("--config", str(file), "--today", str(THURSDAY / "today.txt"), "--rate", "4")


def test_every_form_says_how_far_it_may_be_off(tmp_path):
    fleet, page = small_pods(tmp_path, policy="cost"), tmp_path / "page.html"
    for words in (["--format", "text"], ["--format", "github"], ["--format", "junit"], ["--html", str(page)]):
        told = run(*fleet, *words).output
        assert "hits may be off by 4 points, as far as such fleets were simulated: with one or two slots" in told
    assert "hits may be off by 4 points" in page.read_text()
    assert json.loads(run(*fleet, "--format", "json").output)["after"]["error_points"] == 4.0
    assert "hits may be off by 2 points, as far as such fleets were simulated\n" in run(*TODAY).output
    today_and_then = run(*fleet, "--slots", "4").output
    assert "today: hits may be off by 4 points" in today_and_then
    assert "then: hits may be off by 2 points" in today_and_then


def test_how_pods_evict_is_told():
    assert "pods that evict by lru" in run(*TODAY).output
    assert "may be off" in run(*TODAY, "--show-work").output


# -- what is asked about


def test_a_directory_of_adapters_is_read():
    result = run(str(EXAMPLES / "peft"), *TODAY)
    assert result.exit_code == 1
    assert "42 active adapters on 32 slots, 2 added" in result.output
    assert "fail base_model: legal@7 was trained on meta-llama/Llama-3.1-8B-Instruct" in result.output


def test_a_split_on_the_command_line():
    result = run("--split", "tenant-01-v2: 50, tenant-01-v2-b: 50", *TODAY)
    assert "41 active adapters on 32 slots, 1 added" in result.output


def test_a_configuration_declares_adapters_and_promises():
    result = run("--config", str(EXAMPLES / "lorapick.yaml"), "--rate", "2", "--latency-p95", "3")
    assert result.exit_code == 1
    assert "fail slo: P95 of latency is about 3.00 s, 2 s were promised" in result.output


def test_a_running_picker_tells_its_fleet_and_traffic(admin):
    result = run("--split", "legal: 50, legal-b: 50", "--admin", admin)
    assert result.exit_code == 0, result.output
    assert result.output.startswith("passes: 3 active adapters on 12 slots, 1 added, 0 removed")


def test_the_work_is_shown():
    result = run(AB_TEST, *TODAY, "--show-work")
    assert result.exit_code == 1
    assert result.output.startswith(run(AB_TEST, *TODAY).output)
    for words in ("60 / 32", "default of alerts.hit_ratio", "Che, Tung and Wang"):
        assert words in result.output
    work = json.loads(run(AB_TEST, *TODAY, "--show-work", "--format", "json").output)["work"]
    figures = {each["name"]: each for each in work["figures"]}
    assert figures["active adapters / slots then"]["value"] == 1.875
    assert figures["hits today"]["formula"].startswith("1 − 0.3")


def test_the_work_is_shown_in_other_formats():
    arguments = (AB_TEST, *TODAY, "--show-work", "--format")
    lines = run(*arguments, "github").output.splitlines()
    group = lines[lines.index("::group::how lorapick check reckons") : lines.index("::endgroup::")]
    assert any(line.startswith("  active adapters / slots then: 1.875 = 60 / 32 [") for line in group)
    assert not any(line.startswith("::") for line in group[1:])
    suite = ElementTree.fromstring(run(*arguments, "junit").output.encode())
    assert "bound of hit ratio: 80.0 %, below it fails [default of alerts.hit_ratio]" in suite.findtext("system-out")
    assert "::group" not in run(AB_TEST, *TODAY, "--format", "github").output


def test_a_page(tmp_path):
    page = tmp_path / "check.html"
    assert run(AB_TEST, *TODAY, "--html", str(page), "--format", "github").exit_code == 1
    text = page.read_text()
    assert "<svg" in text and "hits by slots" in text and "5 slots per pod instead of 4" in text


def test_what_pods_serve_under_a_name_of_their_own(tmp_path):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text('{base_model: ours, discovery: {pods: [{name: a, address: "10.0.0.1:80"}]}}')
    arguments = (str(EXAMPLES / "peft"), "--config", str(fleet), "--rate", "2")
    assert "fail modules" not in run(*arguments).output
    result = run(*arguments, "--model", "phi-4")
    assert result.exit_code == 1
    assert "fail modules: legal@8 changes q_proj, v_proj, which phi-4 does not have" in result.output


def test_the_folder_one_is_in(tmp_path, monkeypatch):
    folder = write_adapter(tmp_path / "legal@9", rank=8)
    monkeypatch.chdir(folder)
    result = run(".", *TODAY, "--format", "json")
    assert json.loads(result.output)["added"] == ["legal@9"]


def test_faults_of_adapters_stay_whatever_helps(tmp_path):
    file = tmp_path / "more.json"
    file.write_text(json.dumps({"add": [{"name": f"x{n}", "rank": 4096} for n in range(30)]}))
    result = run(str(file), *TODAY)
    assert result.exit_code == 1
    assert "none of them mends what is said of single adapters above" in result.output


# -- bad input


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name the fleet"),
        (["--admin", "http://127.0.0.1:1"], "no picker answers"),
        (["--config", "none.yaml"], "none.yaml: cannot be read"),
        (["none.txt", *TODAY], "none.txt: there is no such file or directory; name a list of adapters"),
        ([f"{THURSDAY}/ab-tests.yaml", *TODAY], "did you mean ab-test.yaml?"),
        ([*FLEET, "--today", str(EXAMPLES)], "cannot be read (Is a directory); name a list"),
        ([str(THURSDAY / "requests.csv.gz"), *TODAY], "is no text (byte 2 is none of UTF-8): name a list of adapters"),
        ([*FLEET], "no adapters: declare them"),
        (
            [*FLEET, "--today", str(THURSDAY / "today.txt")],
            "no requests per second are known: give --rate, or rates in",
        ),
        ([*TODAY, "--split", "tenant-1-v2: 50, x: 50"], "did you mean"),
        ([*TODAY, "--slots", "0"], "--slots 0: 1 or more"),
        (
            [*TODAY, "--pin", "nobody"],
            "no such adapter will be active; there are tenant-01-v2, tenant-02-v2, tenant-03-v2 and 37",
        ),
        ([*TODAY, "--pin", "tenant-1-v2"], "did you mean"),
        ([*TODAY, "--pods", "10001"], "--pods 10001: 1 or more, up to 10000"),
        ([*TODAY, "--model", "lama-3.1-8b"], "near: llama-3.1-8b"),
        ([*TODAY, "--html", "none/page.html"], "--html none/page.html: cannot be written (there is no such directory)"),
        ([*TODAY, "--zipf", "nan"], "an exponent from 0 to 100"),
        ([*TODAY, "--swap", "-1"], "give 0 or more"),
        ([str(EXAMPLES), *TODAY], "no folder in it has an adapter_config.json"),
    ],
)
def test_bad_input(arguments, words, monkeypatch):
    monkeypatch.delenv("LORAPICK_ADMIN", raising=False)
    result = run(*arguments)
    assert result.exit_code == 2
    assert words in result.output


@pytest.mark.parametrize(
    ("entry", "code", "said"),
    [
        ('source: "/doesnotexist"', 2, "is no folder"),
        ("source: nothere", 2, "is no folder"),
        ('source: "a\\0b"', 2, "no source has"),
        ("source: here", 0, "not looked at"),
        ("source: s3://bucket/a", 0, "not looked at"),
        ("source: hf://org/a", 0, "not looked at"),
        ("pin: {replicas: -1}", 2, "-1 replicas"),
        ("pin: {replicas: 999}", 1, "pinned with 999 replicas"),
    ],
)
def test_sources_and_pins_that_cannot_be(tmp_path, entry, code, said):
    (tmp_path / "here").mkdir()
    rollout = tmp_path / "next.yaml"
    rollout.write_text(f"- {{name: a, rate: 0.1, {entry}}}\n")
    result = run(*FLEET, str(rollout))
    assert result.exit_code == code, result.output
    assert said in " ".join(result.output.split())
