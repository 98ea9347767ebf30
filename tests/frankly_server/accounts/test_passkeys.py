# SPDX-License-Identifier: Apache-2.0
"""Passkeys: sign-in without a password, with user verification; each response works once."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from frankly_server.accounts import (
    Accounts,
    Passkeys,
    Passwords,
    Person,
    SecondFactorNeeded,
    SecondFactors,
    SignedIn,
)
from frankly_server.accounts.passwords import Busy
from frankly_server.keys import Keyring
from frankly_server.store import Database

from tests.frankly_server.accounts.authenticator import USER_PRESENT, Authenticator
from tests.frankly_server.accounts.people import PASSWORD, Hands, as_now, code, refused

ADA = "ada@example.org"
URL = "https://surveys.example.org"
TOKEN, OTHER = "T" * 43, "U" * 43


@pytest.fixture
def passkeys(accounts: Accounts, database: Database, hands: Hands, tmp_path: Path) -> Passkeys:
    keys = Keyring(tmp_path / "keys", hands)
    keys.init()
    return Passkeys(database, hands, accounts, keys, URL)


@pytest.fixture
def factors(accounts: Accounts, database: Database, hands: Hands) -> SecondFactors:
    return SecondFactors(database, hands, accounts, "Frankly")


@pytest.fixture
def ada(accounts: Accounts) -> Person:
    return accounts.sign_in(ADA, PASSWORD).person


def add(
    passkeys: Passkeys, person: Person, device: Authenticator, name: str = "laptop"
) -> tuple[Authenticator, list[str]]:
    """Register the device's passkey; return the device, now with its account, and the new recovery codes."""
    person = as_now(passkeys._accounts, person)
    begun = passkeys.begin(person, TOKEN)
    made = device.create(begun.options)
    codes = passkeys.register(person, PASSWORD, TOKEN, begun.challenge, made, name)
    return device.with_user(begun.options), list(codes)


@pytest.fixture
def device(passkeys: Passkeys, ada: Person, hands: Hands) -> Authenticator:
    device = add(passkeys, ada, Authenticator())[0]
    hands.wait(1)  # a challenge must be newer than the last one used
    return device


def enter(passkeys: Passkeys, device: Authenticator) -> SignedIn:
    asked = passkeys.ask(TOKEN)
    return passkeys.sign_in(TOKEN, asked.challenge, device.get(asked.options))


def test_a_passkey_signs_in_alone(
    passkeys: Passkeys, accounts: Accounts, ada: Person, device: Authenticator, hands: Hands
) -> None:
    for _ in range(3):
        signed = enter(passkeys, device)
        assert accounts.person(signed.token) == ada
        hands.wait(1)
    assert [event.action for event in accounts.trail("main", limit=2)] == ["signed in"] * 2
    # Authenticators need not name the account.
    assert enter(passkeys, replace(device, user=None)).person == ada


def test_options_for_the_browser(passkeys: Passkeys, ada: Person) -> None:
    options = json.loads(passkeys.begin(ada, TOKEN).options)
    assert options["rp"]["id"] == "surveys.example.org"
    chosen = options["authenticatorSelection"]
    assert (chosen["residentKey"], chosen["userVerification"]) == ("required", "required")
    assert options["attestation"] == "none"
    add(passkeys, ada, Authenticator(credential=b"\x01" * 32))
    known = json.loads(passkeys.begin(ada, TOKEN).options)["excludeCredentials"]
    assert [one["id"] for one in known] == ["AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE"]
    asked = json.loads(passkeys.ask(TOKEN).options)
    assert (asked["rpId"], asked["userVerification"]) == ("surveys.example.org", "required")
    assert asked["allowCredentials"] == []  # must not reveal who has passkeys


BENT = {
    "without user verification": {"flags": USER_PRESENT},
    "without user presence": {"flags": 4},
    "another origin": {"origin": "https://surveys.example.org.evil.example"},
    "plain http": {"origin": "http://surveys.example.org"},
    "in another site's frame": {"is_framed": True},
    "another relying party": {"host": "evil.example"},
    "another account": {"user": b"\x00" * 16},
    "another credential": {"credential": b"\x02" * 32},
}


@pytest.mark.parametrize("name", BENT)
def test_a_changed_sign_in_is_refused(passkeys: Passkeys, device: Authenticator, name: str) -> None:
    asked = passkeys.ask(TOKEN)
    answer = replace(device, **BENT[name]).get(asked.options)  # type: ignore[arg-type]
    error = refused(passkeys.sign_in, TOKEN, asked.challenge, answer)
    assert (error.code, error.field) == ("unauthenticated", "passkey")


@pytest.mark.parametrize("name", [name for name in BENT if not name.startswith("another ac")][:6])
def test_a_changed_registration_is_refused(passkeys: Passkeys, ada: Person, name: str) -> None:
    begun = passkeys.begin(ada, TOKEN)
    answer = replace(Authenticator(), **BENT[name]).create(begun.options)  # type: ignore[arg-type]
    error = refused(passkeys.register, ada, PASSWORD, TOKEN, begun.challenge, answer, "x")
    assert error.code == "unauthenticated"
    assert passkeys.of(ada) == []


def test_another_key_signs_nobody_in(passkeys: Passkeys, device: Authenticator) -> None:
    thief = replace(device, key=Authenticator().key)
    asked = passkeys.ask(TOKEN)
    refused(passkeys.sign_in, TOKEN, asked.challenge, thief.get(asked.options))


def test_an_answer_works_once_in_its_browser_for_ten_minutes(
    passkeys: Passkeys, device: Authenticator, hands: Hands
) -> None:
    asked = passkeys.ask(TOKEN)
    answer = device.get(asked.options)
    refused(passkeys.sign_in, OTHER, asked.challenge, answer)
    other = passkeys.ask(TOKEN)
    refused(passkeys.sign_in, TOKEN, other.challenge, answer)  # another valid challenge
    hands.wait(599)
    assert passkeys.sign_in(TOKEN, asked.challenge, answer)
    refused(passkeys.sign_in, TOKEN, asked.challenge, answer)
    late = passkeys.ask(TOKEN)
    answer = device.get(late.options)
    hands.wait(600)
    refused(passkeys.sign_in, TOKEN, late.challenge, answer)


def test_a_challenge_is_valid_for_one_purpose(
    passkeys: Passkeys, accounts: Accounts, ada: Person, device: Authenticator
) -> None:
    begun = passkeys.begin(ada, TOKEN)
    refused(passkeys.sign_in, TOKEN, begun.challenge, device.get(begun.options))
    made = Authenticator().create(begun.options)
    accounts.create("main", "bob@example.org", "viewer", PASSWORD)
    bob = accounts.sign_in("bob@example.org", PASSWORD).person
    refused(passkeys.register, bob, PASSWORD, TOKEN, begun.challenge, made, "x")


def test_a_copied_authenticator_is_detected(passkeys: Passkeys, ada: Person, hands: Hands) -> None:
    device, _ = add(passkeys, ada, Authenticator(count=1))
    hands.wait(1)
    assert enter(passkeys, replace(device, count=5))
    hands.wait(1)
    asked = passkeys.ask(TOKEN)
    refused(passkeys.sign_in, TOKEN, asked.challenge, replace(device, count=5).get(asked.options))


def test_a_password_is_not_enough_for_an_account_with_a_passkey(
    passkeys: Passkeys, accounts: Accounts, factors: SecondFactors, ada: Person
) -> None:
    device, codes = add(passkeys, ada, Authenticator())
    assert len(codes) == 10
    with pytest.raises(SecondFactorNeeded) as waits:
        accounts.sign_in(ADA, PASSWORD)
    assert factors.finish(waits.value.token, codes[0]).person == ada
    # Another second factor keeps the existing recovery codes.
    ada = as_now(accounts, ada)
    factors.begin_totp(ada, PASSWORD)
    secret = factors.state(ada).new_secret or ""
    assert factors.confirm_totp(ada, code(secret, 1780315200)) == []
    assert factors.state(ada).codes == 9
    factors.remove_totp(as_now(accounts, ada), PASSWORD)
    assert factors.state(ada).codes == 9
    ada = as_now(accounts, ada)
    [passkey] = passkeys.of(ada)
    assert refused(passkeys.remove, ada, "wrong", passkey.credential).field == "password"
    for credential in ("x", "a\0b"):
        assert refused(passkeys.remove, ada, PASSWORD, credential).code == "not_found"
    passkeys.remove(ada, PASSWORD, passkey.credential)
    assert factors.state(ada).codes == 0
    assert accounts.sign_in(ADA, PASSWORD)
    refused(enter, passkeys, device)


def test_an_operator_removes_passkeys_too(
    passkeys: Passkeys, accounts: Accounts, factors: SecondFactors, device: Authenticator
) -> None:
    factors.reset(ADA)
    assert accounts.sign_in(ADA, PASSWORD)
    refused(enter, passkeys, device)


def test_a_disabled_account_is_not_entered(
    passkeys: Passkeys, accounts: Accounts, device: Authenticator
) -> None:
    accounts.disable_address(ADA)
    refused(enter, passkeys, device)


def test_registering_needs_password_name_and_room(passkeys: Passkeys, ada: Person) -> None:
    begun = passkeys.begin(ada, TOKEN)
    made = Authenticator().create(begun.options)
    wrong = refused(passkeys.register, ada, "wrong", TOKEN, begun.challenge, made, "x")
    assert wrong.field == "password"
    for name in ("", "x" * 65, "a\0b", "\ud800"):
        error = refused(passkeys.register, ada, PASSWORD, TOKEN, begun.challenge, made, name)
        assert (error.code, error.field) == ("field_type", "name")
    device = Authenticator()
    add(passkeys, ada, device)
    ada = as_now(passkeys._accounts, ada)
    begun = passkeys.begin(ada, TOKEN)
    again = device.create(begun.options)
    same = refused(passkeys.register, ada, PASSWORD, TOKEN, begun.challenge, again, "x")
    assert same.code == "file_exists"
    for _ in range(9):
        add(passkeys, ada, Authenticator())
    ada = as_now(passkeys._accounts, ada)
    begun = passkeys.begin(ada, TOKEN)
    made = Authenticator().create(begun.options)
    full = refused(passkeys.register, ada, PASSWORD, TOKEN, begun.challenge, made, "x")
    assert full.code == "forbidden"


def test_strangers_neither_lock_nor_flood_a_passkey(
    passkeys: Passkeys, accounts: Accounts, device: Authenticator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        refused(accounts.sign_in, ADA, "wrong wrong wrong")

    def no_slot(*_arguments: object, **_named: object) -> bool:
        raise Busy

    monkeypatch.setattr(Passwords, "check", no_slot)
    assert enter(passkeys, device)


GARBAGE = [
    "",
    "x",
    "null",
    "[]",
    "{}",
    '{"id":"AA","rawId":"AA","type":"public-key","response":{}}',
    '{"id":"AA","rawId":"AA","type":"public-key","response":{"clientDataJSON":"é",'
    '"authenticatorData":"AA","signature":"AA","userHandle":"é"}}',
    "[" * 19_000,
    "\ud800",
    '{"id":"\\u0000","rawId":"AA","type":"public-key","response":{"clientDataJSON":"AA",'
    '"authenticatorData":"AA","signature":"AA"}}',
]


@pytest.mark.parametrize("answer", GARBAGE)
def test_garbage_is_refused(
    passkeys: Passkeys, ada: Person, device: Authenticator, answer: str
) -> None:
    asked, begun = passkeys.ask(TOKEN), passkeys.begin(ada, TOKEN)
    assert refused(passkeys.sign_in, TOKEN, asked.challenge, answer).field == "passkey"
    error = refused(passkeys.register, ada, PASSWORD, TOKEN, begun.challenge, answer, "x")
    assert error.field == "passkey"
    real = device.get(asked.options)
    for challenge in ("", "zz", "00" * 56, asked.challenge[:-2], "é" * 112):
        assert refused(passkeys.sign_in, TOKEN, challenge, real).field == "passkey"


def test_an_address_without_a_name_has_no_passkeys(
    accounts: Accounts, sqlite: Database, hands: Hands, tmp_path: Path
) -> None:
    keys = Keyring(tmp_path / "keys", hands)
    for url, available in (
        ("http://127.0.0.1:8000", False),
        ("https://[::1]", False),
        ("http://localhost:8000", True),
        (URL, True),
    ):
        assert Passkeys(sqlite, hands, accounts, keys, url).available is available
