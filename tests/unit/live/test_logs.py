from pathlib import Path

from lorapick.live.logs import new_log


def test_the_last_runs_log_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "envoy.log"
    assert new_log(log) == log
    for words in ("first", "second"):
        log.write_text(words)
        assert new_log(log) == log
        assert not log.exists()
        assert (tmp_path / "envoy.log.old").read_text() == words


def test_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    assert new_log(tmp_path / "none" / "x.log") == tmp_path / "none" / "x.log"
