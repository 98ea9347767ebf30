# SPDX-License-Identifier: Apache-2.0
"""Sites with published surveys: one with every kind of fact, one with hostile texts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from frankly_server.evidence import collect
from frankly_server.evidence.facts import Facts

from tests.frankly_server.web.site import Site, make_site
from tests.survey_files import REGION, SMOKES, habits

LIP = """\
  - id: drinks
    notion: lip
    epsilon: "0.5"
    ceiling_cap: "2"
    questions:
      - id: drinks
        text: {en: "How often do you drink?"}
        choices:
          - {id: never, label: {en: Never}}
          - {id: weekly, label: {en: Weekly}}
          - {id: daily, label: {en: Daily}}
    prior:
      secret: smoking
      secrets: [no, yes]
      joint: [[310, 260, 100], [60, 90, 180]]
      source: a public pilot
      public: true
"""
ITEM = f"""\
instructed:
  id: check
  text: {{en: 'Choose two {"{{ 7*7 }} <script>"}'}}
  choices:
    - {{id: one, label: {{en: One}}}}
    - {{id: two, label: {{en: Two}}}}
  answer: two
"""
HOSTILE = "<script>alert(1)</script> *b* [x](javascript:1) `c` | d $e$ {{ 7*7 }} \\\\e"


def _site(folder: Path, survey: bytes) -> Iterator[Site]:
    made = make_site(folder / "home", f"sqlite:///{folder / 'frankly.db'}", survey)
    yield made
    made.services.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A survey with LDP and LIP blocks, and twelve released reports."""
    for made in _site(tmp_path_factory.mktemp("evidence"), habits(SMOKES, LIP, budget="4")):
        for number in range(1, 13):
            sent = made.send(made.report(number, strata={}))
            assert sent.status_code in (200, 201, 202)
        assert made.release() == 12
        yield made


@pytest.fixture(scope="session")
def facts(site: Site) -> Facts:
    return collect(site.services, "habits")


@pytest.fixture(scope="session")
def public_facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Facts]:
    """Facts of a survey with a public question, whose title and question are hostile."""
    survey = habits(SMOKES, budget="2", strata=REGION).decode()
    survey = survey.replace("{en: Habits}", f"{{en: '{HOSTILE}'}}")
    survey = survey.replace('"Do you smoke?"', f"'{HOSTILE}'") + ITEM
    for made in _site(tmp_path_factory.mktemp("hostile"), survey.encode()):
        yield collect(made.services, "habits")
