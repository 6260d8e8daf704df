"""`lorapick top`: the status page in a terminal.

In: the admin API's URL; keys. Out: the fleet once a second, or one frame with `--once`. It goes on while the picker is
away, and says so. Not here: what is shown (see `cli.top_screen`), where it comes from (see `cli.top_feed`).
"""

import os
import queue
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console, Group
from rich.live import Live

from lorapick.cli import admin_client
from lorapick.cli.top_board import Board
from lorapick.cli.top_feed import Follower, frames
from lorapick.cli.top_rows import ORDERS
from lorapick.cli.top_screen import View, screen
from lorapick.live.admin_views import Frame
from lorapick.model.units import Seconds

LINES_OF_ONE = 50
"""Lines of a frame that no terminal bounds."""
_LOOK: Seconds = 0.1
"""Time between two looks for keys and news."""
_SCROLL = {"k": -1, "\x1b[A": -1, "j": 1, "\x1b[B": 1, "\x1b[5~": -10, "\x1b[6~": 10, "g": -(10**9), "G": 10**9}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command("top")(top)


def _order(word: str) -> str:
    if word not in ORDERS:
        raise typer.BadParameter(f"{word!r} is none of {', '.join(ORDERS)}")
    return word


def top(
    admin: admin_client.AdminOption = admin_client.DEFAULT,
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end; so does a pipe.")] = False,
    alerts: Annotated[bool, typer.Option("--alerts", help="Only alerts, with all their facts.")] = False,
    sort: Annotated[str, typer.Option(help=f"Pods first: {', '.join(ORDERS)}.", callback=_order)] = ORDERS[0],
) -> None:
    """Show the fleet, once a second: pods by slots, loads, swap rate, P95, useful time, alerts, decisions.

    Keys: q quits, p pauses, s sorts by something else, a shows alerts alone, arrows and PgUp, PgDn scroll the pods.
    """
    view = View(admin=admin, order=sort, alerts=alerts)
    with admin_client.told("top"):
        if once or not sys.stdout.isatty():
            _print_one(view)
        else:
            _watch(view)


def _print_one(view: View) -> None:
    board, view.keys = Board(), False
    for frame in frames(view.admin):
        board.lay(frame)
        break
    else:
        raise admin_client.AdminError(f"the picker at {view.admin} ended its feed at once; try again")
    console = Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=80)
    height = console.height - 1 if sys.stdout.isatty() else LINES_OF_ONE
    for line in screen(board, view, width=console.width, height=height):
        console.print(line, no_wrap=True, crop=True)


def _watch(view: View) -> None:
    console, board, follower = Console(highlight=False), Board(), Follower(view.admin)
    follower.start()
    try:
        with _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
            while (key := _pressed()) != "q":
                news = _take(board, view, follower)
                if _obey(key, view) or (news and not view.paused):
                    lines = screen(board, view, width=console.width, height=console.height)
                    live.update(Group(*lines), refresh=True)
    except KeyboardInterrupt:
        pass
    finally:
        follower.stop()


def _take(board: Board, view: View, follower: Follower) -> bool:
    """Take over all news there are; whether there were any."""
    news = False
    while True:
        try:
            one = follower.queue.get_nowait()
        except queue.Empty:
            return news
        news = True
        if isinstance(one, Frame):
            view.trouble = None
            if not board.lay(one):
                follower.anew()
        else:
            view.trouble = one


def _obey(key: str, view: View) -> bool:
    """Do what a key says; whether it said anything."""
    if key in ("p", " "):
        view.paused = not view.paused
    elif key == "s":
        view.order = ORDERS[(ORDERS.index(view.order) + 1) % len(ORDERS)]
        view.first = 0
    elif key == "a":
        view.alerts = not view.alerts
    elif key in _SCROLL:
        view.first = max(0, view.first + _SCROLL[key])
    else:
        return False
    return True


# -- the terminal


@contextmanager
def _keys() -> Iterator[None]:
    """Let keys come one by one, and leave the terminal as it was."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _pressed() -> str:
    """The key that was pressed, empty when none is within a moment; an arrow is several characters at once."""
    if not sys.stdin.isatty():
        time.sleep(_LOOK)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], _LOOK)
    return _read_key() if ready else ""


def _read_key() -> str:
    return os.read(sys.stdin.fileno(), 8).decode("utf-8", "replace")
