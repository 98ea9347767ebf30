# SPDX-License-Identifier: Apache-2.0
"""The forms of the wizard: what they make, and what they say to what they cannot take. Never a 500, never a trace."""

import io
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.frankly_server.web.admin.office import Office, finish_job, send

COUNTS = b",no,yes\r\nlow,120,30\r\nhigh,40,60\r\n"


def begin(client: FlaskClient, **changes: str) -> Any:
    form = {"how": "question", "title": "Work", "language": "en", "question": "Tired?", "choices": "No\nYes"}
    return send(client, "/admin/surveys/new", **(form | changes))


@pytest.fixture(scope="module")
def desk(office: Office) -> tuple[FlaskClient, str]:
    """An admin's browser, and the address of a draft of theirs."""
    client = office.client("admin")
    return client, begin(client).headers["Location"].removesuffix("/questions")


def test_a_prior_is_uploaded_and_its_margins_follow(office: Office, desk: tuple[FlaskClient, str]) -> None:
    client, survey = desk
    form = {
        "block": "tired",
        "secret": "attribute",
        "unit": "epsilon",
        "epsilon": "0.5",
        "name": "Income",
        "counts_file": (io.BytesIO(COUNTS), "counts.csv"),
        "source": "a public table",
        "backstop": "yes",
    }
    answer = send(client, f"{survey}/protection", **form)
    assert (answer.status_code, answer.headers["Location"]) == (303, f"{survey}/margins?block=tired")
    block = office.services.surveys.draft(survey.rsplit("/", 1)[1]).blocks[0]
    assert block.prior is not None
    assert (block.notion, block.prior.joint) == ("lip", (("120", "30"), ("40", "60")))
    assert "±" in client.get(answer.headers["Location"]).text


def test_small_cells_need_a_word(desk: tuple[FlaskClient, str]) -> None:
    client, survey = desk
    form = {"block": "tired", "secret": "attribute", "unit": "epsilon", "epsilon": "0.5", "name": "Income",
            "counts": ",no,yes\nlow,120,3\nhigh,40,60", "source": "a pilot", "backstop": "yes"}  # fmt: skip
    answer = send(client, f"{survey}/protection", **form)
    assert answer.status_code == 409
    assert "point at single people" in answer.text
    assert "low,120,3" in answer.text  # what was typed is still there
    assert send(client, f"{survey}/protection", **(form | {"public": "yes"})).status_code == 303


def test_answers_sent_unchanged_are_said_aloud_and_not_published(office: Office, desk: tuple[FlaskClient, str]) -> None:
    client, _ = desk
    survey = begin(client, title="Unchanged").headers["Location"].removesuffix("/questions")
    form = {"block": "tired", "secret": "attribute", "unit": "epsilon", "epsilon": "1", "name": "Colour",
            "counts": ",no,yes\nred,100,100\nblue,100,100", "source": "none"}  # fmt: skip
    assert send(client, f"{survey}/protection", **form).status_code == 303
    assert "sent unchanged" in client.get(f"{survey}/margins").text
    survey_id = survey.rsplit("/", 1)[1]
    job = office.services.jobs.get(survey_id, finish_job(office.services, survey_id))
    assert job.state == "failed"
    assert "unchanged" in job.detail
    assert send(client, f"{survey}/protection", **(form | {"unchanged": "yes"})).status_code == 303
    job = office.services.jobs.get(survey_id, finish_job(office.services, survey_id))
    assert job.state == "done"


def test_a_name_that_is_taken_is_replaced_in_silence(office: Office) -> None:
    clients = [office.client(caller) for caller in ("admin", "foreign owner")]
    made = [begin(client, title="The same").headers["Location"].split("/")[3] for client in clients]
    assert made[0] != made[1]
    assert clients[1].get(f"/admin/surveys/{made[1]}/questions").status_code == 200
    assert clients[1].get(f"/admin/surveys/{made[0]}/questions").status_code == 404


def test_templates_and_files_begin_a_survey_too(office: Office) -> None:
    client = office.client("admin")
    for form in ({"how": "template", "template": "census"}, {"how": "file", "file": office.file}):
        answer = send(client, "/admin/surveys/new", **form)
        assert answer.status_code == 303
        for page in ("questions", "protection", "margins", "try", "intake", "embed"):
            assert client.get(answer.headers["Location"].replace("questions", page)).status_code == 200


# (page of the draft, or an address; form) -> status
BAD_FORMS: dict[str, tuple[str, dict[str, Any], int]] = {
    "no question": ("/admin/surveys/new", {"how": "question"}, 422),
    "one choice": ("/admin/surveys/new", {"how": "question", "title": "x", "question": "x", "choices": "x"}, 422),
    "equal choices": ("/admin/surveys/new", {"how": "question", "title": "x", "question": "x",
                                             "choices": "a\nＡ"}, 422),
    "bidi": ("/admin/surveys/new", {"how": "question", "title": "a\u202eb", "question": "x", "choices": "a\nb"}, 422),
    "NUL": ("/admin/surveys/new", {"how": "question", "title": "a\x00b", "question": "x", "choices": "a\nb"}, 422),
    "language": ("/admin/surveys/new", {"how": "question", "title": "x", "language": "!", "question": "x",
                                        "choices": "a\nb"}, 422),
    "no template": ("/admin/surveys/new", {"how": "template", "template": "../x"}, 404),
    "no YAML": ("/admin/surveys/new", {"how": "file", "file": "a: [b"}, 422),
    "question": ("questions", {"question": "", "choices": "a\nb"}, 422),
    "question gone": ("questions/nothing/remove", {}, 404),
    "last question": ("questions/tired/remove", {}, 422),
    "minimum": ("text", {"title": "x", "min_reports": "-1"}, 422),
    "closes": ("text", {"title": "x", "min_reports": "10", "closes": "tomorrow"}, 422),
    "epsilon NaN": ("protection", {"block": "tired", "epsilon": "nan"}, 422),
    "epsilon 0": ("protection", {"block": "tired", "epsilon": "0"}, 422),
    "epsilon 1_0": ("protection", {"block": "tired", "epsilon": "1_0"}, 422),
    "factor 1": ("protection", {"block": "tired", "unit": "factor", "factor": "1"}, 422),
    "mechanism": ("protection", {"block": "tired", "epsilon": "1", "mechanism": "magic"}, 422),
    "no block": ("protection", {"block": "nothing", "epsilon": "1"}, 404),
    "no counts": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x"}, 422),
    "decimal comma": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                     "source": "x", "counts": ",no,yes\nlow,0,5,0,5"}, 422),
    "wrong columns": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                     "source": "x", "counts": ",a,b,c\nlow,10,20,30\nhigh,10,20,30"}, 422),
    "trial of nothing": ("try", {"block": "nothing", "answer": "x"}, 404),
    "move a draft": ("move", {"move": "pause"}, 409),
    "move nowhere": ("move", {"move": "explode"}, 404),
    "stop at none": ("stop-rule", {"rule": "reports", "reports": "0"}, 422),
    "stop at words": ("stop-rule", {"rule": "reports", "reports": "٣"}, 422),
    "stop at a wide margin": ("stop-rule", {"rule": "margin", "points": "90"}, 422),
    "stop before publishing": ("stop-rule", {"rule": "margin", "points": "3"}, 409),
    "cancel nothing": ("jobs/" + "0" * 32 + "/cancel", {}, 404),
    "key of a foreign survey": ("/admin/keys", {"label": "x", "role": "analyst", "survey": "0" * 32}, 404),
    "key of no role": ("/admin/keys", {"label": "x", "role": "root"}, 422),
    "key without a note": ("/admin/keys", {"label": "", "role": "admin"}, 422),
    "no such key": ("/admin/keys/%00%00/revoke", {}, 404),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FORMS)
def test_a_bad_form_is_explained(office: Office, desk: tuple[FlaskClient, str], name: str) -> None:
    page, form, status = BAD_FORMS[name]
    client, survey = desk
    answer = send(client, page if page.startswith("/") else f"{survey}/{page}", **form)
    assert (answer.status_code, answer.mimetype) == (status, "text/html"), answer.text
    assert "Traceback" not in answer.text
    assert "not accepted" in answer.text or "did not work" in answer.text


@pytest.mark.parametrize(
    "path", ["intake?target=x", "intake?target=0", "margins?block=x", "jobs/x", "versions/9", "/admin/audit?before=x"]
)
def test_a_bad_address_is_explained(office: Office, path: str) -> None:
    client = office.client("owner")
    answer = client.get(path if path.startswith("/") else f"/admin/surveys/{office.survey}/{path}")
    assert answer.status_code in (404, 422)
    assert answer.mimetype == "text/html"


def test_a_form_that_is_too_large_is_refused_before_it_is_read(office: Office) -> None:
    client = office.client("admin")
    answer = client.post("/admin/surveys/new", data={"csrf": "x", "file": "x" * (3 * 2**20)})
    assert answer.status_code == 413
