# SPDX-License-Identifier: Apache-2.0
"""Searches in processes: results, errors and progress pass, deadlines kill, places are limited."""

import multiprocessing
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from frankly_protocol.errors import DocumentRejected, FranklyError, InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.design.tables.limits import TimeExceeded
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.drafting import draft_blocks
from frankly_server.surveys.searches import RETRY_S, Busy, Places, apart, draft_apart

from tests.frankly_server.surveys.apart import (
    add,
    fail,
    fail_unsendably,
    leave,
    one_long_step,
    speak,
    wait_for,
)
from tests.frankly_server.web.site import SURVEY

LONG_S = 60.0


def searching() -> int:
    """Return the number of processes of searches."""
    return sum(child.name == "frankly-search" for child in multiprocessing.active_children())


def test_the_result_is_returned() -> None:
    assert apart(add, 2, 3, seconds=LONG_S) == 5
    assert searching() == 0


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput(Problem.PRIOR_SUM, "the counts", "prior.joint"),
        TimeExceeded(),
        DocumentRejected("privacy", "a level", "blocks[0]"),
        Busy(),
        ZeroDivisionError("x"),
    ],
)
def test_the_error_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        apart(fail, error, seconds=LONG_S)
    assert str(caught.value) == str(error)
    if isinstance(error, FranklyError):
        assert vars(caught.value) == vars(error)


def test_an_error_that_cannot_be_sent_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"^Unsendable$"):
        apart(fail_unsendably, seconds=LONG_S)


@pytest.mark.parametrize(("function", "seconds"), [(one_long_step, 0.2), (leave, LONG_S)])
def test_a_search_without_a_result_is_killed(
    function: Callable[[], object], seconds: float
) -> None:
    with pytest.raises(InvalidInput, match=f"longer than {seconds:g} s") as caught:
        apart(function, seconds=seconds)
    assert caught.value.problem is Problem.OPTIMISER_LIMIT
    assert searching() == 0


def test_progress_is_heard_in_order() -> None:
    heard: list[tuple[object, ...]] = []
    result = apart(speak, 3, seconds=LONG_S, hear=lambda *said: heard.append(said))
    assert result == "spoken"
    assert heard == [(i, "of", 3) for i in range(3)]


def test_an_error_of_poll_kills_the_search(tmp_path: Path) -> None:
    def poll() -> None:
        raise KeyError("cancelled")

    with pytest.raises(KeyError, match="cancelled"):
        apart(wait_for, tmp_path / "never", seconds=LONG_S, poll=poll)
    assert searching() == 0


def test_blocks_are_designed_as_in_this_process() -> None:
    definition, said = parse_definition(SURVEY), list[tuple[int, int, str]]()
    drafted = draft_apart(definition, lambda *one: said.append(one), time.monotonic)
    assert [one.block for one in drafted] == [one.block for one in draft_blocks(definition)]
    assert said == [(0, 2, "smokes"), (1, 2, "drinks"), (2, 2, "")]


@pytest.mark.parametrize(("at_once", "most"), [(1, 3), (2, 2), (2, 8)])
def test_work_without_a_place_is_refused_at_once(at_once: int, most: int) -> None:
    places, go_on, running = Places(at_once, most), threading.Event(), list[int]()

    def work() -> None:
        with places.taken():
            running.append(1)
            assert go_on.wait(60)

    threads = [threading.Thread(target=work) for _ in range(most)]
    for thread in threads:
        thread.start()
    # The semaphore's value, because nothing else says that every thread has its place.
    while places._places._value or len(running) < at_once:
        time.sleep(0.001)
    with pytest.raises(Busy) as refused, places.taken():
        pass
    assert (refused.value.problem.status, refused.value.retry_after_s) == (429, RETRY_S)
    assert len(running) == at_once
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(running) == most
    with places.taken():
        assert places._places._value == most - 1


def test_waiting_for_a_turn_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("frankly_server.surveys.searches._WAIT_S", 0.01)
    places = Places(1, 2)
    with places.taken(), pytest.raises(Busy), places.taken():
        pass
    with places.taken():
        pass
