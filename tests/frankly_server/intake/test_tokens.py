# SPDX-License-Identifier: Apache-2.0
"""Tokens: one token admits one report, despite races and resends, and no stored data links the two."""

import hashlib
import secrets
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.tokens import TokenRule
from frankly_protocol.trust.tokens import (
    InviteVerifier,
    RsaPssVerifier,
    encode_token,
    token_message,
)
from frankly_server.intake import Intake, invites
from frankly_server.intake.invites import InviteCounts, Invites
from frankly_server.intake.throttle import Throttle, TooManyOfSource
from frankly_server.store import Database

from tests.frankly_protocol.samples import NOW, ldp_block, question, survey
from tests.frankly_protocol.trust.samples import spki
from tests.frankly_server.samples import put, report, spent
from tests.refusals import refusal

SURVEY, OTHER = "ab" * 16, "cd" * 16
ISSUER = rsa.generate_private_key(public_exponent=65537, key_size=2048)


INVITE, BLIND = TokenRule("invite"), TokenRule("rsa-pss", spki(ISSUER))


def with_rule(rule: TokenRule | None, survey_id: str = SURVEY) -> SurveyDocument:
    return replace(survey(ldp_block(), survey_id=survey_id), token=rule)


def issued(survey_id: str = SURVEY, key: Any = ISSUER, salt: int = 48, digest: Any = None) -> str:
    """Return a token after unblinding: an ordinary PSS signature over prefix and message."""
    digest = digest or hashes.SHA384()
    prefix, nonce = secrets.token_bytes(32), secrets.token_bytes(32)
    message = prefix + token_message(survey_id, nonce)
    signature = key.sign(message, padding.PSS(padding.MGF1(digest), salt), digest)
    return encode_token(prefix + nonce + signature)


def send(
    intake: Intake,
    document: SurveyDocument,
    token: str | None,
    report_id: str | None = None,
    symbol: int = 0,
) -> str:
    """Send one report; return its status or the code of its refusal."""
    body = replace(report(document, symbol, report_id=report_id), token=token).to_bytes(
        document.report_length
    )
    try:
        return intake.accept(document.survey, body).status
    except InvalidInput as refused:
        return refused.code


def kept(database: Database, survey_id: str = SURVEY) -> tuple[int, int]:
    """Return the numbers of stored reports and of spent tokens."""
    with database.reading("test") as tx:
        return tx.reports.accepted(survey_id), spent(database, survey_id)


@pytest.fixture
def intake(database: Database) -> Intake:
    return Intake(database, FixedClock(NOW))


def test_an_invite_opens_its_survey_once(database: Database, intake: Intake) -> None:
    document, other = put(database, with_rule(INVITE)), put(database, with_rule(INVITE, OTHER))
    first, second = Invites(database).make(SURVEY, 2)
    (foreign,) = Invites(database).make(OTHER, 1)
    outcomes = [
        send(intake, document, first, "1" * 32), send(intake, document, first, "1" * 32),
        send(intake, document, first, "2" * 32), send(intake, document, None), send(intake, document, "x"),
        send(intake, document, encode_token(b"\0" * 32)), send(intake, document, foreign),
        send(intake, document, second, "1" * 32, symbol=1), send(intake, document, second, "3" * 32),
        send(intake, other, foreign),
    ]  # fmt: skip
    assert outcomes == [
        "accepted", "duplicate", "token_spent", "token_invalid", "token_invalid", "token_invalid", "token_foreign",
        "id_conflict", "accepted", "accepted",
    ]  # fmt: skip
    assert kept(database) == (2, 2)
    assert kept(database, OTHER) == (1, 1)


def test_a_token_of_an_outside_issuer_opens_its_survey_once(
    database: Database, intake: Intake
) -> None:
    document = put(database, with_rule(BLIND))
    token = issued()
    assert [send(intake, document, token, c * 32) for c in "112"] == [
        "accepted",
        "duplicate",
        "token_spent",
    ]
    stranger = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    bad = [
        issued(OTHER),
        issued(key=stranger),
        issued(salt=32),
        issued(digest=hashes.SHA256()),
        token[:-4],
        token + "AAAA",
    ]
    assert {send(intake, document, one) for one in bad} == {"token_invalid"}
    raw = bytearray(_raw(issued()))
    raw[40] ^= 1
    assert send(intake, document, encode_token(bytes(raw))) == "token_invalid"
    assert kept(database) == (1, 1)


def _raw(token: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))


def test_a_survey_without_a_rule_accepts_no_token(database: Database, intake: Intake) -> None:
    document = put(database, survey(ldp_block(), survey_id=SURVEY))
    body = replace(report(document, 0), token="abc").to_bytes(0)
    assert refusal(InvalidInput, intake.accept, SURVEY, body).code == "token_invalid"


@pytest.mark.parametrize("rule", [INVITE, BLIND], ids=["invite", "issuer"])
def test_one_token_and_many_racing_reports_make_one(
    database: Database, rule: TokenRule, full: bool
) -> None:
    document = put(database, with_rule(rule))
    token = Invites(database).make(SURVEY, 1)[0] if rule is INVITE else issued()
    doors = [Intake(database, FixedClock(NOW)) for _ in range(4)]
    racing = 64 if full else 24
    with ThreadPoolExecutor(8) as pool:
        code_counts = Counter(
            pool.map(lambda i: send(doors[i % 4], document, token, f"{i:032x}"), range(racing))
        )
    assert code_counts == {"accepted": 1, "token_spent": racing - 1}
    assert kept(database) == (1, 1)


def test_the_same_report_racing_with_itself_spends_one_token(
    database: Database, full: bool
) -> None:
    document = put(database, with_rule(INVITE))
    doors = [Intake(database, FixedClock(NOW)) for _ in range(4)]
    for round_ in range(10 if full else 3):
        (token,) = Invites(database).make(SURVEY, 1)
        with ThreadPoolExecutor(8) as pool:
            code_counts = Counter(
                pool.map(lambda i: send(doors[i % 4], document, token, f"{round_:032x}"), range(16))  # noqa: B023
            )  # noqa: B023, RUF100
        assert code_counts == {"accepted": 1, "duplicate": 15}
        assert kept(database) == (round_ + 1,) * 2


def test_a_batch_spends_exactly_the_tokens_of_stored_reports(
    database: Database, intake: Intake
) -> None:
    document = put(database, with_rule(INVITE))
    tokens = Invites(database).make(SURVEY, 4)
    send(intake, document, tokens[3], "f" * 32)

    def one(name: str, token: str | None, symbol: int = 0) -> bytes:
        return replace(report(document, symbol, report_id=name * 32), token=token).to_bytes(0)

    batch = [one("1", tokens[0]), one("1", tokens[0]), one("2", tokens[0]), one("3", tokens[1]), one("4", tokens[3]),
             one("5", None), one("f", tokens[3]), one("f", tokens[2], symbol=1), one("6", tokens[2])]  # fmt: skip
    codes = [
        getattr(o, "status", None) or getattr(o, "code", None)
        for o in intake.accept_batch(SURVEY, batch)
    ]
    assert codes == ["accepted", "duplicate", "token_spent", "accepted", "token_spent", "token_invalid", "duplicate",
                     "id_conflict", "accepted"]  # fmt: skip
    assert kept(database) == (4, 4)


def test_nothing_stored_links_a_token_to_a_report(database: Database, intake: Intake) -> None:
    document = put(database, with_rule(INVITE))
    tokens = Invites(database).make(SURVEY, 3)
    for i, token in enumerate(tokens):
        assert send(intake, document, token, f"{i:032x}") == "accepted"
    with database.engine.connect() as connection:
        for table in ("reports", "batches", "batch_counts", "day_counts", "tokens"):
            table_text = repr(connection.exec_driver_sql(f"SELECT * FROM {table}").all())
            assert not any(token in table_text for token in tokens)
            if table != "tokens":
                assert not any(
                    hashlib.sha256(_raw(token)).hexdigest()[:16] in table_text for token in tokens
                )
        columns = set(connection.exec_driver_sql("SELECT * FROM tokens").keys())
    assert columns == {"survey", "hash", "spent", "settled", "source", "revoked"}


BAD_KEYS: list[Callable[[], str]] = [
    lambda: spki(rsa.generate_private_key(public_exponent=65537, key_size=1024)),
    lambda: spki(ec.generate_private_key(ec.SECP256R1())),
    lambda: "A" * 100, lambda: "*" * 100, lambda: spki(ISSUER)[:-2], lambda: "é" * 80,
]  # fmt: skip


@pytest.mark.parametrize("make", BAD_KEYS, ids=range(len(BAD_KEYS)))
def test_an_issuers_key_is_rsa_of_two_to_four_thousand_bits(make: Callable[[], str]) -> None:
    with pytest.raises(InvalidInput):
        RsaPssVerifier(make())


@pytest.mark.parametrize(
    "token", ["", "A", "AA", "é", "A" * 42, "A" * 44, "=" * 43, "A" * 42 + "B", " " + "A" * 42]
)
def test_a_token_has_one_encoding(token: str) -> None:
    with pytest.raises(InvalidInput):
        InviteVerifier().spend_hash(SURVEY, token)


@pytest.mark.parametrize(("survey_name", "count", "code"), [("nobody", 1, "survey_unknown"), (SURVEY, 0, "field_type"),
                         (SURVEY, 100_001, "field_type")])  # fmt: skip
def test_invites_need_an_existing_survey_and_a_valid_count(
    database: Database, survey_name: str, count: int, code: str
) -> None:
    put(database, with_rule(INVITE))
    with pytest.raises(InvalidInput) as refused:
        Invites(database).make(survey_name, count)
    field = "survey" if code == "survey_unknown" else "count"
    assert (refused.value.code, refused.value.field) == (code, field)


@pytest.mark.parametrize(
    ("bits", "is_key"), [(2047, False), (2048, True), (4096, True), (4097, False)]
)
def test_an_issuer_s_key_has_2048_to_4096_bits(bits: int, is_key: bool) -> None:
    public = rsa.RSAPublicNumbers(65537, (1 << (bits - 1)) + 1).public_key()
    key = encode_token(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    if is_key:
        RsaPssVerifier(key)
        return
    assert refusal(InvalidInput, RsaPssVerifier, key).field == "token.key"


def test_the_largest_number_of_invites_in_the_message_is_accepted(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(sqlite, with_rule(INVITE))
    monkeypatch.setattr(invites, "MAX_INVITES", 3)
    assert len(set(Invites(sqlite).make(SURVEY, 3))) == 3
    with pytest.raises(InvalidInput, match="1 to 3 invitations"):
        Invites(sqlite).make(SURVEY, 4)


def with_sources() -> SurveyDocument:
    """Return a survey with invites of a class and of a list, and tokens of a panel's own issuer."""
    rules = {"class": INVITE, "list": INVITE, "panel": BLIND}
    document = survey(ldp_block(), survey_id=SURVEY)
    rule = TokenRule("sources", question="came", rules=rules)
    return replace(document, strata=(question("came", *rules),), token=rule)


def sent_from(document: SurveyDocument, source: str, token: str | None) -> bytes:
    sent = replace(report(document, 0), token=token, strata={"came": source})
    return sent.to_bytes(document.report_length)


def send_from(intake: Intake, document: SurveyDocument, source: str, token: str | None) -> str:
    try:
        return intake.accept(SURVEY, sent_from(document, source, token)).status
    except InvalidInput as refused:
        return refused.code


def test_a_token_counts_for_its_own_source_only(database: Database, intake: Intake) -> None:
    document, service = put(database, with_sources()), Invites(database)
    (of_class,), (of_list,) = (service.make(SURVEY, 1, source=name) for name in ("class", "list"))
    assert [
        send_from(intake, document, "list", of_class),
        send_from(intake, document, "panel", of_class),
        send_from(intake, document, "class", issued()),
        send_from(intake, document, "class", of_class),
        send_from(intake, document, "list", of_class),
        send_from(intake, document, "class", of_class),
        send_from(intake, document, "list", of_list),
        send_from(intake, document, "panel", panel := issued()),
        send_from(intake, document, "panel", panel),
        send_from(intake, document, "other", issued()),
        send_from(intake, document, "list", None),
    ] == [
        *("token_foreign", "token_invalid", "token_invalid", "accepted", "token_foreign"),
        *("token_spent", "accepted", "accepted", "token_spent", "strata_invalid", "token_invalid"),
    ]
    assert kept(database) == (3, 3)
    assert service.counts(SURVEY) == {
        name: InviteCounts(1, 1) for name in ("class", "list", "panel")
    }
    assert service.total(SURVEY) == InviteCounts(3, 3)


def test_invites_are_made_and_revoked_by_source(database: Database) -> None:
    put(database, with_sources())
    service = Invites(database)
    for source, problem in (("", "field_missing"), ("panel", "field_type"), ("x", "field_type")):
        refused = refusal(InvalidInput, service.make, SURVEY, 1, source=source)
        assert (refused.code, refused.field, "class, list" in refused.detail) == (
            problem,
            "source",
            True,
        )
    for source, n in (("class", 2), ("list", 3)):
        service.make(SURVEY, n, source=source)
    service.revoke(SURVEY, None, source="list")
    assert service.counts(SURVEY) == {"class": InviteCounts(2, 0), "list": InviteCounts(3, 0)}
    put(database, with_rule(INVITE, OTHER))
    assert refusal(InvalidInput, service.make, OTHER, 1, source="class").code == "field_unknown"


def test_reports_of_one_source_wait_while_those_of_others_are_stored(database: Database) -> None:
    document, now = put(database, with_sources()), [0.0]
    intake = Intake(database, FixedClock(NOW), Throttle(0.2, lambda: now[0]))
    tokens = {name: Invites(database).make(SURVEY, 4, source=name) for name in ("class", "list")}
    assert [send_from(intake, document, "class", one) for one in tokens["class"][:3]] == [
        *("accepted", "accepted", "too_many")
    ]
    assert send_from(intake, document, "list", tokens["list"][0]) == "accepted"
    held = sent_from(document, "class", tokens["class"][2])
    for at in (0.0, 1.0, 4.9):
        now[0] = at
        # The same wait whenever others of the source have answered.
        assert refusal(TooManyOfSource, intake.accept, SURVEY, held).retry_after_s == 5
        # Nobody without a token sees that the source is at its limit, or uses it up.
        assert send_from(intake, document, "class", encode_token(b"0" * 32)) == "token_invalid"
        assert send_from(intake, document, "class", tokens["class"][0]) == "token_spent"
    first = replace(report(document, 1, report_id="1" * 32), token=tokens["class"][3])
    now[0] = 5.0
    body = replace(first, strata={"came": "class"}).to_bytes(document.report_length)
    assert intake.accept(SURVEY, body).status == "accepted"
    assert intake.accept(SURVEY, body).status == "duplicate"
    assert refusal(TooManyOfSource, intake.accept, SURVEY, held).retry_after_s == 5
    now[0] = 10.0
    assert intake.accept(SURVEY, held).status == "accepted"
    assert kept(database) == (5, 5)


def test_a_blind_token_that_had_to_wait_is_still_good(database: Database) -> None:
    document, now = put(database, with_sources()), [0.0]
    intake = Intake(database, FixedClock(NOW), Throttle(0.1, lambda: now[0]))
    first, second = (sent_from(document, "panel", issued()) for _ in range(2))
    assert intake.accept(SURVEY, first).status == "accepted"
    assert refusal(TooManyOfSource, intake.accept, SURVEY, second).code == "too_many"
    assert kept(database) == (1, 1)
    now[0] = 10.0
    assert intake.accept(SURVEY, second).status == "accepted"
    assert kept(database) == (2, 2)


def test_in_a_batch_too_a_token_counts_for_its_own_source_only(
    database: Database, intake: Intake
) -> None:
    """Whichever comes first: the report of another source does not take the place of the right one."""
    document = put(database, with_sources())
    for sources in (("list", "class"), ("class", "list"), ("panel", "class")):
        (token,) = Invites(database).make(SURVEY, 1, source="class")
        results = intake.accept_batch(SURVEY, [sent_from(document, one, token) for one in sources])
        codes = [getattr(one, "status", None) or getattr(one, "code", None) for one in results]
        wrong = "token_invalid" if "panel" in sources else "token_foreign"
        assert dict(zip(sources, codes, strict=True)) == {
            "class": "accepted",
            next(one for one in sources if one != "class"): wrong,
        }
    with database.engine.connect() as connection:
        strata = connection.exec_driver_sql("SELECT DISTINCT strata FROM reports").scalars().all()
    assert strata == ['{"came":"class"}']


def test_revoking_does_not_tell_how_many_were_used(database: Database, intake: Intake) -> None:
    document, service = put(database, with_sources()), Invites(database)
    used, unused = service.make(SURVEY, 2, source="class")
    assert send_from(intake, document, "class", used) == "accepted"
    service.revoke(SURVEY, None, source="class")
    assert service.counts(SURVEY) == {"class": InviteCounts(2, 1)}
    assert send_from(intake, document, "class", unused) == "token_invalid"
    assert send_from(intake, document, "class", used) == "token_spent"


def test_a_release_keeps_the_sources_of_spent_tokens(database: Database, intake: Intake) -> None:
    document, service = put(database, with_sources()), Invites(database)
    for source in ("class", "list"):
        for token in service.make(SURVEY, 3, source=source):
            assert send_from(intake, document, source, token) == "accepted"
    with database.transaction("release") as tx:
        tx.releases.release(
            SURVEY, document.digest, 1, "2026-06-02T00:00:00Z", is_over=lambda: True
        )
    assert service.counts(SURVEY) == {name: InviteCounts(3, 3) for name in ("class", "list")}
