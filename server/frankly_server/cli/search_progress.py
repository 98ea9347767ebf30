# SPDX-License-Identifier: Apache-2.0
"""Progress display and early stop (Ctrl-C) of a mechanism search at the terminal."""

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from frankly_server.cli.console import remarks

if TYPE_CHECKING:
    from frankly_design.tables.limits import Progress

Report = Callable[[int, int, str], None]
"""As `surveys.drafting.Progress`: numbers of finished and of all designs, and the next one."""


@contextmanager
def stops_at_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True after the first Ctrl-C; the second interrupts as usual."""
    interrupted = False

    def on_interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda: interrupted
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def search_shown() -> "Iterator[Progress | None]":
    """Show stage, value and bound of a search on stderr; yield None if stderr is not a terminal."""
    console = remarks()
    if not console.is_terminal:
        yield None
        return
    with console.status("designing … (Ctrl-C stops with the best so far)") as status:

        def show(stage: str, value: float, bound: float) -> None:
            reached = "nothing complete yet" if math.isnan(value) else f"reached {value:.6g}"
            proven = "" if math.isnan(bound) else f", bound {bound:.6g}"
            status.update(f"{stage}: {reached}{proven}  (Ctrl-C stops with the best so far)")

        yield show


@contextmanager
def designs_shown() -> Iterator[Report]:
    """Show a progress bar on stderr, if that is a terminal, once blocks are designed."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    console = remarks()
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("designing", total=None, visible=False)

        def report(done: int, total: int, block: str) -> None:
            bar.update(
                task,
                completed=done,
                total=total,
                description=f"designing {block}" if block else "finishing",
                visible=True,
            )

        yield report
