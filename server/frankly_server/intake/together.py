# SPDX-License-Identifier: Apache-2.0
"""One transaction for everybody who is waiting: the disk is asked once for many, and nobody waits on purpose."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Waiter(Generic[Item, Result]):
    """One caller's item and, once served, its result or the error that met the whole group."""

    __slots__ = ("error", "item", "result", "served", "wake")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.result: Result | None = None
        self.error: BaseException | None = None
        self.served = False
        self.wake = threading.Lock()  # held until there is a result, or this caller's turn to serve
        self.wake.acquire()


class Together(Generic[Item, Result]):
    """Serves concurrent callers in groups.

    Whoever finds nobody at work serves at once. Those who come meanwhile wait; when the work is done, the first of them
    serves all who wait by then, itself included. A lone caller never waits.

    run : serves a group, returning one result per item in order. If it raises, every caller of the group gets that
    error. most : largest group. at_once : groups that may be served at the same time, by as many callers.
    """

    def __init__(self, run: Callable[[Sequence[Item]], Sequence[Result]], most: int = 100, at_once: int = 1) -> None:
        self._run = run
        self._most = most
        self._guard = threading.Lock()
        self._waiting: deque[_Waiter[Item, Result]] = deque()
        self._free = at_once

    def submit(self, item: Item) -> Result:
        """Return the result for `item` once its group was served; raises what serving raised."""
        waiter: _Waiter[Item, Result] = _Waiter(item)
        with self._guard:
            serves = self._free > 0
            if serves:
                self._free -= 1
            else:
                self._waiting.append(waiter)
        if not serves:
            waiter.wake.acquire()
        if not waiter.served:
            self._serve(waiter)
        if waiter.error is not None:
            raise waiter.error
        return waiter.result  # type: ignore[return-value]  # set whenever there is no error

    def _serve(self, first: _Waiter[Item, Result]) -> None:
        """Serve a caller whose turn it is, and all who wait by now."""
        with self._guard:
            group = [first, *(self._waiting.popleft() for _ in range(min(len(self._waiting), self._most - 1)))]
        try:
            results = self._run([waiter.item for waiter in group])
            for waiter, result in zip(group, results, strict=True):
                waiter.result = result
        except BaseException as error:  # noqa: BLE001 - handed to every caller: nobody may be left waiting
            for waiter in group:
                waiter.error = error
        finally:
            self._pass_on(group)

    def _pass_on(self, group: Sequence[_Waiter[Item, Result]]) -> None:
        """Let the first of those who came meanwhile serve next, and the served ones go."""
        with self._guard:
            if self._waiting:
                self._waiting.popleft().wake.release()
            else:
                self._free += 1
        for waiter in group:
            waiter.served = True
            waiter.wake.release()
