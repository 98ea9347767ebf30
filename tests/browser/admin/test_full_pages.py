# SPDX-License-Identifier: Apache-2.0
"""Pages with a lot of content: three questions, two regions, several days, and drafts with a prior."""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from frankly_protocol.clock import FixedClock
from frankly_server.intake import Intake, Releasing
from frankly_server.surveys import editing, survey_templates
from frankly_server.surveys.definition import parse_definition, parse_value
from frankly_server.surveys.protection import Protection, protect

from tests.browser.admin.conftest import PASSWORD, Desk
from tests.frankly_server.surveys.drafts import add_question

PEOPLE, DAYS = 900, 5


@pytest.fixture(scope="module")
def survey(desk: Desk) -> str:
    """A survey with answers from several days; people in the north and people who drink smoke more."""
    draft = editing.new_draft("Habits & health", "health", "en", "Do you smoke?", ["No", "Yes"])
    draft = add_question(
        draft, "How often do you drink?", ["Never", "Up to once a week", "More often"]
    )
    draft = add_question(draft, "Where do you live?", ["North", "South"], public=True)
    draft = protect(draft, "do-you-smoke", Protection({"epsilon": "3"}))
    draft = protect(draft, "how-often-do-you-drink", Protection({"epsilon": "4"}))
    draft["min_reports"] = "60"
    services, draw = desk.services, random.Random(7)
    services.surveys.apply(parse_value(draft))
    published = services.surveys.publish("health")
    document = services.surveys.versions("health")[-1]
    for day in range(DAYS):
        intake = Intake(services.database, FixedClock(services.surveys.now() + timedelta(days=day)))
        reports = []
        for _ in range(PEOPLE // DAYS):
            north = draw.random() < 0.6
            drinks = draw.choices(range(3), (5, 3, 2))[0]
            smokes = int(draw.random() < (0.25 if north else 0.1) + 0.15 * drinks + 0.05 * day)
            strata = {"where-do-you-live": "north" if north else "south"}
            reports.append(_report(document, (smokes, drinks), strata, draw))
        assert {getattr(r, "status", r) for r in intake.accept_batch(published.survey_id, reports)} == {
            "accepted"}  # fmt: skip
        Releasing(
            services.database, FixedClock(services.surveys.now() + timedelta(days=day))
        ).release()
    desk.open("/admin/sign-in")
    desk.sign_in("ada@example.org", PASSWORD)
    return published.survey_id


def _report(
    document: Any, answers: tuple[int, int], strata: dict[str, str], draw: random.Random
) -> dict[str, Any]:
    symbols = [
        block.mechanism.symbol_json(block.mechanism.sample(answer, draw.getrandbits))
        for block, answer in zip(document.blocks, answers, strict=True)
    ]
    return {"v": 1, "doc": document.digest, "id": f"{draw.getrandbits(128):032x}", "y": symbols, "strata": strata,
            "token": None}  # fmt: skip


# Name -> (query, text that the page must contain)
VIEWS = {
    "all": ("", "is the most common answer"),
    "apart": ("?by=where-do-you-live", "is more common in “North” than in “South”"),
    "days": ("?period=day", "Between the periods"),
    "table": ("?row=do-you-smoke&column=how-often-do-you-drink&population=5000", "Of 5,000 people"),
}


def default_or_full(names: Iterable[str], default: set[str]) -> list[Any]:
    """Return test parameters; those not in `default` run only with --full."""
    return [
        pytest.param(name, marks=() if name in default else pytest.mark.full_only) for name in names
    ]


@pytest.mark.parametrize("name", default_or_full(VIEWS, {"days", "table"}))
def test_estimates_with_much_to_show(desk: Desk, survey: str, name: str) -> None:
    query, expected_text = VIEWS[name]
    desk.open(f"/admin/surveys/{survey}/estimates{query}")
    assert expected_text.lower() in desk.page.locator("main").inner_text().lower()
    assert desk.page.locator("svg.intervals").count() == (1 if name == "table" else 2)
    desk.check(f"full-estimates-{name}")


@pytest.mark.parametrize(
    "template", default_or_full(["student", "census", "attributes"], {"census"})
)
def test_drafts_with_a_prior(desk: Desk, survey: str, template: str) -> None:
    """The margins page draws the frontier, and the form shows the draft. The fixture `survey` has
    signed in."""
    services = desk.services
    services.surveys.apply(parse_definition(survey_templates.template(template)))
    summary = services.surveys.summary(parse_definition(survey_templates.template(template)).name)
    block = services.surveys.draft(summary.survey_id).blocks[-1]
    where = f"/admin/surveys/{summary.survey_id}"
    desk.open(f"{where}/protection?block={block.id}")
    assert desk.page.locator(f"input[name=notion][value={block.notion}]").is_checked()
    desk.check(f"full-protection-{template}")
    desk.open(f"{where}/margins?block={block.id}")
    frontier = desk.page.locator("svg.intervals", has_text="Margin against information")
    assert frontier.locator(".mark").count() >= 1
    assert frontier.locator(".curve-point").count() == (6 if template == "census" else 1)
    assert desk.page.get_by_text("What another level would give").count() == 1
    desk.check(f"full-margins-{template}")
