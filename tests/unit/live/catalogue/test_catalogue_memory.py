"""What names stood for: records, and the rule that they serve."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from lorapick.live.catalogue.fetch import Limits
from lorapick.live.catalogue.inspector import Inspector, Look
from lorapick.live.catalogue.memory import Known, Memory, file_name
from lorapick.model.adapters import Adapter
from lorapick.model.settings import PlacementSettings, Settings
from lorapick.testing.peft_files import weights_bytes, write_adapter
from lorapick.wire.adapter_source import AdapterSourceError, SourceReason
from lorapick.wire.peft import WEIGHTS_FILE


def known(name: str = "legal", fingerprint: str = "f1") -> Known:
    return Known(name=name, source="s", folder="/x", fingerprint=fingerprint, digest="d", mark=(1, 2, 3))


def test_a_record_is_read_again(tmp_path):
    Memory(tmp_path).keep(known())
    assert Memory(tmp_path).get("legal") == known()
    assert Memory(tmp_path).get("other") is None
    assert [file.name for file in (tmp_path / ".names").iterdir()] == ["legal.json"]


def test_without_a_store_the_process_remembers():
    memory = Memory(None)
    memory.keep(known())
    assert memory.get("legal") == known()


def test_the_first_to_tell_a_pod_decides(tmp_path):
    one, other = Memory(tmp_path), Memory(tmp_path)
    assert one.keep(known(fingerprint="f1")) == known(fingerprint="f1")
    assert other.keep(known(fingerprint="f2")) == known(fingerprint="f1")
    assert other.get("legal") == Memory(tmp_path).get("legal") == known(fingerprint="f1")


def test_the_same_weights_may_move(tmp_path):
    moved = Known(name="legal", source="t", folder="/y", fingerprint="f1", digest="d", mark=(4,))
    Memory(tmp_path).keep(known())
    assert Memory(tmp_path).keep(moved) == moved
    assert Memory(tmp_path).get("legal") == moved


@pytest.mark.parametrize("content", [b"{", b"[]", b"\xff", b'{"name": 1}'])
def test_a_broken_record_is_an_error_and_not_forgotten(tmp_path, content):
    Memory(tmp_path).keep(known())
    (tmp_path / ".names" / "legal.json").write_bytes(content)
    with pytest.raises(OSError, match=r"legal\.json"):
        Memory(tmp_path).get("legal")


@settings(max_examples=50)
@given(st.text(min_size=1), st.text(min_size=1))
def test_any_name_is_a_file_name_of_its_own(one, other):
    name = file_name(one)
    assert "/" not in name
    assert len(name.encode()) <= 255
    assert name not in (".", "..")
    assert (name == file_name(other)) is (one == other)


class LiveName(RuleBasedStateMachine):
    """Files change, pickers look, load and restart: pods are only told of the weights that the first load found."""

    def __init__(self) -> None:
        super().__init__()
        self.beside = Path(tempfile.mkdtemp(prefix="live-name-"))
        self.folder = self.beside / "legal"
        self.fill = 0
        self.first: int | None = None
        self.last: Look | None = None
        write_adapter(self.folder)
        self.restart()

    @rule()
    def restart(self) -> None:
        self.adapter = Adapter(name="legal", source="legal", declared=True)
        told = Settings(adapters=(self.adapter,), placement=PlacementSettings(store="store"))
        self.inspector = Inspector(told, beside=self.beside, hub=None, stopped=lambda: False)
        self.last = None

    @rule(fill=st.integers(0, 2))
    def change(self, fill: int) -> None:
        self.fill = fill
        (self.folder / WEIGHTS_FILE).unlink(missing_ok=True)
        (self.folder / WEIGHTS_FILE).write_bytes(weights_bytes(fill=fill))

    @rule()
    def remove(self) -> None:
        self.fill = -1
        (self.folder / WEIGHTS_FILE).unlink(missing_ok=True)

    @rule(load=st.booleans())
    def look(self, load: bool) -> None:
        look = self.inspector.look(self.adapter, self.last, load=load)
        good = self.fill >= 0 and self.first in (None, self.fill)
        assert (look.problem is None) is good
        if self.fill >= 0 and not good:
            assert look.problem.reason == SourceReason.CHANGED
        if load and good:
            self.first = self.fill
            assert look.facts.fingerprint is not None
        self.last = look

    @rule()
    def is_unchanged_only_if_it_is(self) -> None:
        if self.last is not None and self.inspector.unchanged(self.last):
            again = self.inspector.look(self.adapter, None, load=False)
            assert str(again.problem) == str(self.last.problem)

    @invariant()
    def nothing_but_records_is_in_the_store(self) -> None:
        store = self.beside / "store"
        assert not store.exists() or [each.name for each in store.iterdir()] == [".names"]

    def teardown(self) -> None:
        shutil.rmtree(self.beside)


TestLiveName = LiveName.TestCase
TestLiveName.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)


def test_what_is_not_remote_cannot_be_fetched(tmp_path):
    told = Settings(placement=PlacementSettings(store="store"))
    inspector = Inspector(told, beside=tmp_path, hub=None, stopped=lambda: False)
    with pytest.raises(AdapterSourceError, match="nothing to be fetched"):
        inspector.fetch(Adapter(name="a", source="/x"), limits=Limits())
