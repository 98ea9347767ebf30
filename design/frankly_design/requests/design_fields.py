# SPDX-License-Identifier: Apache-2.0
"""Fields of a design input (commands `design` and `plan`, spec 1.9), and time limits of requests."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Annotated, Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import BeforeValidator, Field, PlainValidator, Strict, WithJsonSchema
from pydantic.json_schema import SkipJsonSchema

from frankly_design.engine.read_truths import MAX_TRUTHS
from frankly_design.requests.choices import DesignChoices
from frankly_design.requests.fields import (
    NUMBER,
    ClosedModel,
    Flag,
    JointRows,
    OneOf,
    RequestModel,
    json_schema,
)
from frankly_design.requests.levels import Levels, NotionName, RobustBall
from frankly_design.requests.targets import Targets
from frankly_design.tables.limits import FINISH_S, Limits, Progress, TimeExceeded

Timer = Callable[[], float]
Stopped = Callable[[], bool]
Planner = Callable[[Any, Timer, Stopped], dict[str, Any]]


def _positive(value: Any, field: str) -> float:
    number = REQUEST.number(value, field)
    if number <= 0 or abs(number.adjusted()) > 100:
        raise InvalidInput(Problem.FIELD_TYPE, "give a positive number, 1e-100 to 1e100", field)
    return float(number)


def _gap(value: Any) -> float:
    gap = REQUEST.number(value, "limits.gap")
    if not Decimal("1e-12") <= gap <= 1:
        raise InvalidInput(Problem.FIELD_TYPE, "give a gap from 1e-12 to 1", "limits.gap")
    return float(gap)


def _joints(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(Problem.FIELD_TYPE, "give a list", "priors")
    return tuple(
        REQUEST.record(prior, f"priors[{i}]", {"joint"})["joint"] for i, prior in enumerate(value)
    )


class SearchLimits(ClosedModel):
    """Limits of a search: seconds, gap at which it ends, megabytes of memory."""

    seconds: Annotated[float, BeforeValidator(lambda v: _positive(v, "limits.seconds"))] = 60
    gap: Annotated[float, BeforeValidator(_gap)] = 1e-6
    memory: Annotated[int, Strict(), Field(ge=1)] = 1024


def no_time() -> float:
    """Return the same time at every call: nothing ever takes too long."""
    return 0.0


def never_stopped() -> bool:
    """Return False, so that the search is not stopped early."""
    return False


def search_limits(
    limits: SearchLimits, timer: Timer, progress: Progress | None, stopped: Stopped
) -> Limits:
    """Return the limits of a search that starts at this call.

    timer : a monotonic clock in seconds. stopped : ends the search once it returns True.
    """
    limited = Limits.within(limits.seconds, timer, stopped, gap=limits.gap, memory=limits.memory)
    return limited if progress is None else replace(limited, progress=progress)


def within(plan: Planner, obj: Any, timer: Timer, seconds: float) -> dict[str, Any]:
    """Return a plan whose design searches take at most `seconds` in total.

    After that, each search returns the best design so far. Raises InvalidInput, also if the request
    has `limits`, and TimeExceeded if the plan is not complete `FINISH_S` seconds later.
    """
    if isinstance(obj, Mapping) and "limits" in obj:
        raise InvalidInput(
            Problem.UNSUPPORTED, "the server sets the limits: leave them out", "limits"
        )
    deadline = timer() + seconds

    def limited() -> float:
        now = timer()
        if now > deadline + FINISH_S:
            raise TimeExceeded
        return now

    return plan(obj, limited, lambda: timer() > deadline)


class RobustChoice(RobustBall):
    """A ball, represented by simplices or by boxes of lower and upper bounds."""

    polyhedra: Annotated[str, OneOf("polyhedra", ("simplex", "box"))] = "simplex"


class NotionRequest(Levels):
    """One of several notions that must all hold."""

    notion: NotionName
    robust: RobustChoice | None = None


_TRUTH: Final = {
    "anyOf": [
        {"enum": ["prior", "even"]},
        {"type": "array", "minItems": 1, "items": {"type": "number", "minimum": 0}},
    ]
}
_TRUTHS: Final = {
    "anyOf": [
        {"type": "array", "minItems": 1, "maxItems": MAX_TRUTHS, "items": _TRUTH},
        {"type": "null"},
        {
            "type": "object",
            "properties": {"around": _TRUTH, "radius": {"type": NUMBER}},
            "required": ["around", "radius"],
            "additionalProperties": False,
        },
    ]
}


class DesignFields(DesignChoices, RequestModel):
    """A design input, as the commands design and plan read it; see `design_json`.

    prior, targets, truths : parsed later, once the number of answers is known.
    """

    prior: JointRows | None = None
    priors: Annotated[
        tuple[Any, ...], PlainValidator(_joints), WithJsonSchema({"type": "array", "items": {}})
    ] = ()
    robust: RobustChoice | None = None
    notions: Annotated[tuple[NotionRequest, ...], Field(min_length=1, max_length=16)] = ()
    targets: Targets = "shares"
    truths: Annotated[Any, WithJsonSchema(_TRUTHS)] = None
    variance_cap: Annotated[
        float | None,
        BeforeValidator(lambda v: None if v is None else _positive(v, "variance_cap")),
        json_schema("Shares squared at n = 1.", ["number", "null"]),
    ] = None
    # Only for the commands. A server sets its own limits, so the API does not describe these.
    limits: SkipJsonSchema[Annotated[SearchLimits, WithJsonSchema({})]] = SearchLimits()
    accept_identity: Flag = True
    accept_unidentifiable: Flag = True
