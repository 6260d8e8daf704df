"""A PEFT adapter's folder, as it is read."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lorapick.plan.sizes.folders import read_folder
from lorapick.testing.peft_files import config_bytes, weights_bytes, write_adapter
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE, PeftError


def test_both_files(tmp_path):
    found = read_folder(write_adapter(tmp_path / "a", rank=8))
    assert found.config.r == 8
    assert found.tensors is not None and sum(each.size for each in found.tensors.values()) == 2 * 2 * 2 * 8 * 4
    assert found.file_size == (tmp_path / "a" / WEIGHTS_FILE).stat().st_size


def test_without_weights(tmp_path):
    (write_adapter(tmp_path / "a") / WEIGHTS_FILE).unlink()
    found = read_folder(tmp_path / "a")
    assert (found.tensors, found.file_size) == (None, None)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(PeftError, match="none: no such folder; give the folder that PEFT saved"):
        read_folder(tmp_path / "none")
    with pytest.raises(PeftError, match=r"no adapter_config.json"):
        read_folder(tmp_path)


def test_weights_that_were_cut_off(tmp_path):
    folder = write_adapter(tmp_path / "a")
    content = (folder / WEIGHTS_FILE).read_bytes()
    for length in (0, 7, 8, 100, len(content) - 1):
        (folder / WEIGHTS_FILE).write_bytes(content[:length])
        with pytest.raises(PeftError, match=WEIGHTS_FILE):
            read_folder(folder)


@settings(max_examples=40)
@given(st.integers(0, 400), st.binary(max_size=4), st.booleans())
def test_any_damage_is_read_or_refused(tmp_path_factory, place, put, weights):
    folder = tmp_path_factory.mktemp("a")
    for name, content in ((CONFIG_FILE, config_bytes()), (WEIGHTS_FILE, weights_bytes())):
        hit = weights == (name == WEIGHTS_FILE)
        (folder / name).write_bytes(content[:place] + put + content[place + len(put) :] if hit else content)
    with contextlib.suppress(PeftError):
        assert read_folder(folder).config.r >= 1


def test_weights_that_are_no_file_are_refused(tmp_path):
    write_adapter(tmp_path / "a")
    weights = tmp_path / "a" / "adapter_model.safetensors"
    weights.unlink(missing_ok=True)
    weights.mkdir()
    with pytest.raises(PeftError, match="no regular file"):
        read_folder(tmp_path / "a")


def test_weights_without_lora_are_refused(tmp_path):
    write_adapter(tmp_path / "a")
    header = b'{"__metadata__":{}}'
    (tmp_path / "a" / "adapter_model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(PeftError, match="no tensors of LoRA"):
        read_folder(tmp_path / "a")


def test_shapes_without_bytes_are_refused(tmp_path):
    write_adapter(tmp_path / "a")
    header = b'{"x.lora_A.weight":{"dtype":"ODD","shape":[8,1000000],"data_offsets":[0,2]}}'
    (tmp_path / "a" / "adapter_model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"ab")
    with pytest.raises(PeftError, match="save it again"):
        read_folder(tmp_path / "a")
