"""Flags of `lorapick pod`: bad ones end with exit code 2, the value and what would be right."""

import socket
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from lorapick.cli import pod
from lorapick.live.podserver import Served


def run(*flags: str) -> Result:
    app = typer.Typer()
    app.callback()(lambda: None)
    pod.register(app)
    return CliRunner().invoke(app, ["pod", "--port", "0", *flags])


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--max-loras", "8", "--max-cpu-loras", "4"], ["max_cpu_loras is 4", "max_loras 8"]),
        (["--speed", "0"], ["speed is 0.0", "0.001 to 10000"]),
        (["--speed", "inf"], ["speed is inf"]),
        (["--drain-timeout", "nan"], ["drain_timeout is nan"]),
        (["--adapters=--5"], ["--adapters --5", "give a count"]),
        (["--adapters", "9" * 5000], ["--adapters is a number of 5000 digits", "0 to 100000"]),
        (["--host", "a..b"], ["a..b"]),
        (["--adapters", "/no/such/file"], ["--adapters /no/such/file", "give a count"]),
        (["--catalogue", "-5"], ["-5 adapters", "0 to 100000"]),
        (["--kv-events-port", "70000"], ["kv_events_port is 70000", "65535"]),
        (["--load-failure-share", "2"], ["load_failure_share"]),
        (["--mode", "magic"], ["magic", "drain"]),
        (["--host", "192.0.2.1"], ["192.0.2.1"]),
        (["--port", "70000"], ["port is 70000"]),
        (["--role", "cook"], ["--role cook", "prefill"]),
        (["--prefillers", "10.0.0.1:8000,pod-7:8000"], ["prefillers", "'pod-7:8000'", "ip:port"]),
        (["--prefillers", "10.0.0.1:08000"], ["write 10.0.0.1:08000 as 10.0.0.1:8000"]),
        (["--prefill-timeout", "-1"], ["prefill_timeout is -1.0 s"]),
        (["--kv-bandwidth", "0"], ["kv_bandwidth is 0.0"]),
    ],
)
def test_bad_input_exits_2_and_says_what_would_be_right(flags: list[str], parts: list[str]) -> None:
    ended = run(*flags)
    assert ended.exit_code == 2 and ended.stdout == ""
    for part in parts:
        assert part in ended.stderr


def test_a_bad_adapters_file_is_named_with_its_flag_and_the_line(tmp_path: Path) -> None:
    listed = tmp_path / "adapters.yaml"
    listed.write_text("- legal\n- {name: code, colour: red}\n")
    ended = run("--adapters", str(listed))
    assert ended.exit_code == 2
    said = f'--adapters: {listed}:2:16: [1].colour: unknown key (found "colour"); known: name, rank, size'
    assert ended.stderr == f"lorapick pod: {said}\n"


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ended = run("--port", str(port))
    assert ended.exit_code == 2
    assert f"port {port} on 127.0.0.1 is in use" in ended.stderr and "--port" in ended.stderr


def test_help_names_every_switch() -> None:
    shown = run("--help").stdout
    for flag in ("--adapters", "--speed", "--mode", "--report-loaded", "--metrics-hang", "--no-runtime-lora", "--role"):
        assert flag in shown


def test_an_ipv6_host_stands_in_brackets() -> None:
    assert Served("::1", 8000).url == "http://[::1]:8000"
    assert Served("127.0.0.1", 8000).url == "http://127.0.0.1:8000"
