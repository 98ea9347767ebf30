# SPDX-License-Identifier: Apache-2.0
"""Random small worlds, and survey documents whose published tables are true in them.

A world is a joint distribution of secrets, answers and public answers, as counts. A document
promises the least level of its mechanisms for the world's tables, pooled or in every stratum.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import lcm, prod
from random import Random
from typing import Any

from frankly_protocol.audit import Claim, stated_ceiling, worst
from frankly_protocol.audit.data import Joint, Ratio
from frankly_protocol.blocks import Block, Prior, Promise
from frankly_protocol.canonical import MAX_INT
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.mechanisms.agreement import Component, Cover, Pool

from tests.frankly_protocol.samples import question, survey

Cell = tuple[tuple[int, ...], tuple[int, ...], int]
"""The secrets' values, the joint answer to every block, and the stratum."""
World = Mapping[Cell, int]
ONE = (1, 1)
MAX_REPORTS = 128
"""Maximum number of reports that a document can send; the tests enumerate all of them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a world.

    secrets : number of values of each secret. names : names of the secrets; two may be equal.
    questions : number of choices of each question, by block. strata : number of choices of each
    public question. linked : block → the secret that the first part of the block's answer
    determines.
    """

    secrets: tuple[int, ...]
    questions: tuple[tuple[int, ...], ...]
    strata: tuple[int, ...]
    linked: Mapping[int, int]
    names: tuple[str, ...] = ("s0", "s1")

    def width(self, i: int) -> int:
        """Return the number of answers to block i for each value of the secret that the answers determine."""
        return prod(self.questions[i]) // self.secrets[self.linked[i]]

    def cells(self) -> Iterator[Cell]:
        """Yield every cell that the links permit."""
        answers = [range(prod(sizes)) for sizes in self.questions]
        for s, x in product(product(*map(range, self.secrets)), product(*answers)):
            if all(x[i] // self.width(i) == s[r] for i, r in self.linked.items()):
                yield from ((s, x, z) for z in range(prod(self.strata)))


@dataclass(frozen=True, slots=True)
class Source:
    """A block's promise and the index of the world where the promise holds; if secret is None, in
    all worlds."""

    promise: Promise
    world: int = 0
    secret: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """A document, the worlds where one table of each block is true, and the sources of its promises."""

    seed: int
    shape: Shape
    document: SurveyDocument
    worlds: tuple[World, ...]
    sources: tuple[Source, ...]


def case(seed: int) -> Case:
    """Return the random case of a seed."""
    rng = Random(seed)
    while True:
        shape, mechanisms = _shape(rng)
        robust = bool(shape.linked) and not shape.strata and rng.random() < 0.5
        worlds = [
            _world(rng, shape, full=robust)
            for _ in range(1 if robust or rng.random() < 0.75 else 2)
        ]
        if None in worlds:
            continue
        possible = [world for world in worlds if world is not None]
        blocks = [
            _block(rng, shape, i, mechanism, possible, robust)
            for i, mechanism in enumerate(mechanisms)
        ]
        drawn = [block for block in blocks if block is not None]
        if len(drawn) < len(blocks):
            continue
        strata = tuple(
            question(f"public-{j}", *map(str, range(size))) for j, size in enumerate(shape.strata)
        )
        document = replace(survey(), blocks=tuple(block for block, _ in drawn), strata=strata)
        sources = tuple(source for _, block_sources in drawn for source in block_sources)
        return Case(
            seed, shape, document, tuple(_true_worlds(shape, document, possible, robust)), sources
        )


def table(shape: Shape, world: World, i: int, r: int, z: int | None = None) -> Joint:
    """Return the counts [s][x] of secret r and the answers to block i, in a stratum or pooled."""
    rows = [[0] * prod(shape.questions[i]) for _ in range(shape.secrets[r])]
    for (s, x, stratum), n in world.items():
        if z in (None, stratum):
            rows[s[r]][x[i]] += n
    return tuple(map(tuple, rows))


def _shape(rng: Random) -> tuple[Shape, list[AnyMechanism]]:
    secrets = tuple(rng.choice((2, 2, 3)) for _ in range(rng.choice((1, 1, 2))))
    strata = rng.choice(((), (), (2,), (3,), (2, 2)))
    questions: list[tuple[int, ...]] = []
    mechanisms: list[AnyMechanism] = []
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        sizes: tuple[int, ...] = rng.choice(((2,), (2,), (3,), (4,), (2, 2)))
        mechanism: AnyMechanism = _mechanism(rng, sizes)
        if rng.random() < 0.15 and not isinstance(mechanism, AgreementMechanism):
            mechanism = _fine(rng, mechanism)
        reports = prod(len(list(m.symbols())) for m in [*mechanisms, mechanism])
        if reports <= MAX_REPORTS and prod(map(prod, [*questions, sizes])) <= 16:
            questions.append(sizes)
            mechanisms.append(mechanism)
    linked = {}
    for i, sizes in enumerate(questions):
        r = rng.randrange(len(secrets))
        if prod(sizes) % secrets[r] == 0 and rng.random() < (
            0.3 if prod(sizes) == secrets[r] else 0.7
        ):
            linked[i] = r
    names = ("s0", "s0") if rng.random() < 0.2 else ("s0", "s1")
    return Shape(secrets, tuple(questions), strata, linked, names), mechanisms


def _mechanism(rng: Random, sizes: tuple[int, ...]) -> AnyMechanism:
    kinds = ("dense", "dense", "dense", "unary", "subset", "product", "agreement")
    answers, kind = prod(sizes), rng.choice(kinds)
    if kind == "agreement":
        return agreement(rng, sizes)
    if kind == "unary":
        keep, flip = (
            rng.sample(range(1, 16), 2)
            if rng.random() < 0.8
            else rng.choice(((16, 0), (16, 5), (9, 0)))
        )
        return UnaryMechanism(4, answers, keep, flip)
    if kind == "subset":
        return SubsetMechanism(4, answers, rng.randint(1, answers - 1), rng.randint(1, 16))
    if kind == "product" and len(sizes) > 1:
        return ProductMechanism(tuple(_dense(rng, size) for size in sizes))
    return _dense(rng, answers)


def agreement(rng: Random, sizes: tuple[int, ...]) -> AgreementMechanism:
    """Return a random form with one or two components over the questions, or over all questions as
    one part."""
    parts: list[tuple[int, ...]] = [(i,) for i in range(len(sizes))]
    whole = tuple(range(len(sizes)))
    if len(sizes) > 1 and prod(sizes) <= 8 and rng.random() < 0.5:
        parts.append(whole)
    chances = rng.choice(((16,), (5, 11), (8, 8)))
    components = []
    for chance in chances:
        if (whole in parts) and len(whole) > 1 and rng.random() < 0.4:
            pools: tuple[Pool, ...] = (Pool((parts.index(whole),), 1, _cover(rng, prod(sizes))),)
        elif len(set(sizes)) == 1 and rng.random() < 0.5:
            pick = rng.randint(1, len(sizes))
            cover = _cover(rng, sizes[0])
            pools = (Pool(tuple(range(len(sizes))), pick, cover, rng.randint(1, 2)),)
        else:
            drawn = sorted(rng.sample(range(len(sizes)), rng.randint(1, len(sizes))))
            pools = tuple(Pool((i,), 1, _cover(rng, sizes[i]), rng.randint(1, 2)) for i in drawn)
        most = sum(pool.pick * pool.score for pool in pools)
        components.append(Component(chance, rng.randint(1, most), pools))
    used = {part for component in components for pool in component.pools for part in pool.parts}
    # The last component draws every question that no other component draws; a joint part may stay
    # unused.
    if missing := [i for i in range(len(sizes)) if i not in used]:
        pools = tuple(Pool((i,), 1, _cover(rng, sizes[i])) for i in missing)
        components[-1] = Component(chances[-1], rng.randint(1, len(missing)), pools)
        used = {part for component in components for pool in component.pools for part in pool.parts}
        if not set(range(len(sizes))) <= used:
            return agreement(rng, sizes)
    parts = [part for i, part in enumerate(parts) if i in used]
    disagree = rng.randint(1, 5)
    return AgreementMechanism(
        4, rng.randint(disagree, 12), disagree, sizes, tuple(parts), tuple(components)
    )


def _cover(rng: Random, answers: int) -> Cover:
    """Return all sets of one size, or random divisions of a scale into two, each with a random weight."""
    if rng.random() < 0.6:
        return Cover(answers, rng.randint(1, answers - 1))
    full, listed = (1 << answers) - 1, []
    for cut in sorted(rng.sample(range(1, answers), rng.randint(1, answers - 1))):
        weight = rng.randint(1, 3)
        listed += [((1 << cut) - 1, weight), (full ^ ((1 << cut) - 1), weight)]
    return Cover(answers, None, tuple(listed))


def _dense(rng: Random, answers: int) -> DenseMechanism:
    reports, lowest = rng.choice((2, 2, 3, 4)), rng.choice((0, 1, 1, 2))
    rows = []
    for _ in range(answers):
        cuts = sorted(rng.randint(0, 16 - lowest * reports) for _ in range(reports - 1))
        ends = [*cuts, 16 - lowest * reports]
        rows.append(
            [lowest + after - before for before, after in zip([0, *cuts], ends, strict=True)]
        )
    used = [y for y in range(reports) if any(row[y] for row in rows)]
    return DenseMechanism(4, tuple(tuple(row[y] for y in used) for row in rows))


def _fine(rng: Random, mechanism: Mechanism) -> Mechanism:
    """Return nearly the same mechanism with 48 bits, so that levels and ceiling must be rounded up."""

    def near(n: int) -> int:
        return n << 44 if n in (0, 16) else (n << 44) + rng.getrandbits(40)

    if isinstance(mechanism, UnaryMechanism):
        return UnaryMechanism(48, mechanism.answers, near(mechanism.keep), near(mechanism.flip))
    if isinstance(mechanism, SubsetMechanism):
        return SubsetMechanism(48, mechanism.answers, mechanism.size, near(mechanism.inside))
    if isinstance(mechanism, ProductMechanism):
        return ProductMechanism(tuple(_fine_table(rng, factor) for factor in mechanism.factors))
    assert isinstance(mechanism, DenseMechanism)
    return _fine_table(rng, mechanism)


def _fine_table(rng: Random, mechanism: DenseMechanism) -> DenseMechanism:
    rows = []
    for weights in mechanism.weights:
        row = [w << 44 for w in weights]
        units, largest = rng.getrandbits(40), row.index(max(row))
        row[largest] -= units
        row[max(y for y, w in enumerate(row) if w)] += units
        rows.append(tuple(row))
    return DenseMechanism(48, tuple(rows))


def _world(rng: Random, shape: Shape, *, full: bool) -> World | None:
    """Return the counts, or None if a stratum or a value of a secret has no count."""
    style = "full" if full else rng.choice(("full", "full", "sparse", "sum", "sum"))
    share = rng.uniform(0.2, 0.9)
    world: dict[Cell, int] = {}
    for s, x, z in shape.cells():
        # "sum": the first secret is the sum of all answers and the stratum, like S = X xor Z.
        allowed = {
            "full": True,
            "sparse": rng.random() < share,
            "sum": (sum(x) + z) % shape.secrets[0] == s[0] or rng.random() < 0.02,
        }
        if allowed[style]:
            world[s, x, z] = 1 if style == "sum" else rng.choice((1, 1, 2, 3, 9))
    seen_secrets = [{s[r] for s, _, _ in world} for r in range(len(shape.secrets))]
    strata = {z for _, _, z in world}
    every_stratum = len(strata) == prod(shape.strata)
    every_secret = [len(values) for values in seen_secrets] == list(shape.secrets)
    return world if every_stratum and every_secret else None


def _block(
    rng: Random,
    shape: Shape,
    i: int,
    mechanism: AnyMechanism,
    worlds: Sequence[World],
    robust: bool,
) -> tuple[Block, list[Source]] | None:
    """Return a block with true promises and their sources, or None if the block has no promise."""
    sources: list[Source] = []
    if isinstance(mechanism, AgreementMechanism):
        level = mechanism.level.as_integer_ratio()
        sources.append(Source(Promise(Claim("ldp", level))))
    elif rng.random() < (0.7 if robust else 0.75):
        for r in rng.sample(range(len(shape.secrets)), rng.randint(1, len(shape.secrets))):
            if robust or (shape.linked.get(i) == r and rng.random() < 0.2):
                drawn = [(_robust(rng, shape, i, r, mechanism, worlds), 0)]
            else:
                drawn = [
                    (_promise(rng, shape, i, r, mechanism, world), w)
                    for w, world in enumerate(worlds)
                    for _ in range(rng.choice((1, 1, 2)))
                ]
            valid = [Source(promise, w, r) for promise, w in drawn if promise is not None]
            # A world is possible only if every block has its table for each of the block's secrets.
            if robust or {source.world for source in valid} == {w for _, w in drawn}:
                sources += valid
    if not isinstance(mechanism, AgreementMechanism) and (not sources or rng.random() < 0.3):
        sources += map(Source, _prior_free(rng, mechanism))
    if not sources:
        return None
    rng.shuffle(sources)
    block = Block(
        id=f"block-{i}",
        questions=tuple(
            question(f"q-{i}-{j}", *map(str, range(n))) for j, n in enumerate(shape.questions[i])
        ),
        mechanism=mechanism,
        promises=tuple(source.promise for source in sources),
        design_prior=(1,)
        * (
            sum(mechanism.choices)
            if isinstance(mechanism, AgreementMechanism)
            else mechanism.answers
        ),
        ceiling=stated_ceiling(mechanism),
        mechanism_name="made-up",
        certificate=None,
    )
    return block, sources


def _prior_free(rng: Random, mechanism: Mechanism) -> Iterator[Promise]:
    ceiling = stated_ceiling(mechanism)
    if ceiling is not None and rng.random() < 0.5:
        yield Promise(Claim("ldp", ceiling.as_integer_ratio()))
        return
    if rng.random() < 0.2:
        a = mechanism.answers
        some = [
            [rng.choice((None, (3, 2), (9, 2))) if x != z else None for z in range(a)]
            for x in range(a)
        ]
        some[0][1] = (2, 1)
        claim = Claim("metric-ldp", ONE, levels=tuple(map(tuple, some)))
        factor = worst(mechanism, claim).ratio
        if factor is not None and factor <= 1 << 20:
            yield Promise(replace(claim, level=_up(factor)))
    for level in rng.sample(((1, 1), (3, 2), (2, 1), (4, 1)), rng.choice((1, 2))):
        delta = worst(mechanism, Claim("dp", level, delta=(0, 1))).ratio
        if delta is not None and delta < 0.99:
            yield Promise(Claim("dp", level, delta=_up(delta)))


def _up(ratio: Fraction) -> Ratio:
    """Return the ratio, rounded up if its numbers are not below 2^53."""
    if max(ratio.as_integer_ratio()) <= MAX_INT:
        return ratio.as_integer_ratio()
    return -(-ratio.numerator * 2**32 // ratio.denominator), 2**32


def _promise(
    rng: Random, shape: Shape, i: int, r: int, mechanism: Mechanism, world: World
) -> Promise | None:
    """Return a promise about secret r for the world's tables, or None if its level is 0 or > 2^20."""
    notion = rng.choice(("secret-ldp", "lip", "lip", "alip", "srlip", "dpv"))
    strata = prod(shape.strata)
    is_stratified = strata > 1 and rng.random() < 0.75
    tables = [table(shape, world, i, r, z) for z in (range(strata) if is_stratified else (None,))]
    is_answer = shape.linked.get(i) == r and shape.width(i) == 1
    # If the answer is the secret, the prior is one row, which the verifier expands to a diagonal.
    short = [(tuple(map(sum, zip(*rows, strict=True))),) if is_answer else rows for rows in tables]
    values = tuple(f"s{r}-{v}" for v in range(shape.secrets[r]))
    prior = Prior(shape.names[r], values, tuple(short), "the world's own counts")
    claim = Claim(
        notion,
        ONE,
        table(shape, world, i, r),
        low_level=ONE if notion == "alip" else None,
        attributes=shape.questions[i] if notion == "srlip" else None,
        sensitive=rng.randrange(shape.secrets[r]) if notion == "dpv" else None,
    )
    needed = _needed(mechanism, claim, tables)
    if notion == "alip" and rng.random() < 0.3:
        side = rng.choice(("level", "low_level"))
        unbounded: dict[str, Any] = {side: None}
        claim = replace(claim, **unbounded)
        del needed[side]
    levels: dict[str, Any] = {}
    for name, ratio in needed.items():
        if ratio is None or not ratio or ratio > 1 << 20:
            return None
        levels[name] = _up(ratio)
    return Promise.under(replace(claim, **levels), prior)


def _needed(
    mechanism: Mechanism, claim: Claim, tables: Sequence[Joint]
) -> dict[str, Fraction | None]:
    """Return the least levels at which the claim holds in every table, without empty rows."""
    start = Fraction(claim.notion != "dpv")
    levels: dict[str, Fraction | None] = {"level": start}
    if claim.notion == "alip":
        levels["low_level"] = start
    for rows in tables:
        present = [s for s, row in enumerate(rows) if any(row)]
        joint, sensitive = tuple(rows[s] for s in present), claim.sensitive
        if sensitive is not None and sensitive not in present:
            continue
        if len(present) == 1:
            if sensitive is not None:
                return {"level": None}  # the posterior is 1
            continue
        reduced = replace(
            claim, joint=joint, sensitive=None if sensitive is None else present.index(sensitive)
        )
        for name, ratio in worst(mechanism, reduced).needed.items():
            highest = levels[name]
            levels[name] = None if highest is None or ratio is None else max(highest, ratio)
    return levels


def _robust(
    rng: Random, shape: Shape, i: int, r: int, mechanism: Mechanism, worlds: Sequence[World]
) -> Promise | None:
    """Return an rldp promise whose bounds hold in all worlds, or None if block i cannot make one."""
    if shape.linked.get(i) != r or shape.width(i) < 2:
        return None
    width, bounds = shape.width(i), []
    tables = [table(shape, world, i, r) for world in worlds]
    for s in range(shape.secrets[r]):
        rows_of_s = [rows[s][s * width : (s + 1) * width] for rows in tables]
        shares = [min(Fraction(row[u], sum(row)) for row in rows_of_s) for u in range(width)]
        # All slack of the bounds lies on one u, so that a single world is a vertex of the ball.
        shares[rng.randrange(width)] = Fraction(0)
        bounds.append(tuple(share.as_integer_ratio() for share in shares))
    claim = Claim("rldp", ONE, lower_bounds=tuple(bounds), diagonal=rng.random() < 0.5)
    level = worst(mechanism, claim).ratio
    return (
        None
        if level is None
        else Promise(replace(claim, level=_up(level)), None, shape.names[r], "counts")
    )


def _true_worlds(
    shape: Shape, document: SurveyDocument, worlds: Sequence[World], robust: bool
) -> Iterator[World]:
    """Yield the worlds; for a robust document, also yield those at every vertex of its first ball."""
    yield from worlds
    balls = [
        (i, promise)
        for i, block in enumerate(document.blocks)
        for promise in block.promises
        if promise.claim.lower_bounds is not None
    ]
    # This is possible only if no other ball or table must be true in the same world.
    if robust and len(balls) == 1:
        i, promise = balls[0]
        width, bounds = shape.width(i), promise.claim.lower_bounds or ()
        for corner in product(range(width), repeat=len(bounds)):
            law: dict[int, Fraction] = {}
            for s, row in enumerate(bounds):
                L = [Fraction(*bound) for bound in row]
                law |= {s * width + u: L[u] + (1 - sum(L)) * (u == corner[s]) for u in range(width)}
            yield _moved(worlds[0], i, law)


def _moved(world: World, i: int, shares: Mapping[int, Fraction]) -> World:
    """Return the world with uniform secrets, P(x_i | s) = `shares`, and unchanged laws given x_i."""
    totals: dict[int, int] = {}
    for (_, x, _), n in world.items():
        totals[x[i]] = totals.get(x[i], 0) + n
    masses = {cell: n * shares[cell[1][i]] / totals[cell[1][i]] for cell, n in world.items()}
    scale = lcm(*(share.denominator for share in masses.values()))
    return {cell: int(share * scale) for cell, share in masses.items() if share}
