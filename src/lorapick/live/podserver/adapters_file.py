"""The adapters of an emulated pod, as a YAML or JSON file.

In: the text. Out: `AdapterSpec` values; or `OptionsError` with every problem, each by file, line and field.
Not here: reading the file or a count in its place (see `cli.pod`), the readers themselves (see `wire.config`).
"""

from typing import Any

from lorapick.live.podserver.options import MAX_ADAPTERS, OptionsError, adapter_spec
from lorapick.model.units import Bytes
from lorapick.pod.values import AdapterSpec
from lorapick.wire.config.document import At, Refused, Report, parse_document
from lorapick.wire.config.problems import ConfigError
from lorapick.wire.config.readers import Reader, adapter_name, integer, list_of, no_duplicates, record, size

_WANTED = "wanted is a list of adapter names, or of {name: legal, rank: 16, size: 65536000}"
_count_of_bytes = integer(least=0, most=2**50)
_size_with_unit = size()


def _size(at: At) -> Bytes:
    """Bytes as a bare number, or with a unit."""
    return _count_of_bytes(at) if at.tag.endswith(":int") else _size_with_unit(at)


_in_full: Reader[AdapterSpec] = record(
    adapter_spec, {"name": adapter_name, "rank": integer(least=1, most=4096), "size": _size}, required=("name",)
)


def _adapter(at: At) -> AdapterSpec:
    return adapter_spec(name=adapter_name(at)) if at.is_scalar else _in_full(at)


_listed = list_of(_adapter)


def _adapters(at: At) -> tuple[AdapterSpec, ...]:
    if at.is_scalar:
        at.refuse(_WANTED)
    items = at.items()
    if len(items) > MAX_ADAPTERS:
        at.refuse(f"has {len(items)} adapters; the limit is {MAX_ADAPTERS}", value="")
    names = [item if item.is_scalar else item.find("name") for item in items]
    no_duplicates((name for name in names if name is not None), what="name")
    return _listed(at)


_whole: Reader[Any] = record(lambda *, adapters: adapters, {"adapters": _adapters}, required=("adapters",))


def read_adapters(text: bytes, *, file: str) -> tuple[AdapterSpec, ...]:
    """Adapters of a YAML or JSON file: a list, or a mapping with `adapters:`, of names or `{name, rank, size}`.

    Args:
        text: the file's content.
        file: what messages call it.

    Raises:
        OptionsError: every problem, a line each.
    """
    report = Report(file)
    found: tuple[AdapterSpec, ...] = ()
    try:
        root = parse_document(text, report)
        found = _whole(root) if root.is_mapping else _adapters(root)
    except Refused:
        pass
    except ConfigError as error:
        raise OptionsError(str(error)) from None
    if report.problems:
        raise OptionsError(str(ConfigError(report.problems)))
    return found
