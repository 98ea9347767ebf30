# SPDX-License-Identifier: Apache-2.0
"""Respondent keys: all spellings of a key denote one person, for whom one draw is made."""

import hmac
import sqlite3
import unicodedata
from collections import Counter
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import Charge
from frankly_sdk import AlreadyAnswered, BudgetExceeded, Event, InvalidInput, Policy
from frankly_sdk.cli import main
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import ldp_block, survey
from tests.frankly_sdk.drivers import driver  # noqa: F401
from tests.frankly_sdk.fakes import FakeServer

KEY = "Zoë 7"
SPELLINGS = [
    KEY,
    f"{KEY} ",
    f"\t{KEY}\r\n",
    f"\u00a0{KEY}\u3000",
    unicodedata.normalize("NFD", KEY),
    f" {unicodedata.normalize('NFD', KEY)}",
]
YES = {"affair": "yes"}


def server(**changes: Any) -> FakeServer:
    """A server with a question that costs one nat."""
    return FakeServer(document=survey(ldp_block(epsilon="1"), **changes))


@pytest.mark.parametrize("spelling", SPELLINGS, ids=ascii)
@pytest.mark.usefixtures("driver")
def test_another_spelling_is_the_same_person(spelling: str, tmp_path: Path) -> None:
    place, second_survey = server(), server(survey_id="cd" * 16)
    with place.open(tmp_path / "s.db") as client:
        client.answer(YES, respondent=KEY)
        with pytest.raises(AlreadyAnswered):
            client.answer(YES, respondent=spelling)
        assert [row.status for row in client.randomise_many([(spelling, YES, {})])] == ["done"]
    with (
        second_survey.open(tmp_path / "s.db", policy=Policy(cap="1.5")) as client,
        pytest.raises(BudgetExceeded),
    ):
        client.answer(YES, respondent=spelling)
    assert (len(place.posted), second_survey.posted) == (1, [])


@pytest.mark.parametrize(
    "spelling", ["zoë 7", "Zoë7", "Zoe 7", "Zoë  7", "Zoë 7.", "Zoë ７"], ids=ascii
)
@pytest.mark.usefixtures("driver")
def test_other_letters_and_inner_spaces_are_other_people(spelling: str, tmp_path: Path) -> None:
    place = server()
    with place.open(tmp_path / "s.db") as client:
        for key in (KEY, spelling):
            client.answer(YES, respondent=key)
    assert len(place.posted) == 2


@pytest.mark.usefixtures("driver")
def test_a_batch_names_both_rows_whose_keys_differ_only_in_spelling(tmp_path: Path) -> None:
    events: list[Event] = []
    rows: list[tuple[str, Any, dict[str, str]]] = [
        (key, YES, {}) for key in ("a", *SPELLINGS[:2], "a", SPELLINGS[4])
    ]
    with server().open(tmp_path / "s.db", on_event=events.append) as client:
        batch = list(client.randomise_many(rows))
    assert [(row.status, row.same_as, row.respelled) for row in batch] == [
        ("sealed", None, False),
        ("sealed", None, False),
        ("already", 1, True),
        ("already", 0, False),
        ("already", 1, True),
    ]
    details = [event.detail for event in events if event.name == "same_respondent"]
    rows_named = [[i for i in range(5) if f"rows[{i}]" in detail] for detail in details]
    assert rows_named == [[1, 2], [1, 4]]
    assert not any(secret_text in detail for detail in details for secret_text in ("Zo", KEY))


def test_a_table_with_two_spellings_of_a_key_names_both_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = server()
    (tmp_path / "in.csv").write_text(
        f"respondent,affair\n{KEY},yes\np,yes\n{KEY} ,yes\n", encoding="utf-8"
    )
    arguments = ["randomise", str(tmp_path / "in.csv"), str(tmp_path / "out")]
    command = [*arguments, "--link", place.link, "--store", str(tmp_path / "s.db")]
    assert main(command, lambda chosen: place.open(chosen.store)) == 3
    message = capsys.readouterr().err
    assert all(phrase in message for phrase in ("line 4", "line 2", "spaces"))
    assert KEY not in message


# Stores that contain hashes of keys as they were typed


def typed(store: Path, key: str, *surveys: str) -> None:
    """Store an answer as version 3 did, under the hash of the key as typed, including its spaces."""
    with closing(sqlite3.connect(store)) as old, old:
        ((salt,),) = old.execute("SELECT salt FROM salt").fetchall()
        name = hmac.digest(salt, key.encode(), "sha256").hex()
        for survey_id in surveys:
            row = (
                "",
                survey_id,
                name,
                "sha256:0",
                "https://collect.example/in",
                "",
                "sent",
                "accepted",
                "2/1",
                "1/9",
            )
            old.execute(
                "INSERT INTO answers VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, NULL)", row
            )
    old.close()


@pytest.mark.parametrize("spelling", SPELLINGS[1:], ids=ascii)
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.usefixtures("driver")
def test_an_answer_stored_under_a_key_as_typed_is_found(
    spelling: str, batch: bool, tmp_path: Path
) -> None:
    place = server()
    with place.open(tmp_path / "s.db") as client:
        client.answer(YES, respondent="person 0")  # creates the salt
        typed(tmp_path / "s.db", spelling, place.document.survey)
        place.posted.clear()
        for key in (spelling, KEY):  # under every spelling
            if batch:
                assert [row.status for row in client.randomise_many([(key, YES, {})])] == ["done"]
            else:
                with pytest.raises(AlreadyAnswered):
                    client.answer(YES, respondent=key)
    assert place.posted == []


@pytest.mark.usefixtures("driver")
def test_two_answers_of_one_person_cost_both(tmp_path: Path) -> None:
    """An earlier version drew twice; both costs are charged to one person."""
    store = Store(tmp_path / "s.db")
    store.respondent_name("person 0")
    for key in (KEY, f"{KEY} "):
        typed(tmp_path / "s.db", key, "ab" * 16)
    typed(tmp_path / "s.db", f"{KEY} ", "cd" * 16)
    for _ in range(2):
        name = store.respondent_name(f"{KEY} ")
    assert name == store.respondent_name(KEY)
    assert store.spent(name) == [
        Charge(Fraction(4), Fraction(2, 9)),
        Charge(Fraction(2), Fraction(1, 9)),
    ]
    with closing(sqlite3.connect(tmp_path / "s.db")) as file, file:
        assert Counter(row[0] for row in file.execute("SELECT survey FROM answers")) == {
            "ab" * 16: 2,
            "cd" * 16: 1,
        }
    file.close()
    store.close()


@pytest.mark.parametrize("key", ["", " ", "\u3000"])
def test_a_blank_key_is_refused(key: str, tmp_path: Path) -> None:
    with server().open(tmp_path / "s.db") as client, pytest.raises(InvalidInput):
        client.answer(YES, respondent=key)
