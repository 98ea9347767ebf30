# SPDX-License-Identifier: Apache-2.0
"""Keys documents: their fields, and the versions that may follow each other."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.clock import format_time
from frankly_protocol.envelope import KEYS_TYPE, Envelope, PublicKey, SigningKey
from frankly_protocol.errors import ClockError, DocumentRejected, FranklyError, KeyChainError
from frankly_protocol.trust import KeysDocument, Role, SignedKeys, accept_keys

from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    ROOT,
    STRANGER,
    keys_document,
    sealed_keys,
)
from tests.frankly_protocol.trust import edwards
from tests.frankly_protocol.trust.samples import role

FIRST = sealed_keys(keys_document())


def test_a_keys_document_survives_its_bytes() -> None:
    assert KeysDocument.parse(keys_document().payload()) == keys_document()
    assert accept_keys(FIRST, NOW) == SignedKeys.read(FIRST).keys == keys_document()


def signed(version: int, root: SigningKey, *signers: SigningKey) -> bytes:
    return sealed_keys(keys_document(version, root=root), *signers)


CHAINS: list[tuple[bytes, bytes | None, type[FranklyError] | None]] = [
    (signed(2, ROOT, ROOT), FIRST, None),
    (signed(2, STRANGER, ROOT, STRANGER), FIRST, None),
    (signed(2, STRANGER, STRANGER), FIRST, KeyChainError),
    (signed(2, STRANGER, ROOT), FIRST, DocumentRejected),
    (signed(3, ROOT, ROOT), FIRST, KeyChainError),
    (signed(1, STRANGER, STRANGER), FIRST, KeyChainError),
    (FIRST, signed(2, ROOT, ROOT), KeyChainError),
    (FIRST, FIRST, KeyChainError),
    (sealed_keys(keys_document(publisher=STRANGER)), FIRST, KeyChainError),
    (signed(1, ROOT, STRANGER), None, DocumentRejected),
    (signed(1, ROOT, PUBLISHER), None, DocumentRejected),
    (b"{}", None, DocumentRejected),
]


def read_after(data: bytes, previous: bytes | None) -> KeysDocument:
    """Read a version and check that it follows the previous one."""
    version = SignedKeys.read(data)
    if previous is not None:
        version.require_follows(SignedKeys.read(previous).keys)
    return version.keys


@pytest.mark.parametrize(("data", "previous", "error"), CHAINS, ids=range(len(CHAINS)))
def test_only_a_signed_successor_follows(data: bytes, previous: bytes | None, error: Any) -> None:
    if error is None:
        assert read_after(data, previous).version == 2
    else:
        with pytest.raises(error):
            read_after(data, previous)


@pytest.mark.parametrize("days", [-11, 301])
def test_keys_outside_their_window_are_refused_with_both_times(days: int) -> None:
    with pytest.raises(ClockError) as caught:
        accept_keys(FIRST, NOW + timedelta(days=days))
    assert "clock says" in caught.value.detail


@pytest.mark.parametrize("year", ["9999", "0001"])
def test_a_date_far_out_of_range_is_refused_without_overflow(year: str) -> None:
    payload = keys_document().payload().replace(b'"expires":"2027', f'"expires":"{year}'.encode())
    with pytest.raises(DocumentRejected) as caught:
        accept_keys(Envelope.seal(KEYS_TYPE, payload, [ROOT]).to_bytes(), NOW)
    assert caught.value.field == "expires"


@pytest.mark.parametrize("threshold", [0, 2])
def test_a_threshold_must_be_reachable(threshold: int) -> None:
    with pytest.raises(DocumentRejected):
        Role((PUBLISHER.public,), threshold)


def test_two_entries_of_one_key_do_not_make_two_signers() -> None:
    with pytest.raises(DocumentRejected):
        Role((PUBLISHER.public, PUBLISHER.public), 2)


def read_with(edit: Callable[[dict[str, Any]], None]) -> KeysDocument:
    """Edit the sample keys with a log, and read them again."""
    body = json.loads(replace(keys_document(), log=role()).payload())
    edit(body)
    return KeysDocument.parse(canonical.dumps(body))


PLACES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "root.keys[0].public": lambda body: body["root"]["keys"][0],
    "publisher.keys[0].public": lambda body: body["publisher"]["keys"][0],
    "log.public": lambda body: body["log"],
    "log.witnesses[2].public": lambda body: body["log"]["witnesses"][2],
}
UNSOUND = sorted({*edwards.small_order_encodings(), *edwards.not_canonical()})


@pytest.mark.slow
def test_the_curve_of_the_test_equals_that_of_ed25519() -> None:
    base = (
        next(x for x in edwards.roots(4 * pow(5, -1, edwards.P) % edwards.P) if x % 2 == 0),
        4 * pow(5, -1, edwards.P),
    )
    scalar = hashlib.sha512(bytes(32)).digest()[:32]
    clamped = int.from_bytes(scalar, "little") & (2**254 - 8) | 2**254
    x, y = edwards.times(clamped, (base[0], base[1] % edwards.P))
    assert (y | (x % 2) << 255).to_bytes(32, "little") == SigningKey.from_raw(bytes(32)).public.raw
    points = edwards.small_order()
    assert len(points) == 8
    assert all(edwards.times(8, point) == edwards.IDENTITY for point in points)
    assert len(edwards.small_order_encodings()) == 14


@pytest.mark.parametrize("field", PLACES)
@pytest.mark.parametrize("raw", UNSOUND, ids=bytes.hex)
def test_a_keys_document_refuses_keys_whose_signatures_can_be_forged(
    raw: bytes, field: str
) -> None:
    with pytest.raises(DocumentRejected) as caught:
        read_with(lambda body: PLACES[field](body).update(public=raw.hex()))
    assert (caught.value.code, caught.value.field) == ("document_schema", field)


def test_a_signature_for_a_key_of_small_order_needs_no_private_key() -> None:
    """The test shows why such keys are refused: it makes a valid signature without a private key."""
    neutral, forged = PublicKey(edwards.encodings(1, 0)[0]), edwards.encodings(1, 0)[0] + bytes(32)
    assert all(neutral.verifies(forged, message) for message in (b"", b"a", b"any survey"))


@pytest.mark.parametrize(
    ("days", "seconds", "accepted"), [(400, 0, True), (400, 1, False), (730, 0, False)]
)
def test_keys_last_400_days_at_most(days: int, seconds: int, accepted: bool) -> None:
    expires = keys_document().issued + timedelta(days=days, seconds=seconds)
    if accepted:
        assert read_with(lambda body: body.update(expires=format_time(expires))).expires == expires
        return
    with pytest.raises(DocumentRejected) as caught:
        read_with(lambda body: body.update(expires=format_time(expires)))
    assert (caught.value.code, caught.value.field) == ("document_schema", "expires")
    assert "400 days" in caught.value.detail
