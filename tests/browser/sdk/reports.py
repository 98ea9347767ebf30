# SPDX-License-Identifier: Apache-2.0
"""Survey documents with public questions: random documents whose promises may not hold, and
documents whose promises hold exactly."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

from frankly_protocol.audit import NOTIONS, Claim, stated_ceiling
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import DenseMechanism, Mechanism

from tests.frankly_protocol.audit.definitions import needed
from tests.frankly_protocol.every_kind import JOINT, KINDS
from tests.frankly_protocol.every_kind import block as every_kind_block
from tests.frankly_protocol.every_kind import promise as every_kind_promise
from tests.frankly_protocol.samples import NOW, question, survey

SOURCE = "a made-up table"


def documents(seed: int, count: int) -> list[SurveyDocument]:
    """Draw documents with up to four blocks and two public questions; small ratios produce ties."""
    random = Random(seed)
    return [document(random) for _ in range(count)]


def document(random: Random) -> SurveyDocument:
    strata = tuple(
        question(f"z{k}", *"nse"[: random.randint(2, 3)])
        for k in range(random.choice([0, 0, 1, 1, 2]))
    )
    cells = len(list(product(*(q.choices for q in strata))))
    blocks = [block(random, i, cells) for i in range(random.randint(1, 4))]
    return replace(survey(), blocks=tuple(blocks), strata=strata)


def block(random: Random, i: int, cells: int) -> Block:
    mechanism = DenseMechanism(
        4, tuple((w, 16 - w) for w in random.choice([(9, 7), (12, 4), (16, 8), (10, 4), (0, 16)]))
    )
    promises = tuple(promise(random, cells) for _ in range(random.randint(1, 4)))
    questions = (question(f"q{i}", "no", "yes"),)
    return Block(
        f"b{i}", questions, mechanism, promises, (1, 1), stated_ceiling(mechanism), "made-up", None
    )


def promise(random: Random, cells: int) -> Promise:
    notion = random.choice([*NOTIONS, "lip", "dp"])
    ratio = ratio_of(random)
    if notion == "ldp":
        return Promise(Claim(notion, ratio))
    if notion == "dp":
        return Promise(Claim(notion, ratio, delta=(random.randint(0, 3), 100)))
    if notion == "metric-ldp":
        levels = [[None, ratio], [random.choice([None, ratio_of(random)]), None]]
        one_way = tuple(
            tuple(row)
            for row in (levels if random.random() < 0.5 else [row[::-1] for row in levels[::-1]])
        )
        return Promise(Claim(notion, random.choice([(1, 1), (3, 2)]), levels=one_way))
    secret = random.choice("ab")
    if notion == "rldp":
        bounds = (((1, random.randint(2, 3)),), ((1, 4),))
        return Promise(Claim(notion, ratio, lower_bounds=bounds), None, secret, SOURCE)
    secret_prior = prior(random, secret, cells)
    claim = Claim(notion, ratio, joint=secret_prior.table)
    if notion == "alip":
        sides = [ratio, random.choice([ratio_of(random), None])]
        random.shuffle(sides)
        claim = replace(claim, level=sides[0], low_level=sides[1])
    if notion == "srlip":
        claim = replace(claim, attributes=(2,))
    if notion == "dpv":
        claim = replace(claim, level=ratio[::-1], sensitive=random.randrange(2))
    return Promise.under(claim, secret_prior)


def ratio_of(random: Random) -> tuple[int, int]:
    return random.randint(5, 8), random.randint(3, 5)


def prior(random: Random, secret: str, cells: int) -> Prior:
    """Draw one table, or one per stratum, with two rows, a diagonal, or one row; some rows are empty."""
    tables = []
    shape = random.choice(["rows", "rows", "diagonal", "one row"])
    for _ in range(random.choice([1, cells])):
        n, m = random.choice([(1, 2), (2, 2), (1, 1)])
        if random.random() < 0.1:
            n = 0
        cell = {"rows": ((n, n), (m, 1)), "diagonal": ((n, 0), (0, m)), "one row": ((n, m),)}
        tables.append(cell[shape])
    names = random.choice(
        [("no", "yes")] * 6 + [("yes", "no"), ("low", "high")]
    )  # sometimes about different secrets
    return Prior(secret, names, tuple(tables), SOURCE)


def as_texts(ratio: Fraction | None) -> list[str] | None:
    """Return a ratio as two decimal numbers, or None if it is infinite."""
    return None if ratio is None else [str(n) for n in ratio.as_integer_ratio()]


def stratified() -> dict[str, SurveyDocument]:
    """Return documents with a prior for each stratum that promise exactly the level of the worst stratum."""
    regions = question("region", "north", "south", "east")
    by_name = {}
    for kind in KINDS:
        for notion in ("secret-ldp", "lip", "alip", "srlip", "dpv"):
            promise_within = within(KINDS[kind], notion)
            block_within = replace(every_kind_block(kind, notion), promises=(promise_within,))
            by_name[f"{kind} {notion}"] = replace(
                survey(), blocks=(block_within,), strata=(regions,)
            )
    return by_name


TABLES = (
    JOINT,
    ((1, 2, 3, 4), (0, 0, 0, 0), (3, 1, 1, 2)),  # a stratum without the second secret
    ((0, 0, 0, 0), (0, 0, 0, 0), (2, 5, 1, 1)),  # a stratum where everybody has the third secret
)


def within(mechanism: Mechanism, notion: str) -> Promise:
    """Return the promise with the smallest level that the mechanism satisfies in every stratum."""
    original = every_kind_promise(mechanism, notion)
    assert original.prior is not None
    stratified_prior = replace(original.prior, tables=TABLES)
    claim = replace(original.claim, joint=stratified_prior.table)
    levels: dict[str, Fraction] = {}
    for stratum_claim in replace(original, prior=stratified_prior, claim=claim).claims:
        for name, ratio in needed(mechanism, stratum_claim).items():
            assert ratio is not None
            levels[name] = max(ratio, levels.get(name, Fraction(0)))
    exact: dict[str, Any] = {name: ratio.as_integer_ratio() for name, ratio in levels.items()}
    return replace(original, prior=stratified_prior, claim=replace(claim, **exact))


BUDGET = {
    "left_after": "leftAfter",
    "is_answered": "isAnswered",
    "is_final": "isFinal",
    "can_answer": "canAnswer",
}
AT = NOW.timestamp() * 1000
PAGE = b"""<!doctype html><html lang=en><meta name=viewport content="width=device-width, initial-scale=1">
<title>A form</title><style>
:root { color-scheme: light dark }
body { margin: 1rem; font: 1rem/1.5 sans-serif; background: light-dark(#fff, #111) }
main { max-width: 42rem; margin: auto }
</style><main></main>"""


SHOW = """async ([link, at]) => {
  const {FranklySurvey} = await import("/sdk/element.js"), survey = new FranklySurvey();
  const {withSeams} = await import("/sdk/testing.js");
  survey.options = withSeams({spreadMs: 0}, {now: () => at});
  survey.setAttribute("link", link);
  document.querySelector("main").append(survey);
}"""
