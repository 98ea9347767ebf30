# SPDX-License-Identifier: Apache-2.0
"""Page first_hour_analyst.md, followed as written in Python and in R."""

from pathlib import Path

import pytest

from tests.docs.first_hour import KEY, PYTHON, R, follow, sections

HOUR_S = 3600


@pytest.mark.full_only
@pytest.mark.parametrize(
    ("part", "files"),
    [(PYTHON, ("report.html", "estimates.csv")), (R, ("report.md", "shares.svg", "shares.csv"))],
)
def test_the_guide_runs_from_a_key_to_a_report(
    tmp_path: Path, part: str, files: tuple[str, ...]
) -> None:
    steps = follow(tmp_path, parts=(KEY, part))
    assert len(steps) == 6
    assert sum(step.seconds for step in steps) < HOUR_S
    for step in steps:
        for promised, shown in step.outputs:
            assert shown == promised, step.name
    assert all((tmp_path / name).stat().st_size > 500 for name in files)


def test_both_languages_have_the_same_steps(root: Path) -> None:
    page = (root / "docs" / "first_hour_analyst.md").read_text(encoding="utf-8")
    steps: dict[str, list[str]] = {PYTHON: [], R: []}
    for part, heading, _ in sections(page):
        if part in steps and heading != part:
            steps[part].append(heading.removesuffix(" in R"))
    assert steps[PYTHON] == steps[R]
