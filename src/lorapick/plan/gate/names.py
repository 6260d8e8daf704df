"""Names of a rollout that mean something else already, and names of today that nobody knows.

In: names, what the fleet has. Out: findings. Not here: names that cannot be (see `gate.compatibility`), names that
contradict the list they stand in (see `gate.rollout`).
"""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches

from lorapick.model.units import AdapterName
from lorapick.plan.gate.values import Finding, Level

SHOWN = 3


def clashes(
    names: Sequence[AdapterName], *, aliases: Collection[str], base_models: Collection[str]
) -> tuple[Finding, ...]:
    """Adapters that are called like an alias or like what a pod serves: requests for them would go elsewhere."""
    return tuple(_clashes(names, aliases=aliases, base_models=base_models))


def _clashes(
    names: Sequence[AdapterName], *, aliases: Collection[str], base_models: Collection[str]
) -> Iterator[Finding]:
    for name in names:
        what = "an alias" if name in aliases else "the base model's name" if name in base_models else None
        if what is not None:
            message = f"{name} is {what} on this fleet; give the adapter a name of its own"
            yield Finding(rule="name", level=Level.FAIL, message=message, adapter=name)


def strangers(
    names: Sequence[AdapterName], known: Collection[AdapterName], *, told_by: str, file: str
) -> tuple[Finding, ...]:
    """One warning for all of today's adapters that the fleet has never heard of; none where it knows of nobody."""
    unknown = [name for name in names if name not in known] if known else []
    if not unknown:
        return ()
    more = f" and {len(unknown) - SHOWN} more" if len(unknown) > SHOWN else ""
    it = "it" if len(unknown) == 1 else "them"
    close = get_close_matches(unknown[0], known, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    message = (
        f"{file} lists {', '.join(unknown[:SHOWN])}{more}, and {told_by} does not know {it}{meant}; declare {it} "
        "there, or let such names be with --undeclared-ok"
    )
    return (Finding(rule="today", level=Level.WARN, message=message),)
