# SPDX-License-Identifier: Apache-2.0
"""Pages before, or instead of, a survey's form: in a language that the visitor reads and the survey has."""

import re
from contextlib import closing
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from flask import Flask
from frankly_protocol.languages import EXPLAINED, direction_of
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.hosted import hosted_page
from frankly_server.web.visitors import language_of, texts_of_page

from tests.browser.sdk.site import in_languages
from tests.frankly_sdk.texts import file_of
from tests.frankly_server.web.site import NOW, Site
from tests.frankly_server.web.test_front import BROWSER, UNKNOWN

# Accept-Language, the survey's languages, and the language of its pages.
CHOICES = [
    ("de-AT,de;q=0.9,en;q=0.8", ("en", "de"), "de"),
    ("en;q=0.5,fr", ("en", "fr"), "fr"),
    ("en;q=0,fr;q=0.1", ("en", "fr"), "fr"),
    ("sv,fr", ("en", "fr"), "fr"),
    ("pt-PT", ("de", "pt-BR"), "pt"),
    ("ja", ("de", "en"), "de"),  # the survey's first
    ("", ("ar",), "ar"),
    ("de", ("sv",), "en"),  # no texts in the survey's language
    ("sv", ("sv", "de"), "en"),
    ("*", ("tr", "en"), "tr"),
    ("; q=, ,,en-", ("uk",), "uk"),
    ("fr", EXPLAINED, "fr"),
    ("sv", EXPLAINED, "en"),  # of an unknown survey nothing is known
    ("", EXPLAINED, "en"),
]


@pytest.mark.parametrize(("accepted", "offered", "language"), CHOICES)
def test_the_language_is_the_visitor_s_if_the_survey_has_it(
    accepted: str, offered: tuple[str, ...], language: str
) -> None:
    with Flask(__name__).test_request_context(headers={"Accept-Language": accepted}):
        assert texts_of_page(offered).language == language


@pytest.mark.parametrize(
    ("accepted", "offered", "tag"),
    [
        ("pt-PT", ("pt-BR", "pt-PT"), "pt-PT"),
        ("zh-hant,en", ("zh-Hans", "zh-Hant"), "zh-Hant"),
        ("en-AU", ("de", "en-US", "en-GB"), "en-US"),
        ("fr,pt-PT", ("pt-PT", "fr-CA"), "fr-CA"),
    ],
)
def test_of_several_variants_the_visitor_s_own_is_chosen(
    accepted: str, offered: tuple[str, ...], tag: str
) -> None:
    with Flask(__name__).test_request_context(headers={"Accept-Language": accepted}):
        assert language_of(offered) == tag


def shown(page: str) -> tuple[str, str, str, list[str]]:
    """Return language, direction, title and the texts of a page."""
    text = unescape(page)
    (language,) = re.findall(r'<html lang="(\w+)"', text)
    (direction,) = re.findall(r'dir="(\w+)"', text)
    (title,) = re.findall("<title>(.*)</title>", text)
    return language, direction, title, re.findall(r"<(?:h1|p)[^>]*>(.*?)</(?:h1|p)>", text)


def asked(site: Site, path: str, language: str) -> Any:
    """Return a page as a browser in this language gets it."""
    return site.client.get(path, headers={"Accept": BROWSER, "Accept-Language": f"{language}-XX"})


def test_pages_instead_of_a_survey_are_in_each_language(fresh_site: Site) -> None:
    surveys, path = fresh_site.services.surveys, f"/s/{fresh_site.survey}"
    draft = surveys.draft(fresh_site.survey).to_yaml().decode()
    surveys.apply(parse_definition(in_languages(draft, EXPLAINED).encode()))
    surveys.publish(fresh_site.survey)
    site = fresh_site.at(NOW + timedelta(days=31))
    with closing(site.services):
        for language in EXPLAINED:
            said, direction = file_of(language)["page"], direction_of(language)
            for wrong in (UNKNOWN, "/s/cut-off"):
                page = asked(fresh_site, wrong, language)
                assert (page.status_code, page.headers["Vary"]) == (404, "Accept-Language")
                texts = [said["unknown"], said["unknown_more"]]
                assert shown(page.text) == (language, direction, said["unknown"], texts)
            page = asked(fresh_site, path, language)
            assert "Accept-Language" in page.headers["Vary"]
            assert shown(page.text) == (language, direction, said["title"], [said["script"]])
            assert page.text == hosted_page(language=language)[0]
            page = asked(site, path, language)
            assert (page.status_code, page.headers["Vary"]) == (410, "Accept-Language")
            texts = [said["closed"], said["closed_late"], said["closed_results"]]
            assert shown(page.text) == (language, direction, said["closed"], texts)
