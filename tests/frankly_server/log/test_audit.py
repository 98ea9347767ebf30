# SPDX-License-Identifier: Apache-2.0
"""Audit of a log: it passes an honest server and names the faults of a dishonest server by kind and
digest."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import DocumentRejected, FranklyError, LogError
from frankly_protocol.trust import SignedCheckpoint
from frankly_server.keys import Rotation, RotationChange
from frankly_server.log.audit import Audit, audit

from tests.frankly_protocol.samples import NOW, STRANGER, ldp_block, survey
from tests.frankly_server.log.sites import Place, watcher
from tests.frankly_server.samples import body, release

CLOCK = FixedClock(NOW)
LOGGED = "cd" * 16


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A separate server for one test."""
    yield from honest(tmp_path)


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """An honest server, which the tests must not modify."""
    yield from honest(tmp_path_factory.mktemp("still"))


def honest(tmp_path: Path) -> Iterator[Place]:
    """Three surveys, one of them in two versions, some reports, one witness."""
    place = Place.make(tmp_path)
    (key,) = place.name("w.example")
    place.surveys(2)
    first = survey(ldp_block(), survey_id=LOGGED)
    place.second(LOGGED, place.publish(first))
    for _ in range(3):
        place.services.intake.accept(LOGGED, body(first))
    release(place.services.database, first)
    watcher("w.example", key, tmp_path).visit(place)
    yield place
    place.services.close()


def named(report: Audit) -> set[str]:
    return {finding.kind for finding in report.findings}


def test_an_honest_server_passes_and_every_count_is_shown(place: Place) -> None:
    report = audit(place, CLOCK)
    assert (report.findings, report.watched, report.size, report.keys_version) == ([], True, 4, 2)
    assert sorted(report.counts.values()) == [0, 0, 0, 3]
    assert [entry.version for entry in report.entries] == [1, 1, 1, 2]


def test_rotated_keys_need_signing_again_and_then_it_passes(place: Place) -> None:
    old = place.services.keys.publishers()[0].public.key_id
    Rotation(place.services.keys, CLOCK).propose(RotationChange(drop=frozenset({old})))
    report = audit(place, CLOCK)
    assert named(report) == {"signature"}
    assert len(report.findings) == 4
    waiting = place.services.surveys.signed_by_others()
    assert len(waiting) == 4
    place.services.surveys.sign_again(waiting)
    assert place.services.surveys.signed_by_others() == []
    again = audit(place, CLOCK)
    assert (again.findings, again.keys_version) == ([], 3)


def edited(change: Callable[[Any], None]) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        value = json.loads(data)
        change(value)
        return json.dumps(value).encode()

    return edit


def other_document(data: bytes) -> bytes:
    return Envelope.seal(
        SURVEY_TYPE, survey(ldp_block(epsilon="0.1")).payload(), [STRANGER]
    ).to_bytes()


# Name -> (path, change of the response, kinds of findings).
LIES: dict[str, tuple[str, Callable[[bytes], bytes], set[str]]] = {
    "an entry is left out": ("entries", edited(lambda v: v["entries"].pop(0)), {"log"}),
    "an entry is exchanged": ("entries", edited(lambda v: v["entries"][0].update(digest="sha256:" + "0" * 64)),
                              {"log", "document", "proof", "counts"}),
    "entries are reordered": ("entries", edited(lambda v: v["entries"].reverse()), {"entry", "log"}),
    "a version is renamed": ("entries", edited(lambda v: v["entries"][3].update(version=7)), {"document", "chain"}),
    "the list is not an object": ("entries", lambda _: b"[]", {"log"}),
    "another document is shown": ("document?digest", other_document, {"document"}),
    "a document is hidden": ("document?digest", lambda _: b"{}", {"document"}),
    "everybody is shown an unlogged document": ("document", other_document, {"document"}),
    "a proof is bent": ("proof", lambda b: b.replace(b"index 0", b"index 1"), {"proof"}),
    "reports for an unlogged document": ("audit", edited(lambda v: v["documents"].append(
        {"digest": "sha256:" + "0" * 64, "version": 9, "position": None, "n": 10})), {"counts"}),
    "a document's reports are not counted": ("audit", edited(lambda v: v["documents"].pop()), {"counts"}),
    "a negative count": ("audit", edited(lambda v: v["documents"][0].update(n=-1)), {"counts"}),
    "the chain is broken": ("keys/chain", edited(lambda v: v["chain"].reverse()), {"keys"}),
    "no chain": ("keys/chain", lambda _: b"", {"keys"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_every_fault_of_a_server_is_found(still: Place, name: str) -> None:
    target, lie, kinds = LIES[name]
    path_and_query = target.split("?")

    def bend(path: str, data: bytes) -> bytes:
        end, _, query = path.partition("?")
        hit = path_and_query[0] in end and bool(query) == (
            len(path_and_query) > 1 or path_and_query[0] == "entries"
        )
        return lie(data) if hit else data

    assert kinds <= named(audit(replace(still, bend=bend), CLOCK))


def test_a_head_signed_by_another_key_is_reported(place: Place) -> None:
    from frankly_protocol.trust import sign_checkpoint

    head = SignedCheckpoint.from_bytes(place.services.log.checkpoint()).checkpoint
    forged = SignedCheckpoint(head, (sign_checkpoint(head, STRANGER),)).to_bytes()
    place.bend = lambda path, data: forged if path == "/v1/log/checkpoint" else data
    assert "log" in named(audit(place, CLOCK))


def test_a_log_that_did_not_grow_from_an_earlier_head_is_named(place: Place) -> None:
    since = place.services.log.checkpoint()
    place.surveys(3)
    assert audit(place, CLOCK, since=since).findings == []
    note = SignedCheckpoint.from_bytes(since)
    other = replace(note, checkpoint=replace(note.checkpoint, root=b"\1" * 32)).to_bytes()
    bigger = replace(note, checkpoint=replace(note.checkpoint, size=99)).to_bytes()
    assert named(audit(place, CLOCK, since=other)) == {"log"}
    assert named(audit(place, CLOCK, since=bigger)) == {"log"}


def test_without_usable_keys_or_head_there_is_nothing_to_audit(place: Place) -> None:
    place.bend = lambda path, data: b"{}" if path == "/v1/keys" else data
    with pytest.raises(DocumentRejected):
        audit(place, CLOCK)
    place.bend = lambda path, data: b"" if path == "/v1/log/checkpoint" else data
    with pytest.raises(LogError):
        audit(place, CLOCK)
    place.bend = lambda _path, data: data
    with pytest.raises(FranklyError):
        audit(place, CLOCK, shipped=b"{}")
