# SPDX-License-Identifier: Apache-2.0
"""Designs from Python: `design`, families side by side, and the frontier of two objectives."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, Unpack

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.engine import engine
from frankly_design.engine.request import MECHANISMS
from frankly_design.interface.design import Design
from frankly_design.interface.notions import Notion
from frankly_design.interface.shown import Listing
from frankly_design.interface.tables import (
    Number,
    Table,
    aligned,
    answer_labels,
    exact,
    order_of,
    prior_table,
    read_limits,
    table,
)
from frankly_design.requests.design import MAX_POINTS, DesignInput, design_request
from frankly_design.requests.design_fields import never_stopped, no_time
from frankly_design.tables.limits import Progress

__all__ = ["MECHANISMS", "compare", "design", "frontier"]

Notions = Notion | Sequence[Notion]


class DesignOptions(TypedDict, total=False):
    """Fields of `frankly design --json`, with the same names and defaults (docs/design.md).

    targets : rows W, shape (targets, answers), of the wanted estimates W·p; default all shares.
    criterion : total or worst variance of the targets. truths : shares at which the variance is
    considered: a list of "prior", "even" or rows, or {"around": a truth, "radius": r}. variance_cap :
    largest variance, with the objective information. priors : further priors under which notions
    hold too. ceiling_cap : ε-LDP of the answer as a further promise, nats. method : "auto", or
    "vertices" to list every ray exactly. accept_identity : False refuses a mechanism that sends
    answers unchanged. accept_unidentifiable : False makes every share estimable. limits : {"seconds":
    60, "gap": 1e-6, "memory": 1024 (megabytes)}. p00, p11, alpha (nats), region, lift_measure,
    lift_order : parameters of families.
    """

    targets: Any
    criterion: Literal["total", "worst"]
    truths: Any
    variance_cap: Number
    priors: Sequence[Any]
    ceiling_cap: Number
    method: Literal["auto", "vertices"]
    accept_identity: bool
    accept_unidentifiable: bool
    limits: dict[str, Number]
    p00: Number
    p11: Number
    alpha: Number
    region: Literal["honest", "whole"]
    lift_measure: str
    lift_order: int


_OF_FRONTIERS: Final = ("targets", "priors", "ceiling_cap", "method", "limits")
_FRONTIER: Final = ("information", "variance", "information_bound", "variance_bound")


def design(
    prior: Any,
    notions: Notions,
    *,
    mechanism: str = "optimal",
    objective: str = "variance",
    timer: Callable[[], float] = no_time,
    progress: Progress | None = None,
    stopped: Callable[[], bool] = never_stopped,
    **options: Unpack[DesignOptions],
) -> Design:
    """Design a mechanism, verify it in whole numbers, and return it with its figures.

    Parameters
    ----------
    prior : joint counts or probabilities of secrets (rows) and answers (columns), shape (secrets,
        answers): nested lists, an array, or a pandas table such as `pandas.crosstab` returns, whose
        labels are kept. One row or dimension: the answer itself is the secret. Up to 256 answers, or
        1,000 under LDP of the answer alone.
    notions : one notion, or several that must all hold, such as ``[LIP(0.25), LDP(3)]``.
    mechanism : "optimal", "polyopt" (the optimum under RLDP), "non-robust", or a family (grr, oue,
        subset-selection, warner, …; `MECHANISMS` lists them).
    objective : what to optimise: "variance" of the unbiased estimates, "information" I(X;Y), or
        "hamming", the error of the best guess.
    timer : a monotonic clock in seconds such as `time.monotonic`, for limits of seconds.
    progress : called with (stage, best value, bound) during the search.
    stopped : polled; once it returns True, the best mechanism found so far is returned.
    options : see `DesignOptions`.

    Raises
    ------
    InvalidInput : with `code`, `field` and `detail`, if the request is not possible, or if no
        mechanism could be verified.
    """
    given = prior_table(prior)
    fields = _fields(given, notions, mechanism, objective, options, timer)
    promised, request = design_request(fields, timer, progress, stopped, method=fields.method)
    names = table(options["targets"], "targets").row_labels if request.targets else None
    return Design(engine.design(request), promised, request, given, names)


def frontier(
    prior: Any,
    notions: Notions,
    points: int = 20,
    *,
    timer: Callable[[], float] = no_time,
    **options: Unpack[DesignOptions],
) -> Listing:
    """Return mechanisms from least variance to most information, evenly spaced in information.

    points : 2 to 200. prior, notions, timer, options : see `design`.

    Each row has information (nats), variance (total of the targets from one report), and bounds: no
    mechanism that keeps the promises has more than information_bound at this variance, nor less than
    variance_bound at this information. `found` has the verified tables. Where one mechanism is best for
    both, there is one row. Of the options only targets, priors, ceiling_cap, method and limits belong
    to a frontier.

    Raises InvalidInput, also if the notions allow sending the answer unchanged.
    """
    given = prior_table(prior)
    points = exact(points, "points")
    if type(points) is not int or not 2 <= points <= MAX_POINTS:
        raise InvalidInput(
            Problem.FIELD_TYPE, f"give a whole number from 2 to {MAX_POINTS}", "points"
        )
    if unused := sorted(options.keys() - _OF_FRONTIERS):
        raise InvalidInput(
            Problem.UNSUPPORTED, f"a frontier has the options {', '.join(_OF_FRONTIERS)}", unused[0]
        )
    fields = _fields(given, notions, "optimal", "variance", options, timer)
    _, request = design_request(fields, timer, method=fields.method)
    found = engine.frontier(request, points)
    rows = [{name: getattr(one, name) for name in _FRONTIER} for one in found]
    return Listing("Frontier", rows, tuple(one.mechanism for one in found))


def compare(
    prior: Any,
    notions: Notions,
    mechanisms: Sequence[str] | None = None,
    *,
    objective: str = "variance",
    timer: Callable[[], float] = no_time,
    **options: Unpack[DesignOptions],
) -> Listing:
    """Return the figures of several mechanisms under the same prior and notions.

    mechanisms : names; None for the optimum and all families that fit. objective : of the optimum.
    timer, options : see `design`.

    Each row has mechanism, information (nats), normalised_information, variance (total of the
    targets, by default the shares, from one report), hamming, answer_ldp (nats, rounded up) and
    reports, their number. With None, mechanisms over other answers than the first one's are left
    out: those over pairs (s, u) estimate shares of pairs. `found` has the designs.

    Raises InvalidInput if a mechanism that was named does not fit, or if none fits; its `detail`
    begins with the name.
    """
    designs: list[Design] = []
    refusals: list[InvalidInput] = []
    named = [mechanisms] if isinstance(mechanisms, str) else mechanisms
    for name in MECHANISMS if named is None else named:
        try:
            made = design(
                prior, notions, mechanism=name, objective=objective, timer=timer, **options
            )
        except InvalidInput as error:
            refusals.append(InvalidInput(error.problem, f"{name}: {error.detail}", error.field))
            continue
        if mechanisms is not None or not designs or len(made.answers) == len(designs[0].answers):
            designs.append(made)
    if refusals and (mechanisms is not None or not designs):
        raise refusals[0]
    return Listing("Mechanisms", list(map(_figures, designs)), tuple(designs))


def _figures(made: Design) -> dict[str, Any]:
    return {
        "mechanism": made.name,
        "information": made.information,
        "normalised_information": made.normalised_information,
        "variance": math.fsum(made.target_variances),
        "hamming": made.hamming,
        "answer_ldp": made.answer_ldp,
        "reports": made.reports,
    }


def _fields(
    given: Table,
    notions: Notions,
    mechanism: str,
    objective: str,
    options: Mapping[str, Any],
    timer: Callable[[], float],
) -> DesignInput:
    """Return the request, read as if it were JSON."""
    if options.get("priors") is not None and not isinstance(options["priors"], list | tuple):
        raise InvalidInput(Problem.FIELD_TYPE, "give a list of priors", "priors")
    several: Sequence[Any] = notions if isinstance(notions, list | tuple) else [notions]
    if not all(isinstance(notion, Notion) for notion in several):
        raise InvalidInput(Problem.FIELD_TYPE, "give notions such as LIP(0.25)", "notions")
    secrets = given.row_labels if len(given.rows) > 1 else given.column_labels
    body: dict[str, Any] = {
        "prior": {"joint": given.rows},
        "notions": [notion.at_places(secrets, given.column_labels).to_json() for notion in several],
        "mechanism": mechanism,
        "objective": objective,
    }
    known = DesignOptions.__annotations__.keys()
    for name, value in options.items():
        if name not in known:
            raise InvalidInput(Problem.FIELD_UNKNOWN, f"the options are {', '.join(known)}", name)
        body[name] = read_limits(value, timer) if name == "limits" else _option(name, value, given)
    return DesignInput.from_json(body)


def _option(name: str, value: Any, given: Table) -> Any:
    """Return an option as in JSON: tables become rows, numbers exact decimals."""
    match name:
        case "priors":
            return [
                {"joint": _further(one, f"priors[{i}].joint", given)} for i, one in enumerate(value)
            ]
        case "targets" if not isinstance(value, str):
            return aligned(value, _labels_of(value, given), name).rows
        case "truths" if isinstance(value, dict):
            return {key: _truths(entry, f"{name}.{key}", given) for key, entry in value.items()}
        case "truths":
            return _truths(value, name, given)
        case _:
            return value if isinstance(value, bool) else exact(value, name)


def _labels_of(targets: Any, given: Table) -> tuple[Any, ...] | None:
    return answer_labels(given, len(table(targets, "targets").rows[0]))


def _truths(value: Any, field: str, given: Table) -> Any:
    """Return truths: tables and series in the order of the prior's answers, words as they are."""
    if hasattr(value, "to_numpy"):
        rows = aligned(value, given.column_labels, field).rows
        return rows[0] if not hasattr(value, "columns") else rows
    if isinstance(value, list | tuple):
        return [_truths(entry, f"{field}[{i}]", given) for i, entry in enumerate(value)]
    return exact(value, field)


def _further(prior: Any, field: str, first: Table) -> list[list[Any]]:
    """Return the rows of a further prior, in the order of the first one's secrets and answers."""
    given = aligned(prior, first.column_labels, field)
    if len(given.rows) == 1 < len(first.rows):
        raise InvalidInput(Problem.PRIOR_SHAPE, "give a list of tables, one for each prior", field)
    if given.row_labels is None or first.row_labels is None or len(first.rows) == 1:
        return given.rows
    return [given.rows[s] for s in order_of(given.row_labels, first.row_labels, field)]
