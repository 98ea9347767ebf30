# SPDX-License-Identifier: Apache-2.0
"""Estimates in the database for tools that read SQL: equal to those of the API, and never stale."""

from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Block, Choice
from frankly_protocol.canonical import dumps
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.promises import Promise
from frankly_protocol.questions import Wanted
from frankly_server.analysis import Analysis, Publishing
from frankly_server.intake import Releasing
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.store import Database
from frankly_server.store.published_estimates import PublishedEstimate
from frankly_server.surveys import Surveys
from sqlalchemy.exc import DBAPIError

from tests.frankly_protocol.samples import NOW, ldp_block, lip_block, question, survey
from tests.frankly_server.samples import SURVEY, put, released, row

CONTRAST = Wanted("contrast", (Fraction(1), Fraction(-1), Fraction(-1)))
PUBLIC = (question("region", "north", "south"), question("sex", "f", "m"))
COLUMNS = ("estimate", "se", "low", "high", "level", "method", "n")


def _receive(database: Database, document: SurveyDocument, north: int, south: int) -> None:
    rows = []
    for number, region in enumerate(["north"] * north + ["south"] * south):
        public = {"region": region, "sex": "fm"[number % 2]}
        stratum = dumps({q.id: public[q.id] for q in document.strata}).decode()
        symbols = [number % 3 % 2, number % 2][: len(document.blocks)]
        rows.append(replace(row(*symbols, document=document.digest), strata=stratum))
    released(database, document, rows)


def _versions(database: Database, public: int = 2) -> None:
    """Return two versions; the first has fewer public questions, and the second has a different choice."""
    first = replace(survey(), strata=PUBLIC[:public], min_reports=20, release_step=2)
    put(database, first)
    changed = lip_block()
    renamed = replace(
        changed.questions[0],
        choices=(Choice("fair", {"en": "Fair"}), changed.questions[0].choices[1]),
    )
    blocks = (ldp_block(), replace(changed, questions=(renamed,)))
    second = replace(
        survey(*blocks, version=2, prev=first.digest), strata=PUBLIC, min_reports=30, release_step=2
    )
    put(database, second)
    _receive(database, first, 40, 25)
    _receive(database, second, 50, 10)


def _shown(database: Database) -> list[Any]:
    with database.engine.connect() as connection:
        return list(connection.exec_driver_sql("SELECT * FROM v_estimates").mappings())


def test_the_view_has_the_numbers_of_the_api(database: Database) -> None:
    _versions(database)
    assert Publishing(database).refresh() == [SURVEY]
    shown = {
        (r["by_question"], r["by_choice"], r["question"], r["version"], r["choice"]): r
        for r in _shown(database)
    }
    expected: dict[Any, Any] = {}
    versions = {"fair": 2, "good": 1}
    for by in (None, "region", "sex"):
        for result in Analysis(database).estimates(SURVEY, by=by)["questions"]:
            version = 2 if result["id"] == "affair" else versions[_first_choice(database, result)]
            for one in result["rows"]:
                group = None if by is None else result["by"][by]
                expected[by, group, result["id"], version, one["choice"]] = one
    assert shown.keys() == expected.keys()
    groups = {("region", "north"), ("region", "south"), ("sex", "f"), ("sex", "m")}
    assert {key[:2] for key in shown} == {(None, None)} | groups
    for key, one in expected.items():
        assert [shown[key][name] for name in COLUMNS] == [one[name] for name in COLUMNS]
        assert shown[key]["label"] == one["label"]["en"]
        assert shown[key]["flags"] == " ".join(one["flags"])
        assert (shown[key]["survey"], shown[key]["released"]) == (SURVEY, 125)
        assert shown[key]["question_text"] == f"{key[2]}?"


def _first_choice(database: Database, result: Any) -> str:
    """Return the choice in which the two tables of `marriage` differ, even if they have no rows."""
    rows = result["rows"] or [{"choice": "fair"}]
    return str(rows[0]["choice"])


def test_groups_below_the_minimum_have_no_rows(database: Database) -> None:
    document = replace(survey(ldp_block()), strata=PUBLIC[:1], min_reports=30, release_step=2)
    put(database, document)
    _receive(database, document, 29, 0)
    publishing = Publishing(database)
    assert publishing.refresh() == [SURVEY]
    assert _shown(database) == []
    _receive(database, document, 0, 2)
    publishing.refresh()
    assert {(r["by_question"], r["n"]) for r in _shown(database)} == {(None, 31)}


def test_wanted_figures_have_rows_and_lost_shares_have_none(database: Database) -> None:
    """Only the first choice is distinguished from the others."""
    half = 1 << 47
    mechanism = DenseMechanism(48, ((1 << 48, 0), (half, half), (half, half)))
    promise = Promise(Claim("ldp", (1 << 48, 1)))
    asked = (question("a", "x", "y", "z"), replace(question("b", "x", "y", "z"), wanted=CONTRAST))
    blocks = [
        Block(q.id, (q,), mechanism, (promise,), (1, 1, 1), None, "optimal", None) for q in asked
    ]
    document = put(database, survey(*blocks))
    rows = [row(n % 2, n % 2, document=document.digest) for n in range(60)]
    released(database, document, rows)
    Publishing(database).refresh()
    shown = {(line["question"], line["choice"]): line["estimate"] for line in _shown(database)}
    # P(0) = p + (1 − p)/2 = 1/2 for the share p of x.
    assert shown == pytest.approx({("a", "x"): 0.0, ("b", "contrast"): -1.0})


def test_a_grouping_that_the_api_refuses_has_no_rows(sqlite: Database) -> None:
    _versions(sqlite, public=1)
    with pytest.raises(InvalidInput):
        Analysis(sqlite).estimates(SURVEY, by="sex")
    Publishing(sqlite).refresh()
    assert {r["by_question"] for r in _shown(sqlite)} == {None, "region"}


def test_rows_follow_releases_and_an_old_state_never_replaces_a_new_one(database: Database) -> None:
    _versions(database)
    publishing = Publishing(database)
    assert publishing.refresh() == [SURVEY]
    assert publishing.refresh() == []
    before = _shown(database)
    with database.transaction("older") as tx:
        assert not tx.published_estimates.replace(SURVEY, 124, [])
    assert _shown(database) == before
    with database.transaction("of an erased state") as tx:
        assert not tx.published_estimates.replace(SURVEY, 126, [])
    (document,) = [
        SurveyDocument.from_envelope(r.envelope) for r in _documents(database) if r.version == 2
    ]
    _receive(database, document, 2, 2)
    assert publishing.refresh(SURVEY) == [SURVEY]
    assert {r["released"] for r in _shown(database)} == {129}


def _documents(database: Database) -> Any:
    with database.reading("documents") as tx:
        return tx.documents.versions(SURVEY)


def test_the_view_is_read_only(database: Database) -> None:
    _versions(database)
    Publishing(database).refresh()
    with pytest.raises(DBAPIError), database.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM v_estimates")
    assert _shown(database)


def test_erasing_a_survey_deletes_its_rows(sqlite: Database, tmp_path: Path) -> None:
    _versions(sqlite)
    Publishing(sqlite).refresh()
    clock = FixedClock(NOW)
    Surveys(Settings(home=tmp_path), sqlite, Keyring(tmp_path, clock), clock).erase(SURVEY)
    assert _shown(sqlite) == []
    assert Publishing(sqlite).refresh() == []


def test_a_release_writes_estimates_and_survives_their_failure(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = put(database, replace(survey(ldp_block()), min_reports=5, release_step=2))
    releasing = Releasing(
        database, FixedClock(datetime(2026, 6, 3, tzinfo=UTC)), Publishing(database)
    )

    def receive() -> int:
        with database.transaction("receive") as tx:
            tx.reports.add([row(i % 2, document=document.digest) for i in range(6)])
        return releasing.release()

    assert receive() == 6
    assert {r["n"] for r in _shown(database)} == {6}
    with monkeypatch.context() as broken:
        broken.setattr("frankly_server.analysis.publishing.estimates_json", None)
        assert receive() == 6
    assert {r["n"] for r in _shown(database)} == {6}
    # Nothing is pending, but the rows are stale.
    assert releasing.release() == 0
    assert {r["n"] for r in _shown(database)} == {12}


def test_columns_equal_those_of_the_row() -> None:
    assert set(COLUMNS) < set(PublishedEstimate._fields)
