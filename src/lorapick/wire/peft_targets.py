"""Which modules of a base model an adapter's configuration reaches, and with what rank and alpha.

In: a `PeftConfig` and names of modules. Out: `Targets`, which answers for each name. Not here: the model's layers (see
`wire.model_modules`), what was in fact saved (the tensors say that).

The rules are those of PEFT since huggingface/peft#3318. Patterns are regular expressions out of the file, matched
against names of some 60 characters; one that was made to run for ever does so here as it does in PEFT.
"""

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property

from lorapick.wire.peft import PeftConfig, PeftError

ALL_LINEAR = "all-linear"
USUAL_TARGETS = {
    "llama": ("q_proj", "v_proj"), "mistral": ("q_proj", "v_proj"), "mixtral": ("q_proj", "v_proj"),
    "qwen2": ("q_proj", "v_proj"), "qwen3": ("q_proj", "v_proj"),
    "gemma": ("q_proj", "v_proj"), "gemma2": ("q_proj", "v_proj"), "gemma3_text": ("q_proj", "v_proj"),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
}  # fmt: skip
"""What PEFT takes for a model type when a configuration names no targets."""


class Targets:
    """Answers for one configuration."""

    def __init__(self, config: PeftConfig, *, file: str, usual: Sequence[str] = ()) -> None:
        """Compile the patterns; `usual` are targets for a configuration that names none.

        Raises:
            PeftError: a pattern is no regular expression.
        """
        self.config = config
        self.named: list[str] | str = list(usual) if config.target_modules is None else config.target_modules
        self._file = file
        self._ranks = [(self._pattern(key), rank) for key, rank in (config.rank_pattern or {}).items()]
        self._alphas = [(self._pattern(key), alpha) for key, alpha in (config.alpha_pattern or {}).items()]

    @property
    def all_linear(self) -> bool:
        """Whether every linear layer between embeddings and head is one."""
        return isinstance(self.named, str) and self.named.lower() == ALL_LINEAR

    def reach(self, module: str) -> bool:
        """Whether a linear layer of this name gets a pair of matrices; for `all-linear`, ask for inner layers only."""
        if self._excluded(module) or any(pattern.match(module) for pattern in self._whole):
            return False
        if self._regex is not None:
            return self._regex.fullmatch(module) is not None
        if self.all_linear or module in self.named:
            return True
        return module.endswith(self._endings) and self._in_layers(module)

    def whole(self, module: str) -> bool:
        """Whether `modules_to_save` has this module itself."""
        return any(module == name or module.endswith(f".{name}") for name in self.config.modules_to_save or ())

    def unmatched(self, modules: Sequence[str]) -> Iterator[str]:
        """Named targets that are no module of these."""
        for name in () if isinstance(self.named, str) else self.named:
            if not any(module == name or module.endswith(f".{name}") for module in modules):
                yield name

    def rank(self, module: str) -> int:
        """Of the module's pair: by the first pattern that fits. PEFT saves patterns in the order of the alphabet."""
        return next((rank for pattern, rank in self._ranks if pattern.match(module)), self.config.r)

    def alpha(self, module: str) -> float | None:
        """Of the module; None: the file names none."""
        return next((alpha for pattern, alpha in self._alphas if pattern.match(module)), self.config.lora_alpha)

    def scale(self, module: str, *, rank: int | None = None) -> float | None:
        """What the product of both matrices is multiplied by: alpha/r, or alpha/√r for rsLoRA.

        `rank` is what the matrices have; None: what the configuration says.
        """
        alpha, rank = self.alpha(module), rank or self.rank(module)
        if alpha is None:
            return None
        return alpha / (math.sqrt(rank) if self.config.use_rslora else rank)

    @cached_property
    def _endings(self) -> tuple[str, ...]:
        return tuple(f".{name}" for name in self.named)

    @cached_property
    def _regex(self) -> re.Pattern[str] | None:
        if not isinstance(self.named, str) or self.all_linear:
            return None
        return self._compiled(self.named)

    @cached_property
    def _unwanted(self) -> list[str] | re.Pattern[str]:
        excluded = self.config.exclude_modules or []
        return self._compiled(excluded) if isinstance(excluded, str) else excluded

    @cached_property
    def _whole(self) -> list[re.Pattern[str]]:
        return [self._compiled(rf"(^|.*\.){name}($|\..*)") for name in self.config.modules_to_save or ()]

    def _excluded(self, module: str) -> bool:
        if isinstance(self._unwanted, re.Pattern):
            return self._unwanted.fullmatch(module) is not None
        return any(module == name or module.endswith(f".{name}") for name in self._unwanted)

    def _in_layers(self, module: str) -> bool:
        wanted = self.config.layers_to_transform
        if wanted is None or wanted == []:
            return True
        number = self._layer(module)
        return number is not None and number in ([wanted] if isinstance(wanted, int) else wanted)

    def _layer(self, module: str) -> int | None:
        for pattern in self._numbers:
            if found := pattern.match(module):
                return int(found.group(pattern.groups))
        return None

    @cached_property
    def _numbers(self) -> list[re.Pattern[str]]:
        # The first number of a name: the second one is an expert's (huggingface/peft#3318).
        named = self.config.layers_pattern or []
        names = [named] if isinstance(named, str) else named or [r"[^.]*"]
        return [self._compiled(rf".*?\.{name}\.(\d+)\.") for name in names]

    def _pattern(self, key: str) -> re.Pattern[str]:
        return self._compiled(rf"(.*\.)?({key})$")

    def _compiled(self, pattern: str) -> re.Pattern[str]:
        try:
            with warnings.catch_warnings():
                # Python's doubts about `[[` are not ours to pass on.
                warnings.simplefilter("ignore", FutureWarning)
                return re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise PeftError(f"{self._file}: {pattern!r} is no regular expression: {error}") from None
