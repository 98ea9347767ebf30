# SPDX-License-Identifier: Apache-2.0
"""Pages of the second factor, from setup to sign-in."""

import html
import re
from dataclasses import replace
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_server.accounts import Passkeys
from frankly_server.app import create_app
from frankly_server.store import PasskeyRow

from tests.frankly_server.accounts.authenticator import Authenticator
from tests.frankly_server.accounts.people import code
from tests.frankly_server.web.admin.office import PASSWORD, Office, make_office, send
from tests.frankly_server.web.site import NOW

AT = int(NOW.timestamp())
VIEWER = {"email": "viewer@example.org", "password": PASSWORD}


@pytest.fixture
def office(own_office: Office) -> Office:
    return own_office


@pytest.fixture
def client(office: Office) -> FlaskClient:
    return office.client("viewer")


def set_up(client: FlaskClient) -> tuple[str, list[str]]:
    """Set up TOTP; return the secret and the recovery codes."""
    begun = send(client, "/admin/account/totp", password=PASSWORD)
    assert (begun.status_code, begun.headers["Location"]) == (303, "/admin/account")
    page = client.get("/admin/account").text
    secret = re.search(r"<pre data-copy>([A-Z2-7]{32})</pre>", page)
    assert secret
    assert re.search(r'<div role="img" aria-label="[^"]+"><svg', page)
    shown = send(client, "/admin/account/totp/confirm", code=code(secret[1], AT))
    assert shown.status_code == 201
    codes = re.findall(r"(?:[a-z2-7]{4}-){3}[a-z2-7]{4}", shown.text)
    assert len(codes) == 10
    # Neither the secret nor the codes are shown again.
    later = client.get("/admin/account").text
    assert codes[0] not in later
    assert secret[1] not in later
    return secret[1], codes


def test_a_code_is_required_after_the_password(office: Office, client: FlaskClient) -> None:
    secret, codes = set_up(client)
    browser = office.app.test_client()
    answer = send(browser, "/admin/sign-in", **VIEWER)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/sign-in/code")
    [cookie] = answer.headers.getlist("Set-Cookie")  # no known browser before the second step
    assert cookie.startswith("frankly_admin=")
    assert browser.get("/admin/surveys").headers["Location"] == "/admin/sign-in"
    assert browser.get("/admin/sign-in/code").status_code == 200
    # The code that confirmed the secret is already used.
    assert send(browser, "/admin/sign-in/code", code=code(secret, AT)).status_code == 401
    assert browser.get("/admin/surveys").status_code == 303
    answer = send(browser, "/admin/sign-in/code", code=code(secret, AT + 30))
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/surveys")
    assert browser.get("/admin/surveys").status_code == 200
    assert len(answer.headers.getlist("Set-Cookie")) == 2
    # A known browser also needs a code.
    send(browser, "/admin/sign-out")
    answer = send(browser, "/admin/sign-in", **VIEWER)
    assert answer.headers["Location"] == "/admin/sign-in/code"
    assert send(browser, "/admin/sign-in/code", code=codes[0]).status_code == 303


def test_without_a_password_no_code_is_requested(office: Office) -> None:
    browser = office.app.test_client()
    assert browser.get("/admin/sign-in/code").headers["Location"] == "/admin/sign-in"
    answer = send(browser, "/admin/sign-in/code", code="123456")
    assert answer.status_code == 401
    assert 'action="/admin/sign-in/code"' not in answer.text


def test_removing_it_needs_the_password(office: Office, client: FlaskClient) -> None:
    set_up(client)
    for path in ("totp/remove", "recovery-codes"):
        assert send(client, f"/admin/account/{path}", password="wrong").status_code == 401
    assert send(client, "/admin/account/recovery-codes", password=PASSWORD).status_code == 201
    assert send(client, "/admin/account/totp/remove", password=PASSWORD).status_code == 303
    answer = send(office.app.test_client(), "/admin/sign-in", **VIEWER)
    assert answer.headers["Location"] == "/admin/surveys"


def test_a_page_with_codes_is_not_stored_by_the_browser(client: FlaskClient) -> None:
    send(client, "/admin/account/totp", password=PASSWORD)
    assert client.get("/admin/account").headers["Cache-Control"] == "no-store"


def test_a_passkey_signs_in_over_the_pages(tmp_path: Path) -> None:
    office = make_office(tmp_path)
    services = office.services
    passkeys = Passkeys(
        services.database, FixedClock(NOW), services.accounts, services.keys, "http://localhost"
    )
    services.passkeys = passkeys
    app = create_app(services.settings, services=services)
    client, stranger = app.test_client(), app.test_client()
    send(client, "/admin/sign-in", **VIEWER)
    device = Authenticator(host="localhost", origin="http://localhost")

    def asked(page: str) -> tuple[str, str]:
        options = re.search(r'data-options="([^"]+)"', page)
        challenge = re.search(r'name="challenge" value="([0-9a-f]+)"', page)
        assert options
        assert challenge
        return html.unescape(options[1]), challenge[1]

    options, challenge = asked(client.get("/admin/account").text)
    fields = {"name": "key", "password": PASSWORD, "challenge": challenge}
    made = send(client, "/admin/account/passkeys", credential=device.create(options), **fields)
    assert made.status_code == 201
    # The office's clock does not advance, and a challenge is valid only if it is newer than the
    # last one.
    with services.database.transaction("older") as tx:
        assert tx.passkeys.of_account(office.account)[0].last_challenge > 0
        [row] = tx.passkeys.of_account(office.account)
        tx.passkeys.remove(row.account)
        tx.passkeys.add(replace(row, last_challenge=0))
    options, challenge = asked(stranger.get("/admin/sign-in").text)
    fields = {"challenge": challenge, "credential": "nonsense"}
    assert send(stranger, "/admin/sign-in/passkey", **fields).status_code == 401
    fields["credential"] = device.get(options)
    answer = send(stranger, "/admin/sign-in/passkey", **fields)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/surveys")
    assert stranger.get("/admin/surveys").status_code == 200
    page = client.get("/admin/account").text
    assert '<option value="' in page
    gone = {"passkey": row.credential, "password": PASSWORD}
    assert send(client, "/admin/account/passkeys/remove", **gone).status_code == 303
    services.close()


def test_pages_name_the_passkeys_that_stay(office: Office) -> None:
    client, new = office.client("viewer"), "another good password"
    with office.services.database.transaction("a passkey") as tx:
        tx.passkeys.add(
            PasskeyRow("c", office.account, b"", 0, 0, "laptop", "2026-06-01T12:00:00Z")
        )
    left = "This passkey still signs in without it:\nlaptop (since 2026-06-01)"
    assert client.get("/admin/account").text.count(left) == 1
    changed = send(client, "/admin/account", old=PASSWORD, new=new).headers["Location"]
    page = client.get(changed).text
    assert page.count(left) == 2
    assert "Your password is changed" in page
    everywhere = send(client, "/admin/account/sign-out-everywhere").headers["Location"]
    page = client.get(everywhere).text
    assert "Your password and your passkeys still sign in" in page
    assert "API keys of your organisation stay" in page


APP, CODES = "Codes from your app stay. Your unused recovery codes (10) stay.", "(10) stay."
KEYS, PEOPLE = ">API keys</a> of your organisation stay", "Accounts that were added in your name"


@pytest.mark.parametrize("who", ["viewer", "analyst", "admin", "owner", "foreign owner"])
def test_pages_name_what_a_new_password_leaves(office: Office, who: str) -> None:
    client = office.client(who)
    page = client.get("/admin/account").text
    # The office has an API key, and the other organisation has none.
    expected = {KEYS: who in ("admin", "owner"), PEOPLE: "owner" in who}
    assert {text: text in page for text in (CODES, *expected)} == {CODES: False, **expected}
    set_up(client)
    changed = send(client, "/admin/account", old=PASSWORD, new="another good password")
    page = " ".join(client.get(changed.headers["Location"]).text.split())
    # In the note, and at "Sign out everywhere".
    for text, shown in {APP: True, **expected}.items():
        assert page.count(text) == 2 * shown, text
    office.services.access.revoke(office.key)
    assert KEYS not in client.get("/admin/account").text


def test_a_removal_signs_out_everywhere_else(office: Office) -> None:
    client, other = office.client("viewer"), office.client("viewer")
    set_up(client)
    page = client.get("/admin/account").text
    # At codes of an app and at recovery codes; there is no passkey to remove.
    assert page.count("This signs you out everywhere else, and forgets your other browsers.") == 2
    assert other.get("/admin/surveys").status_code == 200
    assert send(client, "/admin/account/recovery-codes", password=PASSWORD).status_code == 201
    assert other.get("/admin/surveys").headers["Location"] == "/admin/sign-in"
    assert client.get("/admin/surveys").status_code == 200


def test_members_without_a_second_factor_reach_their_account_only(office: Office) -> None:
    owner, viewer, foreign = map(office.client, ("owner", "viewer", "foreign owner"))
    set_up(owner)
    assert send(owner, "/admin/people/second-factor", needed="yes").status_code == 303
    # The owner has a second factor and continues; the member, already signed in, is redirected to
    # their account page.
    assert owner.get("/admin/people").status_code == 200
    open_before = {
        rule.rule
        for rule in office.app.url_map.iter_rules()
        if rule.rule.startswith("/admin/account")
    }
    for rule in office.app.url_map.iter_rules():
        view = office.app.view_functions[rule.endpoint]
        if "GET" in rule.methods and getattr(view, "needs", None) and rule.rule not in open_before:
            path = re.sub("<int:[a-z_]+>", "1", rule.rule)
            answer = viewer.get(re.sub("<[a-z_]+>", office.survey, path))
            assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/account")
    page = viewer.get("/admin/account")
    assert page.status_code == 200
    assert "requires a second factor" in page.text
    # Members who sign in now are also redirected, and so are forms.
    late = office.app.test_client()
    send(late, "/admin/sign-in", **VIEWER)
    assert late.get("/admin/surveys").headers["Location"] == "/admin/account"
    answer = send(viewer, f"/admin/surveys/{office.survey}/text", title="x")
    assert answer.headers["Location"] == "/admin/account"
    # Another organisation has a separate rule.
    assert foreign.get("/admin/surveys").status_code == 200
    set_up(viewer)
    assert viewer.get("/admin/surveys").status_code == 200
    assert "requires a second factor" not in viewer.get("/admin/account").text
    # Without a second factor, the other pages are closed again.
    send(viewer, "/admin/account/totp/remove", password=PASSWORD)
    assert viewer.get("/admin/surveys").headers["Location"] == "/admin/account"
    assert send(viewer, "/admin/sign-out").headers["Location"] == "/admin/sign-in"
    assert late.get("/admin/surveys").headers["Location"] == "/admin/sign-in"
    send(late, "/admin/sign-in", **VIEWER)
    # A form with another value does not remove the rule.
    assert send(owner, "/admin/people/second-factor", needed="maybe").status_code == 422
    assert late.get("/admin/surveys").status_code == 303
    assert send(owner, "/admin/people/second-factor", needed="no").status_code == 303
    assert late.get("/admin/surveys").status_code == 200
    actions = [event.action for event in office.services.accounts.trail("main")]
    assert "second factor required" in actions
    assert "second factor not required" in actions


def test_owners_see_who_has_a_second_factor(office: Office) -> None:
    owner = office.client("owner")
    page = owner.get("/admin/people").text
    assert page.count('data-th="Second factor">yes<') == 0
    assert "and accounts that they have made stay" in page
    set_up(office.client("viewer"))
    page = owner.get("/admin/people").text
    assert page.count('data-th="Second factor">yes<') == 1
    assert page.count('data-th="Second factor">no<') == 3
