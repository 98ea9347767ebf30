# SPDX-License-Identifier: Apache-2.0
"""Page on which admins give and withdraw links to a survey's results."""

import re
from typing import Any

import pytest
from frankly_server.surveys.definition import parse_definition
from frankly_server.web import actions

from tests.frankly_server.web.admin.office import Office, send
from tests.frankly_server.web.site import SURVEY

ONCE = re.compile(r"<pre data-copy>(http\S+?/results/([A-Za-z0-9_-]{43}))</pre>")


def address(survey: str) -> str:
    return f"/admin/surveys/{survey}/results/links"


def trail(office: Office) -> list[tuple[str, str, str]]:
    """Return the newest events about keys, newest first."""
    events = office.services.accounts.trail("main", None, 20)
    return [(one.actor, one.action, one.subject) for one in events if "API key" in one.action]


def given(office: Office, caller: str = "admin", label: str = "The board") -> str:
    """Give a link; return its secret."""
    answer = send(office.client(caller), address(office.survey), label=label)
    assert answer.status_code == 201
    found = ONCE.search(answer.text)
    assert found
    assert found[1].startswith(office.services.settings.public_url + "/results/")
    assert "shown only now" in answer.text
    return found[2]


def status(office: Office, secret: str) -> int:
    """Return the status of a link for somebody without an account."""
    code: int = office.app.test_client().get(f"/results/{secret}").status_code
    return code


def test_a_link_is_shown_once_works_and_is_withdrawn(own_office: Office) -> None:
    office, client = own_office, own_office.client("admin")
    assert "No link yet" in client.get(address(office.survey)).text
    secret = given(office)
    other = given(office, label="Ada")
    assert (status(office, secret), status(office, other)) == (200, 200)
    page = client.get(address(office.survey)).text
    assert "The board" in page
    assert "works" in page
    assert secret not in page
    assert ONCE.search(page) is None
    answer = send(client, f"{address(office.survey)}/{secret[:8]}/withdraw")
    assert (answer.status_code, answer.headers["Location"]) == (303, address(office.survey))
    assert (status(office, secret), status(office, other)) == (404, 200)
    page = client.get(address(office.survey)).text
    assert page.count("withdrawn ") == 1
    withdrawn = f"{secret[:8]}…, reader, the survey habits: The board"
    assert trail(office)[0] == ("admin@example.org", "API key revoked", withdrawn)
    made = f"{other[:8]}…, reader, the survey habits: Ada"
    assert trail(office)[1] == ("admin@example.org", "API key made", made)
    # A link works or does not: nothing brings it back.
    assert send(client, f"{address(office.survey)}/{secret[:8]}/withdraw").status_code == 404


@pytest.mark.parametrize("caller", ["viewer", "analyst"])
def test_only_admins_give_and_withdraw_links(own_office: Office, caller: str) -> None:
    office, client = own_office, own_office.client(caller)
    secret = given(office, "owner")
    before = office.services.access.list()
    assert client.get(address(office.survey)).status_code == 403
    assert send(client, address(office.survey), label="me").status_code == 403
    withdraw = f"{address(office.survey)}/{secret[:8]}/withdraw"
    assert send(client, withdraw).status_code == 403
    assert send(office.client("foreign owner"), withdraw).status_code == 404
    assert office.services.access.list() == before


def test_only_links_of_this_survey_are_listed_and_withdrawn_here(own_office: Office) -> None:
    office, client = own_office, own_office.client("owner")
    office.services.surveys.apply(
        parse_definition(SURVEY.replace(b"name: habits", b"name: another"))
    )
    another = office.services.surveys.publish("another").survey_id
    create = office.services.access.create
    keys = {
        "of another survey": create("reader", "elsewhere", surveys=[another]),
        "of an analyst": create("analyst", "a program", surveys=[office.survey]),
        "of another organisation": create("reader", "theirs", "other", [office.survey]),
    }
    page = client.get(address(office.survey)).text
    before = office.services.access.list()
    for name, key in keys.items():
        answer = send(client, f"{address(office.survey)}/{key[13:21]}/withdraw")
        assert (answer.status_code, "this survey has no such link" in answer.text) == (404, True)
        assert key[13:21] not in page, name
    for prefix in ("nothing", "A" * 8, "%00"):
        answer = send(client, f"{address(office.survey)}/{prefix}/withdraw")
        assert answer.status_code == 404
    assert office.services.access.list() == before
    assert "elsewhere" in client.get(address(another)).text


def test_a_draft_has_nothing_to_share(own_office: Office) -> None:
    office, client = own_office, own_office.client("admin")
    office.services.surveys.apply(parse_definition(SURVEY.replace(b"name: habits", b"name: new")))
    draft = next(row.survey_id for row in office.services.surveys.list() if row.name == "new")
    before = office.services.access.list()
    page = client.get(address(draft)).text
    assert "nothing to share yet" in page
    assert 'name="label"' not in page
    assert send(client, address(draft), label="x").status_code == 409
    assert office.services.access.list() == before


BAD_LABELS: dict[str, str] = {
    "none": "",
    "spaces": "  ",
    "too long": "x" * 201,
    "a direction": "a\u202eb",
    "a zero character": "a\x00b",
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_a_bad_note_gives_no_link_and_stays_in_the_form(office: Office, name: str) -> None:
    before = office.services.access.list()
    answer = send(office.client("admin"), address(office.survey), label=BAD_LABELS[name])
    assert (answer.status_code, 'data-field="label"' in answer.text) == (422, True)
    if name == "too long":
        assert f'value="{BAD_LABELS[name]}"' in answer.text
    assert office.services.access.list() == before


def test_a_note_is_text(own_office: Office) -> None:
    given(own_office, label="<b>Ada</b> & 'Bo'")
    page = own_office.client("admin").get(address(own_office.survey)).text
    assert "<b>Ada" not in page
    assert "&lt;b&gt;Ada&lt;/b&gt; &amp; &#39;Bo&#39;" in page


def test_links_count_as_keys_of_the_organisation(
    own_office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MOST_KEYS", len(own_office.services.access.list()))
    answer = send(own_office.client("admin"), address(own_office.survey), label="one more")
    assert (answer.status_code, "revoke some first" in answer.text) == (409, True)


def test_the_page_of_keys_lists_links_but_makes_none(own_office: Office) -> None:
    office, client = own_office, own_office.client("owner")
    secret = given(office)
    page = client.get("/admin/keys").text
    assert secret[:8] in page
    assert '<td data-th="Role">reader</td>' in page
    assert re.findall(r"<option[^>]*>(\w+)</option>", page) == ["analyst", "admin", "owner"]
    assert send(client, f"/admin/keys/{secret[:8]}/revoke").status_code == 303
    assert status(office, secret) == 404


# Body of a request for a reader's key -> status and code of the response.
REQUESTS: dict[str, tuple[Any, int, str | None]] = {
    "one survey": (1, 201, None),
    "no survey, which would be all": (0, 422, "field_type"),
    "two surveys": (2, 422, "field_type"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_api_gives_and_withdraws_links_too(own_office: Office, name: str) -> None:
    office, client = own_office, own_office.app.test_client()
    count, expected, code = REQUESTS[name]
    headers = {"Authorization": "Bearer " + office.services.access.create("admin", "program")}
    body = {"role": "reader", "label": "x", "surveys": [office.survey] * count}
    answer = client.post("/v1/api-keys", json=body, headers=headers)
    assert (answer.status_code, answer.get_json().get("code")) == (expected, code)
    if expected == 201:
        secret = answer.get_json()["key"].removeprefix("frankly_live_")
        assert status(office, secret) == 200
        listed = client.get("/v1/api-keys", headers=headers).get_json()["keys"]
        (made,) = [one for one in listed if one["prefix"] == secret[:8]]
        assert (made["role"], made["surveys"]) == ("reader", [office.survey])
        answer = client.delete(f"/v1/api-keys/{secret[:8]}", headers=headers)
        assert (answer.status_code, status(office, secret)) == (204, 404)
