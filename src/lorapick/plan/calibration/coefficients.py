"""The pod model's coefficients for one engine on one card, over ranks and models; those that were fitted and frozen.

In: numbers. Out: `StepCosts` for a rank and a model. Not here: where the numbers come from (`fit`).
"""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from lorapick.model.units import Seconds
from lorapick.pod.values import StepCosts

REFERENCE_RANK, REFERENCE_LAYERS = 16, 32
FROZEN = Path(__file__).parent / "h100-vllm085.yaml"
"""Fitted to all runs that come with the project. Nothing else changes them; a test fits them again."""
_HEAD = """\
# Coefficients of the pod model, fitted by `lorapick calibrate` to {source}.
# Seconds; one decode step takes a + b*B + c*A + d*B*A + slot*slots + scan*passed_over. See docs/calibration.md.
"""


class CoefficientsError(ValueError):
    """A file of coefficients cannot be read: its path, and why."""


class Coefficients(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fit gives; the first six are the fields of `StepCosts`, for a largest rank of 16 and a model of 32 layers.

    What LoRA adds to a step is launches of kernels, one set per layer, so those parts are in proportion to the layers.
    """

    a: Seconds
    b: Seconds
    c: Seconds
    d: Seconds
    slot: Seconds
    scan: Seconds
    a_by_rank: Seconds
    """What `a` grows by per 16 of the engine's largest rank above 16; likewise the next two."""
    c_by_rank: Seconds
    slot_by_rank: Seconds
    prefill: Seconds
    """Per token."""
    activation: Seconds
    """Of one adapter, from host memory."""

    def step(self, rank: int, *, layers: int = REFERENCE_LAYERS) -> StepCosts:
        """For an engine with this largest rank, and a model with so many layers."""
        steps, depth = rank / REFERENCE_RANK - 1.0, layers / REFERENCE_LAYERS
        return StepCosts(
            a=max(0.0, self.a + depth * self.a_by_rank * steps),
            b=self.b,
            c=max(0.0, depth * (self.c + self.c_by_rank * steps)),
            d=depth * self.d,
            slot=max(0.0, depth * (self.slot + self.slot_by_rank * steps)),
            scan=self.scan,
        )

    def rounded(self, digits: int = 4) -> "Coefficients":
        """Each to so many significant digits: more mean nothing, and differ between machines."""
        return Coefficients(**{name: float(f"{value:.{digits}g}") for name, value in self._values().items()})

    def text(self, source: str) -> str:
        """As a YAML file; `source` says what was fitted."""
        lines = [f"{name}: {value:.4g}\n" for name, value in self._values().items()]
        return _HEAD.format(source=source) + "".join(lines)

    def _values(self) -> dict[str, float]:
        values: dict[str, float] = msgspec.structs.asdict(self)
        return values


def read_coefficients(path: Path = FROZEN) -> Coefficients:
    """The coefficients in a file.

    Raises:
        CoefficientsError: it cannot be read, or a value is missing, unknown or no number from 0 on.
    """
    try:
        found = msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Coefficients, strict=False)
    except OSError as error:
        raise CoefficientsError(f"{path} cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise CoefficientsError(
            f"{path}: {error}; `lorapick calibrate FILE --write PATH` writes such a file"
        ) from error
    _refuse_negative(found, path)
    return found


def _refuse_negative(found: Coefficients, path: Path) -> None:
    values: dict[str, Any] = msgspec.structs.asdict(found)
    for name, value in values.items():
        if not 0.0 <= value < 60.0:
            raise CoefficientsError(f"{path}: {name} is {value:g} s; it has to be from 0 to 60")
