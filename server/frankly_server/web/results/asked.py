# SPDX-License-Identifier: Apache-2.0
"""Query parameters of the estimates page, and links and client snippets based on them."""

from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlencode

from frankly_analyst.request import FIELDS, WANTED, EstimatesRequest
from frankly_design.estimate.margins import DEFAULT
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.analysis.periods import PERIODS
from frankly_server.web import estimates_request, reading

PRODUCTS: Final = {
    "unbiased": "unbiased, with intervals; may lie outside 0 to 100%",
    "projected": "the nearest possible shares",
    "mle": "the most likely shares",
}
LEVELS: Final = ("0.8", "0.9", "0.95", "0.99")
METHOD_WORDS: Final = {
    "score": "usual",
    "kl": "valid for any number of answers",
    "clt": "normal approximation",
    "exact": "exact, for small surveys",
    "chebyshev": "valid for any number, widest",
    "simultaneous": "all choices of a question at once",
    "sequence": "for watching while answers arrive",
}
"""Methods that the form offers; a URL can contain any method of the API."""
PERCENT_WORDS: Final = {"row": "share within its row", "column": "share within its column"}
_OWN: Final = ("product", "by", "period", "row", "column")
# The page shows no test of equivalence, so it does not accept a margin for one.
_SHARED: Final = tuple(
    name
    for name in FIELDS
    if name not in ("by", "targets", "simultaneous", "completion", "equivalence")
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Parameters of the estimates page.

    request : the request to the analysis. product : one of `PRODUCTS`. by : the public question, or
    "version", whose values have separate estimates, or None. period : day, week or month for
    separate estimates, or None. row, column : the two question ids of a table, or None.
    """

    request: EstimatesRequest = EstimatesRequest(method=DEFAULT)  # noqa: RUF009 - frozen
    product: str = "unbiased"
    by: str | None = None
    period: str | None = None
    row: str | None = None
    column: str | None = None

    @classmethod
    def read(cls, *extra: str) -> tuple[Self, dict[str, str]]:
        """Return the parameters in the query, and the values of the parameters in `extra`.

        Raises InvalidInput: bad_request, confidence_range, field_type, field_unknown,
        targets_invalid.
        """
        query = reading.query((*_SHARED, *_OWN, *extra))
        texts = {name: text for name, text in query.items() if text}
        own = {name: text for name, text in texts.items() if name in _OWN}
        for name, allowed in (("product", tuple(PRODUCTS)), ("period", PERIODS)):
            if own.get(name, allowed[0]) not in allowed:
                raise InvalidInput(Problem.FIELD_TYPE, f"one of {', '.join(allowed)}", name)
        if "row" in own and own["row"] == own.get("column"):
            raise InvalidInput(
                Problem.TARGETS_INVALID, "a table needs two different questions", "column"
            )
        fields = estimates_request.read({name: texts[name] for name in _SHARED if name in texts})
        fields["by"] = ",".join(own[name] for name in ("by", "period") if name in own) or None
        table = [own[name] for name in ("row", "column") if name in own]
        fields["targets"] = table or WANTED
        if len(table) < 2 and "percent" in fields:
            raise InvalidInput(
                Problem.TARGETS_INVALID, "choose the two questions of a table first", "percent"
            )
        request = EstimatesRequest(**{"method": DEFAULT} | fields)
        return cls(request, **own), {name: texts[name] for name in extra if name in texts}

    def download_query(self, form: str) -> str:
        """Return the query of a download URL, without `product`: downloads contain all products."""
        own = {name: text for name in _OWN[1:] if (text := getattr(self, name))}
        shared = {name: text for name, text in self.request.query().items() if name in _SHARED}
        return urlencode({**shared, **own, "format": form})

    def api_query(self, form: str) -> str:
        """Return the API query for the same numbers."""
        return urlencode({**self.request.query(), "format": form})
