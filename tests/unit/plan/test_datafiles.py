"""Files of lines."""

import gzip
import tracemalloc
from itertools import islice

import pytest
import zstandard

from lorapick.plan.datafiles import LONGEST_LINE, DataFileError, data_names, data_path, open_lines

CONTENT = b"one\r\n\ntwo\nthree"
LINES = [b"one\r\n", b"\n", b"two\n", b"three"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", CONTENT),
        ("packed.csv.gz", gzip.compress(CONTENT, mtime=0)),
        ("packed.csv.zst", zstandard.compress(CONTENT)),
        ("frames.csv.zst", zstandard.compress(CONTENT[:6]) + zstandard.compress(CONTENT[6:])),
    ],
)
def test_lines_are_the_same_however_they_are_packed(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert list(open_lines(tmp_path / name)) == LINES


def test_an_empty_file_has_no_lines(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert list(open_lines(tmp_path / "empty")) == []


@pytest.mark.parametrize("packed", [gzip.compress(CONTENT * 999, mtime=0), zstandard.compress(CONTENT * 999)])
@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_damage_is_told(tmp_path, packed, damage):
    path = tmp_path / ("x.gz" if packed.startswith(b"\x1f") else "x.zst")
    path.write_bytes({"cut": packed[:-1], "other": b"hello, world\n", "empty": b""}[damage])
    if (path.suffix, damage) == (".gz", "empty"):
        assert list(open_lines(path)) == []  # an empty file is what gzip makes of no members
        return
    with pytest.raises(DataFileError, match=f"{path} is damaged or no {path.suffix} file"):
        list(open_lines(path))


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(DataFileError, match="nowhere cannot be read: No such file"):
        list(open_lines(tmp_path / "nowhere"))
    with pytest.raises(DataFileError, match="cannot be read: Is a directory"):
        list(open_lines(tmp_path))


def test_a_line_without_end_is_refused(tmp_path):
    path = tmp_path / "zeros.zst"
    path.write_bytes(zstandard.compress(b"x\n" + bytes(40 * LONGEST_LINE)))
    with pytest.raises(DataFileError, match=r"zeros.zst:2: a line of more than 1,048,576 bytes"):
        list(open_lines(path))


def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "long.zst"
    # Squares, so that the content is not one long repetition.
    path.write_bytes(zstandard.compress(b"".join(b"%d,%d\n" % (number, number**2) for number in range(200_000))))
    lines = open_lines(path)
    tracemalloc.start()
    try:
        assert sum(1 for _ in islice(lines, 100_000)) == 100_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        lines.close()
    assert peak < 1_000_000


def test_the_projects_files_are_found():
    names = data_names()
    assert "traces/AzureLLMInferenceTrace_2023_conv.csv.zst" in names
    assert all(data_path(name).is_file() for name in names)
    assert sum(data_path(name).stat().st_size for name in names) < 5_000_000
    assert len(list(open_lines(data_path("calibration/vllm085_h100_multi_lora_runs_half.csv")))) == 152


@pytest.mark.parametrize("name", ["traces/none.csv", "../pyproject.toml", "traces", "/etc/passwd"])
def test_other_names_are_refused(name):
    with pytest.raises(DataFileError, match=f"no file {name} comes with lorapick; there are calibration/"):
        data_path(name)
