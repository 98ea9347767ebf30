# SPDX-License-Identifier: Apache-2.0
"""Insert statements of both databases, which store texts, bytes and numbers unchanged."""

from dataclasses import replace

from frankly_server.store import Database

from tests.frankly_server.samples import SURVEY, row, spent, stored

TEXTS = (
    "", "NULL", "null", "{}", "{", "}", ",", '"', '\\"', "\\", "\\\\", "\\x41", "'", "';--", " a ", "\n\t",
    "é\U0001f600", '{"region":"north"}', "%s", "%%", ":x", "?",
)  # fmt: skip


def test_values_are_stored_unchanged(database: Database) -> None:
    sent_rows = [
        replace(
            row(i, report_id=f"{i:02x}" * 16, document=f"sha256:{i:02x}" + "5c" * 31), strata=text
        )
        for i, text in enumerate(TEXTS)
    ]
    with database.transaction("add") as tx:
        assert tx.reports.add(sent_rows) == {sent_row.id for sent_row in sent_rows}
        assert tx.reports.add(sent_rows) == set()
        for sent_row in sent_rows:
            tx.releases.release(
                SURVEY, sent_row.document, 1, "2026-06-02T00:00:00Z", is_over=lambda: False
            )
        assert tx.tokens.spend_new(SURVEY, {"22" * 32: "", "5c" * 32: "panel"}) == {
            "22" * 32,
            "5c" * 32,
        }
        assert tx.tokens.spend_new(SURVEY, {"22" * 32: "", "00" * 32: ""}) == {"00" * 32}
    with database.reading("look") as tx:
        assert sorted(stored(tx, SURVEY), key=lambda sent_row: sent_row.id) == sent_rows
    assert spent(database) == 3
    with database.reading("look") as tx:
        for i, sent_row in enumerate(sent_rows):
            [(key, n)] = tx.counts.of_document(sent_row.document).items()
            assert (key.stratum, key.symbol, n) == (TEXTS[i], i, 1)
