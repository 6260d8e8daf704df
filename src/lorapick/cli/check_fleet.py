"""The fleet that `lorapick check` judges a rollout for, from a configuration or from a running picker.

In: a path, or the URL of an admin API. Out: a `Fleet`; the same one of both, as far as the picker tells. Not here: the
rollout (see `check_input`), any judgement (see `plan.gate`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from lorapick.cli import admin_client
from lorapick.cli.loading import load
from lorapick.core.picking.epp.policy import nearest_policy
from lorapick.live.admin_views import Adapters
from lorapick.live.publish import FleetSnapshot, PodRow
from lorapick.model.adapters import Adapter
from lorapick.model.pods import Pod, PodLimits
from lorapick.model.signals import Signals
from lorapick.model.units import AdapterName
from lorapick.plan.gate.rollout import RolloutError
from lorapick.plan.gate.values import Rules, rules_of
from lorapick.plan.prediction.values import FleetShape
from lorapick.wire.admin_answers import AliasesAnswer, PlacementAnswer

AnswerT = TypeVar("AnswerT", bound=msgspec.Struct)
_LIMITS = PodLimits()


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """Where adapters will run, and who is there."""

    shape: FleetShape
    rules: Rules
    adapters: tuple[Adapter, ...]
    """Declared, or pinned."""
    aliases: tuple[str, ...] = ()
    """Names that stand for adapters."""
    rates: Mapping[AdapterName, float] = {}
    """Requests per second, as measured by a picker."""
    measured: bool = False
    """Whether there is a picker that measures."""
    limits_known: bool = True
    """Whether base models and ranks of the pods are: pickers of older versions do not tell them."""
    told_by: str
    """Who says so: the configuration's path, or `the picker at URL`."""


def fleet_of(config: Path) -> Fleet:
    """The fleet of a configuration.

    Raises:
        ConfigError: it is none.
        RolloutError: it names no pods.
    """
    loaded = load(config)
    settings = loaded.settings
    if not loaded.pods:
        raise RolloutError(f"{config} names no pods; a check needs their slots: list them, or ask a picker (--admin)")
    return Fleet(
        shape=FleetShape(pods=loaded.pods, policy=nearest_policy(settings.picking)),
        rules=rules_of(settings.alerts, settings.slo),
        adapters=settings.adapters,
        aliases=tuple(alias.name for alias in settings.aliases),
        told_by=str(config),
    )


def fleet_at(admin: str) -> Fleet:
    """The fleet of a running picker, with its pins, its bounds, and its traffic of the last 10 minutes.

    Raises:
        AdminError: nobody answers, or not as a picker does.
        RolloutError: it has no pods.
    """
    snapshot = _answer(admin, "/v1/fleet", FleetSnapshot)
    if not snapshot.pods:
        raise RolloutError(f"the picker at {admin} has no pods; a check needs their slots: name a configuration")
    signals = _answer(admin, "/v1/signals", Signals)
    aliases = _if_placed(admin, "/v1/aliases", AliasesAnswer)
    return Fleet(
        shape=FleetShape(pods=tuple(map(_pod, snapshot.pods)), policy=snapshot.policy),
        rules=rules_of(snapshot.bounds, snapshot.slo),
        adapters=_adapters_at(admin),
        aliases=() if aliases is None else tuple(each.name for each in aliases.aliases),
        rates={each.adapter: each.requests_per_second for each in signals.adapters if each.requests_per_second > 0},
        limits_known=all(row.base_model is not None and row.max_lora_rank is not None for row in snapshot.pods),
        measured=True,
        told_by=f"the picker at {admin}",
    )


def _pod(row: PodRow) -> Pod:
    limits = PodLimits(
        max_loras=row.slots,
        max_lora_rank=_LIMITS.max_lora_rank if row.max_lora_rank is None else row.max_lora_rank,
        max_num_seqs=_LIMITS.max_num_seqs if row.max_num_seqs is None else row.max_num_seqs,
        max_queue=row.max_queue,
    )
    fields = {name: getattr(row, name) for name in ("name", "address", "role", "zone", "labels", "engine")}
    pod = Pod(**fields, limits=limits)
    return pod if row.base_model is None else msgspec.structs.replace(pod, base_model=row.base_model)


def _adapters_at(admin: str) -> tuple[Adapter, ...]:
    """What is declared there, and what is pinned."""
    found = {
        row.name: Adapter(name=row.name, rank=row.rank, base_model=row.base_model, declared=True)
        for row in _answer(admin, "/v1/adapters", Adapters).adapters
        if row.declared
    }
    placement = _if_placed(admin, "/v1/placement", PlacementAnswer)
    for pinned in () if placement is None else placement.pins:
        adapter = found.get(pinned.adapter, Adapter(name=pinned.adapter))
        found[pinned.adapter] = msgspec.structs.replace(adapter, pin=pinned.pin)
    return tuple(found.values())


def _answer(admin: str, path: str, kind: type[AnswerT]) -> AnswerT:
    return admin_client.decode(admin_client.get(admin, path), kind, admin)


def _if_placed(admin: str, path: str, kind: type[AnswerT]) -> AnswerT | None:
    """The answer; None from a picker that places nothing."""
    try:
        return _answer(admin, path, kind)
    except admin_client.RefusedError:
        return None
