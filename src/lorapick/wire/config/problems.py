"""What is wrong with a configuration: where it stands, what it says, what would be right.

In: facts of one error. Out: `Problem`, and `ConfigError` that carries all of a file.
Not here: how errors are found.
"""

from collections.abc import Iterable

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One error. Lines and columns count from 1."""

    file: str
    line: int
    column: int
    field: str
    """Path such as `adapters.list[2].pin.replicas`; empty for the file as a whole."""
    value: str
    """What stands there, shortened; empty when something is missing."""
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """One line, in the form that editors and terminals make clickable."""
        field = f"{self.field}: " if self.field else ""
        found = f" (found {self.value})" if self.value else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.file}:{self.line}:{self.column}: {field}{self.message}{found}{hint}"


class ConfigError(ValueError):
    """A file with problems: all of them, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems; there is at least one."""
        self.problems = tuple(sorted(problems, key=lambda problem: (problem.file, problem.line, problem.column)))
        super().__init__("\n".join(str(problem) for problem in self.problems))
