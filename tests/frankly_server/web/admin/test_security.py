# SPDX-License-Identifier: Apache-2.0
"""Cookies, forms and headers of the pages."""

import pytest

from tests.frankly_server.web.admin.office import PASSWORD, Office, send, token


def test_signing_in_changes_the_token_and_hides_it_from_scripts_and_other_sites(
    office: Office,
) -> None:
    client = office.app.test_client()
    before = client.get("/admin/sign-in").headers["Set-Cookie"]
    answer = send(client, "/admin/sign-in", email="viewer@example.org", password=PASSWORD)
    after = answer.headers["Set-Cookie"]
    assert before.split(";")[0] != after.split(";")[0]
    for mark in ("HttpOnly", "SameSite=Strict", "Path=/admin"):
        assert mark in after
    planted = before.split(";")[0].split("=")[1]
    assert office.services.accounts.person(planted) is None


def test_a_token_that_was_planted_before_opens_nothing(office: Office) -> None:
    client = office.app.test_client()
    client.set_cookie("frankly_admin", "A" * 43, path="/admin")
    send(client, "/admin/sign-in", email="viewer@example.org", password=PASSWORD)
    assert office.services.accounts.person("A" * 43) is None


@pytest.mark.parametrize("sent", [None, "", "0" * 64, "é", "somebody else's"])
def test_a_form_without_its_token_changes_nothing(office: Office, sent: str | None) -> None:
    client = office.client("owner")
    value = token(office.client("admin")) if sent == "somebody else's" else sent
    data = {"title": "Changed", "min_reports": "1"} | ({} if value is None else {"csrf": value})
    answer = client.post(f"/admin/surveys/{office.survey}/text", data=data)
    assert answer.status_code == 403
    assert office.services.surveys.draft("habits").title == {"en": "Habits"}


def test_signing_out_ends_the_session(office: Office) -> None:
    client = office.client("owner")
    held = client.get_cookie("frankly_admin", path="/admin")
    assert held is not None
    assert send(client, "/admin/sign-out").status_code == 303
    assert office.services.accounts.person(held.value) is None
    assert client.get("/admin/surveys").status_code == 303


@pytest.mark.parametrize(
    "page", ["sign-in", "surveys", "surveys/S", "surveys/S/intake", "nothing", "surveys/x"]
)
def test_every_page_keeps_the_policy(office: Office, page: str) -> None:
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


def test_text_of_people_is_shown_as_text(office: Office) -> None:
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


def test_over_tls_the_cookie_is_secure(tmp_path: object) -> None:
    from flask import Flask
    from frankly_server.settings import Settings
    from frankly_server.web.security import Door

    class Stand:
        settings = Settings(public_url="https://surveys.example.org")

    door = Door(Stand())  # type: ignore[arg-type]
    with Flask("x").test_request_context("/admin/"):
        from flask import Response

        response = Response()
        door.remember(response, "A" * 43)
    assert response.headers["Set-Cookie"].startswith("__Secure-frankly_admin=")
    assert "Secure;" in response.headers["Set-Cookie"]
