# SPDX-License-Identifier: Apache-2.0
"""Estimates request: the only declaration of its fields.

Generated from it: the query of the HTTP route, the options of the command, the arguments of
`Analyst.estimates`, the links and snippets of the estimates page, the JSON of a stored result and
the OpenAPI parameters.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final, Literal

from frankly_analyst.declared import described, kinds
from frankly_analyst.errors import InvalidRequest

METHODS: Final = (
    "score",
    "kl",
    "exact",
    "clt",
    "chebyshev",
    "chebyshev_plugin",
    "simultaneous",
    "simultaneous_plugin",
    "sequence",
)
"""Kinds of margin, that is, of confidence interval."""
ROW, COLUMN, ANSWERED = "row", "column", "answered"
PERCENT: Final = (ROW, COLUMN, ANSWERED)
"""Shares within the rows or the columns of a joint table, or among those who answered a question."""
RESPONDENTS: Final = "respondents"
INVERSE_VARIANCE: Final = "inverse-variance"
WEIGHTS: Final = (RESPONDENTS, INVERSE_VARIANCE)
"""Weights of pooled versions."""
WANTED: Final = "wanted"
"""Default of `targets`: of every question the figure for which the survey asks it, by default its shares."""
SHARES: Final = "shares"
"""Value of `targets`: the shares of every question."""
SCALES: Final = "scales"
"""Value of `targets`: mean, distribution and median of every question with scores or ranges."""
FIRST, PREVIOUS, MEAN, ALL = "first", "previous", "mean", "all"
COMPARISONS: Final = (FIRST, PREVIOUS, MEAN, ALL)
"""Values of `compare` that are not ids of groups."""
WEIGHTED: Final = "weighted"
"""Name in `by` of a population of groups: ``weighted=region`` is weighted by the sizes of its regions."""
_DAY: Final = {
    "json": str | None,
    "schema": {"pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "example": "2026-05-31"},
}


@described
@dataclass(frozen=True, slots=True)
class EstimatesRequest:
    """Fields of one estimates request; see `Analyst.estimates`."""

    level: float = field(
        default=0.95,
        metadata={
            "description": "Confidence level, strictly between 0 and 1: for 95% write 0.95.",
            "schema": {"pattern": r"^0\.[0-9]{1,12}$"},
        },
    )
    census: bool = field(
        default=False,
        metadata={
            "description": "True if the respondents are the whole population: margins then cover only privacy noise."
        },
    )
    population: int | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "Size of the population from which the respondents were drawn without replacement; it "
            "makes margins narrower.",
            "schema": {"pattern": r"^[1-9][0-9]{0,15}$", "example": "1200"},
        },
    )
    simultaneous: bool = field(
        default=False, metadata={"description": "Short for method=simultaneous."}
    )
    method: str | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "Kind of margin; default score.",
            "choices": METHODS,
            "json": Literal[METHODS],
        },
    )
    targets: Any = field(
        default=WANTED,
        kw_only=True,
        metadata={
            "description": "`wanted`, of each question the figure for which the survey asks it: the shares of its "
            "choices, or its mean, distribution or contrast; `shares` of every question; `scales` for mean, "
            "distribution and median of the questions with scores or "
            "ranges; or JSON: a list of question ids for their joint table, or combinations of "
            'choices by question, such as {"drinks": {"at all": {"weekly": 1, "daily": 1}}}; {"of": …, "over": …} is '
            'a ratio, and "over": "answered" divides by those who answered.',
            "schema": {"maxLength": 1500},
        },
    )
    percent: str | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "For a joint table of two questions: shares within each choice of the first (`row`) or "
            "second (`column`). For shares: those among the people who answered (`answered`), that is, without the "
            "choices with a role.",
            "choices": PERCENT,
        },
    )
    quantiles: str | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "With targets=scales: quantiles to estimate, such as 0.25,0.5; default 0.5, the median.",
            "schema": {"maxLength": 200},
        },
    )
    weights: str = field(
        default=RESPONDENTS,
        kw_only=True,
        metadata={
            "description": "Weights of pooled versions: by respondents, for the mean over all of them; or by the "
            "inverse variance of each row at the published priors, which assumes that the versions have equal true "
            "shares.",
            "choices": WEIGHTS,
        },
    )
    by: str | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "Separate estimates by a public question of the survey or `version`; by `day`, `week` or "
            "`month` of release in UTC; or by one of each, such as `region,week`.",
            "schema": {"maxLength": 72},
        },
    )
    compare: str | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "Compare the groups of `by`: each with the `first`, the `previous` one, the `mean` of all, "
            "or the group with this id; `all` pairs; or JSON weights by id, for the weighted sum of the groups.",
            "schema": {"maxLength": 1500},
        },
    )
    equivalence: float | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "With compare: the largest difference that is regarded as none, in the unit of the figure "
            "(0.05 is 5 points of a share, for which it is below 1). `p_equivalence` of a comparison then tests "
            "whether its difference is smaller.",
            "schema": {"pattern": r"^[0-9]{1,9}(\.[0-9]{1,12})?$", "example": "0.05"},
        },
    )
    group_sizes: str | Mapping[str, float] | None = field(
        default=None,
        kw_only=True,
        metadata={
            "json": str | None,
            "description": "Sizes of the groups of a public question in `by`, as JSON by choice id such as "
            '{"north": 500, "south": 300}: beside the groups there are then estimates of the population of these '
            "groups (`weighted=region`), which weight each group by its share of the sizes. Decimals may be texts.",
            "schema": {"maxLength": 3000},
        },
    )
    since: date | str | None = field(
        default=None,
        kw_only=True,
        metadata={"description": "Only batches released on this UTC day or later.", **_DAY},
    )
    until: date | str | None = field(
        default=None,
        kw_only=True,
        metadata={"description": "Only batches released on this UTC day or before.", **_DAY},
    )

    random: str | Mapping[str, Mapping[str, float]] | None = field(
        default=None,
        kw_only=True,
        metadata={
            "json": str | None,
            "description": "How people who answer at random choose, for figures corrected by an instructed item or an "
            'anchor: weights of choices by question, as JSON such as {"drinks": {"yes": 1, "no": 4}}. By default every '
            "choice of a question is as likely as any other.",
            "schema": {"maxLength": 1500},
        },
    )
    completion: bool = field(
        default=False,
        kw_only=True,
        metadata={
            "description": "Whether people gave up at some questions of a form more often than at others: of each "
            "question, the reports about it in proportion to those expected, and a test. JSON only."
        },
    )
    denial: float | None = field(
        default=None,
        kw_only=True,
        metadata={
            "description": "Largest share of the people whom a choice concerns who deny it, from 0 to below 1: the "
            "columns `denied_estimate` and `denied_high` then say how large the share of the choice can be.",
            "schema": {"pattern": r"^0(\.[0-9]{1,12})?$", "example": "0.2"},
        },
    )

    def given(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        values = {name: getattr(self, name) for name in FIELDS}
        return {
            name: value
            for name, value in values.items()
            if value is not None and value != FIELDS[name].default
        }

    def query(self) -> dict[str, str]:
        """Return the fields of `given` as the parameters of a query."""
        return {name: as_text(name, value) for name, value in self.given().items()}

    def arguments(self) -> str:
        """Return the fields of `given` as Python source: keyword arguments of `Analyst.estimates`."""
        return ", ".join(
            f"{name}={value if isinstance(value, int | float) else json.dumps(value)}"
            for name, value in self.given().items()
        )


FIELDS: Final = {item.name: item for item in fields(EstimatesRequest)}
KINDS: Final = kinds(EstimatesRequest)
"""Type of each field: float for a level, bool, int, str, date for a UTC day, Any for JSON."""


def as_text(name: str, value: Any) -> str:
    """Return the value of a field as the text of a query.

    Raises InvalidRequest(field_type) for a mapping or a list with a value that JSON does not have.
    """
    kind = KINDS[name]
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return f"{value:.12f}".rstrip("0").rstrip(".")
    is_json = kind is Any or isinstance(value, Mapping)
    return _json(name, value) if is_json and not isinstance(value, str) else str(value)


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(dict(value) if isinstance(value, Mapping) else value, default=_number)
    except (TypeError, ValueError) as error:
        detail = "give numbers, or Decimal, by name"
        raise InvalidRequest(detail, code="field_type", field=name) from error


def _number(value: Any) -> Any:
    """Return a number that is not one of Python's as JSON; a decimal as a text, which is exact."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
