"""What is wrong with a configuration: where it stands, what it says, what would be right.

In: facts of one error. Out: `Problem`, and `ConfigError` that carries all of a file.
Not here: how errors are found.
"""

from collections.abc import Iterable

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One error. Lines and columns count from 1; None: the file as a whole, or a place that nobody knows."""

    file: str
    line: int | None = None
    column: int | None = None
    field: str = ""
    """Path such as `adapters.list[2].pin.replicas`; empty for the file as a whole."""
    value: str = ""
    """What stands there, shortened; empty when something is missing."""
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """One line, in the form that editors and terminals make clickable."""
        field = f"{self.field}: " if self.field else ""
        found = f" (found {self.value})" if self.value else ""
        hint = f"; {self.hint}" if self.hint else ""
        place = "".join(f":{number}" for number in (self.line, self.column) if number is not None)
        return f"{self.file}{place}: {field}{self.message}{found}{hint}"


MOST_SHOWN = 20
"""Problems that a message spells out; a file that is no configuration at all has one per line."""


class ConfigError(ValueError):
    """Files with problems: all of them, in the order of each file; those without a place come first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems; there is at least one."""
        self.problems = tuple(sorted(problems, key=_order))
        lines = [str(problem) for problem in self.problems[:MOST_SHOWN]]
        if len(self.problems) > MOST_SHOWN:
            lines.append(f"... and {len(self.problems) - MOST_SHOWN} more problems")
        super().__init__("\n".join(lines))


def _order(problem: Problem) -> tuple[str, int, int]:
    return problem.file, problem.line or 0, problem.column or 0


def unreadable(file: str, error: OSError) -> ConfigError:
    """The error of a file that cannot be opened."""
    return ConfigError([Problem(file=file, message=f"cannot be read: {error.strerror or error}")])
