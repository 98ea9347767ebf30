# SPDX-License-Identifier: Apache-2.0
"""Log service: every entry and size, on both databases, and refusals."""

import hashlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from frankly_protocol.errors import InvalidInput, LogError
from frankly_protocol.trust import (
    LogProof,
    SignedCheckpoint,
    Tree,
    cosign,
    document_leaf,
    require_consistency,
)
from frankly_protocol.trust.notes import hash_lines
from frankly_server.store import Database
from frankly_server.store.log import log_entries

from tests.frankly_protocol.samples import NOW, STRANGER, ldp_block, survey
from tests.frankly_server.log.sites import Place, watcher
from tests.frankly_server.samples import body, release


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Iterator[Place]:
    place = Place.make(tmp_path, database_url)
    yield place
    place.services.close()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Place]:
    place = Place.make(tmp_path)
    yield place
    place.services.close()


def test_every_entry_is_proved_in_a_watched_head(place: Place, tmp_path: Path) -> None:
    (key,) = place.name("w.example")
    digests = place.surveys(7)
    watcher("w.example", key, tmp_path).visit(place)
    role = place.services.keys.trusted().log
    assert role is not None
    heads = {
        LogProof.from_bytes(place.services.log.proof(digest)).require(digest, role, NOW)
        for digest in digests
    }
    (head,) = heads
    assert head == SignedCheckpoint.from_bytes(place.services.log.checkpoint()).checkpoint
    assert (head.size, head.root) == (7, Tree([document_leaf(digest) for digest in digests]).root())
    assert [entry.document for entry in place.services.log.entries(0)[1]] == digests
    assert [entry.position for entry in place.services.log.entries(5)[1]] == [5, 6]


def test_a_proof_stays_with_the_largest_watched_head(small: Place, tmp_path: Path) -> None:
    (key,) = small.name("w.example")
    (first,) = small.surveys(1)
    witness = watcher("w.example", key, tmp_path)
    witness.visit(small)
    (second,) = small.surveys(1)
    assert LogProof.from_bytes(small.services.log.proof(first)).signed.checkpoint.size == 1
    unwatched = LogProof.from_bytes(small.services.log.proof(second))
    role = small.services.keys.trusted().log
    assert role is not None
    with pytest.raises(LogError, match="0 of the 1 witnesses"):
        unwatched.require(second, role, NOW)
    witness.visit(small)
    assert LogProof.from_bytes(small.services.log.proof(first)).signed.checkpoint.size == 2


def test_consistency_and_leaves_for_every_pair_of_sizes(small: Place) -> None:
    tree = Tree([document_leaf(digest) for digest in small.surveys(9)])
    for new in range(10):
        assert small.services.log.leaves(new) == b"".join(tree.leaves(new))
        for old in range(new + 1):
            proof = hash_lines(small.services.log.consistency(old, new).decode().splitlines())
            require_consistency(old, tree.root(old), new, tree.root(new), proof)


BAD_SIZES = [
    "consistency?old=3&new=2",
    "consistency?old=0&new=4",
    "leaves?size=4",
    "leaves?size=9007199254740992",
]
BAD_QUERIES = [
    ("log/consistency?old=1", 422, "field_missing"), ("log/consistency?old=01&new=2", 422, "field_type"),
    ("log/leaves", 422, "field_missing"), ("log/leaves?size=-1", 422, "field_type"),
    ("log/leaves?size=٣", 422, "field_type"),
    ("log/entries?start=x", 422, "field_type"), ("log/proof/x", 422, "field_type"),
    ("log/proof/sha256:" + "0" * 64, 404, "log_unknown"), ("keys?version=0", 404, "not_found"),
    ("keys?version=2", 404, "not_found"), ("keys?version=x", 422, "field_type"),
    ("keys/chain?x=1", 422, "field_unknown"),
    ("surveys/x/audit", 404, "survey_unknown"), ("surveys/" + "f" * 32 + "/audit", 404, "survey_unknown"),
    *((f"log/{query}", 404, "log_unknown") for query in BAD_SIZES),
]  # fmt: skip


def test_missing_entries_are_problems_with_codes(small: Place) -> None:
    small.surveys(3)
    http = small.http
    for path, status, code in BAD_QUERIES:
        answer = http.get(f"/v1/{path}")
        assert (path, answer.status_code, answer.get_json().get("code")) == (path, status, code)


def test_only_valid_signatures_of_named_witnesses_on_our_heads_are_stored(small: Place) -> None:
    (key,) = small.name("w.example")
    small.surveys(2)
    head = SignedCheckpoint.from_bytes(small.services.log.checkpoint()).checkpoint
    valid_note = cosign(head, "w.example", key, NOW)

    def note(*lines: object, checkpoint: object = head) -> bytes:
        return SignedCheckpoint(checkpoint, lines).to_bytes()  # type: ignore[arg-type]

    from dataclasses import replace

    other = replace(head, root=hashlib.sha256(b"other").digest())
    bigger = replace(head, size=3)
    refused = [
        b"", b"nonsense", note(cosign(head, "w.example", STRANGER, NOW)), note(cosign(head, "x.example", key, NOW)),
        note(replace(valid_note, value=valid_note.value[:-1] + bytes([valid_note.value[-1] ^ 1]))),
        note(cosign(other, "w.example", key, NOW), checkpoint=other),
        note(cosign(bigger, "w.example", key, NOW), checkpoint=bigger),
        note(cosign(replace(head, origin="other"), "w.example", key, NOW), checkpoint=replace(head, origin="other")),
        note(cosign(head, "w.example", key, NOW + timedelta(minutes=11))),
        note(replace(valid_note, value=valid_note.value[:7])),
    ]  # fmt: skip
    for data in refused:
        with pytest.raises(InvalidInput) as caught:
            small.services.log.add_cosignature(data)
        assert caught.value.code == "cosignature_invalid"
    with small.services.database.reading("test") as tx:
        assert tx.log.cosignatures(2) == {}
    assert (
        small.services.log.add_cosignature(
            note(valid_note, cosign(head, "w.example", key, NOW - timedelta(days=1)))
        )
        == 1
    )
    with small.services.database.reading("test") as tx:
        assert tx.log.cosignatures(2) == {key.public.key_id: valid_note.line()}


def test_the_audit_counts_every_released_report_once_per_document(place: Place) -> None:
    first = survey(ldp_block(), survey_id="ab" * 16)
    place.publish(first)
    second = survey(ldp_block(epsilon="0.9"), version=2, prev=first.digest, survey_id="ab" * 16)
    place.publish(second)
    for document, count in ((first, 3), (second, 5)):
        for _ in range(count):
            place.services.intake.accept(document.survey, body(document))
    assert [d.n for d in place.services.log.audit("ab" * 16)] == [0, 0]
    release(place.services.database, first, second)
    audit = place.services.log.audit("ab" * 16)
    assert [(d.digest, d.version, d.position, d.n) for d in audit] == [
        (first.digest, 1, 0, 3),
        (second.digest, 2, 1, 5),
    ]


def test_a_rotated_log_key_signs_the_same_tree(small: Place, tmp_path: Path) -> None:
    from frankly_protocol.clock import FixedClock
    from frankly_server.keys import Rotation, RotationChange

    (key,) = small.name("w.example")
    (digest,) = small.surveys(1)
    witness = watcher("w.example", key, tmp_path)
    witness.visit(small)
    before = SignedCheckpoint.from_bytes(small.services.log.checkpoint())
    Rotation(small.services.keys, FixedClock(NOW)).propose(RotationChange(log=True))
    after = SignedCheckpoint.from_bytes(small.services.log.checkpoint())
    assert before.checkpoint == after.checkpoint
    assert before.signatures[0] != after.signatures[0]
    role = small.services.keys.trusted().log
    assert role is not None
    LogProof.from_bytes(small.services.log.proof(digest)).require(digest, role, NOW)
    assert witness.visit(small).size == 1


def test_a_witness_that_signs_again_replaces_only_its_own_line(sqlite: Database) -> None:
    with sqlite.transaction("cosign") as tx:
        for size, key, line in ((1, "a", "1"), (1, "b", "2"), (2, "a", "3"), (1, "a", "4")):
            tx.log.cosign(size, key * 64, line)
        assert tx.log.cosignatures(1) == {"a" * 64: "4", "b" * 64: "2"}
        assert tx.log.cosignatures(2) == {"a" * 64: "3"}
        assert tx.log.cosigned_sizes() == [2, 1]


def test_a_log_whose_database_was_replaced_is_read_again(small: Place) -> None:
    """A restore while the server runs: nothing of the former log is shown."""
    digests = small.surveys(3)
    for stored in (digests, digests[:2], digests[1:] + digests[:1], [], digests):
        with small.services.database.transaction("restore") as tx:
            tx._connection.execute(log_entries.delete())
            for position, digest in enumerate(stored):
                tx._connection.execute(
                    log_entries.insert().values(position=position, document=digest)
                )
        expected = [document_leaf(digest) for digest in stored]
        assert small.services.log.leaves(len(stored)) == b"".join(expected)
        head = SignedCheckpoint.from_bytes(small.services.log.checkpoint()).checkpoint
        assert (head.size, head.root) == (len(stored), Tree(expected).root())
