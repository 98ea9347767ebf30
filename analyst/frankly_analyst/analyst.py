# SPDX-License-Identifier: Apache-2.0
"""Client of one server, with one API key."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from frankly_analyst.codebook import Codebook
from frankly_analyst.counts import Counts
from frankly_analyst.counts_request import CountsRequest
from frankly_analyst.declared import takes_fields_of
from frankly_analyst.errors import Refused, Unreachable
from frankly_analyst.estimates import Estimates
from frankly_analyst.plans import Plan
from frankly_analyst.request import EstimatesRequest
from frankly_analyst.split_plan import SplitPlan
from frankly_analyst.survey_plan import SurveyPlan
from frankly_analyst.surveys import Surveys
from frankly_analyst.wave_plan import WavePlan

if TYPE_CHECKING:
    import requests

MAX_ANSWER_BYTES = 64 * 2**20
TIMEOUT_S = (5.0, 60.0)
Answer = TypeVar("Answer")
_ID = re.compile("[0-9a-f]{32}")
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


_LANGUAGE = "Language of the labels; None for the survey's first language."


@dataclass(frozen=True, slots=True)
class _LabelledRequest(EstimatesRequest):
    """An estimates request with the language of the labels, a setting of this client only."""

    language: str | None = field(default=None, metadata={"description": _LANGUAGE})


@dataclass(frozen=True, slots=True)
class _LabelledCounts(CountsRequest):
    """A counts request with the language of the title, a setting of this client only."""

    language: str | None = field(default=None, metadata={"description": _LANGUAGE})


class Analyst:
    """Client of one server. It sends the API key only over https, or to this machine.

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
        # Imported here because every command of the server imports this package, but few send
        # requests.
        self._session: requests.Session = session or import_module("requests").Session()
        self._key = key

    def surveys(self, language: str | None = None) -> Surveys:
        """Return the published surveys to which the key gives access, by name.

        language : language of the titles; None for each survey's first language.

        Raises Unreachable or Refused.
        """
        body = self._ask("GET", "/v1/surveys")
        return _parsed(lambda: Surveys.from_json(body, language))

    @takes_fields_of(_LabelledRequest)
    def estimates(self, survey: str, request: _LabelledRequest) -> Estimates:
        """Return a survey's estimates.

        survey : the survey's id, name or title. Targets are a list, such as
        ``["smokes", "drinks"]``, or a mapping. Cells of a joint table are written
        ``{"smokes,drinks": {"both": {"yes,daily": 1}}}``. Days may be of type `date`.

        Raises Unreachable, Refused, or InvalidRequest(survey_unknown) for an unknown name, or a title of several
        surveys.
        """
        survey_id = self._id(survey)

        def ask(**changes: Any) -> Estimates:
            return self.estimates(survey_id, **{**asdict(request), **changes})

        body = self._ask("GET", f"/v1/surveys/{survey_id}/estimates", params=request.query())
        return _parsed(lambda: Estimates.from_json(body, request.language, ask))

    @takes_fields_of(_LabelledCounts)
    def counts(self, survey: str, request: _LabelledCounts) -> Counts:
        """Return a survey's released counts of noisy symbols by stratum, with their mechanisms.

        survey : the survey's id, name or title. Names are texts such as ``"region,sex"``, or ``("region", "sex")``.
        Days may be of type `date`.

        Raises like `estimates`.
        """
        path = f"/v1/surveys/{self._id(survey)}/counts"
        body = self._ask("GET", path, params=request.query())
        return _parsed(lambda: Counts.from_json(body, request.language))

    def codebook(self, survey: str, language: str | None = None) -> Codebook:
        """Return the codebook of a survey's newest version.

        survey : the survey's id, name or title. language : language of the texts; if None, or if
        the survey does not have it, the survey's first language is used.

        Raises like `estimates`.
        """
        body = self._ask("GET", f"/v1/surveys/{self._id(survey)}/document")
        return _parsed(lambda: Codebook.from_envelope(body, language))

    def plan(self, solve_for: str, **fields: Any) -> Plan:
        """Plan a survey: return one of privacy level, number of reports and margin from the others.

        solve_for : "n", "epsilon" or "margin". fields : the other two by name; a design input
        (``prior={"joint": …}, notion="ldp", mechanism="grr"``), a mechanism (``weights=…, bits=…``)
        or a form (``form={"questions": [{"choices": 5}], "epsilon": "2"}``); optionally level,
        method, population, subgroup, response_rate and, except for a form, targets and frontier.
        These are the fields of `frankly plan --json`.

        Raises Unreachable, or Refused, whose `field` names the invalid input.
        """
        body = self._ask("POST", "/v1/plan", json={"solve_for": solve_for, **fields})
        return _parsed(lambda: Plan.from_json(body))

    def plan_split(self, arms: Sequence[Mapping[str, Any]], **fields: Any) -> SplitPlan:
        """Plan a comparison of a choice's share in two arms, of which each device draws one.

        arms : two, such as ``{"epsilon": "2", "mechanism": "grr", "share": 0.1}``, or ``{"clear":
        True, "share": 0.05}`` for a public question; `shares` of all choices if there are more than
        two. fields : choices (their number, or expected counts), n (reports, for the power) or power
        (0.8, for the reports); optionally target (position of the choice, the last), chance (of the
        first arm, out of 65,536), level and response_rate.
        These are the fields of `frankly plan --split --json`.

        Raises Unreachable, or Refused, whose `field` names the invalid input.
        """
        body = self._ask("POST", "/v1/plan/split", json={"arms": list(arms), **fields})
        return _parsed(lambda: SplitPlan.from_json(body))

    def plan_survey(self, survey: Mapping[str, Any], **fields: Any) -> SurveyPlan:
        """Plan a survey file: how many people, and what each of its wishes costs in respondents.

        survey : the file as a dict, as a YAML reader returns it. fields : margin (wanted half-width of every
        question, in shares) or n (reports); optionally level, response_rate, population, group_share or
        groups (``{"region": [0.4, 0.4, 0.2]}``), random (guessed share who answer at random), shares
        ("any" ignores the file's expected shares), difference and power (of two arms), strengths (True).

        Raises Unreachable, or Refused, whose `field` names the invalid input; below `survey` it is one of the file.
        """
        body = self._ask("POST", "/v1/plan/survey", json={"survey": dict(survey), **fields})
        return _parsed(lambda: SurveyPlan.from_json(body))

    def plan_waves(self, waves: int, n: int, **fields: Any) -> WavePlan:
        """Plan several waves in which each person spends at most one privacy level in total.

        waves : 2 to 52. n : number of people. fields : prior, notion "ldp", epsilon (nats, over all
        waves), optionally changed (guessed share of people who change their answer from wave to
        wave, 0.2), level and the other fields of `frankly waves --json`.

        Raises Unreachable, or Refused, whose `field` names the invalid input.
        """
        body = self._ask("POST", "/v1/waves", json={"waves": waves, "n": n, **fields})
        return _parsed(lambda: WavePlan.from_json(body))

    def _id(self, survey: str) -> str:
        """Return the id of a survey given by its id, name or title; raises like `estimates`."""
        return survey if _ID.fullmatch(survey) else self.surveys().find(survey).id

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
        """Add the key; being an `auth` callable keeps a .netrc file from replacing the key."""
        request.headers["Authorization"] = f"Bearer {self._key}"
        return request


def _parsed(read: Callable[[], Answer]) -> Answer:
    try:
        return read()
    except (KeyError, TypeError, AttributeError, ValueError, StopIteration):
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
    detail = str(body.get("detail") or f"the server answered with status {answer.status_code}")
    field = body.get("field")
    raise Refused(
        detail,
        code=body["code"],
        status=answer.status_code,
        field=field if isinstance(field, str) else None,
    )
