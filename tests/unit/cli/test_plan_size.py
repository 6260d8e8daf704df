"""`lorapick plan size`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lorapick.cli.main import program
from lorapick.testing.peft_files import config_bytes, write_adapter
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "plan-size.md"
LEGAL = ("--model", "llama-3.1-70b", "--rank", 16, "--alpha", 32)


def run(*arguments: object) -> tuple[int, str, str]:
    words = ["plan", "size", *map(str, arguments)]
    result = CliRunner().invoke(program(words), words)
    return result.exit_code, result.stdout, result.stderr


def test_the_page_shows_what_the_command_says() -> None:
    code, out, err = run(*LEGAL)
    assert (code, err) == (0, "")
    shown = "\n".join(line.rstrip() for line in out.splitlines())
    assert f"$ lorapick plan size --model llama-3.1-70b --rank 16 --alpha 32\n{shown}\n" in PAGE.read_text()


@pytest.mark.parametrize(("model", "targets"), [("phi-3-mini", "qkv_proj"), ("llama-3.1-8b", "q_proj, v_proj")])
def test_without_targets_queries_and_values_are_taken_as_the_model_has_them(model: str, targets: str) -> None:
    code, out, _ = run("--model", model, "--rank", 16)
    assert code == 0 and out.startswith(f"rank 16 on {targets} of {model}\n")


def test_a_type_that_is_read_by_its_keys_is_said_to_be(tmp_path: Path) -> None:
    keys = {"model_type": "llama9", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 96, "vocab_size": 128,
            "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(keys))
    code, out, _ = run("--model", tmp_path, "--rank", 4)
    assert code == 0 and "model_type 'llama9' is not known here: read by its keys" in out


def test_json_has_exact_numbers_by_module() -> None:
    found = json.loads(run(*LEGAL, "--json")[1])
    figures = {each["name"]: each["value"] for each in found["figures"]}
    assert (figures["parameters"], figures["bytes (float16)"]) == (32_768_000, 65_536_000)
    assert [each["parameters"] for each in found["modules"]] == [20_971_520, 11_796_480]
    assert {"module", "count", "inputs", "outputs", "rank", "scale", "dtype", "size", "parameters"} == set(
        found["modules"][0]
    )


def test_other_targets_types_and_work() -> None:
    found = json.loads(run("--model", "llama-3.1-70b", "-r", 64, "--targets", "q,k,v", "--dtype", "bf16", "--json")[1])
    assert {each["name"]: each["value"] for each in found["figures"]}["bytes (bfloat16)"] == 356_515_840
    out = run(*LEGAL, "--show-work")[1]
    assert "16 × (8192 + 8192)" in out and "huggingface.co/meta-llama" in out


def test_a_page_with_plots(tmp_path: Path) -> None:
    file = tmp_path / "size.html"
    assert run(*LEGAL, "--html", file)[0] == 0
    assert "<svg" in file.read_text() and "megabytes by rank" in file.read_text()


def test_an_adapters_folder(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a", rank=2)
    code, out, _ = run(folder, "--json")
    found = json.loads(out)
    assert code == 0
    assert {each["name"]: each["value"] for each in found["figures"]}["bytes (BF16)"] == 2 * 2 * 2 * 2 * 4
    size = (folder / WEIGHTS_FILE).stat().st_size
    assert any(note.startswith(f"the file has {size:,} bytes: 64 of tensors") for note in found["notes"])


def test_a_folder_of_another_model(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "a", rank=2, base_model_name_or_path="meta-llama/Llama-3.1-8B-Instruct")
    notes = json.loads(run(folder, "--json")[1])["notes"]
    assert any("comes to 851,968 parameters on llama-3.1-8b, the file has 32" in note for note in notes)


def test_a_folder_without_weights(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / CONFIG_FILE).write_bytes(config_bytes(rank=16))
    assert "is not built in; give --model" in run(folder)[2]
    found = json.loads(run(folder, "--model", "llama-3.1-70b", "--json")[1])
    assert found["figures"][0]["value"] == 32_768_000
    assert "no adapter_model.safetensors: sizes are what the configuration comes to" in found["notes"]


def test_a_models_own_configuration(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(
        '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, '
        '"num_attention_heads": 4, "vocab_size": 100}'
    )
    assert json.loads(run("--model", file, "--rank", 4, "--json")[1])["figures"][0]["value"] == 2 * 4 * 2 * 128


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "give an adapter's folder, or --model and --rank"),
        (("--model", "llama-3.1-70b"), "give an adapter's folder, or --model and --rank"),
        (("--model", "lama-3.1-70b", "--rank", 16), "near: llama-3.1-70b"),
        (("--model", "llama-3.1-70b", "--rank", -16), "rank -16: a rank is from 1 to 4096"),
        (("--model", "llama-3.1-70b", "--rank", 0), "rank 0"),
        (("--model", "llama-3.1-70b", "--rank", 2048), "above 1024 a pair of matrices is no smaller"),
        (("--model", "llama-3.1-70b", "--rank", 16, "--targets", "query"), "target 'query': no such module"),
        (("--model", "llama-3.1-70b", "--rank", 16, "--targets", "(q"), "'(q' is no regular expression"),
        (("--model", "llama-3.1-70b", "--rank", 16, "--alpha", "nan"), "alpha nan"),
        (("--model", "llama-3.1-70b", "--rank", 16, "--dtype", "int3"), "dtype 'int3'"),
        (("none",), "none: no such folder"),
        (("none", "--rank", 16), "in the adapter's own configuration"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[object, ...], words: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lorapick plan size: ") and words in err


def test_a_file_that_was_cut_off(tmp_path: Path) -> None:
    weights = write_adapter(tmp_path / "a") / WEIGHTS_FILE
    weights.write_bytes(weights.read_bytes()[:-1])
    code, _, err = run(tmp_path / "a")
    assert code == 2 and "it was cut off: copy it again" in err
