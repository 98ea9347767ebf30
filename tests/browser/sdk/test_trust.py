# SPDX-License-Identifier: Apache-2.0
"""Trust without a pin: links with a log, tokens from an external issuer, and requests through a relay."""

import base64
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from frankly_protocol.errors import FranklyError
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust import write_chain
from frankly_protocol.trust.tokens import check_token, encode_token
from playwright.sync_api import Page

from tests.browser.sdk.wire import Wire, program, running
from tests.frankly_protocol.samples import NOW, ldp_block, sealed, sealed_keys, survey
from tests.frankly_protocol.samples import keys_document as plain_keys
from tests.frankly_protocol.trust.samples import FakeLog, role, spki

AT = int(NOW.timestamp() * 1000)
SURVEY = "ab" * 16
OPEN, TRY = program("open"), program("try")


def tried(page: Page, link: str, **options: Any) -> Any:
    """Open a survey in a new client; return None, or the code of the error."""
    page.evaluate("window.client?.close()")
    return page.evaluate(
        TRY, {"code": OPEN, "given": {"link": link, "at": AT, "options": options}}
    ).get("code")


@dataclass
class Logged:
    """A survey with an unpinned link and a log; tests change both between two visits."""

    wire: Wire
    log: FakeLog = field(
        default_factory=lambda: FakeLog(["sha256:" + "11" * 32, "sha256:" + "22" * 32])
    )
    role: Any = field(default_factory=role)
    witnesses: tuple[str, ...] = ("w0.example", "w1.example", "w2.example")

    def __post_init__(self) -> None:
        self.link = self.wire.publish().partition("#")[0]
        self.digest = self.wire.documents[SURVEY].digest
        self.log.digests.append(self.digest)
        self.serve()

    def serve(self) -> None:
        """Serve the current document, keys and log."""
        tree, answers = self.log.tree(), self.wire.answers
        answers["/v1/keys"] = (
            "application/json",
            sealed_keys(replace(plain_keys(), log=self.role)),
        )
        proof = (
            self.log.proof(self.digest, self.witnesses) if self.digest in self.log.digests else None
        )
        answers[f"/v1/log/proof/{self.digest}"] = (
            "text/plain",
            proof.to_bytes() if proof else None,
        )
        answers["/v1/log/leaves"] = ("application/octet-stream", b"".join(tree.leaves(tree.size)))


@pytest.fixture
def logged(wire: Wire) -> Logged:
    return Logged(wire)


def test_a_witnessed_log_replaces_a_pin(page: Page, logged: Logged) -> None:
    assert (
        tried(page, logged.link, policy={"maxCeiling": "1"}) == "policy_ceiling"
    )  # the table was designed for a prior
    logged.wire.publish(survey(ldp_block()))
    logged.digest = logged.wire.documents[SURVEY].digest
    logged.log.digests.append(logged.digest)
    logged.serve()
    assert tried(page, logged.link, store="fresh") is None
    assert page.evaluate("client.trust") == {"pinned": False, "logged": True}
    logged.wire.requests.clear()
    logged.log.digests.append("sha256:" + "33" * 32)
    logged.serve()
    assert tried(page, logged.link, store="fresh") is None  # needs all leaves: the log has grown
    log_paths = [path for path, _ in logged.wire.requests if path.startswith("/v1/log/")]
    assert log_paths == [f"/v1/log/proof/{logged.digest}", "/v1/log/leaves?size=5"]
    assert page.evaluate("client.answer({affair: 'yes'})")["status"] == "sent"
    assert len(logged.wire.stored) == 1


def void(_value: object) -> None:
    """Discard a value, so that a lambda returns None."""


# Fault of the log -> the error's code on a new install.
UNWATCHED: dict[str, tuple[Callable[[Logged], None], str]] = {
    "one witness of the two needed": (
        lambda s: setattr(s, "witnesses", ("w2.example",)),
        "document_log",
    ),
    "witnesses of a month ago": (
        lambda s: setattr(s.log, "signed_at", NOW - timedelta(days=31)),
        "document_log",
    ),
    "witnesses of tomorrow": (
        lambda s: setattr(s.log, "signed_at", NOW + timedelta(days=1)),
        "document_log",
    ),
    "all three are needed, two saw it": (
        lambda s: void((setattr(s, "role", role(3)), setattr(s, "witnesses", s.witnesses[:2]))),
        "document_log",
    ),
    "another log's name": (lambda s: setattr(s.log, "origin", "other.example"), "document_log"),
    "no such entry": (lambda s: s.log.digests.remove(s.digest), "not_found"),
    "no log at all": (lambda s: setattr(s, "role", None), "policy_ceiling"),
    "a log without witnesses": (
        lambda s: setattr(s, "role", role(0, witnesses=0)),
        "policy_ceiling",
    ),
}


@pytest.mark.parametrize("name", UNWATCHED)
def test_a_log_that_fails_verification_opens_no_survey(
    page: Page, logged: Logged, name: str
) -> None:
    act, code = UNWATCHED[name]
    act(logged)
    logged.serve()
    assert tried(page, logged.link) == code
    assert logged.wire.posted == []


def test_a_proof_of_another_place_is_refused(page: Page, logged: Logged) -> None:
    logged.wire.answers[f"/v1/log/proof/{logged.digest}"] = (
        "text/plain",
        logged.log.proof(logged.digest).to_bytes().replace(b"index 2", b"index 1"),
    )
    assert tried(page, logged.link) == "document_log"


def test_a_log_that_shrinks_or_forks_is_remembered_as_evidence(page: Page, logged: Logged) -> None:
    logged.wire.publish(survey(ldp_block()))
    logged.digest = logged.wire.documents[SURVEY].digest
    logged.log.digests.append(logged.digest)
    logged.serve()
    assert tried(page, logged.link) is None
    before = list(logged.log.digests)
    for digests, evidence in (
        (before[1:], 0),
        (["sha256:" + "55" * 32, *before[1:], "sha256:" + "66" * 32], 2),
    ):
        logged.log.digests[:] = digests
        logged.serve()
        assert tried(page, logged.link) == "document_version"
        count = """import("/sdk/store.js").then(({Store}) => Store.open("frankly")).then(async (store) => {
          const pieces = await store.evidence();
          store.backend.close();
          return pieces.length;
        })"""
        assert page.evaluate(count) == evidence
    logged.log.digests[:] = [*before, "sha256:" + "66" * 32]
    logged.serve()
    assert tried(page, logged.link) is None


ISSUER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
STRANGER = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)


def issued(
    key: rsa.RSAPrivateKey = ISSUER,
    survey_id: str = SURVEY,
    salt: int = 48,
    digest: Any = None,
    context: bytes = b"",
) -> str:
    """Return a token: an ordinary PSS signature, computed independently from docs/protocol.md §10."""
    digest, prefix, nonce = (
        digest or hashes.SHA384(),
        secrets.token_bytes(32),
        secrets.token_bytes(32),
    )
    message = prefix + (context or b"frankly.token/1\0") + bytes.fromhex(survey_id) + nonce
    return encode_token(
        prefix + nonce + key.sign(message, padding.PSS(padding.MGF1(digest), salt), digest)
    )


def respelt(token: str) -> str:
    """Encode the same bytes with different unused bits in the last character, which servers refuse."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + alphabet[alphabet.index(token[-1]) + 1]


INVITE, BLIND = TokenRule("invite"), TokenRule("rsa-pss", spki(ISSUER))
GOOD_INVITE, GOOD_BLIND = encode_token(bytes(range(32))), issued()
TOKENS: list[tuple[TokenRule | None, str | None]] = [
    (None, None), (None, GOOD_INVITE), (INVITE, None), (INVITE, ""), (INVITE, "x"), (INVITE, GOOD_INVITE),
    (INVITE, GOOD_INVITE + "="), (INVITE, respelt(GOOD_INVITE)), (INVITE, encode_token(bytes(31))),
    (INVITE, base64.b64encode(b"\xff" * 32).decode().rstrip("=")), (INVITE, GOOD_BLIND), (BLIND, None),
    (BLIND, GOOD_BLIND), (BLIND, GOOD_INVITE), (BLIND, issued(STRANGER)), (BLIND, issued(survey_id="cd" * 16)),
    (BLIND, issued(salt=32)), (BLIND, issued(digest=hashes.SHA256(), salt=48)), (BLIND, GOOD_BLIND[:-4]),
    (BLIND, issued(context=b"frankly.token/2\0")), (BLIND, GOOD_BLIND + "AAAA"), (BLIND, respelt(GOOD_BLIND)),
    (TokenRule("rsa-pss", spki(SMALL)), issued(SMALL)), (TokenRule("rsa-pss", "A" * 64), GOOD_BLIND),
]  # fmt: skip


def test_tokens_are_judged_as_python_judges_them(page: Page) -> None:
    expected: list[str | None] = []
    for rule, token in TOKENS:
        try:
            check_token(rule, SURVEY, token)
            expected.append(None)
        except FranklyError as error:
            expected.append(error.code)
    assert expected.count(None) == 3
    by_browser = page.evaluate(
        """async (cases) => {
          const {checkToken} = await import("/sdk/tokens.js"), said = [];
          for (const [token, given] of cases) {
            const judged = token || given !== null; // otherwise the client does not even ask
            const ask = async () => judged && checkToken({token, survey: "ab".repeat(16)}, given);
            said.push(await ask().then(() => null, (error) => error.code));
          }
          return said;
        }""",
        [[rule.to_json() if rule else None, token] for rule, token in TOKENS],
    )
    assert by_browser == expected


def test_a_token_of_an_outside_issuer_opens_the_survey_and_is_sent_with_the_report(
    page: Page, wire: Wire
) -> None:
    link = wire.publish(replace(survey(ldp_block()), token=BLIND))
    assert tried(page, link) is None
    answer = (
        "(token) => client.answer({affair: 'yes'}, {token}).then((receipt) => receipt.status, "
        "(error) => error.code)"
    )
    for token in (None, issued(STRANGER), 7):
        assert page.evaluate(answer, token) == "token_invalid"
    assert (wire.posted, page.evaluate("client.store.outbox()")) == ([], [])
    assert page.evaluate(answer, GOOD_BLIND) == "sent"
    assert f'"token":"{GOOD_BLIND}"'.encode() in wire.posted[0]
    assert len(wire.posted[0]) == wire.documents[SURVEY].report_length


@pytest.fixture
def behind(wire: Wire) -> Iterator[Wire]:
    """A survey server on another origin that the page's policy blocks."""
    with running(Wire()) as server_wire:
        yield server_wire


def test_through_a_relay_nothing_goes_to_the_server_itself(
    page: Page, wire: Wire, behind: Wire
) -> None:
    link = behind.publish(survey(ldp_block()))
    wire.answers["/relay/v1/keys/chain"] = (
        "application/json",
        write_chain([sealed_keys(plain_keys())]),
    )
    payload = behind.documents[SURVEY].payload()
    wire.answers[f"/relay/v1/surveys/{SURVEY}/document"] = ("application/json", sealed(payload))
    assert tried(page, link) == "network"  # the policy blocks the server without a relay
    wire.requests.clear()
    assert tried(page, link, relay=f"{wire.origin}/relay/") is None
    assert page.evaluate("client.answer({affair: 'yes'})")["status"] == "sent"
    paths = [path.partition("?")[0] for path, _ in wire.requests if not path.startswith("/sdk/")]
    assert paths == [
        "/relay/v1/keys/chain",
        f"/relay/v1/surveys/{SURVEY}/document",
        f"/relay/v1/surveys/{SURVEY}/reports",
    ]
    assert (behind.requests, behind.posted) == ([], [])
    for relay in ("http://relay.example/", "https://me:word@relay.example/", "relay"):
        assert tried(page, link, relay=relay) in ("insecure_transport", "link")
