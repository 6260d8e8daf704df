"""Which adapter names exist, and which pods accept them.

In: the operator's declarations and what pods say of themselves (`/v1/models`, loads and unloads they agreed to).
Out: whether a pod accepts a name, and whether anybody knows it. Not here: where an adapter is in memory
(see `core.residency.table`). A pod that has not been asked yet is taken to accept what the operator declared.
"""

from collections import Counter
from collections.abc import Iterable

from lorapick.model.units import AdapterName


class Registry:
    """Names by pod row, with a count of pods per name so that looking one up costs the same in any fleet."""

    __slots__ = ("_accepting", "_by_row", "_declared", "_latest", "_unasked", "declarations")

    def __init__(self) -> None:
        self._declared: dict[AdapterName, None] = {}
        self._by_row: dict[int, dict[AdapterName, None] | None] = {}
        """Names each pod accepts; None: it has not been asked. Never changed in place: pods alike share one."""
        self._latest: dict[AdapterName, None] = {}
        """What the last pod said that had news."""
        self._accepting: Counter[AdapterName] = Counter()
        """Pods that said they accept a name."""
        self._unasked = 0
        """Pods that have not been asked."""
        self.declarations = 0
        """Counts changes of what the operator declares."""

    def declare(self, name: AdapterName) -> None:
        """The operator names an adapter."""
        self._declared[name] = None
        self.declarations += 1

    @property
    def any_declared(self) -> bool:
        """Whether the operator names any adapter."""
        return bool(self._declared)

    def declared(self, name: AdapterName) -> bool:
        """Whether the operator names this one."""
        return name in self._declared

    def retire(self, name: AdapterName) -> None:
        """The operator withdraws it."""
        self._declared.pop(name, None)
        self.declarations += 1

    def appear(self, row: int) -> None:
        """A pod that has not been asked."""
        self._by_row[row] = None
        self._unasked += 1

    def gone(self, row: int) -> None:
        """Forget a pod."""
        self.ask_again(row)
        del self._by_row[row]
        self._unasked -= 1

    def ask_again(self, row: int) -> None:
        """The pod's process is new: what it accepts is unknown."""
        self._set(row, None)

    def learn(self, row: int, names: Iterable[AdapterName]) -> list[AdapterName]:
        """The pod says what it accepts; return the names for which that may be news."""
        before, after = self._by_row[row], dict.fromkeys(names)
        if before == after:
            return []
        if after != self._latest:
            self._latest = after
        self._set(row, self._latest)
        return [*{**(before if before is not None else self._declared), **after}]

    def add(self, row: int, name: AdapterName) -> None:
        """The pod accepts one name more (if it has been asked at all)."""
        names = self._by_row[row]
        if names is not None and name not in names:
            self._set(row, {**names, name: None})

    def drop(self, row: int, name: AdapterName) -> None:
        """The pod refuses a name from now on."""
        before = self._by_row[row]
        names = dict(before if before is not None else self._declared)
        names.pop(name, None)
        self._set(row, names)

    def accepts(self, row: int, name: AdapterName) -> bool:
        """Whether the pod would serve this name."""
        names = self._by_row[row]
        return name in (self._declared if names is None else names)

    def listed(self, row: int) -> dict[AdapterName, None] | None:
        """Names that the pod accepts, not to be changed; None: it has not been asked."""
        return self._by_row[row]

    def accepting(self, name: AdapterName) -> int:
        """Pods that said they accept a name."""
        return self._accepting[name]

    def known(self, name: AdapterName) -> bool:
        """Whether the operator or some pod named this adapter."""
        return name in self._declared or self._accepting[name] > 0

    @property
    def nobody_asked(self) -> bool:
        """Whether no pod has said yet which adapters it accepts."""
        return self._unasked == len(self._by_row)

    @property
    def all_asked(self) -> bool:
        """Whether every pod has."""
        return self._unasked == 0

    def names(self) -> list[AdapterName]:
        """All names that the operator or a pod gave, sorted."""
        return sorted({**self._declared, **self._accepting})

    def check(self) -> None:
        """Counts are what the pods' own lists say."""
        lists = [names for names in self._by_row.values() if names is not None]
        assert self._unasked == len(self._by_row) - len(lists), f"{self._unasked} pods counted as unasked"
        counted = Counter(name for names in lists for name in names)
        assert counted == self._accepting, "registry: counts differ from the pods' own lists"

    def _set(self, row: int, names: dict[AdapterName, None] | None) -> None:
        before = self._by_row[row]
        self._unasked += (names is None) - (before is None)
        self._by_row[row] = names
        for name in before or ():
            self._accepting[name] -= 1
            if not self._accepting[name]:
                del self._accepting[name]
        self._accepting.update((names or {}).keys())
