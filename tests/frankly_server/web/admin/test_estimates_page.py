# SPDX-License-Identifier: Apache-2.0
"""Estimates page: it shows the API's numbers, in words that claim no more than the numbers."""

import html
import io
import json
import re
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pyarrow.parquet as parquet
import pytest
from flask.testing import FlaskClient
from frankly_analyst import Estimate
from frankly_analyst.shown import Shown
from frankly_server.analysis import Analysis
from frankly_server.surveys.definition import parse_definition

from tests.frankly_server.web.admin.office import ANSWERS, Office, without_terms
from tests.frankly_server.web.site import SURVEY


def page(office: Office, client: FlaskClient, query: str = "") -> Any:
    return client.get(f"/admin/surveys/{office.survey}/estimates{query}")


def cells(text: str) -> list[list[str]]:
    """Return the body rows of all tables of estimates, as text."""
    table_rows = []
    for row in re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL):
        if 'data-th="Share"' not in row:
            continue
        values = [
            re.sub(r"<[^>]*>", "", cell).strip()
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        ]
        table_rows.append(values)
    return table_rows


def shown(share: float | None) -> str:
    return "no end" if share is None else f"{share * 100:.1f}%".replace("-", "−")


def test_the_page_shows_the_numbers_of_the_analysis(answered: Office, analyst: FlaskClient) -> None:
    answer = answered.services.analysis.estimates(answered.survey)
    rows = [row for question in answer["questions"] for row in question["rows"]]
    table_rows = cells(page(answered, analyst).text)
    assert [row[:2] for row in table_rows] == [
        [row["label"]["en"], shown(row["estimate"])] for row in rows
    ]
    assert [row[2:4] for row in table_rows] == [
        [shown(row["low"]), shown(row["high"])] for row in rows
    ]
    assert "±" not in page(answered, analyst).text  # the interval is not symmetric


def test_a_part_is_never_larger_than_the_whole_and_common_flags_are_said_once(
    answered: Office, analyst: FlaskClient
) -> None:
    text = page(answered, analyst, "?by=region").text
    parts = re.findall(
        r'"Standard error">([\d.]+)%</td>\s*<td class="n" data-th="due to privacy">([\d.]+)%', text
    )
    rows: dict[str, list[Any]] = {}  # by question
    result = Analysis(answered.services.database).estimates(answered.survey, by="region")
    for question in result["questions"]:
        rows.setdefault(question["id"], []).extend(question["rows"])
    every = [row for of_question in rows.values() for row in of_question]
    assert len(parts) == len(every)
    # Everybody in a region sent the same: more of the error is due to privacy than there is.
    assert any(row["se_privacy"] > row["se"] * 1.1 for row in every)
    assert all(float(privacy) <= float(whole) for whole, privacy in parts)

    common = [
        set.intersection(*(set(row["flags"]) for row in of_question))
        for of_question in rows.values()
    ]
    assert any(common)
    stated = re.findall(r"Flags of every row above:\s+(.*?)\.</p>", text)
    assert [set(flags.split(", ")) for flags in stated] == [
        {flag.replace("_", " ") for flag in flags} for flags in common if flags
    ]
    shown = iter(re.findall(r'data-th="Flags">(.*?)</td>', text, re.DOTALL))
    for of_question, everywhere in zip(rows.values(), common, strict=True):
        for row in of_question:
            cell = set(re.findall("<small>(.*?)</small>", next(shown)))
            rest = {flag.replace("_", " ") for flag in row["flags"] if flag not in everywhere}
            assert cell == (rest or {"none"})


@pytest.mark.parametrize(
    ("query", "changed"),
    [
        ("level=0.8", {"level": 0.8}),
        ("method=kl", {"method": "kl"}),
        ("census=true", {"census": True}),
        ("population=1200", {"population": 1200}),
        ("population=401&method=exact&level=0.9", {"population": 401, "method": "exact", "level": 0.9}),
        ("row=smokes&column=drinks&population=5000", {"targets": ["smokes", "drinks"], "population": 5000}),
        ("by=region", {"by": "region"}),
        ("period=day", {"by": "day"}),
        ("period=month&by=region&since=2026-05-01&until=2026-06-30", {"by": "region,month", "since": "2026-05-01",
                                                                      "until": "2026-06-30"}),
        ("row=smokes&column=drinks", {"targets": ["smokes", "drinks"]}),
        ("row=smokes&column=drinks&percent=column&method=clt", {"targets": ["smokes", "drinks"], "percent": "column",
                                                                "method": "clt"}),
        ("row=smokes", {"targets": ["smokes"]}),
        ("row=drinks&column=smokes&by=region&level=0.99", {"targets": ["drinks", "smokes"], "by": "region",
                                                          "level": 0.99}),
    ],
)  # fmt: skip
def test_options_request_what_they_say(
    answered: Office, analyst: FlaskClient, query: str, changed: dict[str, Any]
) -> None:
    answer = answered.services.analysis.estimates(answered.survey, **changed)
    expected = sorted(
        (shown(row["low"]), shown(row["high"]))
        for question in answer["questions"]
        for row in question["rows"]
    )
    text = page(answered, analyst, f"?{query}").text
    ends = [re.findall(rf'data-th="{name}">([^<]*)<', text) for name in ("From", "To")]
    assert sorted(zip(*ends, strict=True)) == expected


def heat_map(text: str) -> list[str]:
    """Return what the picture of a cross-table says of its rows."""
    found = re.search(r"<svg .*?</svg>", text, re.DOTALL)
    assert found
    svg = ElementTree.fromstring(found[0])
    return (svg.findtext("{http://www.w3.org/2000/svg}desc") or "").split("; ")


def test_a_cross_table_has_each_cell_where_its_choices_meet(
    answered: Office, analyst: FlaskClient
) -> None:
    answer = answered.services.analysis.estimates(answered.survey, targets=["smokes", "drinks"])
    cell = {
        row["choice"]: Shown.row(Estimate.from_json(row, "en", ()))
        for row in answer["questions"][0]["rows"]
    }
    words = heat_map(page(answered, analyst, "?row=smokes&column=drinks").text)
    rows = [one.partition("Down: Do you smoke?. ")[2] or one for one in words]
    for (smokes, label), row_words in zip((("no", "No"), ("yes", "Yes")), rows, strict=True):
        shown_cells = [
            f"{drinks.capitalize()} {(one := cell[f'{smokes} × {drinks}']).text}, "
            f"{'from ' if one.low_text else ''}{one.ends}"
            for drinks in ("never", "weekly", "daily")
        ]
        assert row_words == f"{label}: {', '.join(shown_cells)}"


def test_row_percentages_are_in_the_table_and_in_words(
    answered: Office, analyst: FlaskClient
) -> None:
    query = "?row=smokes&column=drinks&percent=row&population=5000"
    answer = answered.services.analysis.estimates(
        answered.survey, targets=["smokes", "drinks"], percent="row", population=5000
    )
    text = page(answered, analyst, query).text
    rows = answer["questions"][0]["rows"]
    assert [row[1:4] for row in cells(text)] == [
        [shown(row["estimate"])]
        + (["no end"] * 2 if row["low"] is None else [shown(row["low"]), shown(row["high"])])
        for row in rows
    ]
    assert "of those with the answer after the bar." in text
    assert "Of 5,000 people" not in text
    assert "percent=row" in text
    assert "percent=&#34;row&#34;" in text
    assert "unbiased estimates, which are nearly unbiased in large samples only" in text
    assert "Ratios have no interval by the requested method" not in text
    text = page(answered, analyst, query + "&method=kl").text
    assert "Ratios have no interval by the requested method" in text
    assert "score instead" in text


@pytest.mark.parametrize(
    ("flag", "end"), [("unbounded", "no end"), ("interval_unknown", "unknown")]
)
def test_a_cell_without_a_number_stays_in_the_table(
    answered: Office, analyst: FlaskClient, monkeypatch: pytest.MonkeyPatch, flag: str, end: str
) -> None:
    unpatched = Analysis.estimates

    def estimates(*arguments: Any, **options: Any) -> dict[str, Any]:
        answer = unpatched(*arguments, **options)
        lost: dict[str, Any] = dict.fromkeys(("estimate", "se", "margin", "low", "high"))
        answer["questions"][0]["rows"][0] |= lost | {"flags": [flag]}
        return answer

    monkeypatch.setattr(Analysis, "estimates", estimates)
    text = page(answered, analyst, "?row=smokes&column=drinks&percent=row").text
    assert "Never unknown" in heat_map(text)[0]
    first = next(
        table_row for table_row in cells(text) if table_row[0].lower().startswith("never | no")
    )
    assert first[1:5] == ["unknown", end, end, "unknown"]


@pytest.mark.parametrize("product", ["projected", "mle"])
def test_another_estimate_has_its_own_interval(
    answered: Office, analyst: FlaskClient, product: str
) -> None:
    answer = answered.services.analysis.estimates(answered.survey, by="region")
    expected = [
        f"{shown(q[product][row['choice']])} {' to '.join(map(shown, q[f'{product}_interval'][row['choice']]))}"
        for q in answer["questions"]
        for row in q["rows"]
    ]
    text = page(answered, analyst, f"?product={product}&by=region").text
    assert sorted(row[2] for row in cells(text)) == sorted(expected)
    plots = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", text, re.DOTALL)]
    kinds = [element.get("class") for plot in plots for element in plot.iter()]
    # Of two choices, the pictures of groups have the second only.
    bars = sum(1 if len(q["rows"]) == 2 else len(q["rows"]) for q in answer["questions"])
    assert (kinds.count("bar"), kinds.count("whisker")) == (bars, 3 * bars)
    assert "where needed, widened to the share shown" in text


def test_groups_that_differ_are_named_and_others_are_not(
    answered: Office, analyst: FlaskClient
) -> None:
    text = page(answered, analyst, "?by=region").text
    # In Warner's mechanism, all reports of the north are symbol 1, and all reports of the south are
    # symbol 0.
    assert re.search(
        r"“Yes” is more common in “North” than in “South”, by ([\d.]+ to )?[\d.]+ percentage points",
        text,
    )
    assert "“Yes” is more common in “South”" not in text


def test_downloads_are_the_bytes_of_the_api(answered: Office, analyst: FlaskClient) -> None:
    where = f"/admin/surveys/{answered.survey}/estimates/download?level=0.9&by=region&product=mle&format="
    key = answered.services.access.create("analyst", "x")
    headers = {"Authorization": f"Bearer {key}"}
    for form in ("csv", "spreadsheet", "json"):
        mine = analyst.get(where + form)
        api = analyst.get(
            f"/v1/surveys/{answered.survey}/estimates?level=0.9&by=region&format={form}",
            headers=headers,
        )
        assert (mine.status_code, mine.data, mine.mimetype) == (200, api.data, api.mimetype)
        name = "habits-spreadsheet.csv" if form == "spreadsheet" else f"habits.{form}"
        assert mine.headers["Content-Disposition"] == f'attachment; filename="{name}"'
    for form in ("csv", "spreadsheet", "parquet"):
        assert analyst.get(f"{where}{form}&compare=all").status_code == 422
    replay = answered.services.analysis.replay
    assert replay(json.loads(analyst.get(where + "json").data)) == analyst.get(where + "json").data
    table = parquet.read_table(io.BytesIO(analyst.get(where + "parquet").data))
    assert table.num_rows == 10


def test_snippets_make_the_same_request(answered: Office, analyst: FlaskClient) -> None:
    text = page(answered, analyst, "?level=0.9&by=region&row=smokes&column=drinks").text.replace(
        "&amp;", "&"
    )
    address = re.search(r'"http://127.0.0.1:8000(/v1/[^"]*)"', text.replace("&#34;", '"'))
    assert address
    key = answered.services.access.create("analyst", "x")
    answer = analyst.get(address.group(1), headers={"Authorization": f"Bearer {key}"})
    download = analyst.get(
        f"/admin/surveys/{answered.survey}/estimates/download?level=0.9&by=region&row=smokes&column=drinks&format=csv"
    )
    assert (answer.status_code, answer.data) == (200, download.data)
    assert "level=0.9, method=" in text


def test_a_population_gives_numbers_of_people_and_narrower_margins(
    answered: Office, analyst: FlaskClient
) -> None:
    """A third of 1,200 people answered; the page shows numbers of people, and snippets make the
    same request."""
    where = "?population=1200&level=0.9&method=kl&product=mle"
    text = page(answered, analyst, where).text
    free, drawn = (
        [row for question in answered.services.analysis.estimates(answered.survey, level=0.9, population=n)["questions"]
         for row in question["rows"]]
        for n in (None, 1200)
    )  # fmt: skip
    assert all(b["se"] < a["se"] for a, b in zip(free, drawn, strict=True))
    kl = answered.services.analysis.estimates(
        answered.survey, level=0.9, method="kl", population=1200
    )
    rows = [row for question in kl["questions"] for row in question["rows"]]
    people_cells = re.findall(
        r'data-th="Of 1,200 people">([−\d,]+) <small class="ends">\(([−\d,]+) to ([−\d,]+)\)<', text
    )
    assert len(people_cells) == len(rows)
    for texts, row in zip(people_cells, rows, strict=True):
        people, low, high = (float(number.replace("−", "-").replace(",", "")) for number in texts)
        assert abs(people - 1200 * row["estimate"]) <= 0.5
        assert 0 <= 1200 * row["low"] - low < 1
        assert 0 <= high - 1200 * row["high"] < 1
    assert (
        "population=1200" in text.partition("<h3>The same from a program</h3>")[0]
    )  # the downloads
    api, python = text.partition("<h3>The same from a program</h3>")[2].split("import os")
    assert "population=1200" in api
    assert re.search(r"\bpopulation=1200[,)]", python)


def test_denial_has_a_column_and_stays_in_the_form(answered: Office, analyst: FlaskClient) -> None:
    usual = page(answered, analyst).text
    assert "% deny" not in usual
    assert 'id="denial" name="denial" inputmode="decimal" autocomplete="off" value=""' in usual
    text = page(answered, analyst, "?denial=0.25").text
    assert 'autocomplete="off" value="0.25"' in text
    rows = [
        row
        for question in answered.services.analysis.estimates(answered.survey, denial=0.25)[
            "questions"
        ]
        for row in question["rows"]
    ]
    found = re.findall(
        r'data-th="If up to 25% deny">([^<]*) <small class="ends">([^<]*)</small>', text
    )
    assert found == [
        (shown(row["denied_estimate"]), f"{shown(row['low'])} to {shown(row['denied_high'])}")
        for row in rows
    ]
    # The same request from a program.
    assert "denial=0.25" in text.partition("<h3>The same from a program</h3>")[2]
    # Shares within rows have no such bound.
    within = page(answered, analyst, "?row=smokes&column=drinks&percent=row&denial=0.25").text
    assert set(re.findall(r'data-th="If up to 25% deny">(.*?)</td>', within)) == {"–"}


def test_all_options_together_are_accepted(answered: Office, analyst: FlaskClient) -> None:
    """The form sends every field, empty or not."""
    every = "level=0.9&method=clt&product=mle&by=&period=&since=&until=&row=&column=&percent=&census=false"
    every += "&population=1200&denial=0.2"
    answer = page(answered, analyst, f"?{every}")
    assert answer.status_code == 200
    form = answer.text.partition('<form method="get">')[2].partition("</form>")[0]
    names = re.findall(r'<(?:select|input)[^>]* name="([^"]*)"', form)
    assert sorted(part.partition("=")[0] for part in every.split("&")) == sorted(names)
    download = f"/admin/surveys/{answered.survey}/estimates/download?{every.replace('product=mle', 'format=csv')}"
    assert analyst.get(download).status_code == 200


@pytest.mark.parametrize("table", ["row=&column=", "row=smokes&column=", "row=&column=smokes"])
def test_percentages_of_a_table_that_was_not_chosen_are_refused(
    answered: Office, analyst: FlaskClient, table: str
) -> None:
    text = page(answered, analyst, f"?{table}&percent=row").text
    assert 'data-field="percent"' in text
    assert "choose the two questions of a table first" in text


def test_too_few_answers_give_no_number_but_say_how_many_are_missing(
    answered: Office, analyst: FlaskClient
) -> None:
    services = answered.services
    services.surveys.apply(parse_definition(SURVEY.replace(b"name: habits", b"name: few")))
    published = services.surveys.publish("few")
    where = f"/admin/surveys/{published.survey_id}/estimates"
    text = analyst.get(where).text
    assert "0 are released, 10 are needed" in text
    assert "10 more." in text
    assert "<svg" not in text
    report = {
        "v": 1,
        "doc": published.digest,
        "id": "0" * 32,
        "y": [1, 2],
        "strata": {"region": "north"},
        "token": None,
    }
    services.intake.accept_batch(
        published.survey_id, [report | {"id": f"{i:032x}"} for i in range(3)]
    )
    text = analyst.get(where).text
    assert "0 are released" in text  # an exact count would reveal who has just answered
    assert cells(text) == []


# Query -> (status, field named in the error).
BAD: dict[str, tuple[int, str]] = {
    "level=95": (422, "level"),
    "level=nan": (422, "level"),
    "method=magic": (422, "method"),
    "product=clipped": (422, "product"),
    "by=colour": (422, "by"),
    "period=hour": (422, "period"),
    "since=yesterday": (422, "since"),
    "since=2026-06-02&until=2026-06-01": (422, "until"),
    "row=smokes&column=smokes": (422, "column"),
    "row=nothing": (422, "targets"),
    "census=maybe": (422, "census"),
    "census=true&method=sequence": (422, "method"),
    "population=many": (422, "population"),
    "population=-5": (422, "population"),
    "population=1": (422, "population"),
    "population=399": (422, "population"),
    "population=1200&census=true": (422, "population"),
    "population=1200&by=region": (422, "population"),
    "population=1200&since=2026-05-01": (422, "population"),
    "population=1200&method=sequence": (422, "method"),
    "colour=red": (422, "query"),
    # The page has no test of equivalence, and would have to compare for one.
    "by=region&equivalence=0.05": (422, "query"),
    "by=region&compare=all&equivalence=0.05": (422, "query"),
    "level=0.9&level=0.8": (400, "level"),
}


@pytest.mark.parametrize("query", BAD)
def test_a_bad_address_is_explained_on_the_page(
    answered: Office, analyst: FlaskClient, query: str
) -> None:
    status, field = BAD[query]
    answer = page(answered, analyst, f"?{query}")
    assert answer.status_code == status
    assert f"({field})" in answer.text
    assert cells(answer.text)  # the page is shown with the default options
    assert analyst.get(f"/admin/surveys/{answered.survey}/estimates/download?{query.replace('product', 'format')}"
                       ).status_code == status  # fmt: skip


def test_viewers_read_and_analysts_download(answered: Office) -> None:
    viewer = answered.client("viewer")
    assert "Downloads of all figures are for analysts" in page(answered, viewer).text
    assert viewer.get(f"/admin/surveys/{answered.survey}/estimates/download").status_code == 403


def test_only_an_admin_sees_that_somebody_has_answered(answered: Office) -> None:
    """A page that changes when a report arrives shows when it arrived; on a public link, one's own reports can bring
    a band to its edge."""
    clients = {role: answered.client(role) for role in ("viewer", "analyst", "admin")}

    def texts(page: str) -> dict[str, str]:
        path = f"/admin/surveys/{answered.survey}/{page}".rstrip("/")
        shown = {
            role: " ".join(without_terms(client.get(path).text).split())
            for role, client in clients.items()
        }
        return {role: re.sub('name="csrf" value="[^"]*"', "", text) for role, text in shown.items()}

    estimates, intake, overview = texts("estimates"), texts("answers"), texts("")
    for text in estimates.values():
        assert f"{ANSWERS} answers are released and counted. The next release is at" in text
        assert "The next release is at 2026-06-02 00:00 UTC; answers wait longer" in text
    digest = answered.services.surveys.versions(answered.survey)[-1].digest
    report = {"v": 1, "doc": digest, "y": [1, 2], "strata": {"region": "north"}, "token": None}
    reports = [report | {"id": f"{ANSWERS + i:032x}"} for i in range(300)]
    answered.services.intake.accept_batch(answered.survey, [*reports, report | {"y": [9, 9]}])
    assert texts("estimates") == estimates
    later = texts("answers")
    assert [role for role in clients if later[role] != intake[role]] == ["admin"]
    then = texts("")
    assert [role for role in clients if then[role] != overview[role]] == ["admin"]
    assert ("200 to 499" in intake["admin"], "500 to 999" in later["admin"]) == (True, True)


def test_a_population_of_groups_can_be_asked_for_by_address(
    answered: Office, analyst: FlaskClient
) -> None:
    """The form has no field for sizes, but links keep them, and the page shows their rows."""
    sizes = "by=region&group_sizes=%7B%22north%22%3A1%2C%22south%22%3A3%7D"
    answer = page(answered, analyst, f"?{sizes}")
    assert answer.status_code == 200
    assert "weighted region" in answer.text
    rows = [
        row
        for one in answered.services.analysis.estimates(
            answered.survey, by="region", group_sizes='{"north": 1, "south": 3}'
        )["questions"]
        for row in one["rows"]
    ]
    found = sorted(row[2] for row in cells(answer.text))
    assert found == sorted(shown(row["estimate"]) for row in rows)
    assert "group_sizes=" in answer.text.partition("<h3>The same from a program</h3>")[2]
    bad = page(answered, analyst, "?by=region&group_sizes=%7B%7D")
    assert bad.status_code == 422


def test_the_form_keeps_the_sizes_when_another_field_is_changed(
    answered: Office, analyst: FlaskClient
) -> None:
    def hidden(query: str) -> dict[str, str]:
        form = page(answered, analyst, query).text.partition('<form method="get">')[2]
        inputs = re.findall(
            r'<input type="hidden" name="([^"]*)" value="([^"]*)">', form.partition("</form>")[0]
        )
        return {name: html.unescape(value) for name, value in inputs}

    sizes = '{"north":1,"south":3}'
    kept = hidden(f"?by=region&group_sizes={quote(sizes)}")
    assert kept == {"group_sizes": sizes}
    again = page(answered, analyst, f"?{urlencode({'by': 'region', 'level': '0.9', **kept})}")
    assert again.status_code == 200
    assert "weighted region" in again.text
    assert hidden("?by=region") == {}


def test_links_of_every_accepted_address_work(answered: Office, analyst: FlaskClient) -> None:
    key = answered.services.access.create("analyst", "x")
    sizes = quote('{"north":1,"south":3}')
    for query in (
        f"by=region&group_sizes={sizes}",
        f"by=region&compare=all&group_sizes={sizes}",
        "by=region&compare=first",
    ):
        text = html.unescape(page(answered, analyst, f"?{query}").text)
        for link in re.findall(r'href="([^"]*/estimates/download[^"]*)"', text):
            is_table = "compare" in query and "format=json" not in link
            assert analyst.get(link).status_code == (422 if is_table else 200)
        address = re.search(r'"http://127.0.0.1:8000(/v1/[^"]*)"', text)
        assert address
        where = address[1].replace("format=csv", "format=json")
        assert analyst.get(where, headers={"Authorization": f"Bearer {key}"}).status_code == 200
