# SPDX-License-Identifier: Apache-2.0
"""Many respondents on one device: field tablets, call centres, files. One ledger and one answer for each key."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk._sealing import Row, Sealing, require_token
from frankly_sdk.answer import Answer
from frankly_sdk.store import Sealed

AT_ONCE = 500
"""Rows sealed in one transaction: a full sync for each row would be most of the work."""

Respondent = (
    tuple[str, Mapping[str, str] | Answer, Mapping[str, str]]
    | tuple[str, Mapping[str, str] | Answer, Mapping[str, str], str | None]
)
"""A key, choices, strata and, where the survey asks for one, a token."""


@dataclass(frozen=True, slots=True)
class Randomised:
    """What became of one row.

    respondent : the key as given. status : ``sealed`` (durable; now, or by an earlier run: the same bytes then),
    ``done`` (acknowledged or refused before, and erased) or ``over_budget``. report : the sealed bytes, else None.
    """

    respondent: str = field(repr=False)
    status: str
    report: bytes | None = field(repr=False)


def randomise(sealing: Sealing, rows: Iterable[Respondent]) -> Iterator[Randomised]:
    """Seal the rows, `AT_ONCE` in each transaction, and yield what became of them in their order."""
    source, first = iter(rows), 0
    while chunk := list(islice(source, AT_ONCE)):
        keys = [_key(given, first + i) for i, given in enumerate(chunk)]
        todo = [_row(sealing, given) for given in chunk]
        del chunk
        for i, row in enumerate(todo):
            fault = row.fault(sealing.document) or _token_fault(sealing, row)
            if fault is not None:
                raise _placed(fault, first + i)
        for key, result in zip(keys, sealing.many(todo), strict=True):
            yield _outcome(key, result)
        first += len(keys)


def _key(given: object, i: int) -> str:
    if not isinstance(given, tuple | list) or len(given) not in (3, 4):
        words = "a row is a tuple of key, choices, strata and, if the survey asks for one, the token"
        raise InvalidInput(Problem.FIELD_TYPE, words, f"rows[{i}]")
    key = given[0]
    if not isinstance(key, str) or not key:
        raise InvalidInput(Problem.FIELD_MISSING, "every respondent needs a key, a text", f"rows[{i}].respondent")
    return key


def _row(sealing: Sealing, given: Respondent) -> Row:
    token = given[3] if len(given) == 4 else None
    return Row(sealing.store.respondent_name(given[0]), Answer.of(given[1]), Answer.of(given[2]), token)


def _token_fault(sealing: Sealing, row: Row) -> InvalidInput | None:
    try:
        require_token(sealing.document, row.token)
    except InvalidInput as fault:
        return fault.with_traceback(None)
    return None


def _placed(fault: FranklyError, i: int) -> FranklyError:
    fault.field = f"rows[{i}].{fault.field}" if fault.field else f"rows[{i}]"
    return fault


def _outcome(key: str, result: Sealed | Exception) -> Randomised:
    if isinstance(result, Exception):
        return Randomised(key, "over_budget", None)
    return Randomised(key, "sealed" if result.body is not None else "done", result.body)
