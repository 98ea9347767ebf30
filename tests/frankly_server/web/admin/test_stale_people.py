# SPDX-License-Identifier: Apache-2.0
"""Forms on what gives access, from a person who is put out after their session was checked."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_server.accounts import Accounts, Person
from frankly_server.store.schema import metadata
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.outbound import Post
from frankly_server.surveys.webhooks import Webhooks
from sqlalchemy import select

from tests.frankly_server.web.admin.office import Office, finish_job, make_office, send
from tests.frankly_server.web.site import DRINKS, NOW, REGION, SMOKES, habits

URL = "https://hooks.example.org/x"
FORMS: dict[str, tuple[str, dict[str, str]]] = {
    "a person": ("people", {"email": "pal@example.org", "role": "owner"}),
    "a role": ("people/{account}/role", {"role": "owner"}),
    "a disabled person": ("people/{account}/disable", {}),
    "no second factor needed": ("people/second-factor", {"needed": "no"}),
    "an API key": ("keys", {"label": "mine", "role": "admin"}),
    "an API key revoked": ("keys/{key}/revoke", {}),
    "a webhook": ("surveys/{survey}/webhook", {"url": URL}),
    "a test of the webhook": ("surveys/{survey}/webhook/test", {}),
    "no webhook": ("surveys/{survey}/webhook/remove", {}),
    "invitations": ("surveys/{survey}/invitations", {"count": "3", "format": "csv"}),
    "no invitations": ("surveys/{survey}/invitations/revoke", {"all": "yes"}),
    "no answers": ("surveys/{survey}/erase", {"name": "invited"}),
    "signed out everywhere": ("account/sign-out-everywhere", {}),
}
TABLES = (
    *("accounts", "sessions", "known_browsers", "organisations"),
    *("api_keys", "webhooks", "webhook_deliveries", "tokens", "audit_events", "day_counts"),
)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An office whose survey has a webhook, and invitations."""
    made = make_office(tmp_path_factory.mktemp("office"))
    services = made.services
    services.webhooks = Webhooks(services.database, FixedClock(NOW), Post(["hooks.example.org"]))
    file = habits(SMOKES, DRINKS, budget="2", strata=REGION).replace(
        b"name: habits", b"name: invited"
    )
    survey = services.surveys.apply(parse_definition(file)).survey_id
    assert survey is not None
    owner = made.client("owner")
    about = {"title-en": "Invited", "languages": "en", "min_reports": "10", "invited": "yes"}
    assert send(owner, f"/admin/surveys/{survey}/text", **about).status_code == 303
    finish_job(services, survey)
    services.invites.make(survey, 3)
    services.webhooks.set(survey, URL)
    services.intake.accept_batch(survey, [{}])
    assert services.intake.refusals(survey)  # what erasing would delete
    services.lifecycle.move(survey, "pause")
    yield replace(made, survey=survey)
    services.close()


def rows(office: Office) -> dict[str, list[Any]]:
    with office.services.database.engine.connect() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(metadata.tables[name]))))
            for name in TABLES
        }


@pytest.mark.parametrize("form", FORMS)
def test_a_person_who_was_put_out_changes_nothing(
    office: Office, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    owner, (path, fields) = office.client("owner"), FORMS[form]
    path = path.format(survey=office.survey, account=office.account, key=office.key)
    before, read = rows(office), Accounts.person

    def stale(accounts: Accounts, token: str) -> Person | None:
        person = read(accounts, token)
        return person and replace(person, version=person.version - 1)

    with monkeypatch.context() as patch:
        patch.setattr(Accounts, "person", stale)
        answer = send(owner, f"/admin/{path}", **fields)
    assert answer.status_code == 401
    assert "the account has changed in the meantime: sign in again" in answer.text
    assert rows(office) == before
