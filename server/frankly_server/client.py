# SPDX-License-Identifier: Apache-2.0
"""The analyst's client: three lines from a key to a table.

>>> analyst = Analyst("https://surveys.example.org", key)      # doctest: +SKIP
>>> estimates = analyst.estimates("5f0c…")                     # doctest: +SKIP
>>> print(estimates)                                           # doctest: +SKIP

FranklyError
 ├─ Unreachable   no answer, or none that is ours: trying again may help
 └─ Refused       the server said no; `.code`, `.status` and `.field` say why
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self
from urllib.parse import urlsplit

import requests
from frankly_protocol.errors import FranklyError

MAX_ANSWER_BYTES = 64 * 2**20
TIMEOUT_S = (5.0, 60.0)
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class Unreachable(FranklyError):
    """The server gave no answer, or none that is ours; the same question may be asked again."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail, code="network")


class Refused(FranklyError):
    """The server answered with a problem; ``status`` is the HTTP status."""

    def __init__(self, detail: str, *, code: str, status: int, field: str | None = None) -> None:
        super().__init__(detail, code=code, field=field)
        self.status = status


@dataclass(frozen=True, slots=True)
class Estimate:
    """The share of one choice, beside its uncertainty.

    estimate : unbiased, may leave [0, 1]. se : standard error, made of se_privacy and se_sampling (None where the two
    cannot be told apart). margin : half-width of [lo, hi] at `level`. epsilon, ceiling : nats as text. documents :
    digests whose reports count.
    """

    question: str
    choice: str
    label: str
    estimate: float
    se: float
    se_privacy: float | None
    se_sampling: float | None
    margin: float
    lo: float
    hi: float
    level: float
    method: str
    n: int
    mechanism: str
    notion: str
    epsilon: str
    ceiling: str
    documents: tuple[str, ...]
    flags: tuple[str, ...]

    @classmethod
    def from_json(cls, row: Mapping[str, Any], language: str | None) -> Self:
        """Return the row as the server writes it; labels in `language`, else in the first one there is."""
        values: dict[str, Any] = {name: row[name] for name in _COPIED}
        label = row["label"].get(language) or next(iter(row["label"].values()))
        values |= {"documents": tuple(row["documents"]), "flags": tuple(row["flags"])}
        return cls(label=label, **values)


_OWN = frozenset({"label", "documents", "flags"})
_COPIED = tuple(field.name for field in fields(Estimate) if field.name not in _OWN)


@dataclass(frozen=True, slots=True)
class Estimates:
    """Every row of a survey; iterate over it, print it, write it as CSV.

    insufficient : question id -> how many more reports it needs before there is any number.
    """

    survey: str
    title: str
    n: int
    rows: tuple[Estimate, ...]
    insufficient: Mapping[str, int]

    @classmethod
    def from_json(cls, body: Mapping[str, Any], language: str | None = None) -> Self:
        """Return what the server's answer says; KeyError, TypeError or AttributeError if it is not one."""
        questions = body["questions"]
        return cls(
            survey=body["survey"],
            title=body["title"].get(language) or next(iter(body["title"].values())),
            n=body["n"],
            rows=tuple(Estimate.from_json(row, language) for question in questions for row in question["rows"]),
            insufficient={q["id"]: q["needed"] - q["n"] for q in questions if q["status"] != "ok"},
        )

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_csv(self) -> str:
        """Return one line per row under a header; lists are joined by spaces."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(field.name for field in fields(Estimate))
        for row in self.rows:
            writer.writerow(_cell(value) for value in asdict(row).values())
        return out.getvalue()

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.n} reports"]
        width = max((len(row.label) for row in self.rows), default=0)
        question = None
        for row in self.rows:
            if row.question != question:
                question = row.question
                lines.append(
                    f"{question} (n {row.n}, {row.mechanism}, {row.notion}, ε {row.epsilon}, ceiling {row.ceiling})"
                )
            flags = f"  [{', '.join(row.flags)}]" if row.flags else ""
            lines.append(f"  {row.label:<{width}}  {row.estimate:7.1%} ± {row.margin:.1%} at {row.level:.10g}{flags}")
        lines += [f"{question}: not enough reports, {more} more needed" for question, more in self.insufficient.items()]
        return "\n".join(lines)


class Analyst:
    """Asks one server with one API key. The key goes over https only, or to this machine itself."""

    def __init__(self, url: str, key: str, *, session: requests.Session | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
            raise Unreachable(
                "the address must begin with https:// (http:// only on this machine): it carries your key"
            )
        self._url = url.rstrip("/")
        self._session = session or requests.Session()
        self._key = key

    def estimates(
        self,
        survey: str,
        level: float = 0.95,
        census: bool = False,
        simultaneous: bool = False,
        language: str | None = None,
    ) -> Estimates:
        """Return a survey's estimates.

        survey : its id. level : confidence, strictly between 0 and 1. census : the respondents are everybody.
        simultaneous : margins for all choices of a question at once. Raises Unreachable or Refused.
        """
        query = {"level": f"{level:.12f}".rstrip("0"), "census": _flag(census), "simultaneous": _flag(simultaneous)}
        body = self._get(f"/v1/surveys/{survey}/estimates", query)
        try:
            return Estimates.from_json(body, language)
        except (KeyError, TypeError, AttributeError, StopIteration):
            raise Unreachable("the answer is not one of Frankly's; check the address") from None

    def _get(self, path: str, query: Mapping[str, str]) -> Any:
        try:
            with self._session.get(
                self._url + path, params=query, auth=self._sign, timeout=TIMEOUT_S, allow_redirects=False, stream=True
            ) as answer:
                return _read(answer)
        except requests.RequestException as error:
            raise Unreachable(f"no answer from {self._url} ({type(error).__name__})") from None

    def _sign(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the key; as an `auth` callable it cannot be replaced by a .netrc file."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _read(answer: requests.Response) -> Any:
    """Return the JSON of an answer; a problem is raised as Refused, anything else as Unreachable."""
    data = bytearray()
    for chunk in answer.iter_content(2**16):
        data += chunk
        if len(data) > MAX_ANSWER_BYTES:
            raise Unreachable("the answer is larger than any of Frankly's")
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    if kind not in ("application/json", "application/problem+json"):
        raise Unreachable(
            f"the server answered {answer.status_code} with something that is not JSON; check the address"
        )
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise Unreachable("the answer cannot be read") from None
    if answer.status_code == 200:
        return body
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise Unreachable(f"the server answered {answer.status_code}")
    detail, field = str(body.get("detail", "")), body.get("field")
    raise Refused(detail, code=body["code"], status=answer.status_code, field=field if isinstance(field, str) else None)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _cell(value: Any) -> str:
    return " ".join(value) if isinstance(value, tuple) else str(value)
