"""Which modules of a base model an adapter's configuration reaches, and with what rank and alpha.

In: a `PeftConfig` and names of modules. Out: `Targets`, which answers for each name. Not here: the model's layers (see
`wire.model_modules`), what was in fact saved (the tensors say that).

The rules are those of PEFT since huggingface/peft#3318. Patterns are regular expressions out of a file that anybody may
have sent: Python's `re` says whether they are any, and `regex`, which reads them alike and can be told when to stop,
matches them.
"""

import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import regex

from lorapick.model.units import Seconds
from lorapick.wire.peft import PeftConfig, PeftError

ALL_LINEAR = "all-linear"
USUAL_TARGETS = {
    "llama": ("q_proj", "v_proj"), "mistral": ("q_proj", "v_proj"), "mixtral": ("q_proj", "v_proj"),
    "qwen2": ("q_proj", "v_proj"), "qwen3": ("q_proj", "v_proj"),
    "gemma": ("q_proj", "v_proj"), "gemma2": ("q_proj", "v_proj"), "gemma3_text": ("q_proj", "v_proj"),
    "phi": ("q_proj", "v_proj", "fc1", "fc2"),
}  # fmt: skip
"""What PEFT takes for a model type when a configuration names no targets."""
PATIENCE: Seconds = 2.0
"""For all matches of one configuration; those of a usual one take some milliseconds."""
LONGEST_PATTERN = 10_000
"""Characters; longer ones take seconds to read."""
SHOWN = 100
"""Characters of a pattern that a message has."""
_SLOW = (
    f"the patterns of this file take more than {PATIENCE:g} s to match names of modules; write them without repeats "
    "of what repeats, or list the names"
)
_READ_OTHERWISE = re.compile(r"\[\[:|(?<!\\)\{(?!\d+(,\d*)?\}|,\d*\})")
"""What means itself in `re`, and a class or an inexact match in `regex`. No name of a module has such characters."""


class _Pattern:
    """A pattern that gives up."""

    def __init__(self, pattern: regex.Pattern[str], *, told: str, left: Callable[[], Seconds]) -> None:
        self._pattern = pattern
        self._told = told
        self._left = left

    def match(self, module: str) -> regex.Match[str] | None:
        """From the begin. Raises PeftError when it takes too long."""
        return self._in_time(self._pattern.match, module)

    def fullmatch(self, module: str) -> regex.Match[str] | None:
        """The whole of it. Raises PeftError when it takes too long."""
        return self._in_time(self._pattern.fullmatch, module)

    def _in_time(self, matching: Callable[..., regex.Match[str] | None], module: str) -> regex.Match[str] | None:
        try:
            return matching(module, timeout=max(0.0, self._left()))
        except TimeoutError:
            raise PeftError(f"{self._told}: {_SLOW}") from None


class Targets:
    """Answers for one configuration."""

    def __init__(
        self, config: PeftConfig, *, file: str, usual: Sequence[str] = (), left: Callable[[], Seconds] | None = None
    ) -> None:
        """Compile the patterns. Whatever asks for matches may raise `PeftError` too, for a pattern that takes too long.

        Args:
            config: whose patterns.
            file: its name, for messages.
            usual: targets for a configuration that names none.
            left: seconds that are left of `PATIENCE`; None: each match may take all of it.

        Raises:
            PeftError: a pattern is no regular expression.
        """
        self.config = config
        self.named: list[str] | str = list(usual) if config.target_modules is None else config.target_modules
        self._file = file
        self._left = left or (lambda: PATIENCE)
        ranks, alphas = (config.rank_pattern or {}).items(), (config.alpha_pattern or {}).items()
        self._ranks = [(self._pattern(pattern, key="rank_pattern"), rank) for pattern, rank in ranks]
        self._alphas = [(self._pattern(pattern, key="alpha_pattern"), alpha) for pattern, alpha in alphas]

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
    def _regex(self) -> _Pattern | None:
        if not isinstance(self.named, str) or self.all_linear:
            return None
        return self._compiled(self.named, of=self.named, key="target_modules")

    @cached_property
    def _unwanted(self) -> list[str] | _Pattern:
        excluded = self.config.exclude_modules or []
        return self._compiled(excluded, of=excluded, key="exclude_modules") if isinstance(excluded, str) else excluded

    @cached_property
    def _whole(self) -> list[_Pattern]:
        names = self.config.modules_to_save or ()
        return [self._compiled(rf"(^|.*\.){name}($|\..*)", of=name, key="modules_to_save") for name in names]

    def _excluded(self, module: str) -> bool:
        if isinstance(self._unwanted, _Pattern):
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
                return int(found.group(found.re.groups))
        return None

    @cached_property
    def _numbers(self) -> list[_Pattern]:
        # The first number of a name: the second one is an expert's (huggingface/peft#3318).
        named = self.config.layers_pattern or []
        names = [named] if isinstance(named, str) else named or [r"[^.]*"]
        return [self._compiled(rf".*?\.{name}\.(\d+)\.", of=name, key="layers_pattern") for name in names]

    def _pattern(self, pattern: str, *, key: str) -> _Pattern:
        return self._compiled(rf"(.*\.)?({pattern})$", of=pattern, key=key)

    def _compiled(self, whole: str, *, of: str, key: str) -> _Pattern:
        told = f"{self._file}: {key} {of[:SHOWN]!r}"
        if len(of) > LONGEST_PATTERN:
            raise PeftError(f"{told}... has {len(of):,} characters; up to {LONGEST_PATTERN:,} are read")
        if self._left() <= 0:
            raise PeftError(f"{told}: {_SLOW}")
        try:
            with warnings.catch_warnings():
                # Python's doubts about `[[` are not ours to pass on.
                warnings.simplefilter("ignore", FutureWarning)
                re.compile(whole)
            if _READ_OTHERWISE.search(of):
                raise PeftError(f"{told}: `[[:` and `{{` that count nothing are not read; write `\\[` and `\\{{`")
            return _Pattern(regex.compile(whole), told=told, left=self._left)
        except (re.error, regex.error, OverflowError, RecursionError) as error:
            raise PeftError(f"{told} is no regular expression: {error}") from None
