"""Lines of pods and of adapters for `lorapick top`.

In: a `Board`. Out: lines, the most interesting first, or in the order that the user wants. Not here: how many of them
there is room for (see `cli.top_screen`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from lorapick.cli.admin_client import printable
from lorapick.cli.top_board import Board
from lorapick.live.admin_views import AdapterLine, CellLine, PodLine
from lorapick.model.pods import Role
from lorapick.model.tiers import Tier
from lorapick.model.units import Seconds
from lorapick.wire.words import span

LETTERS = {Tier.GPU_SERVING: "S", Tier.GPU_IDLE: "I", Tier.LOADING: "L", Tier.CPU: "H"}
"""Letter of a tier; a slot that is free is a dot."""
_STYLES = {"S": "bold green", "I": "cyan", "L": "bold yellow", "H": "dim"}
_ORDER = (Tier.LOADING, Tier.GPU_SERVING, Tier.GPU_IDLE, Tier.CPU)
MOST_LETTERS = 16
"""Slots of a pod that are drawn one by one; more are counted by letter."""
_NAME = 16
LEGEND = "S serving I idle L loading H host * pinned . free"

_By = Callable[[PodLine], tuple[object, ...]]
_SORTS: dict[str, _By] = {
    # What somebody should look at: pods that take nothing, then those that swap or keep others waiting.
    "trouble": lambda pod: (pod.ready, not pod.critical, -pod.swaps, -pod.swap_queue, -(pod.queue or 0.0)),
    "name": lambda pod: (pod.name,),
    "swaps": lambda pod: (-pod.swaps,),
    "queue": lambda pod: (-(pod.queue or 0.0),),
    "useful": lambda pod: (pod.useful is None, pod.useful or 0.0),
    "hits": lambda pod: (pod.hits is None, pod.hits or 0.0),
}
ORDERS = tuple(_SORTS)
"""Words of `--sort`, in the order in which the key goes through them."""


# -- pods


def pods_head(board: Board, *, width: int) -> Text:
    """The line above the pods."""
    names = _name_width(board, width)
    return Text(f"{'POD':<{names}}{'QUEUE':>7}{'SWAP/s':>7}{'USEFUL':>7}{'HITS':>6}{'STAYS':>7}  SLOTS", style="dim")


def pod_lines(board: Board, *, order: str, width: int, rows: slice) -> list[Text]:
    """Those rows of the pods in this order; equals stay in the fleet's order."""
    names = _name_width(board, width)
    return [_pod(board, pod, names=names) for pod in sorted(board.pods.values(), key=_SORTS[order])[rows]]


def _name_width(board: Board, width: int) -> int:
    longest = max((cell_len(name) for name in board.pods), default=0)
    return min(max(longest, 4), _NAME if width < 120 else 2 * _NAME)


def _pod(board: Board, pod: PodLine, *, names: int) -> Text:
    line = Text(fit(pod.name, names), style="" if pod.ready else "red")
    if not pod.ready:
        why = f"{pod.reason or 'not ready'}{f': {pod.error}' if pod.error else ''}"
        return line.append(f"  {printable(why)}  ", style="red").append(_slots(board, pod))
    queue = "?" if pod.queue is None else f"{pod.queue:.0f}"
    line.append(f"{f'{queue}/{pod.max_queue}':>7}", style="bold red" if pod.critical else "")
    line.append(f"{pod.swaps:>7.2f}{_share(pod.useful):>7}{_share(pod.hits):>6}{_time(pod.residency):>7}  ", style="")
    return line.append(_role(pod)).append(_slots(board, pod))


def _role(pod: PodLine) -> Text:
    """Of a pod that does not do both: its part, and how many slots it keeps for requests that others prefill."""
    if pod.role is Role.BOTH:
        return Text()
    kept = f" {pod.reserved} kept" if pod.reserved else ""
    return Text(f"{pod.role.value}{kept} ", style="dim")


def _slots(board: Board, pod: PodLine) -> Text:
    """One letter for each slot, then who is there and for how long: loads first, then the newest."""
    cells = board.in_memory(pod.name)
    text = _letters(pod, [cell for cell in cells if cell.tier >= Tier.LOADING])
    now = board.frame.now if board.frame is not None else 0.0
    newest = sorted(cells, key=lambda cell: (_ORDER.index(Tier(cell.tier)), -cell.since))
    for cell in newest:
        letter = LETTERS[Tier(cell.tier)]
        pinned = "*" if cell.pinned else ""
        text.append(f" {letter}", style=_STYLES[letter])
        text.append(f" {printable(board.name(cell.adapter))}{pinned} {_age(now - cell.since)}", style="")
    return text


def _letters(pod: PodLine, held: Sequence[CellLine]) -> Text:
    count = Counter(LETTERS[Tier(cell.tier)] for cell in held)
    free = max(0, pod.slots - len(held))
    text = Text()
    if pod.slots > MOST_LETTERS:
        for letter, number in (*count.most_common(), (".", free)):
            text.append(f"{letter}{number} ", style=_STYLES.get(letter, "dim"))
        return text
    for letter in "LSI":
        text.append(letter * count[letter], style=_STYLES[letter])
    return text.append("." * free, style="dim")


def _age(seconds: Seconds) -> str:
    return span(max(0.0, seconds)).replace(" ", "")


# -- adapters


def adapters_head(width: int) -> Text:
    """The line above the adapters."""
    names = _adapter_width(width)
    left = f"{'HOTTEST':<{names}}{'req/s':>7}{'hits':>6}{'P95':>7}"
    return Text(f"{left} | {'MOST EVICTED':<{names}}{'out':>5}{'loads':>6}{'stays':>7}", style="dim")


def adapter_lines(board: Board, *, most: int, width: int) -> list[Text]:
    """The adapters with most requests, and beside them those that left slots most often."""
    lines, names = [*board.adapters.values()], _adapter_width(width)
    hottest = sorted(lines, key=lambda line: -line.requests_per_second)[:most]
    evicted = [line for line in sorted(lines, key=lambda line: -line.evictions) if line.evictions][:most]
    left = [_hot(board, line, names=names) for line in hottest]
    right = [_gone(board, line, names=names) for line in evicted]
    return [Text(f"{hot:<{names + 20}} | {gone}") for hot, gone in zip_longest(left, right, fillvalue="")]


def _adapter_width(width: int) -> int:
    """Cells of a name: two lists beside one another fill the width."""
    return max(8, (width - 41) // 2)


def _hot(board: Board, line: AdapterLine, *, names: int) -> str:
    name = fit(board.name(line.adapter), names)
    return f"{name}{line.requests_per_second:>7.2f}{_share(line.hit_ratio):>6}{_time(line.latency_p95):>7}"


def _gone(board: Board, line: AdapterLine, *, names: int) -> str:
    name = fit(board.name(line.adapter), names)
    return f"{name}{line.evictions:>5}{line.loads:>6}{_time(line.mean_residency):>7}"


def fit(text: str, width: int) -> str:
    """Printable text in exactly so many cells, with an ellipsis where it was longer."""
    text = printable(text)
    return set_cell_size(text, width) if cell_len(text) <= width else f"{set_cell_size(text, width - 1)}…"


def _time(seconds: Seconds | None) -> str:
    return "-" if seconds is None else _age(seconds)


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * ratio:.0f}%"
