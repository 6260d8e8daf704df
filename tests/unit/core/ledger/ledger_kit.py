"""A playbook whose ledger is kept."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from lorapick.core.ledger.bookkeeper import Bookkeeper
from lorapick.model import events
from lorapick.model.ledger import LedgerRow, LoadRow, RequestRow, ResidencyRow
from lorapick.model.pods import Role
from lorapick.testing.playbook import Playbook, plain_pod

RowT = TypeVar("RowT", bound=LedgerRow)


class Books(Playbook):
    """Verbs as of `Playbook`, and the rows that came of them."""

    def __init__(
        self,
        *,
        slots: int = 1,
        pods: Sequence[str] = ("a",),
        adapters: Sequence[str] = ("x", "y", "z"),
        roles: Mapping[str, Role] | None = None,
    ) -> None:
        there = {} if roles is None else roles
        self.books = Bookkeeper()
        self.rows: list[LedgerRow] = []
        super().__init__(
            pods=[plain_pod(name, max_loras=slots, role=there.get(name, Role.BOTH)) for name in pods], adapters=adapters
        )
        for name in pods:
            self.report(name)

    def apply(self, kind: type[events.Event], **fields: Any) -> list[str]:
        """As of a playbook; the books are told."""
        told = super().apply(kind, **fields)
        self.rows += self.books.observe(self.events[-1], self.answers[-1], changes=self.fleet.changes)
        return told

    def all(self, kind: type[RowT]) -> list[RowT]:
        """Rows of one kind."""
        return [row for row in self.rows if isinstance(row, kind)]

    def request(self, request_id: str) -> RequestRow:
        """The row of a request that left."""
        (row,) = (row for row in self.all(RequestRow) if row.id == request_id)
        return row

    def loads(self) -> list[LoadRow]:
        """Each load as last told, in order."""
        return [*{row.id: row for row in self.all(LoadRow)}.values()]

    def stays(self) -> list[ResidencyRow]:
        """Each stay as last told, in order."""
        return [*{row.id: row for row in self.all(ResidencyRow)}.values()]


def parts(row: RequestRow) -> tuple[float, ...]:
    """What it spent its time on, in hundredths of a second."""
    return tuple(round(each, 2) for each in (row.queue, row.load_wait, row.drain, row.served))
