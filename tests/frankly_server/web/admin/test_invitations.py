# SPDX-License-Identifier: Apache-2.0
"""Invitations page: tables and cards, how many are used, revoking, and who may do it."""

import csv
import io
import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_protocol.trust.invite_codes import token_of_code
from frankly_protocol.trust.tokens import encode_token
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import Office, finish_job, send
from tests.frankly_server.web.site import DRINKS, REGION, SMOKES, habits


@pytest.fixture(scope="module")
def desk(office: Office) -> tuple[FlaskClient, str]:
    """An admin's browser, and the address of a published survey that asks for an invitation."""
    file = habits(SMOKES, DRINKS, budget="2", strata=REGION).replace(
        b"name: habits", b"name: invited"
    )
    survey = office.services.surveys.apply(parse_definition(file)).survey_id
    assert survey is not None
    client, address = office.client("admin"), f"/admin/surveys/{survey}"
    about = {"title-en": "Invited", "languages": "en", "min_reports": "10", "invited": "yes"}
    refused = send(client, f"{address}/invitations", count="3")
    assert refused.status_code == 409
    assert send(client, f"{address}/text", **about).status_code == 303
    finish_job(office.services, survey)
    return client, address


def made(client: FlaskClient, address: str, count: int) -> list[dict[str, str]]:
    answer = send(client, f"{address}/invitations", count=str(count), format="csv")
    assert answer.status_code == 200
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["Cache-Control"] == "no-store"
    return list(csv.DictReader(io.StringIO(answer.text)))


def report(office: Office, address: str, number: int, token: str) -> Any:
    survey = address.rpartition("/")[2]
    document = office.services.surveys.versions(survey)[-1]
    body = {
        "v": 1,
        "doc": document.digest,
        "id": f"{number:032x}",
        "y": [0, 0],
        "strata": {"region": "north"},
        "token": token,
    }
    return office.app.test_client().post(f"/v1/surveys/{survey}/reports", json=body)


def test_a_table_for_a_mail_merge(office: Office, desk: tuple[FlaskClient, str]) -> None:
    client, address = desk
    survey = address.rpartition("/")[2]
    rows = made(client, address, 12)
    assert len({row["code"] for row in rows}) == 12
    link = office.services.surveys.summary(survey).link
    assert all(row["link"] == f"{link}&invite={row['code']}" for row in rows)
    token = encode_token(token_of_code(rows[0]["code"], survey))
    assert report(office, address, 1, token).status_code == 201
    assert report(office, address, 2, token).status_code == 409


def test_only_a_band_of_the_used_ones_is_shown(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, address = desk
    survey = address.rpartition("/")[2]
    for i, row in enumerate(made(client, address, 11)):
        assert (
            report(
                office, address, 100 + i, encode_token(token_of_code(row["code"], survey))
            ).status_code
            == 201
        )
    page = client.get(f"{address}/invitations").text
    used = re.search(r"<dt>Used</dt><dd>(.*?)</dd>", page)
    assert used
    assert used.group(1) == "10 to 19"


def test_cards_have_a_picture_that_leads_to_the_personal_link(
    desk: tuple[FlaskClient, str],
) -> None:
    client, address = desk
    page = send(client, f"{address}/invitations", count="3", format="cards")
    assert page.status_code == 200
    assert page.text.count("<svg") == 3
    codes = re.findall(r"<code>([0-9A-Z-]{19})</code>", page.text)
    assert len(set(codes)) == 3
    # Never again: the next page has none of them.
    assert codes[0] not in client.get(f"{address}/invitations").text


def test_revoked_invitations_open_nothing(office: Office, desk: tuple[FlaskClient, str]) -> None:
    client, address = desk
    survey = address.rpartition("/")[2]
    one, other = made(client, address, 2)
    revoke = f"{address}/invitations/revoke"
    assert send(client, revoke, code=one["code"].lower()).status_code == 303
    assert (
        report(office, address, 50, encode_token(token_of_code(one["code"], survey))).status_code
        == 401
    )
    # The same answer for one that was used or revoked: it must not tell whether somebody has answered.
    assert send(client, revoke, code=one["code"]).status_code == 303
    total = office.services.invites.total(survey)
    assert send(client, revoke, all="yes").status_code == 303
    assert (
        report(office, address, 51, encode_token(token_of_code(other["code"], survey))).status_code
        == 401
    )
    # All stay: fewer would tell which had been used.
    assert office.services.invites.total(survey) == total


BAD = [
    {"count": ""},
    {"count": "0"},
    {"count": "5001"},
    {"count": "-1"},
    {"count": "1e3"},
    {"count": "501", "format": "cards"},
]


@pytest.mark.parametrize("form", BAD, ids=str)
def test_bad_numbers_make_nothing(
    office: Office, desk: tuple[FlaskClient, str], form: dict[str, str]
) -> None:
    client, address = desk
    before = office.services.invites.total(address.rpartition("/")[2])
    answer = send(client, f"{address}/invitations", **form)
    assert answer.status_code in (400, 422)
    assert office.services.invites.total(address.rpartition("/")[2]) == before


@pytest.mark.parametrize(
    ("form", "status"), [({}, 422), ({"code": "x"}, 422), ({"code": "0000-0000-0000-0001"}, 422)]
)
def test_bad_codes_revoke_nothing(
    desk: tuple[FlaskClient, str], form: dict[str, str], status: int
) -> None:
    client, address = desk
    assert send(client, f"{address}/invitations/revoke", **form).status_code == status


def test_making_and_revoking_are_on_the_audit_trail(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, address = desk
    made(client, address, 2)
    send(client, f"{address}/invitations/revoke", all="yes")
    actions = [event.action for event in office.services.accounts.trail("main")[:2]]
    assert actions == ["invitations revoked", "invitations made: 2"]


def test_sources_are_made_on_the_page_and_have_invitations_of_their_own(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, address = desk
    survey = address.rpartition("/")[2]
    about = {"title-en": "Invited", "languages": "en", "min_reports": "10", "invited": "yes"}
    for names, words in (("One", "two or more"), ("Same\nSame", "choice"), ("a\n" * 300, "choice")):
        refused = send(client, f"{address}/text", **about, sources=names)
        assert refused.status_code == 422, names
        assert 'id="sources-error"' in refused.text
        assert words in refused.text
    given = send(client, f"{address}/text", **about, sources="Panel A\nClass 7b")
    assert given.status_code == 303
    finish_job(office.services, survey)
    rule = office.services.surveys.versions(survey)[-1].token
    assert rule is not None
    assert rule.invites == {"panel-a", "class-7b"}
    refused = send(client, f"{address}/invitations", count="3", format="csv")
    assert (refused.status_code, "name the source" in refused.text) == (422, True)
    table = send(client, f"{address}/invitations", count="3", format="csv", source="class-7b").text
    assert table.count("&source=class-7b&invite=") == 3
    page = client.get(f"{address}/invitations").text
    # Of a source, none and a few are not told apart.
    assert page.count('<td data-th="Used">fewer than 10</td>') >= 2
    assert "of earlier versions" in page
