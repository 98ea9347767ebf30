# SPDX-License-Identifier: Apache-2.0
"""A survey's own colour and logo: every shade can be read, and a change needs no new version."""

from itertools import product

import pytest
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.page_definition import MAX_LOGO_BYTES, image_of, logo_text
from frankly_server.web import page_look
from frankly_server.web.hosted import files, hosted_page

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
    "no code": ('completion_code: ""', "page.completion_code"),
    "a long code": (f"completion_code: {'A' * 65}", "page.completion_code"),
    "a code with a space": ('completion_code: "C1 A2"', "page.completion_code"),
    "a code in other letters": ('completion_code: "Ж1"', "page.completion_code"),
    "a code with markup": ('completion_code: "<b>"', "page.completion_code"),
    "a list of codes": ("completion_code: [A, B]", "page.completion_code"),
}
ADDRESSES = {
    "no address": "",
    "no encryption": "http://panel.example/done",
    "a script": "javascript:alert(1)",
    "a data address": "data:text/html,x",
    "no scheme": "//panel.example/done",
    "no host": "https:///done",
    "an empty label": "https://panel..example/",
    "a user": "https://me@panel.example/",
    "a user and a password": "https://me:secret@panel.example/",
    "a backslash": "https://panel.example\\\\@evil.example/",
    "a fragment": "https://panel.example/#done",
    "a space": "https://panel.example/a b",
    "a line break": "https://panel.example/a\\nb",
    "a control character": "https://panel.example/\\x01",
    "other letters": "https://panel.example/é",
    "another host's letters": "https://pänel.example/",
    "quotes": 'https://panel.example/\\"x',
    "a tag": "https://panel.example/<b>",
    "a port that does not exist": "https://panel.example:65536/",
    "port 0": "https://panel.example:0/",
    "an id as host": "https://{id}/done",
    "an id in the host": "https://a{id}.example/done",
    "an id as port": "https://panel.example:{id}/",
    "an id beside the host": "https://panel.example{id}",
    "two ids": "https://panel.example/{id}?id={id}",
    "another name": "https://panel.example/{name}",
    "an open brace": "https://panel.example/{id",
    "an id in an escape": "https://panel.example/%{id}",
    "an id after a dot": "https://panel.example/.{id}/x",
    "a number as host": "https://1/",
    "numbers as host": "https://999.999.999.999/",
    "a hyphen as host": "https://-/",
    "a label that ends with a hyphen": "https://panel-.example/",
    "a large address": "https://panel.example/" + "a" * 480,
}
BAD |= {name: (f'return_to: "{text}"', "page.return_to") for name, text in ADDRESSES.items()}
BAD["an address as a list"] = ("return_to: [a]", "page.return_to")


@pytest.mark.parametrize("name", BAD)
def test_a_look_that_cannot_be_shown_is_refused_at_its_field(name: str) -> None:
    page, field = BAD[name]
    with pytest.raises(InvalidInput) as caught:
        parse_definition(with_page(page))
    assert caught.value.field == field
    if field == "page.return_to":
        assert "write an address such as https://panel.example/done?id={id}" in caught.value.detail


GOOD = (
    "https://app.prolific.com/submissions/complete?cc=C1A2B3",
    "https://panel.example",
    "https://panel.example:8443?id={id}",
    "https://panel.example/{id}",
    "https://xn--pnel-loa.example/a/{id}/b?c=('d')&e=%20;f=[g]@h",
    "https://panel.example/" + "a" * 478,
)


@pytest.mark.parametrize("address", GOOD)
def test_addresses_of_panels_are_kept_as_they_are(address: str) -> None:
    page = parse_definition(with_page(f'return_to: "{address}"')).page
    assert page is not None
    assert (page.return_to, page.completion_code) == (address, None)


def test_the_way_back_is_escaped_and_in_no_signed_document(fresh_site: Site) -> None:
    site, surveys = fresh_site, fresh_site.services.surveys
    assert "<main data-failed=" in site.client.get(f"/s/{site.survey}").text
    before, text = surveys.publish(site.survey), surveys.draft(site.survey).to_yaml().decode()
    for code in ("1e5", "-_Z"):  # as text: a number would lose its form
        page = f"return_to: \"https://panel.example/?a={{id}}&b='1'\", completion_code: {code}"
        surveys.apply(parse_definition(f"{text}page: {{{page}}}\n".encode()))
        assert surveys.is_draft_published(site.survey)
        assert surveys.publish(site.survey).digest == before.digest
        shown = site.client.get(f"/s/{site.survey}")
        address = "https://panel.example/?a={id}&amp;b=&#x27;1&#x27;"
        assert f'<main data-return-to="{address}" data-completion-code="{code}" ' in shown.text
        assert shown.headers["Content-Security-Policy"] == hosted_page()[1]


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
