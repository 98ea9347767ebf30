# SPDX-License-Identifier: Apache-2.0
"""Access matrix of the API: every route that needs a key, for nine callers."""

from typing import Any

import pytest
from werkzeug.routing import Rule

from tests.frankly_server.web.management.desk import Desk

LADDER = ("reader", "analyst", "admin", "owner")
# This table is independent of the code: (method, path) -> least role of a key.
NEEDED: dict[tuple[str, str], str] = {
    ("GET", "/v1/surveys"): "analyst",
    ("POST", "/v1/surveys"): "admin",
    ("POST", "/v1/dry-run"): "admin",
    ("POST", "/v1/plan"): "analyst",
    ("POST", "/v1/plan/split"): "analyst",
    ("POST", "/v1/plan/survey"): "analyst",
    ("POST", "/v1/waves"): "analyst",
    ("GET", "/v1/surveys/<survey_id>"): "analyst",
    ("GET", "/v1/surveys/<survey_id>/estimates"): "analyst",
    ("GET", "/v1/surveys/<survey_id>/counts"): "analyst",
    ("GET", "/v1/surveys/<survey_id>/draft"): "analyst",
    ("PUT", "/v1/surveys/<survey_id>/draft"): "admin",
    ("GET", "/v1/surveys/<survey_id>/versions"): "analyst",
    ("GET", "/v1/surveys/<survey_id>/versions/<int:version>"): "analyst",
    ("POST", "/v1/surveys/<survey_id>/move"): "admin",
    ("POST", "/v1/surveys/<survey_id>/erase"): "admin",
    ("PUT", "/v1/surveys/<survey_id>/stop-rule"): "admin",
    ("POST", "/v1/surveys/<survey_id>/jobs"): "admin",
    ("GET", "/v1/surveys/<survey_id>/jobs/<job_id>"): "analyst",
    ("POST", "/v1/surveys/<survey_id>/jobs/<job_id>/cancel"): "admin",
    ("GET", "/v1/surveys/<survey_id>/releases"): "analyst",
    ("POST", "/v1/surveys/<survey_id>/releases"): "admin",
    ("POST", "/v1/surveys/<survey_id>/invitations"): "admin",
    ("POST", "/v1/surveys/<survey_id>/invitations/revoke"): "admin",
    ("GET", "/v1/surveys/<survey_id>/webhook"): "admin",
    ("PUT", "/v1/surveys/<survey_id>/webhook"): "admin",
    ("DELETE", "/v1/surveys/<survey_id>/webhook"): "admin",
    ("POST", "/v1/surveys/<survey_id>/webhook/test"): "admin",
    ("GET", "/v1/api-keys"): "admin",
    ("POST", "/v1/api-keys"): "admin",
    ("DELETE", "/v1/api-keys/<prefix>"): "admin",
    ("GET", "/v1/people"): "owner",
    ("POST", "/v1/people"): "owner",
    ("PUT", "/v1/people/<account_id>/role"): "owner",
    ("POST", "/v1/people/<account_id>/disable"): "owner",
    ("GET", "/v1/audit-trail"): "owner",
}
PUBLIC = {
    *("/v1/keys", "/v1/keys/chain", "/v1/surveys/<survey_id>/document"),
    *("/v1/surveys/<survey_id>/reports", "/v1/surveys/<survey_id>/audit"),
}
# Keys for some surveys may use these, although the address names no survey.
WITH_BODY = {
    *(
        ("POST", "/v1/surveys"),
        ("POST", "/v1/dry-run"),
        ("POST", "/v1/plan"),
        ("POST", "/v1/plan/split"),
        ("POST", "/v1/plan/survey"),
        ("POST", "/v1/waves"),
    ),
    ("PUT", "/v1/surveys/<survey_id>/draft"),
    ("POST", "/v1/surveys/<survey_id>/move"),
    ("POST", "/v1/surveys/<survey_id>/erase"),
    ("PUT", "/v1/surveys/<survey_id>/stop-rule"),
    ("POST", "/v1/surveys/<survey_id>/invitations"),
    ("POST", "/v1/surveys/<survey_id>/invitations/revoke"),
    ("PUT", "/v1/surveys/<survey_id>/webhook"),
    *(("POST", "/v1/api-keys"), ("POST", "/v1/people")),
    ("PUT", "/v1/people/<account_id>/role"),
}
# What these do, there is nothing of.
IDLE = {
    ("POST", "/v1/surveys/<survey_id>/jobs/<job_id>/cancel"): (200,),
    ("POST", "/v1/surveys/<survey_id>/releases"): (200, 429),
    ("DELETE", "/v1/surveys/<survey_id>/webhook"): (204,),
}
UNSCOPED = {
    *("/v1/surveys", "/v1/plan", "/v1/plan/split", "/v1/plan/survey", "/v1/waves", "/v1/dry-run")
}


def routes(desk: Desk) -> list[tuple[str, Rule]]:
    return [
        (method, rule)
        for rule in desk.office.app.url_map.iter_rules()
        if rule.rule.startswith("/v1/")
        and not rule.rule.startswith("/v1/log/")
        and rule.rule not in PUBLIC
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def ask(desk: Desk, by: str, method: str, rule: Rule) -> Any:
    """Send an empty object where a body is read: it is refused."""
    path = rule.rule
    for name, value in {
        "<survey_id>": desk.office.survey,
        "<job_id>": desk.office.job,
        "<prefix>": "AAAAAAAA",
        "<account_id>": "0" * 32,
        "<int:version>": "1",
    }.items():
        path = path.replace(name, value)
    assert "<" not in path
    return desk.ask(method, path, by, json={} if (method, rule.rule) in WITH_BODY else None)


def test_every_route_is_in_the_matrix(desk: Desk) -> None:
    assert {(method, rule.rule) for method, rule in routes(desk)} == set(NEEDED)


CALLERS = (
    *("", "revoked", "reader", "analyst", "admin", "owner"),
    *("this survey", "another survey", "foreign owner"),
)


@pytest.mark.parametrize("caller", CALLERS)
def test_every_route_for_every_caller(desk: Desk, caller: str) -> None:
    role = {"this survey": "admin", "another survey": "owner", "foreign owner": "owner"}.get(
        caller, caller
    )
    before, wrong = desk.tables(), []
    for method, rule in routes(desk):
        names_survey = "<survey_id>" in rule.rule
        if (method, rule.rule) == ("POST", "/v1/surveys/<survey_id>/jobs") and (
            caller in ("admin", "owner", "this survey")
        ):
            continue  # others publish
        answer = ask(desk, caller, method, rule)
        if caller in ("", "revoked"):
            right = answer.status_code == 401
        elif LADDER.index(role) < LADDER.index(NEEDED[method, rule.rule]):
            right = answer.status_code == 403
        elif caller in ("another survey", "foreign owner") and names_survey:
            right = answer.status_code == 404
        elif caller in ("this survey", "another survey") and not names_survey:
            is_open = rule.rule in UNSCOPED and (method, rule.rule) != ("POST", "/v1/surveys")
            right = (answer.status_code == 403) is not is_open
        else:
            refused = (200,) if method == "GET" else (404, 422)
            right = answer.status_code in IDLE.get((method, rule.rule), refused)
        if not right:
            wrong.append((method, rule.rule, answer.status_code))
    assert wrong == []
    assert desk.tables() == before


def test_every_view_has_the_role_of_the_matrix(desk: Desk) -> None:
    views = desk.office.app.view_functions
    analyst = ("/plan", "/plan/split", "/plan/survey", "/waves", "/estimates", "/counts")
    for method, rule in routes(desk):
        if rule.rule.endswith(analyst) or (method, rule.rule) == ("GET", "/v1/surveys"):
            continue  # the test above asks with the least role
        assert views[rule.endpoint].key_role == NEEDED[method, rule.rule], rule.rule


def test_a_survey_of_others_looks_nonexistent(desk: Desk) -> None:
    for path in ("", "/draft", "/versions", "/jobs/" + desk.office.job, "/webhook"):
        for caller in ("another survey", "foreign owner"):
            foreign, missing = (
                desk.ask("GET", f"/v1/surveys/{survey}{path}", caller)
                for survey in (desk.office.survey, "f" * 32)
            )
            assert (foreign.status_code, foreign.data) == (404, missing.data), path
    listed = desk.ask("GET", "/v1/surveys?drafts=true", "foreign owner").get_json()
    assert listed == {"surveys": [], "next": None}
    assert desk.ask("GET", "/v1/people", "foreign owner").get_json()["people"][0]["email"] == (
        "foreign-owner@example.org"
    )
    assert "habits" not in desk.ask("GET", "/v1/audit-trail", "foreign owner").text
    prefixes = [
        one["label"] for one in desk.ask("GET", "/v1/api-keys", "foreign owner").get_json()["keys"]
    ]
    assert prefixes == ["foreign"]


def test_nobody_reaches_what_belongs_to_another_organisation(desk: Desk) -> None:
    """Ids of people and keys of one organisation, sent by an owner of another."""
    before = desk.tables()
    account, prefix = desk.office.account, desk.office.key
    for method, path, body in (
        ("PUT", f"/v1/people/{account}/role", {"role": "owner"}),
        ("POST", f"/v1/people/{account}/disable", None),
        ("DELETE", f"/v1/api-keys/{prefix}", None),
        (
            "POST",
            "/v1/api-keys",
            {"role": "analyst", "label": "x", "surveys": [desk.office.survey]},
        ),
    ):
        assert desk.ask(method, path, "foreign owner", json=body).status_code == 404, path
    assert desk.tables() == before


def test_nobody_makes_a_key_with_more_rights(desk: Desk) -> None:
    before = desk.tables()
    refused = desk.ask("POST", "/v1/api-keys", "admin", json={"role": "owner", "label": "x"})
    assert (refused.status_code, refused.get_json()["field"]) == (403, "role")
    assert desk.tables() == before
    made = desk.ask("POST", "/v1/api-keys", "owner", json={"role": "owner", "label": "x"})
    assert made.status_code == 201
