"""Whether a base model has what an adapter changes: its modules, and sides that are wider than the rank.

In: an adapter's configuration with what its files told, a base model's shape. Out: reasons why it does not fit. Not
here: what engines can do with the modules (see `core.placement.compat`), how large they are (see `plan.sizes`).
"""

import difflib
from collections.abc import Iterator, Sequence
from functools import lru_cache

from lorapick.core.placement.compat import Misfit, MisfitReason
from lorapick.model.placement import AdapterFacts
from lorapick.model.units import AdapterName
from lorapick.plan.sizes.models import BaseModel
from lorapick.plan.sizes.patience import patience
from lorapick.wire.model_config import ModelShape
from lorapick.wire.model_modules import Projection, outer_modules, projections
from lorapick.wire.peft import PeftConfig
from lorapick.wire.peft_targets import USUAL_TARGETS, Targets

_TEXT_ONLY = "model"
"""What names of modules begin with where a model has no part but the one for text."""
_IN_ONE = ("experts", "base_layer")
"""Last parts of names under which Transformers 5 has all experts of a layer; shapes have them one by one."""


def misfits(name: AdapterName, config: PeftConfig, *, facts: AdapterFacts, model: BaseModel) -> Iterator[Misfit]:
    """Why this adapter cannot be one of `model`.

    Raises:
        PeftError: a pattern in its configuration is no regular expression.
    """
    targets = Targets(config, file=name, usual=USUAL_TARGETS.get(model.shape.model_type, ()), left=patience())
    modules = _modules(model.shape)
    strange = _strange(targets, facts, modules=modules, experts=model.shape.experts > 0)
    reached = [each for each in modules if targets.reach(each.module)]
    # Of models that also see, the shape has the text part only; who changes that may change the other part too.
    if strange and not (reached and model.shape.prefix != _TEXT_ONLY):
        message = (
            f"{name} changes {', '.join(strange)}, which {model.name} does not have{_near(strange[0], modules)}; there "
            f"are {_listed(modules)}: correct its target_modules, or it is for another model"
        )
        yield Misfit(MisfitReason.MODULES, message)
        return
    if not reached and not targets.all_linear and not config.target_parameters:
        message = f"{name} changes nothing of {model.name}: {targets.named!r} is none of {_listed(modules)}"
        yield Misfit(MisfitReason.MODULES, message)
    narrow = next((each for each in reached if targets.rank(each.module) > _side(each)), None)
    if narrow is not None:
        message = (
            f"{name} has rank {targets.rank(narrow.module)} on {narrow.name}, which is {narrow.outputs} × "
            f"{narrow.inputs} in {model.name}: above {_side(narrow)} a pair of matrices is no smaller than what it "
            "changes; lower the rank"
        )
        yield Misfit(MisfitReason.MODULES, message)


@lru_cache(maxsize=16)
def _modules(shape: ModelShape) -> tuple[Projection, ...]:
    return (*projections(shape), *outer_modules(shape))


def _strange(targets: Targets, facts: AdapterFacts, *, modules: Sequence[Projection], experts: bool) -> list[str]:
    names = dict.fromkeys(each.name for each in modules)
    found = list(targets.unmatched([each.module for each in modules]))
    if facts.size is not None:  # then targets are those of the tensors in the file
        found += [each for each in facts.targets if each not in names]
    return [each for each in dict.fromkeys(found) if not (experts and each in _IN_ONE)]


def _side(each: Projection) -> float:
    """The narrower one; a router's outputs are few, and ranks above them are usual."""
    return float("inf") if each.router else min(each.inputs, each.outputs)


def _near(name: str, modules: Sequence[Projection]) -> str:
    """Names that may be meant: `up_proj` by `mlp.up`, `q_proj` by `query`."""
    names = list(dict.fromkeys(each.name for each in modules))
    last = name.rpartition(".")[2]
    found = [each for each in names if last and last in each]
    found = found or difflib.get_close_matches(last, names, n=2, cutoff=0.7)
    found = found or [each for each in names if "_proj" in each and last.startswith(each.removesuffix("_proj"))]
    return f" (near: {', '.join(found)})" if found else ""


def _listed(modules: Sequence[Projection]) -> str:
    return ", ".join(dict.fromkeys(each.name for each in modules))
