# SPDX-License-Identifier: Apache-2.0
"""List of the surveys that a key opens, and selection of surveys by name and title."""

import pytest
from frankly_analyst import Analyst, InvalidRequest, Refused, Survey, Surveys
from frankly_server.cli import front

from tests.frankly_analyst.conftest import Served


def _survey(number: int, name: str, **titles: str) -> Survey:
    return Survey(f"{number:032x}", name, titles["en"], "live", 1, 10, ("q",), (), titles)


THREE = Surveys((
    _survey(1, "a", en="Habits", de="Gewohnheiten"),
    _survey(2, "b", en="Habits"),
    _survey(3, "Habits-2026", en="a"),
))  # fmt: skip


def test_the_key_opens_its_surveys(served: Served) -> None:
    surveys = Analyst(served.url, served.site.analyst_key).surveys()
    (row,) = surveys
    assert (row.id, row.name, row.title, row.state) == (
        served.site.survey,
        "habits",
        "Habits",
        "live",
    )
    assert (row.versions, row.n, row.questions, row.strata) == (
        1,
        60,
        ("smokes", "drinks"),
        ("region",),
    )
    assert "habits" in str(surveys)
    assert "<td>Habits</td>" in surveys._repr_html_()


def test_drafts_and_surveys_of_others_are_not_listed(served: Served) -> None:
    services = served.site.services
    draft = services.surveys.draft(served.site.survey).model_copy(update={"name": "a-draft"})
    services.surveys.apply(draft)
    analyst = Analyst(served.url, served.site.analyst_key)
    assert [row.name for row in analyst.surveys()] == ["habits"]
    for key in (
        services.access.create("analyst", "other", "elsewhere"),
        services.access.create("analyst", "one", surveys=["0" * 32]),
    ):
        assert len(Analyst(served.url, key).surveys()) == 0
        with pytest.raises(InvalidRequest, match="the key opens no survey"):
            Analyst(served.url, key).estimates("habits")
    with pytest.raises(Refused):
        Analyst(served.url, "frankly_live_" + "A" * 43).surveys()


@pytest.mark.parametrize("name", ["habits", "Habits"])
def test_calls_take_names_and_titles(served: Served, name: str) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    estimates = analyst.estimates(name)
    assert estimates.rows == analyst.estimates(served.site.survey).rows
    assert estimates.sum("drinks", ["weekly", "daily"]).n == 60
    assert analyst.counts(name).parts == analyst.counts(served.site.survey).parts


@pytest.mark.parametrize("command", [["estimates"], ["counts", "show"]])
def test_commands_take_names_at_a_url(
    served: Served,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FRANKLY_API_KEY", served.site.analyst_key)
    assert front.run([*command, "habits", "--url", served.url]) == 0
    assert "60 reports" in capsys.readouterr().out
    assert front.run([*command, "nothing", "--url", served.url]) == 3
    assert "the key opens habits" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "number"),
    [("a", 1), ("b", 2), ("Habits-2026", 3), ("Gewohnheiten", 1), (f"{2:032x}", 2)],
)
def test_names_come_before_titles(asked: str, number: int) -> None:
    assert THREE.find(asked).id == f"{number:032x}"


@pytest.mark.parametrize(
    ("asked", "detail"),
    [
        ("Habits", "2 surveys have this title: name one of a, b"),
        ("habits", "the key opens a, b, Habits-2026"),
        ("", "the key opens"),
    ],
)
def test_unknown_and_ambiguous_names_are_explained(asked: str, detail: str) -> None:
    with pytest.raises(InvalidRequest, match=detail) as refused:
        THREE.find(asked)
    assert (refused.value.code, refused.value.field) == ("survey_unknown", "survey")
