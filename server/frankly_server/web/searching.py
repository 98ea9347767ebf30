# SPDX-License-Identifier: Apache-2.0
"""Searches of requests, which hold no slot while they run in a process of their own."""

from collections.abc import Callable
from typing import Any, TypeVar

from flask import request

from frankly_server.services import Services
from frankly_server.web.slots import SLOTS, Slots

_Result = TypeVar("_Result")


def search(
    services: Services, function: Callable[..., _Result], *arguments: Any, seconds: float
) -> _Result:
    """Return the result of `Searches.run`, whose errors it raises; reports can have the slot."""
    slots: Slots = request.environ[SLOTS]
    with slots.released():
        return services.searches.run(function, *arguments, seconds=seconds)
