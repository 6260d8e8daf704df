"""Adapters on a file system that pods see too: paths for loads, and what is told of files."""

import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from catalogue_kit import Kit

from lorapick.live.catalogue import SourceReason, with_catalogue
from lorapick.live.ports import NoSourceError, SourceError
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod
from lorapick.model.settings import Settings
from lorapick.testing.peft_files import config_bytes, weights_bytes, write_adapter
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE


def adapter(name="legal@7", source="peft/legal@7", **more) -> Adapter:
    return Adapter(name=name, source=source, **more)


def sha256(folder: Path) -> str:
    return hashlib.sha256((folder / WEIGHTS_FILE).read_bytes()).hexdigest()


async def refused(kit: Kit, name: str = "legal@7") -> SourceError:
    with pytest.raises(SourceError) as caught:
        await kit.resolve(name)
    return caught.value


@pytest.fixture
def folder(tmp_path):
    return write_adapter(tmp_path / "peft" / "legal@7", rank=16)


async def test_a_pod_is_told_the_whole_path_and_the_core_the_facts(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    assert await kit.resolve("legal@7") == str(folder)
    (told,) = kit.news()
    assert (told.adapter, told.problem) == ("legal@7", None)
    assert (told.facts.rank, told.facts.size, told.facts.path) == (16, 512, str(folder))
    assert told.facts.fingerprint == sha256(folder)


async def test_what_the_catalogues_folder_has_is_resolved(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    beside = Path(tmp_path.name)
    settings = with_catalogue(Settings(catalogue="peft"), beside=beside)
    assert await Kit(beside, *settings.adapters).resolve("legal@7") == str(folder)


async def test_a_round_tells_what_is_new_once_and_reads_no_weights(tmp_path, folder):
    kit = Kit(tmp_path, adapter(), Adapter(name="pod-knows"))
    (told,) = await kit.look()
    assert (told.facts.rank, told.facts.fingerprint) == (16, None)
    assert await kit.look() == []
    kit.adapters["legal@7"] = msgspec.structs.replace(kit.adapters["legal@7"], rank=8)
    (told,) = await kit.look()
    assert told.problem == "declared with rank 8, its files have 16; correct one"
    kit.adapters.clear()
    assert await kit.look() == []


async def test_weights_that_change_before_a_load_are_nobodys_business(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    await kit.look()
    write_adapter(folder, rank=32, fill=1)
    (told,) = await kit.look()
    assert (told.problem, told.facts.rank) == (None, 32)
    assert await kit.resolve("legal@7") == str(folder)


@pytest.mark.parametrize("store", [None, "store"])
async def test_weights_that_change_under_a_live_name_are_refused(tmp_path, folder, store):
    kit = Kit(tmp_path, adapter(), store=store)
    await kit.resolve("legal@7")
    kit.news()
    old = (folder / WEIGHTS_FILE).read_bytes()
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=16, fill=1))
    (told,) = await kit.look()
    assert "weights changed under a live name" in told.problem
    assert told.problem.endswith("put those back, or declare the new ones as legal@REVISION")
    assert (await refused(kit)).reason == SourceReason.CHANGED
    assert await kit.look() == []
    (folder / WEIGHTS_FILE).write_bytes(old)
    (told,) = await kit.look()
    assert told.problem is None
    assert await kit.resolve("legal@7") == str(folder)


async def test_a_load_sees_a_change_that_no_round_saw(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    await kit.resolve("legal@7")
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=16, fill=1))
    assert (await refused(kit)).reason == SourceReason.CHANGED


async def test_what_a_name_stood_for_survives_a_restart(tmp_path, folder):
    await Kit(tmp_path, adapter(), store="store").resolve("legal@7")
    kit = Kit(tmp_path, adapter(), store="store")
    (told,) = await kit.look()
    assert (told.problem, told.facts.fingerprint) == (None, sha256(folder))
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=16, fill=1))
    kit = Kit(tmp_path, adapter(), store="store")
    (told,) = await kit.look()
    assert "changed under a live name" in told.problem
    # Without a store nobody remembers.
    assert await Kit(tmp_path, adapter()).resolve("legal@7") == str(folder)


async def test_another_pickers_load_counts_too(tmp_path, folder):
    one, other = (Kit(tmp_path, adapter(), store="store") for _ in range(2))
    await other.look()
    await one.resolve("legal@7")
    write_adapter(folder, rank=16, fill=1)
    assert (await refused(other)).reason == SourceReason.CHANGED


async def test_files_that_are_only_touched_are_the_same(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    await kit.resolve("legal@7")
    kit.news()
    os.utime(folder / WEIGHTS_FILE, ns=(1, 1))
    assert await kit.look() == []
    (folder / CONFIG_FILE).write_bytes(config_bytes(rank=16, targets=("v_proj", "q_proj")))
    assert await kit.look() == []


async def test_what_weights_mean_must_not_change_either(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    await kit.resolve("legal@7")
    (folder / CONFIG_FILE).write_bytes(config_bytes(rank=16, use_rslora=True))
    assert "adapter_config.json changed under a live name" in str(await refused(kit))


async def test_a_file_that_is_gone_is_told_and_its_return_too(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    await kit.resolve("legal@7")
    kit.news()
    folder.rename(tmp_path / "aside")
    (told,) = await kit.look()
    assert told.problem.startswith(f"{folder}: no such folder; put the adapter")
    assert await kit.look() == []
    (tmp_path / "aside").rename(folder)
    (told,) = await kit.look()
    assert told.problem is None


async def test_a_file_that_is_half_copied_is_told(tmp_path, folder):
    (folder / WEIGHTS_FILE).write_bytes(weights_bytes(rank=16)[:-100])
    kit = Kit(tmp_path, adapter())
    (told,) = await kit.look()
    assert "was cut off" in told.problem
    (folder / WEIGHTS_FILE).unlink()
    (told,) = await kit.look()
    assert "no adapter_model.safetensors" in told.problem


async def test_pickled_weights_are_told_of_without_being_read(tmp_path, folder):
    (folder / WEIGHTS_FILE).rename(folder / "adapter_model.bin")
    kit = Kit(tmp_path, adapter())
    assert await kit.resolve("legal@7") == str(folder)
    (told,) = kit.news()
    assert (told.facts.rank, told.facts.size) == (16, None)


async def test_a_declared_sha256_is_compared_before_any_load(tmp_path, folder):
    kit = Kit(tmp_path, adapter(sha256=sha256(folder)))
    (told,) = await kit.look()
    assert (told.problem, told.facts.fingerprint) == (None, sha256(folder))
    kit = Kit(tmp_path, adapter(sha256="0" * 64))
    (told,) = await kit.look()
    assert told.problem == (
        f"sha256 of its weights is {sha256(folder)}, declared is {'0' * 64}; "
        "get the right file, or correct the declaration"
    )
    assert (await refused(kit)).reason == SourceReason.MISMATCH


async def test_another_base_model_is_refused_unless_it_is_declared(tmp_path):
    write_adapter(tmp_path / "peft" / "legal@7", base_model_name_or_path="Qwen/Qwen3-8B")
    kit = Kit(tmp_path, adapter(), base_model="meta-llama/Llama-3.1-8B-Instruct")
    assert "made for Qwen/Qwen3-8B (adapter_config.json)" in str(await refused(kit))
    declared = adapter(base_model="meta-llama/Llama-3.1-8B-Instruct")
    assert await Kit(tmp_path, declared, base_model="meta-llama/Llama-3.1-8B-Instruct").resolve("legal@7")
    assert await Kit(tmp_path, adapter()).resolve("legal@7")


async def test_a_name_with_a_comma_is_refused(tmp_path, folder):
    assert "has a comma" in str(await refused(Kit(tmp_path, adapter(name="a,b")), "a,b"))


async def test_paths_that_only_pods_see_are_told_as_they_are_written(tmp_path):
    kit = Kit(
        tmp_path,
        adapter("a", "/nowhere/at/all"),
        adapter("b", "acme/from-the-hub"),
        adapter("c", "/nowhere/at/all", sha256="0" * 64),
    )
    assert await kit.resolve("a") == "/nowhere/at/all"
    assert await kit.resolve("b") == "acme/from-the-hub"
    assert [told.facts.rank for told in kit.news()] == [None, None]
    assert "cannot be seen here to compare" in str(await refused(kit, "c"))
    assert [told.adapter for told in kit.news()] == ["c"]
    assert await kit.look() == []


async def test_only_declared_places_are_told(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    assert (await refused(kit, "unknown")).reason == SourceReason.UNDECLARED
    kit.adapters["seen"] = Adapter(name="seen", source=str(folder))
    assert (await refused(kit, "seen")).reason == SourceReason.UNDECLARED
    kit.adapters["bare"] = Adapter(name="bare", declared=True)
    assert (await refused(kit, "bare")).reason == SourceReason.UNDECLARED
    kit.adapters["late"] = Adapter(name="late", source="/etc", declared=True)
    assert "declare it in the configuration, or name prefixes in placement.sources" in str(await refused(kit, "late"))


async def test_it_answers_who_tells_pods_as_they_ask(tmp_path, folder):
    kit = Kit(tmp_path, adapter())
    with pytest.raises(SourceError, match="is not where legal@7 is loaded from now"):
        kit.catalogue.allow("legal@7", str(folder))
    assert await kit.catalogue("legal@7", Pod(name="pod-01", address="10.0.0.1:8000")) == str(folder)
    kit.catalogue.allow("legal@7", str(folder))
    with pytest.raises(SourceError):
        kit.catalogue.allow("legal@7", "/etc")
    with pytest.raises(NoSourceError) as caught:
        await kit.resolve("other")
    assert (caught.value.reason, caught.value.lasting) == ("undeclared", True)


async def test_prefixes_say_what_is_allowed(tmp_path, folder):
    kit = Kit(tmp_path, adapter(), adapter("out", "peft/../../etc"), sources=("peft",))
    assert await kit.resolve("legal@7") == str(folder)
    assert (await refused(kit, "out")).reason == SourceReason.NOT_ALLOWED
    kit.adapters["late"] = Adapter(name="late", source=str(folder), declared=True)
    assert await kit.resolve("late") == str(folder)


async def test_a_record_that_cannot_be_read_is_told(tmp_path, folder):
    await Kit(tmp_path, adapter(), store="store").resolve("legal@7")
    (record,) = (tmp_path / "store" / ".names").iterdir()
    record.write_bytes(b"{")
    found = await refused(Kit(tmp_path, adapter(), store="store"))
    assert str(record) in str(found)
    assert "delete it if no pod has legal@7 any more" in str(found)
