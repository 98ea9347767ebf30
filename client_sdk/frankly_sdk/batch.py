# SPDX-License-Identifier: Apache-2.0
"""Batches of respondents on one device: one ledger and one answer per key."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from frankly_protocol.errors import FranklyError, InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk._checks import SPELLING, key_fault
from frankly_sdk._sealing import Row, Sealing, source_of, token_to_send
from frankly_sdk.answer import Answer, Given
from frankly_sdk.errors import UnknownChoice
from frankly_sdk.events import Event, OnEvent
from frankly_sdk.store import Sealed

ROWS_PER_TRANSACTION = 500
"""Rows sealed in one transaction: a full sync for each row would take most of the time."""

Respondent = (
    tuple[str, Mapping[str, Given] | Answer, Mapping[str, str]]
    | tuple[str, Mapping[str, Given] | Answer, Mapping[str, str], str | None]
)
"""Key, choices, strata and, if the survey requires one, a token."""


@dataclass(frozen=True, slots=True)
class Randomised:
    """The result of one row.

    respondent : the key as given.
    status : ``sealed`` (durable, sealed now or by an earlier run), ``done`` (acknowledged or
        refused before, and erased), ``over_budget``, or ``already`` (an earlier row of the same
        call has this key; the result of that row applies to the person).
    report : the sealed bytes if `status` is ``sealed``, otherwise None.
    same_as : with ``already``, the number of that earlier row, counted from 0.
    respelled : True if the two rows write the key with different surrounding spaces or a different
        Unicode form; the caller should check that it is the same person.
    """

    respondent: str = field(repr=False)
    status: str
    report: bytes | None = field(repr=False)
    same_as: int | None = None
    respelled: bool = False


def randomise(
    sealing: Sealing, source: Iterator[Respondent], announce: OnEvent
) -> Iterator[Randomised]:
    """Seal the rows, `ROWS_PER_TRANSACTION` in each transaction, and yield their results in order."""
    first_rows, first = dict[str, tuple[int, int]](), 0
    # `map` keeps the raw rows out of local variables, which a traceback would contain.
    while read := list(map(_read, islice(source, ROWS_PER_TRANSACTION))):
        keys, todo, places = list[tuple[str, Randomised | None]](), list[Row](), list[int]()
        for i, row_or_fault in enumerate(_armed(sealing, read, first), first):
            key, row = _checked(sealing, row_or_fault, i)
            row = replace(row, respondent=sealing.store.respondent_name(key))
            # The hash of the key suffices to compare two spellings, so the key itself is not
            # stored.
            same_as, spelling = first_rows.setdefault(row.respondent, (i, hash(key)))
            is_new = same_as == i
            keys.append(
                (
                    key,
                    None
                    if is_new
                    else Randomised(key, "already", None, same_as, spelling != hash(key)),
                )
            )
            if is_new:
                todo.append(row)
                places.append(i)
        # All rows of a transaction are checked first: if one is wrong, none of them is sealed. Rows
        # of earlier transactions stay sealed.
        results = iter(sealing.many(_fitting(sealing, todo, places)))
        for i, (key, repeated) in enumerate(keys, first):
            if repeated is not None and repeated.respelled:
                announce(_same_respondent(sealing.document.survey, i, repeated))
            yield repeated or _outcome(key, next(results))
        first += len(keys)


def _same_respondent(survey: str, i: int, row: Randomised) -> Event:
    return Event(
        "same_respondent",
        survey,
        "key_respelled",
        f"rows[{i}] was not sealed: its key differs from that of rows[{row.same_as}] only in {SPELLING}",
    )


def _read(row: object) -> tuple[str, Row] | InvalidInput:
    """Return a row's key and answers, or the error if its shape or key is wrong.

    The error is not raised, because a traceback would contain the answers.
    """
    if not isinstance(row, tuple | list) or len(row) not in (3, 4):
        return InvalidInput(
            Problem.FIELD_TYPE,
            "a row is a tuple of key, choices, strata and, if the survey requires one, the token",
        )
    key, choices, strata, *token = row
    return key_fault(key) or (key, Row("", Answer.of(choices), Answer.of(strata), *token))


def _armed(
    sealing: Sealing, rows: list[tuple[str, Row] | InvalidInput], first: int
) -> list[tuple[str, Row] | InvalidInput]:
    """Return the rows in the arms that their respondents draw; without arms, unchanged."""
    if not sealing.arms:
        return rows
    named = list[tuple[str, Row]]()
    for i, row_or_fault in enumerate(rows, first):
        if isinstance(row_or_fault, InvalidInput):
            raise _placed(row_or_fault, i)
        key, row = row_or_fault
        fault = _token_fault(sealing, row)
        if fault is not None:
            raise _placed(fault, i)
        named.append((key, replace(row, respondent=sealing.store.respondent_name(key))))
    armed = sealing.armed([row for _, row in named])
    return [(key, row) for (key, _), row in zip(named, armed, strict=True)]


def _checked(
    sealing: Sealing, row_or_fault: tuple[str, Row] | InvalidInput, i: int
) -> tuple[str, Row]:
    if isinstance(row_or_fault, InvalidInput):
        raise _placed(row_or_fault, i)
    key, row = row_or_fault
    settled = sealing.settled(row)
    # A traceback keeps local variables.
    del row, row_or_fault
    if isinstance(settled, UnknownChoice):
        raise _placed(settled, i)
    fault = _token_fault(sealing, settled)
    if fault is not None:
        raise _placed(fault, i)
    return key, settled


def _fitting(sealing: Sealing, rows: list[Row], places: list[int]) -> list[Row]:
    """Return the rows with only the answers that their plans need; raises UnknownChoice."""
    fitting = sealing.planned(rows)
    for row, place in zip(fitting, places, strict=True):
        if isinstance(row, UnknownChoice):
            raise _placed(row, place)
    return [row for row in fitting if isinstance(row, Row)]


def _token_fault(sealing: Sealing, row: Row) -> InvalidInput | None:
    try:
        token_to_send(sealing.document, row.token, source_of(sealing.document, row.public))
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
