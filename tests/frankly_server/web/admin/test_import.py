# SPDX-License-Identifier: Apache-2.0
"""Surveys from uploaded files: a survey file at once, an XLSForm after a report."""

import html
import io
import re
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.frankly_server.surveys.workbooks import workbook
from tests.frankly_server.web.admin.office import Office, token
from tests.frankly_server.web.admin.test_forms import refused_field
from tests.frankly_server.web.admin.test_question_form import FILE, begun, draft_of

SHEETS = {
    "survey": [
        ["type", "name", "label::English (en)", "label::French (fr)", "required"],
        ["start", "start", "", "", ""],
        ["select_one yn", "smokes", "Do you smoke?", "Fumez-vous ?", "yes"],
        ["select_multiple sports", "sports", "Which sports?", "Quels sports ?", "yes"],
        ["text", "why", "Why?", "Pourquoi ?", ""],
    ],
    "choices": [
        ["list_name", "name", "label::English (en)", "label::French (fr)"],
        ["yn", "yes", "Yes", "Oui"],
        ["yn", "no", "No", "Non"],
        ["sports", "ball", "Ball <b>games</b>", "Balle"],
        ["sports", "swim", "Swimming", "Natation"],
    ],
    "settings": [["form_title", "form_id"], ["Habits <script>", "habits_x"]],
}


def upload(
    client: FlaskClient, data: bytes, path: str = "/admin/surveys/new", **fields: str
) -> Any:
    form: dict[str, Any] = {"csrf": token(client), "how": "file", **fields}
    form = {name: value for name, value in form.items() if value}
    form["upload"] = (io.BytesIO(data), "a.bin")
    return client.post(path, data=form, content_type="multipart/form-data")


def test_an_xlsform_becomes_a_survey_after_its_report(office: Office) -> None:
    client = office.client("admin")
    before = office.services.surveys.list()
    answer = upload(client, workbook(**SHEETS))
    assert answer.status_code == 200
    page = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", answer.text)))
    assert "2 questions can be taken over" in page
    assert "Do you smoke? taken over" in page
    assert "Why? left out :" in page
    assert "<script>" not in answer.text.replace("<script src", "")
    assert office.services.surveys.list() == before
    text = re.search(r'name="file" value="([^"]*)"', answer.text)
    assert text
    fields = {"csrf": token(client), "how": "file", "file": html.unescape(text[1])}
    made = client.post("/admin/surveys/new", data=fields, content_type="multipart/form-data")
    assert made.status_code == 303
    definition = draft_of(office, made.headers["Location"].removesuffix("/questions"))
    assert definition.languages == ("en", "fr")
    assert definition.form is not None
    assert [one.id for one in definition.form.questions] == ["smokes", "sports"]


def test_a_survey_file_is_read_from_an_upload(office: Office) -> None:
    client = office.client("admin")
    made = upload(client, FILE.replace(b"FILE", b"uploaded"))
    assert made.status_code == 303
    survey = made.headers["Location"].removesuffix("/questions")
    assert draft_of(office, survey).name == "uploaded"
    # An upload replaces the draft of its own survey, whatever text the page shows.
    changed = FILE.replace(b"FILE", b"uploaded").replace(b"Members", b"People")
    path = f"{survey}/file"
    edited = upload(client, changed, path, how="", file="name: x")
    assert (edited.status_code, refused_field(edited)) == (422, "upload")
    shown = draft_of(office, survey).to_yaml().decode().replace("\n", "\r\n")
    assert upload(client, changed, path, how="", file=shown).status_code == 303
    assert draft_of(office, survey).title["en"] == "People"


BAD: dict[str, tuple[bytes, dict[str, str], str]] = {
    "nothing": (b"", {}, "upload"),
    "both": (FILE, {"file": "name: x"}, "upload"),
    "a broken workbook": (b"PK\x03\x04 and nothing", {}, "upload"),
    "an old broken workbook": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"x" * 600, {}, "upload"),
    "a workbook without questions": (workbook(survey=[["type", "name"], ["text", "a"]]), {}, "upload"),
    "another workbook": (workbook(data=[["a"], ["b"]]), {}, "upload"),
    "a template too": (FILE, {"template": "census"}, "form"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_files_that_cannot_be_read_make_nothing(office: Office, case: str) -> None:
    client, before = office.client("admin"), office.services.surveys.list()
    data, fields, at = BAD[case]
    answer = upload(client, data, **fields)
    assert (answer.status_code, refused_field(answer)) == (422, at)
    assert "Traceback" not in answer.text
    assert office.services.surveys.list() == before


def test_a_workbook_does_not_replace_a_draft(office: Office) -> None:
    client, survey = office.client("admin"), begun(office, "not-replaced")
    before = draft_of(office, survey)
    answer = upload(client, workbook(**SHEETS), f"{survey}/file", how="")
    assert (answer.status_code, refused_field(answer)) == (422, "upload")
    assert draft_of(office, survey) == before
