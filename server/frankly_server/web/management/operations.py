# SPDX-License-Identifier: Apache-2.0
"""What all operations of the management API share: rights, limits, idempotency keys, answers.

An operation is a function from a `Call` to a model, a `Reply`, or None for no content.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, TypeVar

from apiflask import APIBlueprint
from flask import Response, g, request
from frankly_design.requests.fields import RequestModel
from frankly_protocol.canonical import parse_json
from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BaseModel

from frankly_server.accounts import KeyHolder
from frankly_server.analysis import encode
from frankly_server.keys.access import Principal
from frankly_server.keys.idempotency import Attempt
from frankly_server.services import Services
from frankly_server.store import StoreUnavailable
from frankly_server.web import auth, problems, reading
from frankly_server.web.limits import RateLimits
from frankly_server.web.openapi import Query, declare
from frankly_server.web.opened_survey import OpenedSurvey, opened
from frankly_server.web.searching import without_slot

_BODY_BYTES: Final = 2**16
_HEADER: Final = "Idempotency-Key"
_FOR_ALL: Final = "this needs a key that opens all surveys of its organisation"
_KEPT_HEADERS: Final = ("ETag", "Location")
_IDEMPOTENCY: Final = Query(
    _HEADER,
    {"type": "string", "pattern": "^[!#-~]{1,255}$"},
    "A random text of the caller, such as a UUID: within 24 hours the same request with the same key is "
    "carried out once, and answered as the first time.",
    place="header",
)
_NO_HEADERS: Final[Mapping[str, str]] = {}
_READS: Final = (Problem.UNAUTHENTICATED, Problem.FORBIDDEN)
_CHANGES: Final = (Problem.FIELD_TYPE, Problem.IDEMPOTENCY_CONFLICT, Problem.IDEMPOTENCY_MISMATCH)
BODY: Final = (
    Problem.CONTENT_TYPE,
    Problem.BODY_TOO_LARGE,
    Problem.JSON_INVALID,
    Problem.NUMBER_NOT_FINITE,
    Problem.FIELD_MISSING,
    Problem.FIELD_TYPE,
    Problem.UNSUPPORTED,
)
"""Problems of every JSON body."""
_Request = TypeVar("_Request", bound=RequestModel)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response: a model or the bytes of another format, with headers."""

    body: BaseModel | bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = reading.JSON


@dataclass(frozen=True, slots=True)
class Call:
    """One request. by : who asks. query : the parameters. data, media_type : the body.

    found : the survey that the address names, if it names one.
    """

    services: Services
    by: KeyHolder
    query: Mapping[str, str]
    data: bytes
    media_type: str
    found: OpenedSurvey | None

    @property
    def survey(self) -> OpenedSurvey:
        """The survey that the address names."""
        assert self.found is not None  # noqa: S101 - every address with survey_id has one
        return self.found

    def read(self, model: type[_Request]) -> _Request:
        """Return the JSON body. Raises InvalidInput with the field at fault."""
        return model.from_json(parse_json(self.data, max_bytes=_BODY_BYTES, decimals=True))

    def limit(self, most: int) -> int:
        """Return the page size: the parameter `limit`, or `most`."""
        return reading.page_size(self.query.get("limit"), most) or most


Operation = Callable[..., BaseModel | Reply | None]


class Operations:
    """Adds operations to the API. Every one takes a token of its key's limit."""

    def __init__(self, routes: APIBlueprint, services: Services, limits: RateLimits) -> None:
        self._routes, self._services, self._limits = routes, services, limits

    def add(
        self,
        method: str,
        path: str,
        name: str,
        *,
        role: str,
        answer: tuple[int, str, type[BaseModel] | None],
        problems: Sequence[Problem] = (),
        body: Mapping[str, type[BaseModel]] | None = None,
        max_bytes: int = _BODY_BYTES,
        also: Mapping[int, Sequence[str]] | None = None,
        query: Sequence[Query] = (),
        is_scoped: bool = False,
        is_search: bool = False,
        headers: Mapping[str, str] = _NO_HEADERS,
    ) -> Callable[[Operation], Operation]:
        """Return a decorator that adds an operation.

        name : its operation id. role : the least role of a key. answer : status, description and
        model of success. body : media type -> model. max_bytes : of the body. is_scoped : True if keys
        for some surveys may use it, although its address names no survey. is_search : True for a search that changes
        nothing; it takes places itself. headers : name -> meaning.
        """
        status, has_survey = answer[0], "<survey_id>" in path
        changes = method != "GET" and not is_search
        listed = (*_READS, *problems, *(_CHANGES if changes else ()), *(BODY if body else ()))
        parameters = (*query, *((_IDEMPOTENCY,) if changes else ()))
        names = {one.name for one in query if one.place == "query"}

        def wrap(operation: Operation) -> Operation:
            @wraps(operation)
            def view(**named: Any) -> Response:
                principal = auth.require_role(self._services, role)
                self._limits.questions.take(principal.prefix)
                if principal.surveys and not (has_survey or is_scoped):
                    raise InvalidInput(Problem.FORBIDDEN, _FOR_ALL)
                texts, media_type, data = reading.query(names), "", b""
                if body:
                    media_type, data = reading.content_type(body), reading.body(max_bytes)
                elif request.content_length:
                    raise InvalidInput(Problem.BAD_REQUEST, "this address takes no body")
                attempt = self._attempt(principal.prefix, data) if changes else None
                if attempt is not None and attempt.answer is not None:
                    return _again(attempt.answer)

                def run() -> Response:
                    by = KeyHolder(principal, attempt)
                    # Reports come first: surveys can take seconds to read and check. A search takes
                    # places of its own.
                    with without_slot(self._services.managing):
                        survey = self._survey(principal, named) if has_survey else None
                        call = Call(self._services, by, texts, data, media_type, survey)
                        if not is_search:
                            return _response(operation(call, **named), status)
                    return _response(operation(call, **named), status)

                return run() if attempt is None else _kept(attempt, run)

            view.key_role = role  # type: ignore[attr-defined]  # the authorisation matrix reads it
            described = declare(
                self._routes,
                name,
                answers={status: (answer[1], reading.JSON, answer[2])},
                also=also,
                problems=(*listed, *((Problem.SURVEY_UNKNOWN,) if has_survey else ())),
                body=body,
                query=parameters,
                secured=True,
                changes=changes,
                headers=headers,
            )(view)
            self._routes.route(path, methods=[method])(described)
            return operation

        return wrap

    def _survey(self, principal: Principal, named: dict[str, Any]) -> OpenedSurvey:
        survey_id = reading.survey_id(named.pop("survey_id"))
        auth.require_survey(self._services, principal, survey_id)
        return opened(self._services, survey_id, principal.organisation)

    def _attempt(self, holder: str, data: bytes) -> Attempt | None:
        key = request.headers.get(_HEADER)
        if key is None:
            return None
        parts = (
            request.method,
            request.full_path,
            request.content_type,
            request.headers.get("If-Match"),
        )
        asked = json.dumps(parts).encode() + data
        return self._services.idempotency.attempt(auth.bearer(), holder, key, asked)


def _response(result: BaseModel | Reply | None, status: int) -> Response:
    if result is None:
        return Response(status=204)
    reply = result if isinstance(result, Reply) else Reply(result)
    body = reply.body
    data = body if isinstance(body, bytes) else encode(body.model_dump(by_alias=True))
    response = Response(data, status=status, content_type=reply.media_type)
    response.headers.update(reply.headers)
    return response


def _kept(attempt: Attempt, run: Callable[[], Response]) -> Response:
    """Return the response of a request with an idempotency key, and keep it for the next time."""
    refused = False
    try:
        response = run()
    except FranklyError as error:
        response, refused = problems.from_frankly(error), True
        # The same request may succeed later.
        if response.status_code >= 500 or response.status_code == 429:
            return response
    # If it cannot be kept, the action was carried out all the same: the claim says so.
    with suppress(StoreUnavailable):
        attempt.keep(_packed(response), is_refusal=refused)
    return response


def _packed(response: Response) -> bytes:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    values = (response.status_code, response.content_type, headers, response.get_data(as_text=True))
    return json.dumps(values).encode()


def _again(packed: bytes) -> Response:
    status, media_type, headers, text = json.loads(packed)
    response = Response(text, status=status, content_type=media_type)
    response.headers.update(headers)
    if status >= 400:
        g.problem_code = json.loads(text)["code"]
    return response
