# SPDX-License-Identifier: Apache-2.0
"""Proof texts: logged and cosigned documents pass, altered proofs fail, and refusals are typed."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from frankly_protocol.errors import DocumentRejected, FranklyError, LogError
from frankly_protocol.trust import (
    Checkpoint,
    LogProof,
    LogRole,
    NamedKey,
    SignedCheckpoint,
    cosign,
    sign_checkpoint,
)
from frankly_protocol.trust.notes import WITNESS
from frankly_protocol.trust.proof import CHECKPOINT_AGE, MAX_PROOF_BYTES
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import NOW, ROOT, STRANGER, keys_document
from tests.frankly_protocol.trust.samples import LOG_KEY, ORIGIN, WITNESS_KEYS, FakeLog, role
from tests.refusals import refusal

DIGESTS = ["sha256:" + hashlib.sha256(bytes([i])).hexdigest() for i in range(11)]
LOG = FakeLog(DIGESTS)
GOOD = LOG.proof(DIGESTS[4])
TEXT = GOOD.to_bytes()


def test_every_logged_document_has_a_proof_that_survives_its_bytes() -> None:
    for digest in DIGESTS:
        proof = LOG.proof(digest)
        assert LogProof.from_bytes(proof.to_bytes()) == proof
        assert proof.require(digest, role(), NOW).size == 11


def test_the_texts_are_c2sps_line_by_line() -> None:
    lines = TEXT.decode().split("\n")
    assert lines[:2] == ["c2sp.org/tlog-proof@v1", "index 4"]
    assert lines[6:9] == ["", ORIGIN, "11"]
    assert lines[10] == ""
    assert [line.split(" ")[:2] for line in lines[11:15]] == [
        ["—", name] for name in (ORIGIN, *WITNESS_KEYS)
    ]
    assert lines[15:] == [""]


def test_signatures_are_over_the_bytes_that_the_specifications_name() -> None:
    """The test verifies with `cryptography`: the log signs the text, and a witness signs two header
    lines and the text."""
    head = LOG.head()
    text = head.checkpoint.text()
    log, witness = head.signatures[0], head.signatures[1]
    assert log.hint == hashlib.sha256(ORIGIN.encode() + b"\n\x01" + LOG_KEY.public.raw).digest()[:4]
    Ed25519PublicKey.from_public_bytes(LOG_KEY.public.raw).verify(log.value, text)
    key = WITNESS_KEYS[witness.name].public.raw
    assert witness.hint == hashlib.sha256(witness.name.encode() + b"\n\x04" + key).digest()[:4]
    seconds = int.from_bytes(witness.value[:8], "big")
    assert seconds == int(NOW.timestamp())
    message = b"cosignature/v1\ntime %d\n" % seconds + text
    Ed25519PublicKey.from_public_bytes(key).verify(witness.value[8:], message)


def accepted(data: bytes, digest: str = DIGESTS[4]) -> bool:
    try:
        LogProof.from_bytes(data).require(digest, role(threshold=3), NOW)
    except DocumentRejected:
        return False
    return True


def test_no_byte_of_a_proof_can_be_changed(full: bool) -> None:
    """The test flips one bit of every byte, removes it or doubles it; all three witnesses are required."""
    assert accepted(TEXT)
    altered = [
        TEXT[:i] + bytes([TEXT[i] ^ bit]) + TEXT[i + 1 :]
        for i in range(len(TEXT))
        for bit in ((1, 4, 32) if full else (1,))
    ]
    altered += [TEXT[:i] + TEXT[i + 1 :] for i in range(len(TEXT))]
    altered += [TEXT[: i + 1] + TEXT[i:] for i in range(len(TEXT))]
    altered += [TEXT[:i] for i in range(len(TEXT))] + [TEXT + b"\n", TEXT + b" ", b"\n" + TEXT]
    through = [data for data in altered if data != TEXT and accepted(data)]
    assert (through, len(altered) > 2000) == ([], True)


def test_a_proof_of_one_document_is_refused_for_another() -> None:
    assert not any(accepted(TEXT, digest) for digest in DIGESTS if digest != DIGESTS[4])
    assert not accepted(TEXT, "sha256:" + "0" * 64)


def altered(**changes: object) -> LogProof:
    return replace(GOOD, **changes)  # type: ignore[arg-type]


def forged() -> LogProof:
    """Return two genuine cosignatures, and one in the third witness's name by a stranger's key."""
    head = LOG.head(witnesses=("w0.example", "w1.example"))
    extra = replace(cosign(head.checkpoint, "w2.example", STRANGER, NOW), hint=WITNESS_KEY_HINT)
    return altered(signed=replace(head, signatures=(*head.signatures, extra)))


WITNESS_KEY_HINT = role().witnesses[2].note_key.hint
TWICE = LOG.head(witnesses=("w0.example", "w0.example"))
FUTURE, PAST = (
    FakeLog(DIGESTS, signed_at=NOW + timedelta(minutes=11)),
    FakeLog(DIGESTS, signed_at=NOW - CHECKPOINT_AGE * 2),
)
CASES: dict[str, tuple[Callable[[], LogProof], LogRole, str]] = {
    "one witness of two": (lambda: LOG.proof(DIGESTS[4], ["w0.example"]), role(), "witnesses"),
    "no witness": (lambda: LOG.proof(DIGESTS[4], []), role(), "witnesses"),
    "one witness twice": (lambda: altered(signed=TWICE), role(), "witnesses"),
    "a witness from the future": (lambda: FUTURE.proof(DIGESTS[4]), role(), "witnesses"),
    "witnesses that saw it long ago": (lambda: PAST.proof(DIGESTS[4]), role(), "witnesses"),
    "a false cosignature invalidates the note": (forged, role(), "signature"),
    "another log's key": (lambda: FakeLog(DIGESTS, key=STRANGER).proof(DIGESTS[4]), role(), "signature"),
    "another log": (lambda: FakeLog(DIGESTS, origin="other.example").proof(DIGESTS[4]), role(), "origin"),
    "a rotated log key": (lambda: GOOD, role(log=STRANGER), "signature"),
    "not signed by the log": (
        lambda: altered(signed=SignedCheckpoint(GOOD.signed.checkpoint, GOOD.signed.signatures[1:])),
        role(),
        "signature",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_proofs_that_no_device_may_rely_on(name: str) -> None:
    make, keys, field = CASES[name]
    assert refusal(LogError, make().require, DIGESTS[4], keys, NOW).field == field


def test_a_witness_that_the_role_does_not_name_is_ignored() -> None:
    head = LOG.head()
    stranger = cosign(head.checkpoint, "stranger.example", STRANGER, NOW)
    altered(signed=replace(head, signatures=(*head.signatures, stranger))).require(
        DIGESTS[4], role(), NOW
    )


def test_the_newest_cosignature_of_a_witness_counts() -> None:
    old = [
        cosign(GOOD.signed.checkpoint, name, key, NOW - CHECKPOINT_AGE * 2)
        for name, key in WITNESS_KEYS.items()
    ]
    signed = replace(GOOD.signed, signatures=(*old, *GOOD.signed.signatures))
    altered(signed=signed).require(DIGESTS[4], role(3), NOW)


BAD_TEXTS: list[bytes] = [
    b"", b"\n\n", b"c2sp.org/tlog-proof@v1\n", TEXT.replace(b"v1\n", b"v2\n", 1), TEXT.replace(b"index 4", b"index 04"),
    TEXT.replace(b"index 4", b"extra AAAA\nindex 4"), TEXT.replace(b"index 4", b"index -4"),
    TEXT.replace(b"index 4", b"index 9999999999999999"), TEXT.replace(b"\n11\n", b"\n011\n"),
    TEXT.replace(b"\n", b"\r\n"),
    TEXT.replace(b"\n11\n", b"\n11\nextension\n"), b"\xff" + TEXT, TEXT + b"\xff", TEXT * 400,
    TEXT.replace(b"\xe2", b"\xe3"),
    TEXT.replace("— ".encode(), b"- "), TEXT + b"\xe2\x80\x94 x AAAA\n",
]  # fmt: skip


@pytest.mark.parametrize("data", BAD_TEXTS, ids=range(len(BAD_TEXTS)))
def test_texts_that_are_no_proof_are_refused_by_type(data: bytes) -> None:
    with pytest.raises(LogError):
        LogProof.from_bytes(data).require(DIGESTS[4], role(), NOW)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | st.builds(lambda a, b: TEXT[:a] + b + TEXT[a:],
       st.integers(0, len(TEXT)), st.binary(min_size=1, max_size=4)))  # fmt: skip
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    try:
        LogProof.from_bytes(data).require(DIGESTS[4], role(3), NOW)
    except FranklyError as error:
        assert isinstance(error, LogError)
    else:
        raise AssertionError(data)


BAD_ROLES: list[Callable[[], object]] = [
    lambda: role(threshold=0), lambda: role(threshold=4), lambda: role(threshold=1, witnesses=0),
    lambda: LogRole(role().log, (NamedKey("w.example", LOG_KEY.public, WITNESS),), 1),
    lambda: LogRole(role().log, (role().witnesses[0], replace(role().witnesses[0], name="again.example")), 1),
    lambda: LogRole(role().log, (role().witnesses[0], replace(role().witnesses[1], name="w0.example")), 1),
    lambda: replace(keys_document(), log=role(log=ROOT)),
]  # fmt: skip


@pytest.mark.parametrize("make", BAD_ROLES, ids=range(len(BAD_ROLES)))
def test_a_log_role_needs_distinct_keys_and_a_threshold_in_reach(
    make: Callable[[], object],
) -> None:
    with pytest.raises(DocumentRejected):
        make()


def test_a_log_without_witnesses_can_be_audited_but_proves_no_document() -> None:
    alone = role(threshold=0, witnesses=0)
    GOOD.signed.require_log(alone.log.note_key)
    with pytest.raises(LogError, match="no witness"):
        GOOD.require(DIGESTS[4], alone, NOW)


def test_a_checkpoint_of_an_empty_log_survives_its_bytes() -> None:
    empty = Checkpoint(ORIGIN, 0, hashlib.sha256(b"").digest())
    signed = SignedCheckpoint(empty, (sign_checkpoint(empty, LOG_KEY),))
    assert SignedCheckpoint.from_bytes(signed.to_bytes()) == signed


def test_a_text_that_is_too_long_is_refused_before_it_is_read() -> None:
    for data, field in ((b"x" * MAX_PROOF_BYTES, "index"), (b"x" * (MAX_PROOF_BYTES + 1), "proof")):
        error = refusal(LogError, LogProof.from_bytes, data)
        assert f"at most {MAX_PROOF_BYTES} bytes" in error.detail or field != "proof"
        assert ("bytes" in error.detail) is (len(data) > MAX_PROOF_BYTES)
        assert error.field == "proof"


@pytest.mark.parametrize("root", ["", "AAAA", "=" * 44, "A" * 43 + "é", "A" * 44])
def test_an_invalid_root_is_refused_by_field(root: str) -> None:
    error = refusal(LogError, Checkpoint.from_text, f"{ORIGIN}\n3\n{root}\n".encode())
    assert error.field == "root"
