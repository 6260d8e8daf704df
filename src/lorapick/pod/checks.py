"""What a pod's configuration must satisfy. In: a configuration. Out: nothing, or `BadPodConfig`."""

from collections.abc import Callable

from lorapick.pod.errors import BadPodConfig
from lorapick.pod.values import Memory, Merging, PodConfig, SwapMode


def check_config(config: PodConfig, draw: Callable[[], float] | None) -> None:
    """Raise BadPodConfig, with the value and what it must be, when the configuration describes no pod."""
    _check_sizes(config)
    _check_costs(config)
    _check_variants(config)
    if not 0 <= config.load_failure_share <= 1:
        raise BadPodConfig(f"load_failure_share is {config.load_failure_share}: must be in [0, 1]")
    if config.load_failure_share > 0 and draw is None:
        raise BadPodConfig(f"load_failure_share is {config.load_failure_share}: hand in `draw`, numbers in [0, 1)")


def _check_sizes(config: PodConfig) -> None:
    limits = config.limits
    sizes = {
        "max_loras": limits.max_loras,
        "max_num_seqs": limits.max_num_seqs,
        "block_size": config.block_size,
        "kv_blocks": config.kv_blocks,
        "max_model_len": config.max_model_len,
        "kv_bytes_per_token": config.kv_bytes_per_token,
        "max_batched_tokens": config.max_batched_tokens if config.max_batched_tokens is not None else 1,
    }
    for name, size in sizes.items():
        if size < 1:
            raise BadPodConfig(f"{name} is {size}: must be at least 1")
    if config.memory is Memory.SLOTS and limits.max_cpu_loras < limits.max_loras:
        raise BadPodConfig(
            f"max_cpu_loras is {limits.max_cpu_loras} and max_loras {limits.max_loras}: "
            "what is on the GPU is also in host memory, so max_cpu_loras must be at least max_loras"
        )
    if limits.max_cpu_loras < 1:
        raise BadPodConfig(f"max_cpu_loras is {limits.max_cpu_loras}: must be at least 1")


def _check_costs(config: PodConfig) -> None:
    step, swap = config.step, config.swap
    steps = (step.a, step.b, step.c, step.d, step.slot, step.scan, config.prefill_per_token)
    swaps = (swap.deallocation, swap.fragmentation, swap.initialisation, swap.warm_up, config.merging.seconds)
    if min(*steps, *swaps) < 0 or step.a + step.b <= 0:
        raise BadPodConfig(f"times must not be negative and a step must take time: {step}, {swap}")
    if min(swap.cpu_bandwidth, swap.disk_bandwidth) <= 0:
        raise BadPodConfig(f"bandwidths must be above 0: {swap}")
    if step.reference_rank < 1 or not 0 <= step.rank_slope <= 1:
        raise BadPodConfig(f"reference_rank must be at least 1 and rank_slope in [0, 1]: {step}")


def _check_variants(config: PodConfig) -> None:
    merging = config.merging
    drains = config.mode is SwapMode.DRAIN
    if drains and (config.memory is Memory.UNIFIED or merging.mode is not Merging.NEVER):
        raise BadPodConfig("unified memory and merged weights need mode `inline`: they know no drain")
    if not 0 <= merging.share <= 1 or merging.patience < 0:
        raise BadPodConfig(f"share must be in [0, 1] and patience not negative: {merging}")
