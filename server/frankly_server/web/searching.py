# SPDX-License-Identifier: Apache-2.0
"""Slow work of requests, which holds no slot: reports come first."""

import hashlib
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from flask import g, request

from frankly_server.services import Services
from frankly_server.surveys.searches import Places, apart
from frankly_server.web.slots import SLOTS, Slots

_Result = TypeVar("_Result")
_MOST_KEPT: Final = 256
_MISSING: Final[Any] = object()


@contextmanager
def without_slot(places: Places, **wait: float) -> Iterator[None]:
    """Give back the request's slot and hold one of these places until the block ends.

    The place belongs to the signed-in person or the API key of the request. wait : of `Places.taken`.
    Raises `searches.Busy`.
    """
    slots: Slots = request.environ[SLOTS]
    key, someone = g.get("principal"), g.get("person")
    organisation, holder = (
        (key.organisation, f"key {key.prefix}")
        if key is not None
        else (someone.organisation, f"person {someone.id}")
    )
    with slots.released(), places.taken(organisation, holder, **wait):
        yield


def search(
    services: Services, function: Callable[..., _Result], *arguments: Any, seconds: float
) -> _Result:
    """Return the result of a search in a process, without a slot.

    Raises `searches.Busy`, and the errors of `searches.apart`.
    """
    places = services.searches
    with without_slot(places):
        return apart(function, *arguments, seconds=seconds, poll=places.require_running)


def search_once(
    services: Services,
    function: Callable[..., _Result],
    *arguments: Any,
    seconds: float,
    places: Places | None = None,
) -> _Result:
    """Return the result of `search`, or that of the same search before; for pages opened again.

    function : its result depends on the arguments only. places : by default those of searches.
    """
    key = hashlib.sha256(
        pickle.dumps((function.__module__, function.__qualname__, arguments))
    ).digest()
    places, kept = places or services.searches, services.kept_results
    found = kept.get(key, _MISSING)
    if found is _MISSING:
        with without_slot(places):
            # Another request may have waited for the same result before this one.
            found = kept.get(key, _MISSING)
            if found is _MISSING:
                found = apart(function, *arguments, seconds=seconds, poll=places.require_running)
                kept[key] = found
                # Other threads may remove results, too.
                with suppress(KeyError):
                    while len(kept) > _MOST_KEPT:
                        kept.popitem(last=False)
    result: _Result = found
    return result
