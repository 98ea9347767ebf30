# SPDX-License-Identifier: Apache-2.0
"""Case studies: every number on the pages follows from released counts, signed documents and true answers.

`docs/examples/case_*.json` hold one run each. Shares are recomputed from counts by the inverse of the
mechanism, the truth from the data of statsmodels, and sentences of respondents from the stored
document. A page may contain no digit outside the statements that are computed here.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pytest
from frankly_analyst.comparisons import p_text, points
from frankly_analyst.plots import SHARE
from frankly_analyst.shown import Shown
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.explain import Explanation, explain
from frankly_server.surveys.definition import parse_definition
from frankly_server.surveys.trial import expected_rows
from numpy.typing import NDArray

from examples.demo.people import Person, records, shuffled
from examples.redbook.data import people as redbook_people
from examples.workplace.data import LIMITATION, PILOT, RESPONDENTS, SEED, VISITS
from examples.workplace.data import _person as workplace_person

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
Z: Final = NormalDist().inv_cdf(0.975)
AGES: Final = {
    "0_19": "under-25",
    "20_24": "under-25",
    "25_29": "25-34",
    "30_34": "25-34",
    "35_39": "35-up",
    "40_up": "35-up",
}
PLANS: Final = ("free", "shared")
THREE: Final = ("three-five", "more")
PAGES: Final = ("case_redbook", "case_workplace")
Row = Mapping[str, Any]
Vector = NDArray[np.float64]


@cache
def run(page: str) -> dict[str, Any]:
    """Return the stored run of a page."""
    stored: dict[str, Any] = json.loads(
        (DOCS / "examples" / f"{page}.json").read_text(encoding="utf-8")
    )
    return stored


@cache
def document(page: str, name: str = "document") -> SurveyDocument:
    """Return a stored signed document."""
    return SurveyDocument.from_envelope(json.dumps(run(page)[name]).encode())


@cache
def explanation(page: str, name: str = "document") -> Explanation:
    """Return what a device says about a stored document."""
    return explain(document(page, name), document(page, name).report_level, ())


@cache
def redbook() -> list[Person]:
    """Return the 6,366 women, with their age in the ranges of the survey."""
    return [{**person, "age": AGES[person["age"]]} for person in redbook_people()]


@cache
def workplace() -> tuple[list[Person], list[Person]]:
    """Return (the people of the published table, the respondents), with their health plan."""
    rows = [row for row in records("randhie") if float(row["physlm"]) in (0.0, 1.0)]
    plan = {True: "free", False: "shared"}
    everyone = shuffled(
        [
            {
                **workplace_person(row),
                "plan": plan[(float(row["lncoins"]), row["idp"]) == (0.0, "0")],
            }
            for row in rows
        ],
        SEED,
    )
    end = PILOT + RESPONDENTS
    return everyone[:PILOT] + everyone[end:], everyone[PILOT:end]


def odds_of(limit: Fraction | None) -> float:
    """Return a bound that must be finite."""
    assert limit is not None
    return float(limit)


def share(persons: Sequence[Person], **is_in: Sequence[str]) -> float:
    """Return the share of people whose answers are in these lists."""
    return sum(all(p[q] in chosen for q, chosen in is_in.items()) for p in persons) / len(persons)


# Independent estimates


def part(page: str, *questions: str) -> Row:
    """Return the released counts of a question, or of two together."""
    parts = [*run(page)["counts"], *run(page).get("counts_of_pair", [])]
    [found] = [one for one in parts if one["questions"] == list(questions)]
    assert isinstance(found, dict)
    return found


def law(counted: Row) -> Vector:
    """Return P(symbol | answer): the Kronecker product of the factors."""
    result: NDArray[Any] = np.ones((1, 1))
    for factor in counted["factors"]:
        table = np.array(factor["weights"], dtype=float) / float(factor["denominator"])
        result = np.kron(result, table)
    return result


def inverse(counted: Row) -> Vector:
    """Return the scores of the symbols for each answer: the unbiased ones of least variance at the design prior."""
    table = law(counted)
    prior = np.ones(1)
    for factor in counted["factors"]:
        prior = np.kron(prior, np.array(factor["design_prior"], dtype=float))
    weighted = table / (prior / prior.sum() @ table)
    return np.linalg.solve(weighted @ table.T, weighted)


def answers_of(counted: Row) -> list[str]:
    """Return the joint answers of a part, as the estimates name them."""
    names = [""]
    for choices in counted["choices"]:
        names = [f"{name} × {choice}".removeprefix(" × ") for name in names for choice in choices]
    return names


def estimated(
    counted: Row, chosen: Sequence[str], by: str = "", people: int = 0
) -> tuple[float, float, int]:
    """Return (share, standard error, reports) of some answers of a part, in one group or in all.

    people : all people, if everybody took part; 0 if the respondents are a sample of many more.
    """
    group = by.rpartition("=")[2]
    strata = [one for one in counted["strata"] if group in ("", *one["by"].values())]
    counts = np.sum([one["counts"] for one in strata], axis=0)
    n = int(counts.sum())
    assert n == sum(one["n"] for one in strata)
    table, rates = law(counted), counts / counts.sum()
    scores_of_all = inverse(counted)
    is_chosen = np.array([name in chosen for name in answers_of(counted)], dtype=float)
    scores, truth = is_chosen @ scores_of_all, scores_of_all @ rates
    value = float(scores @ rates)
    total = (float(scores**2 @ rates) - value**2) / (n - 1)
    noise = float(truth @ (table @ scores**2 - (table @ scores) ** 2)) / n
    if people:
        # Sampling is left out by as much as the reports are a part of everybody's.
        total = noise + (total - noise) * (people - n) / (people - 1)
    return value, math.sqrt(total), n


@pytest.mark.parametrize("page", PAGES)
def test_counts_belong_to_the_signed_document(page: str) -> None:
    level = odds_of(document(page).report_level.answers.odds)
    for counted in [*run(page)["counts"], *run(page).get("counts_of_pair", [])]:
        assert counted["document"] == document(page).digest
        table = law(counted)
        assert table.sum(axis=1) == pytest.approx(1)
        assert (table.max(axis=0) / table.min(axis=0)).max() <= level * (1 + 1e-9)
    if page == "case_workplace":
        [factor] = part(page, "visits")["factors"]
        [block] = document(page).blocks
        assert factor["weights"] == [list(row) for row in block.mechanism.weights]  # type: ignore[union-attr]


def counts_by_secret(persons: Sequence[Person], plan: str) -> list[list[int]]:
    """Count the people of a plan by limitation (rows) and visits (columns)."""
    return [
        [
            sum(
                (p["plan"], p["limitation"], p["visits"]) == (plan, secret, visits) for p in persons
            )
            for visits in VISITS
        ]
        for secret in LIMITATION
    ]


def test_the_published_table_counts_the_people_who_do_not_answer() -> None:
    published, _ = workplace()
    tables = [counts_by_secret(published, plan) for plan in PLANS]
    payload = json.loads(base64.b64decode(run("case_workplace")["document"]["payload"]))
    assert payload["blocks"][0]["claims"][0]["prior"]["tables"] == tables
    text = (DOCS / "examples" / "case_workplace.yaml").read_text(encoding="utf-8")
    assert all(str(row) in text for table in tables for row in table)


def upto(question: str, choice: str) -> list[str]:
    """Return the choices up to the one that a row of a distribution names."""
    [counted] = [one for one in run("case_redbook")["counts"] if one["questions"] == [question]]
    ids, last = counted["choices"][0], choice.removeprefix("up to ")
    ends = [one.split("_")[-1] if question != "educ" else one for one in ids]
    return list(ids[: ends.index(last) + 1])


def chosen_of(row: Row) -> list[str]:
    if row["choice"].startswith("up to "):
        return upto(row["question"], row["choice"])
    return ["three-five", "more"] if row["choice"] == "three or more" else [row["choice"]]


ROWS: Final = (
    ("case_redbook", "estimates", True),
    ("case_redbook", "estimates_of_more_people", False),
    ("case_redbook", "affair_by_age", True),
    ("case_redbook", "pair", True),
    ("case_workplace", "estimates", True),
    ("case_workplace", "estimates_of_more_people", False),
    ("case_workplace", "visits_by_plan", True),
    ("case_workplace", "sum", True),
    ("case_workplace", "sum_by_plan", True),
)


@pytest.mark.parametrize(("page", "name", "is_census"), ROWS)
def test_estimates_follow_from_the_counts(page: str, name: str, is_census: bool) -> None:
    for row in run(page)[name]:
        if row["unit"] != SHARE:
            continue
        counted = part(page, *row["question"].split(" × "))
        group = row["by"].rpartition("=")[2]
        respondents = redbook() if page == "case_redbook" else workplace()[1]
        everybody = sum(group in ("", *person.values()) for person in respondents)
        names = [row["choice"].replace(",", " × ")] if " × " in row["question"] else chosen_of(row)
        value, error, n = estimated(counted, names, row["by"], everybody if is_census else 0)
        assert (row["estimate"], row["n"]) == (pytest.approx(value, abs=1e-9), n)
        assert row["se"] == pytest.approx(error, rel=0.03), row
        # The interval is not symmetric near 0 and 1; its length is that of the standard error.
        if value - 2 * error > 0.02 and value + 2 * error < 0.98:
            assert row["high"] - row["low"] == pytest.approx(2 * Z * error, rel=0.06), row


# Statements of the pages


def percent(value: float) -> str:
    return f"{100 * value:.1f}%"


def rows_of(page: str, name: str) -> dict[tuple[str, str, str], Row]:
    return {(row["question"], row["choice"], row["by"]): row for row in run(page)[name]}


def shown(row: Row) -> Shown:
    """Return a share as the page of results rounds it."""
    return Shown.of(row["estimate"], row["low"], row["high"], possible=(0.0, 1.0))


def line(label: str, true: float, row: Row) -> str:
    """Return a line of a table: truth, estimate, interval, and where the truth is."""
    figure = shown(row)
    where = "inside" if row["low"] <= true <= row["high"] else "**outside**"
    return f"| {label} | {percent(true)} | {figure.text} | {figure.ends} | {where} |"


def ends_of(row: Row) -> str:
    """Return the interval of a difference."""
    low, high = (points(row[end], SHARE) for end in ("low", "high"))
    return f"{low.removesuffix(' points')} to {high}"


def compared(row: Row) -> str:
    """Return a comparison as `frankly estimates` prints it."""
    return f"{points(row['difference'], SHARE)} ({ends_of(row)}, {p_text(row['p'])})"


def needed(margin: float, wanted: float, people: int) -> str:
    """Return how many people make a margin as narrow as wanted."""
    return f"{round(people * (margin / wanted) ** 2, -2):,.0f}"


def expected(page: str, name: str, people: int) -> dict[tuple[str, ...], tuple[int, float]]:
    """Return (reports about it, margin in points) of each question, as the page *Publish* states them."""
    definition = parse_definition((DOCS / "examples" / f"{page}.yaml").read_bytes())
    pairs = definition.form.cross_tables if definition.form else ()
    return {
        row.questions: (row.about[0], 100 * (row.margins[0] or math.inf))
        for row in expected_rows(document(page, name), pairs, (people,))
    }


def coin_margin(level: float, choices: int, people: int) -> float:
    """Return the widest margin, in points, of a share by randomised response with `choices` answers."""
    keep = math.exp(level) / (math.exp(level) + choices - 1)
    other = (1 - keep) / (choices - 1)
    rates = [other + (keep - other) * share / 1000 for share in range(1001)]
    return 100 * Z * max(math.sqrt(r * (1 - r) / people) for r in rates) / (keep - other)


def said(page: str, *parts: str) -> Iterator[str]:
    """Yield sentences of a page's quotation, after checking that devices say them."""
    told = explanation(page)
    sentences = [
        *told.summary,
        *(sentence for text in told.overall for sentence in re.split(r"(?<=\.) ", text)),
        *(
            sentence
            for one in told.consequences
            for text in one.sentences
            for sentence in re.split(r"(?<=\.) ", text)
        ),
    ]
    for piece in parts:
        assert piece in sentences, piece
        yield piece


AFFAIR: Final = ("affair", "yes", "")
TABLE: Final = {
    "Affair while married: yes": AFFAIR,
    "Marriage: very poor": ("rate_marriage", "very-poor", ""),
    "Marriage: poor": ("rate_marriage", "poor", ""),
    "Marriage: fair": ("rate_marriage", "fair", ""),
    "Marriage: good": ("rate_marriage", "good", ""),
    "Marriage: very good": ("rate_marriage", "very-good", ""),
    "Married for at most 4 years": ("yrs_married", "up to 4", ""),
    "No children": ("children", "up to 0", ""),
    "Strongly religious": ("religious", "strongly", ""),
    "School: at most high school": ("educ", "up to high-school", ""),
    "Occupation: white-collar": ("occupation", "clerical", ""),
    "Occupation: student": ("occupation", "student", ""),
    "Husband: managerial, business": ("occupation_husb", "managerial", ""),
}


def redbook_statements() -> Iterator[str]:
    """Yield every statement of case_redbook.md that has a digit."""
    yield from redbook_design()
    yield from redbook_shares()
    yield from redbook_groups()
    yield from redbook_label()


def redbook_design() -> Iterator[str]:
    """Yield the statements about the survey, its protection and its cost."""
    page, count = "case_redbook", len(redbook())
    asked, rows = run(page)["asked"], rows_of(page, "estimates")
    assert asked["people"] == count
    yield f"{count:,} married women answered a magazine's questions in 1974"
    yield f"all {count:,} women"
    moderate, strong, weak = (
        expected(page, name, count)
        for name in ("document", "document_at_level_1", "document_at_level_3")
    )
    for epsilon, margins, name in (
        (1, strong, "document_at_level_1"),
        (2, moderate, "document"),
        (3, weak, "document_at_level_3"),
    ):
        [sure] = re.findall(
            r"50% sure how .*? can become (\d+)% sure", " ".join(explanation(page, name).overall)
        )
        affair, children = margins["affair",][1], margins["children",][1]
        yield f"ε = {epsilon} | ±{affair:.1f} points | ±{children:.1f} points | {sure}% |"
    yield "somebody who was 50% sure of an answer can become at most"
    yield "the level called *Moderate*, ε = 2"
    yield f"put {asked['questions']:,} questions in all, {asked['questions'] / count:.1f} to each on average"
    yield f"{rows[AFFAIR]['n']:,} of the {count:,} reports are about the affair"
    value, error, _ = estimated(part(page, "affair"), ["yes"])
    yield f"a direct survey of {value * (1 - value) / error**2:.0f} women"
    row = rows["occupation", "clerical", ""]
    value, error, _ = estimated(part(page, "occupation"), ["clerical"])
    yield f"for the occupation, which {row['n']:,} reports are about, it is {value * (1 - value) / error**2:.0f} women"
    alone = coin_margin(2, 2, count)
    yield f"Asked alone at the same level, it would have had a margin of ±{alone:.1f} points"
    of_strong, of_moderate = strong["affair",][1], moderate["affair",][1]
    yield f"the same margin for the affair needs about {needed(of_strong, of_moderate, count)} women"
    yield "the other eight share one level"


def redbook_shares() -> Iterator[str]:
    """Yield the statements about the shares of all women."""
    page, people = "case_redbook", redbook()
    rows = rows_of(page, "estimates")
    wider = shown(rows_of(page, "estimates_of_more_people")[AFFAIR])
    yield f"({wider.ends} for the affair)"
    for label, key in TABLE.items():
        true = share(people, **{key[0]: chosen_of(rows[key])})
        yield line(label, true, rows[key])
    inside = [
        row["low"] <= share(people, **{row["question"]: chosen_of(row)}) <= row["high"]
        for row in rows.values()
        if row["unit"] == SHARE
    ]
    yield f"Of all {len(inside)} shares, {sum(inside)} have the truth inside"
    yield f"about {0.95 * len(inside):.0f} are to be expected at 95%"


def redbook_groups() -> Iterator[str]:
    """Yield the statements about groups of women."""
    page, people = "case_redbook", redbook()
    by_age = rows_of(page, "affair_by_age")
    for label, age in (("Under 25", "under-25"), ("25 to 34", "25-34"), ("35 or over", "35-up")):
        row = by_age["affair", "yes", f"age={age}"]
        group = [person for person in people if person["age"] == age]
        yield line(label, share(group, affair=["yes"]), row)
    [tests] = run(page)["comparisons"]
    younger, older, last = tests["rows"]
    yield f"women of 25 to 34 and those under 25: {compared(younger)}"
    yield f"women of 35 or over and those under 25: {compared(older)}"
    yield f"women of 35 or over and those of 25 to 34: {compared(last)}"
    yield f"Holm's correction for the three tests leaves {p_text(younger['p_holm'])} and {p_text(older['p_holm'])}"
    yield "affairs are rarer among women under 25"
    elders = share([p for p in people if p["age"] == "35-up"], affair=["yes"])
    middle = share([p for p in people if p["age"] == "25-34"], affair=["yes"])
    yield f"In truth it is {points(elders - middle, SHARE)}"
    rated = {row["choice"]: row for row in run(page)["pair_by_marriage"]}
    for label, rating in (
        ("Very good", "very-good"),
        ("Good", "good"),
        ("Fair", "fair"),
        ("Poor", "poor"),
    ):
        row = rated[f"yes | {rating}"]
        group = [person for person in people if person["rate_marriage"] == rating]
        yield line(label, share(group, affair=["yes"]), row)
    worst = rated["yes | very-poor"]
    assert worst["low"] is worst["high"] is None
    poor = [person for person in people if person["rate_marriage"] == "very-poor"]
    yield f"| Very poor | {percent(share(poor, affair=['yes']))} | no result | no interval | |"
    yield f"{percent(len(poor) / len(people))} of all women"


def redbook_label() -> Iterator[str]:
    """Yield the sentences that respondents read."""
    page = "case_redbook"
    yield from said(
        page,
        "Your answer to “How old are you?” is sent just as you give it.",
        "This device changes all other answers by chance first.",
        "Chance picks 1–3 of 8 questions.",
        "Nothing is sent about the others.",
        "From the result nobody can be sure of your other answers, not even those who ask.",
        "The server may see your network address, like any website.",
        "Someone who knows what you send as it is, and was 50% sure how you answered one of the other questions, can "
        "become 89% sure at most, never certain.",
        "Someone who was 5% sure can become 29% sure at most.",
        "This holds whatever else they know.",
        "About 74 of 100 people send nothing about this question.",
        "Of 100 people with your answer, about 21 send a result that fits it.",
        "Of 100 people with any other answer, about 6 do too.",
    )


def leak(persons: Sequence[Person]) -> tuple[float, float]:
    """Return (largest |ln P(y|s)/P(y)|, largest |ln P(y|s)/P(y|s')|) in nats about the limitation, given the plan."""
    table, belief, odds = law(part("case_workplace", "visits")), 0.0, 0.0
    for plan in PLANS:
        counts = np.array(counts_by_secret(persons, plan), dtype=float)
        by_secret = counts / counts.sum(axis=1, keepdims=True) @ table
        of_all = counts.sum(axis=0) / counts.sum() @ table
        belief = max(belief, float(np.abs(np.log(by_secret / of_all)).max()))
        odds = max(odds, float(np.abs(np.log(by_secret[0] / by_secret[1])).max()))
    return belief, odds


def workplace_statements() -> Iterator[str]:
    """Yield every statement of case_workplace.md that has a digit."""
    yield from workplace_design()
    yield from workplace_shares()
    yield from workplace_decision()
    yield from workplace_label()


def workplace_design() -> Iterator[str]:
    """Yield the statements about people, protection and the table."""
    page = "case_workplace"
    published, staff = workplace()
    yield "from 1974 to 1982"
    yield f"{len(published) + len(staff):,} of its yearly records"
    yield f"{len(staff):,} of them, drawn by chance, play the staff"
    yield f"The other {len(published):,} play the published table"
    limited = [p for p in published if p["limitation"] == "yes"]
    others = [p for p in published if p["limitation"] == "no"]
    yield (
        f"{percent(share(limited, visits=['more']))} of those with a limitation saw a doctor more than five times, and "
        f"{percent(share(others, visits=['more']))} of the others"
    )
    level = document(page).report_level
    about = level.secrets["limitation"]
    yield f"LIP at 0.5 nats: its odds change by at most ×{odds_of(about.odds):.2f}"
    ceiling = odds_of(level.answers.odds)
    yield (
        "**A ceiling of 2 nats:** odds about the answer itself, or anything else, change by at most "
        f"×{ceiling:.2f}"
    )
    own = expected(page, "document", len(staff))["visits",][1]
    one = coin_margin(1, 4, len(staff))
    yield f"a margin of ±{own:.1f} points for every answer"
    yield (
        "Without the table, randomised response with ×2.72 for the answer itself would have given "
        f"±{one:.1f} points; the same margin would have needed about {needed(one, own, len(staff))} people"
    )
    assert math.exp(1) == pytest.approx(odds_of(about.odds), rel=1e-3)
    assert coin_margin(2, 4, len(staff)) == pytest.approx(own, rel=0.01)
    yield "ordinary randomised response at 2 nats"
    belief, odds = leak(published)
    yield f"If the published table is true, belief changes by at most {belief:.2f} nats, not 0.5"
    belief_of_staff, odds_of_staff = leak(staff)
    assert max(odds, odds_of_staff) < 1
    yield f"For the {len(staff):,} it is {belief_of_staff:.2f} nats"
    yield f"could become {math.ceil(100 * ceiling / (1 + ceiling))}% sure of the limitation, instead of 74%"
    yield "somebody who was 50% sure"
    yield f"{run(page)['open_points']} open points"
    yield f"×{math.exp(1 + 2):.2f} instead of ×2.72"
    yield "Article 35"


def workplace_shares() -> Iterator[str]:
    """Yield the statements about shares."""
    page, staff = "case_workplace", workplace()[1]
    rows = rows_of(page, "estimates")
    for label, choice in zip(
        ("Not once", "Once or twice", "Three to five times", "More often"), VISITS, strict=True
    ):
        yield line(label, share(staff, visits=[choice]), rows["visits", choice, ""])
    sums = rows_of(page, "sum") | rows_of(page, "sum_by_plan")
    total = sums["visits", "three or more", ""]
    yield line("Three times or more", share(staff, visits=THREE), total)
    group = {plan: [p for p in staff if p["plan"] == plan] for plan in PLANS}
    for plan, name in zip(PLANS, ("free", "shared"), strict=True):
        row = sums["visits", "three or more", f"plan={plan}"]
        yield line(f"Three times or more, {name} plan", share(group[plan], visits=THREE), row)
    row = rows_of(page, "visits_by_plan")["visits", "three-five", "plan=shared"]
    true = share(group["shared"], visits=["three-five"])
    yield line("Three to five times, shared plan", true, row)
    singles = [*run(page)["estimates"], *run(page)["visits_by_plan"]]
    outside = [
        (row["choice"], row["by"])
        for row in singles
        if not row["low"]
        <= share(group.get(row["by"].rpartition("=")[2], staff), visits=[row["choice"]])
        <= row["high"]
    ]
    assert outside == [("three-five", "plan=shared")]
    yield f"Of the {len(singles)} shares of single answers"
    wider = rows_of(page, "estimates_of_more_people")["visits", "more", ""]
    yield f"({shown(wider).ends} for “More often”)"


def workplace_decision() -> Iterator[str]:
    """Yield the statements about differences, and those that the rules need."""
    page, staff = "case_workplace", workplace()[1]
    group = {plan: [p for p in staff if p["plan"] == plan] for plan in PLANS}
    total = rows_of(page, "sum")["visits", "three or more", ""]
    [tests] = run(page)["comparisons"]
    of = {row["choice"]: row for row in tests["rows"]}
    [several] = run(page)["sum_comparisons"][0]["rows"]
    true = {
        name: points(
            share(group["shared"], visits=chosen) - share(group["free"], visits=chosen), SHARE
        )
        for name, chosen in {"three": THREE, "none": ["none"], "more": ["more"]}.items()
    }
    yield f"Three times or more: {compared(several)}; in truth {true['three']}"
    yield f"Not once: {compared(of['none'])}; in truth {true['none']}"
    yield f"More often: {compared(of['more'])}"
    yield f"corrected for the four tests of the question, {p_text(of['more']['p_holm'])}"
    yield f"“once or twice” ({p_text(of['one-two']['p'])})"
    yield "at least 30% of the staff see a doctor three times a year or more"
    assert total["low"] > 0.3
    yield f"the whole interval, {shown(total).ends}, is above 30%"
    yield "differ by more than 3 points"
    assert several["high"] < -0.03
    yield f"the whole interval, {ends_of(several)}, is beyond 3 points"
    yield "differ by more than 5 points"
    assert of["more"]["high"] > -0.05
    yield f"the interval is {ends_of(of['more'])}. In truth the difference is {true['more']}"


def workplace_label() -> Iterator[str]:
    """Yield the sentences that respondents read."""
    page = "case_workplace"
    yield from said(
        page,
        "Your answer to “Which health plan do you have?” is sent just as you give it.",
        "This device changes all other answers by chance first.",
        "From the result nobody can be sure of your other answers, not even those who ask.",
        "The server may see your network address, like any website.",
        "Of 100 people with your answer, about 71 send a result that fits it.",
        "Of 100 people with any other answer, about 10 do too.",
        "Someone who knows what you send as it is, and was 50% sure how you answered one of the other questions, can "
        "become 89% sure at most, never certain.",
        "Someone who was 5% sure can become 29% sure at most.",
        "This holds whatever else they know.",
        "Someone who knows only the published tables and what you send as it is, and was 50% sure of your "
        "“limitation”, can become 74% sure at most.",
        "Someone who was 5% sure can become 13% sure at most.",
        "This holds as long as these tables are true.",
    )


STATEMENTS: Final[Mapping[str, Callable[[], Iterator[str]]]] = {
    "case_redbook": redbook_statements,
    "case_workplace": workplace_statements,
}

PLAIN: Final = {
    "case_redbook": (
        "`python3 run.py demo`",
        "*Journal of Political Economy*, 1978",
        "95% interval",
    ),
    "case_workplace": ("95% interval", "an interval at 95%"),
}
"""Words with digits that are no figures of a run."""


def prose(page: str) -> str:
    """Return a page's text as one line, without the targets of links, pictures and marks of quotation."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return " ".join(re.sub(r"^> ?", "", text, flags=re.MULTILINE).split())


def faults(text: str, statements: Sequence[str]) -> list[str]:
    """Return the statements that the text lacks, and its digits outside all statements."""
    missing = [one for one in statements if one not in text]
    # Long statements first: short ones can be a part of them.
    for one in sorted(statements, key=len, reverse=True):
        text = text.replace(one, " ")
    return missing + re.findall(r"\S*\d\S*", text)


@cache
def statements_of(page: str) -> tuple[str, ...]:
    return tuple(" ".join(one.split()) for one in STATEMENTS[page]())


@pytest.mark.parametrize("page", PAGES)
def test_every_number_of_the_page_is_recomputed(page: str) -> None:
    text = prose(page)
    for plain in PLAIN[page]:
        text = text.replace(plain, " ")
    assert faults(text, statements_of(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_changed_number_is_found(page: str) -> None:
    """Planted faults: each digit of each number, replaced by another one."""
    text = prose(page)
    for plain in PLAIN[page]:
        text = text.replace(plain, " ")
    statements = statements_of(page)
    places = [found.start() for found in re.finditer(r"\d", text)]
    assert len(places) > 200
    for place in places:
        wrong = str((int(text[place]) + 1) % 10)
        assert faults(text[:place] + wrong + text[place + 1 :], statements), text[
            place - 30 : place + 10
        ]
