"""Folders of PEFT adapters as declared adapters."""

import json
from pathlib import Path

import pytest

from lorapick.live.catalogue import CatalogueError, read_catalogue, with_catalogue
from lorapick.model.adapters import Adapter
from lorapick.model.settings import Settings
from lorapick.testing.peft_files import weights_bytes, write_adapter
from lorapick.wire.peft import WEIGHTS_FILE


def _adapter(folder: Path, name: str, config: object) -> Path:
    (folder / name).mkdir()
    file = folder / name / "adapter_config.json"
    file.write_text(config if isinstance(config, str) else json.dumps(config))
    return file


def test_reads_rank_and_targets_of_each_folder(tmp_path: Path) -> None:
    _adapter(tmp_path, "legal", {"r": 16, "target_modules": ["q_proj", "v_proj"], "peft_type": "LORA"})
    _adapter(tmp_path, "code", {"r": 64, "target_modules": "all-linear"})
    (tmp_path / "notes").mkdir()
    code, legal = read_catalogue(tmp_path)
    assert (code.name, code.rank, code.targets, code.declared) == ("code", 64, ("all-linear",), True)
    assert (legal.name, legal.rank, legal.targets, legal.source) == (
        "legal", 16, ("q_proj", "v_proj"), str(tmp_path / "legal"),
    )  # fmt: skip


@pytest.mark.parametrize("config", ["{", {"target_modules": ["q_proj"]}, {"r": "sixteen"}])
def test_says_which_file_is_wrong(tmp_path: Path, config: object) -> None:
    file = _adapter(tmp_path, "broken", config)
    with pytest.raises(CatalogueError, match=r"adapter_config\.json") as caught:
        read_catalogue(tmp_path)
    assert str(file) in str(caught.value)


def test_a_revision_in_the_folders_name_is_the_adapters(tmp_path: Path) -> None:
    write_adapter(tmp_path / "legal@7", rank=16)
    (found,) = read_catalogue(tmp_path)
    assert (found.name, found.revision, found.rank) == ("legal@7", "7", 16)
    assert (found.size, found.targets) == (512, ("q_proj", "v_proj"))


def test_sources_are_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_adapter(tmp_path / "fleet" / "peft" / "legal")
    monkeypatch.chdir(tmp_path)
    (found,) = with_catalogue(Settings(catalogue="peft"), beside=Path("fleet")).adapters
    assert found.source == str(folder)


def test_weights_that_are_not_whole_yet_leave_the_size_unknown(tmp_path: Path) -> None:
    folder = write_adapter(tmp_path / "legal", rank=16)
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=16)[:-1])
    (found,) = read_catalogue(tmp_path)
    assert (found.rank, found.size, found.targets) == (16, None, ("q_proj", "v_proj"))


def test_a_missing_folder_and_a_comma_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="no directory"):
        read_catalogue(tmp_path / "absent")
    _adapter(tmp_path, "a,b", {"r": 8})
    with pytest.raises(CatalogueError, match="comma"):
        read_catalogue(tmp_path)


def test_declarations_by_name_go_before_the_catalogue(tmp_path: Path) -> None:
    (tmp_path / "peft").mkdir()
    _adapter(tmp_path / "peft", "legal", {"r": 16})
    _adapter(tmp_path / "peft", "code", {"r": 64})
    settings = Settings(catalogue="peft", adapters=(Adapter(name="legal", rank=8, declared=True),))
    both = with_catalogue(settings, beside=tmp_path)
    assert [(adapter.name, adapter.rank) for adapter in both.adapters] == [("code", 64), ("legal", 8)]
    assert with_catalogue(Settings(), beside=tmp_path) == Settings()
