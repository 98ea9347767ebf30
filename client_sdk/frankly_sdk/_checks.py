# SPDX-License-Identifier: Apache-2.0
"""Argument checks for the public API and the testing kit, before anything is fetched, drawn or sealed.

Every error is an InvalidInput that names the argument and what is expected; none repeats its value.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeVar

from frankly_protocol.clock import Clock
from frankly_protocol.documents import MAX_VALIDITY
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_sdk.policy import Policy

LONGEST_S: Final = MAX_VALIDITY.total_seconds()
"""Upper limit of all waiting times, in seconds: the longest validity of a document."""

_Row = TypeVar("_Row")
_SECONDS = (
    f"expected seconds, a number from 0 to {LONGEST_S:.0f}: no survey is valid for more than "
    f"{MAX_VALIDITY.days} days"
)
SPELLING: Final = "surrounding spaces or in how the same letters are encoded in Unicode"
"""The possible differences between two keys of the same respondent."""
_SWITCH = "expected True or False"
_FUNCTION = "expected a function"
_KEY = "a respondent's key is a non-blank string; without one, answer() is for the person the install belongs to"


def _is_seconds(value: object) -> bool:
    # NaN fails the comparison. A bool is an int in Python but would be a mistake here.
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_S
    )


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


def _is_path(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, os.PathLike) and isinstance(os.fspath(value), str)
    )


def _or_none(kind: type) -> Callable[[object], bool]:
    return lambda value: value is None or isinstance(value, kind)


def _offers(*methods: str) -> Callable[[object], bool]:
    # Duck typing: apps and tests pass their own transports and clocks.
    return lambda value: (
        value is None or all(callable(getattr(value, name, None)) for name in methods)
    )


_RULES: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "store": (_is_path, "expected the path of this install's store file"),
    "ca_file": (
        lambda value: value is None or _is_path(value),
        "expected the path of a file of certificates",
    ),
    "policy": (_or_none(Policy), 'expected a Policy, such as Policy(cap="3")'),
    "keys": (
        _or_none(bytes),
        "expected the bytes of the keys document; read its file in binary mode",
    ),
    "enabled": (_is_switch, _SWITCH),
    "debug": (_is_switch, _SWITCH),
    "on_event": (
        lambda value: value is None or callable(value),
        "expected a function that takes an Event",
    ),
    "background": (_is_switch, _SWITCH),
    "one_person": (_is_switch, _SWITCH),
    "spread_s": (lambda value: value is None or _is_seconds(value), _SECONDS),
    "patience_s": (lambda value: value is None or _is_seconds(value), _SECONDS),
    "timeout_s": (_is_seconds, _SECONDS),
    "transport": (_offers("get", "post"), "expected a Transport, an object with get and post"),
    "clock": (_offers("now"), "expected a Clock, an object whose now() returns the time in UTC"),
    "randbits": (callable, _FUNCTION),
    "sleep": (lambda value: value is None or callable(value), _FUNCTION),
    "timer": (callable, _FUNCTION),
    "wait": (callable, _FUNCTION),
}


def require(**arguments: object) -> None:
    """Raise InvalidInput(field_type) unless each argument passes the check for its name."""
    for field, value in arguments.items():
        is_right, detail = _RULES[field]
        if not is_right(value):
            raise InvalidInput(Problem.FIELD_TYPE, detail, field)


def time_of(clock: Clock) -> datetime:
    """Return the clock's time; raises InvalidInput unless it is an aware datetime."""
    # Without this check, a naive datetime would raise TypeError far from its cause.
    now: object = clock.now()
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "now() must return an aware datetime, such as datetime.now(UTC)",
            "clock",
        )
    return now


def key_fault(key: object) -> InvalidInput | None:
    """Return the error of a respondent's key, or None if there is none.

    A blank key is refused, because it could be mistaken for the person who owns the install.
    """
    if not isinstance(key, str):
        return InvalidInput(Problem.FIELD_TYPE, _KEY, "respondent")
    # Only blank keys are checked here; `store.normal_key` decides which keys are the same.
    return None if key.strip() else InvalidInput(Problem.FIELD_MISSING, _KEY, "respondent")


def each(rows: Iterable[_Row]) -> Iterator[_Row]:
    """Return an iterator over the rows.

    Raises InvalidInput if `rows` is not iterable.
    """
    try:
        return iter(rows)
    except TypeError:
        raise InvalidInput(
            Problem.FIELD_TYPE,
            "expected rows, each a tuple of key, choices, strata and, if the survey requires one, the token",
            "rows",
        ) from None
