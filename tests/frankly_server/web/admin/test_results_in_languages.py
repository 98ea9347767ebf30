# SPDX-License-Identifier: Apache-2.0
"""The page of results for whoever has a link, in the languages of its survey."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from html import unescape
from typing import Any

import pytest
from frankly_protocol.languages import EXPLAINED
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.results import words
from frankly_server.web.results.words import Words, own_name, texts_of

from tests.frankly_server.web.admin.languages import FILE, link, published, translated
from tests.frankly_server.web.admin.office import Office, make_office
from tests.frankly_server.web.admin.test_arms import SPLIT, answer
from tests.frankly_server.web.admin.test_forms import SCORED
from tests.survey_files import REGION

PERSON = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
VIEWS = ("", "by:region", "per:day", "per:week", "per:month", "pair:smokes,drinks")


def visible(page: str) -> str:
    """Return the texts of a page, with those of its attributes, without what respondents have read."""
    read = r'<blockquote class="read".*?</blockquote>|<p class="hint unread">.*?</p>'
    page = re.sub(read, "", page, flags=re.DOTALL)
    named = re.findall(r'(?:aria-label|alt|title|data-th|data-failed)="([^"]*)"', page)
    return unescape(" ".join([re.sub(r"<[^>]+>", " ", page), *named]))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    made = make_office(tmp_path_factory.mktemp("languages"))
    yield made
    made.services.close()


@cache
def unreadable(_language: str) -> Mapping[str, Any]:
    """Return texts without Latin letters: where there are some, a text is not from the files."""

    def of(text: str) -> str:
        return re.sub(r"(\{\w+\})|[A-Za-z]+", lambda found: found[1] or "ж", text)

    return {
        name: of(text) if isinstance(text, str) else {form: of(one) for form, one in text.items()}
        for name, text in texts_of("en").items()
    }


@pytest.fixture(scope="module")
def pages(office: Office) -> dict[str, str]:
    """The addresses of surveys in German and French: questions of every kind, and arms."""
    split = translated(SPLIT, "de", "fr").replace(b"name: split", b"name: splitted")
    office.services.surveys.apply(parse_definition(split))
    arms = office.services.surveys.publish("splitted").survey_id
    answer(office, arms, 800)
    scored = published(office, "de", "fr", file=SCORED + REGION.encode())
    several = published(office, "de", "fr")
    return {
        "questions": link(office, several),
        "form": link(office, scored),
        "arms": link(office, arms),
    }


@pytest.mark.parametrize(
    ("kind", "query"),
    [*(("questions", f"show={view}") for view in VIEWS), ("questions", "denial=0.3"),
     ("form", ""), ("form", "show=by:region"), ("form", "show=pair:rested,moved"),
     ("arms", ""), ("arms", "show=by:arm")],
)  # fmt: skip
def test_every_text_of_the_page_is_from_the_files(
    office: Office, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch, kind: str, query: str
) -> None:
    monkeypatch.setattr(words, "texts_of", unreadable)
    office.services.kept_views.clear()
    page = office.app.test_client().get(f"{pages[kind]}?{query}", headers=PERSON)
    assert page.status_code == 200, page.text
    text = visible(page.text)
    assert text.count("ж") > 100
    # The names of languages, ids of arms, weeks of ISO 8601, numbers of reports, and answers of every survey.
    of_survey = r"\b(Deutsch|Français|[Aa]rm|clear|weak|strong|W\d\d|n|Ja|Nein|Trifft|nicht|zu)\b"
    assert re.findall("[A-Za-z]+", re.sub(of_survey, "", text)) == []
    office.services.kept_views.clear()


@pytest.mark.parametrize("tag", EXPLAINED)
def test_the_page_is_in_the_language_of_the_survey(office: Office, tag: str) -> None:
    page = office.app.test_client().get(link(office, published(office, tag)), headers=PERSON).text
    own = Words(tag, tag)
    assert f'<html lang="{tag}"' in page
    assert f' dir="{"rtl" if tag == "ar" else "ltr"}">' in page
    text = visible(page)
    for name in ("show", "read", "link", "protected_read", "spreadsheet"):
        assert own.say(name) in " ".join(text.split())
    assert own.say("counted", n=400) in text
    assert ('<p class="hint unread">' in page) is (tag != "en")
    # What respondents have read is in their language, too.
    read = re.findall(r'<blockquote class="read"[^>]*>(.*?)</blockquote>', page, re.DOTALL)
    assert len(read) == 1
    assert tag == "en" or " the " not in read[0]


LANGUAGES: dict[str, tuple[str, dict[str, str], str]] = {
    "the first of the survey": ("", {}, "de"),
    "the browser's": ("", {"Accept-Language": "fr-CA, en;q=0.5"}, "fr"),
    "none of the browser's": ("", {"Accept-Language": "ja"}, "de"),
    "that of the address": ("?language=de", {"Accept-Language": "fr"}, "de"),
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_page_is_in_the_language_asked_for(
    office: Office, pages: dict[str, str], name: str
) -> None:
    query, headers, tag = LANGUAGES[name]
    answer = office.app.test_client().get(pages["questions"] + query, headers=PERSON | headers)
    assert f'<html lang="{tag}"' in answer.text
    assert "Accept-Language" in answer.headers["Vary"]
    # The other language is one click away, and what is asked of the page keeps its language.
    (other,) = {"de", "fr"} - {tag}
    assert (
        f'?language={other}" lang="{other}" hreflang="{other}">{own_name(other)}</a>' in answer.text
    )
    assert answer.text.count(f'<input type="hidden" name="language" value="{tag}">') == 2
    assert f'1.svg?language={tag}" download' in answer.text


def test_nobody_gets_the_language_of_somebody_before(office: Office, pages: dict[str, str]) -> None:
    """Results are kept until the next release, each in its language."""
    client, whole = office.app.test_client(), dict[tuple[str, str], str]()
    ends = ("?", "/1.svg?", "?show=by:region&", "/1.csv?show=by:region&")
    for tag in ("de", "fr"):
        office.services.kept_views.clear()
        for end in ends:
            answer = client.get(f"{pages['questions']}{end}language={tag}")
            assert "Accept-Language" in answer.headers["Vary"]
            whole[tag, end] = answer.text
        assert (
            f'?show=by%3Aregion&amp;language={"fr" if tag == "de" else "de"}"'
            in whole[tag, ends[2]]
        )
    for tag, end in [*whole, *reversed(whole)]:
        assert client.get(f"{pages['questions']}{end}language={tag}").text == whole[tag, end]
    assert whole["de", ends[0]] != whole["fr", ends[0]]


@pytest.mark.parametrize("tag", ["de", "uk"])
@pytest.mark.parametrize("query", ["", "show=by:region", "show=pair:smokes,drinks", "denial=0.3"])
def test_every_number_is_written_as_in_the_language(office: Office, tag: str, query: str) -> None:
    survey = published(office, tag)
    page = office.app.test_client().get(f"{link(office, survey)}?{query}", headers=PERSON).text
    text = visible(page)
    assert re.search(r"\d,\d", text)
    # Of a date the points are no decimal points.
    text = re.sub(r"\d\d\.\d\d\.\d{4}", "", text)
    assert re.findall(r"\d\.\d|\d%", text) == []


def test_an_address_in_a_language_of_an_earlier_version_still_works(office: Office) -> None:
    survey = published(office, "de", "fr")
    (name,) = (one.name for one in office.services.surveys.list() if one.survey_id == survey)
    file = re.sub(b"^name: .*", f"name: {name}".encode(), translated(FILE, "fr", "it"))
    office.services.surveys.apply(parse_definition(file))
    office.services.surveys.publish(name)
    path = link(office, survey)
    page = office.app.test_client().get(f"{path}?language=de", headers=PERSON)
    assert '<html lang="fr"' in page.text
    assert office.app.test_client().get(f"{path}?language=es", headers=PERSON).status_code == 422


def test_a_language_that_the_survey_does_not_have_is_refused(
    office: Office, pages: dict[str, str]
) -> None:
    client = office.app.test_client()
    for end in ("", "/1.svg"):
        answer = client.get(f"{pages['questions']}{end}?language=pl")
        assert answer.status_code == 422
        assert answer.get_json()["field"] == "language"
        page = client.get(
            f"{pages['questions']}{end}?language=pl", headers=PERSON | {"Accept-Language": "fr"}
        )
        assert Words("fr", "fr").say("refused") in unescape(page.text)


@pytest.mark.parametrize("tag", EXPLAINED)
def test_a_link_that_does_not_work_says_so_in_the_browsers_language(
    office: Office, tag: str
) -> None:
    headers = PERSON | {"Accept-Language": tag}
    page = office.app.test_client().get("/results/unknown", headers=headers)
    assert page.status_code == 404
    assert f'<html lang="{tag}"' in page.text
    assert Words(tag, tag).say("unknown_link") in page.text
    assert "Accept-Language" in page.headers["Vary"]


def test_the_pages_of_admins_are_in_english(office: Office) -> None:
    survey = published(office, "de", "fr")
    client = office.client("viewer")
    client.environ_base["HTTP_ACCEPT_LANGUAGE"] = "fr"
    text = client.get(f"/admin/surveys/{survey}/results").text
    assert "How to read this" in text
    assert 'name="language"' not in text
