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

_EXITS = {
    Problem.USAGE.code: USAGE,
    Problem.IDENTITY_MECHANISM.code: PRIVACY,
    Problem.BUDGET_EXCEEDED.code: PRIVACY,
    Problem.MECHANISM_NOT_CERTIFIED.code: PRIVACY,
    Problem.PRIOR_SMALL_CELLS.code: PRIVACY,
    Problem.CHOICE_UNPROTECTED.code: PRIVACY,
    "document_privacy": PRIVACY,
    "document_work_limit": PRIVACY,
    "network": NETWORK,
    Problem.UNAVAILABLE.code: NETWORK,
    Problem.TIMED_OUT.code: NETWORK,
    Problem.TOO_MANY.code: NETWORK,
    "integrity": INTEGRITY,
    "receipt": INTEGRITY,
}


def exit_code(error: FranklyError) -> int:
    """Return the exit code for an error."""
    return _EXITS.get(error.code, INTEGRITY if isinstance(error, DocumentRejected) else BAD_INPUT)


def problem_object(error: FranklyError) -> dict[str, Any]:
    """Return the problem object of an error; codes outside the shared table are left unchanged."""
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
    """Return the detail of an error, plus the reason if the database cannot be used.

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
