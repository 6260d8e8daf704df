"""Other values for some keys of a scenario file: `fleet.slots=40`.

In: the file's tree, keys with their values as text. Out: the tree, changed. Not here: what the keys mean.
"""

from collections.abc import Mapping

from yaml import MappingNode, Node, ScalarNode

from lorapick.wire.config.document import At, Report, parse_document

_STR = "tag:yaml.org,2002:str"
_MAP = "tag:yaml.org,2002:map"


def override(root: At, overrides: Mapping[str, str]) -> None:
    """Put each value in the place of the one under its key, a path of names joined by dots; missing keys are made.

    Raises:
        ConfigError: a value is no YAML.
        Refused: a key leads through something that is no mapping.
    """
    for key, value in overrides.items():
        # What is wrong with the value is said of the option, not of a line of the file.
        report = Report(f"{key}={value}")
        _put(root, key.split("."), value=parse_document(value, report).node)


def _put(root: At, path: list[str], *, value: Node) -> None:
    place = root.node
    for step, name in enumerate(path):
        if not isinstance(place, MappingNode):
            At(place, ".".join(path[:step]), root.report).refuse(
                f"must be a mapping (key: value) for {'.'.join(path)} to be in it"
            )
        found = next((pair for pair in place.value if pair[0].value == name), None)
        last = step == len(path) - 1
        if found is not None and not last:
            place = found[1]
            continue
        new = value if last else MappingNode(_MAP, [], value.start_mark, value.end_mark)
        key = ScalarNode(_STR, name, value.start_mark, value.end_mark)
        pairs = [pair for pair in place.value if pair[0].value != name]
        place.value = [*pairs, (key, new)]
        place = new
