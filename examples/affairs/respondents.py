# SPDX-License-Identifier: Apache-2.0
"""The respondents: each one a device of its own, with the real SDK and a store of its own on disk."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from examples.affairs.data import Person
from frankly_sdk import Client, Policy

CAP = "5"
"""Nats the imagined app allows one survey to cost; the demo's form asks for 4.5."""
_CHUNK = 25


def answer_all(
    link: str, folder: Path, persons: Sequence[Person], progress: Callable[[int], None], workers: int | None = None
) -> Counter[str]:
    """Let every person answer over HTTP and return how often each receipt status came back.

    Each device opens the pinned link, verifies, randomises, persists and sends. `progress` is told how many more are
    done. Whatever could not be delivered stays sealed in its store: see `flush_all`.
    """
    return _spread(_answer_chunk, link, folder, list(enumerate(persons)), progress, workers)


def flush_all(link: str, folder: Path, progress: Callable[[int], None], workers: int | None = None) -> Counter[str]:
    """Open every device again and deliver what is still sealed there; return the receipt statuses."""
    devices: list[tuple[int, Person]] = [(int(path.stem), {}) for path in sorted(folder.glob("*.db"))]
    return _spread(_flush_chunk, link, folder, devices, progress, workers)


Work = Sequence[tuple[int, Person]]


def _spread(
    task: Callable[[str, Path, Work], Counter[str]],
    link: str,
    folder: Path,
    work: Work,
    progress: Callable[[int], None],
    workers: int | None,
) -> Counter[str]:
    """Share the devices out to processes; a spawned process inherits neither threads nor open files."""
    chunks = [work[i : i + _CHUNK] for i in range(0, len(work), _CHUNK)]
    total: Counter[str] = Counter()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count() or 1, mp_context=context) as pool:
        for done in as_completed([pool.submit(task, link, folder, chunk) for chunk in chunks]):
            statuses = done.result()
            total += statuses
            progress(sum(statuses.values()))
    return total


def _answer_chunk(link: str, folder: Path, work: Work) -> Counter[str]:
    return Counter(_answer(link, folder, number, person) for number, person in work)


def _answer(link: str, folder: Path, number: int, person: Person) -> str:
    with Client.open(link, store=_store(folder, number), policy=Policy(cap=CAP)) as client:
        receipt = client.answer({question: person[question] for question in client.survey.questions})
        return receipt.status


def _flush_chunk(link: str, folder: Path, work: Work) -> Counter[str]:
    return Counter(status for number, _ in work for status in _flush(link, folder, number))


def _flush(link: str, folder: Path, number: int) -> Iterable[str]:
    with Client.open(link, store=_store(folder, number), policy=Policy(cap=CAP)) as client:
        return [receipt.status for receipt in client.flush(timeout_s=30)]


def _store(folder: Path, number: int) -> Path:
    return folder / f"{number:05}.db"
