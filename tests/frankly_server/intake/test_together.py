# SPDX-License-Identifier: Apache-2.0
"""Concurrent callers share work, each gets its own result, and nobody is left waiting."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from frankly_server.intake.together import Together


class _Held:
    """Serving that stands still until it is let go, so that others come meanwhile."""

    def __init__(self, callers: int) -> None:
        self.groups: list[list[int]] = []
        self.first_serves = threading.Event()
        self.go = threading.Event()
        self.together: Together[int, int] = Together(self._run, most=3)
        self._threads = ThreadPoolExecutor(callers)

    def _run(self, group: Sequence[int]) -> list[int]:
        self.groups.append(list(group))
        self.first_serves.set()
        assert self.go.wait(30)
        if 13 in group:
            raise ValueError("the whole group")
        return [2 * item for item in group]

    def call(self, items: Sequence[int]) -> list[int | str]:
        """Submit the first item, and the others once it is being served; return the results in order."""

        def submit(item: int) -> int | str:
            try:
                return self.together.submit(item)
            except ValueError as error:
                return str(error)

        with self._threads as threads:
            results = [threads.submit(submit, items[0])]
            assert self.first_serves.wait(30)
            for number, item in enumerate(items[1:], 1):
                results.append(threads.submit(submit, item))
                while len(self.together._waiting) < number:  # let them queue in order
                    pass
            self.go.set()
            return [result.result(30) for result in results]


def test_a_lone_caller_is_served_alone() -> None:
    groups: list[list[int]] = []

    def run(group: Sequence[int]) -> list[int]:
        groups.append(list(group))
        return [item + 1 for item in group]

    together = Together(run)
    assert [together.submit(1), together.submit(2)] == [2, 3]
    assert groups == [[1], [2]]


def test_those_who_come_meanwhile_are_served_in_groups_in_order() -> None:
    held = _Held(8)
    assert held.call(range(8)) == [0, 2, 4, 6, 8, 10, 12, 14]
    assert held.groups == [[0], [1, 2, 3], [4, 5, 6], [7]]


def test_an_error_meets_its_group_and_no_other() -> None:
    held = _Held(6)
    assert held.call([1, 2, 13, 4, 5, 6]) == [2, *["the whole group"] * 3, 10, 12]
    assert held.together.submit(7) == 14


def test_an_interrupt_leaves_nobody_waiting() -> None:
    def run(_group: Sequence[int]) -> list[int]:
        raise KeyboardInterrupt

    together: Together[int, int] = Together(run)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            together.submit(1)


def test_so_many_groups_are_served_at_once_and_no_more() -> None:
    both = threading.Barrier(2)
    at_work, most, groups = 0, 0, []
    guard = threading.Lock()

    def run(group: Sequence[int]) -> list[int]:
        nonlocal at_work, most
        with guard:
            at_work += 1
            most = max(most, at_work)
            groups.append(list(group))
        if len(groups) <= 2:
            both.wait(30)  # passes only if two are served at the same time
        with guard:
            at_work -= 1
        return [item + 1 for item in group]

    together = Together(run, at_once=2)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(together.submit, range(400))) == list(range(1, 401))
    assert most == 2
    assert sorted(item for group in groups for item in group) == list(range(400))


@pytest.mark.parametrize("at_once", [1, 3])
def test_many_callers_each_get_their_own_result(at_once: int) -> None:
    together: Together[int, int] = Together(lambda group: [item * item for item in group], at_once=at_once)
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(together.submit, range(2000))) == [item * item for item in range(2000)]
