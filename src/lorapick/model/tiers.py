"""Where an adapter is on a pod, and how we know."""

from enum import IntEnum, StrEnum


class Tier(IntEnum):
    """Place of an adapter on one pod, in rising order of readiness. The value is the code in the residency columns."""

    UNREGISTERED = 0
    """The engine would answer 404."""
    DISK = 1
    """Registered, in neither memory level."""
    CPU = 2
    """In the engine's host-memory level."""
    LOADING = 3
    """On its way into a GPU slot; followers coalesce here."""
    GPU_IDLE = 4
    """Holds a GPU slot, no request in flight."""
    GPU_SERVING = 5
    """Holds a GPU slot with requests in flight."""

    __hash__ = int.__hash__
    """An enum's own hash is a call of Python code, and counting by tier is done for every request."""

    @property
    def word(self) -> str:
        """Lower-case name, as used in labels, JSON and docs."""
        return _WORDS[self]

    @property
    def on_gpu(self) -> bool:
        """Whether the adapter holds a GPU slot and is usable there at once."""
        return self >= _GPU_IDLE


# Looking a member up in its enum takes longer than what is done with it.
_GPU_IDLE = int(Tier.GPU_IDLE)
_WORDS = tuple(tier.name.lower() for tier in Tier)


class Source(StrEnum):
    """How a belief about a tier came to be. Reported beats commanded beats inferred."""

    __hash__ = str.__hash__

    REPORTED = "reported"
    """The engine said so (`vllm:lora_adapter_loaded`, SGLang's lists)."""
    COMMANDED = "commanded"
    """We loaded or unloaded it and the engine agreed."""
    INFERRED = "inferred"
    """A shadow of the engine's own caches, fed by what we routed."""
    PEER = "peer"
    """Another picker of the fleet said that it has the adapter loaded. Beats inferred, loses to reported."""


class Evidence(StrEnum):
    """What last spoke of an adapter on a pod, as opposed to what the shadow concludes."""

    ANSWER = "answer"
    """A request of ours was answered: response headers, or its end."""
    SCRAPE = "scrape"
    """A metrics page named it as in flight, or as used since the page before."""
    LIST = "list"
    """The engine's own list of what it has in memory, with this adapter in it or without."""
    KV_EVENT = "kv_event"
    """The engine stored KV blocks that it computed under this adapter."""
    COMMAND = "command"
    """The engine agreed to a load, or said that one failed, or that it evicted the adapter."""
