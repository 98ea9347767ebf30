# SPDX-License-Identifier: Apache-2.0
"""Parser and checks for the estimates request that `frankly_analyst.request` declares."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Final

from frankly_analyst.request import (
    ANSWERED,
    COLUMN,
    COMPARISONS,
    FIELDS,
    INVERSE_VARIANCE,
    KINDS,
    RESPONDENTS,
    ROW,
    SCALES,
    SHARES,
    WANTED,
    EstimatesRequest,
)
from frankly_design.estimate.denial import checked_denial
from frankly_design.estimate.margins import DEFAULT, require_level
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST

from frankly_server.analysis.periods import ALL_DAYS, PERIODS, Span

VERSION: Final = "version"
"""Value of `by`: a separate estimate for each published version of the survey."""
_MAX_TARGETS, _MAX_JOINT_QUESTIONS, _MAX_CONTRAST, _MAX_QUANTILES = 256, 6, 2**14, 20
_MARGIN_LIMIT: Final = 1e9
_QUANTILE: Final = re.compile(r"0?\.[0-9]{1,6}")

Coefficients = Mapping[str, Fraction]


@dataclass(frozen=True, slots=True)
class Combination:
    """Sum of shares with the coefficients `of`, divided by the sum with `over` unless that is None.

    answered : True to divide the sum by the share of people who answered.
    """

    of: Coefficients
    over: Coefficients | None = None
    answered: bool = False


Combinations = Mapping[str, Mapping[str, Combination]]
"""Combinations by question id ("a,b" for a joint table) and name of the target."""


@dataclass(frozen=True, slots=True)
class Request(EstimatesRequest):
    """A checked estimates request; a result contains it as JSON, so that it can be replayed.

    method : the effective method, after the default and the flag `simultaneous` are applied.
    targets : as JSON, with decimals as texts. combinations : the targets as exact numbers, if they
    are combinations. contrast : weights by group id, if `compare` contains weights. span : days of
    release to include. random_law : weights of choices by question, if `random` states them. sizes :
    positive sizes by choice id, if `group_sizes` states them.
    """

    method: str = DEFAULT
    combinations: Combinations | None = None
    contrast: Mapping[str, float] | None = None
    span: Span = ALL_DAYS
    random_law: Mapping[str, Coefficients] | None = None
    sizes: Coefficients | None = None

    @property
    def joint(self) -> tuple[str, ...] | None:
        """Question ids of one joint table, instead of the shares of every question."""
        return tuple(self.targets) if isinstance(self.targets, list) else None

    @property
    def group(self) -> str | None:
        """Public question by which estimates are grouped, or "version"; None for neither."""
        return next((name for name in _names(self.by) if name not in PERIODS), None)

    @property
    def period(self) -> str | None:
        """One of `PERIODS` if estimates are grouped by it, else None."""
        return next((name for name in _names(self.by) if name in PERIODS), None)

    @property
    def quantile_levels(self) -> dict[str, float]:
        """Quantile levels of scales, by their text in the request."""
        return {text: float(text) for text in (self.quantiles or "0.5").split(",")}

    @property
    def is_dated(self) -> bool:
        """True if the result depends on the days of release."""
        return self.period is not None or bool(self.span)

    @property
    def is_ratio(self) -> bool:
        """True if some estimate may be a ratio or a percentage."""
        # Figures of a scale are ratios if a choice has a role.
        if self.targets == SCALES:
            return True
        by_question = (self.combinations or {}).values()
        return self.percent is not None or any(
            target.over is not None or target.answered
            for by_name in by_question
            for target in by_name.values()
        )

    @classmethod
    def from_json(cls, value: Any) -> "Request":
        """Read a request; null stands for a field's default.

        Raises InvalidInput: confidence_range, targets_invalid, field_type, field_unknown,
        counts_invalid, unsupported.
        """
        # null counts as absent, so that clients may send all fields.
        given = REQUEST.record(value, None, frozenset(), frozenset(FIELDS))
        fields = {name: _field(name, v) for name, v in given.items() if v is not None}
        fields |= {"method": _method(fields), "simultaneous": False}
        fields["span"] = Span.read(fields.get("since"), fields.get("until"))
        if isinstance(fields.get("targets"), Mapping):
            fields["combinations"] = combinations = _combinations(fields["targets"])
            fields["targets"] = {
                question: {name: _written(target) for name, target in by_name.items()}
                for question, by_name in combinations.items()
            }
        if str(fields.get("compare", "")).startswith("{"):
            fields["contrast"] = _contrast(fields["compare"])
        if "random" in fields:
            fields["random_law"] = _random_law(fields["random"])
        if "group_sizes" in fields:
            fields["sizes"] = _sizes(fields["group_sizes"])
        request = cls(**fields)
        for is_broken, problem, field, detail in _RULES:
            if is_broken(request):
                raise InvalidInput(problem, detail, field)
        return request

    def to_json(self) -> dict[str, Any]:
        """Return the request as JSON values; decimals are texts."""
        return {name: getattr(self, name) for name in FIELDS if name != "simultaneous"}


_READERS: Final[Mapping[Any, Callable[[Any, str], Any]]] = {
    float: require_level,
    bool: REQUEST.flag,
    int: REQUEST.whole,
}


MARGIN_RANGE: Final = (
    "the largest difference is above 0 and below 1,000,000,000: for 5 points of a share use 0.05"
)
"""Message about `equivalence`."""


def require_positive(value: Any, name: str) -> float:
    """Return a positive number below 10^9. Raises InvalidInput(field_type)."""
    number = float(REQUEST.number(value, name))
    if not 0 < number < _MARGIN_LIMIT:
        raise InvalidInput(Problem.FIELD_TYPE, MARGIN_RANGE, name)
    return number


_READERS_BY_NAME: Final[Mapping[str, Callable[[Any, str], Any]]] = {
    "denial": checked_denial,
    "equivalence": require_positive,
}


def _field(name: str, value: Any) -> Any:
    """Return the value of a field, converted to its declared type. Raises InvalidInput."""
    choices = FIELDS[name].metadata.get("choices")
    if choices and value not in choices:
        raise InvalidInput(Problem.FIELD_TYPE, f"choose one of {', '.join(choices)}", name)
    reader = _READERS_BY_NAME.get(name) or _READERS.get(KINDS[name])
    return value if reader is None else reader(value, name)


def _method(fields: Mapping[str, Any]) -> str:
    method = fields.get("method")
    # The flag `simultaneous` asks for a simultaneous method, so any other method contradicts it.
    if not fields.get("simultaneous"):
        return method or DEFAULT
    if method not in (None, "simultaneous", "simultaneous_plugin"):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"simultaneous and {method} select different methods: give one of them",
            "simultaneous",
        )
    return method or "simultaneous"


def _is_grouping(by: Any) -> bool:
    """Return True for None, a name, a period, or one of each."""
    names = _names(by) if by is None or isinstance(by, str) else [""]
    periods = sum(name in PERIODS for name in names)
    return "" not in names and periods <= 1 and len(names) - periods <= 1


def _are_quantiles(text: Any) -> bool:
    parts = text.split(",") if isinstance(text, str) else [""]
    numbers = {float(part) for part in parts if _QUANTILE.fullmatch(part)}
    return len(numbers) == len(parts) <= _MAX_QUANTILES and 0 not in numbers


def _names(by: str | None) -> list[str]:
    return [] if by is None else by.split(",")


def _is_table(questions: Any) -> bool:
    """Return True for a list of 1 to `_MAX_JOINT_QUESTIONS` distinct texts."""
    return (
        isinstance(questions, list)
        and 1 <= len(questions) <= _MAX_JOINT_QUESTIONS
        and all(isinstance(question, str) for question in questions)
        and len(set(questions)) == len(questions)
    )


_RULES: Final[Sequence[tuple[Callable[[Request], bool], Problem, str, str]]] = (
    (
        lambda r: (
            r.targets not in (WANTED, SHARES, SCALES) and not isinstance(r.targets, list | Mapping)
        ),
        Problem.TARGETS_INVALID,
        "targets",
        'give "wanted", "shares", "scales", a list of question ids for their joint table, or combinations of '
        "choices by question",
    ),
    (
        lambda r: isinstance(r.targets, list) and not _is_table(r.targets),
        Problem.TARGETS_INVALID,
        "targets",
        f"name 1 to {_MAX_JOINT_QUESTIONS} different questions for one table",
    ),
    (
        lambda r: r.census and r.method == "sequence",
        Problem.UNSUPPORTED,
        "method",
        "confidence sequences are about a sample: for a census use kl",
    ),
    (
        lambda r: not _is_grouping(r.by),
        Problem.FIELD_TYPE,
        "by",
        f"name a public question or {VERSION}, one of {', '.join(PERIODS)}, or one of each: a,b",
    ),
    (
        lambda r: r.percent in (ROW, COLUMN) and len(r.joint or ()) != 2,
        Problem.TARGETS_INVALID,
        "percent",
        "percentages need a table of two questions: name both in targets",
    ),
    (
        lambda r: r.percent == ANSWERED and r.targets not in (WANTED, SHARES),
        Problem.TARGETS_INVALID,
        "percent",
        'percent=answered gives shares, so targets=shares goes with it; in combinations use "over": "answered"',
    ),
    (
        lambda r: r.quantiles is not None and r.targets != SCALES,
        Problem.TARGETS_INVALID,
        "quantiles",
        "quantiles are of scales: request targets=scales",
    ),
    (
        lambda r: r.quantiles is not None and not _are_quantiles(r.quantiles),
        Problem.FIELD_TYPE,
        "quantiles",
        f"give 1 to {_MAX_QUANTILES} different decimals between 0 and 1, such as 0.25,0.5,0.75",
    ),
    (
        lambda r: r.census and r.weights != RESPONDENTS,
        Problem.UNSUPPORTED,
        "weights",
        "in a census every version describes only its respondents: leave the weights out",
    ),
    (
        # Inverse-variance weights of numerator and denominator differ, so their ratio would not
        # describe any group of people.
        lambda r: r.weights == INVERSE_VARIANCE and r.is_ratio,
        Problem.UNSUPPORTED,
        "weights",
        "a ratio or percentage needs a single weight per version: leave the weights out",
    ),
    (
        lambda r: r.compare == "" or not isinstance(r.compare or "", str),
        Problem.FIELD_TYPE,
        "compare",
        f"give {', '.join(COMPARISONS)}, the id of a group, or JSON weights of groups",
    ),
    (
        lambda r: r.compare is not None and r.by is None,
        Problem.UNSUPPORTED,
        "compare",
        "only groups can be compared: name them in by",
    ),
    (
        lambda r: r.equivalence is not None and r.compare is None,
        Problem.UNSUPPORTED,
        "equivalence",
        "only differences of groups are tested for equivalence: add compare",
    ),
    (
        lambda r: r.compare is not None and r.method == "sequence",
        Problem.UNSUPPORTED,
        "method",
        "comparisons have no confidence sequence: use kl, or leave compare out",
    ),
    (
        lambda r: r.sizes is not None and r.group in (None, VERSION),
        Problem.UNSUPPORTED,
        "group_sizes",
        "sizes are those of the choices of a public question: name it in by",
    ),
    (
        lambda r: r.sizes is not None and r.method == "sequence",
        Problem.UNSUPPORTED,
        "method",
        "a population of groups has no confidence sequence: use kl, or leave group_sizes out",
    ),
    (
        lambda r: r.completion and (r.by is not None or bool(r.span)),
        Problem.UNSUPPORTED,
        "completion",
        "completion is that of all released reports: leave by, since and until out",
    ),
    (
        lambda r: r.completion and (r.targets not in (WANTED, SHARES) or r.percent is not None),
        Problem.UNSUPPORTED,
        "completion",
        "completion is about every question of a form: leave targets and percent out",
    ),
    (
        lambda r: r.population is not None and r.population < 2,
        Problem.COUNTS_INVALID,
        "population",
        "a population is at least two people",
    ),
    (
        lambda r: r.population is not None and (r.by is not None or bool(r.span)),
        Problem.UNSUPPORTED,
        "population",
        "the population of a group or a period is not known: request all reports together",
    ),
    (
        lambda r: r.population is not None and r.method == "sequence",
        Problem.UNSUPPORTED,
        "method",
        "confidence sequences assume an unlimited population: use kl, or leave the population out",
    ),
)
"""Refused requests: condition, problem, field and message."""


def _combinations(value: Mapping[str, Any]) -> Combinations:
    combinations: dict[str, dict[str, Combination]] = {}
    for question, by_name in value.items():
        where = f"targets.{question}"
        if not isinstance(by_name, Mapping) or not 1 <= len(by_name) <= _MAX_TARGETS:
            raise InvalidInput(
                Problem.TARGETS_INVALID,
                f"give 1 to {_MAX_TARGETS} named combinations of the question's choices",
                where,
            )
        combinations[question] = {
            name: _combination(entry, f"{where}.{name}") for name, entry in by_name.items()
        }
    if not combinations:
        raise InvalidInput(Problem.TARGETS_INVALID, "name a question", "targets")
    return combinations


def _combination(value: Any, field: str) -> Combination:
    if isinstance(value, Mapping) and set(value) == {"of", "over"}:
        if value["over"] == ANSWERED:
            return Combination(_coefficients(value["of"], field), answered=True)
        return Combination(_coefficients(value["of"], field), _coefficients(value["over"], field))
    return Combination(_coefficients(value, field))


def _random_law(text: Any) -> Mapping[str, Coefficients]:
    """Return weights of choices by question from JSON. Raises InvalidInput(field_type)."""
    detail = 'give weights of choices, not negative and one above 0, such as {"drinks": {"yes": 1, "no": 4}}'
    try:
        value = parse_json(text.encode(), max_bytes=_MAX_CONTRAST, decimals=True)
        law = {
            name: {choice: _exact(weight, "random") for choice, weight in weights.items()}
            for name, weights in value.items()
        }
    except (InvalidInput, AttributeError, UnicodeEncodeError):
        raise InvalidInput(Problem.FIELD_TYPE, detail, "random") from None
    if not law or any(min(w.values(), default=-1) < 0 or not any(w.values()) for w in law.values()):
        raise InvalidInput(Problem.FIELD_TYPE, detail, "random")
    return law


def _contrast(text: str) -> dict[str, float]:
    """Return the weights of a contrast of groups from JSON. Raises InvalidInput(field_type)."""
    detail = 'give at least two weights by group, such as {"north": 1, "south": -1}'
    try:
        value = parse_json(text.encode(), max_bytes=_MAX_CONTRAST, decimals=True)
        weights = {name: float(_exact(weight, "compare")) for name, weight in value.items()}
    except (InvalidInput, AttributeError, UnicodeEncodeError):
        raise InvalidInput(Problem.FIELD_TYPE, detail, "compare") from None
    if sum(weight != 0 for weight in weights.values()) < 2:
        raise InvalidInput(Problem.FIELD_TYPE, detail, "compare")
    return weights


def _sizes(text: Any) -> Coefficients:
    """Return positive sizes by choice id from JSON. Raises InvalidInput(field_type)."""

    def refused(detail: str) -> InvalidInput:
        return InvalidInput(Problem.FIELD_TYPE, detail, "group_sizes")

    if isinstance(text, str) and len(text) > _MAX_CONTRAST:
        raise refused(f"the JSON may have at most {_MAX_CONTRAST:,} characters")
    if _has_labels(text):
        raise refused(
            "groups are named by the ids of their choices, which have only the letters a to z, digits, - and "
            "_: the codebook has the ids"
        )
    try:
        value = parse_json(text.encode(), max_bytes=_MAX_CONTRAST, decimals=True)
        given = list(value.items())
    except (InvalidInput, AttributeError, UnicodeEncodeError):
        raise refused(
            'give sizes by group, each group once, as JSON such as {"north": 500, "south": 300}'
        ) from None
    try:
        sizes = {name: _exact(size, "group_sizes") for name, size in given}
    except InvalidInput:
        raise refused("sizes are numbers from 10^-12 to below 10^13, in any unit") from None
    if min(sizes.values(), default=1) <= 0:
        raise refused("sizes are above 0: leave a group out that is not part of the population")
    if len(sizes) < 2:
        raise refused("a population has at least two groups: for one group, its own rows suffice")
    return sizes


def _has_labels(text: Any) -> bool:
    """Return True for a JSON object with a key that cannot be an id, as it is not ASCII."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return False
    return isinstance(value, Mapping) and not all(name.isascii() for name in value)


def _coefficients(value: Any, field: str) -> Coefficients:
    if not isinstance(value, Mapping) or not value:
        raise InvalidInput(
            Problem.TARGETS_INVALID,
            'give numbers by choice, such as {"yes": 1, "no": -1}, or {"of": …, "over": …} for a ratio',
            field,
        )
    return {choice: _exact(v, field) for choice, v in value.items()}


def _exact(value: Any, field: str) -> Fraction:
    """Return the exact value of a coefficient: a number, or a text as in a stored result."""
    try:
        read = REQUEST.number(Decimal(value) if isinstance(value, str) else value, field)
    except ArithmeticError:
        read = Decimal("nan")
    # A decimal exponent beyond ±12 is a mistake, and exact arithmetic with such numbers is slow.
    if not read.is_finite() or (read and abs(read.adjusted()) > 12):
        raise InvalidInput(Problem.TARGETS_INVALID, "give numbers between 10^-12 and 10^13", field)
    return Fraction(read)


def _written(combination: Combination) -> dict[str, Any]:
    of = _decimals(combination.of)
    if combination.answered:
        return {"of": of, "over": ANSWERED}
    return of if combination.over is None else {"of": of, "over": _decimals(combination.over)}


def _decimals(coefficients: Coefficients) -> dict[str, str]:
    # Coefficients come from decimals, so their expansion is finite; a replay needs all digits.
    return {c: _decimal(v) for c, v in coefficients.items()}


def _decimal(value: Fraction) -> str:
    # A denominator of n bits divides 10^n, so n further digits suffice.
    digits = len(str(value.numerator)) + value.denominator.bit_length()
    with localcontext(prec=digits):
        return str(Decimal(value.numerator) / Decimal(value.denominator))
