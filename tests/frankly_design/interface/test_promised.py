# SPDX-License-Identifier: Apache-2.0
"""Sentences of `explain`: each number is read back and checked by enumeration in fractions."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import frankly_design as fd
import numpy as np
import pandas as pd
import pytest

from tests.frankly_design.interface.given import JOINT, SMALL, Rows, channel, decoder_of

Joint = list[list[int]]
FURTHER = [[50, 100, 200, 150], [80, 90, 70, 20]]
FIVE = [[5, 9, 14, 3, 2], [7, 2, 8, 4, 6], [1, 1, 2, 3, 5]]
BETWEEN: list[list[Any]] = [
    [None, "0.5", 1, "inf"],
    ["0.5", None, "0.5", 1],
    [1, "0.5", None, "0.5"],
    [2, 1, "0.5", None],
]


# -- what holds, by enumeration --------------------------------------------------------------------


def under(Q: Rows, weights: Sequence[int | Fraction]) -> list[Fraction]:
    """Return Σ_x w(x)·Q(y|x) / Σ_x w(x) of every report y."""
    exact = [Fraction(w) for w in weights]
    return [
        sum((w * row[y] for w, row in zip(exact, Q, strict=True)), Fraction(0)) / sum(exact)
        for y in range(len(Q[0]))
    ]


def largest_ratio(laws: Rows) -> Fraction:
    """Return the largest P(y|i)/P(y|j); 10^9 if a report has no chance under one of them only."""
    ratios = [
        a / b if b else Fraction(10**9)
        for i, first in enumerate(laws)
        for j, second in enumerate(laws)
        if i != j
        for a, b in zip(first, second, strict=True)
        if a
    ]
    return max(ratios)


def lifts(Q: Rows, joint: Joint) -> list[Fraction]:
    """Return P(s|y)/P(s) for every secret and report; it equals P(y|s)/P(y)."""
    overall = under(Q, [sum(column) for column in zip(*joint, strict=True)])
    return [
        a / b for row in joint if sum(row) for a, b in zip(under(Q, row), overall, strict=True) if b
    ]


def largest_up_and_down(Q: Rows, joint: Joint) -> tuple[Fraction, Fraction]:
    found = lifts(Q, joint)
    return max(found), max(1 / v if v else Fraction(10**9) for v in found)


def side_channels(Q: Rows, joint: Joint, sizes: tuple[int, ...]) -> tuple[Fraction, Fraction]:
    """Return the largest factors for whoever knows the values of any set of attributes."""
    answers = list(product(*map(range, sizes)))
    ups, downs = [], []
    for known in (
        set_ for k in range(len(sizes) + 1) for set_ in combinations(range(len(sizes)), k)
    ):
        for values in {tuple(x[i] for i in known) for x in answers}:
            cell = [
                [
                    n if tuple(x[i] for i in known) == values else 0
                    for n, x in zip(row, answers, strict=True)
                ]
                for row in joint
            ]
            up, down = largest_up_and_down(Q, cell)
            ups.append(up)
            downs.append(down)
    return max(ups), max(downs)


def vertices(bounds: Any) -> list[list[list[Fraction]]]:
    """Return, for each secret, the extreme distributions of the answer above the lower bounds."""
    rows = [[Fraction(*pair) for pair in row] for row in bounds]
    return [
        [[b + (1 - sum(row)) * (u == v) for u, b in enumerate(row)] for v in range(len(row))]
        for row in rows
    ]


def robust_ratio(Q: Rows, bounds: Any) -> Fraction:
    laws = [
        [under(Q[s * len(row) : (s + 1) * len(row)], point) for point in points]
        for s, (row, points) in enumerate(zip(bounds, vertices(bounds), strict=True))
    ]
    return max(
        largest_ratio([first, second])
        for i, j in combinations(range(len(laws)), 2)
        for first in laws[i]
        for second in laws[j]
    )


def least_delta(Q: Rows, times: Fraction) -> Fraction:
    """Return the largest Q(T|x) − times·Q(T|x') over all sets T of reports."""
    reports = range(len(Q[0]))
    sets = [set_ for k in range(len(Q[0]) + 1) for set_ in combinations(reports, k)]
    return max(
        sum((a[y] - times * b[y] for y in set_), Fraction(0)) for a in Q for b in Q for set_ in sets
    )


# -- the sentences ---------------------------------------------------------------------------------

NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_UP, _DOWN = f"multiplies it by at most {NUMBER}", f"divides it by at most {NUMBER}"
_CHANGES = "a report changes the probability of each secret: it "
_KNOWN = ", if the prior is true"
_LIKELY = f"it was at most {NUMBER} times as likely from one "
PATTERNS = {
    "ldp": f"{NUMBER}-LDP: whatever is sent, {_LIKELY}true answer as from any other.",
    "secret-ldp": f"{NUMBER}-LDP of the secret: whatever is sent, {_LIKELY}secret as from any other{_KNOWN}.",
    "lip": f"{NUMBER}-LIP: {_CHANGES}{_UP} or {_DOWN}, if the prior is true.",
    "alip": rf"\({NUMBER}, {NUMBER}\)-ALIP: {_CHANGES}{_UP} or {_DOWN}, if the prior is true.",
    "pml": rf"\(inf, {NUMBER}\)-ALIP: {_CHANGES}{_UP}, without a bound on the other side, if the prior is true.",
    "pmc": rf"\({NUMBER}, inf\)-ALIP: {_CHANGES}{_DOWN}, without a bound on the other side, if the prior is true.",
    "srlip": f"{NUMBER}-SRLIP: {_CHANGES}{_UP} or {_DOWN}, also to whoever knows any of the attributes{_KNOWN}.",
    "rldp": f"{NUMBER}-RLDP: under every distribution of the ball around the counts, whatever is sent "
    f"was at most {NUMBER} times as likely from one secret as from any other.",
    "dp": rf"\({NUMBER}, {NUMBER}\)-DP: the chance that the report is in a set is under one answer at most {NUMBER} "
    f"times that under any other, plus {NUMBER}.",
    "dpv": f"No report makes the secret '?([a-z0-9]+)'? more probable than {NUMBER}, if the prior is true.",
}  # fmt: skip


def numbers_of(notion: str, line: str) -> list[str]:
    line = line.replace("if one of the priors is true", "if the prior is true")
    found = re.fullmatch(PATTERNS[notion].removesuffix(".") + r"\.", line)
    assert found, line
    return list(found.groups())


def at_least(nats: str, ratio: Fraction) -> bool:
    """Return True if e^nats ≥ ratio."""
    with localcontext() as context:
        context.prec = 60
        return Decimal(nats).exp() >= Decimal(ratio.numerator) / Decimal(ratio.denominator)


@dataclass(frozen=True)
class Case:
    """What a line should say: a notion, the levels that were asked for, and the counts.

    low : the lower side of alip, or δ of dp. name, row : of the secret of dpv.
    """

    notion: str
    high: float
    low: float = 0
    joint: Joint = field(default_factory=lambda: JOINT)
    name: str = "1"
    row: int = 1


def close(text: str, asked: float) -> None:
    assert float(text) <= asked * 1.001
    # Rounded up from the verified level, which is at most 2^-40 below what was asked.
    assert float(text) >= asked * (1 - 1e-9)


def level_holds(got: Sequence[str], worst: Fraction, asked: float) -> None:
    nats, times = got
    assert worst <= Fraction(times)
    assert at_least(nats, worst)
    close(nats, asked)
    close(times, math.exp(asked))


def changes_hold(case: Case, Q: Rows, got: list[str]) -> None:
    """Check LIP, ALIP and SRLIP, which bound both sides, or PML and PMC, which bound one."""
    both = (
        side_channels(Q, case.joint, (2, 2))
        if case.notion == "srlip"
        else largest_up_and_down(Q, case.joint)
    )
    if case.notion in ("pml", "pmc"):
        level_holds(got, both[case.notion == "pmc"], case.high)
        return
    # ALIP writes the lower side first, and the sentence the upper one.
    *nats, multiplied, divided = got
    level_holds((nats[-1], multiplied), both[0], case.high)
    level_holds((nats[0], divided), both[1], case.low or case.high)


def sets_hold(case: Case, Q: Rows, got: list[str]) -> None:
    nats, delta, times, plus = got
    assert least_delta(Q, Fraction(times)) <= Fraction(plus)
    assert delta == plus
    close(nats, case.high)
    close(times, math.exp(case.high))
    close(plus, case.low)


def chances_hold(case: Case, Q: Rows, got: list[str]) -> None:
    name, most = got
    assert name == case.name
    row, overall = case.joint[case.row], [sum(column) for column in zip(*case.joint, strict=True)]
    laws = zip(under(Q, row), under(Q, overall), strict=True)
    assert max(a * sum(row) / (b * sum(overall)) for a, b in laws) <= Fraction(most)
    close(most, case.high)


def require_true(case: Case, Q: Rows, claim: Any, line: str) -> None:
    """Fail unless a sentence is true as it is worded, and no number is 0.1 % above what was asked."""
    got = numbers_of(case.notion, line)
    match case.notion:
        case "ldp":
            level_holds(got, largest_ratio(Q), case.high)
        case "secret-ldp":
            level_holds(got, largest_ratio([under(Q, row) for row in case.joint]), case.high)
        case "rldp":
            level_holds(got, robust_ratio(Q, claim.lower_bounds), case.high)
        case "dp":
            sets_hold(case, Q, got)
        case "dpv":
            chances_hold(case, Q, got)
        case _:
            changes_hold(case, Q, got)


LABELLED = pd.DataFrame(JOINT, index=["well", "ill"], columns=list("abcd"))
DESIGNS: list[tuple[str, Any, Any, dict[str, Any], list[Case]]] = [
    ("ldp", JOINT, fd.LDP("0.7"), {}, [Case("ldp", 0.7)]),
    ("ldp, two answers", [[3, 5]], fd.LDP("0.0123"), {}, [Case("ldp", 0.0123)]),
    ("ldp, five answers", FIVE, fd.LDP("3.1"), {}, [Case("ldp", 3.1)]),
    ("ldp of sets", [[5, 3, 2, 4]], fd.LDP("1.3"), {"mechanism": "oue"}, [Case("ldp", 1.3)]),
    ("secret-ldp", FIVE, fd.SecretLDP("0.45"), {}, [Case("secret-ldp", 0.45, joint=FIVE)]),
    ("lip", JOINT, fd.LIP("0.25"), {}, [Case("lip", 0.25)]),
    ("lip, five answers", FIVE, fd.LIP("0.21"), {"objective": "information"}, [Case("lip", 0.21, joint=FIVE)]),
    ("alip", JOINT, fd.ALIP("0.31", "0.17"), {}, [Case("alip", 0.17, 0.31)]),
    ("pml", JOINT, fd.PML("0.3"), {}, [Case("pml", 0.3)]),
    ("pmc", JOINT, fd.PMC("0.3"), {}, [Case("pmc", 0.3)]),
    ("one side of alip", JOINT, fd.ALIP("inf", "0.3"), {}, [Case("pml", 0.3)]),
    ("srlip", JOINT, fd.SRLIP("0.2", [2, 2]), {}, [Case("srlip", 0.2)]),
    ("dpv", LABELLED, fd.DPV("0.45"), {}, [Case("dpv", 0.45, name="ill")]),
    ("dpv, first row", LABELLED, fd.DPV("0.75", 0), {}, [Case("dpv", 0.75, name="well", row=0)]),
    ("dp, two answers", [[3, 5]], fd.DP("0.5", "0.1"), {"mechanism": "binary"}, [Case("dp", 0.5, 0.1)]),
    ("dp, four answers", [[3, 5, 1, 2]], fd.DP("0.5", "0.0123"), {"mechanism": "grr"}, [Case("dp", 0.5, 0.0123)]),
    ("rldp", SMALL, fd.RLDP(1, 75), {}, [Case("rldp", 1)]),
    ("two priors", JOINT, fd.LIP("0.2"), {"priors": [FURTHER]}, [Case("lip", 0.2), Case("lip", 0.2, joint=FURTHER)]),
    ("two notions, two priors and a cap", JOINT, [fd.LIP("0.2"), fd.DPV("0.5")], {"priors": [FURTHER],
     "ceiling_cap": "1.9"},
     [Case("lip", 0.2), Case("lip", 0.2, joint=FURTHER), Case("dpv", 0.5), Case("dpv", 0.5, joint=FURTHER),
      Case("ldp", 1.9)]),
]  # fmt: skip
IDS = [row[0] for row in DESIGNS]
MADE: dict[str, fd.Design] = {}


def made(name: str) -> fd.Design:
    """Return a design of the table; each is made once."""
    if name not in MADE:
        prior, notions, options = next(row[1:4] for row in DESIGNS if row[0] == name)
        MADE[name] = fd.design(prior, notions, **options)
    return MADE[name]


@pytest.mark.parametrize(("name", "cases"), [(row[0], row[4]) for row in DESIGNS], ids=IDS)
def test_every_sentence_about_a_promise_is_true(name: str, cases: list[Case]) -> None:
    design = made(name)
    Q, lines = channel(design.mechanism), design.explain().splitlines()
    assert len(design.claims) == len(cases)
    # The same promise under several priors is one sentence.
    notions = list(dict.fromkeys(case.notion for case in cases))
    assert lines[len(notions)].startswith(("Under any prior", "Under another prior"))
    for case, claim in zip(cases, design.claims, strict=True):
        require_true(case, Q, claim, lines[notions.index(case.notion)])
    several = sum(case.notion == cases[0].notion for case in cases) > 1
    assert several == ("if one of the priors is true" in lines[0])
    # The check reads every number: with a smaller one in the first sentence it fails.
    line = lines[0]
    for found in re.finditer(NUMBER, line):
        if found.group() == line[found.start() :].split("'")[0] and cases[0].name == found.group():
            continue  # the name of a secret
        smaller = f"{line[: found.start()]}{float(found.group()) * 0.98:.6f}{line[found.end() :]}"
        with pytest.raises(AssertionError):
            require_true(cases[0], Q, design.claims[0], smaller)


@pytest.mark.parametrize("name", IDS)
def test_the_first_promise_is_used_up_by_the_mechanism(name: str) -> None:
    """Otherwise a sentence with too small a number could be true by chance."""
    if name in ("dp, four answers", "two notions, two priors and a cap"):
        return
    design = made(name)
    case, Q = next(row[4][0] for row in DESIGNS if row[0] == name), channel(design.mechanism)
    up, down = largest_up_and_down(Q, case.joint) if len(case.joint[0]) == len(Q) else (0, 0)
    match case.notion:
        case "ldp":
            assert largest_ratio(Q) >= math.exp(case.high) * 0.999
        case "secret-ldp":
            assert (
                largest_ratio([under(Q, row) for row in case.joint]) >= math.exp(case.high) * 0.999
            )
        case "lip" | "alip":
            assert (
                up >= math.exp(case.high) * 0.999 or down >= math.exp(case.low or case.high) * 0.999
            )
        case "pml" | "pmc":
            assert (up, down)[case.notion == "pmc"] >= math.exp(case.high) * 0.999
        case "rldp":
            assert robust_ratio(Q, design.claims[0].lower_bounds) >= math.exp(case.high) * 0.999
        case "dp":
            assert least_delta(Q, Fraction(math.exp(case.high))) >= case.low * 0.999


def test_a_metric_holds_for_each_pair_with_a_level() -> None:
    design = fd.design(JOINT, fd.MetricLDP(BETWEEN))
    said = design.explain().splitlines()[0]
    assert said == (
        "Metric LDP: a pair of answers with a level gives every report with chances whose ratio is at most e^level."
    )
    Q, tight = channel(design.mechanism), 0
    for x, z in product(range(4), repeat=2):
        if BETWEEN[x][z] in (None, "inf"):
            continue
        worst = max(a / b if b else Fraction(10**9) for a, b in zip(Q[x], Q[z], strict=True) if a)
        assert at_least(str(BETWEEN[x][z]), worst)
        tight += worst >= math.exp(float(str(BETWEEN[x][z]))) * 0.999
    assert tight


# -- the other sentences ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["ldp", "ldp of sets", "lip", "srlip", "two notions, two priors and a cap", "pml"]
)
def test_the_sentences_about_worth_are_true(name: str) -> None:
    design = made(name)
    Q, joint = channel(design.mechanism), next(row[1] for row in DESIGNS if row[0] == name)
    counts = [sum(column) for column in zip(*joint, strict=True)]
    said = design.explain()
    if design.answer_ldp == math.inf:
        assert "Under another prior a report can tell more: some reports rule answers out." in said
        assert any(any(c) and not all(c) for c in zip(*Q, strict=True))
    else:
        (nats,) = re.findall(rf"Under any prior the answer has {NUMBER}-LDP\.", said)
        assert float(nats) == pytest.approx(math.log(largest_ratio(Q)), rel=1e-5)
    q, p = np.array(Q, dtype=float), np.array(counts) / sum(counts)
    information = float(p @ np.sum(q * np.log(np.where(q > 0, q / (p @ q), 1.0)), axis=1))
    ((nats, part),) = re.findall(rf"carries {NUMBER} nats about the answer, {NUMBER}% of", said)
    assert float(nats) == pytest.approx(information, rel=5e-4)
    assert float(part) == pytest.approx(100 * information / -(p @ np.log(p)), abs=0.05 + 1e-9)
    (total,) = re.findall(rf"all shares estimated from n reports sum to {NUMBER}/n\.", said)
    if name != "ldp of sets":  # these are decoded from the number of sets with each answer
        D = np.array(decoder_of(Q, counts), dtype=float)
        assert float(total) == pytest.approx(float(np.sum(D**2 @ (p @ q)) - p @ p), rel=5e-4)
    gaps = re.findall(
        rf"Its total variance of the shares is {NUMBER}, and .* better by more than ([0-9.e-]+)\.",
        said,
    )
    assert bool(gaps) == (design.gap is not None)
    for value, gap in gaps:
        assert float(value) == pytest.approx(design.value, rel=5e-6)
        assert design.bound is not None
        assert design.value - design.bound <= float(gap) <= design.value - design.bound + 1.1e-9


def test_a_finite_ceiling_is_not_understated_if_it_has_few_digits() -> None:
    said = fd.design(JOINT, fd.LDP("0.7")).explain()
    (nats,) = re.findall(rf"Under any prior the answer has {NUMBER}-LDP\.", said)
    assert at_least(nats, largest_ratio(channel(fd.design(JOINT, fd.LDP("0.7")).mechanism)))


def test_shares_that_cannot_be_estimated_are_named() -> None:
    design = fd.design([[5, 3, 2]], fd.LDP("0.1"), objective="information")
    assert (
        "Of the shares only these can be estimated: answer 0; answer 1 + answer 2."
        in design.explain()
    )
    Q = channel(design.mechanism)
    assert Q[1] == Q[2] != Q[0]


def test_warnings_are_notes() -> None:
    unchanged = fd.design(JOINT, fd.LIP(5))
    (warning,) = unchanged.to_json()["warnings"]
    assert unchanged.explain().splitlines()[-1] == f"Note: {warning}."
    assert "unchanged" in warning
    assert "Note" not in made("lip").explain()


def test_claims_at_the_corners_of_boxes_are_one_sentence_about_the_ball() -> None:
    design = fd.design(SMALL, fd.RLDP(1, 75, polyhedra="box"))
    assert len(design.claims) > 1
    first, second, *_ = design.explain().splitlines()
    assert first.startswith("1-RLDP: under every distribution of the ball around the counts")
    assert second.startswith("Under a")


def test_a_bound_under_a_limit_of_the_variance_says_so() -> None:
    """Without the limit there is a better mechanism."""
    capped = fd.design([[60, 30, 10]], fd.LDP(1), objective="information", variance_cap=8)
    free = fd.design([[60, 30, 10]], fd.LDP(1), objective="information")
    assert free.value > capped.value * 1.02
    assert "keeps these promises and the limit of the variance is better" in capped.explain()
    assert "keeps these promises is better" in free.explain()


FURTHER_PRIOR = [[300, 20, 10, 10], [10, 20, 200, 300]]
OPEN: list[tuple[str, Any, str]] = [
    ("lip", fd.LIP(), "lip"), ("secret-ldp", fd.SecretLDP(), "secret_ldp"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("notion", "name"), [row[1:] for row in OPEN], ids=[row[0] for row in OPEN]
)
def test_a_level_of_the_design_holds_under_every_prior(notion: fd.Notion, name: str) -> None:
    design = fd.design(
        JOINT, notion, mechanism="discrete-exponential", alpha=1, priors=[FURTHER_PRIOR]
    )
    first, second, *_ = design.explain().splitlines()
    needed = [fd.measure(design.mechanism, prior)[name] for prior in (JOINT, FURTHER_PRIOR)]
    assert float(first.partition("-")[0]) >= max(needed) > min(needed) + 0.1
    assert "if one of the priors is true" in first
    assert second.startswith("Under any prior")


def test_the_value_is_named_by_what_was_minimised() -> None:
    for options, said in (
        ({"criterion": "worst"}, "largest variance of a share"),
        ({"targets": [[1, 0, 0, -1]]}, "total variance of the targets"),
        ({"truths": ["prior", "even"]}, "largest total variance of the shares over the truths"),
        ({"objective": "hamming"}, "error of the best guess"),
    ):
        given: Any = options
        design = fd.design(JOINT, fd.LIP("0.25"), **given)
        assert f"Its {said} is {design.value:.6g}, and" in design.explain()


def test_a_one_sided_promise_of_a_private_family_has_no_warning() -> None:
    assert "Note" not in fd.design(JOINT, fd.PML("0.25"), mechanism="grr").explain()
