"""Whatever files and options say, `lorapick check` and `lorapick plan size` answer, or say why not: exit code 2."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from lorapick.cli import check, plan_size
from lorapick.testing.peft_files import config_bytes, weights_bytes
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE

FLEET = """
base_model: meta-llama/Llama-3.1-8B
discovery:
  pods: [{name: a, address: "10.0.0.1:80"}, {name: b, address: "10.0.0.2:80"}]
defaults: {max_loras: 2}
adapters: {list: [{name: legal, source: /a/legal, rank: 16}, {name: medical, source: /a/medical, pin: {replicas: 1}}]}
slo: {latency_p95: 1s}
"""
FORMATS = ("text", "json", "junit", "github")
ODD = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


def says_why(text: str) -> bool:
    """In one of the forms that programs read."""
    if text.startswith("{"):
        return list(json.loads(text)) == ["error"]
    if text.startswith("<"):
        return ElementTree.fromstring(text).find("testcase/error") is not None
    return text.startswith("::error ") and text.count("\n") == 1


def run(command: str, *arguments: object) -> Result:
    app = typer.Typer()
    (check if command == "check" else plan_size).register(app)
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in ((0, 1, 2) if command == "check" else (0, 2)), result.output
    if result.exit_code == 2 and not result.stderr.startswith("Usage:"):
        assert result.stderr.startswith("lorapick "), result.stderr
        assert result.stdout == "" or says_why(result.stdout), result.stdout
        assert len(result.stderr.partition(": ")[2].strip()) > 10, result.stderr
    return result


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fleet") / "fleet.yaml"
    file.write_text(FLEET)
    return file


# -- rollouts

names = st.sampled_from(["legal", "medical", "new", "", " ", "a,b", "a/b", "\x1b[31m", "é", "::error::", "[red]"]) | (
    st.text(max_size=4)
)
numbers = (
    st.sampled_from([0, 1, -1, 50, 1e-300, 5e-324, 1e300, 10**400, float("inf"), float("nan"), True])
    | st.integers()
    | st.floats()
)
odd = st.none() | numbers | names | st.just([]) | st.just({}) | st.just([[1]])
listed = names | st.dictionaries(
    st.sampled_from(["name", "rate", "rank", "base_model", "source", "pin", "nam"]),
    odd | st.just({"replicas": 1}) | st.just({"replicas": -1}) | st.just({"pods": ["a", "x"]}),
    max_size=4,
).flatmap(lambda entry: st.just(entry) | names.map(lambda name: {**entry, "name": name}))
splits = st.dictionaries(names, numbers, max_size=4)
documents = (
    st.lists(listed, max_size=4)
    | splits
    | st.lists(splits, max_size=3)
    | st.fixed_dictionaries(
        {},
        optional={
            "adapters": st.lists(listed, max_size=4) | odd,
            "add": st.lists(listed, max_size=3) | odd,
            "remove": st.lists(names, max_size=2) | odd,
            "split": st.lists(splits, max_size=2) | splits | odd,
        },
    )
    | odd
)
signs = st.sampled_from(["", "+", "-", "+ ", "#"])
behind = st.sampled_from(["", " 1", " -1", " nan", " 1e999", " x"])
lines = st.lists(st.tuples(signs, names, behind).map("".join), max_size=5).map("\n".join)
rollouts = (
    documents.map(lambda each: (".json", json.dumps(each).encode()))
    | lines.map(lambda each: (".txt", each.encode("utf-8", "replace")))
    | st.tuples(st.sampled_from([".txt", ".yaml", ".json"]), st.binary(max_size=60))
)


@ODD
@given(rollouts, st.sampled_from(FORMATS), st.sampled_from([(), ("--rate", 3)]))
@example((".yaml", b"a: " + b"9" * 400), "text", ())
@example((".yaml", b"a: !!int ''"), "text", ())
@example((".yaml", b"a: !!bool x\nb: !!timestamp y"), "text", ())
@example((".yaml", b"&a [*a]"), "text", ())
@example((".json", b'{"split": null}'), "text", ())
@example((".yaml", b"[" * 100_000), "text", ())
def test_any_rollout(fleet: Path, rollout: tuple[str, bytes], form: str, rate: tuple[object, ...]) -> None:
    file = fleet.parent / f"rollout{rollout[0]}"
    file.write_bytes(rollout[1])
    page = fleet.parent / "page.html"
    run("check", file, "--config", fleet, *rate, "--format", form, "--show-work", "--html", page)
    run("check", "--today", file, "--config", fleet, *rate, "--format", form)


def test_what_aliases_repeat_is_not_written_out(fleet: Path) -> None:
    """A billion words in nine lines."""
    rows = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    rows += [f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 10)]
    file = fleet.parent / "bomb.yaml"
    for last in ("split: *x9", "adapters: *x9", "remove: *x9"):
        file.write_text("\n".join([*rows, last]))
        assert len(run("check", file, "--config", fleet).stderr) < 1000
        entry = "\n  ".join(["- y:", *(f"  {row}" for row in rows)])
        file.write_text(f"{last.partition(':')[0]}:\n  {entry}\n")
        assert len(run("check", file, "--config", fleet).stderr) < 1000


def option(name: str, *values: object) -> st.SearchStrategy[tuple[str, str]]:
    return st.tuples(st.just(f"--{name}"), st.sampled_from([*map(str, values)]))


AMOUNTS = (0, -1, 1, "nan", "inf", "1e308", "5e-324", "1e-9", "1e9", 400, "x", "")
WHOLE = (0, -1, 1, 3, 10_001, 100_001, 10**30, "x")
changed = st.one_of(
    *(option(name, *AMOUNTS) for name in ("rate", "zipf", "swap", "latency", "latency-p95")),
    option("slots", *WHOLE, 100_000),
    option("pods", *WHOLE),
    st.tuples(st.just("--pin"), names),
    st.tuples(st.just("--split"), names),
    option("split", "legal: 1, b: 1", "legal: nan", "x: 1", "legal: 1e308, b: 1e308"),
    option("model", "llama-3.1-8b", "lama", "/", "", "\0"),
)


@ODD
@given(st.lists(changed, max_size=3))
def test_any_options(fleet: Path, options: list[tuple[str, str]]) -> None:
    words = [word for option, value in options for word in (f"{option}={value}",)]
    run("check", "--config", fleet, *words, *([] if "--rate" in dict(options) else ["--rate=2"]))


# -- adapters' folders

TARGETS = (
    ["q_proj"], ["query"], ["mlp.down_proj"], [], "all-linear", "(q", ".*q_proj", "none", [1], 7, [""],
    ["q_proj", "lm_head"],
)  # fmt: skip
BASES = (None, "", "Qwen/Qwen3-8B", "meta-llama/Llama-3.1-8B-Instruct", "\x1b[31m", 7)
ODD_KEYS: dict[str, tuple[object, ...]] = {
    "target_modules": TARGETS,
    "rank_pattern": ({"q_proj": -1}, {"q_proj": 2000}, {"(": 4}, {"v_proj": 4}, [], {"q_proj": "4"}),
    "alpha_pattern": ({"q_proj": 1e308}, {"(": 4}),
    "lora_alpha": (0, -1, 16, 1e308, "16", None),
    "base_model_name_or_path": BASES,
    "modules_to_save": (["lm_head"], ["("], ["nothing"], "lm_head", None),
    "exclude_modules": (["q_proj"], "(", None),
    "layers_to_transform": ([0], 0, [-1], [10**30], []),
    "layers_pattern": ("(", ["layers"], "blocks"),
    "peft_type": ("LORA", "IA3", None),
    "use_dora": (True, "yes"),
    "use_rslora": (True, False),
    "bias": ("none", "all", 3),
}
configs = st.fixed_dictionaries(
    {"r": st.sampled_from([0, -1, 1, 8, 64, 1025, 4096, 4097, 10**30, "8", None, 1.5])},
    optional={key: st.sampled_from(values) for key, values in ODD_KEYS.items()},
)
WEIGHTS = (
    None, weights_bytes(rank=8), weights_bytes(rank=8)[:-1], weights_bytes(rank=2, targets=("query",)), b"", b"\xff" * 9
)  # fmt: skip


@ODD
@given(configs, st.sampled_from(WEIGHTS))
def test_any_adapter(fleet: Path, config: dict[str, object], weights: bytes | None) -> None:
    folder = fleet.parent / "adapters" / "odd"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CONFIG_FILE).write_text(json.dumps(config))
    (folder / WEIGHTS_FILE).unlink(missing_ok=True)
    if weights is not None:
        (folder / WEIGHTS_FILE).write_bytes(weights)
    run("check", folder, "--config", fleet, "--rate", 2)
    run("check", folder.parent, "--config", fleet, "--rate", 2, "--model", "qwen3-8b")
    run("plan size", folder)
    run("plan size", folder, "--model", "llama-3.1-8b", "--json")


@pytest.mark.parametrize(
    ("config", "weights", "words"),
    [
        (config_bytes(rank=-8), None, "r is -8; a rank is from 1 to 4096"),
        (config_bytes(rank_pattern={"q_proj": 0}), None, "rank_pattern['q_proj'] is 0"),
        (config_bytes(peft_type="IA3"), None, "peft_type is 'IA3'; only LORA can be served"),
        (b"{", None, "a PEFT adapter_config.json has at least `r`"),
        (config_bytes(), weights_bytes()[:-1], "it was cut off: copy it again"),
        (config_bytes(), weights_bytes()[:100], "this is no safetensors file, or a part of one"),
        (config_bytes(target_modules="(q"), None, "'(q' is no regular expression"),
    ],
)
def test_damaged_adapters_are_named(fleet: Path, config: bytes, weights: bytes | None, words: str) -> None:
    folder = fleet.parent / "named"
    folder.mkdir(exist_ok=True)
    (folder / CONFIG_FILE).write_bytes(config)
    (folder / WEIGHTS_FILE).unlink(missing_ok=True)
    if weights is not None:
        (folder / WEIGHTS_FILE).write_bytes(weights)
    for told in (
        run("check", folder, "--config", fleet, "--rate", 2),
        run("plan size", folder, "--model", "llama-3.1-8b"),
    ):
        assert told.exit_code == 2
        assert "named" in told.stderr and words in told.stderr


def test_weights_of_a_larger_rank_than_the_configuration(fleet: Path) -> None:
    folder = fleet.parent / "larger"
    folder.mkdir()
    (folder / CONFIG_FILE).write_bytes(config_bytes(rank=4))
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=8))
    told = run("check", folder, "--config", fleet, "--rate", 2)
    assert told.exit_code == 2 and "the two are not of one adapter: save it again" in told.stderr


@ODD
@given(st.integers(0, 400), st.binary(max_size=4), st.booleans())
def test_any_damage(fleet: Path, place: int, put: bytes, weights: bool) -> None:
    folder = fleet.parent / "damaged"
    folder.mkdir(exist_ok=True)
    for name, content in ((CONFIG_FILE, config_bytes()), (WEIGHTS_FILE, weights_bytes())):
        hit = weights == (name == WEIGHTS_FILE)
        (folder / name).write_bytes(content[:place] + put + content[place + len(put) :] if hit else content)
    run("check", folder, "--config", fleet, "--rate", 2)
    run("plan size", folder)


SIZED = {
    "--rank": ("16", "0", "-1", "5000", "4096", "1e3", "x", str(10**30)),
    "--alpha": ("16", "0", "-1", "nan", "inf", "1e308", "x"),
    "--targets": ("q,v", "", ",", "(", "all-linear", ".*", "query", "q_proj,", "lm_head", "\0", "*"),
    "--dtype": ("float16", "fp8", "int3", ""),
}
MODELS = ("llama-3.1-8b", "mixtral-8x7b-v0.1", "phi-4", "gemma-3-4b", "lama", "", "/", "\0", ".")
sized = st.fixed_dictionaries(
    {"--model": st.sampled_from(MODELS)},
    optional={key: st.sampled_from(values) for key, values in SIZED.items()},
)


@ODD
@given(sized, st.booleans())
def test_any_size(words: dict[str, str], as_json: bool) -> None:
    run("plan size", *(f"{option}={value}" for option, value in words.items()), *(["--json"] if as_json else []))
