"""The statements for a warehouse give on a real PostgreSQL what counting files gives."""

import json
import os
import random
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from lorapick.plan.logs.counting import count_logs
from lorapick.plan.logs.options import LogOptions
from lorapick.plan.logs.queries import STATEMENTS, statement
from lorapick.plan.logs.values import LogSummary
from lorapick.plan.logs.warehouse import read_counted

pytestmark = pytest.mark.system


def program(name: str) -> str:
    """Path of a program of the newest PostgreSQL. A test without it fails: it would show nothing."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]))
    assert found, f"{name} is missing: run `make test-system` as root, or install the package postgresql"
    return str(found[-1])


class Server:
    """A PostgreSQL that listens at a socket in a folder. It refuses to be run by root, so that another user runs it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}

    def run(self, name: str, *arguments: str, text: str = "") -> str:
        """One of PostgreSQL's programs; what it prints."""
        done = subprocess.run(
            [program(name), *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=self._folder,
            env={"PATH": os.environ["PATH"], "PGHOST": str(self._folder), "PGUSER": "tester", "PGDATABASE": "postgres"},
            **self._user,
        )
        assert done.returncode == 0, f"{name}: {done.stderr}"
        return done.stdout

    def ask(self, sql: str) -> str:
        """What psql prints."""
        return self.run("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--file=-", text=sql)


@contextmanager
def postgres() -> Iterator[Server]:
    """A server with an empty database, which ends with the block."""
    # Not in pytest's folder, which only its owner may enter; and a socket's path may have 100 letters.
    with tempfile.TemporaryDirectory(prefix="lorapick-pg-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o777)
        server = Server(folder)
        data = str(folder / "data")
        server.run("initdb", "--no-sync", "--auth=trust", "--username=tester", "--encoding=UTF8", data)
        settings = f"-c listen_addresses= -c unix_socket_directories={name} -c fsync=off"
        server.run(
            "pg_ctl", "start", "--wait", "--silent", f"--pgdata={data}", f"--log={name}/log", f"--options={settings}"
        )
        try:
            yield server
        finally:
            server.run("pg_ctl", "stop", "--wait", "--silent", "--mode=immediate", f"--pgdata={data}")


def rows(count: int) -> list[dict[str, object]]:
    """Requests of some hours: bursts, times that many share, base model, unknown numbers."""
    draw = random.Random(11)
    adapters = ["a", "a", "a", "b", "b", "code,review", 'say "hi"', "ä", "", None]
    times = [lambda: draw.uniform(0, 20_000), lambda: float(draw.randrange(9_000)), lambda: 7200 + draw.uniform(0, 40)]
    return [
        {
            "adapter": draw.choice(adapters),
            "time": 1_780_000_000 + round(draw.choice(times)(), 3),
            "prompt_tokens": draw.choice([None, draw.randrange(5_000)]),
            "output_tokens": draw.randrange(900),
        }
        for _ in range(count)
    ]


def test_postgresql_counts_as_files_are_counted(tmp_path):
    logs = rows(5_000)
    (tmp_path / "log.json").write_text("".join(json.dumps(row) + "\n" for row in logs))
    with postgres() as server:
        table = (
            "CREATE TABLE logs (line json); COPY logs FROM STDIN WITH (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02');"
        )
        view = (
            "CREATE VIEW requests AS SELECT line->>'adapter' AS adapter, {time} AS time_seconds, "
            "(line->>'prompt_tokens')::int AS prompt_tokens, (line->>'output_tokens')::int AS output_tokens FROM logs"
        )
        server.ask(f"{table}\n{(tmp_path / 'log.json').read_text()}\\.\n")
        # As numbers of either kind that PostgreSQL's EXTRACT may give.
        for kind in ("double precision", "numeric"):
            server.ask("DROP VIEW IF EXISTS requests; " + view.format(time=f"(line->>'time')::{kind}"))
            for sample in (20, 700, 100_000):
                folder = tmp_path / f"{kind}-{sample}"
                folder.mkdir()
                for name in STATEMENTS:
                    result = f"COPY ({statement(name, sample=sample)}) TO STDOUT WITH CSV HEADER"
                    (folder / f"{name}.csv").write_text(server.ask(result))
                by_files = count_logs([str(tmp_path / "log.json")], options=LogOptions(sample=sample))
                by_warehouse = read_counted(folder)
                assert len(by_warehouse.sample.arrivals) <= sample
                assert comparable(by_files) == comparable(by_warehouse)


def comparable(summary: LogSummary) -> LogSummary:
    """Without what tells where it comes from."""
    return msgspec.structs.replace(summary, files=(), columns={})
