"""What is worth knowing of an adapter beside its size: its scale, rules of thumb, what an engine would make of it.

In: an `AdapterSize`, its configuration. Out: numbers and sentences. Not here: the report (see `plan.sizes.report`).
"""

from collections.abc import Collection, Iterable

from lorapick.plan.sizes.adapters import AdapterSize
from lorapick.wire.peft import PeftConfig

STRONGEST = 2.0
"""alpha/r above which an adapter is likely to overshoot."""
WEAKEST = 0.25
"""alpha/r below which an adapter hardly acts."""
_RULES = {
    ("q_proj",): "1x",
    ("q_proj", "v_proj"): "2x",
    ("k_proj", "q_proj", "v_proj"): "3x",
    ("k_proj", "o_proj", "q_proj", "v_proj"): "4x",
    ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"): "6-8x",
}
"""Sizes beside an adapter on queries alone, as a rule of thumb has them: as if all matrices were square."""


def rule_of_thumb(names: Collection[str]) -> str | None:
    """The usual word for how many times larger such targets are than queries alone; None: there is no such word."""
    return _RULES.get(tuple(sorted(dict.fromkeys(names))))


def scales(size: AdapterSize) -> tuple[float, ...]:
    """Every factor that some pair is multiplied by, rising."""
    return tuple(sorted(dict.fromkeys(each.scale for each in size.modules if each.scale is not None)))


def warnings(size: AdapterSize, config: PeftConfig) -> Iterable[str]:
    """What should make whoever asked look again."""
    word = "alpha/√r" if config.use_rslora else "alpha/r"
    found = scales(size)
    acting = [each for each in found if each > 0]
    if acting and max(acting) > STRONGEST:
        yield f"{word} is {max(acting):g}, above {STRONGEST:g}: it may overshoot; lower alpha, or raise the rank"
    if acting and min(acting) < WEAKEST:
        yield f"{word} is {min(acting):g}, below {WEAKEST:g}: it will hardly act; raise alpha, or lower the rank"
    if 0.0 in found:
        yield f"{word} is 0: the adapter changes nothing, though PEFT and engines take it; give an alpha above 0"
    if found and found[0] < 0:
        yield (
            f"{word} is {found[0]:g}, below 0: what was trained is subtracted, though PEFT and engines take it; "
            "give an alpha above 0"
        )
    if config.use_rslora and found:
        yield f"rsLoRA divides by √r: plain alpha/r would be {(config.lora_alpha or 0.0) / config.r:g}"
    if size.narrow:
        yield f"rank above a module's narrower side, where it adds nothing: {', '.join(size.narrow)}"
    if size.uncounted:
        yield f"not counted, since the configuration does not say how large: {', '.join(size.uncounted)}"
    whole = [each for each in size.modules if each.rank is None and each.inputs is None]
    if any(each.name == "base_layer" for each in whole):
        yield "an embedding or head that is a target is saved beside its pair, unless by save_embedding_layers=False"
    whole = [each for each in whole if each.name != "base_layer"]
    if whole:
        names = ", ".join(f"{each.module} ({each.parameters:,})" for each in whole[:5])
        yield f"saved as a whole or in no pair of matrices, in parameters: {names}; vLLM takes no modules_to_save"
