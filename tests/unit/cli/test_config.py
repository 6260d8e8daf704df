import json
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from lorapick.cli.config import register
from lorapick.cli.serve import register as register_serve
from lorapick.core.picking.policies import POLICIES

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["config", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("lorapick.yaml", "pods.yaml"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


def test_the_example_is_good_from_any_working_directory(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    code, out, err = run("check", str(path))
    assert (code, err) == (0, "")
    assert out.startswith(f"{path} is good: policy weighted, 5 adapters, 4 pods from pods.yaml, hash ")
    code, out, _ = run("check", str(path), "--json")
    said = json.loads(out)
    assert (code, said["ok"], said["pods"], said["adapters"], len(said["hash"])) == (0, True, 4, 5, 16)


def test_roles_are_told_and_so_are_those_that_cannot_work(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    pods = '{name: a, address: "10.0.0.1:80", role: prefill}, {name: b, address: "10.0.0.2:80", role: decode}'
    path.write_text(f"discovery: {{pods: [{pods}]}}\ndisaggregation: {{decide: never}}\n")
    code, out, _ = run("check", str(path))
    assert code == 0 and "2 pods (1 prefill, 1 decode) from the configuration" in out
    useless = "1 pod of base (first: a) prefill only, and disaggregation.decide is never: no request goes there"
    assert out.splitlines()[1:] == ["", "roles that cannot work:", f"  {useless}"]
    said = json.loads(run("check", str(path), "--json")[1])
    assert (said["roles"], said["useless"]) == ("1 prefill, 1 decode", [useless])


SIZE = "loads are expected to take load_times whatever their size"


def test_keys_that_change_nothing_are_listed_by_place(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    pods = "discovery: {file: pods.yaml}\n"
    path.write_text(f"{pods}adapters: {{list: [{{name: a, rank: 8, size: 1MB}}]}}\n")
    code, out, _ = run("check", str(path))
    listed = ["", "parsed, not yet acted on:", f"  {path}:2:38: adapters.list[0].size: {SIZE}"]
    assert (code, out.splitlines()[1:]) == (0, listed)
    assert json.loads(run("check", str(path), "--json")[1])["later"] == [
        {
            "file": str(path),
            "line": 2,
            "column": 38,
            "field": "adapters.list[0].size",
            "key": "adapters.list[].size",
            "message": SIZE,
        }
    ]
    path.write_text(pods)
    assert "not yet" not in run("check", str(path))[1]
    assert json.loads(run("check", str(path), "--json")[1])["later"] == []


def test_every_problem_is_a_line_on_standard_error_and_the_code_is_2(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    path.write_text("picking: {policy: best}\nsed: 1\n")
    code, out, err = run("check", str(path))
    assert (code, out) == (2, "")
    names = ", ".join(f'"{name}"' for name in [*POLICIES][:-1])
    assert err.splitlines() == [
        f'{path}:1:19: picking.policy: must be {names} or "{[*POLICIES][-1]}" (found "best")',
        f'{path}:2:1: sed: unknown key (found "sed"); did you mean "seed"?',
    ]


def test_problems_as_json(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    path.write_text("sed: 1\n")
    code, out, _ = run("check", str(path), "--json")
    assert code == 2
    assert json.loads(out) == {
        "ok": False,
        "problems": [
            {
                "file": str(path),
                "line": 1,
                "column": 1,
                "field": "sed",
                "value": '"sed"',
                "message": "unknown key",
                "hint": 'did you mean "seed"?',
            }
        ],
    }


def test_the_files_that_it_names_are_checked_too(folder: Path) -> None:
    (folder / "pods.yaml").write_text('- {name: a, address: "pod-a:8000"}\n')
    path = folder / "lorapick.yaml"
    path.write_text("discovery: {file: pods.yaml}\nadapters: {catalogue: nowhere}\n")
    code, _, err = run("check", str(path))
    assert code == 2
    catalogue, pods = err.splitlines()
    assert catalogue == (
        f"{path}: adapters.catalogue: {folder / 'nowhere'} is no directory; name one that holds PEFT adapter folders"
    )
    assert pods.startswith(f"{folder / 'pods.yaml'}:1:22: [0].address: must be an IP address with a port")


def test_a_place_for_no_ledger_is_named(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    for place, told in (("/", "is a directory; name a file"), ("lorapick.yaml", "is no ledger, and is left alone")):
        path.write_text(f"discovery: {{file: pods.yaml}}\nledger: {{path: {place}}}\n")
        code, _, err = run("check", str(path))
        assert code == 2
        assert err.startswith(f"{path}: ledger.path: ") and told in err


def test_files_that_are_not_there(folder: Path) -> None:
    missing = folder / "nope.yaml"
    [problem] = json.loads(run("check", str(missing), "--json")[1])["problems"]
    assert (problem["line"], problem["column"]) == (None, None)
    assert run("check", str(missing)) == (2, "", f"{missing}: cannot be read: No such file or directory\n")
    (folder / "pods.yaml").unlink()
    code, _, err = run("check", str(folder / "lorapick.yaml"))
    assert (code, err) == (2, f"{folder / 'pods.yaml'}: cannot be read: No such file or directory\n")


def test_pods_in_place_and_pods_of_kubernetes(folder: Path) -> None:
    path = folder / "lorapick.yaml"
    path.write_text('discovery: {pods: [{name: a, address: "10.0.0.1:8000"}]}\n')
    assert ", 1 pod from the configuration, " in run("check", str(path))[1]
    path.write_text("discovery: {kubernetes: {pool: p}}\n")
    assert ", pods of InferencePool p, " in run("check", str(path))[1]
    path.write_text("discovery: {kubernetes: {selector: {app: vllm}, target_ports: [8000]}}\n")
    assert ", pods of Kubernetes labels, " in run("check", str(path))[1]


OPEN = "base_model: base\nserver: {admin: '0.0.0.0:9091'}\ndiscovery: {pods: [{name: a, address: '10.0.0.1:8000'}]}\n"


def test_what_serve_would_not_start_with_is_refused_here_in_the_same_words(tmp_path: Path) -> None:
    path = tmp_path / "lorapick.yaml"
    path.write_text(OPEN)
    code, out, err = run("check", str(path))
    assert (code, out) == (2, "")
    app = typer.Typer()
    register_serve(app)
    result = CliRunner().invoke(app, ["--config", str(path)])
    assert result.exit_code == 2
    for words in ("server.admin: 0.0.0.0:9091 can be reached from other machines", "or listen on 127.0.0.1"):
        assert words in err and words in result.stderr


def test_what_other_machines_reach_is_said(tmp_path: Path) -> None:
    path = tmp_path / "lorapick.yaml"
    path.write_text(OPEN.replace("admin:", "metrics:"))
    code, out, _ = run("check", str(path))
    assert code == 0 and "other machines can reach:\n  server.metrics: 0.0.0.0:9091 shows names" in out
    code, out, _ = run("check", str(path), "--json")
    assert len(json.loads(out)["exposed"]) == 1


def test_a_certificate_that_is_not_here_may_be_where_the_picker_runs(tmp_path: Path) -> None:
    path = tmp_path / "lorapick.yaml"
    tls = "tls: {certificate: tls.crt, key: tls.key, extproc: {enabled: true}}\n"
    path.write_text(OPEN.replace("admin: '0.0.0.0:9091'", "extproc: '127.0.0.1:9002'") + tls)
    code, out, err = run("check", str(path))
    assert (code, err) == (0, ""), err
    assert "cannot be used as it is here" in out and "tls.crt" in out
