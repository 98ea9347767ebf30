# SPDX-License-Identifier: Apache-2.0
"""Colour, logo and way back to a panel on the page Questions: kept, replaced, removed, and refused at their field."""

import io
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_server.surveys.page_definition import MAX_LOGO_BYTES, logo_text
from markupsafe import escape

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
    "an address without encryption": (
        {"return_to": "http://panel.example", "completion_code": "C1"},
        "write an address such as",
    ),
    "a code with markup": ({"completion_code": "<b>C1"}, "write a code such as"),
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


def test_the_way_back_to_a_panel_is_set_kept_and_removed(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, survey = desk

    def page_after(**fields: Any) -> Any:
        assert send(client, f"{survey}/text", **ABOUT, **fields).status_code == 303
        page = office.services.surveys.draft(survey.rsplit("/", 1)[1]).page
        return page and (page.return_to, page.completion_code)

    address = "https://panel.example/{id}?a='1'&b=2"
    assert page_after(return_to=f" {address} ", completion_code="") == (address, None)
    assert page_after(completion_code="C1A2B3") == (address, "C1A2B3")
    assert page_after() == (address, "C1A2B3")  # a form without these fields
    shown = client.get(f"{survey}/questions").text
    assert f'value="{escape(address)}"' in shown
    assert 'value="C1A2B3"' in shown
    assert page_after(return_to="", completion_code="C1A2B3") == (None, "C1A2B3")
    assert page_after(completion_code="") is None


def test_a_refused_way_back_is_named_at_its_field_and_nothing_typed_is_lost(
    desk: tuple[FlaskClient, str],
) -> None:
    client, survey = desk
    typed = {"return_to": 'https://a b/"><b>', "completion_code": "C1", "accent": "#8a1c4a"}
    answer = send(client, f"{survey}/text", **ABOUT, **typed)
    assert answer.status_code == 422
    for value in typed.values():
        assert f'value="{escape(value)}"' in answer.text
    assert '"><b>' not in answer.text
    described = 'aria-invalid="true" aria-describedby="page.return_to-error return-hint"'
    assert described in answer.text
    assert 'id="page.return_to-error"' in answer.text
