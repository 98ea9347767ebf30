# SPDX-License-Identifier: Apache-2.0
"""Clients with a replaced network, clock or source of randomness, for tests only."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.mechanisms.base import RandomBits

from frankly_sdk._checks import require
from frankly_sdk._core import Core, Options
from frankly_sdk._seams import Seams, wait_for
from frankly_sdk.aio import Client as AioClient
from frankly_sdk.client import Client
from frankly_sdk.policy import Policy
from frankly_sdk.transport import Transport


def open_client(
    link: str,
    store: str | Path,
    policy: Policy | None = None,
    *,
    transport: Transport | None = None,
    clock: Clock | None = None,
    randbits: RandomBits = secrets.randbits,
    sleep: Callable[[float], object] | None = None,
    timer: Callable[[], float] = time.monotonic,
    wait: Callable[[Event, float], object] = wait_for,
    **options: Any,
) -> Client:
    """Open a client as `Client.open` does, for tests.

    transport : sends the requests; the caller has to close it.
    clock : the wall clock, which determines whether documents are open, closed or expired.
    randbits : function that returns the given number of random bits, from which the noise is drawn.
    sleep : waits the given number of seconds between attempts.
    timer : returns seconds, from a clock that never runs backwards.
    wait : waits until an event is set, for at most the given seconds; used by the background sender.
    options : as for `Client.open`.

    Raises InvalidInput for an argument of the wrong type, and the errors of `Client.open`.
    """
    checked = Options(link, store, policy, **options)
    return Client(Core.open(checked, _seams(transport, clock, randbits, sleep, timer, wait)))


async def open_aio_client(
    link: str,
    store: str | Path,
    policy: Policy | None = None,
    *,
    transport: Transport | None = None,
    clock: Clock | None = None,
    randbits: RandomBits = secrets.randbits,
    sleep: Callable[[float], object] | None = None,
    timer: Callable[[], float] = time.monotonic,
    wait: Callable[[Event, float], object] = wait_for,
    **options: Any,
) -> AioClient:
    """Open a client as `frankly_sdk.aio.Client.open` does; arguments as for `open_client`.

    `transport`, `clock`, `randbits`, `sleep` and `timer` are called in threads.
    """
    checked = Options(link, store, policy, **options)
    seams = _seams(transport, clock, randbits, sleep, timer, wait)
    return await AioClient._opened(checked, seams)  # noqa: SLF001  not part of the public client


def _seams(
    transport: Transport | None,
    clock: Clock | None,
    randbits: RandomBits,
    sleep: Callable[[float], object] | None,
    timer: Callable[[], float],
    wait: Callable[[Event, float], object],
) -> Seams:
    require(transport=transport, clock=clock, randbits=randbits)
    require(sleep=sleep, timer=timer, wait=wait)
    return Seams(transport, clock or SystemClock(), randbits, sleep, timer, wait)
