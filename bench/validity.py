# SPDX-License-Identifier: Apache-2.0
"""Simulate surveys in which some people answer at random, corrected by an item or an anchor.

Items: 1 coverage at 95 %, beside that of the uncorrected normal interval; 2 coverage of a question
of a form; 3 mean standard error over the true one; 4 standard error over that of the uncorrected
estimate, beside that of the estimate from those who passed: where it is largest, and where it is
largest beside the other; 5 size of the test of the law of random answers; 6 its power; 7 bias if an
assumption does not hold; 8 coverage with 50 to 200 reports, of which many are at random; 9 and 10
the same as 1, 2 and 8, and as 7, if it is known of every report whether it failed. By an anchor, a
question with known shares: 11 coverage beside it in a block, 12 in one form; 13 mean standard error
over the true one; 14 the factor of the standard error over its formula; 15 bias if an assumption
does not hold; 16 size of the test of the anchor; 17 sources flagged for random answers, with and
without fakes in one of them. A row is the worst of the surveys that differ only
in the share of random answers, in items 3, 4 and 13 also in the share estimated. Surveys are drawn
as counts from the exact law of the reports. The server's own code estimates some of each kind; any
difference above 1e-9 ends the bench. Exits 1 if a demand is not met.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

import numpy as np
from _design.row import Row
from _validity import anchored, law, sources, surveys
from _validity.anchored import Survey, anchor_differences
from _validity.cells import Cell
from _validity.estimates import TOLERANCE, differences, means_of, of_all, of_passers, uncorrected
from _validity.rows import printed, row_of
from frankly_design.estimate.validity import BY_GROUP, SHOWN

SURVEYS, CHECKED = 20_000, 5
COVERAGE = 94.0, 98.0
"""Demand in per cent; the upper end is that of the usual score interval where answers are rare."""
ERROR = (0.97, 1.03)
SIZE, LEAST_TESTED = (4.3, 5.7), 30
"""Demand on the size in per cent, from this number of failures on."""
COST = (0.98, 1.02)
ANCHOR_SIZE, TESTED = (0.0, 6.0), 5000
"""Demand on the size of the test of an anchor, which is exact only for many reports; surveys of each kind."""
BIAS_WITHIN = 0.1
"""Points between the mean of simulated surveys and the formula of the bias."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line, simulate and print."""
    printed("validity", __doc__, SURVEYS, measured, arguments)


def measured(runs: int) -> Iterator[Row]:
    """Yield the rows of every item. runs : simulated surveys per cell."""
    rng = np.random.default_rng(1)
    errors, costs, merging = dict[str, Row](), dict[str, Row](), dict[str, Row]()
    for item, cells in ((1, _same_report()), (2, _forms()), (8, surveys.few_reports())):
        for _, of_survey in groupby(cells, key=attrgetter("survey")):
            rows, if_known = list[Row](), list[Row]()
            for cell in of_survey:
                covered, known, error, cost = _estimates(cell, runs, rng, item)
                rows.append(covered)
                if_known.append(known)
                if covered.item != 8:
                    name = cell.table.name
                    errors[name] = max(errors.get(name, error), error, key=_off(1))
                    costs[name] = max(costs.get(name, cost), cost, key=_off(0))
                    merging[name] = max(merging.get(name, cost), cost, key=_over_baseline)
            yield max(rows, key=_off(95))
            yield max(if_known, key=_off(95))
    yield from errors.values()
    yield from dict.fromkeys((*costs.values(), *merging.values()))
    yield from _law(runs, rng)
    for cell in surveys.wrong():
        yield from _bias(cell, runs, rng)
    yield from _by_anchors(runs, rng)


def _by_anchors(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    """Yield the rows of surveys with an anchor."""
    errors = dict[str, Row]()
    for item, kinds in ((11, _in_blocks()), (12, _in_forms())):
        for _, of_survey in groupby(kinds, key=attrgetter("survey")):
            rows = []
            for survey in of_survey:
                covered, error = _of_anchor(item, survey, runs, rng)
                rows.append(covered)
                kind = f"{survey.known.counts}, {item}"
                errors[kind] = max(errors.get(kind, error), error, key=_off(1))
            yield max(rows, key=_off(95))
    yield from errors.values()
    for survey in anchored.costs():
        start = time.process_time()
        drawn = survey.draw(runs, rng)
        usual = means_of(survey, drawn.of_question)[0][:, 0]
        cost = float(np.std(anchored.by_anchor(survey, drawn).values) / np.std(usual))
        seconds = time.process_time() - start
        name, limit = survey.name, COST
        yield row_of(14, name, cost / survey.factor, limit, seconds, "factor", survey.factor)
    for survey in anchored.wrong_anchors():
        yield _bias_of_anchor(survey, runs, rng)
    start = time.process_time()
    for case, rejected in anchored.sizes(min(runs, TESTED), rng):
        yield row_of(16, case, 100 * rejected, ANCHOR_SIZE, time.process_time() - start, unit=" %")
        start = time.process_time()
    for case, flagged, demand in sources.measured(min(runs, TESTED), rng):
        yield row_of(17, case, flagged, demand, time.process_time() - start, unit=" %")
        start = time.process_time()


def _of_anchor(item: int, survey: Survey, runs: int, rng: np.random.Generator) -> tuple[Row, Row]:
    """Return coverage and standard error of a survey with an anchor."""
    start = time.process_time()
    drawn = survey.draw(runs, rng)
    _check(survey.name, max(anchor_differences(survey, drawn, min(CHECKED, runs)), default=0.0))
    many = anchored.by_anchor(survey, drawn)
    seconds = time.process_time() - start
    limit = COVERAGE if survey.relative <= SHOWN else None
    within = ERROR if survey.relative <= BY_GROUP else None
    covered = 100 * many.coverage(survey.theta)
    error = float(np.mean(many.se) / np.std(many.values))
    return (
        row_of(item, survey.name, covered, limit, seconds, unit=" %"),
        row_of(13, survey.name, error, within, seconds),
    )


def _bias_of_anchor(survey: Survey, runs: int, rng: np.random.Generator) -> Row:
    start = time.process_time()
    drawn = survey.draw(runs, rng)
    at_anchor = survey.random if survey.at_anchor is None else survey.at_anchor
    assumed, actual = survey.assumed[0], (survey.actual or survey.assumed)[0]
    wrong_share = (survey.random - at_anchor) * (assumed - survey.theta)
    expected = 100 * (wrong_share + survey.random * (actual - assumed)) / (1 - at_anchor)
    found, plain = (
        100 * (float(np.mean(values)) - survey.theta)
        for values in (
            anchored.by_anchor(survey, drawn).values,
            means_of(survey, drawn.of_question)[0][:, 0],
        )
    )
    limit, seconds = (expected - BIAS_WITHIN, expected + BIAS_WITHIN), time.process_time() - start
    return row_of(15, survey.survey, found, limit, seconds, "uncorrected", plain, " points")


def _off(middle: float) -> Callable[[Row], float]:
    """Return a function that returns the distance of a row's value from another value."""
    return lambda row: abs((row.value or 0.0) - middle)


def _over_baseline(row: Row) -> float:
    return (row.value or 0.0) / (row.baseline_value or 1.0)


def _same_report() -> Iterator[Cell]:
    yield from surveys.same_report()


def _forms() -> Iterator[Cell]:
    yield from surveys.of_forms()


def _in_blocks() -> Iterator[Survey]:
    yield from anchored.in_blocks()


def _in_forms() -> Iterator[Survey]:
    yield from anchored.in_forms()


def _estimates(
    cell: Cell, runs: int, rng: np.random.Generator, item: int
) -> tuple[Row, Row, Row, Row]:
    """Return coverage, the same if it is known who failed, standard error, cost of the correction."""
    start = time.process_time()
    drawn = cell.draw(runs, rng)
    _check(cell.name, max(differences(cell, drawn, min(CHECKED, runs)), default=0.0))
    many, plain, known = (one(cell, drawn) for one in (of_all, uncorrected, of_passers))
    deviation, usual, passers = (float(np.std(one.values)) for one in (many, plain, known))
    seconds = time.process_time() - start
    covered, before, if_known = (100 * one.coverage(cell.theta) for one in (many, plain, known))
    limit = COVERAGE if cell.relative <= SHOWN else None
    within = ERROR if cell.relative <= BY_GROUP else None
    error = float(np.mean(many.se)) / deviation
    return (
        row_of(item, cell.name, covered, limit, seconds, "uncorrected", before, " %"),
        row_of(9, cell.name, if_known, limit, seconds, "not known", covered, " %"),
        row_of(3, cell.name, error, within, seconds),
        row_of(4, cell.name, deviation / usual, None, seconds, "passers alone", passers / usual),
    )


def _law(runs: int, rng: np.random.Generator) -> Iterator[Row]:
    for item, tests in ((5, law.sizes), (6, law.powers)):
        start = time.process_time()
        for name, about, rejected, difference in tests(runs, rng):
            if difference > TOLERANCE:
                sys.exit(f"{name}: the server's p-value differs by {difference:g}")
            limit = SIZE if item == 5 and about >= LEAST_TESTED else None
            case = f"{name}, about {about} failed"
            seconds = time.process_time() - start
            yield row_of(item, case, 100 * rejected, limit, seconds, unit=" %")
            start = time.process_time()


def _bias(cell: Cell, runs: int, rng: np.random.Generator) -> Iterator[Row]:
    start = time.process_time()
    drawn = cell.draw(runs, rng)
    bias, known, plain = (
        100 * (float(np.mean(one(cell, drawn).values)) - cell.theta)
        for one in (of_all, of_passers, uncorrected)
    )
    seconds = time.process_time() - start
    for item, found, expected in ((7, bias, bias_of(cell)), (10, known, bias_if_known(cell))):
        limit = 100 * expected - BIAS_WITHIN, 100 * expected + BIAS_WITHIN
        yield row_of(item, cell.survey, found, limit, seconds, "uncorrected", plain, " points")


def bias_of(cell: Cell) -> float:
    """Return the bias of a share by the formulas of docs/maths/validity.md."""
    at_item = cell.random if cell.at_item is None else cell.at_item
    assumed, actual = cell.assumed[0], (cell.actual or cell.assumed)[0]
    kept = 1 - at_item
    wrong_share = (cell.random - at_item) * (assumed - cell.theta) / kept
    return float(wrong_share + cell.random * (actual - assumed) / kept)


def bias_if_known(cell: Cell) -> float:
    """Return the same if it is known who failed: then a part of those counts by the law."""
    at_item = cell.random if cell.at_item is None else cell.at_item
    assumed, actual = cell.assumed[0], (cell.actual or cell.assumed)[0]
    kept, both = 1 - at_item, min(at_item, cell.random)
    # Those who fail although they answer the question with care count by the law too.
    share = (
        cell.random - at_item if cell.random > at_item else (cell.random - at_item) / cell.choices
    )
    by_chance = cell.random - both + both / cell.choices
    return float(share * (assumed - cell.theta) / kept + by_chance * (actual - assumed) / kept)


def _check(name: str, difference: float) -> None:
    if difference > TOLERANCE:
        sys.exit(f"{name}: the server's estimate differs by {difference:g}")


if __name__ == "__main__":
    main()
