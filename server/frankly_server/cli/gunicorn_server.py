# SPDX-License-Identifier: Apache-2.0
"""gunicorn, set up for one container: one worker process of many threads, watched and replaced by its master.

One process, because limits and metrics are of a process: more of them are more containers, each scraped by itself.
"""

import contextlib
import logging
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from gunicorn.app.base import BaseApplication  # type: ignore[import-untyped]
from gunicorn.glogging import Logger  # type: ignore[import-untyped]
from gunicorn.workers.gthread import _DEFER, ThreadWorker  # type: ignore[import-untyped]

from frankly_server.cli.waitress_server import DRAIN_S
from frankly_server.web import logs
from frankly_server.web.problems import raw_problem

_LATE: Final = "the request did not arrive in time; send it again"
_WORKER_TIMEOUT_S: Final = 60
_STOPPING_WAIT_S: Final = 5.0
_KEEP_ALIVE_S: Final = (
    75  # longer than proxies keep theirs: the proxy closes first, so none writes into a closed one
)


class Quiet(Logger):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's messages hold client addresses and paths: only who complained, and of what kind of error, is kept."""

    def setup(self, cfg: Any) -> None:
        """Send both of gunicorn's loggers through the allow-list, and write no access log."""
        self.cfg = cfg
        self._access_log_enabled = False
        self.error_log.handlers[:] = [logs.LibraryHandler()]
        self.error_log.setLevel(logging.WARNING)
        self.access_log.handlers[:] = []

    def access(self, *_arguments: Any) -> None:
        """Write nothing."""


class TimelySocket:
    """A socket that is read until a moment, however small the pieces are in which it brings them."""

    def __init__(self, plain: socket.socket, seconds: float) -> None:
        self._plain, self._seconds = plain, seconds
        self._until = 0.0

    def begin(self) -> None:
        """Let the time of the next request begin."""
        self._until = time.monotonic() + self._seconds

    def gettimeout(self) -> None:
        """Say that no timeout is set: gunicorn asks before it throws away the rest of a body."""

    def settimeout(self, seconds: float | None) -> None:
        """Let the time end earlier, if it would not yet."""
        if seconds is not None:
            self._until = min(self._until, time.monotonic() + seconds)

    def recv(self, size: int) -> bytes:
        """Return what has come; raises InvalidInput(timed_out) once the time is over."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise InvalidInput(Problem.TIMED_OUT, _LATE)
        self._plain.settimeout(left)
        try:
            return self._plain.recv(size)
        except TimeoutError:
            raise InvalidInput(Problem.TIMED_OUT, _LATE) from None
        finally:
            self._plain.settimeout(None)


class TimelyWorker(ThreadWorker):  # type: ignore[misc]  # gunicorn has no types
    """gunicorn's threads, none of which waits for a connection that sends nothing, or longer than `seconds`."""

    seconds: float = 30.0

    def handle(self, conn: Any) -> Any:
        """Serve the request that has begun to arrive; a connection without one goes to the poller, not to a thread."""
        if not conn.initialized:
            # While stopping, who has connected is waited for here: the poller would close the connection unread.
            if not conn.wait_for_data(0 if self.alive else _STOPPING_WAIT_S):
                return _DEFER
            conn.init()
            conn.parser.unreader.sock = TimelySocket(conn.sock, self.seconds)
        conn.parser.unreader.sock.begin()
        return super().handle(conn)

    def handle_error(self, req: Any, client: Any, _addr: Any, exc: BaseException) -> None:
        """Answer what no application saw, or a fault of gunicorn's own; the connection is closed after it."""
        late = isinstance(exc, InvalidInput) and exc.problem is Problem.TIMED_OUT
        if late and req is not None:
            return  # the application has answered already
        is_bad_request = (
            type(exc).__module__ == "gunicorn.http.errors"
        )  # all of them are about what was sent
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
    """A checked application under gunicorn, which ends with exit code 0 on SIGTERM once requests are answered."""

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
    ) -> None:
        """Set everything up; `ready` is called with the port once it is listened on.

        request_timeout_s : a request that has not arrived whole by then is 408. started : called in every worker.
        """
        self._application = application
        worker = type("Worker", (TimelyWorker,), {"seconds": request_timeout_s})
        self._options = {
            "bind": f"{f'[{host}]' if ':' in host else host}:{port}",
            "workers": 1,
            "worker_class": worker,
            "threads": threads,
            "backlog": 1024,
            "worker_connections": 1000,
            "timeout": _WORKER_TIMEOUT_S,
            "graceful_timeout": int(DRAIN_S),
            "keepalive": _KEEP_ALIVE_S,
            "worker_tmp_dir": "/dev/shm",  # noqa: S108 - the heartbeat's file: memory, in a container that is read-only
            "control_socket_disable": True,
            "forwarded_allow_ips": "",
            "logger_class": Quiet,
            "post_worker_init": lambda _worker: started(),
            "when_ready": lambda arbiter: ready(arbiter.LISTENERS[0].sock.getsockname()[1]),
        }
        super().__init__()

    def load_config(self) -> None:
        """Set the options; nothing is read from files or the environment."""
        for name, value in self._options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Return the application, made and checked before any worker is forked."""
        return self._application
