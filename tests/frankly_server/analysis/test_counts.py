# SPDX-License-Identifier: Apache-2.0
"""Counts for analysts: equal to the raw reports, and sufficient to compute the server's estimates by hand."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pytest
from frankly_analyst import Counts, InvalidRequest, Stratum
from frankly_protocol.audit import Claim, stated_ceiling
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.canonical import dumps
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import DenseMechanism, SubsetMechanism, UnaryMechanism
from frankly_server.analysis import Analysis, Publishing
from frankly_server.store import Database, ReportRow

from tests.frankly_protocol.every_kind import UNIT, block, form_block
from tests.frankly_protocol.mechanisms.test_agreement import EQUAL
from tests.frankly_protocol.samples import ldp_block, question, survey
from tests.frankly_server.samples import SURVEY, put, released, row
from tests.migrated import migrated
from tests.refusals import refusal

REGIONS, SEXES = ("north", "south", "west"), ("f", "m")
PUBLIC = (question("region", *REGIONS), question("sex", *SEXES))
REPORTS = 900
FULL = DenseMechanism(
    48,
    tuple(
        tuple(w * UNIT for w in r)
        for r in ((9, 4, 1, 1, 1), (2, 10, 1, 2, 1), (1, 2, 9, 2, 2), (1, 1, 3, 8, 3))
    ),
)
"""Of full rank, unlike that of `every_kind`, whose joint answers cannot all be estimated."""


def _large(name: str, mechanism: UnaryMechanism | SubsetMechanism, answers: int = 12) -> Block:
    """Return a block of large sets, which are counted by pairs of positions."""
    return replace(
        block("unary", "ldp"),
        id=name,
        questions=(question(name, *(f"c{i}" for i in range(answers))),),
        mechanism=mechanism,
        promises=(Promise(Claim("ldp", (10**6, 1))),),
        design_prior=(1,) * answers,
        ceiling=stated_ceiling(mechanism),
    )


def _full() -> Block:
    return replace(
        block("dense", "ldp", name="full"),
        mechanism=FULL,
        promises=(Promise(Claim("ldp", (10**6, 1))),),
        ceiling=stated_ceiling(FULL),
    )


BLOCKS = (
    block("dense", "ldp", name="deficient"),
    _full(),
    block("unary", "ldp"),
    block("subset", "ldp"),
    block("product", "ldp"),
    ldp_block("plain"),
    form_block(),
    form_block(EQUAL, "equal"),
    _large("many-bits", UnaryMechanism(48, 12, 8 * UNIT, 3 * UNIT)),
    _large("many-members", SubsetMechanism(48, 12, 3, 11 * UNIT)),
)
PAIRS = [
    ("full-a", "full-b"),
    ("full-a", "plain"),
    ("product-ldp-b", "plain"),
    ("plain", "full-b", "full-a"),
    ("full-b", "product-ldp-a"),
    ("deficient-a", "plain"),
    ("equal-0", "equal-1"),
    ("equal-2", "equal-1"),
    ("form-0", "form-2"),
    ("plain", "form-1"),
]


@dataclass(frozen=True)
class World:
    """Released reports on a document with a block of every kind."""

    database: Database
    document: SurveyDocument
    rows: list[ReportRow]

    @property
    def analysis(self) -> Analysis:
        return Analysis(self.database)

    def counts(self, **fields: Any) -> Counts:
        return Counts.from_json(json.loads(json.dumps(self.analysis.counts(SURVEY, **fields))))


def _rows(document: SurveyDocument, n: int, rng: Random) -> list[ReportRow]:
    rows = []
    for _ in range(n):
        symbols = []
        for one in document.blocks:
            mechanism: Any = one.mechanism
            sizes = [len(q.choices) for q in one.questions]
            truth = [rng.randrange(size) for size in sizes]
            number = reduce(
                lambda x, pair: x * pair[0] + pair[1], zip(sizes, truth, strict=True), 0
            )
            answer = tuple(truth) if mechanism.kind == "agreement" else number
            symbols.append(mechanism.symbol_json(mechanism.sample(answer, rng.getrandbits)))
        # Few people live in the west, and few of them are men.
        region = rng.choices(REGIONS, (5, 4, 1))[0]
        sex = rng.choices(SEXES, (4, 1) if region == "west" else (1, 1))[0]
        stratum = dumps({"region": region, "sex": sex}).decode()
        rows.append(replace(row(*symbols, document=document.digest), strata=stratum))
    return rows


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterable[World]:
    database = migrated(f"sqlite:///{tmp_path_factory.mktemp('counts') / 'frankly.db'}")
    document = put(
        database, replace(survey(*BLOCKS), strata=PUBLIC, min_reports=40, release_step=2)
    )
    rows = _rows(document, REPORTS, Random(7))
    released(database, document, rows)
    yield World(database, document, rows)
    database.close()


def _of(world: World, **by: str) -> list[ReportRow]:
    """Return the raw reports with these public answers."""
    return [r for r in world.rows if by.items() <= json.loads(r.strata).items()]


def _agrees(question_result: Mapping[str, Any], shares: Any, covariance: Any) -> None:
    """Compare with an API result to within 1e-12."""
    estimates = [r["estimate"] for r in question_result["rows"]]
    np.testing.assert_allclose(_floats(shares), _floats(estimates), rtol=0, atol=1e-12)
    expected = _floats(question_result["covariance"])
    np.testing.assert_allclose(_floats(covariance), expected, rtol=1e-12, atol=1e-12)


def _floats(values: Any) -> np.ndarray:
    """Return the values as an array; None, of a share that cannot be estimated, is NaN."""
    return np.array(values, dtype=float)


ONE_WAY = [q.id for b in BLOCKS for q in b.questions]


@pytest.mark.parametrize("by", [None, "region", "sex"])
def test_one_way_estimates_are_computed_by_hand_from_counts(world: World, by: str | None) -> None:
    results = world.analysis.estimates(SURVEY, by=by, method="clt")["questions"]
    counts = world.counts(by=by)
    compared = Counter[str]()
    for result in results:
        name, group = result["id"], result["by"] or {}
        part = counts.part(name)
        if result["status"] == "insufficient":
            with pytest.raises(InvalidRequest):
                part.stratum(**group)
            continue
        stratum = part.stratum(**group)
        assert stratum.n == result["n"]
        _agrees(result, part.shares(stratum, name), part.covariance(stratum, name))
        compared[name] += 1
    assert set(compared) == set(ONE_WAY)


@pytest.mark.parametrize("by", [None, "region"])
@pytest.mark.parametrize("questions", PAIRS, ids=" ".join)
def test_joint_tables_are_computed_by_hand_from_counts_of_pairs(
    world: World, questions: tuple[str, ...], by: str | None
) -> None:
    (part,) = world.counts(questions=list(questions), by=by)
    compared = 0
    fields = {"targets": list(questions), "by": by, "method": "clt"}
    for result in world.analysis.estimates(SURVEY, **fields)["questions"]:
        if result["status"] != "insufficient":
            stratum = part.stratum(**(result["by"] or {}))
            shares = part.shares(stratum, *questions)
            _agrees(result, shares, part.covariance(stratum, *questions))
            compared += 1
    assert compared >= (1 if by is None else 2)


def test_strata_of_several_questions_are_the_raw_reports(world: World) -> None:
    counts = world.counts(by=["region", "sex"])
    numbers = Counter(
        (json.loads(r.strata)["region"], json.loads(r.strata)["sex"]) for r in world.rows
    )
    shown = {group for group, n in numbers.items() if n >= 40}
    assert 0 < len(shown) < len(numbers)
    part = counts.part("plain")
    assert [tuple(s.by.values()) for s in part.strata] == [
        (region, sex) for region in REGIONS for sex in SEXES if (region, sex) in shown
    ]
    place = [b.id for b in world.document.blocks].index("plain")
    for stratum in part.strata:
        symbols = Counter(r.symbols[place] for r in _of(world, **stratum.by))
        assert stratum.counts == (symbols[0], symbols[1])
        assert stratum.n == sum(symbols.values())
    few = [n for group, n in numbers.items() if group not in shown]
    assert (part.withheld_strata, part.withheld_reports) == (len(few), sum(few))
    assert part.n == REPORTS == sum(s.n for s in part.strata) + part.withheld_reports
    total = world.counts().part("plain").strata[0]
    assert reduce(Stratum.__add__, part.strata).counts <= total.counts


def test_counts_of_sets_are_the_raw_sets(world: World) -> None:
    for name in ("unary-ldp-a", "many-bits", "many-members"):
        part = world.counts(by="sex").part(name)
        place = [b.id for b in world.document.blocks].index(part.block)
        for stratum in part.strata:
            masks = [int(str(r.symbols[place]), 16) for r in _of(world, **stratum.by)]
            size = len(stratum.pairs)
            for x in range(size):
                for z in range(size):
                    assert stratum.pairs[x][z] == sum(m >> x & m >> z & 1 for m in masks)
            expected = sorted(Counter(masks).items()) if size <= 10 else None
            assert stratum.masks == (None if expected is None else tuple(expected))


@pytest.mark.parametrize("questions", [(), ("full-a", "plain")])
def test_the_rest_are_the_reports_in_no_stratum(world: World, questions: tuple[str, ...]) -> None:
    apart = world.counts(by="region,sex", questions=list(questions))
    together = world.counts(questions=list(questions))
    for part, whole in zip(apart, together, strict=True):
        (every,) = whole.strata
        assert whole.rest is None
        assert part.rest is not None
        assert part.rest.n == part.withheld_reports > 0
        assert reduce(Stratum.__add__, (*part.strata, part.rest)) == replace(every, by={})


@pytest.mark.parametrize("questions", [*((name,) for name in ONE_WAY), *PAIRS], ids=" ".join)
def test_means_and_errors_of_a_score_table_are_the_estimates(
    world: World, questions: tuple[str, ...]
) -> None:
    counts = world.counts(by="region,sex", questions=list(questions))
    part = counts.part(*questions)
    unknown = all(row is None for name in questions for row in part.scores(name))
    if questions[0].startswith("many") or unknown:
        error = refusal(InvalidRequest, counts.table, *questions)
        assert (error.code, error.field) == ("unsupported", "questions")
        return
    table = counts.table(*questions)
    fields = (
        {"targets": list(questions), "method": "clt"} if len(questions) > 1 else {"method": "clt"}
    )
    results = world.analysis.estimates(SURVEY, **fields)["questions"]
    (result,) = [r for r in results if r["id"] == " × ".join(questions) or len(questions) > 1]
    assert table.n == result["n"]
    known = [row for row in result["rows"] if row["estimate"] is not None]
    scores = [c for c in table.columns if c.role == "score"]
    cells = scores[len(scores) - len(known) :]
    assert [c.mean for c in cells] == pytest.approx([r["estimate"] for r in known], abs=1e-12)
    assert [c.se for c in cells] == pytest.approx([r["se"] for r in known], rel=1e-9, abs=1e-12)


def test_decoder_and_law_are_inverse_to_each_other(world: World) -> None:
    """Σ_y decoder[x][y]·P(y | z) is 1 for x = z and 0 otherwise, also for joint symbols of products."""
    parts = [*world.counts(), *(p for pair in PAIRS for p in world.counts(questions=list(pair)))]
    tables = [part for part in parts if part.kind == "table" and None not in part.decoder]
    assert {part.id for part in parts if part.kind == "table" and None in part.decoder} == {
        "deficient-a × deficient-b",
        "deficient-a × deficient-b × plain",
        "form-2",
    }
    for part in tables:
        identity = np.array(part.decoder) @ np.array(part.law).T
        np.testing.assert_allclose(identity, np.eye(len(part.answers)), atol=1e-12)
        assert {sum(weights) for weights in part.weights} == {part.denominator}
        for factor in part.factors:
            assert all(sum(row) == factor.denominator for row in factor.weights)


REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "an unknown public question": ({"by": "age"}, "strata_invalid", "by", "region, sex, day"),
    "one of them unknown": ({"by": "region,age"}, "strata_invalid", "by", "region, sex, day"),
    "a private question": ({"by": "plain"}, "strata_invalid", "by", "region, sex, day"),
    "versions": ({"by": "version"}, "field_type", "by", "every part names its version"),
    "a name twice": ({"by": "sex,sex"}, "field_type", "by", "different ids"),
    "an empty name": ({"by": "sex,"}, "field_type", "by", "different ids"),
    "a number": ({"by": 3}, "field_type", "by", "different ids"),
    "two periods": ({"by": "day,week"}, "field_type", "by", "at most one"),
    "an unknown question": ({"questions": "x"}, "targets_invalid", "questions", "see its document"),
    "a public one": ({"questions": "sex"}, "targets_invalid", "questions", "see its document"),
    "a question twice": ({"questions": ["plain"] * 2}, "targets_invalid", "questions", "different"),
    "three blocks": (
        {"questions": "plain,full-a,product-ldp-a"},
        "unsupported",
        "questions",
        "do not count these questions together",
    ),
    "a set with a table": ({"questions": "plain,unary-ldp-a"}, "unsupported", "questions", "targets"),
    "parts never drawn together": (
        {"questions": "form-1,form-2"},
        "unsupported",
        "questions",
        "do not count these questions together",
    ),
    "two blocks by day": (
        {"questions": "plain,full-a", "by": "day"},
        "unsupported",
        "questions",
        "not counted by day",
    ),
    "two blocks since a day": (
        {"questions": "plain,full-a", "since": "2026-06-01"},
        "unsupported",
        "questions",
        "not counted by day",
    ),
    "no day": ({"since": "1 June"}, "field_type", "since", "2026-05-31"),
    "days in reverse": ({"since": "2026-06-02", "until": "2026-06-01"}, "field_type", "until", ""),
    "an unknown field": ({"level": 0.9}, "field_unknown", "level", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_field_and_the_remedy(world: World, name: str) -> None:
    fields, code, field, detail = REFUSED[name]
    error = refusal(InvalidInput, world.analysis.counts, SURVEY, **fields)
    assert (error.code, error.field) == (code, field)
    assert detail in str(error)


def test_a_survey_must_exist(world: World) -> None:
    assert refusal(InvalidInput, world.analysis.counts, "0" * 32).code == "survey_unknown"


def test_a_part_that_is_missing_is_explained(world: World) -> None:
    counts = world.counts(questions="plain")
    for wrong in (
        lambda: counts.part("full-a"),
        lambda: counts.part("plain").stratum(region="east"),
        lambda: counts.part("plain").scores("full-a"),
        lambda: counts.part("plain").scores("plain", "plain"),
    ):
        with pytest.raises(InvalidRequest):
            wrong()


def test_too_many_strata_or_counts_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.analysis.counts(SURVEY, by="region,sex", questions="plain")["parts"]
    monkeypatch.setattr("frankly_server.analysis.counts.MAX_COUNTS", 9)
    with pytest.raises(InvalidInput, match="name fewer public questions"):
        world.analysis.counts(SURVEY, by="region,sex", questions="plain")
    monkeypatch.undo()
    monkeypatch.setattr("frankly_server.analysis.counts.MAX_STRATA", 2)
    with pytest.raises(InvalidInput, match="name fewer public questions"):
        world.analysis.counts(SURVEY, by="region,sex", questions="plain")


FIRST, SECOND = "2026-05-30", "2026-06-02"


def test_periods_versions_and_reports_without_stratum(database: Database) -> None:
    """Two versions are released on two days; only the second asks the public question."""
    old = replace(survey(ldp_block("affair")), min_reports=20, release_step=2)
    put(database, old)
    new = replace(
        survey(ldp_block("affair", "2"), version=2, prev=old.digest),
        strata=PUBLIC[:1],
        min_reports=30,
        release_step=2,
    )
    put(database, new)
    north, south = (dumps({"region": region}).decode() for region in ("north", "south"))
    sent = [(old, "", FIRST, 25), (new, north, FIRST, 30), (new, north, SECOND, 31), (new, south, SECOND, 29),
            (new, "", SECOND, 4)]  # fmt: skip
    for document, stratum, day, n in sent:
        rows = [replace(row(i % 3 % 2, document=document.digest), strata=stratum) for i in range(n)]
        released(database, document, rows, day)

    def shown(**fields: Any) -> list[tuple[int, dict[str, str], int]]:
        counts = Counts.from_json(Analysis(database).counts(SURVEY, **fields))
        assert counts.n == 119
        for part in counts:
            assert all(
                sum(s.counts) == s.n and s.counts[1] == s.n // 3 + (s.n % 3 == 2)
                for s in part.strata[:1]
            )
            assert part.n == sum(s.n for s in part.strata) + part.withheld_reports + part.without_stratum  # fmt: skip
        return [(part.version, dict(s.by), s.n) for part in counts for s in part.strata]

    assert shown() == [(1, {}, 25), (2, {}, 94)]
    assert shown(by="region") == [(2, {"region": "north"}, 61)]
    assert shown(by="day") == [
        (1, {"day": FIRST}, 25),
        (2, {"day": FIRST}, 30),
        (2, {"day": SECOND}, 64),
    ]
    assert shown(by="region,month") == [
        (2, {"region": "north", "month": "2026-05"}, 30),
        (2, {"region": "north", "month": "2026-06"}, 31),
    ]
    assert shown(since="2026-06-01") == [(2, {}, 64)]
    assert shown(until="2026-05-31", by="region") == [(2, {"region": "north"}, 30)]
    by_region = Analysis(database).counts(SURVEY, by="region")["parts"]
    assert [(p["withheld"], p["without_stratum"], p["rest"]) for p in by_region] == [
        ({"strata": 0, "reports": 0}, 25, {"n": 25, "counts": [17, 8]}),
        ({"strata": 1, "reports": 29}, 4, {"n": 33, "counts": [22, 11]}),
    ]


def test_the_rest_is_withheld_like_the_total(sqlite: Database) -> None:
    made = survey(ldp_block("affair"))
    document = put(sqlite, replace(made, strata=PUBLIC[:1], min_reports=20, release_step=2))
    for n in (18, 2):
        stratum = dumps({"region": "north"}).decode() if n > 2 else ""
        rows = [replace(row(0, document=document.digest), strata=stratum) for _ in range(n)]
        released(sqlite, document, rows)
        (part,) = Analysis(sqlite).counts(SURVEY, by="region")["parts"]
        assert part["strata"] == []
        assert part["rest"] == ({"n": 20, "counts": [20, 0]} if n == 2 else None)


def test_the_difference_of_two_results_is_a_sum_of_batches(world: World) -> None:
    """As spec 8.11 states, subtraction reveals a withheld stratum, but never a part of a batch."""
    by_both = world.counts(by="region,sex", questions="plain").part("plain")
    north = world.counts(by="region", questions="plain").part("plain").stratum(region="west")
    women = by_both.stratum(region="west", sex="f")
    men = _of(world, region="west", sex="m")
    assert 0 < len(men) < by_both.minimum
    place = [b.id for b in world.document.blocks].index("plain")
    expected = Counter(r.symbols[place] for r in men)
    assert [a - b for a, b in zip(north.counts, women.counts, strict=True)] == [
        expected[0],
        expected[1],
    ]


def test_text_csv_and_pandas_show_every_stratum(world: World) -> None:
    counts = world.counts(by="region,sex")
    text, page = str(counts), counts._repr_html_()
    part = counts.part("plain")
    assert "n" in text.splitlines()[1]
    for stratum in part.strata:
        assert stratum.group in text
        assert stratum.group in page
    assert f"of fewer than {part.minimum} reports withheld" in text
    frame = counts.to_pandas()
    assert list(frame.columns) == [
        "document",
        "version",
        "questions",
        "region",
        "sex",
        "n",
        "symbol",
        "count",
    ]
    lines = counts.to_csv().splitlines()
    assert lines[0] == ",".join(frame.columns)
    assert len(lines) == len(frame) + 1
    plain = frame[(frame.questions == "plain") & (frame.region == "north") & (frame.sex == "f")]
    assert tuple(plain["count"]) == part.stratum(region="north", sex="f").counts


def test_blocks_without_stored_counts_are_named(sqlite: Database) -> None:
    """A set of 65 answers has more pairs than releases count."""
    mechanism = UnaryMechanism(48, 65, 8 * UNIT, 3 * UNIT)
    wide = _large("wide", mechanism, 65)
    document = put(sqlite, replace(survey(ldp_block(), wide), min_reports=2, release_step=2))
    symbols = (0, "0" * 17)
    rows = [replace(row(document=document.digest), symbols=symbols) for _ in range(3)]
    released(sqlite, document, rows)
    body = Analysis(sqlite).counts(SURVEY)
    assert ([part["block"] for part in body["parts"]], body["left_out"]) == (["affair"], ["wide"])
    with pytest.raises(InvalidInput, match="releases do not count"):
        Analysis(sqlite).counts(SURVEY, questions="wide")
    Publishing(sqlite).refresh()
    with sqlite.engine.connect() as connection:
        shown = connection.exec_driver_sql("SELECT DISTINCT question FROM v_estimates").scalars()
        assert list(shown) == ["affair"]
