# SPDX-License-Identifier: Apache-2.0
"""Estimates request: targets, grouping, span of days, confidence level and margin method."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.analysis.periods import ALL_DAYS, PERIODS, Span
from frankly_server.estimate.margins import DEFAULT, METHODS, require_level

VERSION: Final = "version"
"""Value of `by`: a separate estimate for each published version of the survey."""
RESPONDENTS: Final = "respondents"
INVERSE_VARIANCE: Final = "inverse-variance"
WEIGHTS: Final = (RESPONDENTS, INVERSE_VARIANCE)
"""Weights of versions that are pooled."""
PERCENT: Final = ("row", "column")
"""Shares of a cross-table within the rows, or within the columns."""
_MAX_TARGETS, _MAX_JOINT_QUESTIONS = 256, 6

Coefficients = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Combination:
    """Σ of · shares, or that sum over Σ over · shares (a ratio) where `over` is given."""

    of: Coefficients
    over: Coefficients | None = None


Combinations = Mapping[str, Mapping[str, Combination]]
"""question id, or "a,b" for a joint table -> name of the target -> combination of its choices, or cells "x,y"."""


@dataclass(frozen=True, slots=True)
class Request:
    """Options of one estimates request. A result carries them as JSON, so that it can be replayed.

    level : confidence of the margins, between 0 and 1.
    method : kind of margin, one of `METHODS`.
    census : True if the respondents are the whole population.
    population : N, if the respondents were drawn without replacement from N people.
    span : days of release to include.
    joint : question ids of one joint table, instead of the shares of every question.
    combinations : targets by question, instead of the shares of every question.
    by : a public question of the survey, or "version"; "day", "week" or "month"; or one of each,
        separated by a comma. None for all reports together.
    percent : one of `PERCENT`; for a joint table of two questions, the shares within each row (a
        choice of the first question) or column.
    weights : of versions that are pooled, one of `WEIGHTS`.
    """

    level: float = 0.95
    method: str = DEFAULT
    census: bool = False
    joint: tuple[str, ...] | None = None
    combinations: Combinations | None = None
    by: str | None = None
    span: Span = ALL_DAYS
    population: int | None = None
    percent: str | None = None
    weights: str = RESPONDENTS

    @property
    def group(self) -> str | None:
        """Public question, or "version", that estimates are grouped by; None for neither."""
        return next((name for name in _names(self.by) if name not in PERIODS), None)

    @property
    def period(self) -> str | None:
        """One of `PERIODS` if estimates are grouped by it, else None."""
        return next((name for name in _names(self.by) if name in PERIODS), None)

    @property
    def is_dated(self) -> bool:
        """True if the result depends on the days of release."""
        return self.period is not None or bool(self.span)

    @classmethod
    def from_json(cls, value: Any) -> "Request":
        """Read a request. Raises InvalidInput: confidence_range, targets_invalid, field_type, field_unknown."""
        fields = REQUEST.record(value, None, frozenset(), _FIELDS)
        method, by, targets = fields.get("method", DEFAULT), fields.get("by"), fields.get("targets")
        census = REQUEST.flag(fields.get("census", False), "census")
        _check(method, targets, census=census)
        _check_by(by)
        percent, weights = fields.get("percent"), fields.get("weights", RESPONDENTS)
        _check_percent(percent, targets)
        _check_weights(weights, census=census)
        combinations = _combinations(targets) if isinstance(targets, Mapping) else None
        _check_weights_of_ratios(weights, percent, combinations)
        span, population = (
            Span.read(fields.get("since"), fields.get("until")),
            fields.get("population"),
        )
        if population is not None:
            _check_population(
                REQUEST.whole(population, "population"),
                method,
                is_apart=by is not None or bool(span),
            )
        return cls(
            level=require_level(fields.get("level", 0.95)),
            method=method,
            census=census,
            joint=_joint(targets) if isinstance(targets, list) else None,
            combinations=combinations,
            by=by,
            span=span,
            population=population,
            percent=percent,
            weights=weights,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON values; decimals are texts."""
        targets: Any = "shares"
        if self.joint is not None:
            targets = list(self.joint)
        elif self.combinations is not None:
            targets = {
                q: {name: _written(c) for name, c in by_name.items()}
                for q, by_name in self.combinations.items()
            }
        fields = {
            "level": self.level,
            "method": self.method,
            "census": self.census,
            "targets": targets,
            "by": self.by,
        }
        fields |= {
            "since": self.span.since,
            "until": self.span.until,
            "population": self.population,
        }
        return fields | {"percent": self.percent, "weights": self.weights}


_FIELDS: Final = frozenset(
    "level method census targets by since until population percent weights".split()
)


def _check(method: Any, targets: Any, *, census: bool) -> None:
    if method not in METHODS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the methods are {', '.join(METHODS)}", "method")
    if targets not in (None, "shares") and not isinstance(targets, list | Mapping):
        detail = 'give "shares", a list of question ids for their joint table, or combinations of choices by question'
        raise InvalidInput(Problem.TARGETS_INVALID, detail, "targets")
    if census and method == "sequence":
        detail = "a sequence of looks is about a sample: for everybody use kl"
        raise InvalidInput(Problem.UNSUPPORTED, detail, "method")


def _check_percent(percent: Any, targets: Any) -> None:
    if percent is None:
        return
    if percent not in PERCENT:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"percentages are of a {' or a '.join(PERCENT)}", "percent"
        )
    if not isinstance(targets, list) or len(targets) != 2:
        detail = "percentages are of a table of two questions: name both in targets"
        raise InvalidInput(Problem.TARGETS_INVALID, detail, "percent")


def _check_weights(weights: Any, *, census: bool) -> None:
    if weights not in WEIGHTS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the weights are {', '.join(WEIGHTS)}", "weights")
    if census and weights != RESPONDENTS:
        detail = "in a census every version stands for its own respondents: leave the weights out"
        raise InvalidInput(Problem.UNSUPPORTED, detail, "weights")


def _check_weights_of_ratios(
    weights: str, percent: str | None, combinations: Combinations | None
) -> None:
    # Inverse-variance weights differ between numerator and denominator: their ratio would describe
    # no group of people.
    by_question = (combinations or {}).values()
    has_ratio = percent is not None or any(
        combination.over is not None for by_name in by_question for combination in by_name.values()
    )
    if weights == INVERSE_VARIANCE and has_ratio:
        detail = "a ratio or a percentage needs one weight of each version: leave the weights out"
        raise InvalidInput(Problem.UNSUPPORTED, detail, "weights")


def _check_population(people: int, method: Any, *, is_apart: bool) -> None:
    if people < 2:
        raise InvalidInput(
            Problem.COUNTS_INVALID, "a population is at least two people", "population"
        )
    if is_apart:
        detail = (
            "how many people there are of a group or a period is not known: ask for all reports"
        )
        raise InvalidInput(Problem.UNSUPPORTED, detail, "population")
    if method == "sequence":
        detail = "a sequence of looks is about an endless population: use kl, or leave the population out"
        raise InvalidInput(Problem.UNSUPPORTED, detail, "method")


def _check_by(by: Any) -> None:
    names = _names(by) if by is None or isinstance(by, str) else [""]
    periods = sum(name in PERIODS for name in names)
    if "" in names or periods > 1 or len(names) - periods > 1:
        choices = (
            f"a public question of the survey or {VERSION}, one of {', '.join(PERIODS)}, or "
            "both with a comma between"
        )
        raise InvalidInput(Problem.FIELD_TYPE, f"name {choices}", "by")


def _names(by: str | None) -> list[str]:
    return [] if by is None else by.split(",")


def _joint(value: list[Any]) -> tuple[str, ...]:
    if (
        not 1 <= len(value) <= _MAX_JOINT_QUESTIONS
        or not all(isinstance(v, str) for v in value)
        or len(set(value)) < len(value)
    ):
        detail = f"name 1 to {_MAX_JOINT_QUESTIONS} different questions for one table"
        raise InvalidInput(Problem.TARGETS_INVALID, detail, "targets")
    return tuple(value)


def _combinations(value: Mapping[str, Any]) -> Combinations:
    combinations: dict[str, dict[str, Combination]] = {}
    for question, by_name in value.items():
        where = f"targets.{question}"
        if not isinstance(by_name, Mapping) or not 1 <= len(by_name) <= _MAX_TARGETS:
            detail = f"give 1 to {_MAX_TARGETS} named combinations of the question's choices"
            raise InvalidInput(Problem.TARGETS_INVALID, detail, where)
        combinations[question] = {
            name: _combination(entry, f"{where}.{name}") for name, entry in by_name.items()
        }
    if not combinations:
        raise InvalidInput(Problem.TARGETS_INVALID, "name a question", "targets")
    return combinations


def _combination(value: Any, field: str) -> Combination:
    if isinstance(value, Mapping) and set(value) == {"of", "over"}:
        return Combination(_coefficients(value["of"], field), _coefficients(value["over"], field))
    return Combination(_coefficients(value, field))


def _coefficients(value: Any, field: str) -> Coefficients:
    if not isinstance(value, Mapping) or not value:
        detail = 'give numbers by choice, such as {"yes": 1, "no": -1}, or {"of": …, "over": …} for a ratio'
        raise InvalidInput(Problem.TARGETS_INVALID, detail, field)
    return {choice: _exact(v, field) for choice, v in value.items()}


def _exact(value: Any, field: str) -> Fraction:
    """Return a coefficient exactly as written: a number, or a text as in a stored result."""
    try:
        read = REQUEST.number(Decimal(value) if isinstance(value, str) else value, field)
    except ArithmeticError:
        read = Decimal("nan")
    if not read.is_finite() or (read and abs(read.adjusted()) > 12):
        raise InvalidInput(Problem.TARGETS_INVALID, "give numbers of ordinary size", field)
    return Fraction(read)


def _written(combination: Combination) -> dict[str, Any]:
    def decimals(coefficients: Coefficients) -> dict[str, str]:
        # Exact, because every coefficient was read from a decimal.
        return {
            c: str(Decimal(v.numerator) / Decimal(v.denominator)) for c, v in coefficients.items()
        }

    of = decimals(combination.of)
    return of if combination.over is None else {"of": of, "over": decimals(combination.over)}
