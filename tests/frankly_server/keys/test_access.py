# SPDX-License-Identifier: Apache-2.0
"""API keys: shown once, stored as hashes, and invalid after revocation (bad input 44)."""

import re

import pytest
from frankly_protocol.clock import FixedClock
from frankly_protocol.errors import InvalidInput
from frankly_server.accounts import ROLES as ACCOUNT_ROLES
from frankly_server.accounts import may
from frankly_server.keys import Access, Principal
from frankly_server.keys.access import ROLES, link_secret
from frankly_server.store import Database

from tests.frankly_protocol.samples import NOW
from tests.refusals import refusal


def test_a_key_opens_its_role(database: Database) -> None:
    access = Access(database, FixedClock(NOW))
    for role in ("admin", "analyst"):
        token = access.create(role, "for the tests 🙂")
        assert re.fullmatch(r"frankly_live_[A-Za-z0-9_-]{43}", token)
        assert access.authenticate(token) == Principal(role, token[13:21])
    assert [(row.role, row.created) for row in access.list()].count(
        ("admin", "2026-06-01T12:00:00Z")
    ) == 1


def test_only_the_hash_is_stored(database: Database) -> None:
    access = Access(database, FixedClock(NOW))
    token = access.create("admin", "x")
    with database.engine.connect() as connection:
        stored_text = repr(connection.exec_driver_sql("SELECT * FROM api_keys").all())
    assert token[21:] not in stored_text
    assert token[21:] not in repr(access.list())


def test_a_revoked_key_opens_nothing(database: Database) -> None:
    access = Access(database, FixedClock(NOW))
    token, other_token = access.create("admin", "x"), access.create("admin", "y")
    access.revoke(token[13:21])
    assert refusal(InvalidInput, access.authenticate, token).code == "unauthenticated"
    assert access.authenticate(other_token).role == "admin"
    assert refusal(InvalidInput, access.revoke, token[13:21]).code == "not_found"


def test_every_wrong_key_gets_the_same_answer(sqlite: Database) -> None:
    access = Access(sqlite, FixedClock(NOW))
    token = access.create("admin", "x")
    flipped = token[:-1] + ("A" if token[-1] != "A" else "B")
    wrong = [
        "",
        "x",
        token[:-1],
        token + "A",
        flipped,
        token.upper(),
        "frankly_live_" + "A" * 43,
        "\ud800",
        token + "\n",
    ]
    answers = set()
    for guess in wrong:
        with pytest.raises(InvalidInput) as refused:
            access.authenticate(guess)
        answers.add((refused.value.code, str(refused.value)))
    assert len(answers) == 1


@pytest.mark.parametrize(
    ("role", "label", "code"),
    [
        ("root", "x", "field_type"),
        ("", "x", "field_type"),
        ("admin", "", "field_type"),
        ("admin", "x" * 201, "field_type"),
        ("admin", "a\x00b", "text_characters"),
        ("admin", "a\u202eb", "text_characters"),
        ("admin", "a\ud800", "text_characters"),
    ],
)
def test_invalid_keys_are_not_created(sqlite: Database, role: str, label: str, code: str) -> None:
    access = Access(sqlite, FixedClock(NOW))
    assert refusal(InvalidInput, access.create, role, label).code == code
    assert access.list() == []


READERS: dict[str, tuple[list[str], str | None]] = {
    "one survey": (["0" * 32], None),
    "no survey, which would be all": ([], "surveys"),
    "two surveys": (["0" * 32, "1" * 32], "surveys"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_has_exactly_one_survey(database: Database, name: str) -> None:
    access = Access(database, FixedClock(NOW))
    surveys, field = READERS[name]
    if field is None:
        token = access.create("reader", "x", "theirs", surveys)
        principal = Principal("reader", token[13:21], "theirs", tuple(surveys))
        assert access.authenticate(token) == principal == access.authenticate_link(token[13:])
        assert link_secret(token) == token[13:]
        return
    before = access.list()
    refused = refusal(InvalidInput, access.create, "reader", "x", "theirs", surveys)
    assert (refused.code, refused.field) == ("field_type", field)
    assert access.list() == before


def test_only_readers_keys_are_links(sqlite: Database) -> None:
    """Wrong links and keys of other roles get the same refusal."""
    access = Access(sqlite, FixedClock(NOW))
    reader = access.create("reader", "x", surveys=["0" * 32])
    others = [access.create(role, "x", surveys=["0" * 32]) for role in ROLES[1:]]
    access.revoke(reader[13:21])
    wrong = [reader[13:], *(key[13:] for key in others), others[0], "", "A" * 43, "\ud800" * 43]
    details = {refusal(InvalidInput, access.authenticate_link, one).detail for one in wrong}
    assert len(details) == 1


def test_a_reader_has_less_rights_than_everybody_else(sqlite: Database) -> None:
    """Whoever may manage keys may give and withdraw links; a reader has no role of the accounts."""
    access = Access(sqlite, FixedClock(NOW))
    for most in ROLES:
        token = access.create("reader", "x", surveys=["0" * 32], most=most)
        access.revoke(token[13:21], most=most)
    made = access.create("analyst", "x")
    refused = refusal(InvalidInput, access.create, "analyst", "x", most="reader")
    assert (refused.code, refused.field) == ("forbidden", "role")
    assert refusal(InvalidInput, access.revoke, made[13:21], most="reader").code == "forbidden"
    assert not any(may("reader", needed) for needed in ACCOUNT_ROLES)
