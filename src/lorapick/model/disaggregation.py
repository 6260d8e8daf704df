"""Prefill on one pod, decode on another [R4]: settings, and what a pair of pods was expected to cost.

In: nothing. Out: values. Not here: the choice (see `core.picking.pairing`), how pods hand over KV (see
`live.podserver.sidecar`).
"""

from enum import StrEnum

import msgspec

from lorapick.model.units import Bytes, Seconds, Tokens


class Decide(StrEnum):
    """What decides whether a request is prefilled elsewhere than where it is decoded."""

    NEVER = "never"
    TOKENS = "tokens"
    """Prompt tokens that the decode pod has not cached: at least `uncached_tokens` of them go elsewhere."""
    COST = "cost"
    """Whichever is expected to take less time, its own and that of others."""
    ALWAYS = "always"
    """Whenever a pod that prefills is there."""


class Choice(StrEnum):
    """How the two pods are chosen."""

    JOINT = "joint"
    """By what both cost together, the transfer included; for policies that leave admission to the picker."""
    INDEPENDENT = "independent"
    """Each by the policy, first the one that decodes: what other pickers do."""


class LinkSpeeds(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes per second of KV between two pods, by how near they are."""

    same_node: float = 200e9
    """NVLink; about half of the 450 GB/s each way of an H100."""
    same_zone: float = 40e9
    """RDMA; 400 Gbit/s less overhead."""
    elsewhere: float = 2.5e9
    """TCP; 25 Gbit/s less overhead."""


class DisaggregationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are split between pods that prefill and pods that decode; of no matter where all do both."""

    decide: Decide = Decide.TOKENS
    choice: Choice = Choice.JOINT
    uncached_tokens: Tokens = 256
    kv_bytes_per_token: Bytes = 131_072
    """32 layers × 8 KV heads × 128 × K and V × 2 bytes (Llama-3.1-8B, FP16)."""
    links: LinkSpeeds = LinkSpeeds()
    link_latency: Seconds = 2e-3
    """Of one handover, whatever its size."""
    node_label: str = "kubernetes.io/hostname"
    """Label of pods that names their node; pods without it are on nodes of their own."""
    pass_encoders: bool = False
    """Let the header that names pods which encode images through as it came: where whoever is before this picker sets
    it, and clients cannot. A client that may set it has pods call addresses of its choice."""


class SplitCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that a pair was chosen by."""

    prefill: Seconds
    """Queue, load and prefill on the pod that prefills."""
    transfer: Seconds
    """KV from one to the other."""
    decode: Seconds
    """Queue and load on the pod that decodes, as far as they outlast the prefill; and what the request does to others
    there."""
    alone: Seconds | None
    """Everything on the pod that decodes; None: it takes no prefill."""
    besides: Seconds = 0.0
    """What counts besides, though this request does not wait for it: a load that the prefill hides, and what a load on
    the pod that prefills does to others."""

    @property
    def together(self) -> Seconds:
        """What a pair is expected to take."""
        return self.prefill + self.transfer + self.decode

    @property
    def counted(self) -> Seconds:
        """What a pair counts in the choice."""
        return self.together + self.besides
