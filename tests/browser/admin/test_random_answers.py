# SPDX-License-Identifier: Apache-2.0
"""An analyst reads how many people answered at random, and figures corrected for them, on every way."""

import csv
import io
from typing import Any

import pytest
from frankly_analyst import Estimate, Estimates
from frankly_design.estimate import estimate
from frankly_design.kinds.decoder import shares
from frankly_protocol.documents import SurveyDocument
from frankly_server.analysis import encode
from frankly_server.store import ReportRow
from frankly_server.surveys.definition import parse_definition
from frankly_server.web.results.denial import denial_sentences
from frankly_server.web.results.words import Words

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.survey_files import REGION, SMOKES, habits

ITEM = """\
instructed:
  id: check
  text: {en: "To show that you read the questions, please choose “Often”."}
  choices:
    - {id: never, label: {en: Never}}
    - {id: rarely, label: {en: Rarely}}
    - {id: often, label: {en: Often}}
    - {id: always, label: {en: Always}}
  answer: often
"""
AT = "2026-06-02T00:00:00Z"
# Reports by region and result: (symbol 0, symbol 1).
REPORTS = {
    ("north", "passed"): (640, 230),
    ("north", "failed"): (66, 64),
    ("south", "passed"): (560, 400),
    ("south", "failed"): (20, 20),
}


def test_figures_beside_each_other(desk: Desk) -> None:
    surveys = desk.services.surveys
    surveys.apply(parse_definition(habits(SMOKES, budget="1", window="", strata=REGION + ITEM)))
    published = surveys.publish("habits")
    document = SurveyDocument.from_envelope(surveys.envelope(published.survey_id))
    _receive(desk, document)
    body = desk.services.analysis.estimates(document.survey)
    (question,) = body["questions"]
    said, (_, yes) = question["random_answers"], question["rows"]
    assert (said["n"], said["failed"], said["law_n"]) == (2000, 170, 170)
    assert said["random"] == pytest.approx(170 / 2000 * 4 / 3)
    # All who failed are known, so the figure is that of those who passed.
    mechanism: Any = document.blocks[0].mechanism
    t = estimate(mechanism, [1200, 630], targets=shares(2)).unbiased[1] or 0.0
    assert yes["corrected"] == pytest.approx(0.5 + (t - 0.5) * 1830 / 2000 / (1 - said["random"]))
    # A replay reads the reports and batches, not the counts.
    assert desk.services.analysis.replay(body) == encode(body)
    (line,) = [
        one
        for one in csv.DictReader(io.StringIO(Estimates.from_json(body).to_csv()))
        if one["choice"] == "yes"
    ]
    assert float(line["corrected"]) == pytest.approx(yes["corrected"])
    text = str(Estimates.from_json(body))
    assert "170 of 2,000 reports failed the item that asks for a given choice." in text
    assert "; corrected " in text

    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    desk.open(f"/admin/surveys/{document.survey}/estimates")
    desk.check("random-answers")
    shown = desk.page.locator("main").inner_text()
    assert "If some people answered at random" in shown
    assert "About 11.3% of the people" in shown
    corrected = desk.page.locator('td[data-th="Corrected"]').all_inner_texts()
    assert corrected[1].startswith(_percent(yes["corrected"]))
    assert "each of the 2 choices alike" in shown
    denied_by_keyboard(desk, document.survey)
    desk.open(f"/admin/surveys/{document.survey}/estimates?by=region")
    desk.check("random-answers-by-region")
    by_region = desk.services.analysis.estimates(document.survey, by="region")["questions"]
    assert [one["random_answers"]["common"] for one in by_region] == [False, False]
    texts = desk.page.locator('td[data-th="Corrected"]').all_inner_texts()
    assert [text.split("%")[0] + "%" for text in texts] == [
        _percent(row["corrected"]) for one in by_region for row in one["rows"]
    ]


def denied_by_keyboard(desk: Desk, survey: str) -> None:
    """Move the slider of denial by keys, and compare the sentences with the analysis."""
    desk.open(f"/admin/surveys/{survey}/results")
    slider = desk.page.get_by_role("slider", name="If some people deny")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    # What is read aloud is what is shown.
    assert slider.evaluate("one => one.ariaValueText") == "15%"
    assert desk.page.locator("form.denial output").inner_text() == "15%"
    desk.press("Show the effect")
    desk.check("denial")
    assert desk.page.url.endswith("/results?denial=0.15")
    (question,) = desk.services.analysis.estimates(survey, denial=0.15)["questions"]
    rows = [Estimate.from_json(row, "en", ()) for row in question["rows"]]
    said = desk.page.locator("ul.denied li").all_inner_texts()
    assert said == list(denial_sentences(rows, Words("en")))
    assert all("the share, corrected for random answers, is" in one for one in said)


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%".replace("-", "−")


def _receive(desk: Desk, document: SurveyDocument) -> None:
    rows: list[ReportRow] = []
    for (region, result), symbols in REPORTS.items():
        stratum = f'{{"check":"{result}","region":"{region}"}}'
        for symbol, n in enumerate(symbols):
            values: Any = (symbol,)
            rows += [
                ReportRow(
                    document.survey, f"{len(rows) + i:032x}", document.digest, values, stratum
                )
                for i in range(n)
            ]
    with desk.services.database.transaction("receive and release") as tx:
        tx.reports.add(rows)
        released = tx.releases.release(
            document.survey, document.digest, 10, AT, is_over=lambda: False, item="check"
        )
    assert released == len(rows) == 2000
