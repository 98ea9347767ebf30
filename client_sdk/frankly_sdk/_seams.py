# SPDX-License-Identifier: Apache-2.0
"""Seams: the network, time and randomness of a client, which only tests replace.

They are arguments of `frankly_sdk.testing.open_client`, not of `Client.open`: an app has no reason
to pass a source of randomness or a clock, and should notice if a library does.
"""

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from frankly_protocol.clock import Clock, SystemClock
from frankly_protocol.mechanisms.base import RandomBits

from frankly_sdk.transport import Transport


def wait_for(event: threading.Event, seconds: float) -> object:
    """Wait until an event is set, at most this many seconds."""
    return event.wait(min(seconds, threading.TIMEOUT_MAX))


@dataclass(frozen=True, slots=True)
class Seams:
    """Network, timing and randomness dependencies that an app never replaces.

    transport : sends the requests, and is closed by the caller; None for HTTP. sleep : waits the
    given number of seconds between attempts; None for a wait that `close` ends. timer : returns
    seconds, from a clock that never runs backwards. wait : waits until an event is set, at most the
    given number of seconds; used by the background sender.
    """

    transport: Transport | None = None
    clock: Clock = field(default_factory=SystemClock)
    randbits: RandomBits = secrets.randbits
    sleep: Callable[[float], object] | None = None
    timer: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Event, float], object] = wait_for
