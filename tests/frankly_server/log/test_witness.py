# SPDX-License-Identifier: Apache-2.0
"""Witnesses, which co-sign only consistent extensions of the log that they have seen."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.envelope import SigningKey
from frankly_protocol.errors import (
    DocumentRejected,
    Equivocation,
    FranklyError,
    InvalidInput,
    RollbackDetected,
)
from frankly_protocol.trust import SignedCheckpoint
from frankly_server.keys import Rotation, RotationChange
from frankly_server.log.site import HttpSite
from frankly_server.services import Services
from frankly_server.settings import Settings
from pydantic import SecretStr

from tests.frankly_protocol.samples import NOW, ldp_block, survey
from tests.frankly_server.log.sites import Place, watcher
from tests.migrated import migrated
from tests.refusals import refusal


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place.make(tmp_path)
    yield place
    place.services.close()


@pytest.fixture
def key(place: Place) -> SigningKey:
    (note_path,) = place.name("w.example")
    return note_path


def head(place: Place) -> SignedCheckpoint:
    return SignedCheckpoint.from_bytes(place.services.log.checkpoint())


def test_a_growing_log_is_co_signed_again_and_again(
    place: Place, key: SigningKey, tmp_path: Path
) -> None:
    witness = watcher("w.example", key, tmp_path)
    sizes = []
    for new_surveys in (0, 1, 1, 3, 0, 8):
        place.surveys(new_surveys)
        visit = witness.visit(place)
        sizes.append((visit.size_before, visit.size, visit.named))
        assert len(head(place).signatures) == 2
    assert sizes == [
        (None, 0, True),
        (0, 1, True),
        (1, 2, True),
        (2, 5, True),
        (5, 5, True),
        (5, 13, True),
    ]


def forked(place: Place, folder: Path, entries: int) -> Place:
    """Return a server with the same keys and another log."""
    settings = Settings(
        home=place.settings.home, database_url=SecretStr(f"sqlite:///{folder / 'fork.db'}")
    )
    database = migrated(settings.store_url())
    fork = Place(Services(settings, database, FixedClock(NOW)), settings)
    for i in range(entries):
        fork.publish(survey(ldp_block(), survey_id=f"{i + 1000:032x}"))
    return fork


@pytest.mark.parametrize("entries", [3, 4, 9])
def test_a_fork_is_refused_and_both_heads_are_kept(
    place: Place, key: SigningKey, tmp_path: Path, entries: int
) -> None:
    witness = watcher("w.example", key, tmp_path)
    place.surveys(3)
    witness.visit(place)
    fork = forked(place, tmp_path, entries)
    for _ in range(2):
        with pytest.raises(Equivocation):
            witness.visit(fork)
    fork_notes = {path.read_bytes() for path in (tmp_path / "w.example").glob("fork-*.note")}
    assert {SignedCheckpoint.from_bytes(note).checkpoint for note in fork_notes} == {
        head(place).checkpoint,
        head(fork).checkpoint,
    }
    assert len(head(fork).signatures) == 1
    assert witness.visit(place).size == 3


def test_a_stale_log_is_refused(place: Place, key: SigningKey, tmp_path: Path) -> None:
    witness = watcher("w.example", key, tmp_path)
    place.surveys(1)
    old = place.services.log.checkpoint()
    place.surveys(1)
    witness.visit(place)
    place.bend = lambda path, body: old if path == "/v1/log/checkpoint" else body
    with pytest.raises(RollbackDetected):
        witness.visit(place)


def test_changed_responses_raise_typed_errors_and_nothing_is_signed(
    place: Place, key: SigningKey, tmp_path: Path
) -> None:
    witness = watcher("w.example", key, tmp_path)
    place.surveys(3)
    witness.visit(place)
    place.surveys(2)
    for target in ("/v1/keys/chain", "/v1/log/checkpoint", "/v1/log/consistency"):
        for bend in (
            lambda b: b"",
            lambda b: b[:-2],
            lambda b: b"\xff" + b,
            lambda b: bytes([b[0] ^ 1]) + b[1:],
        ):
            place.bend = lambda path, body, t=target, f=bend: (
                f(body) if path.partition("?")[0] == t else body
            )
            with pytest.raises(FranklyError):
                witness.visit(place)
    place.bend = lambda _path, body: body
    assert len(head(place).signatures) == 1
    assert witness.visit(place).size_before == 3


def test_keys_that_do_not_follow_are_refused(place: Place, key: SigningKey, tmp_path: Path) -> None:
    witness = watcher("w.example", key, tmp_path)
    witness.visit(place)
    for _ in range(3):
        Rotation(place.services.keys, FixedClock(NOW)).propose(RotationChange(publishers=1))
    assert witness.visit(place).size == 0  # the witness follows the versions that it missed
    first = place.services.keys.document()
    place.services.keys.init(force=True)
    # A new root means a new log, which the witness watches from the beginning in addition to the
    # old log.
    assert witness.visit(place).size_before is None
    with pytest.raises(DocumentRejected):
        watcher("x.example", key, tmp_path).visit(place, shipped=first)


def test_an_unnamed_witness_stores_the_head_and_reports_that_it_is_unnamed(
    place: Place, tmp_path: Path
) -> None:
    place.surveys(2)
    visit = watcher("x.example", SigningKey.generate(), tmp_path).visit(place)
    assert (visit.size, visit.named) == (2, False)
    assert len(head(place).signatures) == 1


def test_a_damaged_store_is_not_treated_as_a_first_visit(
    place: Place, key: SigningKey, tmp_path: Path
) -> None:
    witness = watcher("w.example", key, tmp_path)
    witness.visit(place)
    (file,) = (tmp_path / "w.example").glob("log-*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    for data in (b"", b"{}", b"[]", b'{"keys":"*","note":""}'):
        file.write_bytes(data)
        assert refusal(InvalidInput, witness.visit, place).code == "key_file"


def test_the_head_is_on_disk_before_anything_is_signed(
    place: Place, key: SigningKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from frankly_server.log import witness as module

    def full(*_arguments: object, **_options: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "written_whole", full)
    with pytest.raises(OSError, match="space"):
        watcher("w.example", key, tmp_path).visit(place)
    assert len(head(place).signatures) == 1


def test_two_visits_at_once_do_not_go_back(place: Place, key: SigningKey, tmp_path: Path) -> None:
    witness = watcher("w.example", key, tmp_path)
    for _ in range(4):
        place.surveys(1)
        with ThreadPoolExecutor(4) as pool:
            assert {visit.size for visit in pool.map(lambda _: witness.visit(place), range(4))} == {
                head(place).checkpoint.size
            }


@pytest.mark.parametrize("url", ["http://example.org", "ftp://example.org", "example.org", "//x"])
def test_only_https_is_visited(url: str) -> None:
    with pytest.raises(InvalidInput):
        HttpSite(url)
