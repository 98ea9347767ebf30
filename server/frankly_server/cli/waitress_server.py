# SPDX-License-Identifier: Apache-2.0
"""waitress server with a time limit for requests, a thread for probes, and a graceful shutdown."""

import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from frankly_protocol.errors import FranklyError
from waitress import wasyncore  # type: ignore[import-untyped]
from waitress.channel import HTTPChannel  # type: ignore[import-untyped]
from waitress.server import create_server  # type: ignore[import-untyped]
from waitress.task import ThreadedTaskDispatcher  # type: ignore[import-untyped]

from frankly_server.cli.waitress_channel import TimelyChannel
from frankly_server.web.slots import LIVE, SPARE_THREADS

DRAIN_S = 10.0
_BACKLOG = 1024
_TICK_S = 0.25
_QUIET_TICKS = 4  # consecutive idle polls, of _TICK_S / 10 each, before connections are closed
# Added to the application's limit: the application itself refuses a body that exceeds its limit by
# less than this, with its own message.
_SLACK_BYTES = 16 * 2**20


class Server:
    """A WSGI server on loopback or behind a proxy that ends TLS.

    It sends no Server header, drops forwarding headers, and writes no access log.
    port : the port it listens on; for a requested port 0, the one that the system chose.
    """

    def __init__(
        self,
        application: Any,
        *,
        host: str,
        port: int,
        threads: int,
        body_limit_bytes: int,
        request_timeout_s: float = 30.0,
    ) -> None:
        """Open the listening socket. Raises FranklyError("network"), as for an address in use.

        request_timeout_s : a request that has not arrived completely within this time gets 408.
        """
        self._stopping = False
        self._request_timeout_s = request_timeout_s
        self._next_look = 0.0
        self._sockets: dict[int, Any] = {}
        listening = _listen(host, port)
        self.port: int = listening.getsockname()[1]
        self._server = create_server(
            application,
            map=self._sockets,
            sockets=[listening],
            threads=threads + SPARE_THREADS,
            ident=None,
            clear_untrusted_proxy_headers=True,
            channel_timeout=60,
            max_request_header_size=16 * 2**10,
            max_request_body_size=body_limit_bytes + _SLACK_BYTES,
            backlog=_BACKLOG,
            connection_limit=1000,
        )
        self._server.channel_class = TimelyChannel
        # A separate queue for probes, because the main one may be full of waiting requests.
        self._probes = ThreadedTaskDispatcher()
        self._probes.set_thread_count(1)
        self._requests = self._server.task_dispatcher
        self._server.add_task = self._dispatch

    def _dispatch(self, channel: TimelyChannel) -> None:
        """Pass a request to a thread; `/health/live` has one that no other request can occupy."""
        # A request that the parser refused may have no path.
        is_probe = channel.requests and getattr(channel.requests[0], "path", "") == LIVE
        (self._probes if is_probe else self._requests).add_task(channel)

    def stop(self) -> None:
        """Make `run` finish the requests in flight and return."""
        self._stopping = True

    def run(self) -> None:
        """Serve until `stop`; then wait up to DRAIN_S seconds for the requests in flight."""
        while not self._stopping:
            wasyncore.loop(timeout=_TICK_S, map=self._sockets, count=1, use_poll=True)
            self._refuse_late()
        self._drain()

    def _refuse_late(self) -> None:
        """Enforce the time limit of every connection, at most once per _TICK_S."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + _TICK_S
            # A copy: a closed connection removes itself from the map.
            for item in list(self._sockets.values()):
                if isinstance(item, TimelyChannel):
                    item.refuse_if_late(self._request_timeout_s)

    def _drain(self) -> None:
        self._server.stopping = True
        for item in list(self._sockets.values()):
            if getattr(item, "accepting", False):
                _take_in(item)
                wasyncore.dispatcher.close(item)
        deadline = time.monotonic() + DRAIN_S
        quiet = 0
        while quiet < _QUIET_TICKS and time.monotonic() < deadline:
            # Poll before closing: a request that has arrived may not have been read yet.
            wasyncore.loop(timeout=_TICK_S / 10, map=self._sockets, count=1, use_poll=True)
            quiet = 0 if any(_busy(item) for item in list(self._sockets.values())) else quiet + 1
        self._server.task_dispatcher.shutdown(timeout=1)
        self._probes.shutdown(timeout=1)
        wasyncore.close_all(self._sockets, ignore_all=True)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # An IPv6 address has two more fields, flow and scope, which keep their defaults.
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = error.strerror or "no such address"
        raise FranklyError(
            f"cannot listen on {host} port {port}: {reason}", code="network", field="port"
        ) from None


def _take_in(listening: Any) -> None:
    """Accept pending connections, because closing the socket would drop their unread requests."""
    # Bounded, because clients may connect as fast as this loop accepts connections.
    channel_count = -1
    while (
        channel_count != (channel_count := len(listening.active_channels))
        and channel_count < 2 * _BACKLOG
    ):
        listening.handle_accept()


def _busy(item: Any) -> bool:
    """Return True if a request of the connection is being received, processed or answered."""
    # Order matters: a response enters the buffer before its request leaves the list.
    return isinstance(item, HTTPChannel) and bool(
        item.request or item.requests or item.total_outbufs_len
    )


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGTERM and Ctrl-C while the `with` block runs (main thread only)."""

    def handler(_number: int, _frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, handler) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
