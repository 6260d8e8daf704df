"""`lorapick bound`."""

import gzip
import json
import sys

import pytest
import zstandard
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.model.events import RequestArrived
from lorapick.model.requests import Request
from lorapick.model.settings import Settings
from lorapick.wire.eventlog import LineEncoder, header_of

LINES = "".join(json.dumps({"adapter": name, "t": t}) + "\n" for t, name in enumerate(["a", "b", "c", None, "a", "b"]))


def run(*arguments):
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(program(["bound"]), ["bound", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text(LINES)
    return path


def test_the_bound_in_words(trace):
    code, out, err = run(trace, "--slots", 1, "--pods", 2)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{trace}: 5 requests for 3 adapters (1 more for the base model)",
        "fewest loads in the order of arrival, 2 pods × 1 slot: 4, 80.00% of the requests",
        "fewest loads in any order: 3, one per adapter",
    ]


@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("zst", zstandard.compress)])
def test_packed_files_and_columns_say_the_same(tmp_path, trace, suffix, pack):
    packed, columns = tmp_path / f"t.jsonl.{suffix}", tmp_path / f"t.csv.{suffix}"
    packed.write_bytes(pack(LINES.encode()))
    columns.write_bytes(pack(b"t,adapter\n0,a\n1,b\n2,c\n3,\n4,a\n5,b\n"))
    found = [json.loads(run(file, "--slots", 2, "--json")[1]) for file in (trace, packed, columns)]
    for each in found:
        each.pop("file")
    assert (
        found[0]
        == found[1]
        == found[2]
        == {
            "order": "arrival",
            "pods": 1,
            "slots_per_pod": 2,
            "base_requests": 1,
            "fewest": {"slots": 2, "requests": 5, "adapters": 3, "loads": 4},
            "exact": None,
        }
    )


def test_names_of_the_base_model_are_left_out(trace):
    code, out, _ = run(trace, "--slots", 1, "--base", "a", "--base", "c", "--json")
    found = json.loads(out)
    assert (code, found["base_requests"], found["fewest"]["loads"]) == (0, 4, 1)


def test_an_event_log(tmp_path):
    encoder, log = LineEncoder(), tmp_path / "log.jsonl"
    lines = [encoder.header(header_of(Settings(base_model="base"), seed=1, epoch=0.0))]
    for number, model in enumerate(["a", "base", "a"], start=1):
        event = RequestArrived(t=float(number), id=number, request=Request(id=f"r{number}", model=model))
        lines.append(bytes(encoder.step(event, ())))
    log.write_bytes(b"".join(lines))
    assert json.loads(run(log, "--slots", 1, "--json")[1])["fewest"] == {
        "slots": 1, "requests": 2, "adapters": 1, "loads": 1,
    }  # fmt: skip
    # Nothing was dispatched in it.
    code, out, _ = run(log, "--slots", 1, "--order", "dispatch")
    assert (code, out.splitlines()[1]) == (0, "fewest loads in the order of dispatch, 1 pod × 1 slot: 0")


def test_the_least_seconds(tmp_path, trace):
    code, out, _ = run(trace, "--slots", 2, "--exact")
    assert (code, out.splitlines()[-1]) == (
        0,
        "least time that loads take: 0.435 s (the fewest loads, since all later loads cost the same)",
    )
    sizes = tmp_path / "adapters.yaml"
    sizes.write_text("[{name: a, size: 1GB}, {name: b, size: 10MB}]")
    code, out, _ = run(trace, "--slots", 2, "--exact", "--adapters", sizes, "--hardware", "h100-llama8b")
    assert (code, out.splitlines()[-1]) == (0, "least time that loads take: 0.647 s (proven by a minimum-cost flow)")


def bad(*arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    return err


def test_bad_input_is_told_by_line_and_value(tmp_path, trace):
    assert bad(tmp_path / "nope", "--slots", 1).endswith("nope cannot be read: No such file or directory\n")
    assert bad(trace, "--slots", 0) == "lorapick bound: --slots is 0; at least 1 is needed\n"
    assert bad(trace, "--slots", 1, "--pods", -1) == "lorapick bound: --pods is -1; at least 1 is needed\n"
    assert f"--order dispatch: {trace} is no event log" in bad(trace, "--slots", 1, "--order", "dispatch")
    assert "--hardware 'abacus' is unknown; use one of h100" in bad(
        trace, "--slots", 1, "--exact", "--hardware", "abacus"
    )
    trace.write_text(LINES + '{"adapter": 3}\n')
    assert f"{trace}:7: Expected `str | null`, got `int`" in bad(trace, "--slots", 1)


def test_bad_sizes_are_told_too(tmp_path, trace):
    sizes = tmp_path / "adapters.yaml"
    assert "--adapters " in bad(trace, "--slots", 1, "--exact", "--adapters", sizes)
    sizes.write_text("[{name: a, sise: 1}]")
    assert f"{sizes}:1:" in bad(trace, "--slots", 1, "--exact", "--adapters", sizes)
    sizes.write_text("[{name: a, size: 1000000GB}]")
    assert "a first load costs at most 10,000,000,000" in bad(trace, "--slots", 1, "--exact", "--adapters", sizes)


def test_a_missing_solver_is_named_with_its_remedy(tmp_path, trace, monkeypatch):
    monkeypatch.setitem(sys.modules, "lorapick.plan.flow_bound", None)
    sizes = tmp_path / "adapters.yaml"
    sizes.write_text("[{name: a, size: 1GB}]")
    assert "pip install 'lorapick[plan]'" in bad(trace, "--slots", 2, "--exact", "--adapters", sizes)


def test_too_long_a_trace_for_the_solver_is_refused(tmp_path, trace):
    trace.write_text(LINES * 15_000)
    sizes = tmp_path / "adapters.yaml"
    sizes.write_text("[{name: a, size: 1GB}]")
    assert "takes up to 50,000: ask about a shorter stretch" in bad(trace, "--slots", 2, "--exact", "--adapters", sizes)


def test_an_answer_without_proof_is_a_failure(tmp_path, trace, monkeypatch):
    import lorapick.plan.flow_bound as module
    from lorapick.sim.bounds.keeping import Kept

    def solve(problem):
        return Kept(kept=[False] * len(problem.saves), prices=[0] * (problem.points - 1))

    monkeypatch.setattr(module, "solve_keeping", solve)
    sizes = tmp_path / "adapters.yaml"
    sizes.write_text("[{name: a, size: 1GB}]")
    code, out, err = run(trace, "--slots", 2, "--exact", "--adapters", sizes)
    assert (code, out) == (1, "")
    assert "no proven answer: the answer saves 0" in err
