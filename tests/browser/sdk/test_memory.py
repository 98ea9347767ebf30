# SPDX-License-Identifier: Apache-2.0
"""Memory of a browser: records are stored per key chain, and other servers cannot change them."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import Any

import pytest
from frankly_protocol.canonical import digest as digest_of
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SigningKey
from frankly_protocol.trust import write_chain
from playwright.sync_api import Page

from tests.browser.sdk.servers import (
    AT,
    FIRST,
    FORMER,
    JSON,
    OPEN,
    SECOND,
    SURVEY,
    TRY,
    UNPINNED,
    Server,
    answered,
    opened,
    pieces,
    stranger,
)
from tests.browser.sdk.wire import Wire, program
from tests.frankly_protocol.samples import PUBLISHER, ROOT, keys_document, sealed_keys
from tests.frankly_protocol.trust.samples import ORIGIN, FakeLog

RENAMED = "the survey's log has a new name; the last head under its old name is kept as evidence"


@pytest.fixture
def ours(wire: Wire) -> Server:
    return Server(wire, "ours")


@pytest.fixture
def strangers(wire: Wire) -> Iterator[Server]:
    """Yield servers with separate keys, whose logs have the same name as our log."""
    return (stranger(wire, i) for i in count())


def test_another_server_does_not_erase_what_was_accepted(
    page: Page, ours: Server, strangers: Iterator[Server]
) -> None:
    assert opened(page, ours, ours.show(SECOND)) is None
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    rival = next(strangers)
    assert opened(page, rival, rival.show(FIRST)) is None
    assert opened(page, ours, ours.show(FIRST)) == "document_version"


def test_another_server_does_not_take_a_surveys_id(
    page: Page, ours: Server, strangers: Iterator[Server]
) -> None:
    rival = next(strangers)
    assert opened(page, rival, rival.show(FIRST)) is None
    assert answered(page) == "sent"
    assert opened(page, ours, ours.show(FIRST)) is None
    assert page.evaluate("client.answered()") is None
    assert answered(page) == "sent"
    assert (
        page.evaluate("client.store.spent().then((all) => all.length)") == 2
    )  # one budget for both
    assert answered(page) == "already_answered"
    ids = page.evaluate("client.store.all('answers').then((all) => all.map((one) => one.chain))")
    assert sorted(ids) == sorted((ours.first, rival.first))


def test_another_server_does_not_lock_a_log_out(
    page: Page, ours: Server, strangers: Iterator[Server]
) -> None:
    rival, watched = next(strangers), {"requireLog": True}
    rival.log.digests[:] = FORMER  # larger than our log, under the same name
    assert opened(page, rival, rival.show(FIRST), watched) is None
    assert rival.log.origin == ours.log.origin == ORIGIN
    assert opened(page, ours, ours.show(FIRST), watched) is None
    ours.log.digests.append(FORMER[7])
    assert opened(page, ours, ours.show(FIRST, "cd" * 16), watched) is None
    ours.log.digests[:] = ours.log.digests[1:]  # our own log may not shrink
    assert opened(page, ours, ours.show(FIRST), watched) == "document_version"


def test_other_servers_do_not_fill_the_evidence(
    page: Page, ours: Server, strangers: Iterator[Server]
) -> None:
    for rival in (
        next(strangers) for _ in range(3)
    ):  # the same id on another server, with other documents, is no contradiction
        assert opened(page, rival, rival.show(FIRST)) is None
        assert pieces(page) == []
    for i in range(18):  # one server contradicts itself repeatedly
        code = opened(page, rival, rival.show(replace(FIRST, min_reports=100 + i)))
        assert code == "document_version"
    assert opened(page, ours, ours.show(FIRST)) is None
    assert len(pieces(page)) == 16
    before = ours.digest
    assert opened(page, ours, ours.show(replace(FIRST, min_reports=99))) == "document_version"
    assert opened(page, ours, ours.show(FIRST)) is None
    assert len(pieces(page)) == 18
    assert {before, digest_of(served_payload(FIRST, ours, 99))} <= set(pieces(page))


def served_payload(document: SurveyDocument, server: Server, min_reports: int) -> bytes:
    """Return the payload of the document that a server publishes."""
    collect = f"https://{server.name}.example/v1/surveys/{SURVEY}/reports"
    return replace(document, min_reports=min_reports, collect_url=collect).payload()


def test_one_survey_by_every_link_is_one_answer(page: Page, ours: Server) -> None:
    ours.rotate(2, 3)
    link = ours.show(FIRST)
    shipped = {version: list(ours.chain[version - 1]) for version in (1, 2, 3)}
    assert opened(page, ours, link) is None
    assert answered(page) == "sent"
    for pin in ("", ours.pin):
        assert opened(page, ours, link + pin) is None
        assert answered(page) == "already_answered"
        for keys in shipped.values():
            page.evaluate(
                "(keys) => { window.keys = new Uint8Array(keys); window.client.close(); }", keys
            )
            visit = {
                "link": link + pin,
                "at": AT,
                "options": {"relay": ours.relay, "policy": UNPINNED},
            }
            page.evaluate(OPEN.replace("...options", "...options, keys: window.keys"), visit)
            assert page.evaluate("client.chain") == ours.first
            assert answered(page) == "already_answered"


def test_every_visit_requests_the_same_keys(page: Page, wire: Wire, ours: Server) -> None:
    """Installs without keys, with old keys and with the newest keys make the same requests."""

    def take_paths() -> list[str]:
        paths = [
            path.partition("/v1/")[2] for path, _ in wire.requests if path.startswith("/ours/")
        ]
        wire.requests.clear()
        return paths

    ours.rotate(2)
    link = ours.show(FIRST)
    assert opened(page, ours, link + ours.pin) is None
    assert take_paths() == ["keys/chain", f"surveys/{SURVEY}/document?digest={ours.digest}"]
    assert opened(page, ours, link + ours.pin) is None
    assert take_paths() == []
    for versions in ((), (), (3, 4)):
        ours.rotate(*versions)
        assert opened(page, ours, link) is None
        assert take_paths() == ["keys/chain", f"surveys/{SURVEY}/document"]
    page.evaluate("window.client.close(), indexedDB.deleteDatabase('frankly')")
    assert opened(page, ours, link) is None  # a new install
    assert take_paths() == ["keys/chain", f"surveys/{SURVEY}/document"]
    wire.answers["/ours/v1/keys/chain"] = (JSON, None)
    assert opened(page, ours, link) is None  # unreachable: the stored keys are used
    page.evaluate("window.client.close(), indexedDB.deleteDatabase('frankly')")
    assert opened(page, ours, link) == "not_found"


def forged(ours: Server, other: Server) -> list[bytes]:
    """Return our version 1 and a version 2 signed with a stranger's root key."""
    return [ours.chain[0], sealed_keys(other.keys(2), other.root)]


# Forged chains that a stranger serves to impersonate our server -> the field of the document_keys
# error.
CLAIMS = {
    "our first version, its own second one": (forged, "signatures"),
    "no first version": (lambda ours, other: [sealed_keys(other.keys(2), other.root)], "chain"),
    "nothing": (lambda ours, other: [], "chain"),
    "a gap": (
        lambda ours, other: [*other.chain, sealed_keys(other.keys(3), other.root)],
        "version",
    ),
    "another order": (
        lambda ours, other: [sealed_keys(other.keys(2), other.root), *other.chain],
        "chain",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_first_root_is_proven_and_never_claimed(
    page: Page, ours: Server, name: str, wire: Wire
) -> None:
    serve, expected_field = CLAIMS[name]
    assert opened(page, ours, ours.show(SECOND)) is None
    rival = stranger(wire, 0)
    link = rival.show(FIRST)
    rival.put("/v1/keys/chain", JSON, write_chain(serve(ours, rival)))
    page.evaluate("client.close()")
    visit = {"link": link, "at": AT, "options": {"relay": rival.relay, "policy": UNPINNED}}
    problem = page.evaluate(TRY, {"code": OPEN, "given": visit})
    assert (problem.get("code"), problem.get("field")) == ("document_keys", expected_field)
    assert opened(page, ours, ours.show(FIRST)) == "document_version"


NEW_ROOT, THIEFS_ROOT, THIEF = (SigningKey.from_raw(bytes([n]) * 32) for n in (51, 52, 53))


def rooted(
    server: Server, number: int, root: SigningKey, *signers: SigningKey, publisher: SigningKey
) -> bytes:
    """Return a version of a server's keys with another root key."""
    log = server.keys(number).log
    return sealed_keys(replace(keys_document(number, root, publisher), log=log), root, *signers)


def branched(wire: Wire, ours: Server) -> Server:
    """Return a thief's server, which has our retired first root key and forks the chain after version 1."""
    ours.chain += [
        rooted(ours, n, NEW_ROOT, *([ROOT] if n == 2 else []), publisher=PUBLISHER) for n in (2, 3)
    ]
    ours.rotate()
    thief = Server(
        wire, "thief", publisher=THIEF, log=FakeLog(list(FORMER[:3])), chain=ours.chain[:1]
    )
    for n in (2, 3, 4, 5):
        thief.chain.append(
            rooted(thief, n, THIEFS_ROOT, *([ROOT] if n == 2 else []), publisher=THIEF)
        )
    thief.rotate()
    return thief


@pytest.mark.parametrize("length", [2, 5])
def test_a_fork_of_a_known_chain_is_refused_under_every_origin(
    page: Page, wire: Wire, ours: Server, length: int
) -> None:
    thief = branched(wire, ours)
    thief.chain[:] = thief.chain[:length]
    thief.rotate()
    assert opened(page, thief, thief.show(FIRST)) is None  # a new device cannot detect it
    page.evaluate("window.client.close(), indexedDB.deleteDatabase('frankly')")
    assert opened(page, ours, ours.show(FIRST)) is None
    assert opened(page, thief, thief.show(FIRST)) == "document_version"
    assert opened(page, ours, ours.show(FIRST)) is None
    ours.chain.append(rooted(ours, 4, NEW_ROOT, publisher=PUBLISHER))
    ours.rotate()
    assert opened(page, ours, ours.show(FIRST)) is None


def test_a_rotation_is_known_by_every_origin_of_the_chain(
    page: Page, wire: Wire, ours: Server
) -> None:
    mirror = Server(wire, "mirror", chain=list(ours.chain))
    mirror.rotate()
    assert opened(page, ours, ours.show(FIRST)) is None
    assert opened(page, mirror, mirror.show(FIRST, "cd" * 16)) is None
    mirror.rotate(2, 3)  # the mirror serves newer keys first
    assert opened(page, mirror, mirror.show(FIRST, "cd" * 16)) is None
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    ours.rotate(2)
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    ours.rotate(3, 4)
    assert opened(page, ours, ours.show(FIRST)) is None
    mirror.rotate(4)
    assert opened(page, mirror, mirror.show(FIRST, "cd" * 16)) is None


def test_the_longest_chain_is_proven_in_seconds(page: Page, ours: Server) -> None:
    ours.rotate(*range(2, 1025))
    start = monotonic()
    assert opened(page, ours, ours.show(FIRST)) is None
    assert monotonic() - start < 30
    ours.rotate(1025)
    assert opened(page, ours, ours.show(FIRST)) == "document_keys"


def test_a_renamed_log_is_reported_and_its_old_head_stays(page: Page, ours: Server) -> None:
    watched = {"requireLog": True}
    assert opened(page, ours, ours.show(FIRST), watched) is None
    assert page.evaluate("events") == ["opened"]
    old = ours.log.proof(ours.digest).signed.to_bytes()
    ours.log.digests[:], ours.log.origin = [], "log.example/second"  # a new tree under a new name
    ours.rotate(2)
    assert opened(page, ours, ours.show(FIRST), watched) is None
    assert page.evaluate("events") == ["log_renamed", "opened"]
    assert page.evaluate("firstError") == ["log_renamed", RENAMED]
    assert pieces(page) == [digest_of(old)]
    ours.log.digests.append(FORMER[5])
    assert opened(page, ours, ours.show(FIRST), watched) is None
    assert page.evaluate("events") == ["opened"]
    ours.log.digests[:] = [ours.digest]
    ours.publish_log()
    assert opened(page, ours, ours.show(FIRST), watched) == "document_version"


VERSION_1 = program("version_1")
CHARGED = (
    "client.store.spent().then(([{cost, delta, level}]) => [String(cost), String(delta), level])"
)
COST = {"level": [2, 1], "ceiling": [3, 1], "free": [5, 2], "freeDelta": [1, 1000]}


def as_in_version_1(page: Page, server: Server, state: str = "sent", **cost: Any) -> None:
    """Store an answered version 2 of the survey as the SDK did before it stored data per chain."""
    server.show(SECOND)
    _, envelope = server.wire.answers[f"/{server.name}/v1/surveys/{SURVEY}/document"]
    head = server.log.proof(server.digest).signed
    record: dict[str, Any] = {
        "alias": f"https://{server.name}.example",
        "survey": SURVEY,
        "digest": server.digest,
        "state": state,
    }
    record |= {"envelope": list(envelope or b""), "head": list(head.to_bytes())}
    record |= {
        "size": head.checkpoint.size,
        "cost": cost or COST,
        "url": f"https://{server.name}.example/in",
    }
    page.evaluate(VERSION_1, record)


def test_records_of_store_version_1_still_bind_their_own_chain(page: Page, ours: Server) -> None:
    as_in_version_1(page, ours)
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    former_log, ours.log.digests = ours.log.digests, [ours.digest]
    assert opened(page, ours, ours.show(SECOND), {"requireLog": True}) == "document_version"
    ours.log.digests = former_log
    assert opened(page, ours, ours.show(SECOND), {"requireLog": True}) is None
    assert page.evaluate("events") == ["opened"]  # no event: the name is the same
    assert answered(page) == "already_answered"
    assert page.evaluate(CHARGED) == ["5,2", "1,1000", None]
    assert len(pieces(page)) == 1


def test_another_server_can_neither_erase_nor_use_records_of_store_version_1(
    page: Page, ours: Server, strangers: Iterator[Server]
) -> None:
    as_in_version_1(page, ours)
    rival = next(strangers)
    rival.log.digests[:] = FORMER
    assert opened(page, rival, rival.show(FIRST), {"requireLog": True}) is None
    assert len(pieces(page)) == 1
    # The record does not state its chain, so the survey cannot be answered on any chain.
    assert answered(page) == "already_answered"
    assert opened(page, ours, ours.show(FIRST)) == "document_version"
    assert opened(page, ours, ours.show(SECOND), {"requireLog": True}) is None
    assert answered(page) == "already_answered"


def test_a_report_sealed_by_store_version_1_is_sent_after_key_rotations(
    page: Page, wire: Wire, ours: Server
) -> None:
    ours.rotate(2, 3)
    as_in_version_1(page, ours, "sealed", level=[2, 1], ceiling=[3, 1])
    wire.steps[:] = ["503"] * 3
    assert opened(page, ours, ours.show(SECOND) + ours.pin) is None
    assert wire.posted
    assert page.evaluate("client.chain") == ours.first
    assert page.evaluate(CHARGED) == ["3,1", "0,1", None]
    page.evaluate("window.client.close()")
