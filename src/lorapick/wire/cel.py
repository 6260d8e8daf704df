"""Expressions in CEL, Google's Common Expression Language, over figures by name.

In: an expression, values. Out: what it comes to. Not here: who writes such expressions (see `config.epp.reporting`).
The evaluator comes with `lorapick[cel]` and is imported only where an expression is.
"""

from collections.abc import Mapping
from typing import Any

NEEDED = "lorapick[cel]"


class CelError(ValueError):
    """The expression cannot be read, or not be evaluated with these values."""


class CelMissing(Exception):  # noqa: N818 - nothing is wrong with the expression
    """The evaluator is not installed."""


class Program:
    """One expression, read once. An evaluation takes about 0.1 ms."""

    def __init__(self, expression: str, *, names: tuple[str, ...]) -> None:
        """Read an expression over some names, each a mapping.

        Raises:
            CelError: it cannot be read.
            CelMissing: the evaluator is not installed.
        """
        try:
            import celpy
            from celpy.adapter import json_to_cel
            from celpy.celparser import CELParseError
            from celpy.evaluation import CELEvalError
        except ImportError as error:
            raise CelMissing from error
        environment = celpy.Environment(annotations=dict.fromkeys(names, celpy.celtypes.MapType))
        try:
            self._program = environment.program(environment.compile(expression))
        except CELParseError as error:
            raise CelError("it is no expression in CEL") from error
        self._convert, self._error = json_to_cel, CELEvalError
        self._bool = celpy.celtypes.BoolType

    def value(self, values: Mapping[str, Mapping[str, Any]]) -> Any:
        """What it comes to: a number, True, False, or something else of CEL's.

        Raises:
            CelError: it names something that is not there, or divides by zero, or the like.
        """
        try:
            found = self._program.evaluate({name: self._convert(dict(value)) for name, value in values.items()})
        except self._error as error:
            raise CelError(str(error.args[0]) if error.args else "it has no value") from error
        return bool(found) if isinstance(found, self._bool) else found
