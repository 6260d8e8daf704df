"""All of `lorapick.yaml`: text to `Settings`.

In: the text, its name for messages, the policies that exist. Out: `Settings`; or `ConfigError` with every problem.
Not here: reading files. The time zones that schedules name are looked up in the machine's (or tzdata's) database.
"""

from collections.abc import Collection
from typing import Any

import msgspec
import xxhash

from lorapick.model.settings import ServerSettings, Settings, SloSettings
from lorapick.model.tls import TlsSettings
from lorapick.wire.config import alerting, intent, sections
from lorapick.wire.config.disaggregation import disaggregation
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.ledger import ledger
from lorapick.wire.config.mode import mode
from lorapick.wire.config.peers import peers
from lorapick.wire.config.pods import PodDefaults, defaults, discovery
from lorapick.wire.config.readers import Reader, fields, integer, list_of, text
from lorapick.wire.config.tls import check_tls, tls
from lorapick.wire.config.tracing import tracing

RESERVED = ("tenants",)
"""Top-level keys of parts that do not exist yet."""
_FIRST = ("base_model", "defaults")


def parse_settings(content: bytes | str, *, file: str, policies: Collection[str]) -> Settings:
    """Read and check a configuration.

    Args:
        content: the YAML text.
        file: what messages call it.
        policies: names that `picking.policy` may have.

    Raises:
        ConfigError: every problem of the file, each with line, field, value and what would be right.
    """
    report = Report(file)
    root = parse_document(content, report)
    try:
        values = _read(root, policies)
    except Refused:
        values = {}
    report.raise_if_any()
    return Settings(**values)


def settings_hash(settings: Settings) -> str:
    """16 hexadecimal digits that two equal configurations share, for the head of event logs."""
    return xxhash.xxh64_hexdigest(msgspec.json.encode(settings, order="sorted"))


def _read(root: At, policies: Collection[str]) -> dict[str, Any]:
    first: dict[str, Reader[Any]] = {"base_model": text, "defaults": defaults}
    rest = _rest(policies)
    known = (*first, *rest, "discovery", *RESERVED)
    _note_reserved(root)
    values = fields(root, first, also=known)
    found = values.pop("defaults", PodDefaults())
    base_model = values.get("base_model", found.base_model)
    pods = msgspec.structs.replace(found, base_model=base_model)
    values |= fields(root, rest | {"discovery": discovery(pods)}, also=known)
    server = values.get("server", ServerSettings())
    alerting.check_measured(root, values.get("slo", SloSettings()), server=server)
    check_tls(root, values.get("tls", TlsSettings()), server=server)
    source = values.pop("adapters", intent.AdapterSource())
    listed = values["discovery"].pods if "discovery" in values else ()
    intent.check_names(root, base_model=base_model, pods=[pod.name for pod in listed] if listed else None)
    return values | {
        "defaults": found.limits,
        "default_engine": found.engine.value,
        "adapters": source.list,
        "catalogue": source.catalogue,
    }


def _rest(policies: Collection[str]) -> dict[str, Reader[Any]]:
    return {
        "adapters": intent.adapters,
        "aliases": list_of(intent.alias, unique="name"),
        "groups": list_of(intent.group, unique="name"),
        "schedules": list_of(intent.schedule),
        "triggers": list_of(intent.trigger),
        "picking": sections.picking(policies),
        "load_times": sections.load_times,
        "retention": sections.retention,
        "pressure": sections.pressure,
        "placement": sections.placement,
        "admission": sections.admission,
        "alerts": alerting.alerts,
        "slo": alerting.slo,
        "objectives": sections.objectives,
        "budgets": sections.budgets,
        "scrape": sections.scrape,
        "ledger": ledger,
        "mode": mode(policies),
        "server": sections.server,
        "tls": tls,
        "tracing": tracing,
        "disaggregation": disaggregation,
        "peers": peers,
        "seed": integer(least=0),
    }


def _note_reserved(root: At) -> None:
    for name, entry in root.entries().items():
        if name in RESERVED:
            entry.key.note("is reserved for a later version and not yet available", hint="remove the key", value="")
