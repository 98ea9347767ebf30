# SPDX-License-Identifier: Apache-2.0
"""Colour and logo on the page Questions: kept, replaced, removed, and refused at their field."""

import io
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_server.surveys.page_definition import MAX_LOGO_BYTES, logo_text

from tests.frankly_server.web.admin.office import Office, begin, send
from tests.pixels import PNG

ABOUT = {"title-en": "Work", "languages": "en", "min_reports": "100"}


@pytest.fixture(scope="module")
def desk(office: Office) -> tuple[FlaskClient, str]:
    """An admin's browser, and the URL of the admin's draft."""
    client = office.client("admin")
    return client, begin(client).headers["Location"].removesuffix("/questions")


def image(content: bytes) -> tuple[io.BytesIO, str]:
    return io.BytesIO(content), "logo.png"


def test_a_look_is_set_kept_and_removed(office: Office, desk: tuple[FlaskClient, str]) -> None:
    client, survey = desk

    def page_after(**fields: Any) -> Any:
        assert send(client, f"{survey}/text", **ABOUT, **fields).status_code == 303
        page = office.services.surveys.draft(survey.rsplit("/", 1)[1]).page
        return page and (page.accent, page.logo)

    assert page_after(accent="#0b5c6b") is None  # the usual colour
    assert page_after(accent="#8a1c4a") == ("#8a1c4a", None)
    assert page_after(accent="#8a1c4a", logo=image(PNG)) == ("#8a1c4a", logo_text(PNG))
    assert page_after(accent="#8A1C4B", logo=image(b"")) == ("#8a1c4b", logo_text(PNG))
    assert page_after() == ("#8a1c4b", logo_text(PNG))  # a form without these fields
    shown = client.get(f"{survey}/questions").text
    assert 'value="#8a1c4b"' in shown
    assert "Remove the logo" in shown
    assert page_after(accent="#0b5c6b", no_logo="yes") is None


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a colour by name": ({"accent": "red"}, "write a colour such as"),
    "a drawing": ({"logo": b"<svg onload=alert(1)>"}, "choose a PNG, JPEG or WebP image"),
    "a large image": ({"logo": PNG + b"\0" * MAX_LOGO_BYTES}, "of at most 64 KB"),
    "a new logo and none": ({"logo": PNG, "no_logo": "yes"}, "not both"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_look_that_cannot_be_shown_is_explained(desk: tuple[FlaskClient, str], name: str) -> None:
    client, survey = desk
    fields, words = BAD[name]
    fields = {key: image(value) if key == "logo" else value for key, value in fields.items()}
    answer = send(client, f"{survey}/text", **ABOUT, **fields)
    assert answer.status_code == 422
    assert words in answer.text
    assert "svg onload" not in answer.text
