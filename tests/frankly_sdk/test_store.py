# SPDX-License-Identifier: Apache-2.0
"""Store of a device: file mode, locks, forks, full disks, and size limits."""

import os
import resource
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from frankly_protocol.audit import Charge
from frankly_protocol.trust import KnownKeys
from frankly_sdk import AlreadyAnswered, StoreError, _database
from frankly_sdk._trusted import Remembered
from frankly_sdk.store import LogHead, Store

from tests.frankly_sdk.fakes import ANSWERS, FakeServer

COST = Charge(None)
CHAIN = "sha256:a"
CLOSES = "2026-07-01T00:00:00Z"


def never(_bits: int) -> int:
    raise AssertionError("nothing may be drawn")


def test_the_file_is_private_even_if_it_was_not(tmp_path: Path) -> None:
    (tmp_path / "s.db").touch(mode=0o644)
    (tmp_path / "s.db").chmod(0o644)
    Store(tmp_path / "s.db").close()
    assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600


def test_a_new_file_is_private_from_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that opened the file before a chmod could still read it, so the file is created
    with its final mode."""

    def too_late(*_: object) -> None:
        raise AssertionError("changed later")

    monkeypatch.setattr(Path, "chmod", too_late)
    umask = os.umask(0)
    try:
        Store(tmp_path / "s.db").close()
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "s.db").stat().st_mode) == 0o600


def test_opening_a_second_store_releases_no_lock_of_the_first(tmp_path: Path) -> None:
    """POSIX releases all locks of a process when it closes any descriptor of the file."""
    path = tmp_path / "s.db"
    store = Store(path)
    grab = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')"
    with store.transaction():
        Store(path).close()
        tried = subprocess.run([sys.executable, "-c", grab], capture_output=True, text=True)
    assert "locked" in tried.stderr
    store.close()


def test_a_fork_waits_for_the_transaction_of_another_thread(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    begun, may_end = threading.Event(), threading.Event()

    def write() -> None:
        with store.transaction():
            begun.set()
            may_end.wait(10)
            store.reserve(CHAIN, "ab", "sha256:1", "https://host", 10, COST, CLOSES)

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(10)
    # The fork below waits for the writer, which this timer stops.
    threading.Timer(0.05, may_end.set).start()
    child = os.fork()
    if child == 0:
        answer = store.answer(CHAIN, "ab")
        store.keep_evidence(CHAIN, {"sha256:2": b"from the child"})
        store.close()
        os._exit(0 if answer is not None else 1)
    _, status = os.waitpid(child, 0)
    writer.join()
    assert status == 0
    assert store.evidence() == {"sha256:2": b"from the child"}
    store.close()


def test_after_a_fork_parent_and_child_send_one_value(tmp_path: Path) -> None:
    server = FakeServer()
    reader, writer = os.pipe()
    with server.open(tmp_path / "s.db") as client:
        child = os.fork()
        try:
            client.answer(ANSWERS)
        except AlreadyAnswered:
            pass
        finally:
            if child == 0:
                os.write(writer, b"".join(server.posted))
                os._exit(0)
        os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        values = {*server.posted, pipe.read()} - {b""}
    assert len(values) == 1


@pytest.fixture
def no_space() -> Iterator[None]:
    """Limit the files of this process to one page, which simulates a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_detected_before_any_draw(
    tmp_path: Path, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    """The test counts calls, because the client catches errors of a random source."""
    server, drawn = FakeServer(), []

    def counted(bits: int) -> int:
        drawn.append(bits)
        return 0

    with server.open(tmp_path / "s.db", randbits=counted) as client:
        with capfd.disabled():
            request.getfixturevalue("no_space")
        with pytest.raises(StoreError):
            client.answer(ANSWERS)
    assert (drawn, server.posted) == ([], [])


def test_a_store_that_may_not_be_written_stops_everything() -> None:
    """Root may write any file, so the test temporarily switches from root to uid 65534."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        server = FakeServer()
        server.open(path, randbits=never).close()
        path.chmod(0o400)
        Path(folder).chmod(0o555)
        was_root = os.geteuid() == 0
        if was_root:
            os.seteuid(65534)
        try:
            with pytest.raises(StoreError):
                server.open(path, randbits=never).answer(ANSWERS)
        finally:
            if was_root:
                os.seteuid(0)
            Path(folder).chmod(0o700)
    assert server.posted == []


def test_a_missing_folder_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        Store(tmp_path / "missing" / "s.db")
    assert list(tmp_path.iterdir()) == []


def test_memory_of_a_version_never_goes_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    for version, digest in ((1, "one"), (3, "three"), (2, "two"), (3, "another three")):
        store.remember(CHAIN, "ab", Remembered(version, digest, b""))
    assert store.survey(CHAIN, "ab") == Remembered(3, "three", b"")
    # A document is replaced only if its signing keys have been withdrawn.
    store.remember(CHAIN, "ab", Remembered(3, "new", b""), instead_of="two")
    assert store.survey(CHAIN, "ab") == Remembered(3, "three", b"")
    store.remember(CHAIN, "ab", Remembered(3, "new", b""), instead_of="three")
    assert store.survey(CHAIN, "ab") == Remembered(3, "new", b"")
    store.close()


def test_evidence_cannot_fill_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    for i in range(40):
        store.keep_evidence(CHAIN, {f"sha256:{i}": b"first", f"sha256:{i}, other": b"second"})
    assert len(store.evidence()) == 16
    store.close()


def test_a_closed_answer_stays_as_it_is(tmp_path: Path) -> None:
    """A slower process with another receipt does not change the state that the faster process wrote."""
    store = Store(tmp_path / "s.db")
    with store.transaction():
        store.reserve(CHAIN, "ab", "sha256:1", "https://host", 10, COST, CLOSES)
        sealed = store.seal(CHAIN, "ab", "0" * 32, b"0123456789")
    store.close_answer(sealed, "sent", "accepted")
    store.close_answer(sealed, "refused", "closed")
    answer = store.answer(CHAIN, "ab")
    store.close()
    assert answer is not None
    assert (answer.state, answer.code, answer.body) == ("sent", "accepted", None)


def test_two_rows_for_one_survey_cannot_exist(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    for _ in range(2):
        with pytest.raises((StoreError, KeyError)), store.transaction():
            store.reserve(CHAIN, "ab", "sha256:1", "https://host", 10, COST, CLOSES)
            store.reserve(CHAIN, "ab", "sha256:1", "https://host", 10, COST, CLOSES)
    assert store.answer(CHAIN, "ab") is None  # the failed transaction was rolled back
    store.close()


def test_a_journal_is_all_zeros_after_a_receipt(tmp_path: Path) -> None:
    with FakeServer().open(tmp_path / "s.db") as client:
        client.answer(ANSWERS)
        beside = sorted(path.name for path in tmp_path.glob("*-*"))
        assert beside == ["s.db-journal", "s.db-sending"]
        assert (tmp_path / "s.db-sending").read_bytes() == b""
        assert not any((tmp_path / "s.db-journal").read_bytes())
    with closing(sqlite3.connect(tmp_path / "s.db")) as database, database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_journal_of_any_size_is_overwritten_once_and_a_clean_one_not_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks of zeros are skipped, chunks after them are not; the sync is the slow step."""
    journal = tmp_path / "s.db-journal"
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    writes: list[int] = []
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda *call: writes.append(call[2]) or pwrite(*call))
    chunk = _database._CHUNK
    journal.write_bytes(b"a" + bytes(2 * chunk - 1) + b"b" * chunk + b"c")
    for expected in ([0, 2 * chunk, 3 * chunk], []):
        synced.clear()
        writes.clear()
        with journal.open("r+b") as file:
            _database._overwrite(file.fileno())
        assert journal.read_bytes() == bytes(3 * chunk + 1)
        assert (writes, len(synced)) == (expected, min(len(expected), 1))


def test_bytes_of_a_killed_process_in_a_journal_are_overwritten_at_the_next_start(
    tmp_path: Path,
) -> None:
    """This includes bytes after a chunk of zeros, because a journal keeps its length and may contain both."""
    store = Store(tmp_path / "s.db")
    store.keep_evidence(CHAIN, {"sha256:0": b"x"})
    store.close()
    journal = tmp_path / "s.db-journal"
    for left in (
        bytes(_database._CHUNK) + b"symbols",
        b"symbols".rjust(600, b"\0") + bytes(_database._CHUNK),
    ):
        journal.write_bytes(left)
        Store(tmp_path / "s.db").close()
        assert not any(journal.read_bytes())


PRAGMAS = [
    ("journal_mode", "persist"),
    ("locking_mode", "normal"),
    ("temp_store", 2),
    ("synchronous", 2),
    ("secure_delete", 1),
    ("fullfsync", 1),
]


@pytest.mark.parametrize(("pragma", "value"), PRAGMAS)
def test_connections_sync_commits_and_overwrite_erased_bytes(
    pragma: str, value: object, tmp_path: Path
) -> None:
    """The settings also apply to the connection of a fork and to a file that was in WAL mode."""
    with closing(sqlite3.connect(tmp_path / "s.db")) as database, database:
        database.execute("PRAGMA journal_mode=WAL")
    database.close()
    store = Store(tmp_path / "s.db")
    child = os.fork()
    setting = store._database._connection().db.execute(f"PRAGMA {pragma}").fetchone()
    if child == 0:
        os._exit(0 if setting == (value,) else 1)
    _, status = os.waitpid(child, 0)
    store.close()
    assert (setting, status) == ((value,), 0)


def test_every_alias_of_a_chain_knows_its_newest_keys(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    newest, other_chain = KnownKeys(b"second", CHAIN), KnownKeys(b"other", "sha256:" + "9" * 64)
    for alias, keys in (
        ("https://a", KnownKeys(b"first", CHAIN)),
        ("https://b", newest),
        ("https://c", other_chain),
    ):
        with store.transaction():
            store.remember_keys(alias, keys)
    assert [store.alias_keys(f"https://{name}") for name in "abcd"] == [
        newest,
        newest,
        other_chain,
        None,
    ]
    assert [store.keys(str(keys.chain)) for keys in (newest, other_chain)] == [newest, other_chain]
    assert store.keys("sha256:" + "0" * 64) is None
    store.close()


def test_a_path_that_is_no_store_is_left_unchanged(tmp_path: Path) -> None:
    folder, notes = tmp_path / "folder", tmp_path / "notes.txt"
    folder.mkdir(mode=0o755)
    notes.write_text("another program's\n" * 100)
    notes.chmod(0o644)
    for path in (folder, notes, Path("/dev/null"), Path("a\0b")):
        with pytest.raises(StoreError):
            Store(path)
    assert [path.stat().st_mode & 0o777 for path in (folder, notes)] == [0o755, 0o644]
    assert notes.read_text().startswith("another program's")


@pytest.mark.slow
def test_a_child_forked_while_another_thread_reads_can_write(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    store.keep_evidence(CHAIN, {"sha256:0": b"x"})
    finished = threading.Event()
    failures: list[StoreError] = []

    def read() -> None:
        while not finished.is_set():
            try:
                store.outbox()
            except StoreError as error:
                failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    statuses = []
    for i in range(8):
        child = os.fork()
        if child == 0:
            try:
                store.keep_evidence(CHAIN, {f"sha256:{i + 1}": b"y"})
            except BaseException:  # noqa: BLE001
                os._exit(1)
            os._exit(0)
        statuses.append(os.waitpid(child, 0)[1])
    finished.set()
    reader.join()
    assert (statuses, failures, len(store.evidence())) == ([0] * 8, [], 9)
    store.close()


def test_reserved_and_sealed_rows_have_the_same_length(tmp_path: Path) -> None:
    """If the lengths differed, sealing could need another page after the draw and fail on a full disk."""
    store, sizes = Store(tmp_path / "s.db"), []
    query = "SELECT length(report_id), length(body) FROM answers"
    with store.transaction():
        store.reserve(CHAIN, "ab", "sha256:1", "https://host", 300, COST, CLOSES)
        sizes.append(store._database.rows(query))
        store.seal(CHAIN, "ab", "0f" * 16, b"x" * 300)
        sizes.append(store._database.rows(query))
    assert sizes == [[(32, 300)]] * 2
    store.close()


def test_tables_that_were_rolled_back_are_created_again(tmp_path: Path) -> None:
    """The first transaction of a new file creates the tables and fails after reading from them."""
    store = Store(tmp_path / "s.db")
    with pytest.raises(KeyError), store.transaction():
        assert store.answer(CHAIN, "ab") is None
        raise KeyError
    with store.transaction():
        store.reserve(CHAIN, "ab", "sha256:1", "https://host", 10, COST, CLOSES)
        store.seal(CHAIN, "ab", "0f" * 16, b"x" * 10)
    assert store.answer(CHAIN, "ab") is not None
    store.close()


def test_a_log_renamed_again_is_compared_with_its_last_name(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.db")
    names = ["a.example/log", "b.example/log", "c.example/log"]
    renamed_from = [
        store.remember_log(CHAIN, LogHead(name, i + 1, name.encode()), "sha256:1", b"proof")
        for i, name in enumerate(names)
    ]
    assert renamed_from == [None, *names[:2]]
    assert {piece.decode() for piece in store.evidence().values()} == set(names[:2])
    store.close()
