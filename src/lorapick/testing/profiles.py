"""Scheduling profiles for tests: a fleet whose pods are picked by one, and values of single plugins.

In: plugin types with parameters. Out: playbooks. Not here: anything that a picker does.
"""

from collections.abc import Iterable
from typing import Any

from lorapick.model.pods import Pod
from lorapick.model.profiles import PluginSpec, Profile, Profiles
from lorapick.model.settings import PickingSettings, PressureSettings, Settings
from lorapick.testing.playbook import Playbook, plain_pod

DEFAULTS: dict[str, dict[str, Any]] = {"prefix-cache-scorer": {"weight": 0.0, "scale_tokens": 8192.0}}


def spec(type_: str, *, weight: float = 1.0, **parameters: Any) -> PluginSpec:
    """One plugin, called by its type."""
    return PluginSpec(type=type_, name=type_, weight=weight, parameters=DEFAULTS.get(type_, {}) | parameters)


def profile(
    *scorers: str | PluginSpec, filters: Iterable[str | PluginSpec] = (), picker: str = "max-score-picker"
) -> Profile:
    """A profile of these."""
    return Profile(
        name="default",
        filters=tuple(each if isinstance(each, PluginSpec) else spec(each) for each in filters),
        scorers=tuple(each if isinstance(each, PluginSpec) else spec(each) for each in scorers),
        picker=spec(picker),
    )


def settings_with(decode: Profile, prefill: Profile | None = None, **fields: Any) -> Settings:
    """Settings of a fleet that is picked by them; no pod's memory is ever short."""
    return Settings(
        **{
            "picking": PickingSettings(profiles=Profiles(decode=decode, prefill=prefill)),
            "pressure": PressureSettings(soft=1.1, hard=1.1, critical=1.1),
            **fields,
        }
    )


def book_with(decode: Profile, *, pods: Iterable[str | Pod], prefill: Profile | None = None, **fields: Any) -> Playbook:
    """A playbook of such a fleet; pods by name take a hundred requests in their queues."""
    known = [pod if isinstance(pod, Pod) else plain_pod(pod, max_queue=100) for pod in pods]
    seed = fields.pop("seed", 0)
    adapters = fields.pop("adapters", ["legal", "foo", "bar"])
    return Playbook(pods=known, adapters=adapters, settings=settings_with(decode, prefill, **fields), seed=seed)


def scores(book: Playbook, model: str = "legal", **fields: Any) -> dict[str, float | None]:
    """Score of each pod for one more request, which ends at once; None: it was no candidate."""
    book.arrive(model, id="asked", **fields)
    told = {verdict.pod: verdict.score for verdict in book.explain("asked").verdicts}
    book.end("asked")
    return {pod: told[pod] for pod in sorted(told)}
