# SPDX-License-Identifier: Apache-2.0
"""Function `report_level`, compared with the true leakage in random small worlds
(docs/maths/whole_report.md)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from frankly_protocol.audit import NOTIONS, Claim, ReportLevel, report, report_level, total_charge
from frankly_protocol.audit.data import Joint
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected
from frankly_protocol.mechanisms import BLOCK_KINDS, DenseMechanism

from tests.frankly_protocol.audit.leakage import Leakage, Ratio, Rows
from tests.frankly_protocol.audit.worlds import Case, Shape, case
from tests.frankly_protocol.samples import question, survey

CACHED = 120
"""Cases that several tests share."""
DELTA_CAPS = (Fraction(0), Fraction(1, 8), Fraction(3))


@dataclass(frozen=True)
class Finding:
    """A finite stated bound, and the true value."""

    seed: int
    bound_name: str
    stated: Fraction
    true: Ratio

    @property
    def is_violated(self) -> bool:
        """True if the true value exceeds the bound."""
        return self.true is None or self.true > self.stated

    @property
    def is_about_a_secret(self) -> bool:
        """True for levels, odds and posteriors of a secret; False for those of answers or strata."""
        return (
            self.bound_name.endswith(("lift level", "odds level", " odds", "posterior"))
            or self.bound_name == "odds"
        )

    @property
    def is_tight(self) -> bool:
        """True if the bound is nontrivial and attained."""
        return self.stated not in (0, 1) and self.true == self.stated


def against(case: Case, level: ReportLevel) -> Iterator[Finding]:
    """Compare every finite bound with the largest true value over worlds and public answers."""
    leakages = [leakage_of(case.seed, w) for w in range(len(case.worlds))]
    answers = [leakages[0].answers]
    yield from bound(case, "answers", level.answers.odds, answers, "odds", level.answers.delta)
    yield from bound(
        case, "answers' level", level.answers.level, answers, "lift", level.answers.delta
    )
    yield from bound(case, "cost", level.cost.odds, answers, "odds", level.cost.delta)
    yield from bound(case, "ceiling", level.ceiling, answers, "odds")
    for r in sorted({source.secret for source in case.sources if source.secret is not None}):
        name = case.shape.names[r]
        yield from _about_secret(case, leakages, r, name, level.secrets[name])
    dpv_sources = [source for source in case.sources if source.promise.claim.notion == "dpv"]
    for source, posterior in zip(dpv_sources, level.posteriors, strict=True):
        laws = [
            hypotheses
            for hypotheses in leakages[source.world].about(source.secret or 0)
            if posterior.sensitive in hypotheses[0]
        ]
        true = max(rows.posterior(values.index(posterior.sensitive)) for values, rows in laws)
        yield Finding(case.seed, "posterior", posterior.bound, true)


def _about_secret(
    case: Case, leakages: Sequence[Leakage], r: int, name: str, secret: report.SecretLevel
) -> Iterator[Finding]:
    secret_rows = [rows for leakage in leakages for _, rows in leakage.about(r)]
    block = _srlip_block(case.document, name, secret.counted)
    known_answer_rows = (
        secret_rows
        if block is None
        else [rows for leakage in leakages for _, rows in leakage.beside(r, block)]
    )
    strata = [leakage.strata(r) for leakage in leakages]
    yield from bound(
        case, f"{secret.unit} level", secret.level, secret_rows, secret.unit, secret.delta
    )
    yield from bound(case, "odds", secret.odds, known_answer_rows, "odds", secret.delta)
    yield from bound(case, "strata_lift", secret.strata_lift, strata, "lift")
    yield from bound(case, "strata_odds", secret.strata_odds, strata, "odds")


def bound(
    case: Case,
    bound_name: str,
    stated: Ratio,
    laws: Sequence[Rows],
    unit: str,
    delta: Fraction = Fraction(0),
) -> Iterator[Finding]:
    """Compare a finite bound with all laws of the report, or a stated δ with the needed δ."""
    if stated is None:
        return
    if delta:
        excesses = [
            rows.odds_excess(stated) if unit == "odds" else rows.lift_excess(stated)
            for rows in laws
        ]
        yield Finding(case.seed, f"delta of {bound_name}", delta, max(excesses))
    else:
        ratios = [rows.odds() if unit == "odds" else rows.lift() for rows in laws]
        yield Finding(case.seed, bound_name, stated, largest(ratios))


def largest(ratios: Sequence[Ratio]) -> Ratio:
    """Return the largest ratio, or None if one is infinite."""
    return None if None in ratios else max(ratio for ratio in ratios if ratio is not None)


def _srlip_block(document: SurveyDocument, name: str, counted: str | None) -> int | None:
    """Return the index of the counted block if it promises only srlip, which also holds given its answers."""
    for i, block in enumerate(document.blocks):
        if block.id == counted and {p.claim.notion for p in block.promises if p.secret == name} == {
            "srlip"
        }:
            return i
    return None


@cache
def leakage_of(seed: int, w: int) -> Leakage:
    """Return the leakage of a case in one of its worlds."""
    random_case = case_of(seed)
    return Leakage(
        random_case.shape,
        [block.mechanism for block in random_case.document.blocks],
        random_case.worlds[w],
    )


case_of = cache(case)


def level_of(document: SurveyDocument, seed: int) -> ReportLevel:
    """Return the level of the document, under one of several caps on δ."""
    return report_level(document, DELTA_CAPS[seed % len(DELTA_CAPS)])


@pytest.mark.slow
def test_no_report_leaks_more_than_its_level_states(full: bool) -> None:
    """--full tests 5,000 worlds. Every published table is true, and every level is the least possible."""
    counts: Counter[str] = Counter()
    for seed in range(5_000 if full else 300):
        random_case = case_of(seed)
        document = SurveyDocument.parse(random_case.document.payload())
        document.require_private()
        findings = list(against(random_case, level_of(document, seed)))
        assert not [finding for finding in findings if finding.is_violated]
        counts["strata" if document.strata else "no strata"] += 1
        counts.update(
            promise.claim.notion for block in document.blocks for promise in block.promises
        )
        counts.update(block.mechanism.kind for block in document.blocks)
        secrets = [finding for finding in findings if finding.is_about_a_secret]
        counts.update(
            {"bounds": len(secrets), "tight": sum(finding.is_tight for finding in secrets)}
        )
        if seed >= CACHED:
            leakage_of.cache_clear()
            case_of.cache_clear()
    # Many bounds must be tight, and every notion and kind must have occurred.
    assert counts["tight"] > counts["bounds"] / 10
    assert all(counts[name] > 5 for name in (*NOTIONS, *BLOCK_KINDS, "strata", "no strata"))


def test_the_cost_of_several_documents_bounds_their_joint_leakage(full: bool) -> None:
    """The blocks of one document are divided between two documents with the same public questions."""
    tried = 0
    for seed in range(3_000 if full else CACHED):
        document, shape = case_of(seed).document, case_of(seed).shape
        documents = [
            replace(document, blocks=blocks)
            for blocks in (document.blocks[:1], document.blocks[1:])
            if blocks
        ]
        charge = total_charge(level_of(half, seed).cost for half in documents)
        leakage = leakage_of(seed, 0)
        # The bound also holds for a reader who knows the answers to one block.
        places = [
            (None, ()),
            *((i, tuple(range(len(sizes)))) for i, sizes in enumerate(shape.questions)),
        ]
        secrets = [
            rows
            for r in range(len(shape.secrets))
            for place in places
            for _, rows in leakage.about(r, *place)
        ]
        for finding in bound(
            case_of(seed), "cost", charge.odds, [leakage.answers, *secrets], "odds", charge.delta
        ):
            assert not finding.is_violated, finding
            tried += len(documents) > 1
        if seed >= CACHED:
            leakage_of.cache_clear()
            case_of.cache_clear()
    assert tried > 20


def test_the_xor_of_an_answer_and_a_stratum_has_no_finite_level() -> None:
    """In the pooled table the answer is independent of the secret; given the stratum, the answer
    determines the secret."""
    document, leakage = xor((((25, 25), (25, 25)),))
    document.require_private()
    secret = document.report_level.secrets["s0"]
    assert [rows.odds() for _, rows in leakage.about(0)] == [None, None]
    assert (secret.level, secret.odds, secret.strata_lift, secret.strata_odds) == (
        None,
        None,
        None,
        None,
    )
    blocks_only: Any = SimpleNamespace(blocks=document.blocks, strata=())
    assert (
        report_level(blocks_only).secrets["s0"].odds == 1
    )  # the level that code ignoring the stratum would state
    with pytest.raises(DocumentRejected, match="no finite ratio"):
        xor((((25, 0), (0, 25)), ((0, 25), (25, 0))))[0].require_private()


def xor(tables: tuple[Joint, ...]) -> tuple[SurveyDocument, Leakage]:
    """Return a survey that sends x and promises 0 nats about x xor z, with its leakage."""
    mechanism = DenseMechanism(4, ((16, 0), (0, 16)))
    prior = Prior("s0", ("no", "yes"), tables, "true counts")
    promise = Promise.under(Claim("lip", (1, 1), prior.table), prior)
    block = Block(
        "b", (question("x", "0", "1"),), mechanism, (promise,), (1, 1), None, "made-up", None
    )
    document = replace(survey(), blocks=(block,), strata=(question("z", "0", "1"),))
    world: dict[tuple[tuple[int, ...], tuple[int, ...], int], int] = {
        ((x ^ z,), (x,), z): 25 for x in (0, 1) for z in (0, 1)
    }
    return document, Leakage(Shape((2,), ((2,),), (2,), {}), [mechanism], world)


def _every_promise_counts(lines: Any, bounds: Any) -> Any:
    ratios = [bounds.get(i, line.odds) for i, line in enumerate(lines)]
    return report.product(ratios), sum((line.delta for line in lines), Fraction(0)), None


def _no_delta(lines: Any, bounds: Any, true: Any = report._least) -> Any:
    ratio, _, counted = true(lines, bounds)
    return ratio, Fraction(0), counted


def _least_of_all_priors(about: Any, bound_of: Any, has_strata: bool) -> Any:
    bounds = {
        i: [bound_of(p.claim) for p in promises if p.is_stratified or not has_strata]
        for i, promises in about.items()
    }
    return {
        i: min(usable)
        for i, ratios in bounds.items()
        if (usable := [bound for bound in ratios if bound is not None])
    }


FAULTS: list[tuple[str, Any, set[str]]] = [
    ("_secret", lambda *args, true=report._secret: true(*args[:3], False), {"odds", "lift level"}),
    ("odds_bound", report.lift_bound, {"odds"}),
    ("_least", _every_promise_counts, {"odds", "lift level"}),
    ("_least", _no_delta, {"odds", "lift level"}),
    ("_bounds", _least_of_all_priors, {"odds", "lift level"}),
    ("_strata_bounds", lambda _: (Fraction(1), Fraction(1)), {"strata_lift", "strata_odds"}),
    (
        "_strata_bounds",
        lambda promises, true=report._strata_bounds: (true(promises)[0],) * 2,
        {"strata_odds"},
    ),
]
IDS = "strata-ignored odds-are-lift two-promises no-delta least-prior strata-bounds-one strata-odds-are-lift".split()


@pytest.mark.parametrize(("name", "fault", "violated"), FAULTS, ids=IDS)
def test_every_fault_of_the_level_is_detected(
    name: str, fault: Any, violated: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, name, fault)
    findings = [
        finding
        for seed in range(CACHED)
        for finding in against(case_of(seed), level_of(case_of(seed).document, seed))
    ]
    assert violated <= {finding.bound_name for finding in findings if finding.is_violated}
