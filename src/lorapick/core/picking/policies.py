"""All picking policies by name. Add a policy: one file, one line here; it then runs live and in simulation."""

from collections.abc import Callable

from lorapick.core.picking.at_random import AtRandom
from lorapick.core.picking.chwbl import Chwbl
from lorapick.core.picking.cost import Cost
from lorapick.core.picking.epp.policy import ProfilePolicy
from lorapick.core.picking.gie import GieDefault, GieLora
from lorapick.core.picking.least_loaded import LeastLoaded
from lorapick.core.picking.policy import Policy
from lorapick.core.picking.power_of_two import PowerOfTwo
from lorapick.core.picking.rendezvous import Rendezvous
from lorapick.core.picking.round_robin import RoundRobin
from lorapick.core.picking.session_sticky import SessionSticky
from lorapick.core.picking.weighted import Weighted
from lorapick.model.settings import PickingSettings

POLICIES: dict[str, Callable[[PickingSettings], Policy]] = {
    "weighted": Weighted,
    "cost": Cost,
    "round-robin": RoundRobin,
    "random": AtRandom,
    "least-loaded": LeastLoaded,
    "power-of-two": PowerOfTwo,
    "session-sticky": SessionSticky,
    "chwbl": Chwbl,
    "rendezvous": Rendezvous,
    "gie-default": GieDefault,
    "gie-lora": GieLora,
}


def make_policy(settings: PickingSettings) -> Policy:
    """The policy that the settings name, or the one that runs their profiles.

    Raises:
        ValueError: no policy has that name; the message lists those that exist.
    """
    if settings.profiles is not None:
        return ProfilePolicy(settings, settings.profiles)
    maker = POLICIES.get(settings.policy)
    if maker is None:
        raise ValueError(f"picking.policy: {settings.policy!r} is unknown; use one of {', '.join(POLICIES)}")
    return maker(settings)
