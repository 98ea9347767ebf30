# SPDX-License-Identifier: Apache-2.0
"""Second sampler and estimator, written from docs/protocol.md §7 and docs/maths without shared code."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, product
from math import ceil, floor, log2, prod
from typing import Any

from tests.vectors.second_arms import views

Matrix = list[list[Fraction]]


class Bits:
    """Random bits from a list; each draw must request the recorded number of bits."""

    def __init__(self, draws: list[list[Any]]) -> None:
        self.remaining = list(draws)

    def take(self, bits: int) -> int:
        """Return the next draw."""
        recorded_bits, value = self.remaining.pop(0)
        assert recorded_bits == bits
        return int(value, 16)

    def below(self, n: int) -> int:
        """Draw uniformly below n by rejection, with the fewest bits that can represent n - 1; no
        bits for n = 1."""
        bits = 0 if n == 1 else ceil(log2(n))
        while True:
            value = self.take(bits) if bits else 0
            if value < n:
                return value

    def large_below(self, n: int) -> int:
        """Draw uniformly below n of any size, in pieces of 48 bits, the highest first."""
        bits = len(f"{n - 1:b}") if n > 1 else 0
        while True:
            pieces = [self.take(min(48, bits - done)) for done in range(0, bits, 48)]
            value = 0
            for i, piece in enumerate(pieces):
                value = value * 2 ** min(48, bits - 48 * i) + piece
            if value < n:
                return value


def symbol(mechanism: dict[str, Any], truth: Any, bits: Bits) -> Any:
    """Return the symbol that a device sends for a truth."""
    draws: dict[str, Callable[[dict[str, Any], Any, Bits], Any]] = {
        "dense": _dense,
        "unary": _unary,
        "subset": _subset,
        "product": _product,
        "agreement": _agreement,
    }
    return draws[mechanism["kind"]](mechanism, truth, bits)


def _dense(mechanism: dict[str, Any], truth: int, bits: Bits) -> int:
    u = bits.take(mechanism["bits"])
    for y, weight in enumerate(mechanism["weights"][truth]):
        if u < weight:
            return y
        u -= weight
    raise AssertionError("the row is too short")


def _unary(mechanism: dict[str, Any], truth: int, bits: Bits) -> str:
    """Draw once for all answers; answer x has group x of the bits, counted from the lowest."""
    b, a = mechanism["bits"], mechanism["answers"]
    u = bits.take(a * b)
    held = []
    for x in range(a):
        u, part = u >> b, u % 2**b
        if part < mechanism["keep" if x == truth else "flip"]:
            held.append(x)
    return hexed(held, a)


def _subset(mechanism: dict[str, Any], truth: int, bits: Bits) -> str:
    """Draw once for the truth, then `size` other answers by Fisher-Yates; if the truth is inside,
    it replaces one."""
    a, size = mechanism["answers"], mechanism["size"]
    inside = bits.take(mechanism["bits"]) < mechanism["inside"]
    pool = [x for x in range(a) if x != truth]
    chosen = []
    for i in range(size):
        j = i + bits.below(a - 1 - i)
        pool[i], pool[j] = pool[j], pool[i]
        chosen.append(pool[i])
    if inside:
        chosen[-1] = truth
    return hexed(chosen, a)


def _product(mechanism: dict[str, Any], truth: int, bits: Bits) -> list[int]:
    sizes = [len(weights) for weights in mechanism["factors"]]
    cells = list(product(*map(range, sizes)))[truth]
    factors = [
        {"kind": "dense", "bits": mechanism["bits"], "weights": weights}
        for weights in mechanism["factors"]
    ]
    return [_dense(factor, part, bits) for factor, part in zip(factors, cells, strict=True)]


Slot = tuple[dict[str, Any], int]


def _agreement(
    mechanism: dict[str, Any], truth: list[int] | dict[int, int], bits: Bits
) -> list[int]:
    """Draw the component and the parts, then one number that determines agreement and the rank of
    the outcome."""
    c = component(mechanism, bits)
    pools = mechanism["components"][c]["pools"]
    parts = [part for pool in pools for part in picked(pool, bits)]
    return planned(mechanism, [c, parts], truth, bits)


def planned(
    mechanism: dict[str, Any], plan: list[Any], truth: list[int] | dict[int, int], bits: Bits
) -> list[int]:
    """Draw the sets of a plan, the component and its parts."""
    c, parts = plan
    pools = mechanism["components"][c]["pools"]
    of_slots = [pool for pool in pools for _ in range(pool["pick"])]
    slots = list(zip(of_slots, parts, strict=True))
    ways = Ways(mechanism, mechanism["components"][c]["threshold"], slots, truth)
    agree, disagree = (
        mechanism["agree"] * ways.count(0, 0, True),
        mechanism["disagree"] * ways.count(0, 0, False),
    )
    u = bits.large_below(agree + disagree)
    if u < agree:
        return [c, *ways.outcome(u % ways.count(0, 0, True), True)]
    return [c, *ways.outcome((u - agree) % ways.count(0, 0, False), False)]


def component(mechanism: dict[str, Any], bits: Bits) -> int:
    """Draw a component."""
    u, c = bits.take(mechanism["bits"]), 0
    while u >= mechanism["components"][c]["chance"]:
        u -= mechanism["components"][c]["chance"]
        c += 1
    return c


def picked(pool: dict[str, Any], bits: Bits) -> list[int]:
    """Draw the parts of a pool."""
    order = list(pool["parts"])
    for i in range(pool["pick"] if pool["pick"] < len(order) else 0):
        j = i + bits.below(len(order) - i)
        order[i], order[j] = order[j], order[i]
    return sorted(order[: pool["pick"]])


class Ways:
    """Weighted counts of the ways to draw a set for each slot."""

    def __init__(
        self,
        mechanism: dict[str, Any],
        threshold: int,
        slots: list[Slot],
        truth: list[int] | dict[int, int],
    ) -> None:
        self.threshold, self.slots = threshold, slots
        self.answers: list[int] = []
        self.sets: list[list[tuple[set[int], int]]] = []
        self.counted: dict[tuple[int, int, bool], int] = {}
        for pool, part in slots:
            questions = mechanism["parts"][part]
            joint = list(product(*(range(mechanism["choices"][q]) for q in questions)))
            self.answers.append(joint.index(tuple(truth[q] for q in questions)))
            self.sets.append(cover_sets(pool["cover"], len(joint)))

    def weight(self, j: int, is_inside: bool) -> int:
        """Return the weight of the sets of slot j that contain the true answer, or of those that do not."""
        return sum(w for held, w in self.sets[j] if (self.answers[j] in held) == is_inside)

    def more(self, j: int, score: int) -> int:
        """Return the score after a set of slot j that contains the true answer."""
        return min(score + int(self.slots[j][0]["score"]), self.threshold)

    def count(self, j: int, score: int, does_agree: bool) -> int:
        """Return the weight of all continuations from slot j that reach the threshold, or of those
        that do not."""
        if j == len(self.slots):
            return int((score >= self.threshold) == does_agree)
        key = (j, score, does_agree)
        if key not in self.counted:
            self.counted[key] = self.weight(j, True) * self.count(
                j + 1, self.more(j, score), does_agree
            ) + self.weight(j, False) * self.count(j + 1, score, does_agree)
        return self.counted[key]

    def outcome(self, rank: int, does_agree: bool) -> list[int]:
        """Return the parts and sets of the outcome with this rank."""
        symbol, score = [], 0
        for j, (_, part) in enumerate(self.slots):
            more = self.more(j, score)
            first = self.weight(j, True) * self.count(j + 1, more, does_agree)
            is_inside = rank < first
            score, rank = (more, rank) if is_inside else (score, rank - first)
            rank, place = divmod(rank, self.weight(j, is_inside))
            symbol += [part, self.set_at(j, place, is_inside)]
        return symbol

    def set_at(self, j: int, place: int, is_inside: bool) -> int:
        """Return the index of the set at a place among the sets that contain the true answer, or
        those that do not."""
        for number, (held, w) in enumerate(self.sets[j]):
            if (self.answers[j] in held) == is_inside:
                if place < w:
                    return number
                place -= w
        raise AssertionError("there is no such place")


def cover_sets(cover: Any, answers: int) -> list[tuple[set[int], int]]:
    """Return the sets of a cover in order, each with its weight: all sets of one size, or the listed sets."""
    if isinstance(cover, int):
        return [(set(held), 1) for held in combinations(range(answers), cover)]
    return [
        ({x for x in range(answers) if int(digits, 16) // 2**x % 2}, weight)
        for digits, weight in cover
    ]


def hexed(held: list[int], answers: int) -> str:
    """Return a set of answers as hex, where answer x is bit x; four answers per digit, rounded up."""
    return format(sum(2**x for x in held), "x").rjust((answers + 3) // 4, "0")


def report(document: dict[str, Any], digest: str, case: dict[str, Any]) -> str:
    """Return the padded report of a vector."""
    bits, arms = Bits(case["bits"]), views(document)
    drawn = case["strata"][document["arms"]["id"]] if "arms" in document else None
    blocks = arms[drawn]["blocks"]
    symbols = [symbol(block, x, bits) for block, x in zip(blocks, case["truths"], strict=True)]
    identity = format(bits.take(128), "032x")
    assert not bits.remaining
    if "instructed" in document:
        item = document["instructed"]
        right = case["choices"][item["id"]] == item["answer"]
        assert case["strata"][item["id"]] == ("passed" if right else "failed")
    width = max(len(_widest(view, arm, digest, identity)) for arm, view in arms.items())
    return _body(digest, identity, symbols, case["strata"], case["token"]).ljust(width)


def _widest(view: dict[str, Any], arm: str | None, digest: str, identity: str) -> str:
    """Return the longest report of a view."""
    longest = [_longest(block) for block in view["blocks"]]
    strata = {q["id"]: max((c["id"] for c in q["choices"]), key=len) for q in view["strata"]}
    if "instructed" in view:
        strata[view["instructed"]["id"]] = "failed"
    if arm is not None:
        strata[view["arms"]["id"]] = arm
    return _body(digest, identity, longest, strata, "x" * 1400 if view["token"] else None)


def _body(
    digest: str, identity: str, symbols: list[Any], strata: dict[str, str], token: str | None
) -> str:
    ordered = dict(sorted(strata.items()))
    body = {"v": 1, "doc": digest, "id": identity, "y": symbols, "strata": ordered, "token": token}
    return json.dumps(body).replace(", ", ",").replace(": ", ":")


def _longest(block: dict[str, Any]) -> Any:
    if block["kind"] == "dense":
        return len(block["weights"][0]) - 1
    if block["kind"] == "product":
        return [len(weights[0]) - 1 for weights in block["factors"]]
    if block["kind"] == "agreement":
        return max((_longest_of(block, c) for c in range(len(block["components"]))), key=_written)
    return hexed([], block["answers"])


def _written(symbol: list[int]) -> int:
    return len(json.dumps(symbol))


def _longest_of(block: dict[str, Any], c: int) -> list[int]:
    symbol = [c]
    for pool in block["components"][c]["pools"]:
        answers = prod(block["choices"][q] for q in block["parts"][pool["parts"][0]])
        for part in pool["parts"][len(pool["parts"]) - pool["pick"] :]:
            symbol += [part, len(cover_sets(pool["cover"], answers)) - 1]
    return symbol


def unbiased(case: dict[str, Any]) -> list[Fraction | None]:
    """Return W (QᵀΓQ)⁻¹ QᵀΓ applied to the reports' shares if Q has full column rank; sets use
    inclusion rates."""
    mechanism, counts = case["mechanism"], case["counts"]
    if mechanism["kind"] in ("unary", "subset"):
        shares: list[Fraction] | None = _of_sets(mechanism, counts)
        answers = mechanism["answers"]
    else:
        Q = table(mechanism)
        answers = len(Q)
        shares = _of_table(Q, counts, case["design_prior"] or [1] * answers)
    W = case["targets"] or [[int(x == t) for x in range(answers)] for t in range(answers)]
    if shares is None:
        return _deficient(table(mechanism), counts, W)
    return [sum((w * p for w, p in zip(row, shares, strict=True)), Fraction(0)) for row in W]


def table(mechanism: dict[str, Any]) -> Matrix:
    """Return Q[x][y] of a table, or of a product with joint answers and reports in row-major order."""
    D = 2 ** mechanism["bits"]
    factors = mechanism.get("factors") or [mechanism["weights"]]
    answers = product(*(range(len(weights)) for weights in factors))
    reports = list(product(*(range(len(weights[0])) for weights in factors)))
    return [
        [
            prod(
                (Fraction(f[i][j], D) for f, i, j in zip(factors, x, y, strict=True)),
                start=Fraction(1),
            )
            for y in reports
        ]
        for x in answers
    ]


def _of_table(Q: Matrix, counts: list[int], prior: list[int]) -> list[Fraction] | None:
    rows, columns, n = range(len(Q)), range(len(Q[0])), sum(counts)
    d = [sum(prior[x] * Q[x][y] for x in rows) for y in columns]
    # Γ is D₀⁻¹, scaled to 2^64 for the most frequent report and rounded to integers.
    g = [floor(max(d) / v * 2**64 + Fraction(1, 2)) for v in d]
    G = [
        [sum((Q[i][y] * Q[j][y] * g[y] for y in columns), Fraction(0)) for j in rows] for i in rows
    ]
    b = [sum((Q[i][y] * g[y] * Fraction(counts[y], n) for y in columns), Fraction(0)) for i in rows]
    return solve(G, b)


def solve(A: Matrix, b: list[Fraction]) -> list[Fraction] | None:
    """Solve by Gauss-Jordan elimination; return None if A is singular."""
    rows = [[*row, value] for row, value in zip(A, b, strict=True)]
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [v / rows[i][i] for v in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def _deficient(Q: Matrix, counts: list[int], W: list[list[int]]) -> list[Fraction | None]:
    """Estimate with as many reports as the rank of Q: w is estimable iff Q·v = w for some v, which
    is unique."""
    shares = [Fraction(c, sum(counts)) for c in counts]
    estimates: list[Fraction | None] = []
    for w in W:
        picks = combinations(range(len(Q)), len(counts))
        v = next(
            filter(
                None,
                (solve([Q[i] for i in pick], [Fraction(w[i]) for i in pick]) for pick in picks),
            )
        )
        fits = all(_dot(v, q) == t for q, t in zip(Q, w, strict=True))
        estimates.append(_dot(v, shares) if fits else None)
    return estimates


def _dot(remaining: list[Fraction], right: list[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(remaining, right, strict=True)), Fraction(0))


def _of_sets(mechanism: dict[str, Any], counts: dict[str, int]) -> list[Fraction]:
    """Estimate from sets: x is a member with probability q1 if x is true, otherwise q0; the
    difference of the sum from 1 is spread evenly."""
    a, n = mechanism["answers"], sum(counts.values())
    D = 2 ** mechanism["bits"]
    if mechanism["kind"] == "unary":
        q1, q0 = Fraction(mechanism["keep"], D), Fraction(mechanism["flip"], D)
    else:
        q1 = Fraction(mechanism["inside"], D)
        q0 = _inclusion(a, mechanism["size"], q1)
    held = [sum(m for y, m in counts.items() if int(y, 16) >> x & 1) for x in range(a)]
    alone = [(Fraction(h, n) - q0) / (q1 - q0) for h in held]
    return [bit + (1 - sum(alone)) / a for bit in alone]


def _inclusion(a: int, size: int, q1: Fraction) -> Fraction:
    """Return P(answer 1 is in the set | answer 0 is true), by listing all sets."""
    sets: Iterator[tuple[int, ...]] = combinations(range(a), size)
    listed = list(sets)
    with_first = [s for s in listed if 0 in s]
    without_first = [s for s in listed if 0 not in s]
    return q1 * Fraction(sum(1 in s for s in with_first), len(with_first)) + (1 - q1) * Fraction(
        sum(1 in s for s in without_first), len(without_first)
    )
