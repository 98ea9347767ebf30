# SPDX-License-Identifier: Apache-2.0
"""Access matrix of the pages: every route in the application's URL map, for six callers."""

from typing import Any

import pytest
from werkzeug.routing import Rule

from tests.frankly_server.web.admin.office import CALLERS, Office, send

LADDER = ("viewer", "analyst", "admin", "owner")
# This table is independent of the code: (method, path) -> least role allowed; None if no sign-in is
# needed.
NEEDED: dict[tuple[str, str], str | None] = {
    ("GET", "/admin/assets/<digest>/<name>"): None,
    ("GET", "/admin/sign-in"): None,
    ("POST", "/admin/sign-in"): None,
    ("GET", "/admin/sign-in/code"): None,
    ("POST", "/admin/sign-in/code"): None,
    ("POST", "/admin/sign-in/passkey"): None,
    ("POST", "/admin/sign-out"): None,
    ("GET", "/admin/"): "viewer",
    ("GET", "/admin/account"): "viewer",
    ("POST", "/admin/account"): "viewer",
    ("POST", "/admin/account/sign-out-everywhere"): "viewer",
    ("POST", "/admin/account/totp"): "viewer",
    ("POST", "/admin/account/totp/confirm"): "viewer",
    ("POST", "/admin/account/totp/remove"): "viewer",
    ("POST", "/admin/account/recovery-codes"): "viewer",
    ("POST", "/admin/account/passkeys"): "viewer",
    ("POST", "/admin/account/passkeys/remove"): "viewer",
    ("GET", "/admin/audit"): "owner",
    ("GET", "/admin/people"): "owner",
    ("POST", "/admin/people"): "owner",
    ("POST", "/admin/people/second-factor"): "owner",
    ("POST", "/admin/people/<account_id>/role"): "owner",
    ("POST", "/admin/people/<account_id>/disable"): "owner",
    ("GET", "/admin/keys"): "admin",
    ("POST", "/admin/keys"): "admin",
    ("POST", "/admin/keys/<prefix>/revoke"): "admin",
    ("GET", "/admin/words"): "viewer",
    ("GET", "/admin/surveys"): "viewer",
    ("GET", "/admin/surveys/new"): "admin",
    ("POST", "/admin/surveys/new"): "admin",
    ("GET", "/admin/surveys/<survey_id>"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/qr.png"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/notice"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/questions"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/joint-tables"): "admin",
    ("GET", "/admin/surveys/<survey_id>/translations"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/translations"): "admin",
    ("GET", "/admin/surveys/<survey_id>/drafts"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/drafts/<int:number>/restore"): "admin",
    ("GET", "/admin/surveys/<survey_id>/preview"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/preview/draft"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/new-question"): "admin",
    ("POST", "/admin/surveys/<survey_id>/new-question"): "admin",
    ("GET", "/admin/surveys/<survey_id>/questions/<question_id>"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/questions/<question_id>"): "admin",
    ("POST", "/admin/surveys/<survey_id>/questions/<question_id>/move"): "admin",
    ("POST", "/admin/surveys/<survey_id>/questions/<question_id>/copy"): "admin",
    ("POST", "/admin/surveys/<survey_id>/questions/<question_id>/remove"): "admin",
    ("POST", "/admin/surveys/<survey_id>/item"): "admin",
    ("POST", "/admin/surveys/<survey_id>/text"): "admin",
    ("GET", "/admin/surveys/<survey_id>/protection"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/protection"): "admin",
    ("POST", "/admin/surveys/<survey_id>/protection/outlook"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/file"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/file"): "admin",
    ("GET", "/admin/surveys/<survey_id>/margins"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/plan"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/try"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/try"): "admin",
    ("GET", "/admin/surveys/<survey_id>/publish"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/publish"): "admin",
    ("GET", "/admin/surveys/<survey_id>/sheet"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/versions/<int:version>"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/jobs/<job_id>"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/jobs/<job_id>/state"): "viewer",
    ("POST", "/admin/surveys/<survey_id>/jobs/<job_id>/cancel"): "admin",
    ("GET", "/admin/surveys/<survey_id>/embed"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/invitations"): "admin",
    ("POST", "/admin/surveys/<survey_id>/invitations"): "admin",
    ("POST", "/admin/surveys/<survey_id>/invitations/revoke"): "admin",
    ("GET", "/admin/surveys/<survey_id>/answers"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/estimates"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/results"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/results/<chart>"): "viewer",
    ("GET", "/admin/surveys/<survey_id>/estimates/download"): "analyst",
    ("GET", "/admin/surveys/<survey_id>/results/links"): "admin",
    ("POST", "/admin/surveys/<survey_id>/results/links"): "admin",
    ("POST", "/admin/surveys/<survey_id>/results/links/<prefix>/withdraw"): "admin",
    ("GET", "/admin/surveys/<survey_id>/webhook"): "admin",
    ("POST", "/admin/surveys/<survey_id>/webhook"): "admin",
    ("POST", "/admin/surveys/<survey_id>/webhook/remove"): "admin",
    ("POST", "/admin/surveys/<survey_id>/webhook/test"): "admin",
    ("POST", "/admin/surveys/<survey_id>/duplicate"): "admin",
    ("POST", "/admin/surveys/<survey_id>/stop-rule"): "admin",
    ("POST", "/admin/surveys/<survey_id>/move"): "admin",
    ("POST", "/admin/surveys/<survey_id>/erase"): "admin",
}
# The status of an empty form from an allowed role.
REFUSALS = {400, 401, 403, 404, 409, 422}


def routes(office: Office) -> list[tuple[str, Rule]]:
    return [
        (method, rule)
        for rule in office.app.url_map.iter_rules()
        if rule.rule.startswith("/admin")
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def path(office: Office, rule: Rule) -> str:
    place = {
        "<survey_id>": office.survey,
        "<question_id>": "nothing",
        "<job_id>": office.job,
        "<prefix>": office.key,
        "<account_id>": office.account,
        "<int:version>": "1",
        "<int:number>": "1",
        "<digest>": "0" * 16,
        "<name>": "admin.css",
        "<chart>": "1.csv",
    }
    path = rule.rule
    for name, value in place.items():
        path = path.replace(name, value)
    assert "<" not in path
    return path


def ask(office: Office, client: Any, method: str, rule: Rule) -> Any:
    where = path(office, rule)
    if method == "GET":
        return client.get(where.replace("questions/nothing", "questions/smokes"))
    # The role is invalid, so that the matrix does not change the office.
    takes = office.app.view_functions[rule.endpoint].takes
    return send(client, where, **({"role": "nonsense"} if "role" in takes else {}))


def test_every_route_is_in_the_matrix(office: Office) -> None:
    assert {(method, rule.rule) for method, rule in routes(office)} == set(NEEDED)


@pytest.mark.parametrize("caller", CALLERS)
def test_every_route_for_every_caller(office: Office, caller: str) -> None:
    # These forms would change the office even if they are empty; the test below checks their
    # guards.
    left_out = {
        "/admin/people/<account_id>/disable",
        "/admin/keys/<prefix>/revoke",
        "/admin/surveys/<survey_id>/publish",
        "/admin/surveys/<survey_id>/duplicate",
    }
    client, wrong = office.client(caller), []
    role = "owner" if caller == "foreign owner" else caller
    for method, rule in routes(office):
        needed = NEEDED[method, rule.rule]
        # This form would end the caller's session; other tests send it.
        if needed is None or rule.rule == "/admin/account/sign-out-everywhere":
            continue
        allowed = role in LADDER and LADDER.index(role) >= LADDER.index(needed)
        if allowed and caller != "foreign owner" and rule.rule in left_out:
            continue
        answer = ask(office, client, method, rule)
        if caller == "nobody":
            right = (answer.status_code, answer.headers.get("Location")) == (303, "/admin/sign-in")
        elif not allowed:
            right = answer.status_code == 403
        elif caller == "foreign owner" and "<" in rule.rule:
            right = answer.status_code == (422 if rule.rule.endswith("/role") else 404)
        elif method == "GET":
            right = answer.status_code == (303 if rule.rule == "/admin/" else 200)
        else:
            right = answer.status_code in REFUSALS or rule.rule in (
                "/admin/surveys/<survey_id>/jobs/<job_id>/cancel", "/admin/surveys/<survey_id>/webhook/remove"
            )  # fmt: skip
        if not right:
            wrong.append((method, rule.rule, answer.status_code))
    assert wrong == []


def test_every_view_has_the_guard_of_the_matrix(office: Office) -> None:
    for method, rule in routes(office):
        view = office.app.view_functions[rule.endpoint]
        assert getattr(view, "needs", None) == NEEDED[method, rule.rule], rule.rule


@pytest.mark.parametrize("what", ["role", "disable"])
def test_a_foreign_owner_finds_no_colleague_of_ours(office: Office, what: str) -> None:
    client = office.client("foreign owner")
    fields = {"role": "viewer"} if what == "role" else {}
    assert send(client, f"/admin/people/{office.account}/{what}", **fields).status_code == 404


def test_a_page_of_another_organisation_looks_nonexistent(office: Office) -> None:
    client = office.client("foreign owner")
    foreign, missing = (
        client.get(f"/admin/surveys/{i}/answers") for i in (office.survey, "0" * 32)
    )
    assert (foreign.status_code, foreign.data) == (missing.status_code, missing.data)
    assert "habits" not in client.get("/admin/surveys").text
    assert "habits" not in client.get("/admin/keys").text


def test_an_api_key_of_another_organisation_finds_no_survey(office: Office) -> None:
    client = office.app.test_client()
    estimates_path = f"/v1/surveys/{office.survey}/estimates"
    keys = {
        "ours": office.services.access.create("analyst", "x"),
        "this survey's": office.services.access.create("analyst", "x", "main", [office.survey]),
        "another survey's": office.services.access.create("analyst", "x", "main", ["0" * 32]),
        "theirs": office.services.access.create("admin", "x", "other"),
    }
    status_by_key = {
        name: client.get(estimates_path, headers={"Authorization": f"Bearer {key}"}).status_code
        for name, key in keys.items()
    }
    assert status_by_key == {
        "ours": 200,
        "this survey's": 200,
        "another survey's": 404,
        "theirs": 404,
    }


def test_keys_are_created_only_for_surveys_of_the_own_organisation(office: Office) -> None:
    foreign, ours = office.client("foreign owner"), office.client("owner")
    before = len(office.services.access.list())
    for survey in (office.survey, "0" * 32, "no id"):
        answer = send(foreign, "/admin/keys", role="analyst", label="theirs", survey=survey)
        assert answer.status_code == 404, survey
    assert len(office.services.access.list()) == before
    answer = send(ours, "/admin/keys", role="analyst", label="ours", survey=office.survey)
    assert answer.status_code == 201
    (made,) = [key for key in office.services.access.list() if key.label == "ours"]
    assert (made.role, made.organisation, list(made.surveys)) == (
        "analyst",
        "main",
        [office.survey],
    )
