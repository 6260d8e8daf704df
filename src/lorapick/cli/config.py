"""`lorapick config check FILE`: say what is wrong with a configuration, all of it, before anything is started.

In: a configuration file, and the pods file and catalogue that it names. Out: one line when all is good, and one for
each key that no part acts on yet, each role of pods that cannot work, each pin that cannot be met, what other machines
can reach, and certificates and tokens that are not here (they may be where the picker runs); else a line per problem
and exit code 2. Not here: what is right (`wire.config`).
"""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.cli.config_answer import answer
from lorapick.cli.config_explain import explain
from lorapick.cli.loading import load
from lorapick.live.ledger.file import LedgerError, check_place
from lorapick.live.tls.doors import Doors
from lorapick.live.tls.exposure import check_exposure
from lorapick.live.web import BindError
from lorapick.model.settings import DiscoverySettings, Settings
from lorapick.wire.config import ConfigError, Later, Problem, one_per_key, settings_hash
from lorapick.wire.config.later import HEADING
from lorapick.wire.config.pins import PINS_HEADING, pins_that_cannot_be
from lorapick.wire.config.roles import ROLES_HEADING, roles_in_words

EXPOSED = "other machines can reach"
ELSEWHERE = "cannot be used as it is here (is it where the picker will run?)"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What a good configuration comes to."""

    file: str
    hash: str
    """As in the head of event logs."""
    policy: str
    adapters: int
    """Those of the catalogue included."""
    pods: int | None
    """None: the API server knows, and is not asked here."""
    pods_from: str
    roles: str
    """How many pods have which role; empty where all do both."""
    useless: tuple[str, ...]
    """Pods whose role leaves them, or their model, without requests."""
    pins: tuple[str, ...]
    """Pins that cannot be met by the pods of the list."""
    later: tuple[Later, ...]
    """Keys that no part acts on yet."""
    exposed: tuple[str, ...] = ()
    """What other machines can reach, and should perhaps not."""
    elsewhere: tuple[str, ...] = ()
    """Certificates and tokens that cannot be used as they are here: `serve` refuses to start so."""


def register(app: typer.Typer) -> None:
    """Add the command group `config`."""
    commands = typer.Typer(no_args_is_help=True, help="Check a configuration, or say what each part of it will do.")
    commands.callback()(_group)
    commands.command("check")(check)
    commands.command("explain")(explain)
    app.add_typer(commands, name="config")


def _group() -> None:
    """Check a configuration, or say what each part of it will do."""


def check(
    file: Annotated[Path, typer.Argument(help="The configuration, lorapick.yaml.")],
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Say what is wrong with a configuration, with the pods file and the catalogue that it names."""
    answer(lambda: examine(file), _say, as_json=as_json)


def _say(checked: Checked) -> None:
    pods = f"{checked.pods} pod{'' if checked.pods == 1 else 's'}" + (f" ({checked.roles})" if checked.roles else "")
    where = f"{pods} from {checked.pods_from}" if checked.pods is not None else f"pods of {checked.pods_from}"
    print(f"{checked.file} is good: policy {checked.policy}, {checked.adapters} adapters, {where}, hash {checked.hash}")
    if checked.useless:
        print(f"\n{ROLES_HEADING}:")
        for line in checked.useless:
            print(f"  {line}")
    if checked.pins:
        print(f"\n{PINS_HEADING}:")
        for line in checked.pins:
            print(f"  {line}")
    if checked.later:
        print(f"\n{HEADING}:")
        for line in one_per_key(checked.later):
            print(f"  {line}")
    for heading, lines in ((EXPOSED, checked.exposed), (ELSEWHERE, checked.elsewhere)):
        if lines:
            print(f"\n{heading}:")
            for line in lines:
                print(f"  {line}")


def examine(file: Path) -> Checked:
    """Check one configuration and what it names.

    Raises:
        ConfigError: all problems of the configuration; or, when it has none, those of the files that it names.
    """
    loaded = load(file, without_pods=True)
    settings = loaded.settings
    exposed = _refused_at_start(settings, file)
    return Checked(
        file=str(file),
        hash=settings_hash(settings),
        policy=settings.picking.policy,
        adapters=len(settings.adapters),
        pods=len(loaded.pods) if settings.discovery.kubernetes is None else None,
        pods_from=_pods_from(settings.discovery),
        roles=roles_in_words(loaded.pods),
        useless=loaded.useless_roles,
        pins=pins_that_cannot_be(settings.adapters, loaded.pods) if loaded.pods else (),
        later=loaded.later,
        exposed=exposed,
        elsewhere=_elsewhere(settings, file),
    )


def _refused_at_start(settings: Settings, file: Path) -> tuple[str, ...]:
    """What `serve` refuses to start with, whatever machine it runs on; return what it warns of.

    Raises:
        ConfigError: all of that.
    """
    problems: list[str] = []
    exposed: list[str] = []
    if settings.ledger.path is not None:
        try:
            check_place(file.parent / settings.ledger.path)
        except (LedgerError, OSError) as error:
            problems.append(f"ledger.path: {error}")
    try:
        exposed = check_exposure(settings)
    except BindError as error:
        problems.append(str(error))
    if problems:
        raise ConfigError([Problem(file=str(file), message=each) for each in problems])
    return tuple(exposed)


def _elsewhere(settings: Settings, file: Path) -> tuple[str, ...]:
    """Certificates and tokens that cannot be used, by the first that cannot."""
    try:
        Doors(settings, beside=file.parent)
    except BindError as error:
        return (str(error),)
    return ()


def _pods_from(discovery: DiscoverySettings) -> str:
    """Where the pods come from; those of a cluster are not asked for here."""
    cluster = discovery.kubernetes
    if cluster is None:
        return discovery.file or "the configuration"
    return "Kubernetes labels" if cluster.pool is None else f"InferencePool {cluster.pool}"
