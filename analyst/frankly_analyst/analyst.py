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
    """An estimates request with the language of the labels, which only this client uses."""

    language: str | None = field(
        default=None,
        metadata={"description": "Language of the labels; None for the survey's first language."},
    )


class Analyst:
    """Client of one server. The API key is only sent over https, or to this machine.

    Raises Unreachable for any other address.
    """

    def __init__(self, url: str, key: str, *, session: "requests.Session | None" = None) -> None:
        address = urlsplit(url)
        if address.scheme != "https" and not (
            address.scheme == "http" and address.hostname in _LOOPBACK
        ):
            raise Unreachable(
                "the address must begin with https:// (http:// only on this machine), to protect your key"
            )
        self._url = url.rstrip("/")
        # Imported here: every command of the server imports this package, and few send requests.
        self._session: requests.Session = session or import_module("requests").Session()
        self._key = key

    @takes_fields_of(_LabelledRequest)
    def estimates(self, survey: str, request: _LabelledRequest) -> Estimates:
        """Return a survey's estimates.

        survey : the survey's id. Targets are a list such as ``["smokes", "drinks"]``, or a mapping; for cells of a
        joint table ``{"smokes,drinks": {"both": {"yes,daily": 1}}}``. Days may be of type `date`.

        Raises Unreachable or Refused.
        """

        def ask(targets: Any, percent: str | None) -> Estimates:
            fields = {**asdict(request), "targets": targets, "percent": percent}
            return self.estimates(survey, **fields)

        body = self._ask("GET", f"/v1/surveys/{survey}/estimates", params=request.query())
        return _parsed(lambda: Estimates.from_json(body, request.language, ask))

    def plan(self, solve_for: str, **fields: Any) -> Plan:
        """Plan a survey: given two of privacy level, number of reports and margin, return the third.

        solve_for : "n", "epsilon" or "margin". fields : the other two by name; a design input
        (``prior={"joint": …}, notion="ldp", mechanism="grr"``), a mechanism (``weights=…, bits=…``)
        or a form (``form={"questions": [{"choices": 5}], "epsilon": "2"}``); optionally level,
        method, population, subgroup, response_rate and, except for a form, targets and frontier.
        These are the fields of `frankly plan --json`.

        Raises Unreachable, or Refused, whose `field` names the invalid input.
        """
        body = self._ask("POST", "/v1/plan", json={"solve_for": solve_for, **fields})
        return _parsed(lambda: Plan.from_json(body))

    def _ask(self, method: str, path: str, **content: Any) -> Any:
        # Following a redirect would send the key to another address.
        settings: dict[str, Any] = {"timeout": TIMEOUT_S, "allow_redirects": False, "stream": True}
        try:
            with self._session.request(
                method, self._url + path, auth=self._sign, **content, **settings
            ) as answer:
                return _read(answer)
        # Every RequestException is an OSError; its text may contain the address with the query.
        except OSError as error:
            raise Unreachable(f"no answer from {self._url} ({type(error).__name__})") from None

    def _sign(self, request: "requests.PreparedRequest") -> "requests.PreparedRequest":
        """Add the key; this is an `auth` callable, so that a .netrc file cannot replace the key."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _parsed(read: Callable[[], Answer]) -> Answer:
    try:
        return read()
    except (KeyError, TypeError, AttributeError, StopIteration):
        raise Unreachable("the response is not from a Frankly server; check the address") from None


def _read(answer: "requests.Response") -> Any:
    """Return the JSON of a response; raises Refused for a problem, Unreachable for anything else."""
    # Streamed, so that an endless response is cut off before it fills the memory.
    data = bytearray()
    for chunk in answer.iter_content(2**16):
        data += chunk
        if len(data) > MAX_ANSWER_BYTES:
            raise Unreachable("the response is larger than any response of a Frankly server")
    # Checked before parsing: a proxy's error page is not a response of the server.
    kind = answer.headers.get("Content-Type", "").partition(";")[0]
    if kind not in ("application/json", "application/problem+json"):
        raise Unreachable(
            f"the server answered with status {answer.status_code} and no JSON; check the address"
        )
    try:
        body = json.loads(data)
    except (ValueError, RecursionError):
        raise Unreachable("the response is not valid JSON") from None
    if answer.status_code == 200:
        return body
    if not isinstance(body, dict) or not isinstance(body.get("code"), str):
        raise Unreachable(f"the server answered with status {answer.status_code}")
    detail, field = str(body.get("detail", "")), body.get("field")
    raise Refused(
        detail,
        code=body["code"],
        status=answer.status_code,
        field=field if isinstance(field, str) else None,
    )
