# SPDX-License-Identifier: Apache-2.0
"""Vectors of sampling (mechanism, truth, random bits: symbol), reports and exact estimates."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import chain, product
from random import Random
from typing import Any

from frankly_design.kinds.decoder import shares
from frankly_design.kinds.registry import kind_of
from frankly_design.kinds.set_counts import SetCounts
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    Symbol,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool
from frankly_protocol.report import Report
from frankly_protocol.tokens import TokenRule

from tests.frankly_protocol.every_kind import DENSE, FORM, KINDS
from tests.frankly_protocol.mechanisms import test_agreement
from tests.frankly_protocol.samples import ldp_block, question, survey, with_item
from tests.vectors.from_documents import sample_documents

Case = dict[str, Any]
SEEDS = 4
PRODUCT = KINDS["product"]
assert isinstance(PRODUCT, ProductMechanism)
MECHANISMS: dict[str, Mechanism] = {
    **KINDS,
    "dense, few bits": DenseMechanism(4, ((9, 4, 3), (2, 13, 1))),
    "dense, some never": DenseMechanism(48, ((1 << 48, 0), (1 << 47, 1 << 47))),
    "unary, 9 answers": UnaryMechanism(48, 9, 1 << 47, 70_000_000_000_000),
    "subset, one of three": SubsetMechanism(48, 3, 1, 200_000_000_000_000),
    "subset, 4 of 11": SubsetMechanism(48, 11, 4, 150_000_000_000_000),
    "product, three parts": ProductMechanism((PRODUCT.factors[0], DENSE, PRODUCT.factors[0])),
}
FORMS: dict[str, AgreementMechanism] = {
    "agreement": FORM,
    "agreement, few bits": test_agreement.FORM,
    "agreement, two of four": test_agreement.EQUAL,
    "agreement, 20 questions": AgreementMechanism(
        48,
        31_735_211_221,
        1 << 32,
        (10,) * 20,
        tuple((i,) for i in range(20)),
        (
            Component(200_000_000_000_000, 9, (Pool(tuple(range(20)), 20, Cover(10, 3)),)),
            Component(81_474_976_710_656, 2, (Pool(tuple(range(20)), 3, Cover(10, 2), 2),)),
        ),
    ),
}


def sampling() -> Case:
    """Return symbols from random bits; each draw is (number of bits, value), in the order of
    requests.

    A form draws numbers of more than 48 bits in pieces of 48 bits, highest first and the remainder
    last.
    """
    cases = []
    for name, mechanism in MECHANISMS.items():
        described = {"kind": mechanism.kind, **mechanism.params_json()}
        drawn = [
            _sampled(mechanism, x, Random(f"{name} {x} {i}").getrandbits)
            for x, i in _truths(mechanism)
        ]
        cases.append({"name": name, "mechanism": described, "draws": [*drawn, *_edges(mechanism)]})
    for name, form in FORMS.items():
        described = {"kind": form.kind, **form.params_json()}
        seeded = [Random(f"{name} {i}") for i in range(12)]
        draws = [_drawn(form, _answers(form, source), source.getrandbits) for source in seeded]
        cases.append({"name": name, "mechanism": described, "draws": [*draws, *_turns(form)]})
    regions = (question("region", "north", "south-west"),)
    everything = replace(sample_documents()["everything"], strata=regions)
    truths: list[Any] = [1, 3, 0, 2, (1, 2, 0)]
    with_token = replace(everything, token=TokenRule("invite"))
    item = with_item(replace(survey(ldp_block()), strata=regions))
    north = {"region": "north"}
    return {
        "mechanisms": cases,
        "reports": [
            _report(everything, truths, north),
            _report(with_token, truths, north, "dG9rZW4"),
            *(_report(item, [1], north | {"check": choice}) for choice in ("b", "d")),
        ],
    }


def _truths(mechanism: Mechanism) -> Iterator[tuple[int, int]]:
    return product(range(min(mechanism.answers, 12)), range(SEEDS))


def _sampled(mechanism: Mechanism, x: int, randbits: Callable[[int], int]) -> Case:
    log = Recorded(randbits)
    symbol: Any = mechanism.sample(x, log)
    return {"truth": x, "bits": log.draws, "symbol": mechanism.symbol_json(symbol)}


def _answers(form: AgreementMechanism, source: Random) -> tuple[int, ...]:
    return tuple(source.randrange(choices) for choices in form.choices)


def _drawn(
    form: AgreementMechanism, truth: tuple[int, ...], randbits: Callable[[int], int]
) -> Case:
    log = Recorded(randbits)
    symbol = form.sample(truth, in_pieces(log))
    return {"truth": truth, "bits": log.draws, "symbol": form.symbol_json(symbol)}


def _turns(form: AgreementMechanism) -> Iterator[Case]:
    """Draw on both sides of the limit between agreeing and other outcomes, and at both extremes."""
    truth, (first, *_) = tuple(choices - 1 for choices in form.choices), form.components
    yield _drawn(form, truth, lambda _bits: 0)
    if any(pool.pick < len(pool.parts) for pool in first.pools):
        return  # other draws come in between
    limit, end = form.agree * first.tails[0][0], form.mean_weight(first)
    bits = (end - 1).bit_length()
    sizes = [48] * (bits // 48) + [bits % 48] * (bits % 48 > 0)
    for u in (limit - 1, limit, end - 1):
        left, pieces = bits, [0]
        for size in sizes:
            left -= size
            pieces.append(u >> left & (1 << size) - 1)
        source = iter(pieces)
        yield _drawn(form, truth, lambda _bits, source=source: next(source))


def in_pieces(randbits: Callable[[int], int]) -> Callable[[int], int]:
    """Return a source of numbers of any size from draws of at most 48 bits, highest first."""

    def number(bits: int) -> int:
        value = 0
        for size in chain([48] * (bits // 48), [bits % 48] * (bits % 48 > 0)):
            value = value << size | randbits(size)
        return value

    return number


def _edges(mechanism: Mechanism) -> Iterator[Case]:
    """Draw on both sides of every threshold of a table; all zeros and all ones for other kinds."""
    if not isinstance(mechanism, DenseMechanism):
        for fill in (lambda _bits: 0, lambda bits: (1 << bits) - 1):
            # The rejection sampling of subsets would reject all ones forever.
            if not isinstance(mechanism, SubsetMechanism) or fill(1) == 0:
                yield _sampled(mechanism, mechanism.answers - 1, fill)
        return
    for x, row in enumerate(mechanism.weights):
        total = 0
        for weight in row:
            for u in {total, total + weight - 1} - {-1, mechanism.denominator}:
                yield _sampled(mechanism, x, lambda _bits, u=u: u)
            total += weight


class Recorded:
    """A source of random bits that records its draws."""

    def __init__(self, randbits: Callable[[int], int]) -> None:
        self._randbits = randbits
        self.draws: list[list[Any]] = []

    def __call__(self, bits: int) -> int:
        value = self._randbits(bits)
        self.draws.append([bits, f"{value:x}"])
        return value


def _report(
    document: SurveyDocument, truths: list[Any], choices: dict[str, str], token: str | None = None
) -> Case:
    """Return a whole report: one symbol per block and 128 bits of id, padded to the document's length.

    choices : made at the questions asked in the clear.
    """
    log, symbols, strata = Recorded(Random(7).getrandbits), [], document.open_answers(choices)
    for block, x in zip(document.blocks, truths, strict=True):
        is_form = isinstance(block.mechanism, AgreementMechanism)
        symbol: Any = block.mechanism.sample(x, in_pieces(log) if is_form else log)
        symbols.append(block.mechanism.symbol_json(symbol))
    report = Report(document.digest, f"{log(128):032x}", tuple(symbols), strata, token)
    return {
        "document": document.payload().decode(),
        "truths": truths,
        "choices": choices,
        "strata": strata,
        "token": token,
        "bits": log.draws,
        "length": document.report_length,
        "report": report.to_bytes(document.report_length).decode(),
    }


def estimates() -> Case:
    """Return exact unbiased estimates from counts, as fractions; null if they are not identifiable."""
    blurred = DenseMechanism(4, ((8, 8), (4, 12), (6, 10)))
    rows: list[tuple[Mechanism, tuple[int, ...] | None, Any]] = [
        (DENSE, None, [[500, 300, 200]]),
        (KINDS["unary"], (1, 2, 3, 4), None),
        (KINDS["subset"], (1, 2, 3, 4), None),
        (KINDS["product"], (1, 2, 3, 4), [[400, 300, 200, 100], [1, 0, 0, 0]]),
        (
            DenseMechanism(48, ((3 << 46, 1 << 46), (1 << 46, 3 << 46))),
            (1, 1),
            [[70, 30], [10, 90], [0, 5]],
        ),
        (
            DenseMechanism(4, ((9, 4, 2, 1), (2, 11, 2, 1), (1, 4, 8, 3))),
            (5, 3, 2),
            [[11, 22, 33, 44], [0, 0, 0, 7]],
        ),
        (blurred, (1, 1, 1), [[50, 50]]),
        (MECHANISMS["unary, 9 answers"], None, None),
        (MECHANISMS["subset, 4 of 11"], None, None),
    ]
    return {"cases": [case for i, row in enumerate(rows) for case in _estimated(i, *row)]}


def _estimated(
    i: int, mechanism: Mechanism, prior: tuple[int, ...] | None, tables: Any
) -> Iterator[Case]:
    described = {"kind": mechanism.kind, **mechanism.params_json()}
    base = {"mechanism": described, "design_prior": list(prior) if prior else None}
    for targets in (
        None,
        [
            [1] * mechanism.answers,
            [1, -1, *[0] * (mechanism.answers - 2)],
            [*range(mechanism.answers)],
        ],
    ):
        W = (
            shares(mechanism.answers)
            if targets is None
            else tuple(tuple(map(Fraction, row)) for row in targets)
        )
        if isinstance(mechanism, DenseMechanism | ProductMechanism):
            solved = kind_of(mechanism).decoder(W, prior)
            assert solved is not None
            for counts in tables:
                estimates_exact = solved.apply(counts)
                yield {
                    **base,
                    "targets": targets,
                    "counts": counts,
                    "unbiased": _fractions(estimates_exact),
                }
        else:
            held = _symbols(mechanism, Random(i))
            counted = SetCounts.of_symbols(mechanism.answers, held)
            estimates_exact = kind_of(mechanism).evidence(counted, W, prior).exact
            listed = {
                json.loads(json.dumps(mechanism.symbol_json(y))): n for y, n in sorted(held.items())
            }
            yield {
                **base,
                "targets": targets,
                "counts": listed,
                "unbiased": _fractions(estimates_exact),
            }


def _symbols(mechanism: UnaryMechanism | SubsetMechanism, rng: Random) -> dict[int, int]:
    drawn: Counter[Symbol] = Counter(
        mechanism.sample(x % mechanism.answers, rng.getrandbits) for x in range(60)
    )
    return {int(y): n for y, n in drawn.items()}  # type: ignore[arg-type]


def _fractions(values: Any) -> list[list[int] | None]:
    return [None if value is None else list(value.as_integer_ratio()) for value in values]
