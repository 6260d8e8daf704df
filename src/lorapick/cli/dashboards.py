"""`lorapick dashboards export DIR`: rules, dashboard, autoscalers and runbooks, with a configuration's own thresholds.

In: a directory, perhaps a configuration. Out: files, what they are and what to do with them; exit code 2 for bad input,
and where a file that is in the way is not one of ours, or was edited since. Not here: what is in them (`dash.export`).
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lorapick.cli.loading import load
from lorapick.dash.autoscaling import Scaled
from lorapick.dash.export import RUNBOOKS, Options, files, untouched
from lorapick.dash.rules import Thresholds
from lorapick.live.admin_token import is_loopback
from lorapick.model.settings import Settings
from lorapick.wire.config import ConfigError

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
    """All of them or none: what is in the way is found before anything is written."""
    foreign = [name for name in texts if not force and not _may_replace(directory / name)]
    if foreign:
        names = ", ".join(str(directory / name) for name in foreign)
        _fail(f"not ours, or edited since it was written: {names}. Nothing was written; --force overwrites")
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _may_replace(path: Path) -> bool:
    if not path.exists():
        return True
    return path.is_file() and untouched(path.read_bytes().decode("utf-8", errors="replace"))


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
