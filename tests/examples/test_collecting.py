# SPDX-License-Identifier: Apache-2.0
"""Devices of the demo that reach no server: they wait, try again, and are counted once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from examples.demo import __main__ as demo
from examples.demo.respondents import Answers, answer_all
from tests.ports import free_port

LINK = f"http://127.0.0.1:{{}}/s/{'0' * 32}#sha256={'0' * 64}"


def test_a_device_without_a_server_waits(tmp_path: Path) -> None:
    seen: list[Answers] = []
    with ThreadPoolExecutor(1) as pool:
        people = [(7, {"q": "yes"}), (9, {"q": "no"})]
        found = answer_all(pool, LINK.format(free_port()), tmp_path, people, seen.append)
    assert found == Answers(sent=0, waiting=(7, 9))
    assert seen == [found]


def test_those_who_wait_try_again_and_first_results_need_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The server is away at first, then for every third person, then back."""
    people: list[dict[str, str]] = [{"q": str(i)} for i in range(3 * demo.FIRST)]
    rounds: list[list[int]] = []

    def answered(
        _pool: Any,
        _link: str,
        _folder: Path,
        persons: Sequence[tuple[int, Any]],
        progress: Callable[[Answers], None],
        **_: Any,
    ) -> Answers:
        numbers = [number for number, person in persons if person is people[number]]
        rounds.append(numbers)
        waits = [lambda _: True, lambda i: i % 3 == 0, lambda _: False][len(rounds) - 1]
        waiting = tuple(filter(waits, numbers))
        sent = len(numbers) - len(waiting)
        found = Answers(sent, waiting, asked=2 * sent, of=9 * sent)
        progress(found)
        return found

    shown: list[int] = []
    monkeypatch.setattr(demo, "answer_all", answered)
    with ThreadPoolExecutor(1) as pool:
        total = demo._collect(
            Console(quiet=True), pool, "", tmp_path, people, "5", lambda: shown.append(len(rounds))
        )
    every = list(range(len(people)))
    assert rounds == [every, every, every[::3]]
    assert (total.sent, total.asked, total.of) == (len(people), 2 * len(people), 9 * len(people))
    assert shown == [2]
