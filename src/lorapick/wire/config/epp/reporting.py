"""Parameters of `request-attribute-reporter`: which figure of an answer's usage the gateway is told.

In: nodes. Out: `AttributeReport`, its expressions read once to see that they can be. Not here: what they come to
(`wire.extproc.reporting`).
"""

from typing import Any

from lorapick.model.profiles import AttributeReport
from lorapick.wire.cel import NEEDED, CelError, CelMissing, Program
from lorapick.wire.config.document import At
from lorapick.wire.config.epp.reading import MissingParameters, members, parameters
from lorapick.wire.config.epp.values import ReadParameters
from lorapick.wire.config.readers import list_of, text
from lorapick.wire.extproc.reporting import USAGE

_TEXT = "tag:yaml.org,2002:str"
_LONGEST = 4096


def _expression(at: At) -> str:
    written = str(at.node.value).strip() if at.is_scalar and at.tag == _TEXT else ""  # may have several lines
    if not 0 < len(written) <= _LONGEST:
        at.refuse(f"must be text with 1 to {_LONGEST} characters")
    try:
        Program(written, names=(USAGE,))
    except CelError as error:
        at.refuse(f"cannot be read: {error}", hint='for example "usage.prompt_tokens + usage.completion_tokens"')
    except CelMissing:
        at.refuse("needs an evaluator of CEL, which is not installed", hint=f'pip install "{NEEDED}"', value="")
    return written


def _key(at: At) -> dict[str, Any]:
    return members(at, {"namespace": text, "name": text}, required=("name",))


def _attribute(at: At) -> AttributeReport:
    found = members(
        at,
        {"key": _key, "expression": _expression, "condition": _expression},
        required=("key", "expression"),
    )
    return AttributeReport(**found.pop("key"), **found)


_read: ReadParameters = parameters({"attributes": ("attributes", list_of(_attribute, least=1))})


def report(at: At | None) -> dict[str, Any]:
    """`report`: the only attribute."""
    if at is None or at.find("attributes") is None:
        raise MissingParameters(("attributes",))
    found = _read(at)["attributes"]
    if len(found) > 1:
        at.nearest("attributes").refuse("must have one entry", hint="define a plugin of this type for each", value="")
    return {"report": found[0]}
