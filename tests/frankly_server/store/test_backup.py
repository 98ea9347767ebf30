# SPDX-License-Identifier: Apache-2.0
"""Backups: complete, equal for both databases, checked for damage, and restored completely or not at all."""

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from frankly_server.store import (
    AccountRow,
    ApiKeyRow,
    BackupBroken,
    Contents,
    Database,
    DocumentRow,
    PasskeyRow,
    SurveyRow,
    read_back,
    restore_backup,
    save_backup,
    upgrade,
)
from frankly_server.store.schema import metadata
from frankly_server.store.webhooks import DeliveryRow, WebhookRow

from tests.frankly_server.samples import SURVEY, row

N = 2500  # more than two chunks
AT = "2026-11-21T00:00:00Z"
WAYS_IN = {"sessions", "known_browsers", "pending_sign_ins"}
"""A restore must not let in again whoever was put out after the backup."""


def fill(database: Database, n: int = N) -> None:
    rows = [row(i % 3, 1, report_id=f"{i:032x}") for i in range(n)]
    with database.transaction("fill") as tx:
        tx.surveys.add(SurveyRow(SURVEY, "s", '{"title":"é"}'))
        tx.documents.add(
            DocumentRow(rows[0].document, SURVEY, 1, rows[0].document, b"\x00\xff signed bytes")
        )
        tx.reports.add(rows[: n - 2])
        tx.releases.release(
            SURVEY, rows[0].document, 1, "2026-06-02T00:00:00Z", is_over=lambda: False
        )
        tx.reports.add(rows[n - 2 :])
        tx.days.add(SURVEY, "2026-11-21", {"closed": 3})
        tx.api_keys.add(
            ApiKeyRow(
                "abc",
                hashlib.sha256(b"k").hexdigest(),
                "admin",
                "note",
                "2026-11-21T00:00:00Z",
                None,
            )
        )
        tx.accounts.add(AccountRow("ef" * 16, "main", "a@b.example", "$argon2id$", "owner", AT))
        tx.browsers.add("01" * 32, "ef" * 16, AT, most=10)
        tx.second_factors.lock("ef" * 16)
        tx.second_factors.change("ef" * 16, totp_secret="A" * 32, totp_since=AT, last_step=7)
        tx.second_factors.put_codes("ef" * 16, ["02" * 32, "03" * 32])
        tx.second_factors.add_pending("04" * 32, "ef" * 16, AT, "")
        tx.passkeys.add(PasskeyRow("AQ", "ef" * 16, b"\x00\xff", 1 << 33, 1 << 60, "key é", AT))
        tx.organisations.set_second_factor("main", True)
        tx.webhooks.put(WebhookRow(SURVEY, "https://hooks.example/s", "ab" * 32))
        tx.webhooks.add(
            DeliveryRow(
                SURVEY, "closed:1", "cd" * 16, "{}", "waiting", 2, "2026-11-21T00:00:00Z", ""
            )
        )


def saved(database: Database) -> tuple[bytes, Contents]:
    target = io.BytesIO()
    contents = save_backup(database, target)
    return target.getvalue(), contents


def every_row(database: Database) -> dict[str, list[tuple[object, ...]]]:
    with database.engine.connect() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(table.select())), key=repr)
            for table in metadata.sorted_tables
        }


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Database]:
    restored = Database(f"sqlite:///{tmp_path / 'restored.db'}")
    upgrade(restored)
    yield restored
    restored.close()


def test_everything_is_restored_even_on_the_other_kind_of_database(
    database: Database, empty: Database
) -> None:
    fill(database)
    with database.transaction("sign in") as tx:
        tx.sessions.add("05" * 32, "ef" * 16, AT)
    data, contents = saved(database)
    assert contents.tables["reports"][0] == N
    assert set(contents.tables) == set(metadata.tables) - WAYS_IN
    assert read_back(io.BytesIO(data)) == contents == restore_backup(empty, io.BytesIO(data))
    rows_before, rows_after = every_row(database), every_row(empty)
    assert all(rows_before[name] for name in WAYS_IN)
    for name in rows_before:
        assert rows_after[name] == ([] if name in WAYS_IN else rows_before[name]), name
    assert saved(empty)[0] == data


def test_a_restored_sqlite_backup_can_be_restored_into_postgresql(
    sqlite: Database, postgres_database: Database
) -> None:
    with postgres_database.engine.begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
    fill(sqlite)
    data, _ = saved(sqlite)
    restore_backup(postgres_database, io.BytesIO(data))
    assert saved(postgres_database)[0] == data


def test_rows_are_sorted_by_key_not_by_arrival(sqlite: Database, empty: Database) -> None:
    rows = [row(0, report_id=f"{i:032x}") for i in range(50)]
    for database, order in ((sqlite, rows), (empty, rows[::-1])):
        with database.transaction("fill") as tx:
            for report_row in order:
                tx.reports.add([report_row])
    assert saved(sqlite)[0] == saved(empty)[0]


def without(data: bytes, name: str) -> bytes:
    """Return the backup without a table, which is also removed from its manifest."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        tables = json.loads(packed.read("manifest.json"))["tables"]
    del tables[name]
    data = changed(data, f"tables/{name}.jsonl", lambda content: None)
    return changed(data, "manifest.json", manifest(tables=tables))


def test_a_database_with_rows_is_not_restored_into(sqlite: Database) -> None:
    fill(sqlite, 3)
    data, _ = saved(sqlite)
    before = every_row(sqlite)
    with pytest.raises(BackupBroken, match="new one"):
        restore_backup(sqlite, io.BytesIO(data))
    assert every_row(sqlite) == before


def test_counts_that_disagree_with_the_reports_are_not_saved(sqlite: Database) -> None:
    fill(sqlite, 3)
    with sqlite.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE batch_counts SET n = n + 1")
    with pytest.raises(BackupBroken, match="counts"):
        saved(sqlite)


def changed(data: bytes, name: str, change: Callable[[bytes], bytes | None]) -> bytes:
    """Return the zip with one member changed or left out."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(target, "w") as new:
        for member in old.namelist():
            content: bytes | None = old.read(member)
            if member == name and content is not None:
                content = change(content)
            if content is not None:
                new.writestr(member, content)
    return target.getvalue()


def with_member(data: bytes, name: str, content: bytes) -> bytes:
    """Return the zip with an additional member."""
    target = io.BytesIO(data)
    with zipfile.ZipFile(target, "a") as packed, warnings.catch_warnings(action="ignore"):
        packed.writestr(name, content)  # zipfile warns if the name exists
    return target.getvalue()


def manifest(**changes: object) -> Callable[[bytes], bytes]:
    return lambda content: json.dumps(json.loads(content) | changes).encode()


def flipped(data: bytes, name: str) -> bytes:
    """Flip one bit of a table's content, because some other bits of a zip are never read."""
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        entry = packed.getinfo(name)
    sizes = data[
        entry.header_offset + 26 : entry.header_offset + 30
    ]  # lengths of the name and the extra field
    start = (
        entry.header_offset
        + 30
        + int.from_bytes(sizes[:2], "little")
        + int.from_bytes(sizes[2:], "little")
    )
    place = start + entry.compress_size // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


REPORTS = "tables/reports.jsonl"
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing at all": lambda data: b"",
    "no zip": lambda data: b"hello",
    "cut short": lambda data: data[: len(data) // 2],
    "a flipped bit": lambda data: flipped(data, REPORTS),
    "no manifest": lambda data: changed(data, "manifest.json", lambda content: None),
    "a manifest that is not JSON": lambda data: changed(
        data, "manifest.json", lambda content: b"{"
    ),
    "another format": lambda data: changed(data, "manifest.json", manifest(format="other/1")),
    "another schema": lambda data: changed(data, "manifest.json", manifest(schema="0000")),
    "tables missing in the manifest": lambda data: changed(
        data, "manifest.json", manifest(tables={})
    ),
    "a table left out": lambda data: without(data, "tokens"),
    "a member that is not named": lambda data: with_member(data, "tables/more.jsonl", b"{}"),
    "a member twice": lambda data: with_member(data, REPORTS, b""),
    "a table missing": lambda data: changed(data, REPORTS, lambda content: None),
    "a row missing": lambda data: changed(
        data, REPORTS, lambda content: content.split(b"\n", 1)[1]
    ),
    "a row twice": lambda data: changed(
        data, REPORTS, lambda content: content.split(b"\n")[0] + b"\n" + content
    ),
    "a symbol changed": lambda data: changed(
        data, REPORTS, lambda content: content.replace(b'"0,1"', b'"1,1"', 1)
    ),
    "a row that is not an object": lambda data: changed(
        data, REPORTS, lambda content: b"[]\n" + content
    ),
    "a row with other columns": lambda data: changed(
        data, REPORTS, lambda content: b'{"id":1}\n' + content
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_reported_and_nothing_is_restored(
    damage: str, sqlite: Database, empty: Database
) -> None:
    fill(sqlite, 300)
    data = DAMAGES[damage](saved(sqlite)[0])
    with pytest.raises(BackupBroken):
        read_back(io.BytesIO(data))
    with pytest.raises(BackupBroken):
        restore_backup(empty, io.BytesIO(data))
    assert not any(every_row(empty).values())
