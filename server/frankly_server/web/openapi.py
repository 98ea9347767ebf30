# SPDX-License-Identifier: Apache-2.0
"""The OpenAPI 3.1 description, declared next to each view so that both are changed together.

A view describes its operation with `declare`; APIFlask collects the routes; `finish` adds the
schemas. Error responses are listed with the codes of the shared problem table.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from apiflask import APIBlueprint, APIFlask
from frankly_protocol.problems import Problem
from frankly_protocol.schema import DIGEST, HEX128
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from frankly_server.web.problems import MEDIA_TYPE

View = TypeVar("View", bound=Callable[..., Any])
SECURITY = "api_key"
_REF = "#/components/schemas/{model}"
# Problems that every route lists.
_EVERYWHERE = (
    Problem.BAD_REQUEST,
    Problem.FIELD_UNKNOWN,
    Problem.METHOD_NOT_ALLOWED,
    Problem.INTERNAL,
    Problem.UNAVAILABLE,
    Problem.TOO_MANY,
)
_PATHS: Final = {
    name: {"type": "string", "pattern": f"^{pattern}$"}
    for name, pattern in {
        "digest": DIGEST.pattern,
        "prefix": "[A-Za-z0-9_-]{8}",
        "secret": "[A-Za-z0-9_-]{43}",
        **dict.fromkeys(("survey_id", "job_id", "account_id"), HEX128.pattern),
    }.items()
}
"""Schemas of the variable parts of addresses."""
_NO_HEADERS: Final[Mapping[str, str]] = {}
_BYTES: Final = {"schema": {"type": "string", "format": "binary"}}
_SECONDS: Final = {"type": "integer", "minimum": 0, "maximum": 86_400}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "The Bearer scheme."}},
    405: {
        "Allow": {
            "schema": {"type": "string"},
            "description": "The methods that this address accepts.",
        }
    },
    # Sent by this server or by a proxy in front of it; devices respect both.
    429: {
        "Retry-After": {"schema": _SECONDS, "description": "Seconds to wait."},
        "RateLimit-Policy": {
            "schema": {"type": "string"},
            "description": "The limit's name, and its quota q in w seconds.",
        },
        "RateLimit": {
            "schema": {"type": "string"},
            "description": "The remaining requests (r), and the seconds until the quota is full again (t).",
        },
    },
    503: {"Retry-After": {"schema": _SECONDS, "description": "Seconds to wait."}},
}


class ProblemDetails(BaseModel):
    """An error in the form of RFC 9457.

    `code` is stable. `detail` says what is wrong or how to fix it, and never repeats an answer.
    """

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """One query parameter: name, JSON schema and meaning. place : ``header`` for a header."""

    name: str
    schema: Mapping[str, Any]
    description: str
    required: bool = False
    place: str = "query"


def declare(
    routes: APIBlueprint | APIFlask,
    operation_id: str,
    *,
    answers: Mapping[int, tuple[str, str, type[BaseModel] | None]],
    also: Mapping[int, Sequence[str]] | None = None,
    problems: Sequence[Problem] = (),
    body: Mapping[str, type[BaseModel]] | None = None,
    query: Sequence[Query] = (),
    secured: bool = False,
    changes: bool = False,
    headers: Mapping[str, str] = _NO_HEADERS,
) -> Callable[[View], View]:
    """Return a decorator that describes a view.

    Parameters
    ----------
    answers : status -> (description, media type, model) of every success; None for no body. also : status ->
    additional media types for the same content in another format.
    problems : the problems of this view; those of every route are added.
    body : media type -> model of the request body; None if the view reads no body.
    secured : True if the view needs an API key. Its response has an ETag unless it reads a body.
    changes : True if the view changes something; such a view sets an ETag itself, or none.
    headers : name -> meaning of headers of a success.
    """
    # Callers with a key are known anyway; for anyone else, an ETag could be used for tracking.
    tagged = secured and body is None and not changes
    responses: dict[int, Any] = {status: _answer(*answer) for status, answer in answers.items()}
    for status, kinds in (also or {}).items():
        content = responses[status]["content"]
        # YAML has the same values as JSON, and clients check them by the same schema.
        same = next(iter(content.values()))
        content |= {kind: same if kind.endswith("yaml") else _BYTES for kind in kinds}
    responses.update(_problem_responses([*problems, *_EVERYWHERE]))
    sent = {**({"ETag": "Hash of these bytes."} if tagged else {}), **headers}
    if sent:
        responses[next(iter(answers))]["headers"] = {
            name: {"schema": {"type": "string"}, "description": meaning}
            for name, meaning in sent.items()
        }
    if tagged:
        responses[304] = {"description": "The content still matches `If-None-Match`."}
    extensions: dict[str, Any] = {"parameters": [_parameter(item) for item in query]}
    if body is not None:
        extensions["requestBody"] = {
            "required": True,
            "content": {kind: _schema(model) for kind, model in body.items()},
        }
    documented: Callable[[View], View] = routes.doc(
        operation_id=operation_id,
        responses=responses,
        extensions=extensions,
        security=[{SECURITY: []}] if secured else None,
    )

    def decorate(view: View) -> View:
        view.tagged = tagged  # type: ignore[attr-defined]  # read by frankly_server.web.headers
        return documented(view)

    return decorate


def configure(app: APIFlask) -> None:
    """Configure APIFlask. Call this before the routes are described."""
    app.config.update(
        AUTO_SERVERS=False,
        AUTO_404_RESPONSE=False,
        AUTO_AUTH_ERROR_RESPONSE=False,
        SECURITY_SCHEMES={
            SECURITY: {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key made by `frankly keys api`.",
            }
        },
    )
    app.description = (
        "Signed survey documents, noisy reports, and estimates that carry their uncertainty."
    )
    servers: list[dict[str, Any]] = [
        {"url": "/", "description": "the server that this document comes from"},
        {
            "url": "https://{host}",
            "description": "any other server",
            "variables": {"host": {"default": "surveys.example.org"}},
        },
    ]
    app.servers = servers


def finish(app: APIFlask, models: Sequence[type[BaseModel]]) -> bytes:
    """Return the bytes of the complete document, which is also stored as docs/openapi.json."""
    spec: dict[str, Any] = dict(app.spec)  # type: ignore[arg-type]
    every: list[type[BaseModel]] = [*models, ProblemDetails]
    described: list[tuple[type[BaseModel], Literal["serialization"]]] = [
        (model, "serialization") for model in every
    ]
    _, schemas = models_json_schema(described, ref_template=_REF)
    components = spec.setdefault("components", {})
    # Unreferenced definitions, such as those of hidden fields, are left out.
    definitions = schemas["$defs"]
    text = json.dumps([spec, definitions])
    components["schemas"] = {
        name: schema
        for name, schema in definitions.items()
        if json.dumps(_REF.format(model=name)) in text
    }
    spec["info"]["license"] = {"name": "Apache-2.0", "identifier": "Apache-2.0"}
    for operations in spec["paths"].values():
        for parameter in (p for one in operations.values() for p in one.get("parameters", ())):
            if parameter["in"] == "path" and parameter["name"] in _PATHS:
                parameter["schema"] = _PATHS[parameter["name"]]
    return (json.dumps(spec, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return {"schema": {"$ref": _REF.format(model=model.__name__)}}


def _answer(description: str, media_type: str, model: type[BaseModel] | None) -> dict[str, Any]:
    if model is None:
        return {"description": description}
    return {"description": description, "content": {media_type: _schema(model)}}


def _parameter(item: Query) -> dict[str, Any]:
    return {
        "in": item.place,
        "name": item.name,
        "schema": dict(item.schema),
        "description": item.description,
        "required": item.required,
    }


def _problem_responses(problems: Sequence[Problem]) -> dict[int, Any]:
    """Return a response for each status, with the codes of its problems."""
    grouped: dict[int, list[Problem]] = defaultdict(list)
    # Each problem once, because a view may also declare a problem that every route has.
    for problem in dict.fromkeys(problems):
        grouped[problem.status].append(problem)
    return {
        status: _problem_response(status, same_status)
        for status, same_status in sorted(grouped.items())
    }


def _problem_response(status: int, problems: Sequence[Problem]) -> dict[str, Any]:
    response: dict[str, Any] = {
        "description": " ".join(f"`{problem.code}`: {problem.title}" for problem in problems),
        "content": {MEDIA_TYPE: _schema(ProblemDetails)},
    }
    if status in _HEADERS:
        response["headers"] = _HEADERS[status]
    return response
