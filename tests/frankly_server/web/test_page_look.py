# SPDX-License-Identifier: Apache-2.0
"""A survey's own colour and logo: every shade can be read, and a change needs no new version."""

from itertools import product

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.page_definition import MAX_LOGO_BYTES, image_of, logo_text
from frankly_server.web import page_look
from frankly_server.web.hosted import files

from tests.frankly_server.web.site import Site, check_problem
from tests.pixels import PNG
from tests.survey_files import SMOKES, habits

WHITE, NEAR_WHITE, NEAR_BLACK = "#ffffff", "#fbfcfc", "#10191c"


def test_the_contrast_is_that_of_the_guidelines() -> None:
    """Values that WCAG techniques and browsers state."""
    for first, second, ratio in (
        ("#000000", WHITE, 21.0),
        ("#767676", WHITE, 4.54),
        ("#777777", WHITE, 4.48),
        ("#0000ff", WHITE, 8.59),
        ("#ff0000", WHITE, 4.0),
        ("#00ff00", "#000000", 15.3),
    ):
        assert page_look.contrast(first, second) == pytest.approx(ratio, abs=0.005)
        assert page_look.contrast(second, first) == page_look.contrast(first, second)


def test_every_colour_becomes_one_that_can_be_read() -> None:
    for parts in product(range(0, 256, 51), repeat=3):
        accent = "#" + "".join(f"{part:02x}" for part in parts)
        light, dark = page_look.shades(accent)
        for colour, others in (
            (light, (page_look.LIGHT, NEAR_WHITE, page_look.ON_LIGHT)),
            (dark, (page_look.DARK, NEAR_BLACK, page_look.ON_DARK)),
        ):
            for other in others:
                assert page_look.contrast(colour, other) >= 4.5, (accent, colour, other)


def test_a_colour_that_can_be_read_stays_as_it_is() -> None:
    assert page_look.shades("#8a1c4a")[0] == "#8a1c4a"
    assert page_look.shades("#ffd0e4")[1] == "#ffd0e4"


def test_the_backgrounds_are_those_of_the_page() -> None:
    styles = files()["styles.js"].decode()
    assert f"--frankly-soft, light-dark({page_look.LIGHT}, {page_look.DARK})" in styles
    assert f"light-dark({NEAR_WHITE}, {NEAR_BLACK})" in files()["hosted.css"].decode()


def with_page(page: str) -> bytes:
    return habits(SMOKES, budget="4", strata=f"page: {{{page}}}\n")


BAD: dict[str, tuple[str, str]] = {
    "a name of a colour": ("accent: red", "page.accent"),
    "a short colour": ('accent: "#123"', "page.accent"),
    "a style": ('accent: "#123456;}"', "page.accent"),
    "a link as logo": ('logo: "https://example.org/logo.png"', "page.logo"),
    "a drawing with scripts": ('logo: "data:image/svg+xml;base64,PHN2Zz4="', "page.logo"),
    "another file that calls itself an image": (
        'logo: "data:image/png;base64,PHN2Zz4="',
        "page.logo",
    ),
    "text that is no base64": ('logo: "data:image/png;base64,iVBORw0KGgo"', "page.logo"),
    "something else": ("font: serif", "page.font"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_look_that_cannot_be_shown_is_refused_at_its_field(name: str) -> None:
    page, field = BAD[name]
    with pytest.raises(InvalidInput) as caught:
        parse_definition(with_page(page))
    assert caught.value.field == field


def test_a_logo_that_is_too_large_is_refused() -> None:
    largest = PNG + b"\0" * (MAX_LOGO_BYTES - len(PNG))
    assert image_of(logo_text(largest)) == ("image/png", largest)
    with pytest.raises(InvalidInput) as caught:
        logo_text(largest + b"\0")
    assert (caught.value.code, caught.value.field) == ("definition_invalid", "logo")


def test_the_page_has_the_colour_and_the_logo_without_a_new_version(fresh_site: Site) -> None:
    site, surveys = fresh_site, fresh_site.services.surveys
    path = f"/s/{site.survey}"
    plain = site.client.get(path)
    assert "<img" not in plain.text
    assert "img-src" not in plain.headers["Content-Security-Policy"]
    check_problem(site.client.get(f"{path}/logo"), 404, "not_found")
    draft = surveys.draft(site.survey)
    before = surveys.publish(site.survey)
    file = draft.to_yaml().decode() + f'page: {{accent: "#FFE000", logo: "{logo_text(PNG)}"}}\n'
    surveys.apply(parse_definition(file.encode()))
    assert surveys.is_draft_published(site.survey)
    assert surveys.publish(site.survey).digest == before.digest
    page = site.client.get(path)
    light, dark = page_look.shades("#ffe000")
    assert f"--frankly-accent: light-dark({light}, {dark});" in page.text
    assert f'<img src="{path}/logo" alt="">' in page.text
    assert "img-src 'self';" in page.headers["Content-Security-Policy"]
    assert light != "#ffe000"  # it could not be read on white
    logo = site.client.get(f"{path}/logo")
    assert (logo.status_code, logo.content_type, logo.data) == (200, "image/png", PNG)
    check_problem(site.client.get("/s/" + "0" * 32 + "/logo"), 404, "survey_unknown")
