# SPDX-License-Identifier: Apache-2.0
"""Client of one server, with one API key."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from frankly_analyst.declared import takes_fields_of
from frankly_analyst.errors import Refused, Unreachable
from frankly_analyst.estimates import Estimates
from frankly_analyst.plans import Plan
from frankly_analyst.request import EstimatesRequest

if TYPE_CHECKING:
    import requests

MAX_ANSWER_BYTES = 64 * 2**20
TIMEOUT_S = (5.0, 60.0)
Answer = TypeVar("Answer")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class _LabelledRequest(EstimatesRequest):
    """An estimates request, and the language of the labels, which this client chooses."""

    language: str | None = field(
        default=None,
        metadata={"description": "Of the labels; None for the survey's first."},
    )


class Analyst:
    """Client of one server. Its API key is sent over https only, or to this machine itself."""

    def __init__(self, url: str, key: str, *, session: "requests.Session | None" = None) -> None:
        address = urlsplit(url)
        if address.scheme != "https" and not (
            address.scheme == "http" and address.hostname in _LOOPBACK
        ):
            raise Unreachable(
                "the address must begin with https:// (http:// only on this machine): it carries your key"
            )
        self._url = url.rstrip("/")
        # Imported at first use: every command of the server imports this package, and few ask a server.
        self._session: requests.Session = session or import_module("requests").Session()
        self._key = key

    @takes_fields_of(_LabelledRequest)
    def estimates(self, survey: str, request: _LabelledRequest) -> Estimates:
        """Return a survey's estimates.

        survey : its id. Targets are a list or a mapping, such as ``["smokes", "drinks"]``; of cells of a table,
        ``{"smokes,drinks": {"both": {"yes,daily": 1}}}``. Days may be of type `date`. Raises Unreachable or Refused.
        """

        def ask(targets: Any, percent: str | None) -> Estimates:
            fields = {**asdict(request), "targets": targets, "percent": percent}
            return self.estimates(survey, **fields)

        body = self._ask("GET", f"/v1/surveys/{survey}/estimates", params=request.query())
        return _parsed(lambda: Estimates.from_json(body, request.language, ask))

    def plan(self, solve_for: str, **fields: Any) -> Plan:
        """Return a plan: any two of level, reports and margin give the third, before anything is collected.

        solve_for : "n", "epsilon" or "margin". fields : the other two by name; a design input (``prior={"joint": …},
        notion="ldp", mechanism="grr"``) or a mechanism (``weights=…, bits=…``); and, if wanted, level, method,
        population, subgroup, response_rate, targets, frontier: the fields of `frankly plan --json`.
        Raises Unreachable or Refused, whose `field` names what is wrong.
        """
        body = self._ask("POST", "/v1/plan", json={"solve_for": solve_for, **fields})
        return _parsed(lambda: Plan.from_json(body))

    def _ask(self, method: str, path: str, **content: Any) -> Any:
        # A redirect would carry the key to another address.
        settings: dict[str, Any] = {"timeout": TIMEOUT_S, "allow_redirects": False, "stream": True}
        try:
            with self._session.request(
                method, self._url + path, auth=self._sign, **content, **settings
            ) as answer:
                return _read(answer)
        # Every error of requests is an OSError; its text may hold the address with the query.
        except OSError as error:
            raise Unreachable(f"no answer from {self._url} ({type(error).__name__})") from None

    def _sign(self, request: "requests.PreparedRequest") -> "requests.PreparedRequest":
        """Add the key; as an `auth` callable it cannot be replaced by a .netrc file."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _parsed(read: Callable[[], Answer]) -> Answer:
    try:
        return read()
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise Unreachable("the answer is not one of Frankly's; check the address") from None


def _read(answer: "requests.Response") -> Any:
    """Return the JSON of an answer; a problem is raised as Refused, anything else as Unreachable."""
    # Streamed, so that an endless answer ends at the limit instead of filling the memory.
    data = bytearray()
    for chunk in answer.iter_content(2**16):
        data += chunk
        if len(data) > MAX_ANSWER_BYTES:
            raise Unreachable("the answer is larger than any of Frankly's")
    # Checked before parsing: a proxy's error page is no answer of the server.
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
    raise Refused(
        detail,
        code=body["code"],
        status=answer.status_code,
        field=field if isinstance(field, str) else None,
    )
