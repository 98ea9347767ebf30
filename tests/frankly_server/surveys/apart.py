# SPDX-License-Identifier: Apache-2.0
"""Functions that tests run in processes; each process imports this module, so it imports little."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem


def add(a: int, b: int) -> int:
    return a + b


def fail(error: Exception) -> None:
    raise error


class Unsendable(Exception):
    """An error that cannot be pickled."""

    def __init__(self, text: str, more: str) -> None:
        super().__init__(text + more)


def fail_unsendably() -> None:
    raise Unsendable("a", "b")


def one_long_step() -> int:
    """Compute for hours without returning to the interpreter, as a long step of a library does."""
    return sum(range(10**15))


def leave() -> None:
    raise SystemExit


def out_of_memory() -> None:
    raise MemoryError


class _Deadly:
    """A result whose sending kills the process, after some of it may have been sent."""

    def __reduce__(self) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


def killed_while_sending() -> list[Any]:
    return [0, _Deadly()]


def wait_for(path: Path) -> str:
    """Wait until the file exists."""
    while not path.exists():
        time.sleep(0.005)
    return "waited"


def speak(n: int, hear: Callable[..., None]) -> str:
    for i in range(n):
        hear(i, "of", n)
    return "spoken"


def waiting(_plan: Any, body: Any, *_limits: Any) -> dict[str, str]:
    """Stand in for `within`: wait until the file that the request names exists."""
    return {"found": wait_for(Path(body["until"]))}


def waiting_draft(shown: Any, *_arguments: Any) -> dict[str, Any]:
    """Stand in for `draft_json`: wait until the file that the draft names exists, then refuse it."""
    wait_for(Path(shown["until"]))
    raise InvalidInput(Problem.BUDGET_EXCEEDED, "this was only to wait", "budget")


def endless(*_arguments: Any) -> int:
    return one_long_step()
