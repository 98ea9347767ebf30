# SPDX-License-Identifier: Apache-2.0
"""Acceptance of a document: every refusal names its reason, and nothing is sent."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.audit import Claim, ceiling
from frankly_protocol.blocks import Promise
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope, Signature
from frankly_protocol.errors import FranklyError
from frankly_protocol.mechanisms import DenseMechanism
from frankly_protocol.trust import Role
from frankly_sdk import (
    ClockError,
    DocumentRejected,
    Equivocation,
    InsecureTransport,
    KeyChainError,
    NetworkError,
    Policy,
    PolicyRefused,
    RollbackDetected,
    UnsupportedDocument,
)
from frankly_sdk._trusted import accept_survey
from frankly_sdk.link import SurveyLink
from frankly_sdk.store import Store
from frankly_sdk.transport import Reply

from tests.frankly_protocol.samples import (
    NOW,
    PUBLISHER,
    ROOT,
    STRANGER,
    at,
    keys_document,
    ldp_block,
    lip_block,
    sealed,
    sealed_keys,
    survey,
)
from tests.frankly_sdk.fakes import ANSWERS, FakeServer, backstop_block, payable_survey, problem
from tests.narrowing import dense_of
from tests.refusals import refusal

GOOD = payable_survey()


def weaker() -> SurveyDocument:
    """Return a document whose stated level is below the level that its weights need."""
    return survey(replace(ldp_block(), promises=(Promise(Claim("ldp", (2, 1))),)), lip_block())


def moved() -> SurveyDocument:
    """Return a document that states the exact level of its weights, with one unit of weight moved
    within a row."""
    block = ldp_block()
    (on, off), second_row = dense_of(block.numbered_mechanism).weights
    altered = DenseMechanism(48, ((on + 1, off - 1), second_row))
    exact = Fraction(on, off).as_integer_ratio()
    return survey(
        replace(block, mechanism=altered, promises=at(block, exact), ceiling=ceiling(altered)),
        lip_block(),
    )


def edited(path: str, value: Any) -> FakeServer:
    """Return a server whose document was edited and then signed again by its publisher."""
    body = json.loads(GOOD.payload())
    *parents, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    target: Any = body
    for part in parents:
        target = target[part]
    target[last] = value
    payload = canonical.dumps(body)
    server = FakeServer(envelope=sealed(payload))
    server.__dict__["pinned"] = canonical.digest(payload)
    return server


W = dense_of(GOOD.blocks[0].numbered_mechanism).weights[0][0]
CASES: list[tuple[Callable[[], FakeServer], type[FranklyError], str | None]] = [
    (lambda: FakeServer(envelope=b"{}"), DocumentRejected, None),
    (lambda: FakeServer(envelope=b"<html>a proxy's page</html>"), DocumentRejected, None),
    (lambda: FakeServer(envelope=b"[" * 100_000), DocumentRejected, None),
    (lambda: FakeServer(envelope=b" " * (8 * 2**20)), NetworkError, None),
    (lambda: FakeServer(envelope=sealed(GOOD.payload(), STRANGER)), DocumentRejected, "signatures"),
    (lambda: FakeServer(envelope=sealed(GOOD.payload() + b" ")), DocumentRejected, None),
    (
        lambda: FakeServer(keys=sealed_keys(keys_document(), STRANGER)),
        DocumentRejected,
        "signatures",
    ),
    (
        lambda: FakeServer(keys=sealed_keys(keys_document(publisher=STRANGER))),
        DocumentRejected,
        "signatures",
    ),
    (lambda: edited("blocks.0.weights.0.0", W + 1), DocumentRejected, "blocks[0].weights[0]"),
    (lambda: edited("blocks.0.weights.0.0", -1), DocumentRejected, "blocks[0].weights[0]"),
    (lambda: edited("type", "frankly.survey/3"), UnsupportedDocument, "type"),
    (
        lambda: edited("blocks.0.claims.0.notion", "trust-me"),
        UnsupportedDocument,
        "blocks[0].claims[0]",
    ),
    (lambda: edited("extra", 1), DocumentRejected, "extra"),
    (lambda: edited("survey", "cd" * 16), DocumentRejected, "survey"),
    (lambda: FakeServer(document=weaker()), DocumentRejected, "blocks[0].claims[0].level"),
    (lambda: FakeServer(document=moved()), DocumentRejected, "blocks[0].claims[0].level"),
    (lambda: FakeServer(document=survey(ldp_block(epsilon="6"))), PolicyRefused, "blocks"),
    (lambda: FakeServer(document=survey(lip_block("a"), lip_block("b"))), PolicyRefused, "blocks"),
    (
        lambda: FakeServer(document=replace(GOOD, collect_url="http://evil.example/")),
        InsecureTransport,
        "collect_url",
    ),
]


@pytest.mark.parametrize(("make", "error", "field"), CASES, ids=range(len(CASES)))
def test_unacceptable_documents_are_refused_by_name(
    make: Callable[[], FakeServer], error: type[FranklyError], field: str | None, tmp_path: Path
) -> None:
    server = make()
    digest = server.__dict__.get("pinned", server.document.digest)
    link = f"https://collect.example/s/{server.document.survey}#{digest.replace(':', '=')}"
    assert refusal(error, server.open, tmp_path / "s.db", link=link).field == field
    assert server.posted == []


def test_another_document_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    substitute = survey(ldp_block(epsilon="0.5"), backstop_block())
    with pytest.raises(DocumentRejected) as caught:
        FakeServer(envelope=sealed(substitute.payload())).open(tmp_path / "s.db")
    assert caught.value.reason == "pin"


@pytest.mark.parametrize(("days", "field"), [(-2, "opens"), (31, "closes")])
def test_outside_the_window_both_times_are_shown(days: int, field: str, tmp_path: Path) -> None:
    clock = FixedClock(NOW + timedelta(days=days))
    error = refusal(ClockError, FakeServer().open, tmp_path / "s.db", clock=clock)
    assert error.field == field
    assert "clock says" in error.detail


UNPINNED = f"https://collect.example/s/{GOOD.survey}"
POLICIES = [
    (Policy(), "ceiling"),
    (Policy(allow_unpinned=True), "ceiling"),
    (Policy(allow_unpinned=True, max_ceiling="1"), "ceiling"),
]


@pytest.mark.parametrize(("policy", "reason"), POLICIES)
def test_without_a_pin_prior_based_promises_are_refused(
    policy: Policy, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(PolicyRefused) as caught:
        FakeServer().open(tmp_path / "s.db", link=UNPINNED, policy=policy)
    assert caught.value.reason == reason


def test_without_a_pin_prior_free_promises_may_be_allowed(tmp_path: Path) -> None:
    server = FakeServer(document=survey(ldp_block()))
    error = refusal(PolicyRefused, server.open, tmp_path / "s.db", link=UNPINNED)
    assert error.reason == "unpinned"
    with server.open(
        tmp_path / "s.db", link=UNPINNED, policy=Policy(allow_unpinned=True)
    ) as client:
        assert client.answer({"affair": "no"}).status == "sent"


def test_a_pinned_survey_seen_before_needs_no_network(tmp_path: Path) -> None:
    server = FakeServer()
    server.open(tmp_path / "s.db").close()
    server.fetched.clear()
    with server.open(tmp_path / "s.db") as client:
        assert client.answer(ANSWERS).status == "sent"
    assert server.fetched == []


def test_an_older_version_is_a_rollback(tmp_path: Path) -> None:
    newer = replace(GOOD, version=2, prev=GOOD.digest)
    FakeServer(document=newer).open(tmp_path / "s.db").close()
    with pytest.raises(RollbackDetected):
        FakeServer().open(tmp_path / "s.db")


def test_two_documents_of_one_version_are_kept_as_evidence(tmp_path: Path) -> None:
    first, second = (
        FakeServer(),
        FakeServer(document=survey(ldp_block(epsilon="0.5"), backstop_block())),
    )
    first.open(tmp_path / "s.db").close()
    with pytest.raises(Equivocation):
        second.open(tmp_path / "s.db")
    store = Store(tmp_path / "s.db")
    assert store.evidence() == {
        first.document.digest: first.envelope,
        second.document.digest: second.envelope,
    }
    store.close()


def test_rotated_keys_are_followed_when_the_old_root_signed_them(tmp_path: Path) -> None:
    FakeServer().open(tmp_path / "s.db").close()
    newer = replace(GOOD, version=2, prev=GOOD.digest)
    rotated = sealed_keys(keys_document(2, publisher=STRANGER), ROOT)
    older = [sealed_keys(keys_document())]
    server = FakeServer(
        document=newer, keys=rotated, older_keys=older, envelope=sealed(newer.payload(), STRANGER)
    )
    server.open(tmp_path / "s.db").close()
    assert any(url.endswith("/v1/keys/chain") for url in server.fetched)


def test_a_withdrawn_publisher_is_noticed_with_the_next_survey(tmp_path: Path) -> None:
    first = FakeServer(document=survey(ldp_block()))
    first.open(tmp_path / "s.db").close()
    rotated = sealed_keys(keys_document(2, publisher=STRANGER))
    second_survey = survey(ldp_block(), survey_id="cd" * 16)
    second = FakeServer(
        document=second_survey, keys=rotated, older_keys=[sealed_keys(keys_document())]
    )
    assert refusal(DocumentRejected, second.open, tmp_path / "s.db").reason == "signature"
    second.older_keys.append(rotated)
    for served in (sealed_keys(keys_document(4)), sealed_keys(keys_document(3), STRANGER)):
        second.keys = served  # skips a version; not signed by the known root
        with pytest.raises(DocumentRejected):
            second.open(tmp_path / "s.db")
    serve = second.get

    def keys_out_of_reach(url: str, limit: int) -> Reply:
        if url.endswith("/v1/keys/chain"):
            raise NetworkError("down")
        return serve(url, limit)

    second.get = keys_out_of_reach  # type: ignore[method-assign]
    with pytest.raises(DocumentRejected) as caught:
        second.open(
            tmp_path / "s.db"
        )  # the newest stored keys count, although their survey was refused
    assert caught.value.reason == "signature"
    third = survey(ldp_block(), survey_id="ef" * 16)
    second.document, second.envelope = third, sealed(third.payload(), STRANGER)
    second.open(tmp_path / "s.db").close()  # these keys verify the new publisher's documents


def test_keys_shipped_with_the_app_take_precedence(tmp_path: Path) -> None:
    shipped = sealed_keys(keys_document(root=STRANGER, publisher=PUBLISHER), STRANGER)
    with FakeServer(keys=shipped).open(tmp_path / "s.db", keys=shipped) as client:
        assert client.survey.signed_by == (PUBLISHER.public.key_id,)
    with pytest.raises(KeyChainError):
        # The server's keys, which signed the survey, do not follow from the shipped ones.
        FakeServer().open(tmp_path / "t.db", keys=shipped)


def test_shipped_keys_never_bring_a_withdrawn_publisher_back(tmp_path: Path) -> None:
    """The app ships version 1; the install has followed the server to version 2, which withdraws
    the publisher."""
    shipped, rotated = (
        sealed_keys(keys_document()),
        sealed_keys(keys_document(2, publisher=STRANGER)),
    )
    newer = survey(ldp_block(), survey_id="cd" * 16)
    server = FakeServer(
        document=newer,
        keys=rotated,
        older_keys=[shipped],
        envelope=sealed(newer.payload(), STRANGER),
    )
    server.open(tmp_path / "s.db", keys=shipped).close()
    stolen = FakeServer(document=survey(ldp_block(), survey_id="ef" * 16), keys=shipped)
    for *older, keys in ([shipped], [shipped, rotated]):
        stolen.older_keys, stolen.keys = older, keys
        with pytest.raises(DocumentRejected):
            stolen.open(tmp_path / "s.db", keys=shipped)
    third = survey(ldp_block(), survey_id="0f" * 16)
    newest = sealed_keys(keys_document(3, publisher=STRANGER))
    later = FakeServer(document=third, keys=newest, older_keys=[shipped, rotated])
    later.envelope = sealed(third.payload(), STRANGER)
    later.open(
        tmp_path / "s.db", keys=shipped
    ).close()  # versions follow one by one from the shipped version


def test_keys_trusted_on_first_use_are_ignored_if_the_app_ships_keys(tmp_path: Path) -> None:
    foreign = sealed_keys(keys_document(root=STRANGER, publisher=STRANGER), STRANGER)
    first = FakeServer(document=survey(ldp_block()), keys=foreign)
    first.envelope = sealed(first.document.payload(), STRANGER)
    first.open(tmp_path / "s.db").close()
    second = FakeServer(document=survey(ldp_block(), survey_id="cd" * 16))
    second.envelope = sealed(second.document.payload(), STRANGER)
    with pytest.raises(DocumentRejected):
        second.open(tmp_path / "s.db", keys=sealed_keys(keys_document()))


PAGES = [
    (Reply(200, "text/html", None, b"<html>hotel wifi</html>"), "not_json"),
    (Reply(503, "application/json", None, b"{}"), "status"),
    (Reply(301, "text/html", None, b""), "status"),
    (Reply(404, "application/problem+json", None, b"{}"), "not_found"),
]


@pytest.mark.parametrize(("page", "code"), PAGES, ids=[code for _, code in PAGES])
@pytest.mark.parametrize("path", ["/v1/keys", "/document"])
def test_a_reply_that_is_not_a_document_is_a_network_error(
    page: Reply, code: str, path: str, tmp_path: Path
) -> None:
    server = FakeServer()
    serve = server.get
    server.get = lambda url, limit: page if path in url else serve(url, limit)  # type: ignore[method-assign]
    assert refusal(NetworkError, server.open, tmp_path / "s.db").code == code
    assert server.posted == []


# True if the link has a pin -> hint if the server has no such document.
UNKNOWN = {
    True: "or not this version of it: copy all of the link",
    False: "check that the link is complete",
}


@pytest.mark.parametrize("pinned", UNKNOWN)
def test_an_unknown_document_is_explained_by_what_the_link_names(
    pinned: bool, tmp_path: Path
) -> None:
    server = FakeServer()
    serve, missing = server.get, problem(404, "not_found")
    server.get = lambda url, limit: missing if "/document" in url else serve(url, limit)  # type: ignore[method-assign]
    options = {} if pinned else {"link": UNPINNED, "policy": Policy(allow_unpinned=True)}
    error = refusal(NetworkError, server.open, tmp_path / "s.db", **options)
    assert error.code == "not_found"
    assert UNKNOWN[pinned] in error.detail
    assert UNKNOWN[not pinned] not in error.detail


def test_without_a_pin_the_remembered_document_serves_while_the_server_is_out_of_reach(
    tmp_path: Path,
) -> None:
    server = FakeServer(document=survey(ldp_block()))
    options: dict[str, Any] = {"link": UNPINNED, "policy": Policy(allow_unpinned=True)}
    server.open(tmp_path / "s.db", **options).close()

    def down(url: str, _limit: int) -> Reply:
        raise NetworkError(url)

    server.get = down  # type: ignore[assignment, method-assign]
    with server.open(tmp_path / "s.db", **options) as client:
        assert client.answer({"affair": "no"}).status == "sent"


def test_only_keys_with_a_valid_signature_are_named(tmp_path: Path) -> None:
    """An invalid signature with the id of a trusted key is neither counted nor shown."""
    issued = keys_document()
    both = replace(issued, publisher=Role((PUBLISHER.public, STRANGER.public), 1))
    envelope = Envelope.from_bytes(sealed(GOOD.payload()), SURVEY_TYPE)
    forged = replace(
        envelope, signatures=(*envelope.signatures, Signature(STRANGER.public.key_id, b"x" * 64))
    )
    with FakeServer(keys=sealed_keys(both), envelope=forged.to_bytes()).open(
        tmp_path / "s.db"
    ) as client:
        assert client.survey.signed_by == (PUBLISHER.public.key_id,)


def test_expired_keys_are_replaced_and_an_expired_survey_needs_no_new_ones(tmp_path: Path) -> None:
    server = FakeServer()
    server.open(tmp_path / "s.db").close()
    server.fetched.clear()
    with pytest.raises(ClockError) as caught:
        server.open(tmp_path / "s.db", clock=FixedClock(NOW + timedelta(days=31)))
    assert (caught.value.field, server.fetched) == ("closes", [])
    with pytest.raises(ClockError) as caught:
        server.open(tmp_path / "s.db", clock=FixedClock(NOW + timedelta(days=301)))
    assert caught.value.field == "expires"
    assert [url.rpartition("/")[2] for url in server.fetched] == ["chain"]


def test_without_a_log_check_the_log_is_not_mentioned() -> None:
    accepted = accept_survey(
        sealed(GOOD.payload()),
        SurveyLink("https://collect.example", GOOD.survey, None),
        Role((PUBLISHER.public,), 1),
        None,
        NOW,
    )
    assert not accepted.logged
