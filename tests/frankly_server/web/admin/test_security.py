# SPDX-License-Identifier: Apache-2.0
"""Security of the pages: cookies, form tokens and headers."""

import hmac
import re
from pathlib import Path

import pytest
from flask import Flask, Response
from frankly_protocol.clock import FixedClock
from frankly_server.accounts import Person, SignedIn
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.web.hosted import files, integrity
from frankly_server.web.security import CookieSession

from tests.frankly_server.web.admin.office import PASSWORD, Office, send, token
from tests.frankly_server.web.site import NOW


def test_signing_in_changes_the_token_and_hides_it_from_scripts_and_other_sites(
    office: Office,
) -> None:
    client = office.app.test_client()
    before = client.get("/admin/sign-in").headers["Set-Cookie"]
    answer = send(client, "/admin/sign-in", email="viewer@example.org", password=PASSWORD)
    after, browser = answer.headers.getlist("Set-Cookie")
    assert browser.startswith("frankly_browser=")
    assert "Max-Age=15552000" in browser  # 180 days
    for mark in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert mark in browser
    assert before.split(";")[0] != after.split(";")[0]
    for mark in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert mark in after
    planted = before.split(";")[0].split("=")[1]
    assert office.services.accounts.person(planted) is None


def test_a_token_that_was_planted_before_opens_nothing(office: Office) -> None:
    client = office.app.test_client()
    client.set_cookie("frankly_admin", "A" * 43)
    send(client, "/admin/sign-in", email="viewer@example.org", password=PASSWORD)
    assert office.services.accounts.person("A" * 43) is None


def test_a_planted_cookie_does_not_determine_the_forms_token(
    office: Office, tmp_path: Path
) -> None:
    planted, client = "A" * 43, office.app.test_client()
    client.set_cookie("frankly_admin", planted)
    right = token(client)
    # This token is computed from the cookie alone, without the server's key.
    guess = hmac.new(planted.encode(), b"frankly form", "sha256").hexdigest()
    assert guess != right
    for csrf, status in ((guess, 403), (right, 401)):
        fields = {"csrf": csrf, "email": "viewer@example.org", "password": "wrong"}
        assert client.post("/admin/sign-in", data=fields).status_code == status
    # Another server, with other keys, computes another token for the same cookie.
    stranger = Keyring(tmp_path / "keys", FixedClock(NOW))
    stranger.init()
    assert stranger.mac("form", planted.encode()) != right
    assert office.services.keys.mac("form", planted.encode()) == right
    assert office.services.keys.mac("another", planted.encode()) != right


@pytest.mark.parametrize("sent", [None, "", "0" * 64, "é", "somebody else's"])
def test_a_form_without_its_token_changes_nothing(office: Office, sent: str | None) -> None:
    client = office.client("owner")
    value = token(office.client("admin")) if sent == "somebody else's" else sent
    data = {"title-en": "Changed", "languages": "en", "min_reports": "1"} | (
        {} if value is None else {"csrf": value}
    )
    answer = client.post(f"/admin/surveys/{office.survey}/text", data=data)
    assert answer.status_code == 403
    assert office.services.surveys.draft("habits").title == {"en": "Habits"}


def test_signing_out_ends_the_session(office: Office) -> None:
    client = office.client("owner")
    held = client.get_cookie("frankly_admin")
    assert held is not None
    answer = send(client, "/admin/sign-out")
    assert answer.status_code == 303
    # The next person at this browser finds no token, not even an invalid token.
    assert client.get_cookie("frankly_admin") is None
    [gone] = answer.headers.getlist("Set-Cookie")
    assert gone.startswith("frankly_admin=; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=0;")
    assert office.services.accounts.person(held.value) is None
    assert client.get("/admin/surveys").status_code == 303


def test_signing_in_again_ends_the_session_before(office: Office) -> None:
    client = office.client("owner")
    held = client.get_cookie("frankly_admin")
    assert held is not None
    send(client, "/admin/sign-in", email="viewer@example.org", password=PASSWORD)
    assert office.services.accounts.person(held.value) is None


@pytest.mark.parametrize(
    "page", ["sign-in", "surveys", "surveys/S", "surveys/S/answers", "nothing", "surveys/x"]
)
def test_every_page_follows_the_policy(office: Office, page: str) -> None:
    answer = office.client("owner").get("/admin/" + page.replace("S", office.survey))
    policy = answer.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["Cache-Control"] == "no-store"
    assert "style=" not in answer.text
    assert "<script>" not in answer.text


def test_addresses_of_the_api_never_see_a_cookie(office: Office) -> None:
    client = office.app.test_client()
    for path in ("/health", "/v1/keys", f"/v1/surveys/{office.survey}/document"):
        assert "Set-Cookie" not in client.get(path).headers


def test_entered_text_is_escaped(office: Office) -> None:
    client = office.client("admin")
    evil = "<script>alert(1)</script>{{7*7}}"
    answer = send(
        client,
        "/admin/surveys/new",
        how="question",
        title=evil,
        language="en",
        question=evil,
        choices="a\nb",
    )
    text = client.get(answer.headers["Location"]).text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;{{7*7}}" in text


def test_a_known_browser_signs_in_to_an_account_that_strangers_have_locked(office: Office) -> None:
    known, stranger = office.client("analyst"), office.app.test_client()
    send(known, "/admin/sign-out")
    sign_in = {"email": "analyst@example.org", "password": PASSWORD}
    for _ in range(5):
        send(stranger, "/admin/sign-in", email="analyst@example.org", password="wrong")
    assert send(stranger, "/admin/sign-in", **sign_in).status_code == 401
    assert send(known, "/admin/sign-in", **sign_in).status_code == 303
    assert send(known, "/admin/account/sign-out-everywhere").status_code == 303
    assert send(known, "/admin/sign-in", **sign_in).status_code == 401


def test_a_new_password_keeps_this_browser_signed_in(office: Office) -> None:
    client, other = office.client("analyst"), office.client("analyst")
    new = "another good password"
    answer = send(client, "/admin/account", old=PASSWORD, new=new)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/admin/account?changed")
    assert client.get("/admin/account").status_code == 200
    assert other.get("/admin/account").status_code == 303
    send(client, "/admin/account", old=new, new=PASSWORD)


def test_over_tls_the_cookies_are_secure() -> None:
    class Stand:
        settings = Settings(public_url="https://surveys.example.org")

    cookies = CookieSession(Stand())  # type: ignore[arg-type]
    response = Response()
    with Flask("x").test_request_context("/admin/"):
        cookies.remember(
            response, SignedIn(Person("1", "main", "a@b.example", "owner", 0), "A" * 43, "B" * 43)
        )
    session, browser = response.headers.getlist("Set-Cookie")
    assert session.startswith("__Host-frankly_admin=")
    assert browser.startswith("__Host-frankly_browser=")
    for cookie in (session, browser):  # browsers require these attributes for the prefix __Host-
        assert "Secure;" in cookie
        assert "Path=/;" in cookie + ";"
        assert "Domain" not in cookie


@pytest.mark.parametrize("role", ["viewer", "analyst", "admin", "owner"])
def test_a_colleague_gets_the_role_that_was_chosen_and_the_password_that_is_shown(
    office: Office, role: str
) -> None:
    email = f"new-{role}@example.org"
    owner, new = office.client("owner"), office.app.test_client()
    answer = send(owner, "/admin/people", email=email, role=role)
    assert answer.status_code == 201
    trail = office.services.accounts.trail("main", None, 1)
    assert (trail[0].actor, trail[0].subject) == ("owner@example.org", f"{email} ({role})")
    (account,) = [one for one in office.services.accounts.list("main") if one.email == email]
    assert (account.role, account.organisation) == (role, "main")
    passwords = re.findall(r">([A-Za-z0-9_-]{16})<", answer.text)
    assert len(passwords) == 1
    sign_in = {"email": email, "password": passwords[0]}
    assert send(new, "/admin/sign-in", **sign_in).status_code == 303
    refused = send(owner, "/admin/people", email="other@example.org", role="king")
    assert refused.status_code == 422


def test_every_response_has_exactly_these_headers(office: Office) -> None:
    """Browsers silently ignore a misspelt value."""
    expected = {
        "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "X-Frame-Options": "DENY",
    }
    for client, path in (
        (office.client("owner"), "/admin/people"),
        (office.app.test_client(), "/admin/sign-in"),
    ):
        headers = client.get(path).headers
        assert {name: headers[name] for name in expected} == expected


def test_the_preview_may_be_framed_by_these_pages_alone(office: Office) -> None:
    style = integrity(files()["hosted.css"].decode().strip().encode(), "sha256")
    expected = {
        "Content-Security-Policy": f"default-src 'none'; script-src 'self'; style-src '{style}'; "
        "connect-src 'self'; worker-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; require-trusted-types-for 'script'; trusted-types frankly",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
        "X-Frame-Options": "SAMEORIGIN",
    }
    headers = office.client("viewer").get(f"/admin/surveys/{office.survey}/preview").headers
    assert {name: headers[name] for name in expected} == expected


def test_the_audit_trail_has_fifty_events_a_page_and_a_link_to_older_ones(office: Office) -> None:
    owner = office.client("owner")
    accounts = office.services.accounts
    while len(accounts.trail("main", None, 101)) < 101:
        office.client("viewer")
    positions = [event.position for event in accounts.trail("main", None, 100)]
    first = owner.get("/admin/audit").text
    assert first.count("<tr>") == 1 + 50
    assert f"before={positions[49]}" in first
    after = owner.get(f"/admin/audit?before={positions[49]}").text
    assert after.count("<tr>") == 1 + 50
    everything = accounts.trail("main", None, 1000)
    last = owner.get(f"/admin/audit?before={everything[-50].position}").text
    assert last.count("<tr>") == 1 + 49
    assert "before=" not in last
