"""Whether a pod can serve an adapter, and whether a pod is what the configuration says of it.

In: a declared adapter with what its files told, a pod with what it reported. Out: each reason why not, in words.
Not here: reading files (see `live.catalogue`), whether a pod is well, and who goes where.
"""

from enum import StrEnum
from typing import NamedTuple

from lorapick.model.adapters import Adapter
from lorapick.model.placement import AdapterFacts
from lorapick.model.pods import Engine, Pod, PodReport


class MisfitReason(StrEnum):
    """Why a pod cannot serve an adapter."""

    NAME = "name"
    BASE_MODEL = "base_model"
    RANK = "rank"
    MODULES = "modules"
    """It changes what the base model does not have. `lorapick check` says so; pods do not tell their modules."""
    NEEDS = "needs"
    SOURCE = "source"
    """It was declared without one, and the engine is told with each request where adapters are."""
    RUNTIME_LOADING = "runtime_loading"


class Misfit(NamedTuple):
    """One reason, and in words: value, limit, what would help."""

    reason: MisfitReason
    message: str


class _Refused(NamedTuple):
    """What an engine cannot do, in PEFT's words; those with `=` are beginnings."""

    needs: tuple[str, ...]
    but: tuple[str, ...] = ()
    """These it can."""


_BEYOND_PAIRS = (
    "use_dora", "use_qalora", "lora_bias", "bias", "layer_replication", "alora_invocation_tokens",
    "init_lora_weights=", "modules_to_save=",
)  # fmt: skip
CANNOT: dict[Engine, _Refused] = {
    # vLLM 0.32 answers 500 to each of these. Pairs on embed_tokens and lm_head depend on the model's class there.
    Engine.VLLM: _Refused(_BEYOND_PAIRS, but=("modules_to_save=classifier", "modules_to_save=score")),
    # SGLang 0.5 refuses DoRA; the others it loads as if they were plain, and answers wrongly.
    Engine.SGLANG: _Refused(_BEYOND_PAIRS),
}
"""Engines that are not here are believed to do everything."""
_QUANTIZED = (
    "-unsloth", "-bnb", "-4bit", "-8bit", "-awq", "-gptq", "-int4", "-int8", "-fp8", "-fp4", "-nvfp4", "-dynamic",
    "-hf", "-gguf", "-bf16",
)  # fmt: skip
"""Ends of names of copies that the same adapters fit."""


def problems(
    adapter: Adapter,
    pod: Pod,
    *,
    facts: AdapterFacts | None = None,
    max_rank: int | None = None,
    base_models: tuple[str, ...] | None = None,
    runtime_loading: bool | None = None,
) -> list[Misfit]:
    """Why `pod` cannot serve `adapter`; nothing when it can, as far as anybody knows.

    Args:
        adapter: its `base_model` None fits every pod: fill in the fleet's before.
        pod: as discovery names it.
        facts: what the files told; None: nobody looked.
        max_rank: of the pod, if it said; None: as configured.
        base_models: names that the pod reports; None: as configured.
        runtime_loading: whether it takes loads over HTTP; None: nobody tried. Ask for adapters that the pod does not
            know by itself only.
    """
    facts = facts or AdapterFacts()
    rank = facts.rank if facts.rank is not None else adapter.rank
    highest = pod.limits.max_lora_rank if max_rank is None else max_rank
    served = (pod.base_model,) if base_models is None else base_models
    found: list[Misfit] = []
    if "," in adapter.name:
        found.append(Misfit(MisfitReason.NAME, f"{adapter.name!r} has a comma, which vLLM joins names with; rename it"))
    if adapter.base_model is not None and adapter.base_model not in served:
        told = ", ".join(served) or "none"
        message = f"{adapter.name} is for the base model {adapter.base_model}; {pod.name} serves {told}"
        found.append(Misfit(MisfitReason.BASE_MODEL, message))
    if rank is not None and rank > highest:
        message = f"{adapter.name} has rank {rank}; {pod.name} takes {highest} at most (max_lora_rank): raise it there"
        found.append(Misfit(MisfitReason.RANK, message))
    cannot = [need for need in facts.needs if _cannot(pod.engine, need)]
    if cannot:
        message = (
            f"{adapter.name} needs {', '.join(cannot)}, which {pod.engine.value} cannot do; merge it or train without"
        )
        found.append(Misfit(MisfitReason.NEEDS, message))
    if pod.engine is Engine.TRTLLM and adapter.source is None:
        message = f"{adapter.name} has no source, which {pod.name} (trtllm) is told with each request: give it one"
        found.append(Misfit(MisfitReason.SOURCE, message))
    if runtime_loading is False:
        found.append(Misfit(MisfitReason.RUNTIME_LOADING, _closed(pod)))
    return found


def drift(pod: Pod, report: PodReport) -> list[str]:
    """Where a pod says otherwise than the configuration does; what it does not say is no drift."""
    found = [
        f"{pod.name}: {name} is {configured} by configuration and {told} by the pod; correct its entry in the pods file"
        for name, configured, told in (
            ("max_loras", pod.limits.max_loras, report.max_loras),
            ("max_cpu_loras", pod.limits.max_cpu_loras, report.max_cpu_loras),
        )
        if told is not None and told != configured
    ]
    if report.base_models is not None and pod.base_model not in report.base_models:
        told = ", ".join(report.base_models) or "none"
        found.append(f"{pod.name}: base_model is {pod.base_model} by configuration; the pod serves {told}")
    ranks = [loaded.rank for loaded in report.loaded or () if loaded.rank is not None]
    if ranks and max(ranks) > pod.limits.max_lora_rank:
        found.append(
            f"{pod.name}: max_lora_rank is {pod.limits.max_lora_rank} by configuration; the pod holds an adapter of "
            f"rank {max(ranks)}"
        )
    return found


def other_base(told: str | None, wanted: str) -> bool:
    """Whether an adapter's file names another base model than `wanted`.

    Only names of repositories (`org/name`) can be compared: a path or a served name says nothing. Copies of a model
    in fewer bits, or of another organisation, are the same one.
    """
    one, other = _plain(told or ""), _plain(wanted)
    return one is not None and other is not None and one != other


def _plain(name: str) -> str | None:
    org, slash, model = name.partition("/")
    if not slash or not org or not model or "/" in model or org[0] in ".~":
        return None
    model = model.lower().removeprefix("meta-")
    while end := next((end for end in _QUANTIZED if model.endswith(end) and model != end), None):
        model = model.removesuffix(end)
    return model


def _cannot(engine: Engine, need: str) -> bool:
    refused = CANNOT.get(engine)
    if refused is None or need in refused.but:
        return False
    return any(need == each or (each.endswith("=") and need.startswith(each)) for each in refused.needs)


def _closed(pod: Pod) -> str:
    how = {
        Engine.VLLM: "start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1",
        Engine.SGLANG: "start it with --enable-lora and dp_size 1",
    }.get(pod.engine, "declare the adapter where it starts")
    return f"{pod.name} takes no adapters while it runs; {how}"
