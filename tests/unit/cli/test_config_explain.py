"""`lorapick config explain`, and configurations of llm-d's picker wherever a configuration is taken."""

import inspect
import json
import shutil
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner

from lorapick.cli.config import examine, register
from lorapick.cli.config_explain import SECTIONS, explanation, lines
from lorapick.cli.loading import load
from lorapick.cli.up import up
from lorapick.cli.up_options import plan_of
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError, settings_hash
from lorapick.wire.config.settings import RESERVED

ROOT = Path(__file__).parents[3]
FILES = ROOT / "tests" / "unit" / "wire" / "config" / "epp" / "files"


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    app = typer.Typer()
    register(app)
    result = CliRunner().invoke(app, ["config", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A lorapick.yaml that names llm-d's file, pods, and both files by themselves."""
    for path in FILES.glob("*.yaml"):
        shutil.copy(path, tmp_path / path.name)
    shutil.copy(ROOT / "examples" / "pods.yaml", tmp_path / "pods.yaml")
    (tmp_path / "lorapick.yaml").write_text(
        "discovery: {file: pods.yaml}\npicking: {endpoint_picker_config: flow.yaml, fallbacks: 1}\n"
    )
    return tmp_path


def test_a_file_of_llm_d_is_explained(folder: Path) -> None:
    code, out, err = run("explain", folder / "flow.yaml")
    assert (code, err) == (0, "")
    told = out.splitlines()
    assert told[0] == f"{folder / 'flow.yaml'} is an EndpointPickerConfig"
    assert "    6  queue-scorer" in told
    assert "    7  active-request-scorer {idleThreshold: 2, maxBusyScore: 0.5}" in told
    assert "   10  utilization-detector [differs] {queueDepthThreshold: 3" in out
    assert "    -  max-score-picker" in told
    assert any(
        "filters utilization-detector; scores 2 × queue-scorer + 1 × active-request-scorer" in line for line in told
    )
    assert told.index("there although the file does not say so:") < told.index("otherwise than with llm-d:")


def test_as_values(folder: Path) -> None:
    code, out, _ = run("explain", folder / "old.yaml", "--json")
    said = json.loads(out)
    assert (code, said["ok"], said["kind"]) == (0, True, "EndpointPickerConfig")
    assert {"field": "plugins[0]", "line": 6, "what": "prefill-header-handler", "support": "always"}.items() <= said[
        "parts"
    ][0].items()
    assert all(part["line"] is None for part in said["injected"])
    assert len(said["deprecated"]) == 7


def test_lorapick_yaml_is_explained_with_the_file_that_it_names(folder: Path) -> None:
    explained = explanation(folder / "lorapick.yaml")
    assert explained.kind == "lorapick"
    assert [part.what for part in explained.parts] == ["discovery", "picking"]
    assert explained.parts[1].parameters == "fallbacks 1 (else 2), endpoint_picker_config flow.yaml (else None)"
    assert explained.includes[0].kind == "EndpointPickerConfig"
    assert any("flow.yaml is an EndpointPickerConfig" in line for line in lines(explained))
    example = explanation(ROOT / "examples" / "lorapick.yaml")
    assert {part.what for part in example.parts} >= {"picking", "adapters", "server"}


def test_every_section_has_words() -> None:
    named = {"default_engine": "defaults", "catalogue": "adapters"}
    assert {named.get(name, name) for name in Settings.__struct_fields__} | set(RESERVED) == set(SECTIONS)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("lorapick.yaml", "picking: {endpoint_picker_config: gone.yaml}\n", "gone.yaml: cannot be read"),
        ("lorapick.yaml", "picking: {endpoint_picker_config: lorapick.yaml}\n", "apiVersion"),
        ("flow.yaml", "kind: EndpointPickerConfig\nplugins: []\n", 'flow.yaml:1:1: the key "apiVersion" is missing'),
        ("lorapick.yaml", "pikking: {}\n", 'did you mean "picking"?'),
        ("nobody.yaml", None, "cannot be read"),
    ],
)
def test_mistakes_end_with_2(folder: Path, name: str, content: str | None, message: str) -> None:
    if content is not None:
        (folder / name).write_text(content)
    code, out, err = run("explain", folder / name)
    assert (code, out) == (2, "")
    assert message in err
    code, out, _ = run("explain", folder / name, "--json")
    assert code == 2
    assert message.split(": ")[-1] in " ".join(
        f"{problem['message']} {problem['hint']} {problem['field']}" for problem in json.loads(out)["problems"]
    )


def test_the_check_takes_them_too(folder: Path) -> None:
    checked = examine(folder / "lora.yaml")
    assert (checked.policy, checked.pods) == ("endpoint-picker-config", 0)
    checked = examine(folder / "lorapick.yaml")
    assert (checked.policy, checked.pods) == ("endpoint-picker-config", 4)
    (folder / "flow.yaml").write_text("kind: EndpointPickerConfig\nplugins: [{type: nothing}]\n")
    code, _, err = run("check", folder / "lorapick.yaml")
    assert code == 2 and "flow.yaml:2:18: plugins[0].type: no such plugin type" in err


def test_pods_get_what_the_file_says_of_them(folder: Path) -> None:
    loaded = load(folder / "lorapick.yaml")
    assert {pod.limits.max_queue for pod in loaded.pods} == {3}
    assert loaded.settings.picking.fallbacks == 1


def test_a_file_by_itself_needs_pods(folder: Path) -> None:
    alone = load(folder / "files.yaml")
    assert [pod.address for pod in alone.pods] == ["10.0.0.7:8000", "[fd00::7]:8001"]
    assert alone.pods_file == folder / "endpoints.yaml"
    with pytest.raises(ConfigError, match="says nothing of where pods are") as caught:
        load(folder / "lora.yaml")
    assert "picking: {endpoint_picker_config: lora.yaml}" in str(caught.value)
    assert load(folder / "lora.yaml", without_pods=True).pods == ()


@pytest.mark.parametrize("name", ["lorapick.yaml", "files.yaml"])
def test_up_takes_them_from_any_directory(folder: Path, name: str) -> None:
    flags = {each: parameter.default for each, parameter in inspect.signature(up).parameters.items()}
    made = plan_of(flags | {"config": folder / name})
    picker = made.options.configuration["picking"]["endpoint_picker_config"]
    assert Path(picker).is_absolute() and Path(picker).parent == folder
    assert made.options.policy == "endpoint-picker-config"
    plain = plan_of(flags | {"config": folder / name, "policy": "cost"})
    assert plain.options.configuration["picking"]["policy"] == "cost"
    assert "endpoint_picker_config" not in plain.options.configuration["picking"]


def test_settings_of_such_files_go_through_an_event_log(folder: Path) -> None:
    for path in sorted(folder.glob("*.yaml")):
        if path.name in ("endpoints.yaml", "pods.yaml"):
            continue
        settings = load(path, without_pods=True).settings
        again = msgspec.json.decode(msgspec.json.encode(settings), type=Settings)
        assert settings_hash(again) == settings_hash(settings)
