"""Durations and sizes as people write them.

In: text such as `10m`, `9h30m`, `500ms`; `64MB`, `10MiB`. Out: seconds, bytes. Not here: YAML (see `wire.config`).
"""

import re

from lorapick.model.units import Bytes, Seconds

_SECONDS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
_ORDER = tuple(_SECONDS)
_BYTES = {
    "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
}  # fmt: skip
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|d|h|m|s)", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-z]+)", re.ASCII)
_DIGITS = 15
"""More digits than any duration or size needs, fewer than make arithmetic slow."""


class UnitError(ValueError):
    """Text that is no duration or no size; the message says what one looks like."""


def parse_duration(text: str) -> Seconds:
    """Seconds of `500ms`, `30s`, `10m`, `9h30m`, `1d`. Larger units come first, each at most once; `0` needs none.

    Raises:
        UnitError: anything else, a number without a unit among it.
    """
    if text == "0":
        return 0.0
    parts = _PART.findall(text)
    order = [_ORDER.index(unit) for _, unit in parts]
    whole = "".join(number + unit for number, unit in parts)
    if not parts or whole != text or sorted(set(order)) != order or len(text) > _DIGITS * len(parts):
        raise UnitError('not a duration; write a number with a unit, such as "500ms", "30s", "10m" or "9h30m"')
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def parse_size(text: str) -> Bytes:
    """Bytes of `512B`, `64MB` (10^6), `10MiB` (2^20). A fraction of a byte is refused.

    Raises:
        UnitError: anything else, a number without a unit among it.
    """
    match = _SIZE.fullmatch(text)
    if match is None or len(match.group(1)) > _DIGITS:
        raise UnitError('not a size; write a number with a unit, such as "64MB" (10^6 bytes) or "10MiB" (2^20)')
    number, unit = match.groups()
    if unit not in _BYTES:
        raise UnitError(f'"{unit}" is no unit of size; use one of {", ".join(_BYTES)}')
    size = float(number) * _BYTES[unit]
    if size != int(size):
        raise UnitError("a size is a whole number of bytes")
    return int(size)
