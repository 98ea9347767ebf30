# SPDX-License-Identifier: Apache-2.0
"""Many respondents on one device: field tablets, call centres, files. One ledger and one answer for each key."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk._sealing import Row, Sealing
from frankly_sdk.answer import Answer
from frankly_sdk.errors import UnknownChoice
from frankly_sdk.store import Sealed

AT_ONCE = 500
"""Rows sealed in one transaction: a full sync for each row would be most of the work."""

Respondent = tuple[str, Mapping[str, str] | Answer, Mapping[str, str]]


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
        keys = [key for key, _, _ in chunk]
        todo = [Row(_name(sealing, key, first + i), Answer.of(c), Answer.of(s)) for i, (key, c, s) in enumerate(chunk)]
        del chunk
        for i, row in enumerate(todo):
            fault = row.fault(sealing.document)
            if fault is not None:
                raise _placed(fault, first + i)
        for key, result in zip(keys, sealing.many(todo), strict=True):
            yield _outcome(key, result)
        first += len(keys)


def _name(sealing: Sealing, key: object, i: int) -> str:
    if not isinstance(key, str) or not key:
        raise InvalidInput(Problem.FIELD_MISSING, "every respondent needs a key, a text", f"rows[{i}].respondent")
    return sealing.store.respondent_name(key)


def _placed(fault: UnknownChoice, i: int) -> UnknownChoice:
    fault.field = f"rows[{i}].{fault.field}" if fault.field else f"rows[{i}]"
    return fault


def _outcome(key: str, result: Sealed | Exception) -> Randomised:
    if isinstance(result, Exception):
        return Randomised(key, "over_budget", None)
    return Randomised(key, "sealed" if result.body is not None else "done", result.body)
