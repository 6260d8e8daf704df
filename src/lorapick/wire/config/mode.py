"""`mode:` of the configuration, and of the admin API: which requests picks are in force for.

In: nodes. Out: `model.arms.Mode`. Not here: what a mode does (see `core.arms`).
"""

from collections.abc import Collection

from lorapick.model.arms import GATEWAY, Mode, ModeKind
from lorapick.wire.config.document import At
from lorapick.wire.config.readers import Reader, choice, number, record

_SHORT = "enforce or observe, or for a share {percent: 25}"


def mode(policies: Collection[str]) -> Reader[Mode]:
    """Reader of a mode, given the names of the policies that exist.

    `enforce` and `observe` as words; `{kind:, percent:, route:}`, where a `percent` alone says its kind.
    """
    words = choice(*(kind.value for kind in ModeKind if kind is not ModeKind.PERCENT), elsewhere={"percent": _SHORT})
    full = record(
        _mode,
        {
            "kind": choice(*(kind.value for kind in ModeKind)),
            "percent": number(least=0.0, most=100.0, what="a percentage"),
            "route": choice(GATEWAY, *policies),
        },
        check=_check,
    )

    def read(at: At) -> Mode:
        return Mode(kind=ModeKind(words(at))) if at.is_scalar else full(at)

    return read


def _mode(*, kind: str | None = None, percent: float | None = None, route: str | None = None) -> Mode:
    found = ModeKind(kind) if kind is not None else ModeKind.ENFORCE if percent is None else ModeKind.PERCENT
    return Mode(kind=found, percent=100.0 if percent is None else percent, route=route)


def _check(at: At, made: Mode) -> None:
    percent = at.find("percent")
    if made.kind is ModeKind.PERCENT and percent is None:
        at.note("percent needs a number: which share of the requests?", hint="for example {percent: 25}", value="")
    elif made.kind is not ModeKind.PERCENT and percent is not None:
        percent.note(f"has no meaning with kind: {made.kind}", hint="leave one of both out")
