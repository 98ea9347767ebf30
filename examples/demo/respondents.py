# SPDX-License-Identifier: Apache-2.0
"""Simulated respondents, each with the real SDK and a separate store on disk."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from frankly_sdk import AlreadyAnswered, Client, NetworkError, Policy

from examples.demo.people import Person

_CHUNK = 25


@dataclass(frozen=True, slots=True)
class Answers:
    """What devices did.

    sent : number of reports that were acknowledged. waiting : numbers of the people whose devices
    have to try again. asked : questions put to people, of so many.
    """

    sent: int = 0
    waiting: tuple[int, ...] = ()
    asked: int = 0
    of: int = 0

    def __add__(self, other: "Answers") -> "Answers":
        return Answers(
            self.sent + other.sent,
            self.waiting + other.waiting,
            self.asked + other.asked,
            self.of + other.of,
        )


@contextmanager
def stores(home: Path) -> Iterator[Path]:
    """Yield a folder for the stores of all devices: in memory if possible, otherwise in `home`.

    Every store syncs each commit. Real devices have a disk each, but here all would wait for one.
    """
    memory = Path("/dev", "shm")
    place = memory if os.access(memory, os.W_OK) else home
    with TemporaryDirectory(prefix="frankly-demo-", dir=place) as folder:
        yield Path(folder)


@contextmanager
def workers() -> Iterator[ProcessPoolExecutor]:
    """Yield processes that answer for devices; they start at once.

    There are more of them than processors: each waits for the network and for its disk.
    """
    # A spawned process inherits neither threads nor open files.
    context, number = multiprocessing.get_context("spawn"), (os.cpu_count() or 1) + 1
    pool = ProcessPoolExecutor(number, mp_context=context)
    try:
        for _ in range(number):
            pool.submit(_answer_chunk, "", Path(), (), "")
        yield pool
    finally:
        # After an interruption nobody waits for those who have not begun to answer.
        pool.shutdown(cancel_futures=True)


def answer_all(
    pool: Executor,
    link: str,
    folder: Path,
    persons: Sequence[tuple[int, Person]],
    progress: Callable[[Answers], None],
    *,
    cap: str = "5",
) -> Answers:
    """Let every person answer over HTTP.

    Each device opens the pinned link, verifies, draws what to ask, asks that, randomises, persists
    and sends; then its store is deleted. `progress` is called with what further devices did. A
    second call for those that wait acts like an app's next start: devices that have answered only
    send their sealed reports; none asks or answers twice. persons : with the number of each. cap :
    nats that all surveys of the simulated app may cost.
    """
    chunks = [persons[i : i + _CHUNK] for i in range(0, len(persons), _CHUNK)]
    total = Answers()
    for future in as_completed(
        [pool.submit(_answer_chunk, link, folder, chunk, cap) for chunk in chunks]
    ):
        answers = future.result()
        total += answers
        progress(answers)
    return total


def _answer_chunk(
    link: str, folder: Path, chunk: Sequence[tuple[int, Person]], cap: str
) -> Answers:
    total = Answers()
    for number, person in chunk:
        store = folder / f"{number:05}.db"
        status, asked, of = _answer(link, store, person, cap)
        is_sent = status == "sent"
        total += Answers(int(is_sent), () if is_sent else (number,), asked, of)
        if is_sent:
            for file in folder.glob(f"{store.name}*"):
                file.unlink()
    return total


def _answer(link: str, store: Path, person: Person, cap: str) -> tuple[str, int, int]:
    """Let one device answer; return the status, the questions that it asked, and of how many."""
    try:
        # Reports leave at once, because nobody hesitates here; an app keeps the default.
        with Client.open(link, store=store, policy=Policy(cap=cap), spread_s=0) as client:
            try:
                plan = client.plan()
                receipt = client.answer({question: person[question] for question in plan.questions})
                return receipt.status, plan.asked, plan.of
            except AlreadyAnswered as before:
                return before.receipt.status, 0, 0
    except NetworkError:
        return "unreachable", 0, 0
