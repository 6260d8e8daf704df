"""`lorapick dashboards export DIR`: rules, dashboard, autoscalers and runbooks, with a configuration's own thresholds.

In: a directory, perhaps a configuration. Out: files, what they are and what to do with them; exit code 2 for bad input,
and where a file that is in the way is not one of ours, or was edited since. Not here: what is in them (`dash.export`).
"""

import sys
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from itertools import takewhile
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from tempfile import NamedTemporaryFile
from typing import Annotated

import typer

from lorapick.cli.loading import load
from lorapick.dash.autoscaling import Scaled
from lorapick.dash.export import RUNBOOKS, Options, files, untouched
from lorapick.dash.rules import Thresholds
from lorapick.live.admin_token import is_loopback
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError

_MODE = 0o644
"""Of files: Prometheus runs as somebody else."""
_WHAT = {
    "rules.yaml": "Prometheus: records and alerts",
    "dashboard.json": "Grafana 11.6 or newer",
    "keda.yaml": "KEDA: scale pods by slots and useful time",
    "hpa.yaml": "the same with prometheus-adapter",
    f"{RUNBOOKS}/": "a page for each alert",
}


def register(app: typer.Typer) -> None:
    """Add the command group `dashboards`."""
    commands = typer.Typer(no_args_is_help=True, help="Rules, dashboards and autoscalers for a running picker.")
    commands.callback()(_group)
    commands.command("export")(export)
    app.add_typer(commands, name="dashboards")


def _group() -> None:
    """Rules, dashboards and autoscalers for a running picker."""


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where files go; made if it is not there.")],
    config: Annotated[
        Path | None, typer.Option(help="lorapick.yaml: its `alerts`, `slo`, addresses. Without: the defaults.")
    ] = None,
    runbooks: Annotated[
        str | None, typer.Option(metavar="URL", help="Where alerts link to. Default: the picker's own admin address.")
    ] = None,
    prometheus: Annotated[
        str, typer.Option(metavar="URL", help="Prometheus, as autoscalers reach it.")
    ] = Scaled().prometheus,
    deployment: Annotated[str, typer.Option(help="Deployment of the pods, for autoscalers.")] = Scaled().deployment,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are not ours, or were edited.")] = False,
) -> None:
    """Write Prometheus rules, a Grafana dashboard, autoscalers and runbooks, with the thresholds of a configuration."""
    try:
        loaded = None if config is None else load(config)
    except ConfigError as error:
        _fail(str(error))
    settings = Settings() if loaded is None else loaded.settings
    least = max(Scaled().least, 0 if loaded is None else len(loaded.pods))
    options = Options(
        Thresholds.of(settings),
        runbooks or f"http://{settings.server.admin}/runbooks",
        Scaled(deployment, prometheus, least, max(Scaled().most, 2 * least)),
    )
    texts = files(options)
    try:
        _write(directory, texts, force=force)
    except OSError as error:
        _fail(f"{error.filename or directory}: {error.strerror or error}")
    _say(directory, settings, thresholds="the defaults" if config is None else str(config))
    if runbooks is None:
        _warn_of_links(directory, settings.server.admin)


def _write(directory: Path, texts: dict[str, str], *, force: bool) -> None:
    """All of them or none: each is written beside its place, and put there once all others are."""
    paths = {directory / name: text for name, text in texts.items()}
    in_the_way = [path for path in _places(directory, paths) if not _fits(path, file=path in paths)]
    if in_the_way:
        names = ", ".join(str(path) for path in in_the_way)
        _fail(f"in the way: {names}: a link, or a directory in place of a file, or the reverse. Nothing was written")
    foreign = [path for path in paths if not force and not _may_replace(path)]
    if foreign:
        names = ", ".join(str(path) for path in foreign)
        _fail(f"not ours, or edited since it was written: {names}. Nothing was written; --force overwrites")
    with ExitStack() as undo:
        staged = [(_staged(path, text, undo=undo), path) for path, text in paths.items()]
        for written, path in staged:
            written.replace(path)


def _places(directory: Path, paths: Iterable[Path]) -> list[Path]:
    """What is looked at before anything is written: files, and the directories below `directory` that they go to."""
    below = dict.fromkeys(path.parent for path in paths)
    return [*(path for path in below if path != directory), *paths]


def _fits(path: Path, *, file: bool) -> bool:
    """Whether it is free, or of the kind that belongs there. Nothing is written through links: they lead elsewhere."""
    if path.is_symlink():
        return False
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return True
    return S_ISREG(mode) if file else S_ISDIR(mode)


def _staged(path: Path, text: str, *, undo: ExitStack) -> Path:
    """The text in a file beside its place. What was made for it goes when `undo` ends, but for what is in use then."""
    missing = list(takewhile(lambda each: not each.exists(), (path.parent, *path.parent.parents)))
    for each in reversed(missing):
        each.mkdir()
        undo.callback(_remove_if_empty, each)
    with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as made:
        written = Path(made.name)
        undo.callback(written.unlink, missing_ok=True)
        made.write(text)
    written.chmod(_MODE)
    return written


def _remove_if_empty(directory: Path) -> None:
    with suppress(OSError):
        directory.rmdir()


def _may_replace(path: Path) -> bool:
    return not path.exists() or untouched(path.read_bytes().decode("utf-8", errors="replace"))


def _say(directory: Path, settings: Settings, *, thresholds: str) -> None:
    print(f"written to {directory}, with thresholds of {thresholds}:")
    for name, what in _WHAT.items():
        print(f"  {name:<16}{what}")
    if settings.slo.latency_p95 is None and settings.slo.ttft_p95 is None:
        print(
            "no `slo` is configured: alerts on latency compare with what the running picker's `slo` says, if anything"
        )
    metrics = settings.server.metrics
    print(
        "next:\n"
        f"  promtool check rules {directory}/rules.yaml, and name it in prometheus.yml:\n"
        f"    rule_files: [{directory.resolve()}/rules.yaml]\n"
        "    scrape_configs:\n"
        f"      - {{job_name: lorapick, scrape_interval: 15s, static_configs: [{{targets: ['{metrics}']}}]}}\n"
        "  Grafana: Dashboards > New > Import > dashboard.json, and choose that Prometheus\n"
        f"  on Kubernetes one of: kubectl apply -f {directory}/keda.yaml, or hpa.yaml as its head says"
    )


def _warn_of_links(directory: Path, admin: str) -> None:
    """Links to the picker itself do not open when it is gone, and those to its own machine nowhere else."""
    if is_loopback(admin.rpartition(":")[0].strip("[]")):
        print(
            f"warning: runbook links in rules.yaml lead to http://{admin}/runbooks: a loopback address, which opens on "
            f"the picker's own machine only, and only while the picker runs. Serve {directory}/{RUNBOOKS} elsewhere, "
            "and export again with --runbooks URL",
            file=sys.stderr,
        )


def _fail(message: str) -> None:
    print(f"lorapick dashboards export: {message}", file=sys.stderr)
    raise typer.Exit(2) from None
