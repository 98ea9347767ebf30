# SPDX-License-Identifier: Apache-2.0
"""Client for asyncio, with the same names, checks and guarantees; it never blocks the event loop.

async with await Client.open(link, store="answers.db") as client:
    receipt = await client.answer({"q1": "yes"})

Steps that touch the store or the network (locks, syncs, requests) run in threads; the waits between
them are awaited. A cancelled call ends at its next wait: a step that has begun is finished, so that
an answer is either not drawn at all, or drawn once, charged and sealed. The threads are daemons:
a server that does not respond does not delay the end of the process.
"""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from frankly_protocol.explanation.budget import Budget

from frankly_sdk._core import Core, Options
from frankly_sdk._sealing import Row
from frankly_sdk._seams import Seams
from frankly_sdk._steps import Done, Steps, advance
from frankly_sdk.answer import Answer, Given
from frankly_sdk.batch import ROWS_PER_TRANSACTION, Randomised, Respondent
from frankly_sdk.events import OnEvent
from frankly_sdk.plan import Plan
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt
from frankly_sdk.survey import Survey

__all__ = ["Client"]

CLOSE_S = 0.9
"""Longest wait of `close`, in seconds, for steps that are still running."""
_T = TypeVar("_T")


class Client:
    """One install answering one survey, for asyncio; see `frankly_sdk.Client`.

    Use `await Client.open(…)`. All calls must come from tasks of one event loop.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._closed = asyncio.Event()
        self._running: set[asyncio.Future[Any]] = set()

    @classmethod
    async def open(
        cls,
        link: str,
        store: str | Path,
        policy: Policy | None = None,
        *,
        keys: bytes | None = None,
        enabled: bool = True,
        debug: bool = False,
        on_event: OnEvent | None = None,
        relay: str | None = None,
        ca_file: str | Path | None = None,
        spread_s: float | None = None,
        background: bool = False,
        one_person: bool = False,
        patience_s: float | None = None,
    ) -> Self:
        """Send reports left by an earlier run, then fetch and verify a survey.

        Arguments and errors are those of `frankly_sdk.Client.open`. `on_event` is called from
        threads: use `loop.call_soon_threadsafe` for code that must run in the loop. If the call is
        cancelled, everything that it opened is closed.
        """
        options = Options(
            link,
            store,
            policy,
            keys,
            enabled,
            debug,
            on_event,
            relay,
            ca_file,
            spread_s,
            background,
            one_person,
            patience_s,
        )
        return await cls._opened(options, Seams())

    @classmethod
    async def _opened(cls, options: Options, seams: Seams) -> Self:
        opening = _start(Core.open, options, seams)
        try:
            return cls(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_close_late)
            raise

    @property
    def enabled(self) -> bool:
        """False if the client was opened with enabled=False and does nothing."""
        return self._core.parts is not None

    @property
    def survey(self) -> Survey:
        """The accepted survey.

        Raises Disabled if there is none because the client was opened with enabled=False.
        """
        return self._core.survey

    async def budget(self, respondent: str | None = None) -> Budget:
        """Return the survey's cost for a respondent, and the budget left before and after it."""
        return await self._in_thread(self._core.budget, respondent)

    async def plan(self, respondent: str | None = None) -> Plan:
        """Return the questions to ask: all, or only those that this device has drawn for its report.

        The argument and the errors are those of `frankly_sdk.Client.plan`.
        """
        self._core.shared.check(respondent)
        return await self._in_thread(self._core.plan, respondent)

    async def answer(
        self,
        choices: Mapping[str, Given] | Answer,
        *,
        strata: Mapping[str, str] | None = None,
        respondent: str | None = None,
        token: str | None = None,
        patience_s: float | None = None,
    ) -> Receipt:
        """Randomise, seal and send one answer.

        Arguments, receipt and errors are those of `frankly_sdk.Client.answer`. If the call is
        cancelled before it has begun to seal, nothing is drawn. If it is cancelled later, the answer
        is sealed and charged; the next `answer` raises AlreadyAnswered, and the report is sent by
        it, by `flush`, by the background sender or at the next start.
        """
        row = Row("", Answer.of(choices), Answer.of({} if strata is None else strata), token)
        # A traceback keeps local variables, so only the redacted `Answer` may contain the answers.
        del choices, strata
        self._core.shared.check(respondent)
        steps = self._core.answer(row, respondent, patience_s)
        del row  # the steps drop the answers when they are sealed
        return await self._run(steps)

    async def randomise_many(self, rows: Iterable[Respondent]) -> AsyncIterator[Randomised]:
        """Seal many respondents' answers, 500 in each transaction; `flush` sends them.

        Rows, results and errors are those of `frankly_sdk.Client.randomise_many`; `rows` is read in
        a thread. A transaction that has begun when the call is cancelled is finished.
        """
        results = self._core.randomise_many(rows)
        while batch := await self._in_thread(_next, results):
            for result in batch:
                yield result

    async def flush(self, timeout_s: float = 30) -> list[Receipt]:
        """Send the reports that are still sealed in this store, for about `timeout_s` seconds.

        Receipts and errors are those of `frankly_sdk.Client.flush`: the first call also returns the
        receipts of the reports that `open` has delivered.
        """
        return await self._run(self._core.flush(timeout_s))

    async def close(self) -> None:
        """Close the store and the client's own connections; sealed reports stay in the store.

        Calls that wait between two attempts return ``queued``. Waits less than a second for steps
        that are still running; a request that takes longer is not interrupted.
        """
        self._core.stop.set()
        self._closed.set()
        if self._running:
            await asyncio.wait(self._running, timeout=CLOSE_S)
        await asyncio.shield(_start(self._core.close))

    async def _run(self, steps: Steps[_T]) -> _T:
        while True:
            running: asyncio.Future[float | Done[_T]] = self._begin(advance, steps)
            try:
                step = await asyncio.shield(running)
                if isinstance(step, Done):
                    return step.result
                await self._sleep(step)
            except asyncio.CancelledError:
                # Closed only after the step that may still be running, because the end of an answer
                # wakes the background sender. The garbage collector might close it much later.
                running.add_done_callback(lambda _done: steps.close())
                raise

    async def _sleep(self, seconds: float) -> None:
        if self._core.seams.sleep is not None:
            await self._in_thread(self._core.seams.sleep, seconds)
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), seconds)

    async def _in_thread(self, function: Callable[..., _T], *arguments: Any) -> _T:
        return await asyncio.shield(self._begin(function, *arguments))

    def _begin(self, function: Callable[..., _T], *arguments: Any) -> "asyncio.Future[_T]":
        """Run a step in a thread; if the caller is cancelled, the step still runs to its end."""
        step = _start(function, *arguments)
        self._running.add(step)
        step.add_done_callback(self._running.discard)
        return step

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _start(function: Callable[..., _T], *arguments: Any) -> "asyncio.Future[_T]":
    """Run a function in a daemon thread; returns its result as a future of this event loop.

    asyncio.to_thread is not used: the interpreter joins its threads at exit, and a request to an
    unresponsive server may take half a minute; a few such requests would also block its pool.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()
    # If the caller was cancelled, nothing awaits the error; this is not a mistake of the app.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    context = contextvars.copy_context()

    def settle(put: Callable[[Any], None], value: object) -> None:
        if not future.done():
            put(value)

    def report(put: Callable[[Any], None], value: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed in the meantime
            loop.call_soon_threadsafe(settle, put, value)

    def work() -> None:
        try:
            report(future.set_result, context.run(function, *arguments))
        except BaseException as error:  # noqa: BLE001  passed on to the task
            report(future.set_exception, error)

    threading.Thread(target=work, name="frankly-step", daemon=True).start()
    return future


def _next(results: Iterator[Randomised]) -> list[Randomised]:
    return list(islice(results, ROWS_PER_TRANSACTION))


def _close_late(opening: "asyncio.Future[Core]") -> None:
    """Close a client whose opening was cancelled, once it is open."""
    if not opening.cancelled() and opening.exception() is None:
        threading.Thread(target=opening.result().close, daemon=True).start()
