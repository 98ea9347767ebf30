# SPDX-License-Identifier: Apache-2.0
"""Canary answers, which must never be in errors, tracebacks, logs, reprs, pickles or requests."""

import copy
import json
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

import frankly_protocol
import frankly_sdk
import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import FranklyError, Policy
from frankly_sdk.answer import Answer
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import NOW, at, ldp_block, lip_block, question, survey
from tests.frankly_sdk.fakes import FakeServer, backstop_block, payable_survey, problem
from tests.narrowing import present

CANARY = "c4n4ry"
OURS = tuple(
    str(Path(present(package.__file__)).parent) for package in (frankly_sdk, frankly_protocol)
)
DOCUMENT = payable_survey()
ANSWERS = {"affair": "yes", "marriage": CANARY}


def with_canary() -> FakeServer:
    """Return a server whose second question has the canary as a choice, so that a respondent can give it."""
    questions = (question("marriage", "good", CANARY),)
    return FakeServer(document=survey(ldp_block(), replace(backstop_block(), questions=questions)))


def broken(_bits: int) -> int:
    raise OSError("no entropy")


def _second_answer(server: FakeServer, path: Path) -> None:
    with server.open(path) as client:
        client.answer(ANSWERS)
        client.answer(ANSWERS)


def _no_randomness(server: FakeServer, path: Path) -> None:
    with server.open(path, randbits=broken) as client:
        client.answer(ANSWERS)


def _half_randomness(server: FakeServer, path: Path) -> None:
    """Make the draw of the first block succeed and that of the second fail."""
    draws = iter([0])
    with server.open(path, randbits=lambda _bits: next(draws)) as client:
        client.answer(ANSWERS)


def _not_a_choice(server: FakeServer, path: Path) -> None:
    with server.open(path) as client:
        client.answer({"affair": "yes", "marriage": CANARY + "!"})


def _unknown_question(server: FakeServer, path: Path) -> None:
    with server.open(path) as client:
        client.answer({**ANSWERS, CANARY + "?": "yes"})


def _surplus_strata(server: FakeServer, path: Path) -> None:
    with server.open(path) as client:
        client.answer(ANSWERS, strata={"region": CANARY})


def _over_budget(server: FakeServer, path: Path) -> None:
    with server.open(path, policy=Policy(cap="1.5")) as client:
        store = Store(path)
        with store.transaction():
            store.reserve(
                "", "cd" * 16, "sha256:1", "https://host", 1, DOCUMENT.report_level.cost, ""
            )
        store.close()
        client.answer(ANSWERS)


def _closed_store(server: FakeServer, path: Path) -> None:
    client = server.open(path)
    client.close()
    client.answer(ANSWERS)


def _too_late(server: FakeServer, path: Path) -> None:
    class Late(FixedClock):
        looks = iter([NOW])

        def now(self) -> Any:
            return next(self.looks, NOW + timedelta(days=31))

    with server.open(path, clock=Late(NOW)) as client:
        client.answer(ANSWERS)


def _batch(*rows: Any) -> Callable[[FakeServer, Path], None]:
    def _rows(server: FakeServer, path: Path) -> None:
        with server.open(path) as client:
            list(client.randomise_many(rows))

    return _rows


GOOD_ROW: tuple[str, Any, dict[str, str]] = ("p", ANSWERS, {})
BATCHES = {
    "a row of two": _batch(GOOD_ROW, ("q", ANSWERS)),
    "no rows": _batch(GOOD_ROW, [ANSWERS]),
    "a blank key": _batch(GOOD_ROW, (" ", ANSWERS, {})),
    "no text as key": _batch(GOOD_ROW, (7, ANSWERS, {})),
    "not a choice": _batch(GOOD_ROW, ("q", {**ANSWERS, "affair": "?"}, {})),
    "a token of no use": _batch(GOOD_ROW, ("q", ANSWERS, {}, "token")),
}


def _closed_store_of_a_batch(server: FakeServer, path: Path) -> None:
    """Make the first respondent's name fail after the whole batch has been read."""
    client = server.open(path)
    client.close()
    list(client.randomise_many([GOOD_ROW, ("q", ANSWERS, {})]))


def _wrong_patience(server: FakeServer, path: Path) -> None:
    with server.open(path) as client:
        client.answer(ANSWERS, patience_s="x")  # type: ignore[arg-type]


def _no_respondent(server: FakeServer, path: Path) -> None:
    with server.open(path) as client:
        client.answer(ANSWERS, respondent="")


ERRORS: list[Callable[[FakeServer, Path], None]] = [
    _second_answer, _no_randomness, _half_randomness, _not_a_choice, _unknown_question, _surplus_strata, _over_budget,
    _closed_store, _too_late, _closed_store_of_a_batch, _wrong_patience, _no_respondent, *BATCHES.values(),
]  # fmt: skip


@pytest.mark.parametrize(
    "provoke", ERRORS, ids=[e.__name__ for e in ERRORS[: -len(BATCHES)]] + list(BATCHES)
)
def test_no_error_holds_the_answer_anywhere(
    provoke: Callable[[FakeServer, Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(FranklyError) as caught:
        provoke(with_canary(), tmp_path / "s.db")
    for error in _chain(caught.value):
        # The survey may be shown, with the canary as a choice, but not as an answer.
        report = "".join(traceback.format_exception(error)).replace(f"valid: good, {CANARY}", "")
        assert CANARY not in report
        for function, name, value in _locals(error.__traceback__):
            assert f"'marriage': '{CANARY}" not in repr(value), (function, name)
            assert not (isinstance(value, str) and value.startswith(CANARY)), (function, name)
            assert not (function == "DenseMechanism.sample" and name == "truth")
    assert CANARY not in caplog.text


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _locals(trace: TracebackType | None) -> Iterator[tuple[str, str, object]]:
    """Yield the local variables of all SDK and protocol frames, because crash reporters send them."""
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(OURS):
            yield from (
                (code.co_qualname, name, value) for name, value in trace.tb_frame.f_locals.items()
            )
        trace = trace.tb_next


def test_answers_are_redacted_and_cannot_be_copied() -> None:
    choices = Answer(ANSWERS)
    assert CANARY not in f"{choices} {choices!r} {[choices]} {vars(type(choices))}"
    for carry in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            carry(choices)


def test_a_mapping_with_changing_values_is_read_once() -> None:
    class Fickle(dict[str, str]):
        reads = 0

        def __getitem__(self, key: str) -> str:
            Fickle.reads += 1
            return super().__getitem__(key)

        def keys(self) -> Any:
            return super().keys()

    choices = Answer(Fickle(ANSWERS))
    reads = Fickle.reads
    assert isinstance(choices.settled(with_canary().document.questions), Answer)
    assert Fickle.reads == reads


@pytest.mark.slow
def test_every_body_has_one_length_and_only_the_six_fields(tmp_path: Path) -> None:
    """Bodies have the same size for every true answer and every pair of symbols."""
    mechanism = DenseMechanism(4, ((14, 1, 1), (1, 14, 1)))
    wide = DenseMechanism(4, tuple((1,) * 12 + (4,) for _ in range(2)))
    blocks = (
        replace(
            lip_block(),
            mechanism=mechanism,
            promises=at(lip_block(), (40, 1)),
            ceiling=Fraction(14),
        ),
        replace(ldp_block(), mechanism=wide, promises=at(ldp_block(), (1, 1)), ceiling=Fraction(1)),
    )
    server = FakeServer(document=survey(*blocks))
    lengths, count = set(), 0
    for i, (affair, marriage) in enumerate((a, m) for a in ("no", "yes") for m in ("good", "bad")):
        for draw in range(16):
            with server.open(
                tmp_path / f"{i}-{draw}.db", randbits=_drawing(draw), policy=Policy(cap="60")
            ) as client:
                client.answer({"affair": affair, "marriage": marriage})
            lengths.add(len(server.posted[-1]))
            assert set(json.loads(server.posted[-1])) == {"v", "doc", "id", "y", "strata", "token"}
            count += 1
    assert count == 64
    assert lengths == {server.document.report_length}


def _drawing(draw: int) -> Callable[[int], int]:
    return lambda bits: draw if bits == 4 else 2**bits - 1 - draw


def test_receipts_never_repeat_what_the_server_says(tmp_path: Path) -> None:
    """A receipt must not carry a hostile server's text to the app's screen or log."""
    server = FakeServer(replies=[problem(503, CANARY), problem(422, "symbol_unknown")])
    with server.open(tmp_path / "s.db") as client:
        receipt = client.answer({"affair": "yes", "marriage": "good"})
    assert (receipt.status, receipt.code) == ("refused", "symbol_unknown")
    assert CANARY not in repr(receipt)


def test_an_interruption_of_the_draw_passes_on_without_the_true_rows(tmp_path: Path) -> None:
    def interrupted(_bits: int) -> int:
        raise KeyboardInterrupt

    server = FakeServer(document=survey(ldp_block()))
    with (
        server.open(tmp_path / "s.db", randbits=interrupted) as client,
        pytest.raises(KeyboardInterrupt) as caught,
    ):
        client.answer({"affair": "yes"})
    assert "sample" not in [entry.name for entry in caught.traceback]
