# SPDX-License-Identifier: Apache-2.0
"""Corrected figures through the whole path: file, devices, server, API and page give the same numbers
as a computation from the reports alone. Some of the 60 surveys of the bench; with --full all."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_analyst import Estimates
from frankly_analyst.plots import percent
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism
from frankly_sdk import Policy
from frankly_sdk.testing import open_client
from frankly_server.accounts import Passwords
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store.reports import reports
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr
from scipy.stats import binomtest
from sqlalchemy import select

from tests.contract.conftest import NOW, ORIGIN, InProcess
from tests.frankly_server.accounts.people import CHEAP
from tests.frankly_server.web.admin.office import PASSWORD, send
from tests.migrated import opened

PEOPLE = 120
Z = 1.959963984540054


@dataclass(frozen=True)
class Cell:
    share: float
    choices: int
    epsilon: str
    random: float

    @property
    def file(self) -> bytes:
        listed = "".join(
            f"      - {{id: c{i}, label: {{en: C{i}}}}}\n" for i in range(self.choices)
        )
        return (
            "name: habits\ntitle: {en: Habits}\nlanguages: [en]\nopens: 2026-05-01T00:00:00Z\n"
            "closes: 2026-07-01T00:00:00Z\nexpires: 2026-08-01T00:00:00Z\nmin_reports: 20\nrelease_step: 2\n"
            f'budget: "{self.epsilon}"\nblocks:\n  - id: q\n    notion: ldp\n    epsilon: "{self.epsilon}"\n'
            f"    mechanism: grr\n    questions:\n    - id: q\n      text: {{en: Q?}}\n      choices:\n{listed}"
            "instructed:\n  id: check\n  text: {en: Choose B.}\n  answer: b\n  choices:\n"
            + "".join(f"  - {{id: {name}, label: {{en: {name.upper()}}}}}\n" for name in "abcd")
        ).encode()


CELLS = [
    Cell(*values)
    for values in product((0.005, 0.03, 0.1, 0.2, 0.4), (2, 3, 6), ("1", "4"), (0.0, 0.2))
]
SOME = CELLS[1::19]


def test_there_are_sixty_cells() -> None:
    assert len(CELLS) == 60
    assert {cell.random for cell in SOME} == {0.0, 0.2}


def answered(document: SurveyDocument, link: str, folder: Path, cell: Cell, http: Any) -> None:
    """Answer as people would: some at random, all others truthfully and with care."""
    rng, rows = Random(5), []
    names = [choice.id for choice in document.questions["q"].choices]
    for i in range(PEOPLE):
        if rng.random() < cell.random:
            truth, check = rng.choice(names), rng.choice("abcd")
        else:
            truth, check = names[1] if rng.random() < cell.share else names[0], "b"
        rows.append((f"p{i}", {"q": truth}, {"check": check}))
    with open_client(
        link,
        folder / "device.db",
        spread_s=0,
        policy=Policy(cap="5"),
        transport=InProcess(http),
        clock=FixedClock(NOW),
    ) as client:
        assert {row.status for row in client.randomise_many(rows)} == {"sealed"}
        assert len(client.flush()) == PEOPLE


def by_hand(document: SurveyDocument, rows: Sequence[tuple[str, str]]) -> list[tuple[float, ...]]:
    """Return the corrected share of each choice with its error and ends, from (symbols, strata)."""
    mechanism = document.blocks[0].mechanism
    assert isinstance(mechanism, DenseMechanism)
    (on, off, *_), n, size = mechanism.weights[0], len(rows), mechanism.answers
    keep, flip = on / mechanism.denominator, off / mechanism.denominator
    failed = sum(json.loads(strata)["check"] == "failed" for _, strata in rows)
    lam = failed / n * 4 / 3
    v = failed / n * (1 - failed / n) / n * 16 / 9
    # From two on, the step, it is known who failed, and these count by the law.
    known = failed if failed >= document.release_step else 0
    others = [
        symbols for symbols, strata in rows if not known or json.loads(strata)["check"] == "passed"
    ]
    counted, found = Counter(map(int, others)), list[tuple[float, ...]]()
    for choice in range(size):
        m, rho = len(others), 1 / size
        share = counted[choice] / m
        t = (share - flip) / (keep - flip)
        mean = (m * t + known * rho) / n
        between = (m * (t - mean) ** 2 + known * (rho - mean) ** 2) / n / (n - 1)
        plain = between + m * share * (1 - share) / (keep - flip) ** 2 / n / (n - 1)
        covariance = lam * (mean - rho) / n  # of the mean and 1 − λ̂
        # a − θb with a = mean − λ̂ρ and b = 1 − λ̂.
        a, b, ab = mean - lam * rho, 1 - lam, covariance + rho * v
        theta, more = a / b, rho**2 * v + 2 * rho * covariance
        se = sqrt(max(0.0, plain + more - 2 * theta * ab + theta**2 * v)) / b
        ends = []
        # The score interval: Wilson's, or the normal one where that is wider.
        wilson = binomtest(counted[choice], m).proportion_ci(0.95, "wilson")
        normal = Z * sqrt(share * (1 - share) / (m - 1))
        both = (-1, min(wilson.low, share - normal)), (1, max(wilson.high, share + normal))
        for sign, end in both:
            distance = ((end - flip) / (keep - flip) - t) * m / n
            aa = max((distance / Z) ** 2 + between + more, 2 * theta * ab - theta**2 * v)
            square, half = b**2 - Z**2 * v, a * b - Z**2 * ab
            reach = sqrt(max(0.0, half**2 - square * (a**2 - Z**2 * aa)))
            ends.append((half + sign * reach) / square)
        found.append((theta, se, *ends))
    return found


@pytest.mark.parametrize("place", range(len(SOME)))
def test_the_whole_path_gives_the_numbers_of_the_reports(
    place: int, tmp_path: Path, full: bool
) -> None:
    for i, cell in enumerate(CELLS[place :: len(SOME)] if full else [SOME[place]]):
        folder = tmp_path / str(i)
        folder.mkdir()
        url = SecretStr(f"sqlite:///{folder / 'frankly.db'}")
        settings = Settings(home=folder / "home", database_url=url, public_url=ORIGIN)
        with closing(opened(settings, FixedClock(NOW), Passwords(CHEAP))) as services:
            _compare(cell, services, settings, folder)


def _compare(cell: Cell, services: Services, settings: Settings, folder: Path) -> None:
    services.surveys.apply(parse_definition(cell.file))
    published = services.surveys.publish("habits")
    document = SurveyDocument.from_envelope(services.surveys.envelope(published.survey_id))
    app = create_app(settings, services=services)
    http = app.test_client()
    answered(document, published.link, folder, cell, http)
    with services.database.engine.connect() as connection:
        kept = [
            (row.symbols, row.strata)
            for row in connection.execute(select(reports.c.symbols, reports.c.strata))
        ]
    assert len(kept) == PEOPLE
    assert services.releasing.release() == PEOPLE
    key = services.access.create("analyst", "test")
    path = f"/v1/surveys/{published.survey_id}/estimates"
    answer = http.get(path, headers={"Authorization": f"Bearer {key}"}).get_json()
    (question,) = answer["questions"]
    assert question["random_answers"]["shown"]
    columns = ("corrected", "corrected_se", "corrected_low", "corrected_high")
    figures = [tuple(row[name] for name in columns) for row in question["rows"]]
    assert figures == [pytest.approx(one, abs=1e-9) for one in by_hand(document, kept)]
    shown = _page(services, app, published.survey_id)
    assert shown == [percent(figure) for figure, *_ in figures]
    assert all(
        row.correction in str(Estimates.from_json(answer)) for row in Estimates.from_json(answer)
    )
    services.close()


def _page(services: Services, app: Any, survey: str) -> list[str]:
    services.accounts.create("main", "ada@example.org", "owner", PASSWORD)
    client = app.test_client()
    assert (
        send(client, "/admin/sign-in", email="ada@example.org", password=PASSWORD).status_code
        == 303
    )
    text = client.get(f"/admin/surveys/{survey}/estimates").text
    return re.findall(r'data-th="Corrected">([^ ]*) <small', text)
