# SPDX-License-Identifier: Apache-2.0
"""Estimates by day, week or month of release, for selected days, and by public question."""

from collections import Counter
from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from frankly_analyst.formats import lines
from frankly_design.estimate import SetCounts, estimate
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism, UnaryMechanism
from frankly_server.analysis import Analysis, encode
from frankly_server.store import Database

from tests.frankly_protocol.samples import ldp_block, question, survey
from tests.frankly_server.samples import SURVEY, put, released, row
from tests.frankly_server.store.counted import D, block, dense, number

FIRST = date(2026, 12, 24)  # days around New Year, where ISO and calendar years differ
REGIONS = ("north", "south")
Sent = list[tuple[str, str, tuple[Any, ...]]]
"""(day, region, symbols) of every report, which only the test knows."""


def _collect(
    database: Database, days: int = 24, a_day: int = 30
) -> tuple[SurveyDocument, list[Mechanism], Sent]:
    rng = Random(11)
    drawn: list[Any] = [
        dense(3, 4, rng),
        UnaryMechanism(48, 4, D // 2, D // 8),
        UnaryMechanism(48, 12, D // 2, D // 8),
    ]
    blocks = [block(f"b{i}", mechanism) for i, mechanism in enumerate(drawn)]
    document = put(database, replace(survey(*blocks), strata=(question("region", *REGIONS),)))
    sent: Sent = []
    for number_ in range(days):
        day = (FIRST + timedelta(days=number_)).isoformat()
        fresh = []
        for _ in range(a_day):
            region = rng.choice(REGIONS)
            symbols = tuple(
                m.symbol_json(m.sample(rng.randrange(m.answers), rng.getrandbits)) for m in drawn
            )
            fresh.append(
                replace(row(*symbols, document=document.digest), strata=f'{{"region":"{region}"}}')
            )
            sent.append((day, region, symbols))
        released(database, document, fresh, day)
    return document, drawn, sent


def _alone(mechanism: Mechanism, prior: tuple[int, ...], symbols: list[Any]) -> Any:
    """Return the estimate from these symbols of one block, as counted by the test."""
    if isinstance(mechanism, UnaryMechanism):
        return estimate(
            mechanism, SetCounts.of_symbols(mechanism.answers, Counter(int(s, 16) for s in symbols))
        )
    counts = Counter(number(mechanism, s) for s in symbols)
    return estimate(mechanism, [counts[y] for y in range(mechanism.reports)], design_prior=prior)


def _week(day: str) -> str:
    return date.fromisoformat(day).strftime("%G-W%V")


LABELS = {
    "day": lambda day, _: {"day": day},
    "week": lambda day, _: {"week": _week(day)},
    "month": lambda day, _: {"month": day[:7]},
    "region,week": lambda day, region: {"region": region, "week": _week(day)},
    "month,region": lambda day, region: {"region": region, "month": day[:7]},
}


@pytest.mark.parametrize("by", LABELS)
def test_periods_are_estimated_from_their_own_reports(sqlite: Database, by: str) -> None:
    document, drawn, sent = _collect(sqlite)
    result = Analysis(sqlite).estimates(SURVEY, by=by)
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Any, ...]]] = {}
    for day, region, symbols_of_report in sent:
        groups.setdefault(tuple(LABELS[by](day, region).items()), []).append(symbols_of_report)
    by_group = {(q["id"], tuple(sorted(q["by"].items()))): q for q in result["questions"]}
    assert len(by_group) == 3 * len(groups)
    assert result["n"] == len(sent)
    estimated_count = 0
    for label, symbols in groups.items():
        for b, mechanism in enumerate(drawn):
            question_result = by_group[document.blocks[b].questions[0].id, tuple(sorted(label))]
            assert question_result["n"] == len(symbols)
            if len(symbols) < document.min_reports:
                assert (
                    question_result["status"],
                    question_result["rows"],
                    question_result["needed"],
                ) == ("insufficient", [], document.min_reports)
                continue
            estimated_count += 1
            expected = _alone(
                mechanism,
                document.blocks[b].design_prior,
                [symbol_list[b] for symbol_list in symbols],
            )
            assert [r["estimate"] for r in question_result["rows"]] == pytest.approx(
                expected.unbiased, abs=1e-12
            )
            assert [r["se"] for r in question_result["rows"]] == pytest.approx(
                expected.se, abs=1e-12
            )
            assert {r["by"] for r in question_result["rows"]} == {
                " ".join(f"{k}={v}" for k, v in label)
            }
            assert {r["n"] for r in question_result["rows"]} == {len(symbols)}
    assert estimated_count >= 3 or by == "day"  # thirty reports a day are too few


def test_periods_come_in_order(sqlite: Database) -> None:
    _collect(sqlite, a_day=3)
    for by, first in (
        ("week", ["2026-W52", "2026-W53", "2027-W01"]),
        ("month", ["2026-12", "2027-01"]),
    ):
        question_result = Analysis(sqlite).estimates(SURVEY, by=by)["questions"]
        assert [q["by"][by] for q in question_result if q["id"] == question_result[0]["id"]][
            : len(first)
        ] == first


@pytest.mark.parametrize(("since", "until", "label"), [
    ("2026-12-26", "2027-01-02", "2026-12-26/2027-01-02"),
    ("2026-12-30", "2026-12-30", "2026-12-30/2026-12-30"),
    (None, "2026-12-28", "../2026-12-28"),
    ("2027-01-10", None, "2027-01-10/.."),
])  # fmt: skip
def test_some_days_are_estimated_from_their_own_reports(
    sqlite: Database, since: str | None, until: str | None, label: str
) -> None:
    document, drawn, sent = _collect(sqlite)
    inside = [s for day, _, s in sent if (since or "") <= day <= (until or "9")]
    result = Analysis(sqlite).estimates(SURVEY, since=since, until=until)
    assert [q["by"] for q in result["questions"]] == [{"days": label}] * 3
    assert {q["n"] for q in result["questions"]} == {len(inside)}
    for b, (mechanism, question_result) in enumerate(zip(drawn, result["questions"], strict=True)):
        if len(inside) < document.min_reports:
            assert (question_result["status"], question_result["rows"]) == ("insufficient", [])
            continue
        expected = _alone(
            mechanism,
            document.blocks[b].design_prior,
            [symbols_of_report[b] for symbols_of_report in inside],
        )
        assert [r["estimate"] for r in question_result["rows"]] == pytest.approx(
            expected.unbiased, abs=1e-12
        )
    weeks = {_week(day) for day, _, _ in sent if (since or "") <= day <= (until or "9")}
    apart = Analysis(sqlite).estimates(SURVEY, by="week", since=since, until=until)["questions"]
    assert {q["by"]["week"] for q in apart} == weeks


@pytest.mark.parametrize(
    "options",
    [{"by": "week"}, {"by": "month,region", "until": "2027-01-03"}, {"since": "2026-12-30"}],
)
def test_periods_replay_byte_for_byte(sqlite: Database, options: dict[str, Any]) -> None:
    _collect(sqlite)
    result = Analysis(sqlite).estimates(SURVEY, **options)
    assert Analysis(sqlite).replay(result) == encode(result)
    assert len(lines(result)) == sum(max(1, len(q["rows"])) for q in result["questions"])


def test_versions_are_pooled_within_a_period(sqlite: Database) -> None:
    first = put(sqlite, survey(ldp_block("affair", "1")))
    second = put(sqlite, survey(ldp_block("affair", "0.5"), version=2, prev=first.digest))
    for document, day, counts in (
        (first, "2026-06-01", (70, 30)), (second, "2026-06-01", (40, 60)), (second, "2026-06-02", (50, 50)),
    ):  # fmt: skip
        fresh = [row(y, document=document.digest) for y, n in enumerate(counts) for _ in range(n)]
        released(sqlite, document, fresh, day)
    day_one, day_two = (q for q in Analysis(sqlite).estimates(SURVEY, by="day")["questions"])
    assert (day_one["n"], day_two["n"]) == (200, 100)
    assert day_one["documents"] == [first.digest, second.digest]
    assert "pooled" in day_one["rows"][0]["flags"]
    assert day_two["documents"] == [second.digest]
    expected = estimate(
        second.blocks[0].numbered_mechanism, [50, 50], design_prior=second.blocks[0].design_prior
    )
    assert day_two["rows"][0]["estimate"] == pytest.approx(expected.unbiased[0])


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "two periods": ({"by": "day,week"}, "field_type", "by"),
    "two questions": ({"by": "region,version"}, "field_type", "by"),
    "nothing after a comma": ({"by": "week,"}, "field_type", "by"),
    "an hour": ({"by": "hour"}, "strata_invalid", "by"),
    "a time": ({"since": "2026-06-01T10:00:00Z"}, "field_type", "since"),
    "no day of the calendar": ({"until": "2026-02-30"}, "field_type", "until"),
    "a short date": ({"since": "20260601"}, "field_type", "since"),
    "a number": ({"since": 20260601}, "field_type", "since"),
    "the last before the first": (
        {"since": "2026-06-02", "until": "2026-06-01"},
        "field_type",
        "until",
    ),
    "several blocks together": (
        {"targets": ["b0-0", "b1-0"], "by": "day"},
        "unsupported",
        "targets",
    ),
    "several blocks of some days": (
        {"targets": ["b0-0", "b1-0"], "since": "2026-06-01"},
        "unsupported",
        "targets",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_invalid_periods(sqlite: Database, name: str) -> None:
    _collect(sqlite, days=2, a_day=2)
    question_result, code, field = BAD[name]
    with pytest.raises(InvalidInput) as refused:
        Analysis(sqlite).estimates(SURVEY, **question_result)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert ("impossible" in refused.value.detail) == (name == "no day of the calendar")


def test_more_tables_than_a_response_may_have_are_refused(sqlite: Database) -> None:
    document = put(sqlite, survey(ldp_block("affair", "1")))
    for day in range(1001):
        released(
            sqlite,
            document,
            [row(0, document=document.digest)],
            (FIRST + timedelta(days=day)).isoformat(),
        )
    with pytest.raises(InvalidInput, match="longer periods") as refused:
        Analysis(sqlite).estimates(SURVEY, by="day")
    assert refused.value.code == "unsupported"
    assert len(Analysis(sqlite).estimates(SURVEY, by="month")["questions"]) == 34
