# SPDX-License-Identifier: Apache-2.0
"""Slow work of requests, which holds no slot: reports come first."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from flask import request

from frankly_server.services import Services
from frankly_server.surveys.searches import Places, apart
from frankly_server.web.slots import SLOTS, Slots

_Result = TypeVar("_Result")


@contextmanager
def without_slot(places: Places) -> Iterator[None]:
    """Give back the request's slot and hold one of these places until the block ends.

    Raises `searches.Busy`.
    """
    slots: Slots = request.environ[SLOTS]
    with slots.released(), places.taken():
        yield


def search(
    services: Services, function: Callable[..., _Result], *arguments: Any, seconds: float
) -> _Result:
    """Return the result of a search in a process, without a slot.

    Raises `searches.Busy`, and the errors of `searches.apart`.
    """
    with without_slot(services.searches):
        return apart(function, *arguments, seconds=seconds)
