# SPDX-License-Identifier: Apache-2.0
"""Key rotation: chains with rotations in any order are proven, and broken steps are refused (spec 3.2)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import permutations

import pytest
from frankly_protocol.canonical import digest
from frankly_protocol.envelope import KEYS_TYPE, Envelope, SigningKey
from frankly_protocol.errors import (
    ClockError,
    DocumentRejected,
    Equivocation,
    FranklyError,
    KeyChainError,
    RollbackDetected,
)
from frankly_protocol.trust import (
    KeysDocument,
    KnownKeys,
    LogRole,
    NamedKey,
    Proven,
    Role,
    prove_chain,
    read_chain,
    write_chain,
)
from frankly_protocol.trust.chain import MAX_CHAIN_BYTES, MAX_VERSIONS
from frankly_protocol.trust.notes import LOG, WITNESS
from hypothesis import given
from hypothesis import strategies as st

from tests.frankly_protocol.samples import NOW, keys_document
from tests.frankly_protocol.trust.samples import WITNESS_KEYS, role
from tests.refusals import refusal


def key(number: int) -> SigningKey:
    return SigningKey.from_raw(number.to_bytes(32, "big"))


@dataclass
class Drill:
    """A chain whose root role requires two of three keys, with methods that append rotations."""

    roots: list[SigningKey] = field(default_factory=lambda: [key(1), key(2), key(3)])
    publisher: SigningKey = field(default_factory=lambda: key(100))
    fresh: int = 1000
    documents: list[KeysDocument] = field(default_factory=list)
    chain: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = replace(
            keys_document(),
            root=self.role(),
            publisher=Role((self.publisher.public,), 1),
            log=role(),
        )
        self.put(first, self.roots[:2])

    def role(self) -> Role:
        return Role(tuple(k.public for k in self.roots), 2)

    def put(self, document: KeysDocument, signers: Sequence[SigningKey]) -> None:
        """Append a version with its signatures."""
        self.documents.append(document)
        self.chain.append(Envelope.seal(KEYS_TYPE, document.payload(), signers).to_bytes())

    def next(self, *signers: SigningKey, **changes: object) -> None:
        """Append the next version, signed by `signers` or by default by the first two root keys."""
        old = self.documents[-1]
        self.put(replace(old, version=old.version + 1, **changes), signers or self.roots[:2])  # type: ignore[arg-type]

    def new_key(self) -> SigningKey:
        self.fresh += 1
        return key(self.fresh)

    def rotate_publisher(self) -> None:
        self.publisher = self.new_key()
        self.next(publisher=Role((self.publisher.public,), 1))

    def rotate_root(self) -> None:
        """Replace one of three root keys; two keys of the old set and two of the new set sign."""
        old = list(self.roots)
        self.roots[0] = self.new_key()
        self.next(*old[:2], self.roots[0], root=self.role())

    def rotate_log(self) -> None:
        log = self.documents[-1].log
        assert log is not None
        self.next(log=replace(log, log=replace(log.log, public=self.new_key().public)))

    def rotate_witness(self) -> None:
        log = self.documents[-1].log
        assert log is not None
        replaced, *remaining = log.witnesses
        self.next(
            log=replace(
                log, witnesses=(*remaining, replace(replaced, public=self.new_key().public))
            )
        )

    def expire(self) -> None:
        """Append a version that has expired by NOW."""
        self.next(expires=NOW - timedelta(days=1))

    def last(self) -> None:
        """Append a version that has not expired at NOW."""
        self.next(expires=NOW + timedelta(days=300))


STEPS: dict[str, Callable[[Drill], None]] = {
    "publisher": Drill.rotate_publisher, "root": Drill.rotate_root, "log": Drill.rotate_log,
    "witness": Drill.rotate_witness, "expired": Drill.expire,
}  # fmt: skip
ORDERS = list(permutations(STEPS))


def drilled(order: Sequence[str]) -> Drill:
    drill = Drill()
    for name in order:
        STEPS[name](drill)
    drill.last()
    return drill


def proven(
    chain: Sequence[bytes], held_keys: bytes | None = None, first_root: str | None = None
) -> Proven:
    """Prove the chain at NOW."""
    return prove_chain(chain, None if held_keys is None else KnownKeys(held_keys, first_root), NOW)


@pytest.mark.parametrize("order", ORDERS, ids=["-".join(order) for order in ORDERS])
def test_every_order_of_rotations_is_proven_from_every_version(
    order: tuple[str, ...], full: bool
) -> None:
    drill = drilled(order)
    first_root = digest(drill.documents[0].payload())
    for held_keys in (None, *drill.chain) if full else (drill.chain[ORDERS.index(order) % 7],):
        proof = proven(drill.chain, held_keys)
        assert (proof.keys, proof.newest, proof.first_root) == (
            drill.documents[-1],
            drill.chain[-1],
            first_root,
        )
        assert proven(drill.chain, held_keys, first_root) == proof


@pytest.mark.parametrize("order", ORDERS[::12], ids=["-".join(order) for order in ORDERS[::12]])
def test_one_version_missing_or_unsigned_by_the_old_roots_breaks_the_chain(
    order: tuple[str, ...],
) -> None:
    drill = drilled(order)
    stranger = key(5000)
    for i in range(len(drill.chain) - 1):
        without = drill.chain[:i] + drill.chain[i + 1 :]
        alone = Envelope.seal(
            KEYS_TYPE,
            replace(drill.documents[i], root=Role((stranger.public,), 1)).payload(),
            [stranger],
        )
        forged = [*drill.chain[:i], alone.to_bytes(), *drill.chain[i + 1 :]]
        for chain in (without, forged, [*drill.chain[: i + 1], *drill.chain[i:]]):
            with pytest.raises(KeyChainError):
                proven(chain)


def served(drill: Drill, document: KeysDocument, *signers: SigningKey) -> bytes:
    return Envelope.seal(KEYS_TYPE, document.payload(), signers).to_bytes()


def newest(drill: Drill, **changes: object) -> KeysDocument:
    old = drill.documents[-1]
    return replace(old, **({"version": old.version + 1} | changes))  # type: ignore[arg-type]


A, B, C, X, Y = key(1), key(2), key(3), key(70), key(71)
THIEF = Role((X.public, Y.public), 2)
REFUSED: dict[str, tuple[Callable[[Drill], bytes], type[FranklyError]]] = {
    "one root of two": (lambda d: served(d, newest(d), A), DocumentRejected),
    "one root, twice": (lambda d: doubled(served(d, newest(d), A)), DocumentRejected),
    "the publisher signs": (lambda d: served(d, newest(d), d.publisher), DocumentRejected),
    "publisher and one root": (lambda d: served(d, newest(d), d.publisher, A), DocumentRejected),
    "log and witness sign": (lambda d: served(d, newest(d), *WITNESS_KEYS.values()), DocumentRejected),
    "a thief's root, signed by the thief": (lambda d: served(d, newest(d, root=THIEF), X, Y), KeyChainError),
    "a thief's root, one old root": (lambda d: served(d, newest(d, root=THIEF), X, Y, A), KeyChainError),
    "a thief's root, not signed by it": (lambda d: served(d, newest(d, root=THIEF), A, B), DocumentRejected),
    "a thief's root, half signed by it": (lambda d: served(d, newest(d, root=THIEF), A, B, X), DocumentRejected),
    "a lower threshold, one root": (
        lambda d: served(d, newest(d, root=Role((A.public, B.public), 1)), A), KeyChainError
    ),
    "a higher threshold, too few": (
        lambda d: served(d, newest(d, root=Role((A.public, B.public, C.public), 3)), A, B), DocumentRejected
    ),
    "a version skipped": (lambda d: served(d, newest(d, version=3), A, B), KeyChainError),
    "fast forward": (lambda d: served(d, newest(d, version=10**9), A, B), KeyChainError),
    "the largest number": (lambda d: served(d, newest(d, version=2**53 - 1), A, B), KeyChainError),
    "300 rotations": (lambda d: served(d, newest(d, version=301), A, B), KeyChainError),
    "the same version, other content": (
        lambda d: served(d, newest(d, version=1, expires=NOW + timedelta(days=5)), A, B), KeyChainError
    ),
    "version 0": (lambda d: served(d, newest(d, version=0), A, B), DocumentRejected),
    "expired": (lambda d: served(d, newest(d, expires=NOW - timedelta(minutes=11)), A, B), ClockError),
    "not issued yet": (lambda d: served(d, newest(d, issued=NOW + timedelta(minutes=11)), A, B), ClockError),
    "a survey's envelope": (lambda d: Envelope.seal("application/vnd.frankly.survey+json", b"{}", [A, B]).to_bytes(),
                            DocumentRejected),
    "nothing": (lambda d: b"", DocumentRejected),
    "too large": (lambda d: b" " * 2**23, DocumentRejected),
    "truncated": (lambda d: served(d, newest(d), A, B)[:-3], DocumentRejected),
}  # fmt: skip


def doubled(data: bytes) -> bytes:
    """Return an envelope that lists one signature under two spellings of its key's id."""
    envelope = Envelope.from_bytes(data, KEYS_TYPE)
    (signature,) = envelope.signatures
    return replace(
        envelope, signatures=(signature, replace(signature, key_id=signature.key_id.upper()))
    ).to_bytes()


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_versions_that_do_not_follow_are_refused(name: str, is_known: bool) -> None:
    drill = Drill()
    make, error = REFUSED[name]
    with pytest.raises(error):
        proven([*drill.chain, make(drill)], drill.chain[0] if is_known else None)


@pytest.mark.parametrize("is_named", [False, True])
def test_a_chain_without_the_known_keys_is_a_rollback_or_equivocation(is_named: bool) -> None:
    drill = drilled(["publisher", "root"])
    first_root = digest(drill.documents[0].payload()) if is_named else None
    for length in (1, 2, 3):
        with pytest.raises(RollbackDetected):
            proven(drill.chain[:length], drill.chain[-1], first_root)
    again = replace(drill.documents[-1], expires=NOW + timedelta(days=5))
    with pytest.raises(Equivocation):
        proven(
            [*drill.chain[:-1], served(drill, again, *drill.roots[:2])], drill.chain[-1], first_root
        )


def test_stolen_old_root_keys_cannot_forge_a_chain_with_the_known_keys() -> None:
    """Two of the first three root keys are stolen after two rotations of the root."""
    drill = Drill()
    first_root = digest(drill.documents[0].payload())
    drill.rotate_root()
    drill.rotate_root()
    drill.last()
    forged = [
        drill.chain[0],
        served(drill, replace(drill.documents[0], version=2, root=THIEF), A, B, X, Y),
    ]
    forged += [
        served(drill, replace(drill.documents[0], version=n, root=THIEF), X, Y) for n in (3, 4, 5)
    ]
    assert proven(forged).first_root == proven(drill.chain).first_root == first_root
    for held_keys in drill.chain[1:]:
        with pytest.raises(Equivocation):
            proven(forged, held_keys, first_root)
        assert proven(drill.chain, held_keys, first_root).keys == drill.documents[-1]
    assert (
        proven(forged, drill.chain[0], first_root).keys.version == 5
    )  # a device that knows only version 1 has nothing to compare the chain with


def test_another_chain_is_not_mistaken_for_a_rollback() -> None:
    drill, unrelated = drilled(["root"]), Drill(roots=[key(n) for n in (11, 12, 13)])
    with pytest.raises(KeyChainError):
        proven(unrelated.chain, drill.chain[-1], digest(drill.documents[0].payload()))


@pytest.mark.parametrize("minutes", [-10, 10])
def test_a_clock_may_be_off_by_ten_minutes(minutes: int) -> None:
    drill = Drill()
    edge = drill.documents[0].expires if minutes > 0 else drill.documents[0].issued
    prove_chain(drill.chain, None, edge + timedelta(minutes=minutes))
    with pytest.raises(ClockError):
        prove_chain(drill.chain, None, edge + timedelta(minutes=minutes * 1.01))


@pytest.fixture(scope="module")
def longest() -> Drill:
    """Return a chain with one version more than the maximum."""
    drill = Drill()
    for _ in range(MAX_VERSIONS):
        drill.last()
    return drill


def test_a_chain_has_at_most_1024_versions(longest: Drill) -> None:
    assert proven(longest.chain[:-1], longest.chain[500]).keys.version == 1024
    for held_keys in (None, *longest.chain[-2:]):
        with pytest.raises(KeyChainError, match=r"1,024") as caught:
            proven(longest.chain, held_keys)
        assert caught.value.field == "chain"


def test_the_longest_chain_of_typical_documents_fits_in_the_maximum_size(longest: Drill) -> None:
    assert read_chain(write_chain(longest.chain[:-1])) == longest.chain[:-1]


def test_the_largest_version_adds_less_than_a_server_leaves_free() -> None:
    keys = [key(n) for n in range(1, 98)]
    roots, publishers, witnesses = (tuple(k.public for k in keys[i : i + 32]) for i in (0, 32, 64))
    names = [
        NamedKey(chr(0x10000 + i) * 255, public, WITNESS)
        for i, public in enumerate((*witnesses, keys[96].public))
    ]
    log = LogRole(replace(names[0], kind=LOG), tuple(names[1:]), 32)
    document = replace(
        keys_document(), root=Role(roots, 32), publisher=Role(publishers, 32), log=log
    )
    data = Envelope.seal(KEYS_TYPE, document.payload(), keys[:32]).to_bytes()
    assert KeysDocument.parse(document.payload()) == document
    assert len(write_chain([data, data])) - len(write_chain([data])) < 128 * 2**10


def test_a_chain_survives_its_bytes_exactly() -> None:
    chain = drilled(["root", "publisher"]).chain
    assert read_chain(write_chain(chain)) == chain


BAD_CHAINS = [b"", b"[]", b"{}", b'{"chain":{}}', b'{"chain":[1]}', b'{"chain":["*"]}', b'{"chain":["\xc3\xa9"]}',
              b'{"chain":[],"more":1}', b"[" * 100_000, b" " * (MAX_CHAIN_BYTES + 1), b'{"chain":[null]}']  # fmt: skip


@pytest.mark.parametrize("data", BAD_CHAINS, ids=range(len(BAD_CHAINS)))
def test_bytes_that_are_no_chain_are_refused_by_type(data: bytes) -> None:
    with pytest.raises(DocumentRejected):
        read_chain(data)


@given(st.binary(max_size=300) | st.lists(st.binary(max_size=40), max_size=4).map(write_chain))
def test_no_bytes_crash_the_proof(data: bytes) -> None:
    drill = Drill()
    drill.last()
    with pytest.raises(DocumentRejected):
        proven([*drill.chain, data], drill.chain[0])
    with pytest.raises(DocumentRejected):
        proven(read_chain(data), drill.chain[0])


def test_an_empty_chain_is_refused() -> None:
    assert refusal(KeyChainError, prove_chain, [], None, NOW).field == "chain"
