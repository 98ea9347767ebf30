# SPDX-License-Identifier: Apache-2.0
"""The analyst's client against a real server: rows, CSV, text output, and typed errors."""

import csv
import io
from dataclasses import FrozenInstanceError
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
import requests
from frankly_analyst import MAX_ANSWER_BYTES, Analyst, Estimates, Refused, Unreachable, formats
from frankly_analyst.analyst import _read
from frankly_analyst.formats import COLUMNS
from frankly_analyst.plots import percent
from frankly_analyst.rows import localised
from frankly_server.analysis import encode

from tests.frankly_analyst.conftest import Served
from tests.frankly_analyst.desk import Answer, says, stranger
from tests.narrowing import present


@pytest.fixture(scope="module")
def found(served: Served) -> Estimates:
    return Analyst(served.url, served.site.analyst_key).estimates(served.site.survey)


def test_rows_carry_number_and_uncertainty_together(served: Served, found: Estimates) -> None:
    assert [(row.question, row.choice) for row in found] == [
        ("smokes", "no"), ("smokes", "yes"), ("drinks", "never"), ("drinks", "weekly"), ("drinks", "daily"),
    ]  # fmt: skip
    for row in found:
        assert row.n == 60
        assert row.documents == (served.site.digest,)
        low, estimate, high = present(row.low), present(row.estimate), present(row.high)
        margin, se = present(row.margin), present(row.se)
        assert low < estimate < high
        assert margin == pytest.approx(max(estimate - low, high - estimate))
        assert margin > se > 0
        assert present(row.se_privacy) <= se * (1 + 1e-9)
        assert row.level == 0.95
    assert (found.n, len(found), found.insufficient) == (60, 5, {})


def test_rows_are_frozen(found: Estimates) -> None:
    with pytest.raises(FrozenInstanceError):
        found.rows[0].estimate = 0.0


def test_options_reach_the_server(served: Served, found: Estimates) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    wider = analyst.estimates(served.site.survey, level=0.99)
    census = analyst.estimates(served.site.survey, census=True)
    together = analyst.estimates(served.site.survey, simultaneous=True)
    for plain, wide, alone, joint in zip(found, wider, census, together, strict=True):
        assert present(wide.margin) > present(plain.margin) > present(alone.margin)
        assert present(joint.margin) >= present(plain.margin)
        assert (wide.level, joint.method, alone.se_sampling) == (0.99, "simultaneous", 0.0)


def test_csv_reads_back(found: Estimates) -> None:
    lines = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [float(line["estimate"]) for line in lines] == [row.estimate for row in found]
    assert tuple(lines[0]) == COLUMNS
    assert {line["status"] for line in lines} == {"ok"}


def test_json_has_the_bytes_of_the_response(served: Served, found: Estimates) -> None:
    assert found.to_json() == served.site.estimates().data == encode(found.body)


def test_the_table_for_people_has_the_texts(served: Served, found: Estimates) -> None:
    data = found.to_spreadsheet()
    assert data == served.site.estimates("?format=spreadsheet").data
    rows = list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    texts = {question["id"]: question["text"]["en"] for question in found.body["questions"]}
    assert [(row["Question"], row["Answer"]) for row in rows] == [
        (texts[row.question], row.label) for row in found
    ]
    for name, column in (("Estimate", "estimate"), ("From", "low"), ("To", "high")):
        assert [float(row[name]) for row in rows] == pytest.approx(
            [getattr(row, column) for row in found], abs=1.1e-6
        )


def test_the_clients_lines_equal_those_of_a_download(served: Served) -> None:
    """Groups with too few reports also have a line, which says how many reports are needed."""
    analyst = Analyst(served.url, served.site.analyst_key)
    for by in (None, "region"):
        found = analyst.estimates(served.site.survey, by=by)
        asked = "" if by is None else f"&by={by}"
        assert found.to_csv().encode() == served.site.estimates(f"?format=csv{asked}").data
        lines = list(csv.DictReader(io.StringIO(found.to_csv())))
        assert sum(line["status"] == "ok" for line in lines) == len(found)
        assert sum(line["status"] == "insufficient" for line in lines) == len(found.insufficient)


def test_words_show_every_number_with_both_ends(found: Estimates) -> None:
    lines = str(found).splitlines()
    assert lines[0] == "Habits: 60 reports"
    assert len(lines) == 1 + 2 + 5
    for row in found:
        assert row.low is not None
        assert row.high is not None
        told = [
            row.label,
            percent(row.estimate),
            percent(row.low),
            "to",
            percent(row.high),
            "at",
            "0.95",
        ]
        assert sum(line.split()[:7] == told for line in lines) == 1


def test_too_few_reports_give_no_row() -> None:
    question = {"id": "q", "status": "insufficient", "n": 3, "needed": 10, "rows": []}
    survey = {"survey": "s", "title": {"en": "T"}, "languages": ["en"], "n": 3}
    found = Estimates.from_json(survey | {"questions": [question]})
    assert (found.rows, found.insufficient) == ((), {"q": 7})
    assert str(found).splitlines() == ["T: 3 reports", "q: not enough reports, 7 more needed"]


REFUSED: dict[str, tuple[str, str, float, int, str]] = {
    "a wrong key": ("frankly_live_" + "A" * 43, "", 0.95, 401, "unauthenticated"),
    "an unknown survey": ("", "0" * 32, 0.95, 404, "survey_unknown"),
    "a level in percent": ("", "", 95.0, 422, "confidence_range"),
    "a level of 1": ("", "", 1.0, 422, "confidence_range"),
    "a level that is not a number": ("", "", float("nan"), 422, "confidence_range"),
    "a level too close to 0": ("", "", 1e-13, 422, "confidence_range"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_typed(served: Served, name: str) -> None:
    key, survey, level, status, code = REFUSED[name]
    with pytest.raises(Refused) as refused:
        Analyst(served.url, key or served.site.analyst_key).estimates(
            survey or served.site.survey, level=level
        )
    assert (refused.value.status, refused.value.code) == (status, code)


@pytest.mark.parametrize("body", [b'{"code":"closed"}', b'{"code":"closed","detail":""}'])
def test_a_problem_without_detail_is_named_by_its_status(body: bytes) -> None:
    answer = requests.Response()
    answer.status_code, answer.raw = 410, io.BytesIO(body)
    answer.headers["Content-Type"] = "application/problem+json"
    with pytest.raises(Refused, match="status 410"):
        _read(answer)


@pytest.mark.parametrize(
    "url",
    [
        "http://surveys.example.org",
        "ftp://127.0.0.1",
        "surveys.example.org",
        "",
        "http://127.0.0.1.example.org",
    ],
)
def test_the_key_goes_over_https_only(url: str) -> None:
    with pytest.raises(Unreachable, match="https"):
        Analyst(url, "frankly_live_x")


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


STRANGERS: dict[str, Answer] = {
    "an HTML page": says(200, "text/html", b"<html>"),
    "JSON of somebody else": says(200, "application/json", b'{"hello": 1}'),
    "a list": says(200, "application/json", b"[]"),
    "rows that are none": says(200, "application/json", b'{"questions": 5}'),
    "broken JSON": says(200, "application/json", b'{"a":'),
    "JSON of 100,000 levels": says(200, "application/json", b"[" * 100_000),
    "a redirect": says(302, "text/html", b"", Location="https://example.org/"),
    "an error without a problem document": says(500, "application/json", b"{}"),
    "a response above the size limit": says(200, "application/json", b" " * (MAX_ANSWER_BYTES + 1)),
    "nothing": hangs_up,
}


@pytest.mark.parametrize("name", STRANGERS)
def test_responses_of_other_servers_are_unreachable(name: str) -> None:
    with stranger(STRANGERS[name]) as url, pytest.raises(Unreachable) as unreachable:
        Analyst(url, "frankly_live_canary").estimates("0" * 32)
    assert "canary" not in str(unreachable.value)


def test_an_unreachable_server_is_a_typed_error() -> None:
    with stranger(hangs_up) as url:
        pass
    with pytest.raises(Unreachable, match="ConnectionError"):
        Analyst(url, "frankly_live_x").estimates("0" * 32)


def test_a_netrc_file_does_not_override_the_key(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    assert len(Analyst(served.url, served.site.analyst_key).estimates(served.site.survey)) == 5


def test_texts_are_in_the_surveys_language_unless_another_is_requested() -> None:
    """The client uses the survey's first language, also for texts that are missing in the requested
    language."""
    row = {"label": {"de": "Nein", "en": "No", "fr": "Non"}, "documents": [], "flags": []}
    question = {"id": "q", "status": "ok", "n": 3, "needed": 3, "by": None, "rows": [row]}
    body = {"languages": ["en", "de"], "questions": [question]}
    wanted = {
        None: ("Large", "No"),
        "de": ("Groß", "Nein"),
        "fr": ("Large", "Non"),
        "tr": ("Large", "No"),
    }
    for language, (title, label) in wanted.items():
        assert localised({"de": "Groß", "en": "Large"}, language, ["en", "de"]) == title
        assert [line["label"] for line in formats.lines(body, language)] == [label]
    assert localised({"cs": "Ne"}, None, ["en"]) == "Ne"
