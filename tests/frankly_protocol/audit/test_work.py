# SPDX-License-Identifier: Apache-2.0
"""Work budget: documents refused before verification, and work estimates that grow with the work."""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from random import Random
from types import FrameType
from typing import Any

import pytest
from frankly_protocol import canonical, documents, promises
from frankly_protocol.audit import Claim, report_level, sets, stated_ceiling, units, worst
from frankly_protocol.audit.units import search_steps
from frankly_protocol.audit.work import MAX_COUNTS, MAX_WORK, level_work, work
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, InvalidInput
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    DenseMechanism,
    Mechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.agreement import MAX_CELLS, Component, Cover, Pool

from tests.frankly_protocol.audit.definitions import HEAVY, LARGE_FORMS, ONE, form, singles
from tests.frankly_protocol.audit.test_kinds import random_case
from tests.frankly_protocol.every_kind import DENSE, FORM, KINDS, block, form_block
from tests.frankly_protocol.every_kind import documents as every_document
from tests.frankly_protocol.samples import question, survey
from tests.refusals import refusal

DOCUMENTS = every_document()
work_module = sys.modules["frankly_protocol.audit.work"]


def table(answers: int, reports: int) -> DenseMechanism:
    """Return a 48-bit table with random weights."""
    random, rows = Random(answers * 7919 + reports), []
    for x in range(answers):
        row = [1 + random.randrange(2**49 // (3 * reports)) for _ in range(reports)]
        row[x % reports] += 2**48 - sum(row)
        rows.append(tuple(row))
    return DenseMechanism(48, tuple(rows))


def joint(secrets: int, answers: int) -> tuple[tuple[int, ...], ...]:
    """Return random counts between 2^52 and 2^53."""
    random = Random(secrets * 7919 + answers)
    return tuple(
        tuple(random.randrange(2**52, 2**53) for _ in range(answers)) for _ in range(secrets)
    )


def pairs(answers: int) -> tuple[tuple[tuple[int, int] | None, ...], ...]:
    """Return a level for every pair of answers, as a ratio of numbers up to 2^53."""
    random = Random(answers)
    return tuple(
        tuple(
            None
            if x == z
            else (2**53 - 1 - random.randrange(2**40), 2**52 + random.randrange(2**40))
            for z in range(answers)
        )
        for x in range(answers)
    )


def srlip(questions: int, reports: int, secrets: int) -> tuple[Mechanism, Claim]:
    a = 2**questions
    return table(a, reports), Claim("srlip", (9, 1), joint(secrets, a), attributes=(2,) * questions)


def many_secrets(blocks: int) -> SurveyDocument:
    """Return blocks of 16 LIP claims about different secrets, for which the report's level takes a
    lot of work."""
    claim = Claim("lip", (1000, 1), ((5, 2, 1, 3), (1, 4, 2, 2)))

    def block_of(i: int) -> Block:
        names = [f"s{i}-{p}" for p in range(16)]
        promises = tuple(
            Promise.under(claim, Prior(name, ("a", "b"), (claim.joint or (),), "?"))
            for name in names
        )
        return replace(block("dense", "ldp", name=f"b{i}"), promises=promises)

    return survey(*map(block_of, range(blocks)))


@pytest.fixture
def no_verifier(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*_arguments: Any) -> None:
        raise AssertionError("verified")

    monkeypatch.setattr(documents, "require_private", called)
    monkeypatch.setattr(documents, "require_sound", called)


def total(document: SurveyDocument) -> int:
    """Return the work units of a document as the sum of the documented terms of its budget."""
    units = level_work(document.blocks)
    for entry in document.blocks:
        units += work(entry.mechanism, Claim("ldp", ONE))
        units += sum(
            work(entry.mechanism, claim) for promise in entry.promises for claim in promise.claims
        )
    return units


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_one_unit_over_the_limit_is_refused_unverified(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = DOCUMENTS[name]
    monkeypatch.setattr(work_module, "MAX_WORK", total(document))
    document.require_private()
    monkeypatch.setattr(work_module, "MAX_WORK", total(document) - 1)
    monkeypatch.setattr(documents, "require_private", lambda *_: pytest.fail("verified"))
    monkeypatch.setattr(documents, "require_sound", lambda *_: pytest.fail("verified"))
    error = refusal(DocumentRejected, document.require_private)
    assert (error.code, error.field) == ("document_work_limit", "blocks")


LARGE: dict[str, tuple[Callable[[], tuple[Mechanism, Claim]], bool]] = {
    "srlip 2^8, 1000 reports, 15 secrets": (lambda: srlip(8, 1000, 15), False),
    "srlip 2^8, 128 reports, 2 secrets": (lambda: srlip(8, 128, 2), False),
    "srlip 2^8, 16 reports, 2 secrets": (lambda: srlip(8, 16, 2), True),
    "srlip 2^8, 28 reports, 2 secrets": (lambda: srlip(8, 28, 2), True),
    "secret-ldp, unary 256, 218 secrets": (
        lambda: (
            UnaryMechanism(48, 256, 2**47, 2**46),
            Claim("secret-ldp", (9, 1), joint(218, 256)),
        ),
        False,
    ),
    "secret-ldp, subset 256, 64 secrets": (
        lambda: (SubsetMechanism(48, 256, 77, 2**47), Claim("secret-ldp", (9, 1), joint(64, 256))),
        False,
    ),
    "secret-ldp, unary 64, 64 secrets": (
        lambda: (UnaryMechanism(48, 64, 2**47, 2**46), Claim("secret-ldp", (9, 1), joint(64, 64))),
        True,
    ),
    "lip, 256 answers and reports, 15 secrets": (
        lambda: (table(256, 256), Claim("lip", (9, 1), joint(15, 256))),
        True,
    ),
    "lip, 256 answers and reports, 256 secrets": (
        lambda: (table(256, 256), Claim("lip", (9, 1), joint(256, 256))),
        False,
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_sizes_within_and_beyond_the_limit(name: str) -> None:
    make, is_within = LARGE[name]
    mechanism, claim = make()
    assert (work(mechanism, claim) <= MAX_WORK) is is_within
    if not is_within:
        with pytest.raises(DocumentRejected, match="too long") as caught:
            worst(mechanism, claim)
        assert caught.value.reason == "work_limit"


@pytest.mark.usefixtures("no_verifier")
def test_the_level_of_a_report_counts() -> None:
    assert refusal(DocumentRejected, many_secrets(100).require_private).reason == "work_limit"
    small = many_secrets(20)
    assert level_work(small.blocks) < total(small) <= MAX_WORK


@pytest.mark.usefixtures("no_verifier")
def test_the_claims_of_every_stratum_count() -> None:
    """One promise of a subset mechanism about 64 secrets passes; the same promise with 60 strata is
    refused."""
    secrets = tuple(f"s{i}" for i in range(64))
    claim = Claim("secret-ldp", (1000, 1), joint(64, 4))
    prior_of_all = Prior("x", secrets, (claim.joint or (),), "?")
    mechanism = KINDS["subset"]

    def document(prior: Prior, *sizes: int) -> SurveyDocument:
        promise = Promise(replace(claim, joint=prior.table), prior, prior.secret, prior.source)
        strata = tuple(
            question(f"z{i}", *(f"c{k}" for k in range(size))) for i, size in enumerate(sizes)
        )
        base = survey(block("subset", "ldp"))
        return replace(base, strata=strata, blocks=(replace(base.blocks[0], promises=(promise,)),))

    scaled_down = tuple(tuple(n >> 10 for n in row) for row in prior_of_all.tables[0])
    assert total(document(prior_of_all)) < MAX_WORK < 60 * work(mechanism, claim)
    with pytest.raises(DocumentRejected) as caught:
        document(replace(prior_of_all, tables=(scaled_down,) * 60), 10, 6).require_private()
    assert caught.value.reason == "work_limit"


def diagonal(strata: int) -> dict[str, Any]:
    names = [f"a{i}" for i in range(256)]
    return {"secret": "x", "secrets": names, "tables": [[[1] * 256]] * strata, "source": "?"}


def test_priors_that_would_fill_the_memory_are_refused_as_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One row of 256 counts expands to 65,536 counts, and a document may have 32 such rows."""
    assert Prior.from_json(diagonal(32), "prior").size == MAX_COUNTS
    monkeypatch.setattr(promises, "_rows_per_secret", lambda _: pytest.fail("written out"))
    error = refusal(DocumentRejected, Prior.from_json, diagonal(33), "prior")
    assert (error.reason, error.field) == ("work_limit", "prior.tables")


def test_priors_of_several_blocks_are_added_up_while_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = survey(
        *(block("dense", "lip", name=f"b{i}") for i in range(3))
    )  # each has 3 secrets × 4 answers
    payload = document.payload()
    monkeypatch.setattr(documents, "MAX_COUNTS", 36)
    assert SurveyDocument.parse(payload) == document
    monkeypatch.setattr(documents, "MAX_COUNTS", 35)
    error = refusal(DocumentRejected, SurveyDocument.parse, payload)
    assert (error.reason, error.field) == ("work_limit", "blocks[2]")


def test_a_search_stops_after_the_budgeted_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Geometric counts need many steps; a smaller budget runs out, and the claim is refused."""
    rows = tuple(
        tuple(int(2 ** (53 * ((x * (s + 1) / 128) % 1))) or 1 for x in range(64)) for s in range(2)
    )
    mechanism, claim = UnaryMechanism(48, 64, 2**48 - 1, 1), Claim("secret-ldp", (9, 1), rows)
    steps = 0
    best = sets._Search._best_set

    def counted(*arguments: Any) -> list[int]:
        nonlocal steps
        steps += 1
        return best(*arguments)

    monkeypatch.setattr(sets._Search, "_best_set", counted)
    worst(mechanism, claim)
    needed = steps
    assert 20 < needed <= search_steps(2)
    steps = 0
    monkeypatch.setattr(units, "_FIRST_STEPS", needed - 5)
    error = refusal(DocumentRejected, worst, mechanism, claim)
    assert (error.reason, error.field, steps) == ("work_limit", "prior", needed - 1)


def test_the_cells_of_a_form_are_limited() -> None:
    assert FORM.cells == 8 * 2 * 3 + 2 * 2 + 4 * 3 + 8 * 2 * 2 + 3 * 3 + 15 * (6 + 2 + 3)
    assert max(large.cells for large in LARGE_FORMS.values()) > 0.9 * MAX_CELLS
    error = refusal(InvalidInput, form, 25, singles(HEAVY, 8), 60)
    assert (error.code, error.field) == ("weights_invalid", "components")


def test_forms_of_several_blocks_are_added_up_while_they_are_read() -> None:
    large = LARGE_FORMS["sets of a size"]
    blocks = [form_block(large, f"f{i}") for i in range(3)]
    payload = survey(*blocks).payload()
    assert 2 * large.cells <= MAX_COUNTS < 3 * large.cells
    SurveyDocument.parse(survey(*blocks[:2]).payload())
    error = refusal(DocumentRejected, SurveyDocument.parse, payload)
    assert (error.reason, error.field) == ("work_limit", "blocks[2]")


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE_FORMS)
def test_large_forms_are_read_and_verified_in_two_seconds(name: str) -> None:
    payload = survey(form_block(LARGE_FORMS[name])).payload()
    assert len(payload) <= canonical.MAX_BYTES
    start = time.process_time()
    document = SurveyDocument.parse(payload)
    document.require_private()
    report_level(document)
    assert time.process_time() - start < 2


def instructions(trial: Callable[[], object]) -> int:
    """Return the number of bytecode instructions that the verifier executes, which is reproducible."""
    executed = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal executed
        if "/audit/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        executed += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        trial()
    finally:
        sys.settrace(before)
    return executed


@pytest.mark.parametrize("part", range(3))
def test_figures_bound_the_instructions_that_are_run(part: int) -> None:
    """An instruction takes 20 to 50 ns, and the C code that it calls takes as long; one unit is
    about 1 ns.

    The constant 300,000 covers the work that every claim takes.
    """
    for number in range(part * 1000, part * 1000 + 40):
        mechanism, claim = random_case(number)
        assert 25 * instructions(lambda m=mechanism, c=claim: worst(m, c)) <= 300_000 + work(
            mechanism, claim
        ), (mechanism, claim)


GROWING: dict[str, Callable[[int], tuple[Mechanism, Claim]]] = {
    "ldp": lambda n: (table(16, 64 * n), Claim("ldp", ONE)),
    "dp": lambda n: (table(8 * n, 8), Claim("dp", (2, 1), delta=(0, 1))),
    "secret-ldp": lambda n: (table(8, 16), Claim("secret-ldp", ONE, joint(24 * n, 8))),
    "lip": lambda n: (table(8, 16 * n), Claim("lip", ONE, joint(8, 8))),
    "srlip": lambda n: srlip(3 + n, 8, 2),
    "rldp": lambda n: (
        table(12 * n, 16),
        Claim(
            "rldp",
            ONE,
            lower_bounds=tuple(
                tuple((1, 2**50 + 7 * s + u) for u in range(3)) for s in range(4 * n)
            ),
        ),
    ),
    "metric-ldp": lambda n: (table(8 * n, 16), Claim("metric-ldp", ONE, levels=pairs(8 * n))),
    "unary secret-ldp": lambda n: (
        UnaryMechanism(48, 16, 2**47, 2**46),
        Claim("secret-ldp", ONE, joint(6 * n, 16)),
    ),
    "subset lip": lambda n: (
        SubsetMechanism(48, 32, 9, 2**47),
        Claim("lip", ONE, joint(24 * n, 32)),
    ),
    "unary srlip": lambda n: (
        UnaryMechanism(48, 2 ** (3 + n), 2**47, 2**46),
        Claim("srlip", ONE, joint(2, 2 ** (3 + n)), attributes=(2,) * (3 + n)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GROWING)
def test_figures_grow_with_the_instructions_that_are_run(name: str) -> None:
    """At twice the size, the number of instructions grows at most by the factor that the figures state."""
    cases = [GROWING[name](n) for n in (2, 4)]
    executed = [instructions(lambda m=m, c=c: worst(m, c)) for m, c in cases]
    figures = [work(m, c) for m, c in cases]
    assert executed[1] / executed[0] <= 1.5 * figures[1] / figures[0]


def test_the_work_for_the_level_grows_as_its_figure() -> None:
    small, large = (many_secrets(n) for n in (3, 9))
    executed = [instructions(lambda d=d: report_level(d)) for d in (small, large)]
    assert executed[1] / executed[0] <= level_work(large.blocks) / level_work(small.blocks)


def test_the_stated_ceiling_is_recomputed_once_for_each_block() -> None:
    """The work of recomputing the ceiling counts once for each block, in addition to the claims."""
    single = block("dense", "ldp")
    assert (
        single.ceiling
        == stated_ceiling(DENSE)
        == Fraction(*(single.promises[0].claim.level or ONE))
    )
    document = survey(single)
    assert total(document) == 2 * work(DENSE, Claim("ldp", ONE)) + level_work(document.blocks)
    assert canonical.loads(document.payload())["blocks"][0]["ceiling"]


def test_robust_sets_cost_by_answers_secrets_and_words_of_their_scale() -> None:
    """The browser's formula is 300 (words + 3) per answer, 2,000 per secret, and 40 per answer pair."""
    for secrets, width in ((2, 4), (4, 2), (4, 4)):
        a = secrets * width
        bounds = (((1, 2 * width),) * width,) * secrets
        claim = Claim("rldp", (4, 1), lower_bounds=bounds)
        words = units.words(units.scale_bits(bounds))
        expected = 100_000 + 300 * a * (3 + words) + 2000 * secrets + 40 * a * a
        assert work(UnaryMechanism(48, a, 1 << 47, 1 << 45), claim) == expected


UNITS = {
    "dense ldp": 216_220,
    "dense dp": 296_520,
    "dense secret-ldp": 234_468,
    "dense lip": 234_468,
    "dense alip": 234_468,
    "dense srlip": 378_948,
    "dense rldp": 229_530,
    "dense dpv": 231_132,
    "dense metric-ldp": 282_280,
    "unary ldp": 205_300,
    "unary dp": 205_300,
    "unary secret-ldp": 500_120,
    "unary lip": 704_920,
    "unary alip": 704_920,
    "unary srlip": 1_204_120,
    "unary rldp": 217_160,
    "unary dpv": 420_120,
    "unary metric-ldp": 253_300,
    "subset ldp": 205_300,
    "subset dp": 205_300,
    "subset secret-ldp": 500_120,
    "subset lip": 710_680,
    "subset alip": 710_680,
    "subset srlip": 1_255_960,
    "subset rldp": 217_160,
    "subset dpv": 420_120,
    "subset metric-ldp": 253_300,
    "product ldp": 218_580,
    "product dp": 335_940,
    "product secret-ldp": 251_344,
    "product lip": 251_344,
    "product alip": 251_344,
    "product srlip": 492_144,
    "product rldp": 239_048,
    "product dpv": 245_816,
    "product metric-ldp": 299_140,
    "agreement ldp": 205_300,
    "everything": 10_553_534,
}


def test_the_budget_of_every_kind_and_notion_equals_that_of_the_format() -> None:
    """Every SDK must refuse the same documents, so changing a number requires a new format version."""
    assert {name: total(document) for name, document in every_document().items()} == UNITS


def test_a_form_with_countless_choices_of_parts_is_verified_at_once() -> None:
    pool = Pool(tuple(range(60)), 30, Cover(2, 1))
    parts = tuple((i,) for i in range(60))
    mechanism = AgreementMechanism(8, 3, 1, (2,) * 60, parts, (Component(256, 1, (pool,)),))
    verdict = worst(mechanism, Claim("ldp", (3, 1)))
    assert verdict.ratio == 3
    assert mechanism.check_symbol(verdict.report) == verdict.report
