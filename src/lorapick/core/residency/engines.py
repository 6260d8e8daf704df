"""How the engines' adapter caches differ, as far as a shadow of them has to know.

In: a pod's engine. Out: facts. Not here: the caches themselves (see `core.residency.shadow`), what engines report
(see `wire.engines`). Add an engine: one line.
"""

from typing import NamedTuple

from lorapick.model.pods import Engine


class Caches(NamedTuple):
    """One engine's two memory levels."""

    host_level: bool = True
    """What leaves the GPU stays in host memory. LoRAX drops it: its next load is from local disk."""
    unload_frees: bool = False
    """An unload drops the weights (SGLang). vLLM forgets only the name; its LRU has the weights until it moves on."""
    unloads: bool = False
    """It can be told to unload, over HTTP. TensorRT-LLM and LoRAX load what requests name, and have no such path."""
    loads: bool = False
    """An adapter can be brought in before a client asks for it: by a path for that, or by a request for one token."""
    registers: bool = False
    """It can be told names that it does not know. TensorRT-LLM needs not (requests bring name and path), Triton's
    frontend has those of its `multi_lora.json`."""
    loads_to_host: bool = False
    """A load that is asked for over HTTP ends in host memory (SGLang); the slot comes with the first request. vLLM's
    ends in a slot."""

    @property
    def relieves(self) -> bool:
        """Whether memory can be had by asking for it."""
        return self.unloads and self.unload_frees


CACHES: dict[Engine, Caches] = {
    Engine.VLLM: Caches(unloads=True, loads=True, registers=True),
    Engine.SGLANG: Caches(unload_frees=True, unloads=True, loads_to_host=True, loads=True, registers=True),
    # TensorRT-LLM has a host cache and a device cache, both LRU. For Triton's backend their sizes are in bytes and come
    # from the operator.
    Engine.TRTLLM: Caches(loads=True),
    Engine.TRITON: Caches(loads=True),
    Engine.LORAX: Caches(host_level=False, unload_frees=True),
}
"""Read in vLLM 0.32.0, SGLang 0.5.23, TensorRT-LLM 1.3, tensorrtllm_backend 0b9d7d5, LoRAX a7394ba."""
