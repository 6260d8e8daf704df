"""Sections that tune the picker and its servers.

In: nodes. Out: values of `model.settings`; their defaults are there.
Not here: adapters and pods (see `intent`, `pods`).
"""

import ipaddress
import itertools
from collections.abc import Collection
from typing import Any

from lorapick.core.picking.epp.policy import NAME as PROFILES
from lorapick.core.placement.calendar import CalendarError, week_minute
from lorapick.model.bands import (
    Band,
    Ceiling,
    CeilingSettings,
    ChanceSettings,
    Ordering,
    SaturationSettings,
    Spread,
)
from lorapick.model.settings import (
    AdmissionSettings,
    Affinity,
    BudgetSettings,
    Fairness,
    LoadTimes,
    Objective,
    PickingSettings,
    PlacementSettings,
    PressureSettings,
    RetentionSettings,
    ScrapeSettings,
    ServerSettings,
    WeekendSettings,
    Weights,
)
from lorapick.model.units import Ratio
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import (
    Reader,
    boolean,
    choice,
    duration,
    integer,
    list_of,
    number,
    positive_share,
    record,
    share,
    size,
    text,
    timezone,
    word,
)

_SOCKET_PATH_BYTES = 107
"""What the kernel takes for a Unix socket's path."""
_HOUR = 3600.0
_weight = number(least=0.0, most=1e6, what="a weight")
_priority = integer(least=-1000, most=1000)


def _check_weights(at: At, weights: Weights) -> None:
    if weights.adapter + weights.kv + weights.queue + weights.gpu == 0:
        at.note("all weights are 0, so all pods would score alike; give at least one a weight", value="")


def _check_picking(at: At, picking: PickingSettings) -> None:
    written = at.find("policy")
    if written is None:
        return
    if picking.endpoint_picker_config is None and picking.policy == PROFILES:
        written.note("needs endpoint_picker_config, the file that says how pods are picked")
    elif picking.endpoint_picker_config is not None and picking.policy != PROFILES:
        written.note(
            "endpoint_picker_config says how pods are picked, so no policy does",
            hint="remove one of both; lorapick's scorers are plugins too, such as lorapick-weighted-scorer",
        )


def _policy(policies: Collection[str]) -> Reader[str]:
    known = choice(*policies)
    return lambda at: PROFILES if str(at.node.value) == PROFILES else known(at)


def picking(policies: Collection[str]) -> Reader[PickingSettings]:
    """Reader of `picking:`, given the names of the policies that exist."""
    affinity = number(least=0.0, most=1e6, what="an affinity")
    return record(
        PickingSettings,
        {
            "policy": _policy(policies),
            "weights": record(
                Weights,
                {"adapter": _weight, "kv": _weight, "queue": _weight, "gpu": _weight},
                check=_check_weights,
            ),
            "affinity": record(Affinity, dict.fromkeys(Affinity.__struct_fields__, affinity)),
            "fallbacks": integer(least=0, most=16),
            "prefix_blocks_per_pod": integer(least=1),
            "endpoint_picker_config": text,
        },
        check=_check_picking,
    )


load_times: Reader[LoadTimes] = record(LoadTimes, {"cpu": duration(), "disk": duration()})

_FIFO_HINT = 'only engines evict so: set "eviction: fifo" for the pods that do'

retention: Reader[RetentionSettings] = record(
    RetentionSettings,
    {
        "policy": choice("window", "lru", "lfu", "cost", elsewhere={"fifo": _FIFO_HINT}),
        "window": duration(least=1.0),
        "frequency_weight": _weight,
        "recency_weight": _weight,
        "pinned_bonus": _weight,
    },
)


def _check_pressure(at: At, pressure: PressureSettings) -> None:
    if not pressure.soft <= pressure.hard <= pressure.critical:
        order = f"soft {pressure.soft:g}, hard {pressure.hard:g}, critical {pressure.critical:g}"
        at.note(f"soft, hard and critical must not fall; they are {order}", value="")
        return
    written, room = at.find("hysteresis"), _least_step(pressure)
    if written is not None and pressure.hysteresis > room:
        written.note(
            f"must be at most {room:g}, the least distance between 0, soft, hard and critical",
            hint="a pod would keep a tier at a pressure for which it belongs below the next one",
        )


def _least_step(pressure: PressureSettings) -> Ratio:
    """Of two edges that are one, the distance does not count; rounded, since 0.95 - 0.9 is less than 0.05."""
    edges = (0.0, pressure.soft, pressure.hard, pressure.critical)
    steps = [round(upper - lower, 9) for lower, upper in itertools.pairwise(edges) if upper > lower]
    return min(steps, default=0.0)


pressure: Reader[PressureSettings] = record(
    PressureSettings,
    {"enabled": boolean, "soft": share, "hard": share, "critical": share, "hysteresis": share},
    check=_check_pressure,
)


def _slots_share(*, slots_share: Ratio) -> Ratio:
    return slots_share


def _fairness(at: At) -> Fairness:
    return Fairness(choice(*(each.value for each in Fairness))(at))


def _check_band(at: At, band: Band) -> None:
    if band.max_queued is None and band.max_bytes is None:
        at.note("must have max_queued, max_bytes or both", hint="a band without either bounds nothing", value="")


def _bands(at: At) -> tuple[Band, ...]:
    found = list_of(
        record(
            Band,
            {"priority": _priority, "max_queued": integer(least=0), "max_bytes": size()},
            check=_check_band,
        ),
        unique="priority",
    )(at)
    if sum(band.priority is None for band in found) > 1:
        at.refuse("has more than one band without a priority", hint="that is the one of all others", value="")
    return found


def _ordering(at: At) -> Ordering:
    return Ordering(choice(*(each.value for each in Ordering))(at))


def _check_admission(at: At, admission: AdmissionSettings) -> None:
    """Only a patience that is written: a short `max_wait` alone means that nobody's patience ends."""
    written = at.find("patience")
    if written is not None and admission.patience > admission.max_wait:
        written.note(
            f"must be at most max_wait, which is {admission.max_wait:g}s",
            hint="nobody waits for longer than max_wait, so nobody's turn would come",
        )


_THRESHOLDS: dict[str, Reader[Any]] = {"queue": number(least=0.01, most=1e6), "kv": positive_share}
_saturation: Reader[SaturationSettings] = record(
    SaturationSettings,
    _THRESHOLDS | {"requests": integer(least=1), "tokens": integer(least=1)},
)
_chance: Reader[ChanceSettings] = record(
    ChanceSettings,
    _THRESHOLDS | {"power": number(least=0.01, most=1000.0), "factor": number(least=1e-6, most=1e9)},
)


def _check_ceilings(at: At, found: CeilingSettings) -> None:
    listed = {each.priority: each.most for each in found.listed}
    if bool(listed) is not (found.spread is Spread.LISTED):
        at.note('must have "listed" with spread: listed, and only then', value="")
    if found.least > found.most:
        at.nearest("least").note(f"must be at most most, which is {found.most:g}")
    for higher, lower in itertools.pairwise(sorted(listed, reverse=True)):
        if listed[lower] > listed[higher]:
            at.nearest("listed").note(
                f"priority {lower} may not have a higher ceiling than priority {higher} ({listed[higher]:g})",
                value=f"{listed[lower]:g}",
            )


ceilings: Reader[CeilingSettings] = record(
    CeilingSettings,
    {
        "spread": lambda at: Spread(choice(*(each.value for each in Spread))(at)),
        "least": share,
        "most": share,
        "full": boolean,
        "listed": list_of(
            record(Ceiling, {"priority": _priority, "most": share}, required=("priority", "most")), unique="priority"
        ),
    },
    required=("spread",),
    check=_check_ceilings,
)


admission: Reader[AdmissionSettings] = record(
    AdmissionSettings,
    {
        "max_queued": integer(least=0),
        "max_bytes": size(),
        "bands": _bands,
        "max_wait": duration(most=_HOUR),
        "slot_budget": boolean,
        "fairness": _fairness,
        "ordering": _ordering,
        "patience": duration(most=_HOUR),
        "saturation": _saturation,
        "chance": _chance,
        "ceilings": ceilings,
        "probation": record(_slots_share, {"slots_share": share}, required=("slots_share",)),
    },
    names={"probation": "probation_slots_share"},
    check=_check_admission,
)


objectives: Reader[tuple[Objective, ...]] = list_of(
    record(Objective, {"name": word, "priority": _priority}, required=("name",)), unique="name"
)


budgets: Reader[BudgetSettings] = record(
    BudgetSettings,
    {
        "loads_per_pod_per_minute": number(least=0.0, most=1e6),
        "pods_loading_share": share,
        "loads_at_once": integer(least=1, most=4096),
        "scrape_core_share": positive_share,
    },
)


def _week_time(at: At) -> str:
    value = text(at)
    try:
        week_minute(value)
    except CalendarError as error:
        at.refuse(str(error))
    return value


placement: Reader[PlacementSettings] = record(
    PlacementSettings,
    {
        "enabled": boolean,
        "tick": duration(least=0.05, most=_HOUR),
        "replicas": choice("off", "auto"),
        "solver": choice("flow", "rendezvous"),
        "solve_every": duration(least=0.05, most=_HOUR),
        "moves_per_minute": number(least=0.0, most=1e6),
        "forecast": choice("off", "last_hour", "seasonal", "blend"),
        "learn_groups": boolean,
        "warm_up": duration(most=_HOUR),
        "handover": duration(most=_HOUR),
        "weekend": record(
            WeekendSettings,
            {"timezone": timezone, "from": _week_time, "to": _week_time},
            names={"from": "begins", "to": "ends"},
        ),
        "history": text,
        "store": text,
        "sources": list_of(text, unique=""),
    },
)


def _check_scrape(at: At, scrape: ScrapeSettings) -> None:
    if scrape.stale_after <= scrape.interval:
        at.nearest("stale_after").note(
            f"stale_after is {scrape.stale_after:g}s and must be longer than interval, which is {scrape.interval:g}s",
            hint="otherwise every pod is stale before its next scrape",
            value="",
        )


scrape: Reader[ScrapeSettings] = record(
    ScrapeSettings,
    {
        "interval": duration(least=0.05, most=_HOUR),
        "timeout": duration(least=0.01, most=60.0),
        "stale_after": duration(least=0.1, most=24 * _HOUR),
        "models_every": duration(least=0.05, most=24 * _HOUR),
    },
    check=_check_scrape,
)


def tcp_address(at: At) -> str:
    """`host:port` to listen on."""
    value = text(at)
    host, separator, port = value.rpartition(":")
    if not separator or not port.isascii() or not port.isdigit() or len(port) > 5 or not 0 < int(port) < 65_536:
        at.refuse("must be host:port with a port in 1-65535", hint='for example "127.0.0.1:9091"')
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        valid = host == "localhost" or bracketed == (ipaddress.ip_address(host.strip("[]")).version == 6)
    except ValueError:
        valid = False
    if not valid:
        at.refuse('must have "localhost" or an IP address of this machine as its host', hint='"0.0.0.0" means all')
    return value


def listen_address(at: At) -> str:
    """`host:port` or `unix:PATH`."""
    value = text(at)
    path = value.removeprefix("unix:")
    if path == value:
        return tcp_address(at)
    if not path or len(path.encode()) > _SOCKET_PATH_BYTES:
        at.refuse(f"must have a path of 1 to {_SOCKET_PATH_BYTES} bytes after unix:")
    return value


def connect_address(at: At) -> str:
    """`host:port` or `unix:PATH` of somebody else; the host may be a name."""
    value = text(at)
    if value.startswith("unix:"):
        return listen_address(at)
    host, separator, port = value.rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65_536:
        at.refuse("must be host:port with a port in 1-65535, or unix:PATH", hint='for example "127.0.0.1:9901"')
    return value


def _check_server(at: At, server: ServerSettings) -> None:
    first: dict[str, str] = {}
    for name in ("extproc", "health", "endpoint", "metrics", "admin"):
        address = getattr(server, name)
        other = first.setdefault(address, name)
        if other != name:
            at.nearest(name).note(f"{name} and {other} would both listen on {address}; each needs its own", value="")
    for name in ("admin_token", "metrics_token"):
        if getattr(server, name) is not None and getattr(server, f"{name}_file") is not None:
            at.nearest(name).note(f"there is {name}_file too; keep one of both", value="")


_MOST_BODY = 2**30 - 2**20
"""1023 MiB: twice as much, and a MiB, is what gRPC can take in one message."""

server: Reader[ServerSettings] = record(
    ServerSettings,
    {
        "extproc": listen_address,
        "health": tcp_address,
        "body": choice("buffered", "full_duplex_streamed"),
        "observe": choice("headers", "bodies"),
        "endpoint": tcp_address,
        "metrics": tcp_address,
        "metrics_adapters": integer(least=1, most=1000),
        "metrics_compat": choice("both", "llm-d", "gie", "off"),
        "admin": tcp_address,
        "admin_token": word,
        "admin_token_file": text,
        "metrics_token": word,
        "metrics_token_file": text,
        "envoy_admin": connect_address,
        "max_body": size(most=_MOST_BODY),
        "drain_timeout": duration(most=24 * _HOUR),
    },
    check=_check_server,
)
