# SPDX-License-Identifier: Apache-2.0
"""gunicorn server for one container: one worker process with many threads, replaced if it hangs.

There is one worker because rate limits and metrics count within one process. To scale, run more
containers and scrape the metrics of each.
"""

import contextlib
import logging
import selectors
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]
from gunicorn.workers.gthread import _DEFER, TConn, ThreadWorker  # type: ignore[import-untyped]

from frankly_server.cli.waitress_server import DRAIN_S
from frankly_server.web import logs
from frankly_server.web.problems import raw_problem
from frankly_server.web.slots import LIVE, SPARE_THREADS

_LATE: Final = "the request did not arrive in time; send it again"
_BROKEN: Final = "the body's chunks could not be read; check that the request was sent completely"
_WORKER_TIMEOUT_S: Final = 60
_STOPPING_WAIT_S: Final = 5.0
_PROBE: Final = f"GET {LIVE} ".encode()
_PROBE_BYTES: Final = 2048
# Longer than the keep-alive time of proxies, so that the proxy closes first. Otherwise the proxy
# could send a request on a connection that the server is closing.
_KEEP_ALIVE_S: Final = 75


class Quiet(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn logger that drops messages, because they contain client addresses and paths.

    A log line has the logger's name, the type of the exception or the level, and the code location.
    """

    def setup(self, cfg: Any) -> None:
        """Send gunicorn's errors to `logs.LibraryHandler`, and write no access log."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.handlers[:] = [logs.LibraryHandler()]
        self.error_log.setLevel(logging.WARNING)
        self.access_log.handlers[:] = []

    def access(self, *_arguments: Any) -> None:
        """Write nothing."""


class TimelySocket:
    """Socket with one deadline for the complete request, which a slow client cannot extend."""

    def __init__(self, plain: socket.socket, seconds: float) -> None:
        self._plain, self._seconds = plain, seconds
        self._until = 0.0

    def begin(self) -> None:
        """Start the time limit of the next request."""
        self._until = time.monotonic() + self._seconds

    def gettimeout(self) -> None:
        """Return None (no timeout); gunicorn calls this before it discards the rest of a body."""

    def settimeout(self, seconds: float | None) -> None:
        """Move the deadline forward if `seconds` from now is earlier."""
        if seconds is not None:
            self._until = min(self._until, time.monotonic() + seconds)

    def recv(self, size: int) -> bytes:
        """Return received bytes; raises InvalidInput(timed_out) after the deadline."""
        remaining_s = self._until - time.monotonic()
        if remaining_s <= 0:
            raise InvalidInput(Problem.TIMED_OUT, _LATE)
        self._plain.settimeout(remaining_s)
        try:
            return self._plain.recv(size)
        except TimeoutError:
            raise InvalidInput(Problem.TIMED_OUT, _LATE) from None
        finally:
            self._plain.settimeout(None)


class ChunkedBody:
    """Body of a request that raises InvalidInput(bad_request) if its chunks cannot be parsed.

    gunicorn raises its own exceptions while the application reads the body. Without translation,
    they would be reported as internal faults.
    """

    def __init__(self, body: Any) -> None:
        self._body = body

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return `read`, `readline` or `readlines` of the body, with exceptions translated."""
        read = getattr(self._body, name)

        def checked(*arguments: Any) -> Any:
            try:
                return read(*arguments)
            except Exception as error:
                if _is_client_error(error):
                    raise InvalidInput(Problem.BAD_REQUEST, _BROKEN) from None
                raise

        return checked

    def __iter__(self) -> Any:
        return iter(self.readline, b"")


def _is_client_error(error: BaseException) -> bool:
    """Return True for an exception of gunicorn's parser, which means an invalid request."""
    return type(error).__module__ == "gunicorn.http.errors"


def _is_probe(client: socket.socket) -> bool:
    """Return True if a complete request for `/health/live` has arrived."""
    try:
        # MSG_PEEK leaves the bytes in the buffer, so the worker can read them again.
        head = client.recv(_PROBE_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except OSError:
        return False
    return head.startswith(_PROBE) and b"\r\n\r\n" in head


class TimelyWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn worker in which idle connections and slow requests do not block threads.

    seconds : time limit for a request to arrive completely. stopping : called on SIGTERM.
    """

    seconds: float = 30.0
    stopping: Callable[[], None]

    def init_process(self) -> None:
        """Start serving; liveness probes have a thread that no other request can occupy."""
        self._probes = ThreadPoolExecutor(1, "frankly-live")
        super().init_process()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Finish the requests in flight, and stop."""
        type(self).stopping()
        super().handle_exit(sig, frame)

    def accept(self, listener: socket.socket) -> None:
        """Accept a connection; a thread serves it once a request begins to arrive."""
        try:
            client, address = listener.accept()
        except BlockingIOError:
            return
        self.nr_conns += 1
        conn = TConn(self.cfg, client, address, listener.getsockname())
        # A silent connection occupies no thread, and is closed after this time.
        conn.timeout = time.monotonic() + self.cfg.keepalive
        self.pending_conns.append(conn)
        arrived = partial(self.on_pending_socket_readable, conn)
        self.poller.register(client, selectors.EVENT_READ, arrived)

    def enqueue_req(self, conn: Any) -> None:
        """Hand a connection to a thread."""
        # Only complete requests go to the thread for probes: a slow request could block it.
        threads = self._probes if _is_probe(conn.sock) else self.tpool
        handled = threads.submit(self.handle, conn)
        handled.add_done_callback(
            lambda done: self.method_queue.defer(self.finish_request, conn, done)
        )

    def handle(self, conn: Any) -> Any:
        """Serve a request that has begun to arrive; return an idle connection to the poller."""
        if not conn.initialized:
            # During shutdown, wait here: the poller would close a new connection before its request
            # is read.
            if not conn.wait_for_data(0 if self.alive else _STOPPING_WAIT_S):
                return _DEFER
            conn.init()
            conn.parser.unreader.sock = TimelySocket(conn.sock, self.seconds)
        conn.parser.unreader.sock.begin()
        return super().handle(conn)

    def handle_error(self, req: Any, client: Any, _addr: Any, exc: BaseException) -> None:
        """Send an error response if a request did not reach the application or gunicorn failed."""
        late = isinstance(exc, InvalidInput) and exc.problem is Problem.TIMED_OUT
        if late and req is not None:
            return  # the application has already responded
        is_bad_request = _is_client_error(exc)
        problem, headers, body = raw_problem(408 if late else 400 if is_bad_request else 500)
        if not (late or is_bad_request):
            self.log.error("Error handling request", exc_info=exc)
        lines = [
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}",
            "Connection: close",
            f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in headers),
        ]
        with contextlib.suppress(OSError):  # the client may have disconnected
            client.sendall("\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body)


class Production(BaseApplication):  # type: ignore[misc]
    """gunicorn for one application; on SIGTERM it finishes in-flight requests and exits with 0."""

    def __init__(
        self,
        application: Any,
        *,
        host: str,
        port: int,
        threads: int,
        ready: Callable[[int], None],
        request_timeout_s: float = 30.0,
        started: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
    ) -> None:
        """Set the options.

        ready : called with the port once the server listens. request_timeout_s : a request that has
        not arrived completely within this time gets 408. started : called in each worker process.
        stopping : called in each when it begins to stop.
        """
        self._application = application
        worker = type(
            "Worker",
            (TimelyWorker,),
            {"seconds": request_timeout_s, "stopping": staticmethod(stopping)},
        )
        self._options = {
            "bind": f"{f'[{host}]' if ':' in host else host}:{port}",
            "workers": 1,
            "worker_class": worker,
            "threads": threads + SPARE_THREADS,
            "backlog": 1024,
            "worker_connections": 1000,
            # The default is shorter than the longest query that the application accepts.
            "limit_request_line": 8190,
            "timeout": _WORKER_TIMEOUT_S,
            "graceful_timeout": int(DRAIN_S),
            "keepalive": _KEEP_ALIVE_S,
            # The heartbeat file needs a writable folder, and a container may be read-only.
            "worker_tmp_dir": "/dev/shm",  # noqa: S108
            "control_socket_disable": True,
            # No proxy is trusted, because no code here reads client addresses.
            "forwarded_allow_ips": "",
            "logger_class": Quiet,
            # After the fork, because threads of the master do not exist in its workers.
            "post_worker_init": lambda _worker: started(),
            # The port of the socket: for port 0, the system has chosen a free one.
            "when_ready": lambda arbiter: ready(arbiter.LISTENERS[0].sock.getsockname()[1]),
        }
        super().__init__()

    def load_config(self) -> None:
        """Set the options; configuration files and the environment are ignored."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application, which was created and checked before any worker is forked."""

        def application(environ: dict[str, Any], start_response: Any) -> Any:
            environ["wsgi.input"] = ChunkedBody(environ["wsgi.input"])
            return self._application(environ, start_response)

        return application
