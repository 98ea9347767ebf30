# SPDX-License-Identifier: Apache-2.0
"""Simulated respondents, each with the real SDK and a separate store on disk."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from frankly_sdk import AlreadyAnswered, Client, NetworkError, Policy

from examples.demo.people import Person

_CHUNK = 25


@dataclass(frozen=True, slots=True)
class Answers:
    """What devices did. statuses : number of each; asked : questions put to people, of so many.

    "sent" is the only final status; "unreachable" means that the survey could not be fetched.
    """

    statuses: Counter[str]
    asked: int = 0
    of: int = 0

    def __add__(self, other: "Answers") -> "Answers":
        return Answers(self.statuses + other.statuses, self.asked + other.asked, self.of + other.of)


def answer_all(
    link: str,
    folder: Path,
    persons: Sequence[Person],
    progress: Callable[[int], None],
    *,
    workers: int | None = None,
    cap: str = "5",
) -> Answers:
    """Let every person answer over HTTP.

    Each device opens the pinned link, verifies, draws what to ask, asks that, randomises, persists
    and sends. `progress` is called with the number of further devices that are done. A second call
    acts like an app's next start: devices that have answered only send their sealed reports; none
    asks or answers twice. cap : nats that all surveys of the simulated app may cost.
    """
    work = list(enumerate(persons))
    chunks = [work[i : i + _CHUNK] for i in range(0, len(work), _CHUNK)]
    total = Answers(Counter())
    # A spawned process inherits neither threads nor open files.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers or os.cpu_count() or 1, mp_context=context) as pool:
        for future in as_completed(
            [pool.submit(_answer_chunk, link, folder, chunk, cap) for chunk in chunks]
        ):
            answers = future.result()
            total += answers
            progress(sum(answers.statuses.values()))
    return total


def _answer_chunk(
    link: str, folder: Path, chunk: Sequence[tuple[int, Person]], cap: str
) -> Answers:
    total = Answers(Counter())
    for number, person in chunk:
        total += _answer(link, folder / f"{number:05}.db", person, cap)
    return total


def _answer(link: str, store: Path, person: Person, cap: str) -> Answers:
    try:
        # Reports leave at once, because nobody hesitates here; an app keeps the default.
        with Client.open(link, store=store, policy=Policy(cap=cap), spread_s=0) as client:
            try:
                plan = client.plan()
                receipt = client.answer({question: person[question] for question in plan.questions})
                return Answers(Counter([receipt.status]), plan.asked, plan.of)
            except AlreadyAnswered as before:
                return Answers(Counter([before.receipt.status]))
    except NetworkError:
        return Answers(Counter(["unreachable"]))
