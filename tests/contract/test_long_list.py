# SPDX-License-Identifier: Apache-2.0
"""A question with a long list of choices, from the survey file to the estimates; 1,000 choices with
--full."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from random import Random
from typing import Any

import pytest
from frankly_design.estimate.margins import METHODS
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.explain import explain
from frankly_protocol.mechanisms import SubsetMechanism
from frankly_server.analysis import Analysis
from frankly_server.keys import Keyring
from frankly_server.settings import Settings
from frankly_server.surveys import Surveys
from frankly_server.surveys.definition import parse_definition

from tests.frankly_protocol.samples import NOW
from tests.frankly_server.samples import released, row
from tests.migrated import migrated


def survey_file(choices: int, epsilon: str) -> bytes:
    """Return the survey's file."""
    lines = [
        "name: work",
        "title: {en: Work}",
        "languages: [en]",
        "budget: 3",
        "min_reports: 50",
        "blocks:",
        "- id: work",
        "  notion: ldp",
        f"  epsilon: {epsilon}",
        "  questions:",
        "  - id: job",
        '    text: {en: "What is your occupation?"}',
        "    choices:",
        *(f"    - {{id: j{x}, label: {{en: Occupation {x}}}}}" for x in range(choices)),
    ]
    return "\n".join(lines).encode()


@dataclass(frozen=True)
class Asked:
    """The survey and its reports: the number of sets that contain each choice, and the number of
    people who gave it."""

    choices: int
    devices: int
    analysis: Analysis
    document: SurveyDocument
    held: Mapping[int, int]
    truths: Mapping[int, int]


@pytest.fixture(scope="module", params=["1", "3"], ids=["pairs from reports", "pairs counted"])
def asked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, full: bool
) -> Asked:
    """Collect the reports. With large sets, pairs of choices are not counted, so estimates read the
    reports."""
    choices, devices = (1000, 2000) if full else (300, 600)
    home, clock = tmp_path_factory.mktemp("long"), FixedClock(NOW)
    Keyring(home / "keys", clock).init()
    database = migrated(f"sqlite:///{home}/frankly.db")
    settings = Settings(home=home, public_url="https://ask.example")
    surveys = Surveys(settings, database, Keyring(home / "keys", clock), clock)
    surveys.apply(parse_definition(survey_file(choices, request.param)))
    published = surveys.publish("work")
    document = SurveyDocument.from_envelope(surveys.envelope(published.survey_id))
    mechanism = document.blocks[0].mechanism
    assert isinstance(mechanism, SubsetMechanism)
    rng, held, truths, rows = Random(5), Counter[int](), Counter[int](), []
    chances = list(accumulate(1 / (x + 1) for x in range(choices)))
    for _ in range(devices):
        (job,) = rng.choices(range(choices), cum_weights=chances)
        truths[job] += 1
        symbol: Any = mechanism.symbol_json(mechanism.sample(job, rng.getrandbits))
        mask = int(symbol, 16)
        held.update(x for x in range(choices) if mask >> x & 1)
        rows.append(
            replace(row(symbol, document=document.digest), survey=document.survey, strata="")
        )
    released(database, document, rows)
    return Asked(choices, devices, Analysis(database), document, held, truths)


def test_the_mechanism_is_small_and_certified(asked: Asked) -> None:
    (block,) = asked.document.blocks
    asked.document.require_private()
    assert len(block.mechanism.params_json()) < 2048
    assert block.certificate is not None
    assert block.certificate.bound is not None
    assert float(block.certificate.value) == pytest.approx(float(block.certificate.bound), rel=1e-6)
    assert len(asked.document.payload()) < 100 * 1024


def test_the_survey_is_explained(asked: Asked) -> None:
    text = str(explain(asked.document, asked.document.report_level, ["ab" * 32]))
    assert str(asked.choices) in text.replace(",", "")


@pytest.mark.parametrize(
    "method",
    [
        method
        if method in ("score", "exact")
        else pytest.param(method, marks=pytest.mark.full_only)
        for method in METHODS
    ],
)
def test_shares_equal_those_of_the_sets_and_lie_within_their_margins(
    asked: Asked, method: str
) -> None:
    mechanism = asked.document.blocks[0].mechanism
    assert isinstance(mechanism, SubsetMechanism)
    (question,) = asked.analysis.estimates(asked.document.survey, method=method)["questions"]
    inside = Fraction(mechanism.inside, mechanism.denominator)
    outside = (mechanism.size - inside) / (asked.choices - 1)
    missed = 0
    for x, one in enumerate(question["rows"]):
        share = (Fraction(asked.held[x], asked.devices) - outside) / (inside - outside)
        assert one["estimate"] == pytest.approx(float(share), abs=1e-9)
        missed += not one["low"] <= asked.truths[x] / asked.devices <= one["high"]
    # At least 95% of the intervals contain the truth; methods with guarantees exceed 95%.
    assert missed < 0.08 * asked.choices
