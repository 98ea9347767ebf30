# SPDX-License-Identifier: Apache-2.0
"""Implications between notions, read from the tables of docs/maths/notions.md and checked.

Levels are computed from the definitions (`needed`), not by the verifier.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, permutations, product
from pathlib import Path

import pytest
from frankly_protocol.audit import NOTIONS, Claim
from frankly_protocol.mechanisms import DenseMechanism
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frankly_protocol.audit.definitions import ONE, mechanisms_over, needed

Joint = tuple[tuple[int, ...], ...]
PAGE = (Path(__file__).resolve().parents[3] / "docs" / "maths" / "notions.md").read_text("utf-8")
ALIASES = ("pml", "pmc")
UNBOUNDED = ("ldp", "secret-ldp", "lip", "alip", "pmc", "srlip", "rldp", "metric-ldp")
"""The notions that some mechanism satisfies at no finite level."""


ALIKE = tuple(tuple((2, 1) if x != z else None for z in range(4)) for x in range(4))


@dataclass(frozen=True)
class World:
    """A mechanism over four answers (2 × 2 attributes), and the counts [s][x] of a secret.

    bounds : lower bounds of rldp, whose answers are the pairs (s, u). F : the level of dp. levels :
    levels of pairs of answers, for metric-ldp.
    """

    mechanism: DenseMechanism
    joint: Joint
    bounds: tuple[tuple[tuple[int, int], ...], ...] = (((0, 1),) * 2,) * 2
    F: Fraction = Fraction(1)
    levels: tuple[tuple[tuple[int, int] | None, ...], ...] = ALIKE

    def level(self, notion: str) -> Fraction | None:
        """Return the least level at which the mechanism satisfies the notion, or None if there is none."""
        claims = {
            "ldp": Claim("ldp", ONE),
            "dp": Claim("dp", self.F.as_integer_ratio(), delta=(0, 1)),
            "rldp": Claim("rldp", ONE, lower_bounds=self.bounds),
            "metric-ldp": Claim("metric-ldp", ONE, levels=self.levels),
        }
        name, of_answer = notion.removesuffix(" of X"), notion.endswith(" of X")
        joint = self._of_answer() if of_answer else self.joint
        under_prior = {
            "srlip": Claim("srlip", ONE, joint, attributes=(2, 2)),
            "dpv": Claim("dpv", ONE, joint, sensitive=0),
        }
        if name in ("alip", *ALIASES):
            sides = needed(self.mechanism, Claim("alip", ONE, joint, low_level=ONE))
            high, low = sides["level"], sides["low_level"]
            if name == "alip":
                return None if high is None or low is None else max(high, low)
            return high if name == "pml" else low
        claim = claims.get(name) or under_prior.get(name) or Claim(name, ONE, joint)
        (level,) = needed(self.mechanism, claim).values()
        return level

    def letters(self, notion: str) -> dict[str, Fraction | None]:
        """Return the values of the letters in the page's formulas for an arrow from a notion."""
        sizes = [sum(row) for row in self._joint_of(notion)]
        letters: dict[str, Fraction | None] = {
            "p": Fraction(min(sizes), sum(sizes)),
            "q": Fraction(sizes[0], sum(sizes)),
            "F": self.F,
        }
        pairs = [self.levels[x][z] for x, z in permutations(range(4), 2)]
        ratios = [Fraction(*ratio) for ratio in pairs if ratio]
        letters |= {"V": min(ratios), "W": max(ratios) if all(pairs) else Fraction(0)}
        if notion == "alip":
            return letters | {"L": self.level("pmc"), "H": self.level("pml")}
        return letters | {"D" if notion == "dp" else "E": self.level(notion)}

    def _joint_of(self, notion: str) -> Joint:
        return self._of_answer() if notion.endswith(" of X") else self.joint

    def _of_answer(self) -> Joint:
        shares = [sum(column) for column in zip(*self.joint, strict=True)]
        return tuple(tuple(n if x == z else 0 for z in range(4)) for x, n in enumerate(shares))


@dataclass(frozen=True)
class Arrow:
    """A row of the page's first table after the definitions."""

    source: str
    target: str
    formula: str
    condition: str
    sharp: str

    def bound(self, world: World) -> Fraction | None:
        """Return the level that the page states for the target, or None if it states none."""
        letters = world.letters(self.source)
        if None in letters.values():
            return None
        # Evaluating the formulas is safe, because they come from a page of this repository.
        names: dict[str, object] = {**letters, "max": max, "__builtins__": {}}
        if self.condition and not eval(self.condition, names):
            return None
        return Fraction(eval(self.formula, names))


def rows(heading: str) -> list[list[str]]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    return [[cell.strip("`") for cell in row] for row in cells]


ARROWS = [Arrow(*row[:5]) for row in rows("Arrows")]
MISSING = [(row[0], row[1]) for row in rows("No arrows")]


def quiet(mechanism: DenseMechanism) -> DenseMechanism:
    """Return a mechanism with low levels: one draw in 32 uses the mechanism, the others ignore the answer."""
    rows = mechanism.weights
    mixed = (tuple(31 * m + n for m, n in zip(rows[0], row, strict=True)) for row in rows)
    return DenseMechanism(mechanism.bits + 5, tuple(mixed))


@st.composite
def worlds(draw: st.DrawFn, *, pairs: bool) -> World:
    count = st.integers(1, 9)
    if pairs:
        (a, b), (c, d) = draw(st.tuples(st.tuples(count, count), st.tuples(count, count)))
        joint: Joint = ((a, b, 0, 0), (0, 0, c, d))
        # The bounds lie below the true conditional probabilities, so that these are in the
        # polytope.
        parts = st.integers(0, 4)
        bounds = tuple(
            tuple((draw(parts) * n, 4 * sum(row)) for n in row) for row in ((a, b), (c, d))
        )
    else:
        secrets = draw(st.integers(2, 3))
        joint = tuple(
            draw(st.tuples(*(st.integers(int(s == 0), 9) for _ in range(4))))
            for s in range(secrets)
        )
        joint = tuple(row if any(row) else (1, 0, 0, 0) for row in joint)
        bounds = (((0, 1),) * 2,) * 2
    mechanism = draw(mechanisms_over(4))
    if draw(st.booleans()):
        mechanism = quiet(mechanism)
    ldp = needed(mechanism, Claim("ldp", ONE))["level"]
    F = draw(st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(3), ldp or Fraction(2)]))
    ratio = st.sampled_from(
        [(1, 1), (3, 2), (5, 2), (7, 1), *([None] if draw(st.booleans()) else [])]
    )
    levels = [[draw(ratio) if x != z else None for z in range(4)] for x in range(4)]
    levels[0][1] = levels[0][1] or (2, 1)
    return World(mechanism, joint, bounds, F, tuple(map(tuple, levels)))


@pytest.mark.parametrize("arrow", ARROWS, ids=lambda a: f"{a.source} to {a.target}")
def test_arrows_hold_for_random_mechanisms(arrow: Arrow, full: bool) -> None:
    """The test draws twenty random mechanisms for each arrow, or two hundred with --full."""
    bounded = 0

    @settings(max_examples=200 if full else 20, deadline=None)
    @given(worlds(pairs="rldp" in (arrow.source, arrow.target)))
    def tried(world: World) -> None:
        nonlocal bounded
        bound = arrow.bound(world)
        if bound is not None:
            bounded += 1
            level = world.level(arrow.target)
            assert level is not None
            assert level <= bound

    # Conditions of some arrows hold for few mechanisms; chance must not decide whether there are three of these.
    for _ in range(20):
        tried()
        if bounded >= 3:
            break
    assert bounded >= 3


def one_column(*weights: int) -> DenseMechanism:
    """Return a mechanism with two reports: one has this column, in 4096ths, and one is nearly
    uninformative."""
    return DenseMechanism(12, tuple((n, 4096 - n) for n in weights))


DIAGONAL: Joint = ((1, 0, 0, 0), (0, 2, 0, 0), (0, 0, 3, 0), (0, 0, 0, 4))
RARE: Joint = ((1, 0, 0, 0), (0, 10**6, 0, 0), (0, 0, 10**6, 0), (0, 0, 0, 10**6))
FIRST_BIT: Joint = ((1, 1, 0, 0), (0, 0, 1, 1))
EXACT = (((1, 2), (1, 2)),) * 2
RISE, FALL, BOTH = one_column(4, 1, 1, 1), one_column(1, 2, 2, 2), one_column(4, 1, 2, 2)
WARNER = DenseMechanism(4, ((12, 4), (4, 12), (4, 12), (4, 12)))
SENT = DenseMechanism(4, ((16, 0, 0, 0), (0, 16, 0, 0), (0, 0, 16, 0), (0, 0, 0, 16)))
LAST_BIT = DenseMechanism(4, ((16, 0), (0, 16), (16, 0), (0, 16)))
XOR = DenseMechanism(4, ((16, 0), (0, 16), (0, 16), (16, 0)))
NEAR = tuple(
    tuple(None if x == z else (3, 2) if x == 0 else (2, 1) for z in range(4)) for x in range(4)
)
OPEN = (*ALIKE[:1], (None,) * 4, (None,) * 4, (None,) * 4)
INDEPENDENT: Joint = ((1, 1, 1, 1), (1, 1, 1, 1))

EXAMPLES: dict[tuple[str, str], World] = {
    ("ldp", "secret-ldp"): World(RISE, DIAGONAL),
    ("ldp", "srlip"): World(RISE, RARE),
    ("ldp", "rldp"): World(RISE, FIRST_BIT),
    ("ldp", "dp"): World(WARNER, DIAGONAL, F=Fraction(2)),
    ("ldp", "metric-ldp"): World(RISE, DIAGONAL, levels=NEAR),
    ("metric-ldp", "ldp"): World(RISE, DIAGONAL),
    ("dp", "ldp"): World(WARNER, DIAGONAL, F=Fraction(3)),
    ("secret-ldp", "pml"): World(RISE, DIAGONAL),
    ("secret-ldp", "pmc"): World(FALL, DIAGONAL),
    ("secret-ldp", "lip"): World(FALL, DIAGONAL),
    ("pml", "lip"): World(FALL, DIAGONAL),
    ("pmc", "lip"): World(RISE, DIAGONAL),
    ("rldp", "secret-ldp"): World(BOTH, FIRST_BIT, EXACT),
    ("srlip", "lip"): World(one_column(4, 4, 1, 1), FIRST_BIT),
    ("lip", "alip"): World(BOTH, DIAGONAL),
    ("alip", "lip"): World(BOTH, DIAGONAL),
    ("alip", "pml"): World(BOTH, DIAGONAL),
    ("alip", "pmc"): World(BOTH, DIAGONAL),
    ("alip", "secret-ldp"): World(one_column(6, 1, 2, 2), DIAGONAL),
    ("lip", "secret-ldp"): World(BOTH, DIAGONAL),
    ("pml", "pmc"): World(FALL, DIAGONAL),
    ("pml", "secret-ldp"): World(FALL, DIAGONAL),
    ("pmc", "pml"): World(RISE, DIAGONAL),
    ("pmc", "secret-ldp"): World(RISE, DIAGONAL),
    ("pml", "dpv"): World(RISE, DIAGONAL),
    ("secret-ldp of X", "ldp"): World(RISE, DIAGONAL),
    ("ldp", "secret-ldp of X"): World(RISE, DIAGONAL),
    ("pml of X", "pml"): World(RISE, DIAGONAL),
    ("pmc of X", "pmc"): World(FALL, DIAGONAL),
    ("lip of X", "lip"): World(BOTH, DIAGONAL),
}
COUNTEREXAMPLES: dict[tuple[str, str], World] = {
    ("secret-ldp", "ldp"): World(SENT, INDEPENDENT),
    ("secret-ldp", "srlip"): World(LAST_BIT, ((1, 0, 0, 1), (0, 1, 1, 0))),
    ("secret-ldp", "rldp"): World(LAST_BIT, FIRST_BIT),
    ("srlip", "ldp"): World(SENT, INDEPENDENT),
    ("srlip", "rldp"): World(LAST_BIT, FIRST_BIT),
    ("rldp", "ldp"): World(LAST_BIT, FIRST_BIT, EXACT),
    ("rldp", "srlip"): World(XOR, FIRST_BIT, EXACT),
    ("pml", "pmc"): World(one_column(0, 1, 1, 1), DIAGONAL),
    ("secret-ldp", "metric-ldp"): World(SENT, INDEPENDENT),
    ("srlip", "metric-ldp"): World(SENT, INDEPENDENT),
    ("rldp", "metric-ldp"): World(LAST_BIT, FIRST_BIT, EXACT),
    ("metric-ldp", "pmc"): World(
        one_column(1, 1, 1, 0), DIAGONAL, levels=(*OPEN[1:], (*ALIKE[3],))
    ),
    ("dp", "metric-ldp"): World(one_column(1, 0, 0, 0), DIAGONAL),
    ("dpv", "pmc"): World(one_column(1, 0, 1, 1), DIAGONAL),
    ("dp", "pmc"): World(one_column(1, 0, 0, 0), DIAGONAL),
}


@pytest.mark.parametrize(
    "arrow", [arrow for arrow in ARROWS if arrow.sharp], ids=lambda a: f"{a.source} to {a.target}"
)
def test_sharp_levels_are_attained(arrow: Arrow) -> None:
    world = EXAMPLES[arrow.source, arrow.target]
    bound, level = arrow.bound(world), world.level(arrow.target)
    assert bound is not None
    assert level is not None
    assert bound > 1 or arrow.target in ("dp", "dpv")
    if arrow.sharp == "yes":
        assert level == bound
    else:
        assert arrow.sharp == "p → 0"
        assert 0 <= bound - level < Fraction(1, 10**4)


def test_every_arrow_is_called_sharp() -> None:
    assert set(EXAMPLES) == {(arrow.source, arrow.target) for arrow in ARROWS if arrow.sharp}
    assert len(EXAMPLES) == len(ARROWS)


@pytest.mark.parametrize(("source", "target"), MISSING)
def test_missing_arrows_have_counterexamples(source: str, target: str) -> None:
    world = COUNTEREXAMPLES[source, target]
    level = world.level(source)
    assert level is not None
    # The level of dp and dpv is always finite, so a small level is required.
    if source in ("dp", "dpv"):
        assert level < Fraction(1, 2)
    assert world.level(target) is None


def closed(arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Return the reflexive and transitive closure of the arrows."""
    reach = {(notion, notion) for notion in (*NOTIONS, *ALIASES)} | arrows
    for middle, first, last in product((*NOTIONS, *ALIASES), repeat=3):
        if (first, middle) in reach and (middle, last) in reach:
            reach.add((first, last))
    return reach


UNCONDITIONAL = {(arrow.source, arrow.target) for arrow in ARROWS if not arrow.condition}


def test_the_diagram_has_the_arrows_that_hold_at_every_level() -> None:
    (diagram,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    drawn = {step for line in diagram.splitlines() for step in pairwise(line.split(" → "))}
    assert drawn <= UNCONDITIONAL
    named = {pair for pair in UNCONDITIONAL if not any(" of X" in notion for notion in pair)}
    assert closed(drawn) == closed(named)


def test_every_pair_of_notions_is_settled() -> None:
    """Arrows and counterexamples decide every pair: A ⇏ B if C ⇒ A, B ⇒ D and C ⇏ D."""
    assert set(COUNTEREXAMPLES) == set(MISSING)
    reach = closed(UNCONDITIONAL)
    for source, target in product((*NOTIONS, *ALIASES), UNBOUNDED):
        refuted = any(
            (first, source) in reach and (target, last) in reach for first, last in MISSING
        )
        assert ((source, target) in reach) != refuted, (source, target)


def test_the_page_names_every_notion() -> None:
    table = PAGE.split("\n## ")[0]
    assert re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE) == sorted(
        (*NOTIONS, *ALIASES), key=table.index
    )
    assert set(re.findall(r"^\| `([\w-]+)` \|", table, re.MULTILINE)) == {*NOTIONS, *ALIASES}
