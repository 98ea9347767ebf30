# SPDX-License-Identifier: Apache-2.0
"""Attacks by the network or the server, such as man in the middle and rollback: none of more than
40 is accepted (spec 9.2).

The cases are modelled on the conformance suite of TUF: arbitrary software, rollback, fast forward,
indefinite freeze, endless data, mix and match, key compromise. Every case names the typed error
that must end it, and no report may be sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, Signature, SigningKey
from frankly_protocol.trust import KeysDocument, Role
from frankly_sdk import (
    ClockError,
    DocumentRejected,
    Equivocation,
    FranklyError,
    KeyChainError,
    LogError,
    NetworkError,
    Policy,
    PolicyRefused,
    RollbackDetected,
    evidence,
)
from frankly_sdk.store import Store

from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    ROOT,
    STRANGER,
    keys_document,
    ldp_block,
    sealed,
    sealed_keys,
    survey,
)
from tests.frankly_protocol.trust.samples import WITNESS_KEYS, FakeLog
from tests.frankly_sdk.attacks import DOCUMENT, LOGGED_KEYS, OTHER, Server, keys

PLAIN = f"https://collect.example/s/{DOCUMENT.survey}"
PINNED = f"{PLAIN}#{DOCUMENT.digest.replace(':', '=')}"
NEW_PUBLISHER = SigningKey.from_raw(bytes([77]) * 32)


def opened(server: Server, store: Path, link: str = PLAIN, days: float = 0, **policy: Any) -> None:
    clock = FixedClock(NOW + timedelta(days=days))
    server.open(store, link=link, policy=Policy(**policy), clock=clock).close()


@dataclass(frozen=True)
class Attack:
    """An honest first visit `before` if set, then `attack`; and the expected error, link and policy."""

    error: type[FranklyError]
    attack: Callable[[Server], None]
    before: Callable[[Server], None] | None = None
    link: str = PLAIN
    days: float = 0
    reason: str | None = None
    policy: tuple[tuple[str, Any], ...] = ()


def put(**values: Any) -> Callable[[Server], None]:
    """Set attributes of the server."""

    def act(server: Server) -> None:
        for name, value in values.items():
            setattr(server, name, value)

    return act


def show(
    document: SurveyDocument, *signers: SigningKey, log: bool = True
) -> Callable[[Server], None]:
    """Serve another document, and log it if `logged` is set."""

    def act(server: Server) -> None:
        server.document, server.envelope = document, sealed(document.payload(), *signers)
        if log and document.digest not in server.log.digests:
            server.log.digests.append(document.digest)

    return act


def edit(change: Callable[[Envelope], Envelope]) -> Callable[[Server], None]:
    """Alter the document's envelope."""

    def act(server: Server) -> None:
        server.envelope = change(Envelope.from_bytes(server.envelope, SURVEY_TYPE)).to_bytes()

    return act


def nothing(_server: Server) -> None:
    return None


def chained(version: int, **changes: Any) -> KeysDocument:
    return replace(LOGGED_KEYS, version=version, **changes)


def forks(server: Server) -> None:
    server.log.digests = [survey(ldp_block(epsilon="0.3")).digest, DOCUMENT.digest, OTHER.digest]


def shrinks(server: Server) -> None:
    server.log.digests = [DOCUMENT.digest]


def replaces(server: Server) -> None:
    server.log.digests = ["sha256:" + "9" * 64, DOCUMENT.digest]


NEWER = replace(DOCUMENT, version=2, prev=DOCUMENT.digest)
CHAIN = [sealed_keys(chained(n)) for n in (1, 2)]
TWO = Role((PUBLISHER.public, STRANGER.public), 2)
FIRST = Signature(PUBLISHER.public.key_id, b"\0" * 64)
ATTACKS: dict[str, Attack] = {
    # Arbitrary documents
    "unsigned": Attack(DocumentRejected, edit(lambda e: replace(e, signatures=(FIRST,))), reason="signature"),
    "signed by a stranger": Attack(DocumentRejected, show(DOCUMENT, STRANGER), reason="signature"),
    "signed by the root": Attack(DocumentRejected, show(DOCUMENT, ROOT), reason="signature"),
    "signed by the log": Attack(DocumentRejected, show(DOCUMENT, FakeLog().key), reason="signature"),
    "signed by every witness": Attack(DocumentRejected, show(DOCUMENT, *WITNESS_KEYS.values()), reason="signature"),
    "a stranger under the publisher's id": Attack(DocumentRejected, edit(lambda e: replace(e, signatures=(
        Signature(PUBLISHER.public.key_id, STRANGER.sign(e.payload)),))), reason="signature"),
    "one publisher of two": Attack(DocumentRejected, keys(chained(1, publisher=TWO)), reason="signature"),
    "the payload altered": Attack(DocumentRejected, edit(lambda e: replace(e, payload=e.payload + b" ")),
                                  reason="signature"),
    "a keys document as survey": Attack(DocumentRejected, put(envelope=sealed_keys(LOGGED_KEYS)), reason="type"),
    "another survey's document": Attack(DocumentRejected, show(survey(ldp_block(), survey_id="cd" * 16)), reason="pin"),
    "an empty body": Attack(DocumentRejected, put(envelope=b" "), reason="envelope"),
    "endless data": Attack(NetworkError, put(envelope=b"[" * (8 * 2**20))),
    "deep data": Attack(DocumentRejected, put(envelope=b"[" * 100_000), reason="envelope"),
    # The pin
    "another document under a pin": Attack(DocumentRejected, show(OTHER), link=PINNED, reason="pin"),
    "a newer document under a pin": Attack(DocumentRejected, show(NEWER), link=PINNED, reason="pin"),
    "a pinned, withdrawn survey": Attack(DocumentRejected, keys(chained(2, publisher=Role((STRANGER.public,), 1))),
                                         nothing, link=PLAIN, reason="signature"),
    # Rollback, equivocation and freeze
    "an older version": Attack(RollbackDetected, show(DOCUMENT), show(NEWER)),
    "an older version under its pin": Attack(RollbackDetected, show(DOCUMENT), show(NEWER), link=PINNED),
    "the same version, other content": Attack(Equivocation, show(OTHER), nothing),
    "frozen until it expired": Attack(ClockError, nothing, nothing, days=61),
    "frozen until it closed": Attack(ClockError, nothing, nothing, days=31),
    "not open yet": Attack(ClockError, nothing, days=-2),
    "frozen keys": Attack(ClockError, nothing, nothing, days=301),
    # Keys
    "no keys": Attack(DocumentRejected, put(keys=b"{}"), reason="envelope"),
    "keys signed by a stranger": Attack(DocumentRejected, keys(LOGGED_KEYS, STRANGER), reason="signature"),
    "a stranger's keys later": Attack(
        KeyChainError, keys(chained(2, root=Role((STRANGER.public,), 1)), STRANGER), nothing),
    "keys of a lower version": Attack(RollbackDetected, put(chain=CHAIN[:1]), put(chain=CHAIN)),
    "other keys of version 1": Attack(KeyChainError, keys(chained(1, publisher=Role((STRANGER.public,), 1))), nothing),
    "keys of the same version": Attack(
        Equivocation, keys(chained(2, publisher=Role((STRANGER.public,), 1))), put(chain=CHAIN)),
    "keys that skip, no chain": Attack(KeyChainError, keys(chained(3)), nothing),
    "keys fast forward": Attack(KeyChainError, keys(chained(10**9)), nothing),
    "a chain with a stranger's link": Attack(KeyChainError, put(
        chain=[CHAIN[0], sealed_keys(chained(2, root=Role((STRANGER.public,), 1)), STRANGER), sealed_keys(chained(3))]),
        nothing),
    "a chain of another's keys": Attack(KeyChainError, put(
        chain=[sealed_keys(chained(n, root=Role((STRANGER.public,), 1)), STRANGER) for n in (1, 2, 3)]), nothing),
    "a chain without its beginning": Attack(KeyChainError, put(chain=[CHAIN[1]]), nothing),
    # The log
    "not logged": Attack(NetworkError, put(log=FakeLog([OTHER.digest]))),
    "no witness": Attack(LogError, put(proof=lambda p: replace(p, signed=FakeLog(
        [OTHER.digest, DOCUMENT.digest]).head(witnesses=())).to_bytes())),
    "one witness of two": Attack(LogError, put(proof=lambda p: replace(p, signed=FakeLog(
        [OTHER.digest, DOCUMENT.digest]).head(witnesses=("w1.example",))).to_bytes())),
    "another log's head": Attack(LogError, put(log=FakeLog([DOCUMENT.digest], origin="evil.example"))),
    "another key's head": Attack(LogError, put(log=FakeLog([DOCUMENT.digest], key=STRANGER))),
    "another document's proof": Attack(LogError, put(proof=lambda p: FakeLog(
        [OTHER.digest, DOCUMENT.digest]).proof(OTHER.digest).to_bytes())),
    "an altered proof": Attack(LogError, put(proof=lambda p: replace(p, path=(b"\0" * 32,)).to_bytes())),
    "no proof": Attack(LogError, put(proof=lambda p: b"")),
    "an endless proof": Attack(LogError, put(proof=lambda p: p.to_bytes() * 500)),
    "witnesses long silent": Attack(LogError, put(log=FakeLog([DOCUMENT.digest], signed_at=NOW - timedelta(days=31)))),
    "witnesses of tomorrow": Attack(LogError, put(log=FakeLog([DOCUMENT.digest], signed_at=NOW + timedelta(days=1)))),
    "the log shrinks": Attack(RollbackDetected, shrinks, nothing),
    "the log forks": Attack(Equivocation, forks, nothing),
    "the log replaces its past": Attack(Equivocation, replaces, nothing),
    "leaves of another tree": Attack(LogError, lambda s: (s.log.digests.append(NEWER.digest),
                                     setattr(s, "leaves", lambda b: b"\0" * len(b)))[1], nothing),
    "too few leaves": Attack(LogError, lambda s: (s.log.digests.append(NEWER.digest),
                             setattr(s, "leaves", lambda b: b[:-32]))[1], nothing),
    "keys without a log": Attack(PolicyRefused, keys(keys_document()), reason="unpinned"),
    "a pin, but the app wants a log": Attack(
        PolicyRefused, keys(keys_document()), link=PINNED, reason="unlogged", policy=(("require_log", True),)),
    "a pin, in no log": Attack(LogError, put(proof=lambda p: b""), link=PINNED, policy=(("require_log", True),)),
}  # fmt: skip


def test_there_are_at_least_forty_attacks() -> None:
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("name", ATTACKS)
def test_no_attack_is_accepted_and_nothing_is_sent(name: str, tmp_path: Path) -> None:
    case, server, store = ATTACKS[name], Server(), tmp_path / "s.db"
    if case.before is not None:
        case.before(server)
        opened(server, store)
    case.attack(server)
    with pytest.raises(case.error) as caught:
        opened(server, store, case.link, case.days, **dict(case.policy))
    if case.reason is not None:
        assert getattr(caught.value, "reason", None) == case.reason
    assert server.posted == []


HONEST: list[tuple[str, dict[str, bool]]] = [
    (PLAIN, {}),
    (PINNED, {}),
    (PINNED, {"require_log": True}),
    (PLAIN, {"require_log": True}),
    (PLAIN, {"allow_unpinned": True}),
]


@pytest.mark.parametrize(("link", "policy"), HONEST, ids=range(len(HONEST)))
def test_without_an_attack_every_link_opens(
    link: str, policy: dict[str, bool], tmp_path: Path
) -> None:
    for days in (0, 1):
        opened(Server(), tmp_path / "s.db", link, days, **policy)


def test_requests_contain_nothing_that_is_stored(tmp_path: Path) -> None:
    """A new device and a device with an older head and older keys request the same URLs."""
    old = Server()
    opened(old, tmp_path / "a.db")
    fetched_urls = []
    for store in ("a.db", "b.db"):
        server = Server(
            keys=sealed_keys(chained(3)), chain=[sealed_keys(chained(n)) for n in (1, 2, 3)]
        )
        server.log.digests.append(NEWER.digest)
        opened(server, tmp_path / store)
        fetched_urls.append([url for url in server.fetched if "leaves" not in url])
        assert all("?" not in url or url.endswith("size=3") for url in server.fetched)
    assert fetched_urls[0] == fetched_urls[1]
    assert [url.partition("/v1/")[2] for url in fetched_urls[0] if "keys" in url] == ["keys/chain"]


def test_forked_heads_and_split_surveys_are_kept_and_can_be_read(tmp_path: Path) -> None:
    server = Server()
    opened(server, tmp_path / "s.db")
    first = server.log.head().to_bytes()
    forks(server)
    with pytest.raises(Equivocation):
        opened(server, tmp_path / "s.db")
    conflicting_heads = evidence(tmp_path / "s.db")
    assert {(item.kind, item.data) for item in conflicting_heads} == {
        ("checkpoint", first),
        ("checkpoint", server.log.head().to_bytes()),
    }
    split = Server()
    opened(split, tmp_path / "t.db")
    before = split.envelope
    show(OTHER)(split)
    with pytest.raises(Equivocation):
        opened(split, tmp_path / "t.db")
    assert {(item.kind, item.digest, item.data) for item in evidence(tmp_path / "t.db")} == {
        ("survey", DOCUMENT.digest, before),
        ("survey", OTHER.digest, split.envelope),
    }


def test_out_of_reach_a_logged_survey_opens_from_memory_while_its_head_is_fresh(
    tmp_path: Path,
) -> None:
    server = Server()
    opened(server, tmp_path / "s.db")
    server.down = ("/v1/",)
    opened(server, tmp_path / "s.db", days=5)
    with pytest.raises(NetworkError):
        opened(server, tmp_path / "fresh.db")
    late = Server(log=FakeLog([DOCUMENT.digest], signed_at=NOW - timedelta(days=29)))
    opened(late, tmp_path / "t.db")
    late.down = ("/v1/",)
    with pytest.raises(NetworkError):
        opened(late, tmp_path / "t.db", days=2)


def test_a_pinned_logged_survey_needs_no_network_twice(tmp_path: Path) -> None:
    server = Server()
    opened(server, tmp_path / "s.db", PINNED, require_log=True)
    server.fetched.clear()
    opened(server, tmp_path / "s.db", PINNED, require_log=True)
    assert server.fetched == []


# The drill of spec 3.2, in which a publisher key is stolen
THIEFS = replace(OTHER, version=10**9, prev=DOCUMENT.digest)
RECOVERED = keys(chained(2, publisher=Role((NEW_PUBLISHER.public,), 1)))


@pytest.mark.parametrize(
    "stolen", [THIEFS, OTHER, NEWER], ids=["fast forward", "same version", "next version"]
)
@pytest.mark.parametrize("true", [DOCUMENT, NEWER], ids=["first", "second"])
def test_after_a_theft_new_keys_restore_every_device(
    stolen: SurveyDocument, true: SurveyDocument, tmp_path: Path
) -> None:
    server = Server()
    show(stolen)(server)
    opened(server, tmp_path / "s.db")  # the thief's signature is accepted
    RECOVERED(server)
    with pytest.raises(DocumentRejected) as caught:
        opened(server, tmp_path / "s.db")  # the new keys reject the thief's document
    assert caught.value.reason == "signature"
    show(true, NEW_PUBLISHER)(server)
    opened(server, tmp_path / "s.db")  # the thief's version does not block the new document
    assert (len(evidence(tmp_path / "s.db")) == 2) == (stolen.digest != true.digest)
    show(stolen)(server)
    with pytest.raises(DocumentRejected):
        opened(server, tmp_path / "s.db")
    if true.version > 1:
        show(DOCUMENT, NEW_PUBLISHER)(server)
        with pytest.raises(RollbackDetected):
            opened(server, tmp_path / "s.db")


def test_a_survey_signed_again_opens_by_its_pinned_link(tmp_path: Path) -> None:
    server = Server()
    opened(server, tmp_path / "s.db", PINNED)
    RECOVERED(server)
    opened(server, tmp_path / "s.db", PINNED)  # from memory, with the keys stored on this device
    second_survey = Server(document=survey(ldp_block(), survey_id="cd" * 16), chain=server.chain)
    second_survey.envelope = sealed(second_survey.document.payload(), NEW_PUBLISHER)
    second_survey.open(tmp_path / "s.db").close()  # stores the new keys
    with pytest.raises(DocumentRejected):
        opened(server, tmp_path / "s.db", PINNED)
    show(DOCUMENT, NEW_PUBLISHER)(server)
    opened(server, tmp_path / "s.db", PINNED)
    server.down = ("/v1/",)
    opened(server, tmp_path / "s.db", PINNED)


def test_devices_follow_many_missed_rotations(tmp_path: Path) -> None:
    server = Server()
    server.chain = [server.keys]
    opened(server, tmp_path / "s.db")
    roots = [ROOT, *(SigningKey.from_raw(bytes([100 + i]) * 32) for i in range(6))]
    for i, (old, new) in enumerate(pairwise(roots)):
        expired = NOW - timedelta(days=5) if i % 2 else NOW + timedelta(days=300)
        document = chained(
            i + 2,
            root=Role((new.public,), 1),
            expires=max(expired, LOGGED_KEYS.issued + timedelta(days=1)),
        )
        server.chain.append(sealed_keys(document, old, new))
    last = chained(8, root=Role((roots[-1].public,), 1))
    server.chain.append(sealed_keys(last, roots[-1]))
    opened(server, tmp_path / "s.db")
    known_keys = Store(tmp_path / "s.db").alias_keys("https://collect.example")
    assert known_keys is not None
    assert known_keys.envelope == server.chain[-1]
