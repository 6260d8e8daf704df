"""ServeGen client windows: start (s),rate,cv,family,shape,scale; no header; one file per client.

In: lines of bytes. Out: one `DemandWindow` each. Source: github.com/alibaba/ServeGen (arXiv 2505.09999). A window
without requests has rate 0 and no family. The copy under `data/` has all clients in one file, their number in front.
"""

from collections.abc import Iterable, Iterator

from lorapick.wire.traces.rows import DemandWindow, fault, fields, number, shown

_FIELDS = 6
_FAMILIES = ("Gamma", "Weibull")


def client_windows(lines: Iterable[bytes], *, client: str, name: str = "trace") -> Iterator[DemandWindow]:
    """Windows of one client's file, as they are read.

    Raises:
        TraceError: a line cannot be read, or windows are not in order of time.
    """
    return _windows(((line, client, record) for line, record in fields(lines, name=name)), name=name)


def all_windows(lines: Iterable[bytes], *, name: str = "trace") -> Iterator[DemandWindow]:
    """Windows of the joined file (the client in front), as they are read, one client after the other.

    Raises:
        TraceError: a line cannot be read, or a client's windows are not in order of time.
    """
    return _windows(((line, record[0], record[1:]) for line, record in fields(lines, name=name)), name=name)


def _windows(records: Iterable[tuple[int, str, list[str]]], *, name: str) -> Iterator[DemandWindow]:
    last: DemandWindow | None = None
    for line, client, record in records:
        if len(record) != _FIELDS:
            raise fault(name, line, f"{len(record)} fields of a window; start,rate,cv,family,shape,scale are needed")
        try:
            window = _window(client, record)
        except ValueError as error:
            raise fault(name, line, str(error)) from None
        if last is not None and last.client == client and window.start <= last.start:
            raise fault(name, line, f"start is {window.start:g}, not after the last window's {last.start:g}")
        last = window
        yield window


def _window(client: str, record: list[str]) -> DemandWindow:
    start, rate, cv, family, shape, scale = record
    happened = number(rate, "rate", most=1e9) > 0
    if happened and family not in _FAMILIES:
        raise ValueError(f"family is {shown(family)}; {' or '.join(_FAMILIES)} is needed where the rate is not 0")
    return DemandWindow(
        client=client,
        start=number(start, "start"),
        rate=float(rate),
        cv=number(cv, "cv") if happened else None,
        family=family if happened else None,
        shape=number(shape, "shape") if happened else None,
        scale=number(scale, "scale") if happened else None,
    )
