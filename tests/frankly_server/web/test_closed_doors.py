# SPDX-License-Identifier: Apache-2.0
"""Forbidden requests: changes of documents (bad input 43), and access to surveys of others (44)."""

import threading

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import InvalidInput
from frankly_server.services import Services
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import Office, send
from tests.frankly_server.web.site import SURVEY, Site, check_problem
from tests.threads import concurrently


def published(site: Site) -> bytes:
    data: bytes = site.client.get(f"{site.document_path}?digest={site.digest}").data
    return data


@pytest.mark.parametrize("method", ["PUT", "PATCH", "POST", "DELETE"])
def test_no_method_changes_a_document(site: Site, method: str) -> None:
    before = published(site)
    for path in (site.document_path, f"{site.document_path}?digest={site.digest}"):
        check_problem(site.client.open(path, method=method, data=b"{}"), 405, "method_not_allowed")
    assert published(site) == before


def test_another_mechanism_is_a_new_version_and_the_old_one_continues(fresh_site: Site) -> None:
    site, before = fresh_site, published(fresh_site)
    changed = SURVEY.replace(b'epsilon: "1"', b'epsilon: "0.5"')
    site.services.surveys.apply(parse_definition(changed))
    assert site.client.get(site.document_path).data == before  # a draft is not served
    published_survey = site.services.surveys.publish("habits")
    assert (published_survey.version, published_survey.digest == site.digest) == (2, False)
    assert published(site) == before
    newest = SurveyDocument.parse(
        Envelope.from_bytes(site.client.get(site.document_path).data, SURVEY_TYPE).payload
    )
    assert (newest.digest, newest.version, newest.prev) == (published_survey.digest, 2, site.digest)
    assert (
        site.send(site.report(1)).json["status"] == "accepted"
    )  # for the version that was answered


def test_concurrent_publishing_creates_one_version(fresh_site: Site) -> None:
    """Both processes design version 2; the later one gets 409 and publishes again, and no version
    is replaced."""
    site, together = fresh_site, threading.Barrier(2, timeout=60)
    outcomes: list[str] = []

    def publish(epsilon: bytes, services: Services) -> None:
        changed = SURVEY.replace(b'epsilon: "1"', b'epsilon: "%s"' % epsilon)
        services.surveys.apply(parse_definition(changed))
        try:
            outcomes.append(
                f"version {services.surveys.publish('habits', lambda *_: wait()).version}"
            )
        except InvalidInput as refused:
            outcomes.append(f"{refused.problem.status} {refused.code}")
        services.close()

    waited = threading.local()

    def wait() -> None:
        if not getattr(waited, "once", False):
            waited.once = True
            together.wait()

    now = site.services.surveys._clock.now()
    # The application is not created in the threads, because CPython 3.11 may fail if two threads
    # parse code, as Werkzeug does.
    processes = [(epsilon, site.at(now).services) for epsilon in (b"0.5", b"0.7")]
    concurrently(publish, *processes)
    assert sorted(outcomes) == ["409 immutable", "version 2"]
    assert [document.version for document in site.services.surveys.versions(site.survey)] == [1, 2]
    assert site.services.surveys.versions(site.survey)[0].digest == site.digest


def test_pages_answer_409_to_changes_of_a_closed_survey(own_office: Office) -> None:
    office, client = own_office, own_office.client("admin")
    before = office.services.surveys.envelope(office.survey)
    assert (
        send(client, f"/admin/surveys/{office.survey}/move", move="close", sure="yes").status_code
        == 303
    )
    for move in ("pause", "close"):  # a closed survey can be neither paused nor closed again
        assert (
            send(client, f"/admin/surveys/{office.survey}/move", move=move, sure="yes").status_code
            == 409
        )
    assert (
        send(client, f"/admin/surveys/{office.survey}/move", move="archive", sure="yes").status_code
        == 303
    )
    assert send(client, f"/admin/surveys/{office.survey}/move", move="resume").status_code == 409
    changed = send(
        client,
        f"/admin/surveys/{office.survey}/protection",
        block="smokes",
        epsilon="0.5",
        mechanism="warner",
    )
    assert changed.status_code in (303, 409, 422)
    assert office.services.surveys.envelope(office.survey) == before
    office.services.close()


def test_the_three_refusals_of_the_api(site: Site) -> None:
    """The API returns 401 for a revoked key, 403 for a lower role, and 404 for surveys of others,
    as for unknown surveys."""
    access = site.services.access
    revoked = access.create("admin", "leaves")
    assert site.estimates(key=revoked).status_code == 200
    access.revoke(access.authenticate(revoked).prefix)
    check_problem(site.estimates(key=revoked), 401, "unauthenticated")
    foreign = access.create("admin", "other", "other")
    theirs = check_problem(site.estimates(key=foreign), 404, "survey_unknown")
    nowhere = site.client.get(
        f"/v1/surveys/{'0' * 32}/estimates", headers={"Authorization": f"Bearer {foreign}"}
    )
    assert check_problem(nowhere, 404, "survey_unknown") == theirs


def test_an_analyst_opens_no_form_of_an_admin(own_office: Office) -> None:
    office = own_office
    client, drafts = office.client("analyst"), office.services.surveys.draft(office.survey)
    survey_path = f"/admin/surveys/{office.survey}"
    for path in (
        f"{survey_path}/text",
        f"{survey_path}/protection",
        f"{survey_path}/publish",
        f"{survey_path}/move",
        "/admin/keys",
        "/admin/people",
    ):
        assert (
            send(client, path, title="Mine", move="close", role="admin", label="x").status_code
            == 403
        ), path
    assert office.services.surveys.draft(office.survey) == drafts
    assert office.services.lifecycle.get(office.survey).state == "open"
    owner = office.services.accounts.sign_in("owner@example.org", "correct horse battery").person
    analyst = next(
        row for row in office.services.accounts.list("main") if row.email == "analyst@example.org"
    )
    assert client.get(survey_path).status_code == 200
    office.services.accounts.disable(owner, analyst.id)
    assert client.get(survey_path).status_code == 303  # redirected to the sign-in page
    office.services.close()
