# SPDX-License-Identifier: Apache-2.0
"""Noted head: written before a head is shown, only advanced, and compared with the database."""

import errno
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_protocol.trust import SignedCheckpoint, Tree
from frankly_protocol.trust.merkle import leaf_hash
from frankly_server.keys.durable import written_whole
from frankly_server.log import noted_head, service
from frankly_server.log.noted_head import NOTED_HEAD, Head, NotedHead
from frankly_server.log.service import LogService
from frankly_server.store import downgrade, upgrade

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.log.sites import Place, watcher
from tests.refusals import code_and_field, refusal


def tree(size: int, name: bytes = b"") -> Tree:
    return Tree([leaf_hash(name + bytes([i])) for i in range(size)])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place.make(tmp_path)
    yield place
    place.services.close()


def noted(place: Place) -> int:
    head = place.services.log.noted.read()
    return 0 if head is None else head.size


@pytest.mark.parametrize("shown", ["checkpoint", "proof", "consistency", "leaves"])
def test_a_head_is_noted_before_it_is_shown(
    place: Place, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (digest,) = place.surveys(1)
    events: list[str] = []

    def recorded(module: Any, name: str) -> None:
        original = getattr(module, name)

        def record(*arguments: Any, **options: Any) -> Any:
            events.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, record)

    recorded(noted_head, "written_whole")
    recorded(service, "sign_checkpoint")
    log = place.services.log
    arguments: tuple[Any, ...] = {"proof": (digest,), "consistency": (0, 1), "leaves": (1,)}.get(
        shown, ()
    )
    getattr(log, shown)(*arguments)
    signed = ["sign_checkpoint"] if shown in ("checkpoint", "proof") else []
    assert events == ["written_whole", *signed]
    getattr(log, shown)(*arguments)
    assert events.count("written_whole") == 1  # the file is touched only when the log has grown
    assert log.noted.read() == Head(1, log._stored().root())
    assert stat.S_IMODE(log.noted.path.stat().st_mode) == 0o600


def test_an_older_head_that_witnesses_have_signed_does_not_replace_the_newest(
    place: Place, tmp_path: Path
) -> None:
    (key,) = place.name("w.example")
    (first,) = place.surveys(1)
    watcher("w.example", key, tmp_path).visit(place)
    place.surveys(1)
    place.services.log.proof(first)
    assert noted(place) == 2


def test_a_head_only_advances_whatever_process_notes_it(tmp_path: Path) -> None:
    """Each of these objects stands for a process, with its own memory."""
    sizes = [3, 1, 7, 2, 9, 4, 9, 8] * 4
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda size: NotedHead(tmp_path).note(tree(size)), sizes))
    assert NotedHead(tmp_path).read() == Head.of(tree(9))
    assert {path.name for path in tmp_path.iterdir()} == {NOTED_HEAD, ".log-head.lock"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_writers_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has compared, and not yet written, cannot be overtaken."""
    order: list[str] = []
    read = NotedHead.read

    def slow(head: NotedHead) -> Head | None:
        order.append("read")
        return read(head)

    @contextmanager
    def record(path: Path, *, replace: bool) -> Iterator[Any]:
        with written_whole(path, replace=replace) as file:
            yield file
        order.append("written")

    monkeypatch.setattr(NotedHead, "read", slow)
    monkeypatch.setattr(noted_head, "written_whole", record)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda size: NotedHead(tmp_path).note(tree(size)), range(1, 30)))
    # Between a read and its own write, no other process reads.
    assert all(order[i - 1] == "read" for i, event in enumerate(order) if event == "written")


def test_another_log_is_never_noted(tmp_path: Path) -> None:
    """A command on another, larger database must not hide it from the next start."""
    NotedHead(tmp_path).note(tree(3))
    NotedHead(tmp_path).note(tree(9, b"other"))
    assert NotedHead(tmp_path).read() == Head.of(tree(3))


@pytest.mark.parametrize("error", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_heads_are_shown_and_documents_published_if_the_head_cannot_be_noted(
    place: Place, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(error, "refused")

    place.surveys(1)
    with monkeypatch.context() as patch:
        patch.setattr(noted_head, "written_whole", refuse)
        signed = SignedCheckpoint.from_bytes(place.services.log.checkpoint())
        place.services.check_start()
    assert signed.checkpoint.size == 1
    assert noted(place) == 0
    place.services.log.checkpoint()  # the next head tries again
    assert noted(place) == 1


def test_a_start_notes_what_was_published_without_a_head(place: Place) -> None:
    place.surveys(2)
    assert noted(place) == 0
    place.services.check_start()
    assert noted(place) == 2


def test_a_log_without_a_role_is_noted_too(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(place.services.keys), "log_key", lambda _keys: None)
    place.surveys(2)
    assert refusal(InvalidInput, place.services.log.checkpoint).code == "log_unknown"
    assert noted(place) == 2


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        (tree(0), "is empty"),
        (tree(2), "has 2 entries: an older or another"),
        (tree(3, b"x"), "has 3 other"),
    ],
)
def test_a_log_that_lacks_noted_entries_is_named(tmp_path: Path, stored: Tree, words: str) -> None:
    head = NotedHead(tmp_path)
    error = refusal(InvalidInput, head.require_in, Head.of(tree(3)), stored)
    assert (error.code, error.field) == ("unsafe_setting", "FRANKLY_DATABASE_URL")
    assert words in error.detail
    assert f"{head.path} notes 3 entries" in error.detail
    for way_out in ("FRANKLY_DATABASE_URL", "frankly restore", "--accept-lost-log"):
        assert way_out in error.detail


def test_both_databases_are_compared_with_and_without_tables(
    database_url: str, tmp_path: Path
) -> None:
    place = Place.make(tmp_path, database_url)
    database, log = place.services.database, place.services.log
    place.surveys(2)
    log.note()
    assert log.check() == 2
    assert downgrade(database) is None
    assert not database.has_tables()
    # Another process, which has not read the entries before.
    fresh = LogService(database, place.services.keys, FixedClock(NOW))
    assert "is empty" in refusal(InvalidInput, fresh.check).detail
    assert not database.has_tables()
    upgrade(database)
    assert database.has_tables()
    assert "is empty" in refusal(InvalidInput, fresh.check).detail
    place.services.close()


@pytest.mark.parametrize("size", [3, 4, 8])
def test_the_same_or_a_grown_log_is_the_right_one(tmp_path: Path, size: int) -> None:
    NotedHead(tmp_path).require_in(Head.of(tree(3)), tree(size))


def test_the_file_is_read_before_the_database(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a document published in between would look like one that the database has lost."""
    place.surveys(1)
    log = place.services.log
    log.note()
    read = NotedHead.read

    def read_then_publish(head: NotedHead) -> Head | None:
        result = read(head)
        place.surveys(1)
        log.noted.note(log._stored())
        return result

    monkeypatch.setattr(NotedHead, "read", read_then_publish)
    monkeypatch.setattr(NotedHead, "note", lambda _head, _tree: None)
    assert log.check() == 1


ROOT = Head.of(tree(1)).root.hex()
BAD_FILES = [
    b"", b"{", b"\xff", b"[]", b"null", b"1", b"[" * 5000, b"{}", b'{"size":1}', f'{{"root":"{ROOT}"}}'.encode(),
    f'{{"root":"{ROOT}","size":1'.encode(), f'{{"root":"{ROOT}","size":1}}\n'.encode(),
    *(f'{{"root":"{ROOT}","size":{size}}}'.encode()
      for size in ("-1", "1.0", "1e3", "true", "null", '"1"', "NaN", "9007199254740992", "9" * 5000)),
    *(f'{{"root":{root},"size":1}}'.encode()
      for root in ('""', '"zz"', "1", "null", f'"{ROOT[2:]}"', f'"{ROOT}00"', f'"{ROOT.upper()}"', f'" {ROOT}"')),
    f'{{"log":1,"root":"{ROOT}","size":1}}'.encode(), f'{{"root":"{ROOT}","size":1,"size":2}}'.encode(),
]  # fmt: skip


@pytest.mark.parametrize("content", BAD_FILES)
def test_a_damaged_file_stops_the_start_and_names_itself(place: Place, content: bytes) -> None:
    path = place.services.log.noted.path
    path.write_bytes(content)
    path.chmod(0o600)
    assert code_and_field(InvalidInput, place.services.check_start) == ("key_file", str(path))
    assert "delete it" in refusal(InvalidInput, place.services.log.check).detail
    place.surveys(1)
    place.services.log.checkpoint()  # a running server goes on, and leaves the file as it is
    assert path.read_bytes() == content
    assert place.services.log.accept() is None
    place.services.check_start()


def test_a_file_that_others_can_read_is_refused_like_a_key(place: Place) -> None:
    place.surveys(1)
    place.services.log.note()
    place.services.log.noted.path.chmod(0o644)
    assert "chmod 600" in refusal(InvalidInput, place.services.check_start).detail


@pytest.mark.parametrize(
    ("stored", "lost"), [(tree(0), True), (tree(2), True), (tree(5, b"x"), True), (tree(5), False)]
)
def test_accepting_notes_any_log_and_says_what_is_lost(
    tmp_path: Path, stored: Tree, lost: bool
) -> None:
    head = NotedHead(tmp_path)
    head.note(tree(3))
    sentence = head.accept(stored)
    assert head.read() == Head.of(stored)
    assert (sentence is not None) == lost
    if sentence is not None:
        assert sentence.startswith("3 entries of the log were noted")
        assert f"(it has {stored.size})" in sentence
    assert head.accept(stored) is None


def test_accepting_without_a_key_folder_writes_nothing(tmp_path: Path) -> None:
    assert NotedHead(tmp_path / "keys").accept(tree(1)) is None
    assert list(tmp_path.iterdir()) == []


def test_new_keys_have_no_noted_head(place: Place) -> None:
    place.surveys(1)
    place.services.log.note()
    made = place.services.keys.init(force=True)
    assert place.services.log.noted.read() is None
    assert made.set_aside is not None
    assert (made.set_aside / NOTED_HEAD).is_file()
    place.at(NOW).services.check_start()
    assert noted(place) == 1


def test_the_files_belong_to_the_owner_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator may publish as root; the server, as another user, must read what root wrote."""
    given: list[tuple[str, int, int]] = []
    monkeypatch.setattr("os.chown", lambda path, *owner: given.append((Path(path).name, *owner)))
    NotedHead(tmp_path).note(tree(2))
    owner = tmp_path.stat()
    assert {name for name, *_ in given} == {NOTED_HEAD, ".log-head.lock"}
    assert {(user, group) for _, user, group in given} == {(owner.st_uid, owner.st_gid)}


def test_a_file_of_another_user_is_named_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    NotedHead(tmp_path).note(tree(2))

    def forbidden(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "open", forbidden)
    refused = refusal(InvalidInput, NotedHead(tmp_path).read)
    assert refused.code == "key_file"
    assert "run chown for the server's user" in refused.detail
