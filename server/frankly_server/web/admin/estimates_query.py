# SPDX-License-Identifier: Apache-2.0
"""Query parameters of the estimates page, and the links and client snippets made from them."""

import json
from dataclasses import dataclass
from typing import Any, Final, Self
from urllib.parse import urlencode

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.periods import PERIODS
from frankly_server.estimate.margins import DEFAULT, METHODS
from frankly_server.web import reading

PRODUCTS: Final = {
    "unbiased": "unbiased, with intervals; may leave 0 to 100%",
    "projected": "the nearest shares that are possible",
    "mle": "the likeliest shares",
}
LEVELS: Final = ("0.8", "0.9", "0.95", "0.99")
METHOD_WORDS: Final = {
    "score": "usual",
    "kl": "holds at any number of answers",
    "clt": "normal approximation",
    "exact": "exact, for small surveys",
    "chebyshev": "holds at any number, widest",
    "simultaneous": "all choices of a question at once",
    "sequence": "for looking again and again",
}
"""The methods offered; the others of `METHODS` are answered when an address asks for them."""
PERCENT_WORDS: Final = {"row": "share within its row", "column": "share within its column"}
_KNOWN: Final = ("level", "method", "product", "by", "period", "since", "until", "row", "column", "percent", "census",
                 "population")  # fmt: skip
_TEXTS: Final = ("by", "period", "since", "until", "row", "column", "percent", "population")


@dataclass(frozen=True, slots=True)
class Asked:
    """Parameters of the estimates page.

    level : as written. by : a public question or "version" that estimates stand apart by, or None; period : day, week
    or month likewise. since, until : the first and the last day, UTC, or None. row, column : question ids of a table.
    percent : "row" or "column" for the shares within these, or None.
    population : how many people the respondents were drawn from, as written, or None.
    """

    level: str = "0.95"
    method: str = DEFAULT
    product: str = "unbiased"
    by: str | None = None
    period: str | None = None
    since: str | None = None
    until: str | None = None
    row: str | None = None
    column: str | None = None
    percent: str | None = None
    census: bool = False
    population: str | None = None

    @classmethod
    def read(cls, *extra: str) -> tuple[Self, dict[str, str]]:
        """Return the request's parameters, and the values of parameters in `extra`.

        Raises InvalidInput: confidence_range, field_type, field_unknown, targets_invalid.
        """
        parameters = {
            name: value for name, value in reading.query((*_KNOWN, *extra)).items() if value
        }
        query = cls(
            level=parameters.get("level", "0.95"),
            method=parameters.get("method", DEFAULT),
            product=parameters.get("product", "unbiased"),
            by=parameters.get("by"),
            period=parameters.get("period"),
            since=parameters.get("since"),
            until=parameters.get("until"),
            row=parameters.get("row"),
            column=parameters.get("column"),
            # The form sends its choice for a table even where no table is chosen.
            percent=parameters.get("percent")
            if "row" in parameters and "column" in parameters
            else None,
            census=reading.flag(parameters.get("census"), "census"),
            population=parameters.get("population"),
        )
        reading.level(query.level)
        reading.whole(query.population, "population")
        allowed_values = (("method", METHODS), ("product", tuple(PRODUCTS)), ("period", (None, *PERIODS)),
                 ("percent", (None, *PERCENT_WORDS)))  # fmt: skip
        for field, allowed in allowed_values:
            if getattr(query, field) not in allowed:
                raise InvalidInput(
                    Problem.FIELD_TYPE, f"one of {', '.join(filter(None, allowed))}", field
                )
        if query.row is not None and query.row == query.column:
            raise InvalidInput(
                Problem.TARGETS_INVALID, "a table is made of two different questions", "column"
            )
        return query, {name: parameters[name] for name in extra if name in parameters}

    @property
    def joint(self) -> list[str] | None:
        """The questions of one table, or None for every question by itself."""
        return [name for name in (self.row, self.column) if name is not None] or None

    def arguments(self) -> dict[str, Any]:
        """Return the keyword arguments for `Analysis.estimates`."""
        return {
            "level": reading.level(self.level),
            "census": self.census,
            "method": self.method,
            "targets": self.joint,
            "by": self.apart,
            "since": self.since,
            "until": self.until,
            "population": self.people,
            "percent": self.percent,
        }

    @property
    def people(self) -> int | None:
        """The population size that the respondents were drawn from, or None."""
        return reading.whole(self.population, "population")

    @property
    def apart(self) -> str | None:
        """The `by` argument of the analysis: question and period with a comma, or None."""
        return ",".join(name for name in (self.by, self.period) if name is not None) or None

    def download_query(self, form: str) -> str:
        """Return the query of a download's address; every product is in a download."""
        parameters = {
            name: value
            for name, value in self._texts().items()
            if name in _KNOWN and name != "product"
        }
        return urlencode(parameters | {"format": form})

    def api_query(self, form: str) -> str:
        """Return the query of the API's address that gives the same numbers."""
        names = ("level", "method", "since", "until", "census", "population", "targets", "percent")
        by = {"by": self.apart} if self.apart else {}
        return urlencode(
            {name: value for name, value in self._texts().items() if name in names}
            | by
            | {"format": form}
        )

    def in_python(self) -> str:
        """Return the arguments that ask the analyst's client for the same, but for the survey."""
        arguments = [f"level={float(self.level)}", f"method={json.dumps(self.method)}"]
        arguments += [f"census={self.census}"] if self.census else []
        optional = {"by": self.apart, "since": self.since, "until": self.until}
        arguments += [f"{name}={json.dumps(value)}" for name, value in optional.items() if value]
        arguments += [f"population={self.people}"] if self.people is not None else []
        arguments += [f"targets={json.dumps(self.joint)}"] if self.joint else []
        arguments += [f"percent={json.dumps(self.percent)}"] if self.percent else []
        return ", ".join(arguments)

    def _texts(self) -> dict[str, str]:
        texts: dict[str, str] = {
            "level": self.level,
            "method": self.method,
            "product": self.product,
        }
        texts |= {name: value for name in _TEXTS if (value := getattr(self, name))}
        texts |= {"census": "true"} if self.census else {}
        return texts | ({"targets": json.dumps(self.joint)} if self.joint else {})
