"""What a simulated fleet is made of, as a value.

In: settings, pods, adapters, and where chance and the time of day come from. Out: `Setup`. Not here: making it (see
`sim.build`), playing it (see `sim.world`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lorapick.model.pods import Pod
from lorapick.model.retention import Retention
from lorapick.model.settings import Settings
from lorapick.model.units import PodName, Seconds
from lorapick.pod.values import AdapterSpec, PodConfig
from lorapick.sim.workload.follow import Followers


class Setup(NamedTuple):
    """What a world is made of."""

    settings: Settings
    pods: Sequence[tuple[Pod, PodConfig]]
    adapters: Sequence[AdapterSpec]
    """On the disk of every pod."""
    later: Sequence[PodName] = ()
    """Of the pods those that are not there at the begin."""
    followers: Followers | None = None
    """Requests that follow an answer."""
    draws: Callable[[PodName], Callable[[], float]] | None = None
    """Gives each pod its numbers for load failures."""
    retention: Callable[[], Retention] | None = None
    """Makes what says who leaves a pod's memory, once for each process; None: LRU, as in vLLM."""
    reports_loaded: bool = False
    """Whether pods say what they hold."""
    midnight: Seconds | None = None
    """Unix time at which the run begins; None: nobody tells the time of day."""
    journal: bool = False
    """Whether decisions can be explained afterwards."""
    tells_starts: bool = False
    """Whether the picker is told of the headers and of the first bytes of every answer, as where it looks at bodies."""
