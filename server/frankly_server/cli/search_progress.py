# SPDX-License-Identifier: Apache-2.0
"""Progress display and early stop (Ctrl-C) of a mechanism search at the terminal."""

import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from frankly_server.cli.console import remarks
from frankly_server.design.tables.limits import Progress


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
def search_shown() -> Iterator[Progress | None]:
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
