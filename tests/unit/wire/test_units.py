import pytest

from lorapick.wire.units import UnitError, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0), ("500ms", 0.5), ("250us", 0.00025), ("30s", 30.0), ("1.5s", 1.5), ("10m", 600.0),
        ("9h30m", 34_200.0), ("1d", 86_400.0), ("1d2h3m4s5ms", 93_784.005),
    ],
)  # fmt: skip
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "text", ["", "10", "m", "10 m", "-5s", "10min", "30m9h", "1s1s", "1h30", "1e3s", "٣s", "9" * 16 + "s", "5M", ".5s"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UnitError, match='such as "500ms"'):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0), ("512B", 512), ("64MB", 64_000_000), ("10MiB", 10_485_760), ("65.536MB", 65_536_000),
        ("1 GiB", 2**30),
        ("1.5kB", 1500), ("2TB", 2 * 10**12),
    ],
)  # fmt: skip
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a size"), ("64", "not a size"), ("MB", "not a size"), ("-1MB", "not a size"), ("1e3MB", "not a size"),
        ("64mb", '"mb" is no unit of size; use one of B, kB, MB'), ("1Mb", '"Mb" is no unit'),
        ("0.5B", "whole number of bytes"), ("9" * 16 + "B", "not a size"),
    ],
)  # fmt: skip
def test_what_is_no_size(text: str, message: str) -> None:
    with pytest.raises(UnitError, match=message):
        parse_size(text)
