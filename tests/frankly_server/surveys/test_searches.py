# SPDX-License-Identifier: Apache-2.0
"""Searches in processes: results, errors and progress pass, deadlines kill, places are limited."""

import multiprocessing
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import forkserver
from pathlib import Path

import pytest
from frankly_design.tables.limits import TimeExceeded
from frankly_protocol.errors import DocumentRejected, FranklyError, InvalidInput
from frankly_protocol.problems import Problem
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.drafting import draft_blocks
from frankly_server.surveys.searches import (
    ANALYSES,
    RETRY_S,
    SEARCHES,
    Busy,
    Places,
    apart,
    draft_apart,
)

from tests.frankly_server.surveys.apart import (
    add,
    fail,
    fail_unsendably,
    killed_while_sending,
    leave,
    one_long_step,
    out_of_memory,
    speak,
    wait_for,
)
from tests.frankly_server.web.site import SURVEY

LONG_S = 60.0
FORM = b"""
name: form
title: {en: Form}
languages: [en]
budget: "1"
form:
  questions:
    - {id: smokes, type: yes-no, text: {en: "Do you smoke?"}}
    - {id: drinks, type: yes-no, text: {en: "Do you drink?"}}
"""


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


@pytest.mark.parametrize(
    ("function", "seconds", "reason"),
    [
        (one_long_step, 0.2, r"longer than 0\.2 s"),
        (leave, LONG_S, "without a result"),
        (killed_while_sending, LONG_S, "without a result"),
        (out_of_memory, LONG_S, "without a result"),
    ],
)
def test_a_search_without_a_result_is_ended(
    function: Callable[[], object], seconds: float, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        apart(function, seconds=seconds)
    assert caught.value.problem is Problem.OPTIMISER_LIMIT
    assert searching() == 0


def test_a_search_needs_no_folder_of_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that cleans this folder removes the socket of the process that forks."""
    address = f"{tempfile.gettempdir()}/no-such-socket"
    assert apart(add, 2, 3, seconds=LONG_S) == 5
    monkeypatch.setattr(forkserver._forkserver, "_forkserver_address", address)
    assert apart(add, 3, 4, seconds=LONG_S) == 7


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


@pytest.mark.parametrize(
    ("file", "parts"), [(SURVEY, ["smokes", "drinks"]), (FORM, ["form"])], ids=["blocks", "form"]
)
def test_parts_are_designed_as_in_this_process(file: bytes, parts: list[str]) -> None:
    definition, said = parse_definition(file), list[tuple[int, int, str]]()
    drafted = draft_apart(definition, lambda *one: said.append(one), time.monotonic)
    assert [one.block for one in drafted] == [one.block for one in draft_blocks(definition)]
    assert said == [(i, len(parts), part) for i, part in enumerate((*parts, ""))]


@pytest.mark.parametrize("places_of", [SEARCHES, ANALYSES, (2, 3, 9)])
def test_work_without_a_place_is_refused_at_once(places_of: tuple[int, int, int]) -> None:
    places, go_on, running = Places(*places_of), threading.Event(), list[int]()
    at_once, most, each = places_of
    # Two organisations, in each of which every person has as many places as allowed.
    holders = [(str(i % 2), str(i // 2 // each)) for i in range(most)]

    def work(organisation: str, holder: str) -> None:
        with places.taken(organisation, holder):
            running.append(1)
            assert go_on.wait(60)

    threads = [threading.Thread(target=work, args=holder) for holder in holders]
    for thread in threads:
        thread.start()
    while places.number_held < most or len(running) < at_once:
        time.sleep(0.001)
    with pytest.raises(Busy, match="computing for others") as refused, places.taken("2", "new"):
        pass
    assert (refused.value.problem.status, refused.value.retry_after_s) == (429, RETRY_S)
    assert len(running) == at_once
    go_on.set()
    for thread in threads:
        thread.join()
    assert len(running) == most
    with places.taken("0", "0"):
        assert places.number_held == 1


def test_one_holder_and_one_organisation_leave_places_to_others() -> None:
    places = Places(9, 4, 2)
    with ExitStack() as held:
        for _ in range(2):
            held.enter_context(places.taken("a", "x"))
        with pytest.raises(Busy, match="an earlier request of yours"), places.taken("a", "x"):
            pass
        held.enter_context(places.taken("a", "y"))
        with pytest.raises(Busy, match="others"), places.taken("a", "z"):
            pass
        held.enter_context(places.taken("b", "x"))  # the same name in another organisation
        with pytest.raises(Busy, match="others"), places.taken("c", "x"):
            pass
    assert places.number_held == 0


def test_whoever_waited_is_next() -> None:
    """A client that asks again and again does not keep a waiting one from its turn."""
    places, turns, go_on = Places(*SEARCHES), list[str](), threading.Semaphore(0)

    def work(holder: str) -> None:
        with places.taken("a", holder):
            turns.append(holder)
            assert go_on.acquire(timeout=60)

    def again_and_again() -> None:
        for _ in range(2):
            work("greedy")

    greedy = threading.Thread(target=again_and_again)
    greedy.start()
    while not turns:
        time.sleep(0.001)
    patient = threading.Thread(target=work, args=("patient",))
    patient.start()
    while places.number_held < 2:
        time.sleep(0.001)
    for _ in range(3):
        go_on.release()
    for thread in (greedy, patient):
        thread.join(60)
    assert turns == ["greedy", "patient", "greedy"]


def test_waiting_for_a_turn_has_an_end() -> None:
    places = Places(1, 3, 1)
    with places.taken("a", "x"), pytest.raises(Busy), places.taken("a", "y", wait_s=0.01):
        pass
    assert places.number_held == 0
    with places.taken("a", "y"):
        pass


def test_searches_end_when_the_server_stops(tmp_path: Path) -> None:
    places, refusals = Places(*SEARCHES), list[str]()

    def work(holder: str) -> None:
        with pytest.raises(Busy, match="stopping"), places.taken("a", holder):
            apart(wait_for, tmp_path / "never", seconds=LONG_S, poll=places.require_running)
        refusals.append(holder)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("runs", "waits")]
    for thread in threads:
        thread.start()
    while places.number_held < len(threads) or not searching():
        time.sleep(0.001)
    places.stop()
    for thread in threads:
        thread.join(60)
    assert (sorted(refusals), places.number_held, searching()) == (["runs", "waits"], 0, 0)
    with pytest.raises(Busy, match="stopping"), places.taken("a", "late"):
        pass
