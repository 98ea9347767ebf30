# SPDX-License-Identifier: Apache-2.0
"""What is recognised gets the verdict that parsing gives, report by report, and is stored as the same."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from frankly_protocol.canonical import parse_json
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_server.intake import Intake, regular
from frankly_server.store import Database, ReportRow

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import SURVEY, body, published

CLOCK = FixedClock(NOW)
Change = Callable[[bytes], bytes]


def swapped(old: bytes, new: bytes) -> Change:
    return lambda whole: whole.replace(old, new, 1)


CHANGES: dict[str, Change] = {
    "none": lambda whole: whole,
    "spaces around": lambda whole: b" \n" + whole + b"\t\r\n ",
    "a form feed around": lambda whole: whole + b"\f",
    "spaces within": swapped(b'"y":[', b'"y": ['),
    "another order": lambda whole: json.dumps(dict(reversed(json.loads(whole).items()))).encode(),
    "a symbol unknown": swapped(b'"y":[', b'"y":[9'),
    "no symbols": swapped(b'"y":[0,0]', b'"y":[]'),
    "an empty place": swapped(b'"y":[0,0]', b'"y":[0,,0]'),
    "a leading zero": swapped(b'"y":[0,0]', b'"y":[00,0]'),
    "a nested symbol": swapped(b'"y":[0,0]', b'"y":[[0],0]'),
    "deep": swapped(b'"y":[0,0]', b'"y":[[[0]],0]'),
    "a text": swapped(b'"y":[0,0]', b'"y":["0",0]'),
    "half a text": swapped(b'"y":[0,0]', b'"y":["0,0]'),
    "a huge number": swapped(b'"y":[0,0]', b'"y":[' + b"1" * 60 + b",0]"),
    "strata that nobody asked": swapped(b'"strata":{}', b'"strata":{"a":"b"}'),
    "strata that are none": swapped(b'"strata":{}', b'"strata":{"a"}'),
    "strata of a number": swapped(b'"strata":{}', b'"strata":{"a":1}'),
    "the same stratum twice": swapped(b'"strata":{}', b'"strata":{"a":"b","a":"b"}'),
    "strata of bad UTF-8": swapped(b'"strata":{}', b'"strata":{"a":"\xff"}'),
    "strata of a control character": swapped(b'"strata":{}', b'"strata":{"a":"\x01"}'),
    "a token": swapped(b'"token":null', b'"token":"abc"'),
    "another version": swapped(b'"v":1', b'"v":2'),
    "another document": swapped(b'"doc":"sha256:', b'"doc":"sha256:00'),
    "an unknown document": lambda whole: whole[:20] + bytes([whole[20] ^ 1]) + whole[21:],
    "an id in capitals": swapped(b'"id":"00', b'"id":"AA'),
    "a field more": swapped(b'"v":1', b'"w":1,"v":1'),
    "a field twice": swapped(b'"v":1', b'"v":1,"v":1'),
    "cut short": lambda whole: whole.rstrip()[:-1],
    "two at once": lambda whole: whole + whole,
    "nothing": lambda _: b"",
}


@pytest.fixture(params=["learnt", "fresh"])
def ways(request: pytest.FixtureRequest, sqlite: Database) -> tuple[Intake, Any]:
    """An intake over a published survey that has seen a report of it, or has not."""
    document = published(sqlite)
    intake = Intake(sqlite, CLOCK)
    if request.param == "learnt":
        intake.accept(SURVEY, body(document, report_id="ab" * 16))
    return intake, document


def verdict(intake: Intake, whole: bytes) -> tuple[str, str | None]:
    try:
        return intake.accept(SURVEY, whole).status, None
    except InvalidInput as error:
        return error.code, error.field


def test_one_report(ways: tuple[Intake, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    intake, document = ways
    told, plain = {}, {}
    for i, (name, change) in enumerate(CHANGES.items()):
        told[name] = verdict(intake, change(body(document, report_id=f"{2 * i:032x}")))
        with monkeypatch.context() as patched:
            patched.setattr(regular, "single", lambda _: None)
            plain[name] = verdict(intake, change(body(document, report_id=f"{2 * i + 1:032x}")))
    assert told == plain
    assert {code for code, _ in told.values()} >= {"accepted", "json_invalid", "symbol_unknown", "field_type"}


def test_what_is_stored_is_the_same(sqlite: Database) -> None:
    document = published(sqlite)
    intake = Intake(sqlite, CLOCK)
    for i in range(6):
        intake.accept(SURVEY, body(document, i % 2, i % 2, report_id=f"{i:032x}"))
    with sqlite.reading("check") as tx:
        rows = list(tx.reports.scan(SURVEY))
        assert tx.counts.recount(SURVEY) == []
    assert rows == [ReportRow(SURVEY, f"{i:032x}", document.digest, (i % 2, i % 2), "") for i in range(6)]


@pytest.mark.parametrize("days", [-400, 400])
def test_a_known_text_is_held_against_the_clock(sqlite: Database, days: int) -> None:
    document = published(sqlite)
    intake = Intake(sqlite, CLOCK)
    intake.accept(SURVEY, body(document))
    intake._clock = FixedClock(NOW + timedelta(days=days))
    assert verdict(intake, body(document))[0] == ("too_early" if days < 0 else "closed")


def test_a_known_text_is_held_against_the_survey(sqlite: Database) -> None:
    document = published(sqlite)
    published(sqlite, survey_id="cd" * 16)
    intake = Intake(sqlite, CLOCK)
    intake.accept(SURVEY, body(document))
    with pytest.raises(InvalidInput) as refused:
        intake.accept("cd" * 16, body(document))
    assert refused.value.code == "doc_mismatch"


def joined(reports: list[bytes], between: bytes = b",") -> bytes:
    return b'{"reports":[' + between.join(reports) + b"]}"


def test_batches_are_cut_as_parsing_cuts_them(sqlite: Database) -> None:
    """Random batches of changed reports: either not recognised, or exactly the reports that parsing finds."""
    document, rng = published(sqlite), Random(5)
    intake, recognised = Intake(sqlite, CLOCK), 0
    for i in range(300):
        changes = [rng.choice(list(CHANGES.values())) for _ in range(rng.randrange(4))] if i % 3 else []
        plain = [body(document, rng.randrange(2), 0) for _ in range(1 + rng.randrange(3))]
        whole = joined([change(plain[0]) for change in changes] + plain, rng.choice([b",", b" ,\n", b",,", b""]))
        found = intake.recognised(whole)
        if found is None:
            continue
        recognised += 1
        read = parse_json(whole, max_depth=5)["reports"]
        assert len(found) == len(read)
        for cut, value in zip(found, read, strict=True):
            assert (cut.doc.decode(), cut.id.decode()) == (value["doc"], value["id"])
            assert (json.loads(cut.y), json.loads(cut.strata)) == (value["y"], value["strata"])
    assert recognised > 60


def test_a_batch_is_stored_as_it_would_be(sqlite: Database) -> None:
    document = published(sqlite)
    bodies = [body(document, i % 2, 0, report_id=f"{i:032x}") for i in range(40)]
    bodies += [bodies[0], body(document, 1, 1, report_id=f"{1:032x}"), body(document, 9, 0, report_id="f" * 32)]
    intake = Intake(sqlite, CLOCK)
    known = intake.recognised(joined(bodies))
    assert known is not None
    told = [getattr(each, "status", None) or each.code for each in intake.accept_batch(SURVEY, known)]
    assert told == ["accepted"] * 40 + ["duplicate", "id_conflict", "symbol_unknown"]
    again = [getattr(each, "status", None) or each.code for each in intake.accept_batch(SURVEY, bodies)]
    assert again == ["duplicate"] * 41 + ["id_conflict", "symbol_unknown"]


def test_a_batch_of_known_texts_is_kept_with_what_came_before(database: Database) -> None:
    """What is plainly new is kept at once; repetitions and conflicts among it are told apart all the same."""
    document = published(database)
    intake = Intake(database, CLOCK)
    for y in range(2):
        intake.accept(SURVEY, body(document, y, 0, report_id=f"{y:032x}"))
    bodies = [body(document, i % 2, 0, report_id=f"{i:032x}") for i in range(30)]
    bodies[5] = body(document, 1, 0, report_id=f"{0:032x}")  # a conflict with what is stored

    def told(reports: list[bytes]) -> list[str]:
        known = intake.recognised(joined(reports))
        assert known is not None
        outcomes = intake.accept_batch(SURVEY, known)
        assert [getattr(each, "id", found.id.decode()) for each, found in zip(outcomes, known, strict=True)] == [
            found.id.decode() for found in known
        ]
        return [getattr(each, "status", None) or each.code for each in outcomes]

    assert told(bodies[1:10]) == ["duplicate", *["accepted"] * 3, "id_conflict", *["accepted"] * 4]
    assert told(bodies[2:5]) == ["duplicate"] * 3
    assert told([*bodies[10:], bodies[12]]) == [*["accepted"] * 20, "duplicate"]  # the same id twice in one batch
    assert intake.refusals(SURVEY) == {(NOW.date().isoformat(), "id_conflict"): 1}
    with database.reading("check") as tx:
        assert tx.counts.recount(SURVEY) == []
        assert len(list(tx.reports.scan(SURVEY))) == 29


@pytest.mark.parametrize("days", [-400, 400])
def test_a_batch_of_known_texts_is_held_against_the_clock_and_the_survey(sqlite: Database, days: int) -> None:
    document = published(sqlite)
    published(sqlite, survey_id="cd" * 16)
    intake = Intake(sqlite, CLOCK)
    intake.accept(SURVEY, body(document))
    batch = intake.recognised(joined([body(document), body(document)]))
    assert batch is not None
    assert [getattr(each, "code", "") for each in intake.accept_batch("cd" * 16, batch)] == ["doc_mismatch"] * 2
    intake._clock = FixedClock(NOW + timedelta(days=days))
    code = "too_early" if days < 0 else "closed"
    assert [getattr(each, "code", "") for each in intake.accept_batch(SURVEY, batch)] == [code] * 2


def test_few_texts_are_remembered(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    document = published(sqlite)
    intake = Intake(sqlite, CLOCK)
    monkeypatch.setattr(regular, "_MOST", 2)
    for i in range(8):
        intake.accept(SURVEY, body(document, i % 2, i // 2 % 2))
        assert len(intake._memory._known) <= 2


def test_long_texts_are_not_remembered(sqlite: Database) -> None:
    """Any number of spaces is JSON: nobody fills the memory with them."""
    document = published(sqlite)
    intake = Intake(sqlite, CLOCK)
    spaced = re.sub(rb'"strata":\{', b'"strata":{' + b" " * 3000, body(document, 1, 0))
    assert regular.single(spaced) is not None
    assert intake.accept(SURVEY, spaced).status == "accepted"
    assert not intake._memory._known


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_batch_with_a_number_that_is_none_is_left_to_parsing(sqlite: Database, number: bytes) -> None:
    document = published(sqlite)
    bent = re.sub(rb'"strata":\{', b'"strata":{"a":' + number + b",", body(document, 1, 0))
    assert Intake(sqlite, CLOCK).recognised(joined([bent, body(document, 0, 0)])) is None


def test_new_texts_are_left_to_parsing(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of large sets, which are all different, is not tried one by one."""
    document = published(sqlite)
    intake = Intake(sqlite, CLOCK)
    monkeypatch.setattr(regular, "_FEW", 0)
    different = [body(document, i % 2, i // 2) for i in range(4)]
    assert intake.recognised(joined(different)) is None
    intake.accept_batch(SURVEY, [replace_id(each, i) for i, each in enumerate(different)])
    assert intake.recognised(joined(different)) is None  # learnt by recognition alone


def replace_id(whole: bytes, number: int) -> bytes:
    start = whole.index(b'"id":"') + 6
    return whole[:start] + f"{number:032x}".encode() + whole[start + 32 :]
