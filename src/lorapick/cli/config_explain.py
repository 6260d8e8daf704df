"""`lorapick config explain FILE`: say what each part of a configuration will do.

In: a lorapick.yaml or an `EndpointPickerConfig` of llm-d. Out: its parts with what they do here, what was injected by
default, what is otherwise than with llm-d; exit code 2 with every problem when the file is wrong.
Not here: the words about plugins (`wire.config.epp`), whether everything that a file names is right (`config check`).
"""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from lorapick.cli.config_answer import answer
from lorapick.core.picking.policies import POLICIES
from lorapick.model.settings import Settings
from lorapick.wire.config import parse_settings, unreadable
from lorapick.wire.config.document import Report, parse_document
from lorapick.wire.config.epp import EndpointPicker, Part, Support, is_endpoint_picker, parse_endpoint_picker

SECTIONS: dict[str, str] = {
    "base_model": "the name that clients ask for when they want no adapter",
    "discovery": "where pods come from",
    "defaults": "engine and sizes of pods that do not say",
    "adapters": "adapters that are known from the start, and those that are pinned",
    "aliases": "public names that stand for adapters",
    "groups": "adapters that are called one after another, and so loaded ahead",
    "schedules": "adapters that are loaded at times of the week",
    "triggers": "adapters that are loaded when something happens outside",
    "picking": "how a pod is chosen for a request",
    "load_times": "within which a load counts as over when nobody reports its end",
    "retention": "who leaves a pod whose memory is short",
    "pressure": "from where on a pod's memory counts as short",
    "placement": "adapters loaded, kept and moved on purpose",
    "admission": "who waits at the picker, and in which order",
    "alerts": "when the picker raises an alert",
    "slo": "what users were promised; alerts look at it",
    "objectives": "priorities by name; those below 0 never wait",
    "budgets": "how many loads there may be, and what scraping may cost",
    "scrape": "how often pods are asked for their figures",
    "ledger": "what is kept of requests, loads and evictions",
    "mode": "whether picks are in force",
    "server": "where the picker listens, and what it reads of bodies",
    "tracing": "spans of requests",
    "disaggregation": "which requests another pod prefills",
    "seed": "of tie-breaks",
    "peers": "other pickers of the same fleet, and what they share",
    "tls": "certificates",
    "tenants": "who may ask for what",
}
"""What each section of lorapick.yaml is for."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """One file, explained."""

    file: str
    kind: str
    """`EndpointPickerConfig` or `lorapick`."""
    parts: tuple[Part, ...]
    injected: tuple[Part, ...] = ()
    """What is there although the file does not say so."""
    differences: tuple[str, ...] = ()
    """From llm-d, whatever the file says."""
    deprecated: tuple[str, ...] = ()
    includes: "tuple[Explained, ...]" = ()
    """Files that it names and that say how pods are picked."""


def explain(
    file: Annotated[Path, typer.Argument(help="lorapick.yaml, or an EndpointPickerConfig of llm-d.")],
    as_json: Annotated[bool, typer.Option("--json", help="Say it as JSON.")] = False,
) -> None:
    """Say what each part of a configuration will do, what is there by default, and what differs from llm-d."""
    answer(lambda: explanation(file), lambda found: print("\n".join(lines(found))), as_json=as_json)


def explanation(file: Path) -> Explained:
    """What a file comes to.

    Raises:
        ConfigError: it is wrong, or cannot be read; or the file that it names for picking is.
    """
    content = _read(file)
    if is_endpoint_picker(content):
        return _of_picker(parse_endpoint_picker(content, file=str(file)))
    settings = parse_settings(content, file=str(file), policies=POLICIES)
    named = settings.picking.endpoint_picker_config
    includes: tuple[Explained, ...] = ()
    if named is not None:
        picker_file = file.parent / named
        includes = (_of_picker(parse_endpoint_picker(_read(picker_file), file=str(picker_file))),)
    return Explained(file=str(file), kind="lorapick", parts=_sections(content, settings), includes=includes)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(str(path), error) from None


def _of_picker(picker: EndpointPicker) -> Explained:
    return Explained(
        file=picker.file,
        kind="EndpointPickerConfig",
        parts=tuple(part for part in picker.parts if part.line is not None),
        injected=tuple(part for part in picker.parts if part.line is None),
        differences=picker.differences,
        deprecated=picker.deprecated,
    )


def _sections(content: bytes, settings: Settings) -> tuple[Part, ...]:
    root = parse_document(content, Report(""))
    found = []
    for name, entry in root.entries().items():
        found.append(
            Part(
                field=name,
                line=entry.key.node.start_mark.line + 1,
                what=name,
                parameters=_changed(name, settings),
                support=Support.OWN,
                does=SECTIONS[name],
            )
        )
    return tuple(found)


def _changed(name: str, settings: Settings) -> str:
    """What of a section is not as by default."""
    value, usual = getattr(settings, name, None), getattr(Settings(), name, None)
    if isinstance(value, tuple):
        return f"{len(value)} of them"
    if not isinstance(value, msgspec.Struct) or not isinstance(usual, msgspec.Struct):
        return "" if value == usual else str(value)
    changes = []
    for field in value.__struct_fields__:
        now, before = getattr(value, field), getattr(usual, field)
        if now != before:
            plain = isinstance(now, str | int | float | bool) or now is None
            changes.append(f"{field} {now} (else {before})" if plain else field)
    return ", ".join(changes) or "as by default"


def lines(explained: Explained) -> list[str]:
    """The same for people."""
    whole = "an EndpointPickerConfig" if explained.kind == "EndpointPickerConfig" else "a configuration of lorapick"
    found = [f"{explained.file} is {whole}"]
    for part in explained.parts:
        found += _part(part, f"{part.line}")
    if explained.injected:
        found += ["", "there although the file does not say so:"]
        for part in explained.injected:
            found += _part(part, "-")
    for title, sentences in (
        ("otherwise than with llm-d:", explained.differences),
        ("deprecated by llm-d:", explained.deprecated),
    ):
        if sentences:
            found += ["", title, *(f"  - {sentence}" for sentence in sentences)]
    for each in explained.includes:
        found += ["", *lines(each)]
    return found


def _part(part: Part, place: str) -> list[str]:
    called = f" {part.name}" if part.name else ""
    written = f" {part.parameters}" if part.parameters else ""
    mark = "" if part.support in (Support.SAME, Support.OWN) else f" [{part.support}]"
    return [f"{place:>5}  {part.what}{called}{mark}{written}", f"         {part.does}"]
