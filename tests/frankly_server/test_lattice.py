# SPDX-License-Identifier: Apache-2.0
"""Estimates as sums over complete released batches, which change only with a release.

A generated history sends reports and releases some of them; between any two steps, an observer
makes the requests of `everything`. For each estimate in JSON, and each n in CSV and in the audit,
the test computes by brute force, from its own copy of the batches, the sum that the number must
equal: all batches of the requested documents, strata and days. The test also checks that the bytes
of every response, including Parquet, do not change without a release.
"""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_design.estimate import estimate
from frankly_protocol.documents import SurveyDocument
from frankly_server.app import create_app

from tests.frankly_server.web.site import Site, make_site
from tests.survey_files import REGION, SMOKES, habits

AGE = """\
  - id: age
    text: {en: "How old are you?"}
    choices: [{id: young, label: {en: Young}}, {id: old, label: {en: Old}}]
"""
HOME = habits(SMOKES, budget="2", strata=REGION + AGE)
CELLS = [(region, age) for region in ("north", "south") for age in ("young", "old")]
FIRST = date(2026, 6, 2)
QUERIES = [
    "", "?by=region", "?by=age", "?by=version", "?by=day", "?by=week", "?by=region,day", "?by=age,week",
    "?since=2026-06-03", "?until=2026-06-03", "?since=2026-06-03&until=2026-06-04", "?by=region&until=2026-06-03",
    "?method=kl", "?census=true", '?targets=%7B%22smokes%22%3A%7B%22no%22%3A%7B%22no%22%3A1%7D%7D%7D',
]  # fmt: skip

Tally = Counter[int]


@dataclass
class History:
    """Expected batches (day, cell, symbols), and pending reports by cell."""

    batches: list[tuple[str, tuple[str, str], Tally]] = field(default_factory=list)
    pending: dict[tuple[str, str], Tally] = field(default_factory=dict)

    def release(self, day: str, step: int) -> None:
        for cell in [cell for cell, tally in self.pending.items() if tally.total() >= step]:
            self.batches.append((day, cell, self.pending.pop(cell)))

    def inside(self, group: dict[str, str], since: str | None, until: str | None) -> Tally:
        """Return the sum over batches of these days with the cells and periods of a group."""
        batch_sum: Tally = Counter()
        for day, (region, age), tally in self.batches:
            year, week, _ = date.fromisoformat(day).isocalendar()
            batch_labels = {
                "region": region,
                "age": age,
                "day": day,
                "week": f"{year}-W{week:02d}",
                "version": "1",
            }
            batch_labels["days"] = group.get("days", "")
            if (since or "") <= day <= (until or "9") and all(
                batch_labels[name] == value for name, value in group.items()
            ):
                batch_sum += tally
        return batch_sum


@pytest.fixture
def place(tmp_path: Path, sqlite_url: str) -> Iterator[Site]:
    served_site = make_site(tmp_path, sqlite_url, HOME)
    often = served_site.settings.model_copy(update={"key_rate_per_s": 1e6})
    yield replace(
        served_site, client=create_app(often, services=served_site.services).test_client()
    )
    served_site.services.close()


def everything(site: Site) -> dict[str, bytes]:
    """Return every response about reports, by URL."""
    answers = {f"json {query}": site.estimates(query) for query in QUERIES}
    answers |= {
        f"csv {query}": site.estimates(query + ("&" if query else "?") + "format=csv")
        for query in QUERIES
    }
    answers["parquet"] = site.estimates("?format=parquet")
    answers["audit"] = site.client.get(f"/v1/surveys/{site.survey}/audit")
    assert {
        name: answer.status_code for name, answer in answers.items() if answer.status_code != 200
    } == {}
    return {name: answer.data for name, answer in answers.items()} | {
        f"tag {query}": site.estimates(query).headers["ETag"].encode() for query in QUERIES
    }


def check(site: Site, history: History, answers: dict[str, bytes]) -> int:
    """Compare responses with sums over the test's batches; return the number of comparisons."""
    with site.services.database.reading("look") as tx:
        (row,) = tx.documents.versions(site.survey)
        document = SurveyDocument.from_envelope(row.envelope)
        block = document.blocks[0]
    numbers = 0
    for name, data in answers.items():
        if not name.startswith("json"):
            continue
        answer = json.loads(data)
        assert answer["n"] == sum(tally.total() for *_, tally in history.batches)
        assert answer["inputs"]["documents"] == [
            {"digest": site.digest, "release": len({day for day, *_ in history.batches})}
        ]
        for question_result in answer["questions"]:
            tally = history.inside(question_result["by"] or {}, answer["since"], answer["until"])
            assert question_result["n"] == tally.total(), (name, question_result["by"])
            if tally.total() < document.min_reports:
                assert (question_result["status"], question_result["rows"]) == ("insufficient", [])
                continue
            shares = estimate(
                block.numbered_mechanism,
                [tally[y] for y in range(2)],
                design_prior=block.design_prior,
            ).unbiased
            assert question_result["rows"][0]["estimate"] == pytest.approx(shares[0], abs=1e-12)
            numbers += 1
        lines = list(csv.DictReader(io.StringIO(answers[f"csv{name[4:]}"].decode())))
        assert [int(line["n"]) for line in lines] == [
            question_result["n"]
            for question_result in answer["questions"]
            for _ in question_result["rows"] or [None]
        ]
    (audited,) = json.loads(answers["audit"])["documents"]
    assert audited["n"] == sum(tally.total() for *_, tally in history.batches)
    return numbers


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.full_only) for seed in (1, 2))]
)
def test_every_response_is_a_sum_of_released_batches(place: Site, seed: int, full: bool) -> None:
    rng, history, number, numbers = Random(seed), History(), 0, 0
    step, answers_before = 10, everything(place)
    for day in range(12 if full else 5):
        at = (FIRST + timedelta(days=day)).isoformat()
        for _ in range(rng.randrange(1, 4)):
            for _ in range(rng.choice([1, 1, 9, 10, 25])):
                number += 1
                region, age = rng.choice(CELLS[: rng.randrange(1, 5)])
                symbol = rng.randrange(2)
                sent = place.report(number, y=[symbol], strata={"region": region, "age": age})
                assert place.send(sent).status_code == 201
                history.pending.setdefault((region, age), Counter())[symbol] += 1
            # During intake, responses have the same bytes as after the last release.
            assert everything(place) == answers_before
        with place.services.database.transaction("release") as tx:
            n = tx.releases.release(
                place.survey, place.digest, step, f"{at}T00:00:00Z", is_over=lambda: False
            )
        before = len(history.batches)
        history.release(at, step)
        assert n == sum(tally.total() for *_, tally in history.batches[before:])
        answers_before = everything(place)
        numbers += check(place, history, answers_before)
    assert numbers > 10


def test_a_single_report_changes_no_response(place: Site) -> None:
    """If reports were counted immediately, one or two requests, or polling, would reveal a single report."""
    north = {"region": "north", "age": "young"}
    sent: list[Any] = [place.report(i, y=[i % 2], strata=north) for i in range(63)]
    sent.append(place.report(99, y=[1], strata={"region": "south", "age": "old"}))
    for report_to_send in sent:
        assert place.send(report_to_send).status_code == 201
    place.services.releasing.release()
    answer = place.estimates("").json
    assert answer["n"] == 63
    assert b"south" not in json.dumps(answer["inputs"]).encode()
    by_region = place.estimates("?by=region").json["questions"]
    assert [(q["by"]["region"], q["n"]) for q in by_region] == [("north", 63), ("south", 0)]
