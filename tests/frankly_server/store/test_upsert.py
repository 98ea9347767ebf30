# SPDX-License-Identifier: Apache-2.0
"""Texts, bytes and numbers arrive as they were sent, whatever a database's own notation would make of them."""

from dataclasses import replace

from frankly_server.store import Database

from tests.frankly_server.samples import SURVEY, row, spent, stored

TEXTS = (
    "", "NULL", "null", "{}", "{", "}", ",", '"', '\\"', "\\", "\\\\", "\\x41", "'", "';--", " a ", "\n\t",
    "é\U0001f600", '{"region":"north"}', "%s", "%%", ":x", "?",
)  # fmt: skip


def test_what_is_stored_is_what_was_given(database: Database) -> None:
    given = [
        replace(
            row(i, report_id=f"{i:02x}" * 16, document=f"sha256:{i:02x}" + "5c" * 31), strata=text
        )
        for i, text in enumerate(TEXTS)
    ]
    with database.transaction("add") as tx:
        assert tx.reports.add(given) == {each.id for each in given}
        assert tx.reports.add(given) == set()
        for each in given:
            tx.releases.release(SURVEY, each.document, 1, "2026-06-02T00:00:00Z", is_over=False)
        assert tx.tokens.spend_new(SURVEY, ["22" * 32, "5c" * 32]) == {"22" * 32, "5c" * 32}
        assert tx.tokens.spend_new(SURVEY, ["22" * 32, "00" * 32]) == {"00" * 32}
    with database.reading("look") as tx:
        assert sorted(stored(tx, SURVEY), key=lambda each: each.id) == given
    assert spent(database) == 3
    with database.reading("look") as tx:
        for i, each in enumerate(given):
            [(key, n)] = tx.counts.of_document(each.document).items()
            assert (key.stratum, key.symbol, n) == (TEXTS[i], i, 1)
