# SPDX-License-Identifier: Apache-2.0
"""Documents of every kind and notion: round trips, levels exactly met and slightly missed, mutations."""

import json
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from frankly_protocol import canonical
from frankly_protocol.audit import NOTIONS, stated_ceiling
from frankly_protocol.blocks import Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import DocumentRejected, FranklyError
from frankly_protocol.mechanisms import AgreementMechanism, ProductMechanism
from frankly_protocol.report import Report
from frankly_protocol.tokens import TokenRule

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.every_kind import HALF, KINDS, below, block, documents
from tests.frankly_protocol.samples import NOW, put, question, survey

DOCUMENTS = documents()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_survives_its_bytes_and_exact_levels_are_accepted(name: str) -> None:
    payload = DOCUMENTS[name].payload()
    again = SurveyDocument.parse(payload)
    assert again == DOCUMENTS[name]
    assert again.payload() == payload
    again.require_private()


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name != "everything"])
def test_levels_just_below_the_needed_one_are_refused(name: str) -> None:
    document = DOCUMENTS[name]
    (only,) = document.blocks
    (promise,) = only.promises
    weaker = below(promise)
    assert weaker
    for less in weaker:
        altered = replace(document, blocks=(replace(only, promises=(less,)),))
        with pytest.raises(DocumentRejected) as caught:
            SurveyDocument.parse(altered.payload()).require_private()
        assert caught.value.reason == "privacy"
        assert (caught.value.field or "").startswith("blocks[0].claims[0].")


@pytest.mark.parametrize("kind", KINDS)
def test_one_broken_promise_among_many_is_found(kind: str) -> None:
    valid = block(kind, *NOTIONS)
    for i, promise in enumerate(valid.promises):
        for lowered in below(promise):
            promises = (*valid.promises[:i], lowered, *valid.promises[i + 1 :])
            with pytest.raises(DocumentRejected) as caught:
                survey(replace(valid, promises=promises)).require_private()
            assert (caught.value.field or "").startswith(f"blocks[0].claims[{i}].")


def test_every_field_of_a_document_survives_its_bytes() -> None:
    document = replace(
        survey(block("unary", "lip", "ldp")),
        languages=("en", "pt-BR"),
        title={"en": "A survey", "pt-BR": "Uma pesquisa"},
        consent={"en": "Please", "pt-BR": "Por favor"},
        blocks=(),
        strata=(),
        token=TokenRule("rsa-pss", "A" * 80),
        version=3,
        prev="sha256:" + "ab" * 32,
        opens=NOW - timedelta(hours=1),
    )
    region = question("region", "north", "south")
    prompts = {"en": "?", "pt-BR": "?"}
    bilingual = replace(
        region,
        text=prompts,
        choices=tuple(replace(c, label={"en": c.id, "pt-BR": c.id}) for c in region.choices),
    )
    inner = block("unary", "lip", "ldp")
    questions = tuple(
        replace(
            q,
            text=prompts,
            choices=tuple(replace(c, label={"en": c.id, "pt-BR": c.id}) for c in q.choices),
        )
        for q in inner.questions
    )
    document = replace(document, strata=(bilingual,), blocks=(replace(inner, questions=questions),))
    assert SurveyDocument.parse(document.payload()) == document
    assert SurveyDocument.parse(
        replace(document, token=TokenRule("invite")).payload()
    ).token == TokenRule("invite")


def test_reports_of_every_kind_have_the_documents_one_length() -> None:
    document = DOCUMENTS["everything"]
    lengths = set()
    for seed in range(30):
        randbits = Random(seed).getrandbits
        symbols = []
        for entry in document.blocks:
            truth: Any = seed % 4
            if isinstance(entry.mechanism, AgreementMechanism):
                truth = tuple(seed % choices for choices in entry.mechanism.choices)
            symbol = entry.mechanism.sample(truth, randbits)
            symbols.append(entry.mechanism.symbol_json(symbol))  # type: ignore[arg-type]
        report = Report(document.digest, "0f" * 16, tuple(symbols))
        data = report.to_bytes(document.report_length)
        lengths.add(len(data))
        assert Report.from_bytes(data) == report
        for i, entry in enumerate(document.blocks):
            entry.mechanism.check_symbol(report.symbols[i])
    assert lengths == {document.report_length}


ONE = {name: json.loads(document.payload()) for name, document in DOCUMENTS.items()}
C = "blocks.0.claims.0."
F = "blocks[0].claims[0]."
POOL = "blocks.0.components.0.pools.1."
BAD: list[tuple[str, str, Any, str, str]] = [
    ("unary ldp", "blocks.0.keep", 2**48 + 1, "weights", "blocks[0].keep"),
    ("unary ldp", "blocks.0.flip", 8 << 44, "weights", "blocks[0].flip"),
    ("unary ldp", "blocks.0.flip", True, "weights", "blocks[0].flip"),
    ("unary ldp", "blocks.0.answers", 5, "weights", "blocks[0].answers"),
    ("unary ldp", "blocks.0.bits", 49, "weights", "blocks[0].bits"),
    ("unary ldp", "blocks.0.weights", [], "schema", "blocks[0].weights"),
    ("unary ldp", "blocks.0.keep", (8 << 44) + 1, "privacy", "blocks[0].ceiling"),
    ("subset ldp", "blocks.0.size", 4, "weights", "blocks[0].size"),
    ("subset ldp", "blocks.0.inside", -1, "weights", "blocks[0].inside"),
    ("subset ldp", "blocks.0.answers", 1000, "weights", "blocks[0].answers"),
    ("product ldp", "blocks.0.factors", {}, "weights", "blocks[0].factors"),
    ("product ldp", "blocks.0.factors", [[]] * 17, "weights", "blocks[0].factors"),
    ("product ldp", "blocks.0.factors.1", [[1, 2]], "weights", "blocks[0].factors[1].weights"),
    ("product ldp", "blocks.0.factors.1", 3, "weights", "blocks[0].factors"),
    ("agreement ldp", "blocks.0.agree", 1, "weights", "blocks[0].agree"),
    ("agreement ldp", "blocks.0.agree", 8, "privacy", "blocks[0].ceiling"),
    ("agreement ldp", "blocks.0.ask", "all", "schema", "blocks[0].ask"),
    ("agreement ldp", "blocks.0.ask", None, "schema", "blocks[0].ask"),
    ("dense ldp", "blocks.0.ask", "drawn", "schema", "blocks[0].ask"),
    ("agreement ldp", "blocks.0.bits", 49, "weights", "blocks[0].bits"),
    ("agreement ldp", "blocks.0.choices.0", 3, "weights", "blocks[0].choices"),
    ("agreement ldp", "blocks.0.questions.0", ..., "weights", "blocks[0].choices"),
    ("agreement ldp", "blocks.0.parts.3", [0, 1, 2], "weights", "blocks[0].components[1].pools"),
    ("agreement ldp", "blocks.0.components.0.chance", 1, "weights", "blocks[0].components"),
    ("agreement ldp", POOL + "score", 9, "weights", "blocks[0].components[0].pools[1].score"),
    ("agreement ldp", POOL + "cover.0.1", 4, "weights", "blocks[0].components[0].pools[1].cover"),
    (
        "agreement ldp",
        POOL + "cover.2.0",
        "9",
        "weights",
        "blocks[0].components[0].pools[1].cover[2]",
    ),
    ("agreement ldp", "blocks.0.design_prior.0", 0, "schema", "blocks[0].design_prior"),
    ("agreement ldp", "blocks.0.weights", [], "schema", "blocks[0].weights"),
    ("agreement ldp", C + "level", [3, 1], "privacy", F + "level"),
    ("agreement ldp", C + "level", None, "schema", F + "level"),
    ("dense ldp", C + "level", None, "schema", F + "level"),
    ("dense ldp", C + "delta", [0, 1], "schema", F + "delta"),
    ("dense dp", C + "delta", None, "schema", F + "delta"),
    ("dense dp", C + "delta", [1, 1], "privacy", F + "delta"),
    ("dense dp", C + "delta", [-1, 1], "schema", F + "delta[0]"),
    ("dense lip", C + "prior", None, "schema", F + "prior"),
    ("dense lip", C + "prior.secrets", ["low", "mid"], "schema", F + "prior.tables[0]"),
    ("dense lip", C + "prior.secrets.1", "low", "schema", F + "prior.secrets"),
    ("dense lip", C + "prior.tables.0.1", [0, 0, 0, 0], "privacy", F + "prior.tables[0][1]"),
    ("dense lip", C + "prior.source", "", "schema", F + "prior.source"),
    ("dense alip", C + "low_level", [1, 2], "privacy", F + "low_level"),
    ("dense srlip", C + "attributes", [], "schema", F + "attributes"),
    ("dense srlip", C + "attributes", [2] * 9, "schema", F + "attributes"),
    ("dense srlip", C + "attributes", [2, 1], "schema", F + "attributes[1]"),
    ("dense srlip", C + "attributes", [2, 3], "privacy", F + "attributes"),
    ("dense rldp", C + "lower_bounds", [[[1, 2]]], "schema", F + "lower_bounds"),
    ("dense rldp", C + "lower_bounds.1.0", [2, 1], "privacy", F + "lower_bounds[1]"),
    ("dense rldp", C + "lower_bounds.1.0", [1, 0], "schema", F + "lower_bounds[1][0][1]"),
    ("dense metric-ldp", C + "levels", None, "schema", F + "levels"),
    ("dense metric-ldp", C + "levels.0", [None] * 3, "privacy", F + "levels[0]"),
    ("dense metric-ldp", C + "levels.0.1", [0, 1], "schema", F + "levels[0][1][0]"),
    ("dense metric-ldp", C + "levels.0.1", [1, 2], "privacy", F + "levels[0]"),
    ("dense metric-ldp", C + "levels.1.1", [3, 2], "privacy", F + "levels[1]"),
    ("dense metric-ldp", C + "levels.0.2", 2, "schema", F + "levels[0][2]"),
    ("dense rldp", C + "diagonal", 1, "schema", F + "diagonal"),
    ("dense rldp", C + "secret", None, "schema", F + "secret"),
    ("dense rldp", C + "source", "a\u202eb", "schema", F + "source"),
    ("dense dpv", C + "sensitive", "absent", "schema", F + "sensitive"),
    ("dense dpv", C + "sensitive", 1, "schema", F + "sensitive"),
    ("dense dpv", C + "level", [5, 4], "privacy", F + "level"),
]


@pytest.mark.parametrize(("name", "path", "value", "reason", "field"), BAD)
def test_faults_of_kinds_and_notions_are_named(
    name: str, path: str, value: Any, reason: str, field: str
) -> None:
    body = json.loads(json.dumps(ONE[name]))
    put(path, value)(body)
    with pytest.raises(DocumentRejected) as caught:
        SurveyDocument.parse(canonical.dumps(body)).require_private()
    assert (caught.value.reason, caught.value.field) == (reason, field)


def test_two_infinite_levels_promise_nothing() -> None:
    body = json.loads(json.dumps(ONE["dense alip"]))
    put(C + "level", None)(body)
    SurveyDocument.parse(canonical.dumps(body)).require_private()
    put(C + "low_level", None)(body)
    with pytest.raises(DocumentRejected, match="promise nothing"):
        SurveyDocument.parse(canonical.dumps(body))


def test_a_prior_of_one_row_means_that_the_answer_is_the_secret() -> None:
    names = ("a", "b", "c", "d")
    short, long = (
        Prior("x", names, (rows,), "counts")
        for rows in (
            ((4, 3, 2, 1),),
            tuple(tuple(n if s == x else 0 for x in range(4)) for s, n in enumerate((4, 3, 2, 1))),
        )
    )
    assert short.table == long.table
    claim = replace(block("unary", "lip").promises[0].claim, joint=short.table, level=(100, 1))
    document = survey(replace(block("unary", "lip"), promises=(Promise.under(claim, short),)))
    again = SurveyDocument.parse(document.payload())
    assert again == document
    assert again.blocks[0].promises[0].claim.joint == long.table
    again.require_private()


def test_a_ceiling_beyond_exact_numbers_is_stated_rounded_up() -> None:
    skewed = ProductMechanism((HALF,) * 2)
    exact = Fraction(11, 3) ** 2
    assert stated_ceiling(skewed) == max(exact, Fraction(13, 5) ** 2)
    odd = replace(KINDS["unary"], keep=(8 << 44) + 1, flip=(3 << 44) - 1)  # type: ignore[arg-type]
    stated, D = stated_ceiling(odd), 1 << 48
    true = Fraction(odd.keep * (D - odd.flip), (D - odd.keep) * odd.flip)  # type: ignore[union-attr]
    assert stated is not None
    assert max(true.as_integer_ratio()) > 2**53
    assert max(stated.as_integer_ratio()) < 2**53
    assert 0 <= stated - true < true / 2**40


def mutated(rng: Random) -> Any:
    """Draw a document of some kind and notion with one to three random edits."""
    body = json.loads(json.dumps(ONE[rng.choice(sorted(ONE))]))
    for _ in range(rng.randint(1, 3)):
        target: Any = body["blocks"] if rng.random() < 0.9 else body
        parent, key = body, "blocks"
        while isinstance(target, dict | list) and target and (parent is body or rng.random() < 0.9):
            parent, key = (
                target,
                rng.choice(sorted(target) if isinstance(target, dict) else range(len(target))),
            )
            target = target[key]
        steps: list[Any] = [1, -1, 1 << 20, 1 << 44, -(1 << 44)]
        if type(target) is int and rng.random() < 0.8:
            parent[key] = target + rng.choice(steps)
        else:
            odd = [
                None,
                "x",
                [],
                True,
                {},
                0,
                [1, 2],
                "ldp",
                "lip",
                "unary",
                1.5,
                target,
                [target, target],
            ]
            parent[key] = rng.choice(odd)
    return body


def judge(body: Any) -> str:
    """Return "refused" after a typed error, otherwise "accepted"; assert that the claims of an
    accepted document hold."""
    try:
        document = SurveyDocument.parse(canonical.dumps(body))
        document.require_private()
    except FranklyError:
        return "refused"
    for entry in document.blocks:
        for promise in entry.promises:
            for name, ratio in needed(entry.mechanism, promise.claim).items():
                level = getattr(promise.claim, name)
                assert level is None or (ratio is not None and ratio <= Fraction(*level)), body
    return "accepted"


@pytest.mark.slow
def test_accepted_mutations_hold_by_the_definitions() -> None:
    rng = Random(5)
    outcomes = [judge(mutated(rng)) for _ in range(1000)]
    assert 20 < outcomes.count("accepted") < 500


@pytest.mark.full_only
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_mutated_documents(part: int) -> None:
    rng = Random(1000 + part)
    outcomes = [judge(mutated(rng)) for _ in range(1000)]
    assert 20 < outcomes.count("accepted") < 500
