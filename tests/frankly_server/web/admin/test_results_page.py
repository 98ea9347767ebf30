# SPDX-License-Identifier: Apache-2.0
"""Page of results: charts, sentences and tables have the figures of the analysis, in the same words."""

import csv
import io
import re
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest
from flask.testing import FlaskClient
from frankly_analyst import Estimate
from frankly_analyst.shown import Shown
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.summary import read_texts
from frankly_server.web.results import page as results
from frankly_server.web.results.denial import denial_sentences
from frankly_server.web.results.words import Words

from tests.frankly_server.web.admin.office import Office, make_office, send, without_terms
from tests.frankly_server.web.site import SURVEY

SVG = "{http://www.w3.org/2000/svg}"
PAIR = ["smokes", "drinks"]
VIEWS: dict[str, list[dict[str, Any]]] = {
    "": [{}],
    "by:region": [{"by": "region"}],
    "per:day": [{"by": "day"}],
    "per:month": [{"by": "month"}],
    "pair:smokes,drinks": [{"targets": PAIR}, {"targets": PAIR, "percent": "row"}],
}
"""Views of the page, and the requests to the analysis that each stands for."""


def path(office: Office) -> str:
    return f"/admin/surveys/{office.survey}/results"


def sections(text: str) -> list[str]:
    return re.findall(r'<section class="card result">.*?</section>', text, re.DOTALL)


def shown_rows(section: str) -> list[list[str]]:
    body = re.search(r"<tbody>(.*?)</tbody>", section, re.DOTALL)
    assert body
    return [
        [unescape(re.sub(r"<[^>]*>", "", cell)) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)
    ]


def pictures(text: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL)]


def figures(office: Office, view: str) -> list[list[tuple[Estimate, Shown]]]:
    """Return the rows of each question of the analysis, and how they are shown."""
    together: dict[str, list[tuple[Estimate, Shown]]] = {}
    for request in VIEWS[view]:
        answer = office.services.analysis.estimates(office.survey, **request)
        for question in answer["questions"]:
            rows = [Estimate.from_json(row, "en", ()) for row in question["rows"]]
            together.setdefault(question["id"], []).extend((row, Shown.row(row)) for row in rows)
    return list(together.values())


@pytest.mark.parametrize("view", VIEWS)
def test_table_and_picture_have_the_figures_of_the_analysis(
    answered: Office, analyst: FlaskClient, view: str
) -> None:
    text = analyst.get(path(answered), query_string={"show": view}).text
    found = figures(answered, view)
    cards = sections(text)
    assert len(cards) == len(found)
    for card, rows in zip(cards, found, strict=True):
        # How many people have one of the answers is not known.
        is_within = " | " in rows[0][0].question
        ends = [
            [
                one.text,
                one.low_text or one.ends,
                one.high_text or one.ends,
                *([] if is_within else [f"{row.n:,}"]),
            ]
            for row, one in rows
        ]
        assert [row[-len(ends[0]) :] for row in shown_rows(card)] == ends
        (picture,) = pictures(card)
        said = picture.findtext(f"{SVG}desc") or ""
        # Of two choices in groups and periods, the picture has the second only.
        drawn = rows
        if "by" in VIEWS[view][0] and len({row.choice for row, _ in rows}) == 2:
            drawn = [pair for pair in rows if pair[0].choice == rows[1][0].choice]
        assert len(re.findall(", from |, beyond ", said)) == len(drawn)
        assert all(
            f"{one.text}, {'from ' if one.low_text else ''}{one.ends}" in said for _, one in drawn
        )


def test_both_tables_of_two_questions_name_them(answered: Office, analyst: FlaskClient) -> None:
    text = analyst.get(path(answered), query_string={"show": "pair:smokes,drinks"}).text
    for card, whole in zip(sections(text), ("", ", each by itself"), strict=True):
        said = pictures(card)[0].findtext(f"{SVG}desc") or ""
        start = f"Across: How often do you drink?. Down: Do you smoke?{whole}. No: Never "
        assert said.startswith(start)


def test_shares_of_all_questions_have_one_scale(answered: Office, analyst: FlaskClient) -> None:
    first, second = pictures(analyst.get(path(answered)).text)
    ticks = [
        [
            (text.text, text.get("x"))
            for text in picture.iter(f"{SVG}text")
            if text.get("text-anchor") == "middle"
        ]
        for picture in (first, second)
    ]
    assert len(ticks[0]) > 2
    assert ticks[0] == ticks[1]


def test_differences_of_groups_are_said_and_groups_have_names(
    answered: Office, analyst: FlaskClient
) -> None:
    text = analyst.get(path(answered), query_string={"show": "by:region"}).text
    assert re.search(
        r"“Yes” is more common in “North” than in “South”, by [\d.]+ (to [\d.]+ )?per", text
    )
    assert {row[0] for row in shown_rows(sections(text)[0])} == {"North", "South"}
    assert "North (n=200)" in text


@pytest.mark.parametrize("view", VIEWS)
def test_each_chart_is_a_file_with_its_question(
    answered: Office, analyst: FlaskClient, view: str
) -> None:
    query = {"show": view}
    page = analyst.get(path(answered), query_string=query).text
    links = [unescape(link) for link in re.findall(r'href="([^"]*results/\d+\.[^"]*)"', page)]
    assert len(links) == 3 * len(sections(page))
    for i, (card, rows) in enumerate(zip(sections(page), figures(answered, view), strict=True)):
        heading = re.search("<h2[^>]*>(.*?)</h2>", card)
        assert heading
        picture, png, table = links[3 * i : 3 * i + 3]
        assert picture == png
        answer = analyst.get(picture)
        file = "-".join(["habits", *re.findall(r"\w+", view), f"{i + 1}"])
        assert answer.headers["Content-Disposition"] == f'attachment; filename="{file}.svg"'
        assert f'data-png="{file}.png"' in card
        svg = ElementTree.fromstring(answer.text)
        texts = " ".join(text.text or "" for text in svg.iter(f"{SVG}text"))
        assert heading[1] in texts
        assert "Habits. 400 answers, intervals at 95%. 2026-06-01" in texts
        assert (svg.get("width"), svg.get("height")) != (None, None)
        # The file has the same figures as the page.
        said, drawn = (one.findtext(f"{SVG}desc") or "" for one in (svg, pictures(card)[0]))
        assert said == f"{drawn}. Habits. 400 answers, intervals at 95%. 2026-06-01"
        written = list(csv.DictReader(io.StringIO(analyst.get(table).data.decode("utf-8-sig"))))
        assert [line["Question"] for line in written] == [heading[1]] * len(rows)
        for line, (row, _) in zip(written, rows, strict=True):
            assert row.low is not None
            assert float(line["Estimate"]) == pytest.approx(row.estimate, abs=1e-6)
            assert float(line["From"]) <= row.low + 1e-12
            assert line["Reports"] == str(row.n)
            assert bool(line["Group"]) == bool(row.by)
            assert "=" not in line["Group"]


@pytest.mark.parametrize(
    "name", ["0.svg", "3.svg", "1.png", "1.svg.svg", "01.csv", "x", "99999.csv", "1.SVG", "١.svg"]
)
def test_there_is_no_other_file(answered: Office, analyst: FlaskClient, name: str) -> None:
    assert analyst.get(f"{path(answered)}/{name}").status_code == 404


BAD_VIEWS = {
    "no kind": "nonsense",
    "a kind alone": "by:",
    "an unknown group": "by:colour",
    "an unknown period": "per:year",
    "one question": "pair:smokes",
    "a question with itself": "pair:smokes,smokes",
    "unknown questions": "pair:a,b",
    "three questions": "pair:smokes,drinks,smokes",
    "markup": "<script>",
}


@pytest.mark.parametrize("name", BAD_VIEWS)
def test_an_unknown_view_is_refused_and_the_page_shows_everything(
    answered: Office, analyst: FlaskClient, name: str
) -> None:
    answer = analyst.get(path(answered), query_string={"show": BAD_VIEWS[name]})
    assert answer.status_code in (400, 422)
    assert "This was not accepted." in answer.text
    assert name != "markup" or BAD_VIEWS[name] not in answer.text
    assert len(sections(answer.text)) == 2
    wrong = analyst.get(f"{path(answered)}/1.svg", query_string={"show": BAD_VIEWS[name]})
    assert wrong.status_code in (400, 422)
    unknown = analyst.get(path(answered), query_string={"colour": "red"})
    assert unknown.status_code == 422


def denied_lines(card: str) -> list[str]:
    found = re.search('<ul class="said denied">(.*?)</ul>', card, re.DOTALL)
    return [] if found is None else re.findall("<li[^>]*>(.*?)</li>", unescape(found[1]))


def test_the_slider_adds_what_denial_changes(answered: Office, analyst: FlaskClient) -> None:
    """Without a script, too: it is a field of a form that a button sends."""
    usual = analyst.get(path(answered)).text
    for query in ({}, {"denial": "0"}, {"denial": ""}):
        page = analyst.get(path(answered), query_string=query).text
        assert [denied_lines(card) for card in sections(page)] == [[], []]
    (form,) = re.findall('<form method="get" class="denial">.*?</form>', usual, re.DOTALL)
    assert '<label for="denial">' in form
    assert 'type="range" id="denial" name="denial" min="0" max="0.9" step="0.05" value="0"' in form
    assert "<button" in form
    assert "a false “no” looks exactly like a true one" in " ".join(form.split())
    page = analyst.get(path(answered), query_string={"denial": "0.35"}).text
    assert 'value="0.35"' in page
    assert '<output for="denial">35%</output>' in page
    questions = answered.services.analysis.estimates(answered.survey, denial=0.35)["questions"]
    for card, one in zip(sections(page), questions, strict=True):
        assert "If up to 35% of those whom an answer concerns deny it" in card
        rows = [Estimate.from_json(row, "en", ()) for row in one["rows"]]
        assert denied_lines(card) == list(denial_sentences(rows, Words("en")))
        assert len(rows) == len(denied_lines(card))
        # The figures themselves stay as they are.
        assert shown_rows(card) == shown_rows(sections(usual)[sections(page).index(card)])
    assert f"/admin/surveys/{answered.survey}/estimates?denial=0.35" in page
    figures_page = analyst.get(path(answered).replace("results", "estimates?denial=0.35"))
    assert figures_page.status_code == 200
    (link,) = re.findall('href="([^"]*format=csv[^"]*)"', unescape(figures_page.text))[:1]
    lines = list(csv.DictReader(io.StringIO(analyst.get(link).text)))
    assert all(line["denied_estimate"] for line in lines)


@pytest.mark.parametrize("value", ["1", "-0.1", "20", "0.2.1", "nan", "1e-1", "<b>", "٠"])
def test_another_share_who_deny_is_refused(
    answered: Office, analyst: FlaskClient, value: str
) -> None:
    answer = analyst.get(path(answered), query_string={"denial": value})
    assert answer.status_code == 422
    assert "This was not accepted." in answer.text
    assert [denied_lines(card) for card in sections(answer.text)] == [[], []]
    assert value != "<b>" or value not in answer.text


@pytest.mark.parametrize("view", [view for view in VIEWS if view])
def test_denial_is_about_all_answers_together(
    answered: Office, analyst: FlaskClient, view: str
) -> None:
    """Other views have no slider, and a denial in the address is not left out in silence."""
    assert 'id="denial"' not in analyst.get(path(answered), query_string={"show": view}).text
    query = {"show": view, "denial": "0.2"}
    answer = analyst.get(path(answered), query_string=query)
    assert answer.status_code == 422
    assert "leave out the view, or denial" in answer.text


def test_every_view_of_the_list_can_be_shown(answered: Office, analyst: FlaskClient) -> None:
    page = analyst.get(path(answered)).text
    views = [unescape(view) for view in re.findall('<option value="([^"]*)"', page)]
    assert set(views) == {*VIEWS, "per:week"}
    for view in views:
        answer = analyst.get(path(answered), query_string={"show": view})
        assert answer.status_code == 200
        assert re.search(f'<option value="{view}" selected', answer.text) or not view


def test_the_protection_is_said_as_people_read_it(answered: Office, analyst: FlaskClient) -> None:
    read = read_texts(answered.services.surveys.versions(answered.survey)[-1])
    text = unescape(analyst.get(path(answered)).text)
    assert read.overall
    for sentence in (read.summary[1], *read.overall):
        assert text.count(sentence) == 1


def test_versions_with_other_promises_are_told_apart(tmp_path: Any) -> None:
    office = make_office(tmp_path)
    weaker = SURVEY.replace(b'epsilon: "1"', b'epsilon: "1.2"').replace(
        b'budget: "2"', b'budget: "3"'
    )
    assert weaker != SURVEY
    office.services.surveys.apply(parse_definition(weaker))
    office.services.surveys.publish("habits")
    documents = office.services.surveys.versions(office.survey)
    reports = [
        {"v": 1, "doc": documents[i % 2].digest, "id": f"{i:032x}", "y": [0, 0],
         "strata": {"region": "north"}, "token": None}
        for i in range(200)
    ]  # fmt: skip
    office.services.intake.accept_batch(office.survey, reports)
    office.services.releasing.release()
    told = [results.promises(one.payload()) for one in documents]
    assert told[0] != told[1]
    text = unescape(office.client("viewer").get(path(office)).text)
    for number, ((_, sentences),) in enumerate(told, 1):
        assert f"<strong>Version {number}.</strong> {' '.join(sentences)}" in text
    assert '<option value="by:version">' in text
    office.services.close()


def test_without_answers_or_a_version_the_page_says_so(tmp_path: Any) -> None:
    office = make_office(tmp_path)
    viewer, admin = office.client("viewer"), office.client("admin")
    text = without_terms(viewer.get(path(office)).text)
    assert "0 answers are released and counted." in text
    waiting = r"No result yet\. 0 of the \d+ answers that it needs are released\."
    assert len(re.findall(waiting, text)) == 2
    assert "<figure>" not in text
    assert "/results/links" not in text  # an admin's
    assert "/results/links" in admin.get(path(office)).text
    send(
        admin,
        "/admin/surveys/new",
        how="question",
        title="Work",
        language="en",
        question="Tired?",
        choices="No\nYes",
    )
    (draft,) = (row.survey_id for row in office.services.surveys.list() if not row.version)
    where = f"/admin/surveys/{draft}/results"
    assert "There are no results before the survey is published." in viewer.get(where).text
    assert viewer.get(f"{where}/1.svg").status_code == 404
    office.services.close()
