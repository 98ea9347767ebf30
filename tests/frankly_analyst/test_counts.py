# SPDX-License-Identifier: Apache-2.0
"""Counts that the client requests from a real server: arguments, refusals, and permissions."""

import json
from pathlib import Path
from typing import Any

import pytest
from frankly_analyst import Analyst, Counts, Refused, Stratum
from frankly_server.web.counts_models import SurveyCounts

from tests.frankly_analyst.conftest import Served
from tools.blocks import blocks


def test_counts_come_with_their_mechanism(served: Served) -> None:
    analyst = Analyst(served.url, served.site.analyst_key)
    counts = analyst.counts(served.site.survey, by=("region",))
    assert (counts.title, counts.n, counts.by, len(counts)) == ("Habits", 60, ("region",), 2)
    smokes = counts.part("smokes")
    assert smokes.strata == (Stratum({"region": "north"}, 60, (30, 30)),)
    estimates = analyst.estimates(served.site.survey)
    shares = smokes.shares(smokes.strata[0])
    assert shares == pytest.approx([row.estimate for row in estimates.of("smokes")], abs=1e-12)
    assert analyst.counts(served.site.survey, "region").parts == counts.parts
    pairs = analyst.counts(served.site.survey, questions=["smokes", "drinks"])
    assert pairs.part("smokes", "drinks").strata[0].counts == (10,) * 6
    assert Counts.from_json(pairs.body) == pairs


def test_the_guide_computes_the_servers_estimates_by_hand(
    served: Served, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (root / "docs" / "counts.md").read_text(encoding="utf-8")
    (snippet,) = [block.body for block in blocks(page) if block.language == "python"]
    names = {"url": served.url, "key": served.site.analyst_key, "survey": served.site.survey}
    exec(compile(snippet, "counts.md", "exec"), names)
    assert capsys.readouterr().out.splitlines() == ["no 0.5 ± 0.141", "yes 0.5 ± 0.141"]


def test_the_format_of_the_specification_is_the_declared_one(root: Path) -> None:
    page = (root / "docs" / "spec" / "8-estimates.md").read_text(encoding="utf-8")
    (example,) = [block.body for block in blocks(page) if block.language == "json"]
    SurveyCounts.model_validate_json(example)
    (part,) = Counts.from_json(json.loads(example))
    assert part.shares(part.strata[0]) == pytest.approx([1.5 * 300 / 512 - 0.5 * 212 / 512,
                                                         1.5 * 212 / 512 - 0.5 * 300 / 512])  # fmt: skip
    assert part.n - part.withheld_reports - part.without_stratum >= part.strata[0].n


REFUSED: dict[str, tuple[dict[str, Any], str, int, str]] = {
    "an unknown public question": ({"by": "age"}, "", 422, "strata_invalid"),
    "an unknown question": ({"questions": "age"}, "", 422, "targets_invalid"),
    "a day that is none": ({"since": "yesterday"}, "", 422, "field_type"),
    "an unknown survey": ({}, "0" * 32, 404, "survey_unknown"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_are_typed(served: Served, name: str) -> None:
    fields, survey, status, code = REFUSED[name]
    with pytest.raises(Refused) as refused:
        Analyst(served.url, served.site.analyst_key).counts(survey or served.site.survey, **fields)
    assert (refused.value.status, refused.value.code) == (status, code)


def test_counts_need_a_key_that_opens_the_survey(served: Served) -> None:
    access = served.site.services.access
    for key, status, code in [
        ("frankly_live_" + "A" * 43, 401, "unauthenticated"),
        (access.create("analyst", "other", "elsewhere"), 404, "survey_unknown"),
        (access.create("analyst", "one", surveys=["0" * 32]), 404, "survey_unknown"),
    ]:
        with pytest.raises(Refused) as refused:
            Analyst(served.url, key).counts(served.site.survey)
        assert (refused.value.status, refused.value.code) == (status, code)
