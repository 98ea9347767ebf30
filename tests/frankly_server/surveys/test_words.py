# SPDX-License-Identifier: Apache-2.0
"""Warnings at publication about combinations that reports cannot identify, in the words of the survey."""

import json
from pathlib import Path

import pytest
from frankly_server.cli import survey as command

from tests.frankly_server.web.site import SURVEY, UNIDENTIFIABLE, make_site


def test_publication_lists_groups_that_can_and_cannot_be_estimated(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site = make_site(tmp_path, sqlite_url, UNIDENTIFIABLE)
    publication = site.services.surveys.publish("habits")
    smokes, drinks = publication.blocks
    assert (smokes.estimable, smokes.untold) == (("the share of no", "the share of yes"), ())
    assert drinks.estimable == ("the share of never + weekly", "the share of daily")
    assert drinks.untold == ("weekly against never",)
    command._show(publication)
    output = " ".join(capsys.readouterr().out.split())
    assert "In drinks, no number of reports can distinguish weekly against never." in output
    assert "In smokes" not in output
    assert json.loads(json.dumps(command._published(publication)))["blocks"][1]["untold"] == [
        "weekly against never"
    ]
    site.services.close()


def test_publication_states_the_regret_if_choices_are_equally_common(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    block = SURVEY[SURVEY.index(b"  - id: drinks") : SURVEY.index(b"strata:")]
    skewed = (
        block.replace(b"grr", b"optimal")
        + b"    prior: {joint: [[980, 10, 10]], source: made up}\n"
    )
    site = make_site(tmp_path, sqlite_url, SURVEY.replace(block, skewed))
    publication = site.services.surveys.publish("habits")
    smokes, drinks = publication.blocks
    assert smokes.regret is None
    assert drinks.regret is not None
    note = f"this needs {round(100 * (drinks.regret.ratio - 1))}% more reports than {drinks.regret.against}"
    command._show(publication)
    output = " ".join(capsys.readouterr().out.split())
    assert f"drinks: if all choices are equally common, {note}." in output
    assert "smokes: if all" not in output
    blocks = json.loads(json.dumps(command._published(publication)))["blocks"]
    assert blocks[0]["regret"] is None
    assert blocks[1]["regret"] == {
        "at": "equal shares", "ratio": f"{drinks.regret.ratio:.2f}", "against": drinks.regret.against,
    }  # fmt: skip
    site.services.close()
