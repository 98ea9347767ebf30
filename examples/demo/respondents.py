# SPDX-License-Identifier: Apache-2.0
"""Simulated respondents, each with the real SDK and a separate store on disk."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from frankly_sdk import AlreadyAnswered, Client, NetworkError, Policy

from examples.demo.people import Person

_CHUNK = 25


def answer_all(
    link: str,
    folder: Path,
    persons: Sequence[Person],
    progress: Callable[[int], None],
    *,
    workers: int | None = None,
    cap: str = "5",
) -> Counter[str]:
    """Let every person answer over HTTP and return the number of each status.

    Each device opens the pinned link, verifies, randomises, persists and sends. `progress` is
    called with the number of further devices that are done. A second call acts like an app's next
    start: devices that have answered only send their sealed reports; none answers twice. "sent" is
    the only final status; "unreachable" means that the survey could not be fetched. cap : nats that
    all surveys of the simulated app may cost.
    """
    work = list(enumerate(persons))
    chunks = [work[i : i + _CHUNK] for i in range(0, len(work), _CHUNK)]
    total: Counter[str] = Counter()
    # A spawned process inherits neither threads nor open files.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count() or 1, mp_context=context) as pool:
        for future in as_completed(
            [pool.submit(_answer_chunk, link, folder, chunk, cap) for chunk in chunks]
        ):
            statuses = future.result()
            total += statuses
            progress(sum(statuses.values()))
    return total


def _answer_chunk(
    link: str, folder: Path, chunk: Sequence[tuple[int, Person]], cap: str
) -> Counter[str]:
    return Counter(
        _answer(link, folder / f"{number:05}.db", person, cap) for number, person in chunk
    )


def _answer(link: str, store: Path, person: Person, cap: str) -> str:
    try:
        with Client.open(link, store=store, policy=Policy(cap=cap)) as client:
            try:
                return client.answer(
                    {question: person[question] for question in client.survey.questions}
                ).status
            except AlreadyAnswered as before:
                return before.receipt.status
    except NetworkError:
        return "unreachable"
