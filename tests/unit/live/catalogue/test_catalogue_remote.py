"""Adapters that are fetched from a web server and from S3, by the real libraries."""

import asyncio
import hashlib
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from catalogue_kit import Kit
from catalogue_storage import Storage, storage

from lorapick.live.catalogue import Limits, Options, SourceReason
from lorapick.live.ports import SourceError
from lorapick.model.adapters import Adapter
from lorapick.testing.peft_files import config_bytes, weights_bytes
from lorapick.wire.peft import CONFIG_FILE, WEIGHTS_FILE

NAME = "legal@7"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """No proxies, no credentials but the test's own."""
    for name in ("NETRC", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY-1")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")


def files(rank: int = 8, fill: int = 0) -> dict[str, bytes]:
    return {CONFIG_FILE: config_bytes(rank=rank), WEIGHTS_FILE: weights_bytes(rank=rank, fill=fill)}


def sha256(of: dict[str, bytes]) -> str:
    return hashlib.sha256(of[WEIGHTS_FILE]).hexdigest()


def kit(beside: Path, server: Storage, *, options: Options | None = None, source: str | None = None, **more) -> Kit:
    adapter = Adapter(name=NAME, source=source or f"{server.url}/legal", **more)
    return Kit(beside, adapter, store="store", options=options)


async def refused(of: Kit, name: str = NAME) -> SourceError:
    with pytest.raises(SourceError) as caught:
        await of.resolve(name)
    return caught.value


def contents(folder: str | Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in a thread
            await asyncio.sleep(0.01)


def left(beside: Path) -> list[str]:
    """What is in the store, but for records."""
    return sorted(each.name for each in (beside / "store").iterdir() if each.name != ".names")


async def test_the_first_load_fetches_and_the_others_know(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        one = kit(tmp_path, server)
        assert await one.look() == []
        path = Path(await one.resolve(NAME))
        assert path == tmp_path / "store" / f"{NAME}@{sha256(files())[:12]}"
        assert contents(path) == files()
        assert (mode(path / WEIGHTS_FILE), mode(path)) == (0o444, 0o755)
        (told,) = one.news()
        assert (told.problem, told.facts.rank, told.facts.fingerprint) == (None, 8, sha256(files()))
        assert await one.resolve(NAME) == str(path)
        assert await one.look() == []
        again = kit(tmp_path, server)
        assert await again.resolve(NAME) == str(path)
        assert server.asked == [f"/legal/{CONFIG_FILE}", f"/legal/{WEIGHTS_FILE}"]


async def test_those_who_ask_meanwhile_share_the_fetch(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        one = kit(tmp_path, server)
        paths = await asyncio.gather(*(one.resolve(NAME) for _ in range(20)))
        assert len(set(paths)) == 1
        assert len(server.asked) == 2


async def test_no_more_than_two_fetch_at_once(tmp_path):
    async with storage() as server:
        names = [f"a{number}" for number in range(6)]
        for name in names:
            server.put(name, files())
        one = Kit(tmp_path, *(Adapter(name=name, source=f"{server.url}/{name}") for name in names), store="store")
        await asyncio.gather(*(one.resolve(name) for name in names))
        assert 1 <= server.most_at_once <= 2


async def test_who_gives_up_waiting_ends_it_for_nobody(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        server.closed.clear()
        one = kit(tmp_path, server)
        impatient, patient = (asyncio.create_task(one.resolve(NAME)) for _ in range(2))
        await asyncio.sleep(0.1)
        impatient.cancel()
        server.closed.set()
        assert await patient


async def test_s3_is_read_with_credentials_of_the_environment(tmp_path, monkeypatch):
    async with storage(s3=True) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
        server.key = "Credential=KEY-1/"
        server.put("bucket/adapters/legal", files(rank=16))
        one = kit(tmp_path, server, source="s3://bucket/adapters/legal/")
        assert contents(await one.resolve(NAME)) == files(rank=16)
        assert server.asked[-1] == f"/bucket/adapters/legal/{WEIGHTS_FILE}"

        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OTHER")
        other = Kit(tmp_path, Adapter(name="b", source="s3://bucket/adapters/legal"), store="store")
        found = await refused(other, "b")
        assert found.reason == SourceReason.CREDENTIALS
        assert "give credentials by the environment" in str(found)
        assert "hush" not in str(found)

        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "KEY-1")
        absent = Kit(tmp_path, Adapter(name="c", source="s3://bucket/absent"), store="store")
        assert (await refused(absent, "c")).reason == SourceReason.MISSING


async def test_a_web_servers_password_comes_from_the_file_that_netrc_names(tmp_path, monkeypatch):
    async with storage() as server:
        server.put("legal", files())
        server.key = "Basic bWU6aHVzaA=="
        assert (await refused(kit(tmp_path, server))).reason == SourceReason.CREDENTIALS
        netrc = tmp_path / "netrc"
        netrc.write_text("machine 127.0.0.1 login me password hush\n")
        monkeypatch.setenv("NETRC", str(netrc))
        assert await kit(tmp_path, server).resolve(NAME)


@pytest.mark.parametrize(
    ("declared", "remote", "reason", "message"),
    [
        ({"sha256": "0" * 64}, files(), SourceReason.MISMATCH, "declared is 0000"),
        ({"rank": 16}, files(), SourceReason.MISMATCH, "declared with rank 16, its files have 8"),
        ({}, {CONFIG_FILE: files()[CONFIG_FILE]}, SourceReason.MISSING, "there is no such file"),
        ({}, {**files(), CONFIG_FILE: b"{}"}, SourceReason.UNREADABLE, f"/legal/{CONFIG_FILE}: "),
        ({}, {**files(), WEIGHTS_FILE: b"<html>no</html>"}, SourceReason.UNREADABLE, "no safetensors file"),
        (
            {},
            {**files(), WEIGHTS_FILE: weights_bytes(rank=9)},
            SourceReason.UNREADABLE,
            "weights beside it have rank 9",
        ),
        ({}, {**files(), CONFIG_FILE: b" " * 1_100_000}, SourceReason.TOO_LARGE, "more than 1048576 bytes"),
    ],
)
async def test_what_is_not_good_leaves_nothing_behind(tmp_path, declared, remote, reason, message):
    async with storage() as server:
        server.put("legal", remote)
        one = kit(tmp_path, server, **declared)
        found = await refused(one)
        assert found.reason == reason
        assert message in str(found)
        assert str(tmp_path / "store") not in str(found)
        assert left(tmp_path) == []
        (told,) = one.news()
        assert told.problem == str(found)
        # Nobody asks the server again for a while.
        asked = len(server.asked)
        assert str(await refused(one)) == str(found)
        assert len(server.asked) == asked


async def test_what_was_not_good_is_fetched_again_later(tmp_path):
    async with storage() as server:
        one = kit(tmp_path, server, options=Options(again_after=0.05))
        await refused(one)
        server.put("legal", files())
        await asyncio.sleep(0.1)
        assert [told.problem is None for told in await one.look()] == [False, True]
        assert await one.resolve(NAME)


async def test_a_file_that_is_too_large_is_not_read_to_its_end(tmp_path):
    async with storage() as server:
        server.put("legal", {**files(), WEIGHTS_FILE: bytes(20_000_000)})
        server.closed.clear()  # its second half never comes, and is not waited for
        one = kit(tmp_path, server, options=Options(limits=Limits(size=1_000_000)))
        found = await refused(one)
        assert (found.reason, left(tmp_path)) == (SourceReason.TOO_LARGE, [])


async def test_a_fetch_that_takes_too_long_is_given_up_and_may_be_tried_again(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        server.closed.clear()
        one = kit(tmp_path, server, options=Options(limits=Limits(seconds=0.3)))
        found = await refused(one)
        assert (found.reason, found.lasting) == (SourceReason.TIMEOUT, False)
        assert (left(tmp_path), one.news()) == ([], [])
        server.closed.set()
        assert await one.resolve(NAME)


async def test_a_server_that_is_away_keeps_nobody_from_trying_again(tmp_path):
    async with storage() as server:
        url = server.url
    one = kit(tmp_path, Storage(s3=False), source=f"{url}/legal")
    assert (await refused(one)).reason == SourceReason.UNREACHABLE
    assert one.news() == []


async def test_other_weights_behind_a_live_name_are_refused(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        server.put("new", files(fill=1))
        path = await kit(tmp_path, server).resolve(NAME)
        moved = kit(tmp_path, server, source=f"{server.url}/new")
        found = await refused(moved)
        assert found.reason == SourceReason.CHANGED
        assert left(tmp_path) == [Path(path).name]
        # The same weights at another place are the same.
        server.put("copy", files())
        assert await kit(tmp_path, server, source=f"{server.url}/copy").resolve(NAME) == path


async def test_weights_in_the_store_that_somebody_changes_are_refused(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        one = kit(tmp_path, server)
        path = Path(await one.resolve(NAME))
        one.news()
        (path / WEIGHTS_FILE).chmod(0o644)
        (path / WEIGHTS_FILE).write_bytes(weights_bytes(fill=1))
        (told,) = await one.look()
        assert "changed under a live name" in told.problem


async def test_a_declared_fingerprint_finds_what_is_in_the_store(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        path = await kit(tmp_path, server).resolve(NAME)
        for record in (tmp_path / "store" / ".names").iterdir():
            record.unlink()
        assert await kit(tmp_path, server, sha256=sha256(files())).resolve(NAME) == path
        assert len(server.asked) == 2


async def test_what_lies_there_unfinished_is_replaced(tmp_path):
    async with storage() as server:
        server.put("legal", files())
        folder = tmp_path / "store" / f"{NAME}@{sha256(files())[:12]}"
        folder.mkdir(parents=True)
        (folder / WEIGHTS_FILE).write_bytes(b"half")
        assert await kit(tmp_path, server).resolve(NAME) == str(folder)
        assert (folder / WEIGHTS_FILE).read_bytes() == files()[WEIGHTS_FILE]


async def test_without_a_store_nothing_is_fetched(tmp_path):
    one = Kit(tmp_path, Adapter(name=NAME, source="https://example.com/legal"))
    found = await refused(one)
    assert found.reason == SourceReason.NO_STORE
    assert "set placement.store" in str(found)


async def test_a_store_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "store").write_text("a file")
    async with storage() as server:
        server.put("legal", files())
        found = await refused(kit(tmp_path, server))
        assert str(tmp_path / "store") in str(found)


async def test_a_run_clears_what_a_crash_left_and_ends_what_is_under_way(tmp_path):
    (tmp_path / "store" / ".fetching-old").mkdir(parents=True)
    (tmp_path / "store" / ".fetching-old" / "lock").write_text("")
    async with storage() as server:
        server.put("legal", files())
        server.closed.clear()
        one = kit(tmp_path, server)
        running = asyncio.create_task(one.catalogue.run())
        waiting = asyncio.create_task(one.resolve(NAME))
        await until(lambda: len(server.asked) == 2)
        assert [name != ".fetching-old" for name in left(tmp_path)] == [True]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with pytest.raises(asyncio.CancelledError):
            await waiting
        server.closed.set()
        await until(lambda: left(tmp_path) == [])
