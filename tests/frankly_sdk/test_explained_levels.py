# SPDX-License-Identifier: Apache-2.0
"""Sentences of explanations that state a bound, compared with the true leakage of a small world."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from pathlib import Path
from random import Random

import pytest
from frankly_protocol.audit import Claim
from frankly_protocol.blocks import Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import (
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_sdk import Policy
from frankly_sdk.explain import explain

from tests.frankly_protocol.samples import dp_block
from tests.frankly_sdk import worlds
from tests.frankly_sdk.fakes import FakeServer
from tests.frankly_sdk.worlds import Person, World, block_of, document_of, promise

GRR = DenseMechanism(4, ((10, 3, 3), (3, 10, 3), (3, 3, 10)))
UNEVEN = DenseMechanism(4, ((8, 4, 4), (6, 6, 4), (4, 4, 8)))
LEAKY = DenseMechanism(4, ((16, 0, 0), (8, 8, 0), (8, 4, 4)))
PERMUTED = DenseMechanism(4, ((0, 16, 0), (0, 0, 16), (16, 0, 0)))
UNARY = UnaryMechanism(4, 3, 8, 3)
SUBSET = SubsetMechanism(4, 3, 2, 12)
HALF = DenseMechanism(4, ((11, 5), (5, 11)))
PRODUCT = ProductMechanism((HALF, HALF))
DELTA = Fraction(1, 1 << 10)


def world(answers: Sequence[int], strata: int = 1, seed: int = 1) -> World:
    """Return every combination of stratum, two secrets and answers, with counts from one to nine."""
    random, rows = Random(seed), [()]
    for choices in answers:
        rows = [(*row, x) for row in rows for x in range(choices)]
    secrets = [{"s": s, "t": t} for s in range(3) for t in range(2)]
    return [
        Person(random.randint(1, 9), z, s, row)
        for z in range(strata)
        for s in secrets
        for row in rows
    ]


@dataclass(frozen=True)
class Case:
    """A document, the world of its tables, and the δ that the app allows."""

    world: World
    document: SurveyDocument
    delta_cap: str = "0"

    @property
    def mechanisms(self) -> list[Mechanism]:
        return [block.mechanism for block in self.document.blocks]

    def groups(self) -> list[World]:
        """Return the groups of people with the same public answers."""
        return worlds.groups(self.world, bool(self.document.strata))


def case(
    strata: int, *declared: tuple[Mechanism, list[tuple[str, str]]], stratified: bool = True
) -> Case:
    """Return a case whose blocks promise each (notion, secret) at the true level of their mechanism."""
    people = world([mechanism.answers for mechanism, _ in declared], strata)
    blocks = []
    for i, (mechanism, notions) in enumerate(declared):
        promises = [
            Promise(
                Claim("ldp", (worlds.answer_odds([mechanism]) or Fraction(0)).as_integer_ratio())
            )
            if notion == "ldp"
            else promise(people, notion, secret, i, mechanism, stratified=stratified and strata > 1)
            for notion, secret in notions
        ]
        blocks.append(block_of(f"q{i}", mechanism, *promises))
    return Case(people, document_of(*blocks, strata=strata))


def with_delta() -> Case:
    people = world([2, 3])
    blocks = (
        dp_block("q0", delta=DELTA),
        block_of("q1", GRR, promise(people, "lip", "s", 1, GRR, stratified=False)),
    )
    return Case(people, document_of(*blocks), "0.001")


LIP, ODDS, LDP, OTHER = ("lip", "s"), ("secret-ldp", "s"), ("ldp", ""), ("lip", "t")
CASES: dict[str, Callable[[], Case]] = {
    "lip without a ceiling": lambda: case(1, (LEAKY, [LIP])),
    "lip beside ldp": lambda: case(1, (LEAKY, [LIP]), (GRR, [LDP])),
    "strata, not stratified": lambda: case(2, (GRR, [LIP]), stratified=False),
    "strata, not stratified, no ceiling": lambda: case(2, (LEAKY, [LIP]), stratified=False),
    "strata, stratified": lambda: case(2, (LEAKY, [LIP])),
    "strata, stratified beside ldp": lambda: case(3, (GRR, [LIP]), (GRR, [LDP])),
    "strata, odds": lambda: case(2, (GRR, [ODDS])),
    "strata, nothing declared": lambda: case(2, (GRR, [LDP])),
    "two secrets in two blocks": lambda: case(1, (GRR, [LIP]), (GRR, [OTHER])),
    "two secrets in one block, strata": lambda: case(2, (LEAKY, [LIP, OTHER])),
    "both notions": lambda: case(1, (GRR, [LIP]), (SUBSET, [ODDS])),
    "alip and a posterior": lambda: case(1, (LEAKY, [("alip", "s"), ("dpv", "s")]), (GRR, [LDP])),
    "one side up": lambda: case(1, (GRR, [("pml", "s")]), (LEAKY, [LIP])),
    "one side down, strata": lambda: case(2, (UNARY, [("pmc", "s")]), (GRR, [LDP])),
    "posteriors, strata": lambda: case(2, (GRR, [("dpv", "s")]), (GRR, [LDP])),
    "permuted identity": lambda: case(1, (PERMUTED, [LIP])),
    "unary": lambda: case(1, (UNARY, [LIP, LDP])),
    "subset": lambda: case(1, (SUBSET, [LDP])),
    "pairs": lambda: case(1, (UNEVEN, [("metric-ldp", "")]), (GRR, [LDP])),
    "pairs, alike": lambda: case(1, (GRR, [("metric-ldp", "")])),
    "pairs, some open": lambda: case(1, (LEAKY, [("metric-ldp", "")])),
    "product": lambda: case(2, (PRODUCT, [ODDS, LDP])),
    "side channels, strata": lambda: case(2, (PRODUCT, [("srlip", "s")])),
    "dp": with_delta,
}
REFUSED = ("strata, not stratified, no ceiling", "pairs, some open")
HEAD = r"(?:From the whole report|Given your public answers, from all else in the report)"
PROVIDED = (
    r"\. This holds (whatever else is known|as long as the published tables about it are true)"
    r"(?:\. For the odds, .*)?\."
)
ALONE = (
    r"From this alone(, given your public answers|, for readers who ignore your public answers|), {}\. This "
    r"holds as long as this published table is true: a census\.(?: Against readers who know your public answers, "
    r"this promise does not hold\. Only the other limits do\.)?"
)
X = r"×([\d.]+)"


def secret_bounds(case: Case, name: str, lift: str | None, odds: str, provided: str) -> None:
    leakages = [
        worlds.leakage(group, name, case.mechanisms, range(len(case.mechanisms)))
        for group in case.groups()
    ]
    assert lift is None or max(lift for lift, _ in leakages) <= Fraction(lift)
    assert max(odds for _, odds in leakages) <= Fraction(odds)
    if provided == "whatever else is known":
        unconditional = worlds.answer_odds(case.mechanisms)
        assert unconditional is not None
        assert unconditional <= Fraction(odds)


def public_bounds(case: Case, name: str, lift: str, odds: str) -> None:
    exact_pair = worlds.strata_leakage(case.world, name)
    for stated, exact in zip((Fraction(lift), Fraction(odds)), exact_pair, strict=True):
        assert 0 <= stated - exact < Fraction(1, 100)


def answers_bound(case: Case, odds: str) -> None:
    exact = worlds.answer_odds(case.mechanisms)
    assert exact is not None
    assert 0 <= Fraction(odds) - exact < Fraction(1, 100)


def answers_open(case: Case, blocks: str) -> None:
    for block in case.document.blocks:
        assert (worlds.answer_odds([block.numbered_mechanism]) is None) == (
            f"“{block.id}”" in blocks
        )


def sure_bound(case: Case, percent: str, name: str, value: str) -> None:
    for group in case.groups():
        assert worlds.sureness(group, name, int(value), case.mechanisms) <= Fraction(percent) / 100


def chance_bound(
    case: Case, odds: str, name: str, lift: str | None, percent: str, _provided: str
) -> None:
    for group in case.groups():
        assert (
            worlds.excess(group, name, case.mechanisms, Fraction(odds)) <= Fraction(percent) / 100
        )
        if lift is not None:
            merged = [replace(person, secrets={name: -1}) for person in group]
            for value in {person.secrets[name] for person in group}:
                holders = [person for person in group if person.secrets[name] == value]
                pair = [*holders, *(replace(p, count=p.count) for p in merged)]
                assert (
                    worlds.excess(pair, name, case.mechanisms, Fraction(lift))
                    <= Fraction(percent) / 100
                )


def answers_chance(case: Case, odds: str, percent: str) -> None:
    by_answers = [replace(person, secrets={"x": hash(person.answers)}) for person in case.world]
    assert (
        worlds.excess(by_answers, "x", case.mechanisms, Fraction(odds)) <= Fraction(percent) / 100
    )


FORM: list[tuple[str, Callable[..., None]]] = [
    (
        rf"{HEAD}, belief about your “(.)” changes by at most {X}, and odds between two of its "
        rf"values by at most {X}{PROVIDED}",
        secret_bounds,
    ),
    (
        rf"{HEAD}, odds about your “(.)” change by at most {X}{PROVIDED}",
        lambda case, name, odds, provided: secret_bounds(case, name, None, odds, provided),
    ),
    (
        rf"Your public answers alone can change belief about your “(.)” by up to {X} and odds by up to {X}\. This "
        r"holds as long as the published tables about it are true\.",
        public_bounds,
    ),
    (
        rf"{HEAD}, odds about your answers themselves change by at most {X}\. This holds whatever else is known\.",
        answers_bound,
    ),
    (r"The answers themselves are not all protected: no limit holds for (.*)\.", answers_open),
    (
        rf"{HEAD}, nobody can be surer than ([\d.]+)% that your “(.)” is “s(.)”\. This holds as long as the published "
        r"tables about it are true\.",
        sure_bound,
    ),
    (
        rf"{HEAD}, no result is more than {X} as likely with one value of your “(.)” as with another\."
        rf"(?: Nor is any result more than {X} as likely with one value as on average\. Each time, a| A) chance of "
        rf"at most ([\d.]+)% may come on top{PROVIDED}",
        chance_bound,
    ),
    (
        rf"{HEAD}, no result is more than {X} as likely with one set of answers as with another\. A chance of at "
        r"most ([\d.]+)% may come on top\. This holds whatever else is known\.",
        answers_chance,
    ),
]
NO_BOUND = (
    rf"{HEAD}, no limit is promised on what can be learnt about your “.”\.",
    r"What your public answers alone reveal about your “.” has no known limit\.",
    r"“Given your public answers” means: .*",
)


def explained_lines(case: Case) -> tuple[str, ...]:
    level = Policy(delta_cap=case.delta_cap).level(case.document)
    return tuple(str(explain(case.document, level, ())).split("\n"))


@pytest.mark.parametrize("name", CASES)
def test_sentences_about_the_whole_report_bound_its_true_leakage(name: str) -> None:
    example = CASES[name]()
    lines = explained_lines(example)
    start, end = (
        next(i for i, line in enumerate(lines) if line.startswith(openings)) for openings in STARTS
    )
    sentences = [line for line in lines[start:end] if line]
    assert sentences, "the explanation must contain sentences about the whole report"
    for line in sentences:
        if any(re.fullmatch(pattern, line) for pattern in NO_BOUND):
            continue
        (check, match) = next((c, m) for pattern, c in FORM if (m := re.fullmatch(pattern, line)))
        check(example, *match.groups())
    secrets = {p.secret for block in example.document.blocks for p in block.promises if p.secret}
    for secret in secrets:
        assert any(f"“{secret}”" in line for line in sentences)


STARTS = (
    ("From the whole report", "“Given your public answers”", "The answers themselves"),
    ("Answering everything costs", "Answering uses up for good all"),
)


def block_lift(case: Case, i: int, readers: str, name: str, bound: str) -> None:
    worst = max(lift for lift, _ in _alone(case, i, readers, name))
    assert 0 <= Fraction(bound) - worst < Fraction(1, 100)


def block_known(case: Case, i: int, readers: str, name: str, bound: str) -> None:
    worst = max(
        worlds.lift_beside(group, name, case.mechanisms[i], i)
        for group in _groups_of(case, readers)
    )
    assert 0 <= Fraction(bound) - worst < Fraction(1, 100)


def block_odds(case: Case, i: int, readers: str, name: str, bound: str) -> None:
    worst = max(odds for _, odds in _alone(case, i, readers, name))
    assert 0 <= Fraction(bound) - worst < Fraction(1, 100)


def block_sides(case: Case, i: int, readers: str, name: str, high: str, low: str) -> None:
    block_lift(case, i, readers, name, max(high, low, key=Fraction))


def block_side(side: str, case: Case, i: int, readers: str, name: str, bound: str) -> None:
    worst = max(
        worlds.one_side(group, name, case.mechanisms[i], i)[side]
        for group in _groups_of(case, readers)
    )
    assert 0 <= Fraction(bound) - worst < Fraction(1, 100)


def block_pairs(
    case: Case, i: int, least: str | None, most: str, open_pairs: str | None, of: str | None
) -> None:
    levels = [
        ratio and Fraction(*ratio)
        for x, row in enumerate(worlds.pair_levels(case.mechanisms[i]))
        for z, ratio in enumerate(row)
        if x != z
    ]
    finite = [level for level in levels if level is not None]
    assert 0 <= Fraction(most) - max(finite) < Fraction(1, 100)
    assert 0 <= Fraction(least or most) - min(finite) < Fraction(1, 100)
    stated = (int(open_pairs or 0), int(of or len(levels)))
    assert stated == (len(levels) - len(finite), len(levels))


def block_sure(case: Case, i: int, readers: str, percent: str, name: str, value: str) -> None:
    mechanism = case.mechanisms[i]
    worst = max(
        worlds.sureness_of_block(g, name, int(value), mechanism, i)
        for g in _groups_of(case, readers)
    )
    assert 0 <= Fraction(percent) / 100 - worst < Fraction(1, 10_000)


def block_free(case: Case, i: int, bound: str) -> None:
    exact = worlds.answer_odds([case.mechanisms[i]])
    assert exact is not None
    assert exact <= Fraction(bound)


def block_endless(case: Case, i: int) -> None:
    exact = worlds.answer_odds([case.mechanisms[i]])
    assert exact is None or exact > 16_000_000


def block_chance(case: Case, i: int, bound: str, percent: str) -> None:
    columns = worlds.chances(case.mechanisms[i])
    for x in range(case.mechanisms[i].answers):
        for x2 in range(case.mechanisms[i].answers):
            excess = sum(
                max(Fraction(0), column[x] - Fraction(bound) * column[x2]) for column in columns
            )
            assert excess <= Fraction(percent) / 100


def _groups_of(case: Case, readers: str) -> list[World]:
    if "ignore" not in readers:
        return case.groups()
    assert case.document.strata
    return [case.world]


def _alone(case: Case, i: int, readers: str, name: str) -> list[tuple[Fraction, Fraction]]:
    return [
        worlds.leakage(group, name, [case.mechanisms[i]], [i])
        for group in _groups_of(case, readers)
    ]


BLOCK: list[tuple[str, Callable[..., None]]] = [
    (ALONE.format(rf"belief about your “(.)” changes by at most {X}"), block_lift),
    (
        ALONE.format(
            rf"belief about your “(.)” changes by at most {X}, even for those who know some of your answers to it"
        ),
        block_known,
    ),
    (ALONE.format(rf"odds about your “(.)” change by at most {X}"), block_odds),
    (
        ALONE.format(
            rf"belief about your “(.)” grows by at most {X} and shrinks by at most ÷([\d.]+)"
        ),
        block_sides,
    ),
    (
        ALONE.format(
            rf"belief about your “(.)” grows by at most {X}, but may shrink without limit"
        ),
        lambda *found: block_side("pml", *found),
    ),
    (
        ALONE.format(
            r"belief about your “(.)” shrinks by at most ÷([\d.]+), but may grow without limit"
        ),
        lambda *found: block_side("pmc", *found),
    ),
    (ALONE.format(r"nobody can be surer than ([\d.]+)% that your “(.)” is “s(.)”"), block_sure),
    (
        rf"From this alone, odds between two answers to it change by at most {X}\. This holds whatever else is known\.",
        block_free,
    ),
    (
        rf"From this alone, odds of one answer to it against another grow by at most (?:{X} to )?{X}"
        r"(?:, depending on the two)?(?: \(no limit is promised for (\d+) of (\d+) pairs\))?\. "
        r"This holds whatever else is known\.",
        block_pairs,
    ),
    (
        rf"Even if that is not true, this alone changes odds by at most {X}\. This also protects the answer itself\.",
        block_free,
    ),
    (
        r"If that is not true, this alone may change odds by more than ×16 million: some symbols all but rule out some "
        r"answers\. The answer itself is not protected\.",
        block_endless,
    ),
    (
        rf"From this alone, no result is more than {X} as likely with one answer to it as with another\. A "
        r"chance of at most ([\d.]+)% may come on top\. This holds whatever else is known\.",
        block_chance,
    ),
]


@pytest.mark.parametrize("name", CASES)
def test_sentences_about_one_block_state_its_true_bounds(name: str) -> None:
    example = CASES[name]()
    for i, block in enumerate(explain(example.document, example.document.report_level, ()).blocks):
        sentences = [line.strip() for line in block.words.split("\n")]
        bounds = [
            line
            for line in sentences
            if re.match("From this alone|Even if that is not true|If that is not", line)
        ]
        assert len(bounds) >= len(example.document.blocks[i].promises)
        for line in bounds:
            (check, match) = next(
                (c, m) for pattern, c in BLOCK if (m := re.fullmatch(pattern, line))
            )
            check(example, i, *match.groups())
        columns = worlds.chances(example.mechanisms[i])
        reveals_answer = all(sum(map(bool, column)) == 1 for column in columns)
        assert (
            reveals_answer
            == block.unchanged
            == ("Your answer to this is sent unchanged" in block.words)
        )
        best = sum(max(column) for column in columns) / example.mechanisms[i].answers
        assert best == block.guess
        assert "do not stand for" not in block.words


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_the_cost_shown_is_the_cost_charged(name: str, tmp_path: Path) -> None:
    example = CASES[name]()
    document = example.document
    policy = Policy(cap="64", delta_cap=example.delta_cap, final_surveys=(document.survey,))
    exact_odds = worlds.answer_odds(example.mechanisms)
    server = FakeServer(document=document)
    with server.open(tmp_path / "s.db", policy=policy) as client:
        explanation, before = client.survey.explain(), client.budget()
        answers = {q: choices[0] for q, choices in client.survey.questions.items()}
        client.answer(answers, strata={q.id: q.choices[0].id for q in document.strata})
        after = client.budget()
    assert explanation.form_nats == before.cost == after.spent
    assert (before.left_after, before.spent) == (after.left, "0.0000")
    if example.delta_cap == "0":
        exact = float("inf") if exact_odds is None else log(exact_odds)
        assert exact <= float(before.cost) + 1e-12
        assert exact_odds is None or float(before.cost) - exact < 1e-4
        phrase = (
            "Answering uses up for good all"
            if exact_odds is None
            else f"Answering everything costs {before.cost} nats"
        )
        assert phrase in explanation.words
