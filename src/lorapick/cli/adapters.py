"""`lorapick adapters`: which adapters there are, where they should be, and changing that.

In: an adapter's name, pods, labels; the admin API's URL. Out: tables, what the picker understood, or its JSON. Exit
codes: 0, 1 when the picker refuses or `--wait` runs out, 2 for bad input.
Not here: what is decided about it (see `core.placement`), events and aliases (see `cli.events`, `cli.aliases`).
"""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lorapick.cli import admin_client
from lorapick.cli.admin_changes import (
    LabelsOption,
    PodsOption,
    WaitOption,
    given,
    pairs,
    path_of,
    told,
    wait_for_load,
    wait_for_pin,
)
from lorapick.cli.admin_client import DEFAULT, AdminOption, JsonOption
from lorapick.live.admin_views import AdapterDetail, AdapterEntry, Adapters
from lorapick.model.adapters import PinSpec
from lorapick.model.tiers import Tier

NameArgument = Annotated[str, typer.Argument(help="The adapter's name.")]
ReplicasOption = Annotated[int | None, typer.Option(min=1, help="Pods that should hold it.")]
_HELD = (Tier.GPU_SERVING.word, Tier.GPU_IDLE.word)


def register(app: typer.Typer) -> None:
    """Add the command group `adapters`."""
    commands = typer.Typer(no_args_is_help=True, help="Which adapters there are, where they should be, changing that.")
    commands.callback()(lambda: None)
    commands.command("list")(list_)
    commands.command("show")(show)
    for command in (load, preload, unload, pin, unpin, move, declare, retire):
        commands.command(command.__name__)(command)
    app.add_typer(commands, name="adapters")


# -- looking


def list_(admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Say which adapters there are, where they are, where they should be and what for."""
    with admin_client.told("adapters list"):
        body = admin_client.get(admin, "/v1/adapters")
        found = admin_client.decode(body, Adapters, admin)
    if as_json:
        print(body.decode())
    elif not found.adapters:
        print("no adapter is known")
    else:
        admin_client.console().print(_table(found.adapters))


def _table(adapters: Sequence[AdapterEntry]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("adapter", "rank", "in slots of", "wanted on", "pin", "requests", "problem"):
        table.add_column(name, overflow="fold", justify="right" if name in ("rank", "requests") else "left")
    for each in adapters:
        table.add_row(
            Text(each.name),
            "?" if each.rank is None else str(each.rank),
            Text(_some([pod for tier in _HELD for pod in each.pods.get(tier, ())])),
            Text(_some([f"{pod} ({why})" for pod, why in each.wanted.items()])),
            Text("-" if each.pin is None else _pin(each.pin)),
            str(each.requests),
            Text(each.problem or ("retiring" if each.retiring else "-")),
        )
    return table


def _some(words: Sequence[str], *, most: int = 4) -> str:
    more = f" +{len(words) - most}" if len(words) > most else ""
    return ", ".join(words[:most]) + more if words else "-"


def _pin(pin: PinSpec) -> str:
    labels = [f"{key}={value}" for key, value in pin.selector.items()]
    parts = [f"{pin.replicas}x"] if pin.replicas is not None else []
    parts += [f"{pin.prefill_replicas}x to prefill"] if pin.prefill_replicas is not None else []
    return " ".join([*parts, *pin.pods, *labels, *(["reserve"] if pin.reserve else [])])


def show(name: NameArgument, admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Say all of one adapter: what was declared, what its files say, where it is and where it should be."""
    with admin_client.told("adapters show"):
        body = admin_client.get(admin, path_of("adapters", name))
        found = admin_client.decode(body, AdapterDetail, admin)
    if as_json:
        print(body.decode())
        return
    for key, value in _facts(found.adapter):
        print(f"{key:12} {value}")
    for cell in found.cells:
        want = found.adapter.wanted.get(cell.pod)
        print(f"{cell.pod:12} {cell.tier}, {cell.source}" + (f", wanted: {want}" if want is not None else ""))


def _facts(adapter: AdapterEntry) -> list[tuple[str, str]]:
    facts = adapter.facts
    found = [
        ("adapter", adapter.name + ("" if adapter.declared else " (not declared: seen on a pod)")),
        ("source", adapter.source),
        ("revision", adapter.revision),
        ("rank", adapter.rank),
        ("modules", ", ".join(facts.targets) if facts is not None else None),
        ("size", f"{facts.size} B" if facts is not None and facts.size is not None else None),
        ("path", facts.path if facts is not None else None),
        ("pin", _pin(adapter.pin) if adapter.pin is not None else None),
        ("problem", adapter.problem),
        ("requests", f"{adapter.requests}, {adapter.in_flight} in flight"),
    ]
    return [(key, str(value)) for key, value in found if value not in (None, "")]


# -- changing


def load(
    name: NameArgument,
    pod: PodsOption = None,
    replicas: ReplicasOption = None,
    label: LabelsOption = None,
    wait: WaitOption = 0.0,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Load an adapter once: on these pods, or on so many of those with these labels."""
    with admin_client.told("adapters load"):
        body = given(pods=pod, replicas=replicas, selector=pairs(label, option="--label"))
        answer = admin_client.change(admin, "POST", path=path_of("adapters", name, "load"), body=body)
        done = told(answer, admin, as_json=as_json)
        if wait:
            wait_for_load(admin, name, pods=done.pods or done.resident, within=wait)


def preload(
    name: NameArgument,
    lasts: Annotated[str, typer.Option("--for", help="How long it is kept, such as 30m or 9h30m.")] = "30m",
    replicas: ReplicasOption = None,
    label: LabelsOption = None,
    wait: WaitOption = 0.0,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Load an adapter ahead of need, and keep it for a while."""
    with admin_client.told("adapters preload"):
        body = given(for_=lasts, replicas=replicas, selector=pairs(label, option="--label"))
        answer = admin_client.change(admin, "POST", path=path_of("adapters", name, "preload"), body=body)
        done = told(answer, admin, as_json=as_json)
        if wait:
            wait_for_load(admin, name, pods=done.pods, within=wait)


def unload(
    name: NameArgument, pod: PodsOption = None, admin: AdminOption = DEFAULT, as_json: JsonOption = False
) -> None:
    """Take an adapter from these pods, or from all, once no request for it is in flight there."""
    with admin_client.told("adapters unload"):
        path = path_of("adapters", name, "unload")
        told(admin_client.change(admin, "POST", path=path, body=given(pods=pod)), admin, as_json=as_json)


def pin(
    name: NameArgument,
    replicas: ReplicasOption = None,
    pod: PodsOption = None,
    label: LabelsOption = None,
    prefill_replicas: Annotated[
        int | None, typer.Option(min=0, help="Of pods that only prefill; without it one, where there are such.")
    ] = None,
    reserve: Annotated[bool, typer.Option(help="These pods take pinned adapters only.")] = False,
    wait: WaitOption = 0.0,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Keep an adapter resident; refused, with the arithmetic, when it does not fit."""
    with admin_client.told("adapters pin"):
        selector = pairs(label, option="--label")
        body = given(replicas=replicas, pods=pod, selector=selector, reserve=reserve)
        if prefill_replicas is not None:
            body["prefill_replicas"] = prefill_replicas  # 0 says something
        answer = admin_client.change(admin, "POST", path=path_of("adapters", name, "pin"), body=body)
        told(answer, admin, as_json=as_json)
        if wait:
            wait_for_pin(admin, name, within=wait)


def unpin(name: NameArgument, admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Insist no longer; the adapter stays where it is until its slot is needed."""
    with admin_client.told("adapters unpin"):
        answer = admin_client.change(admin, "POST", path=path_of("adapters", name, "unpin"), body={})
        told(answer, admin, as_json=as_json)


def move(
    name: NameArgument,
    source: Annotated[str, typer.Option("--from", help="Pod that it is to leave.")],
    target: Annotated[str, typer.Option("--to", help="Pod that is to have it first.")],
    wait: WaitOption = 0.0,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Load an adapter on one pod, then unload it on another."""
    with admin_client.told("adapters move"):
        body = {"from": source, "to": target}
        answer = admin_client.change(admin, "POST", path=path_of("adapters", name, "move"), body=body)
        told(answer, admin, as_json=as_json)
        if wait:
            wait_for_load(admin, name, pods=[target], within=wait)


def declare(
    name: NameArgument,
    source: Annotated[str | None, typer.Option(help="Path or reference that pods load from.")] = None,
    revision: Annotated[str | None, typer.Option(help="Of the weights.")] = None,
    rank: Annotated[int | None, typer.Option(min=1, help="Rank of its matrices.")] = None,
    sha256: Annotated[str | None, typer.Option(help="Of its weights, which are checked against it.")] = None,
    base_model: Annotated[str | None, typer.Option(help="Base model; default: the fleet's.")] = None,
    pin_replicas: Annotated[int | None, typer.Option(min=1, help="Keep it on so many pods.")] = None,
    admin: AdminOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """Declare an adapter while the picker runs, as `adapters.list` of the configuration would."""
    with admin_client.told("adapters declare"):
        kept = None if pin_replicas is None else {"replicas": pin_replicas}
        body = given(source=source, revision=revision, rank=rank, sha256=sha256, base_model=base_model, pin=kept)
        answer = admin_client.change(admin, "PUT", path=path_of("adapters", name), body=body)
        told(answer, admin, as_json=as_json)


def retire(name: NameArgument, admin: AdminOption = DEFAULT, as_json: JsonOption = False) -> None:
    """Withdraw an adapter: no new requests; pods forget it when those in flight have ended."""
    with admin_client.told("adapters retire"):
        told(admin_client.change(admin, "DELETE", path=path_of("adapters", name)), admin, as_json=as_json)
