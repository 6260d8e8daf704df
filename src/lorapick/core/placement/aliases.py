"""Aliases that move: which adapter a session gets, what is wrong with an alias, what a change of one means.

In: aliases, the key of a draw. Out: an adapter's name, problems, a sentence. Not here: where aliases are kept and who
asks (see `core.naming`), and the adapters' own states.

The draw is a weighted rendezvous: each target has a draw of its own for each key, and the least draw divided by the
weight wins. So a key keeps its adapter while the weights stand, and after a change of weights moves only to an adapter
whose weight grew against that of its own. Semantics are InferenceModelRewrite's (weighted choice by exact name, all
weights zero: uniform), but for the stickiness, which it does not have.
"""

import math
from collections.abc import Callable, Collection

from lorapick.core.draw import draw_for
from lorapick.model.adapters import Alias, AliasTarget
from lorapick.model.requests import Request
from lorapick.model.units import AdapterName, Ratio


def key_of(request: Request) -> str:
    """What a draw depends on: the session, so that it keeps its revision; without one the request alone."""
    return request.session or request.id


def chosen(alias: Alias, *, key: str, seed: int) -> AdapterName:
    """The adapter that `key` gets; the same for the same key, seed and weights. The alias has a target."""
    if len(alias.to) == 1:
        return alias.to[0].adapter
    weighted = [target for target in alias.to if target.weight > 0]
    return min(weighted or alias.to, key=lambda target: _arrival(alias, target, key=key, seed=seed)).adapter


def _arrival(alias: Alias, target: AliasTarget, *, key: str, seed: int) -> tuple[float, AdapterName]:
    """Exponential in the weight, so the least of them is each target's with its weight's share."""
    draw = draw_for(seed, key, purpose=f"alias:{alias.name}:{target.adapter}:")
    return -math.log1p(-draw) / (target.weight or 1), target.adapter


def problems(
    alias: Alias,
    *,
    adapters: Collection[AdapterName],
    aliases: Collection[str] = (),
    base_models: Collection[str] = (),
    servable: Callable[[AdapterName], bool] = lambda _: True,
) -> list[str]:
    """What is wrong with an alias; nothing when it may be set.

    Args:
        alias: the one to be set.
        adapters: names that are known.
        aliases: names of aliases that there are; the alias's own may be among them.
        base_models: names of base models.
        servable: whether some pod could serve an adapter, with weights that nobody refuses.
    """
    found: list[str] = []
    for kind, taken in (("a base model", base_models), ("an adapter", adapters)):
        if alias.name in taken:
            found.append(f"{alias.name} is the name of {kind}; give the alias a name of its own")
    if not alias.to:
        found.append(f"alias {alias.name} leads nowhere; name at least one adapter")
    elif any(target.weight < 0 for target in alias.to) or not any(target.weight for target in alias.to):
        weights = ", ".join(str(target.weight) for target in alias.to)
        found.append(f"alias {alias.name} has weights {weights}; give at least one adapter a weight above 0")
    for name in dict.fromkeys(target.adapter for target in alias.to):
        if sum(target.adapter == name for target in alias.to) > 1:
            found.append(f"alias {alias.name} names {name} twice; add up the weights")
        if name in aliases or name == alias.name:
            found.append(f"{name} is an alias; an alias leads to adapters only")
        elif name not in adapters:
            found.append(f"nobody knows an adapter {name}; declare it first")
        elif not servable(name):
            found.append(f"no pod can serve {name} now; see why with `lorapick adapters show {name}`")
    return found


def shares(alias: Alias | None) -> dict[AdapterName, Ratio]:
    """Each target's share of the sessions; shares add up to 1."""
    targets = () if alias is None else alias.to
    total = sum(target.weight for target in targets)
    return {target.adapter: target.weight / total if total else 1 / len(targets) for target in targets}


def moved(old: Alias | None, new: Alias | None) -> str:
    """What a change means, in a sentence: shares before and after, and how many sessions it moves at least."""
    name = (new or old or Alias(name="?", to=())).name
    if new is None:
        return f"alias {name} is gone"
    before, after = shares(old), shares(new)
    if old is None:
        return f"alias {name} is new: " + ", ".join(f"{each} {share:.3g}" for each, share in after.items())
    changed = [
        f"{each} {before.get(each, 0.0):.3g} -> {after.get(each, 0.0):.3g}"
        for each in dict.fromkeys((*before, *after))
        if before.get(each, 0.0) != after.get(each, 0.0)
    ]
    if not changed:
        return f"alias {name}: nothing changes"
    gained = sum(max(0.0, share - before.get(each, 0.0)) for each, share in after.items())
    return f"alias {name}: {', '.join(changed)}; at least {gained:.3g} of the sessions move"
