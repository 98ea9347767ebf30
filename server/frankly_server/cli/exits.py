# SPDX-License-Identifier: Apache-2.0
"""Errors on the terminal and their exit codes.

0 done · 1 internal fault · 2 usage · 3 bad input · 4 privacy refusal · 5 network · 6 integrity · 130 interrupted
"""

import json
from typing import Any

import click
from frankly_protocol.errors import DocumentRejected, FranklyError
from frankly_protocol.problems import Problem, problem_body

OK, FAULT, USAGE, BAD_INPUT, PRIVACY, NETWORK, INTEGRITY, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

_PRIVACY_CODES = frozenset({
    Problem.IDENTITY_MECHANISM.code, Problem.BUDGET_EXCEEDED.code, Problem.MECHANISM_NOT_CERTIFIED.code,
    Problem.PRIOR_SMALL_CELLS.code, Problem.CHOICE_UNPROTECTED.code, "document_privacy", "document_work_limit",
})  # fmt: skip
_NETWORK_CODES = frozenset(
    {"network", Problem.UNAVAILABLE.code, Problem.TIMED_OUT.code, Problem.TOO_MANY.code}
)
_INTEGRITY_CODES = frozenset({"integrity", "receipt"})


def exit_code(error: FranklyError) -> int:
    """Return the exit code for an error."""
    if error.code == Problem.USAGE.code:
        return USAGE
    if error.code in _PRIVACY_CODES:
        return PRIVACY
    if error.code in _NETWORK_CODES:
        return NETWORK
    if isinstance(error, DocumentRejected) or error.code in _INTEGRITY_CODES:
        return INTEGRITY
    return BAD_INPUT


def problem_object(error: FranklyError) -> dict[str, Any]:
    """Return the problem object of an error; a code that is not in the shared table is kept."""
    problem, detail = Problem.from_code(error.code), detail_of(error)
    if problem is not None:
        return problem_body(problem, detail, error.field)
    body = problem_body(Problem.BAD_REQUEST, detail, error.field)
    return body | {
        "type": f"urn:frankly:problem:{error.code}",
        "code": error.code,
        "title": "The request was refused.",
    }


def detail_of(error: FranklyError) -> str:
    """Return the detail of an error, with the reason if the database cannot be used.

    Only the terminal shows that reason: HTTP responses leave it out.
    """
    hint = getattr(error, "hint", "")
    return f"the database cannot be used: {hint}" if hint else error.detail


def write_error(error: FranklyError, *, as_json: bool) -> None:
    """Write an error to stderr: one JSON object, or its title and detail on separate lines."""
    if as_json:
        click.echo(json.dumps(problem_object(error)), err=True)
        return
    problem = Problem.from_code(error.code)
    click.echo(f"frankly: {problem.title if problem else 'Refused.'} [{error.code}]", err=True)
    click.echo(
        f"  {error.field}: {error.detail}" if error.field else f"  {detail_of(error)}", err=True
    )
